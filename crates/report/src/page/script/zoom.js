"use strict";
// A part of a chart's x axis, chosen by dragging across it, with mouse, pen or finger.
const zoom = (() => {
  const LEAST = 8;

  // Calls `chosen` with two values on the chart's (transformed) axis, or with null to show all.
  function attach(chart, chosen) {
    const { over } = chart;
    let from = null;
    const here = (event) => Math.min(Math.max(event.clientX - over.getBoundingClientRect().left, 0), over.clientWidth);
    const select = (left, width) => chart.setSelect({ left, top: 0, width, height: width ? over.clientHeight : 0 }, false);
    over.addEventListener("pointerdown", (event) => {
      if (event.button === 0) from = here(event);
    });
    over.addEventListener("pointermove", (event) => {
      if (from === null) return;
      const to = here(event);
      if (Math.abs(to - from) < LEAST) return;
      over.setPointerCapture(event.pointerId);
      select(Math.min(from, to), Math.abs(to - from));
    });
    over.addEventListener("pointerup", (event) => {
      if (from === null) return;
      const ends = [from, here(event)].sort((a, b) => a - b);
      from = null;
      select(0, 0);
      if (ends[1] - ends[0] >= LEAST) chosen(ends.map((x) => chart.posToVal(x, "x")));
    });
    // The page is being scrolled instead.
    over.addEventListener("pointercancel", () => { from = null; select(0, 0); });
    over.addEventListener("dblclick", () => chosen(null));
  }

  return { attach };
})();
