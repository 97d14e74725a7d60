"use strict";
// A line to drag across a chart: the value of x that a reader can accept. A slider for keyboards and screen readers.
const limit = (() => {
  const { element } = controls;

  // `wanted` is { x, min, max, label, format, changed }; `place` turns a value of x into pixels and `value` back.
  function attach(chart, wanted, place, value) {
    let now = wanted.x;
    const flag = element("span", { class: "limit-flag" });
    const line = element("div", {
      class: "limit", role: "slider", tabindex: "0", "aria-label": wanted.label,
      "aria-valuemin": String(wanted.min), "aria-valuemax": String(wanted.max), title: "Drag, or use the arrow keys",
    }, flag);

    function move(x, tell) {
      // Three digits, so that the address and the text say the same.
      now = +Math.min(Math.max(x, wanted.min), wanted.max).toPrecision(3);
      const at = place(now);
      line.style.left = `${at}px`;
      line.classList.toggle("flip", at > chart.over.clientWidth - 90);
      line.setAttribute("aria-valuenow", String(now));
      line.setAttribute("aria-valuetext", wanted.format(now));
      flag.textContent = wanted.format(now);
      if (tell) wanted.changed(now);
    }

    let held = false;
    line.addEventListener("pointerdown", (event) => {
      held = true;
      line.setPointerCapture(event.pointerId);
      event.stopPropagation();
    });
    line.addEventListener("pointermove", (event) => {
      if (!held) return;
      move(value(event.clientX - chart.over.getBoundingClientRect().left), true);
    });
    for (const end of ["pointerup", "pointercancel"]) line.addEventListener(end, () => { held = false; });
    // The chart below must not take the drag for a zoom, nor the keys for its own.
    line.addEventListener("mousedown", (event) => event.stopPropagation());
    line.addEventListener("dblclick", (event) => event.stopPropagation());
    line.addEventListener("keydown", (event) => {
      const factor = { ArrowRight: 1.1, ArrowUp: 1.1, ArrowLeft: 1 / 1.1, ArrowDown: 1 / 1.1, PageUp: 2, PageDown: 0.5 }[event.key];
      const to = event.key === "Home" ? wanted.min : event.key === "End" ? wanted.max : factor && now * factor;
      if (to === undefined) return;
      event.preventDefault();
      event.stopPropagation();
      move(to, true);
    });
    chart.over.append(line);
    move(now, false);
  }

  return { attach };
})();
