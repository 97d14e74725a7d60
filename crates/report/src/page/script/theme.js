"use strict";
// Light, dark, or as the system says. Charts are drawn on canvas, so they ask for the colours here and are told when
// these change.
const theme = (() => {
  const root = document.documentElement;
  const listeners = [];
  const system = matchMedia("(prefers-color-scheme: dark)");

  function remembered() {
    try { return localStorage.getItem("drivelab-theme"); } catch { return null; }
  }

  function choose(name) {
    root.dataset.theme = name;
    // A page opened from a file may be refused storage; the choice then lasts as long as the page.
    try { localStorage.setItem("drivelab-theme", name); } catch { /* nothing to do */ }
    listeners.forEach((listener) => listener());
  }

  const colour = (name) => getComputedStyle(root).getPropertyValue(name).trim();

  // Print on white whatever the screen shows, with charts as wide as a sheet: browsers call this before they lay the
  // page out for paper.
  // Width of a sheet of A4 between its margins, in CSS pixels; style/page.css has the same for charts.
  const SHEET = (178 / 25.4) * 96;
  let before = null;
  function beginPrint() {
    if (before !== null) return;
    before = root.dataset.theme || "auto";
    root.dataset.theme = "light";
    root.classList.add("printing");
    listeners.forEach((listener) => listener());
  }
  function endPrint() {
    if (before === null) return;
    root.dataset.theme = before;
    root.classList.remove("printing");
    before = null;
    listeners.forEach((listener) => listener());
  }

  function start() {
    const now = remembered() ?? "auto";
    root.dataset.theme = now;
    for (const radio of document.querySelectorAll("input[name=theme]")) {
      radio.checked = radio.value === now;
      radio.addEventListener("change", () => choose(radio.value));
    }
    system.addEventListener("change", () => listeners.forEach((listener) => listener()));
  }

  return { SHEET, start, colour, beginPrint, endPrint, changed: (listener) => listeners.push(listener) };
})();
