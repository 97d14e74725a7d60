"use strict";
// A line chart: uPlot underneath; markers, labels at the lines' ends, a readout under the pointer and reading by
// arrow keys on top.
const plot = (() => {
  const FONT = '12px system-ui, -apple-system, "Segoe UI", Roboto, sans-serif';
  const LABEL = '600 12.5px system-ui, -apple-system, "Segoe UI", Roboto, sans-serif';
  const { element } = controls;

  // Every x that occurs, rising, and each line's value there.
  function aligned(view) {
    const xs = [...new Set(view.lines.flatMap((line) => line.points.map(([x]) => x)))].sort((a, b) => a - b);
    const ys = view.lines.map((line) => {
      const by = new Map(line.points);
      return xs.map((x) => by.get(x) ?? null);
    });
    return { xs, ys };
  }

  function measure(texts) {
    const context = document.createElement("canvas").getContext("2d");
    context.font = LABEL;
    return Math.max(...texts.map((text) => context.measureText(text).width));
  }

  // Draws `view` into `host` and returns what can be destroyed. A view is
  // { title, x: {kind, label, format, ticks?}, y: {kind, label, format}, lines: [{drive, name, points: [[x, y]]}],
  //   dense, marksAt: [{x, drive, text}] }.
  function draw(host, view, live) {
    host.replaceChildren();
    const lines = view.lines.map((line) => ({ ...line, points: line.points.filter(([, y]) => y !== null && y > 0) }));
    view = { ...view, lines };
    const { xs, ys } = aligned(view);
    if (xs.length === 0) {
      host.append(element("p", { class: "empty" }, view.empty ?? "Nothing was measured here."));
      return { destroy() {}, series: [], labelled: false };
    }
    const width = host.clientWidth;
    const height = host.clientHeight;
    const wide = width > 640;
    const [xKind, yKind] = [axes.kinds[view.x.kind], axes.kinds[view.y.kind]];
    const all = ys.flat().filter((y) => y !== null);
    const { min: low, max: high, ticks: yTicks } = axes.scale(view.y.kind, all, 6);
    const [left, right] = view.x.range ?? [xs[0], xs[xs.length - 1]];
    const room = wide ? measure(lines.map((line) => line.name)) + 26 : 14;
    const ink = theme.colour("--ink-soft");
    const rule = theme.colour("--rule");
    const xTicks = view.x.ticks?.filter((tick) => tick >= left && tick <= right)
      ?? xKind.ticks(left, right, Math.max(3, Math.floor(width / 80)));
    const axis = (scale, kind, ticks, write) => ({
      scale, stroke: ink, font: FONT, labelFont: FONT,
      splits: () => ticks.map(kind.forward),
      values: () => ticks.map(write),
      ticks: { show: scale === "x", stroke: rule, width: 1, size: 5 },
    });
    const chart = new uPlot({
      width, height,
      padding: [26, room, 0, 4],
      legend: { show: false },
      cursor: { drag: { x: false, y: false }, y: false, points: { show: false } },
      scales: {
        x: { time: false, range: () => padded(xKind.forward(left), xKind.forward(right)) },
        y: { range: () => [yKind.forward(low), yKind.forward(high)] },
      },
      axes: [
        { ...axis("x", xKind, xTicks, view.x.format), grid: { show: view.x.kind === "nines", stroke: rule, width: 1 }, label: view.x.label, labelSize: 26, size: 32, gap: 6 },
        { ...axis("y", yKind, yTicks, view.y.format), grid: { stroke: rule, width: 1 }, size: 64, gap: 8 },
      ],
      series: [{}, ...lines.map((line) => ({
        stroke: marks.colour(line.drive), width: 2.25, dash: marks.dash(line.drive),
        spanGaps: true, points: { show: false },
      }))],
      hooks: {
        draw: [(u) => paint(u, view, xs, ys, wide)],
        setCursor: [(u) => follow(u)],
      },
    }, [xs.map(xKind.forward), ...ys.map((line) => line.map((y) => (y === null ? null : yKind.forward(y))))], host);

    const tip = element("div", { class: "tip", "aria-hidden": "true" });
    chart.over.append(tip);
    function read(index) {
      return lines
        .map((line, at) => ({ line, y: ys[at][index] }))
        .filter(({ y }) => y !== null)
        .sort((a, b) => b.y - a.y);
    }
    function follow(u) {
      const index = u.cursor.idx;
      const rows = index === null || index === undefined || u.cursor.left < 0 ? [] : read(index);
      tip.hidden = rows.length === 0;
      if (tip.hidden) return;
      tip.replaceChildren(
        element("div", { class: "tip-head" }, `${view.x.name} ${view.x.format(xs[index])}`),
        ...rows.map(({ line, y }) => element("div", { class: "tip-row" },
          marks.swatch(line.drive), element("span", {}, line.name), element("b", {}, view.y.format(y)))),
      );
      const x = u.valToPos(xKind.forward(xs[index]), "x");
      const flip = x > u.over.clientWidth / 2;
      tip.style.left = flip ? "" : `${x + 14}px`;
      tip.style.right = flip ? `${u.over.clientWidth - x + 14}px` : "";
    }
    host.onkeydown = (event) => {
      const at = chart.cursor.idx ?? -1;
      const to = { ArrowRight: at + 1, ArrowLeft: at - 1, Home: 0, End: xs.length - 1, Escape: null }[event.key];
      if (to === undefined) return;
      event.preventDefault();
      if (to === null) { chart.setCursor({ left: -10, top: -10 }); return; }
      const index = Math.max(0, Math.min(xs.length - 1, to));
      chart.setCursor({ left: chart.valToPos(xKind.forward(xs[index]), "x"), top: 10 });
      live.textContent = `${view.x.name} ${view.x.format(xs[index])}: `
        + read(index).map(({ line, y }) => `${line.name} ${view.y.format(y)}`).join(", ");
    };
    host.onblur = () => chart.setCursor({ left: -10, top: -10 });
    tip.hidden = true;
    return { destroy: () => chart.destroy(), series: [xs, ...ys], labelled: wide };
  }

  function padded(min, max) {
    const room = (max - min || 1) * 0.015;
    return [min - room, max + room];
  }

  // What uPlot does not draw: markers, names at the lines' ends, the unit above the y axis.
  function paint(u, view, xs, ys, wide) {
    const context = u.ctx;
    const ratio = uPlot.pxRatio;
    const [xKind, yKind] = [axes.kinds[view.x.kind], axes.kinds[view.y.kind]];
    const px = (x) => u.valToPos(xKind.forward(x), "x", true);
    const py = (y) => u.valToPos(yKind.forward(y), "y", true);
    context.save();
    context.font = LABEL.replace("12.5", String(12.5 * ratio));
    context.textBaseline = "middle";
    context.textAlign = "left";
    context.fillStyle = theme.colour("--ink");
    context.fillText(view.y.label, 4 * ratio, 10 * ratio);
    const ends = [];
    view.lines.forEach((line, at) => {
      context.fillStyle = context.strokeStyle = marks.colour(line.drive);
      context.lineWidth = 1.75 * ratio;
      let last = null;
      xs.forEach((x, index) => {
        const y = ys[at][index];
        if (y === null) return;
        last = { x: px(x), y: py(y) };
        if (!view.dense) marks.marker(context, line.drive, last.x, last.y, 3.6 * ratio);
      });
      if (last) ends.push({ ...last, line });
      context.fillStyle = marks.colour(line.drive);
      for (const mark of view.marksAt?.filter((one) => one.drive === line.drive) ?? []) {
        flag(context, px(mark.x), mark, u, ratio);
      }
    });
    if (wide) labels(context, u, ends, ratio);
    context.restore();
  }

  function flag(context, x, mark, u, ratio) {
    context.globalAlpha = 0.75;
    context.fillRect(x - ratio / 2, u.bbox.top, ratio, u.bbox.height);
    context.globalAlpha = 1;
    context.save();
    context.font = FONT.replace("12px", `${11.5 * ratio}px`);
    context.translate(x + 9 * ratio, u.bbox.top + 6 * ratio);
    context.rotate(Math.PI / 2);
    context.fillText(mark.text, 0, 0);
    context.restore();
  }

  // Names beside the last point of each line, pushed apart where they would overlap.
  function labels(context, u, ends, ratio) {
    const gap = 17 * ratio;
    const bottom = u.bbox.top + u.bbox.height;
    ends.sort((a, b) => a.y - b.y);
    ends.forEach((end, at) => {
      end.at = at === 0 ? end.y : Math.max(end.y, ends[at - 1].at + gap);
    });
    for (let at = ends.length - 1; at >= 0; at -= 1) {
      const limit = at === ends.length - 1 ? bottom : ends[at + 1].at - gap;
      ends[at].at = Math.min(ends[at].at, limit);
    }
    const edge = u.bbox.left + u.bbox.width;
    for (const end of ends) {
      context.fillStyle = context.strokeStyle = marks.colour(end.line.drive);
      context.globalAlpha = 0.45;
      context.lineWidth = ratio;
      context.beginPath();
      context.moveTo(Math.min(end.x + 6 * ratio, edge), end.y);
      context.lineTo(edge + 6 * ratio, end.at);
      context.stroke();
      context.globalAlpha = 1;
      context.fillText(end.line.name, edge + 10 * ratio, end.at);
    }
  }

  return { draw };
})();
