try { document.documentElement.dataset.theme = localStorage.getItem("drivelab-theme") || "auto"; } catch { /* no storage */ }
