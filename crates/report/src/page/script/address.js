"use strict";
// The address keeps what a reader has chosen, behind `#`: the chapter, then `chart.choice=value` for each choice that is
// not the first, so that a link shows the same view.
const address = (() => {
  const values = new Map();
  let anchor = "";

  const decoded = (text) => {
    // An address that somebody has cut short may end inside a sequence.
    try { return decodeURIComponent(text); } catch { return text; }
  };
  // Readable where it can be.
  const encoded = (text) => encodeURIComponent(text).replace(/%(2F|3A|2C|40)/g, decodeURIComponent);

  // Whether the address says what is to be shown.
  function read() {
    const parts = location.hash.slice(1).split("&").filter(Boolean);
    const plain = parts.every((part) => !part.includes("="));
    anchor = decoded(parts.find((part) => !part.includes("=")) ?? "");
    // A link inside the page names its chapter only: what was chosen stays.
    if (plain) {
      if (values.size) write();
      return false;
    }
    values.clear();
    for (const part of parts.filter((one) => one.includes("="))) {
      const at = part.indexOf("=");
      values.set(decoded(part.slice(0, at)), decoded(part.slice(at + 1)));
    }
    return true;
  }

  function write() {
    const chosen = [...values].map(([key, value]) => `${encoded(key)}=${encoded(value)}`);
    const hash = [encoded(anchor), ...chosen].filter(Boolean).join("&");
    history.replaceState(null, "", hash ? `#${hash}` : location.pathname + location.search);
  }

  // Keeps a value, or forgets it if it is null; `chapter` is where the reader is.
  function keep(key, value, chapter) {
    if (value === null) values.delete(key); else values.set(key, value);
    if (chapter) anchor = chapter;
    write();
  }

  return { read, keep, get: (key) => values.get(key), anchor: () => anchor };
})();
