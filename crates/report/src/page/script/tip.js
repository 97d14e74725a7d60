"use strict";
// The box under the pointer: beside it where there is room, and always inside the chart.
const tip = (() => {
  const { element } = controls;
  const BESIDE = 14;

  // Swatches must not be inside uPlot's element, whose style stretches every canvas in it.
  function make(host) {
    const box = element("div", { class: "tip", "aria-hidden": "true" });
    box.hidden = true;
    host.append(box);

    // `rows` are { drive, name, value, soft? }; `x` is the pointer's place in the host.
    function show(head, rows, x) {
      box.hidden = rows.length === 0;
      if (box.hidden) return;
      box.replaceChildren(element("div", { class: "tip-head" }, head), ...rows.map((row) =>
        element("div", { class: row.soft ? "tip-row soft" : "tip-row" },
          row.soft ? marks.targetSwatch(row.drive) : marks.swatch(row.drive), element("span", {}, row.name), element("b", {}, row.value))));
      box.style.left = "0";
      const [wide, room] = [box.offsetWidth, host.clientWidth];
      const left = x + BESIDE + wide <= room ? x + BESIDE : x - BESIDE - wide;
      box.style.left = `${Math.min(Math.max(left, 0), Math.max(0, room - wide))}px`;
    }
    return { show, hide() { box.hidden = true; } };
  }

  return { make };
})();
