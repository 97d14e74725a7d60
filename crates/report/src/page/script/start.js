"use strict";
// Puts every chart into its place and redraws it when a choice, the width, the theme or the drives shown change.
(() => {
  const { element } = controls;
  theme.start();
  address.read();
  shown.restore();
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
        "aria-label": `${title}. Chart; left and right arrow keys read its values, plus and minus zoom. The table below holds the same data.`,
      });
    const aside = chart.aside ? element("div", { class: "aside" }) : "";
    const { state } = chart;
    const first = { ...state };
    const chapter = figure.closest("section")?.id ?? "";
    const sheet = table.details(name, () => chart.view(state).table);
    const sources = chart.published && published.any(chart.published) ? table.details(`${name}-published`, () => {
      const view = chart.view(state);
      return published.table({ ...view, published: view.published ?? [] });
    }, "Published figures on this chart") : null;
    const all = element("button", { type: "button", class: "quiet", title: "Drag across the chart to zoom in" }, "Show all");
    let zoomed = null;
    let drawn = null;

    function draw() {
      sheet.fill();
      sources?.fill();
      if (chart.bars) { chart.bars(state, host); return; }
      drawn?.destroy();
      const view = { ...chart.view(state), zoom: zoomed };
      if (view.limit) view.limit.changed = limited;
      drawn = plot.draw(host, view, live, zoomTo);
      // What is on the canvas, for tests and for the curious.
      host.drawn = drawn.series;
      // Names stand at the lines' ends where there is room for them.
      legend.hidden = drawn.labelled;
      legend.replaceChildren(...view.lines.map((line) =>
        element("span", {}, marks.swatch(line.drive), data.review.drives[line.drive].label)));
      all.disabled = zoomed === null;
      const spans = !view.free && view.lines.some((line) => line.points.some(([, , ends]) => ends));
      const bands = spans ? `Bands: range over ${data.review.seeds} seeds; a line is faint where the seeds differ by half or more.` : "";
      note.textContent = [view.note, bands].filter(Boolean).join(" ");
      if (aside) aside.replaceChildren(chart.aside(state));
    }

    // Of each choice and of a limit what differs from the first view, in the address.
    function keep() {
      for (const key of Object.keys(first)) {
        address.keep(`${name}.${key}`, state[key] === first[key] ? null : String(state[key]), chapter);
      }
      address.keep(`${name}.zoom`, zoomed && zoomed.join("~"), chapter);
    }
    function limited(x) {
      state.accept = x;
      aside.replaceChildren(chart.aside(state));
      keep();
    }
    function zoomTo(ends) {
      // As the address has it, so that a link shows the same.
      zoomed = ends && ends.map((end) => +end.toPrecision(4));
      keep();
      draw();
    }
    // Another quantity along the axis: what was zoomed into is not there.
    function chosen(spec) {
      if (spec.name === "against") zoomed = null;
      keep();
      draw();
    }

    // Takes from the address what it says and can be had.
    function restore() {
      for (const [key, value] of Object.entries(first)) {
        const told = address.get(`${name}.${key}`);
        const spec = chart.choices.find((one) => one.name === key);
        const known = spec ? spec.options.some(([option]) => option === told) : Number(told) > 0;
        state[key] = told === undefined || !known ? value : spec ? told : Number(told);
      }
      const ends = (address.get(`${name}.zoom`) ?? "").split("~").map(Number);
      zoomed = ends.length === 2 && ends[0] < ends[1] ? ends : null;
      built.forEach((one) => one.sync());
    }

    const built = chart.choices.map((spec) => controls.build(spec, state, () => chosen(spec)));
    bar.append(...built.map((one) => one.made));
    if (!chart.bars) {
      bar.append(all);
      all.addEventListener("click", () => zoomTo(null));
    }
    const body = aside ? element("div", { class: "beside" }, host, aside) : host;
    figure.append(bar, legend, body, note, live, sheet.made, ...(sources ? [sources.made] : []));
    restore();
    draw();
    mounted.push({ draw, restore, host, width: host.clientWidth });
  }

  function redraw() {
    marks.repaint();
    mounted.forEach((one) => one.draw());
    data.others.forEach((one) => one.redraw());
  }

  document.querySelectorAll("figure[data-chart]").forEach(mount);
  data.others.forEach((one) => one.start());
  marks.repaint();
  theme.changed(redraw);
  shown.start(redraw);

  // What an address says of the whole page: which drives, which choices, which chapter.
  function follow() {
    shown.restore();
    mounted.forEach((one) => one.restore());
    data.others.forEach((one) => one.restore());
    redraw();
  }
  function arrive() {
    const chapter = address.anchor();
    if (chapter) document.getElementById(chapter)?.scrollIntoView();
  }
  addEventListener("hashchange", () => { if (address.read()) { follow(); arrive(); } });

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
      data.others.forEach((one) => one.redraw());
    });
  });
  addEventListener("beforeprint", theme.beginPrint);
  addEventListener("afterprint", theme.endPrint);
  contents.start();
  // A plain chapter the browser finds by itself.
  if (location.hash.includes("&")) arrive();
  document.documentElement.dataset.ready = "yes";
})();
