"use strict";
// Puts every chart into its place and redraws it when a choice, the width or the theme changes.
(() => {
  const { element } = controls;
  theme.start();
  const mounted = [];

  function mount(figure) {
    const name = figure.dataset.chart;
    const chart = charts[name];
    const title = figure.querySelector("figcaption").textContent;
    const bar = element("div", { class: "choices" });
    const legend = element("div", { class: "legend", "aria-hidden": "true" });
    const note = element("p", { class: "note" });
    const live = element("p", { class: "hidden", "aria-live": "polite" });
    const host = chart.bars
      ? element("div", { class: "bars" })
      : element("div", {
        class: "plot", tabindex: "0", role: "group",
        "aria-label": `${title}. Chart; left and right arrow keys read its values. The table below holds the same data.`,
      });
    const state = chart.state;
    const sheet = table.details(name, () => chart.view(state).table);
    let drawn = null;

    function draw() {
      if (chart.bars) { chart.bars(state, host); sheet.fill(); return; }
      drawn?.destroy();
      const view = chart.view(state);
      drawn = plot.draw(host, view, live);
      // What is on the canvas, for tests and for the curious.
      host.drawn = drawn.series;
      // Names stand at the lines' ends where there is room for them.
      legend.hidden = drawn.labelled;
      note.textContent = view.note ?? "";
      sheet.fill();
    }
    for (const spec of chart.choices) bar.append(controls.build(spec, state, draw));
    if (!chart.bars) {
      data.review.drives.forEach((drive, at) => legend.append(element("span", {}, marks.swatch(at), drive.label)));
    }
    figure.append(bar, legend, host, note, live, sheet.made);
    draw();
    mounted.push({ draw, host, width: host.clientWidth });
  }

  function redraw() {
    marks.repaint();
    mounted.forEach((one) => one.draw());
  }

  document.querySelectorAll("figure[data-chart]").forEach(mount);
  marks.repaint();
  theme.changed(redraw);

  let pending = 0;
  addEventListener("resize", () => {
    cancelAnimationFrame(pending);
    pending = requestAnimationFrame(() => {
      for (const one of mounted) {
        if (one.host.clientWidth !== one.width) {
          one.width = one.host.clientWidth;
          one.draw();
        }
      }
    });
  });
  addEventListener("beforeprint", theme.beginPrint);
  addEventListener("afterprint", theme.endPrint);
  document.documentElement.dataset.ready = "yes";
})();
