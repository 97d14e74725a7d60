"use strict";
// A line chart: uPlot underneath; markers, labels at the lines' ends, published figures, a readout under the pointer,
// zoom and reading by arrow keys on top.
const plot = (() => {
  const FONT = '12px system-ui, -apple-system, "Segoe UI", Roboto, sans-serif';
  const LABEL = '600 12.5px system-ui, -apple-system, "Segoe UI", Roboto, sans-serif';
  const { element } = controls;

  const there = (y) => y !== null && y !== undefined;

  // Every x that occurs, rising, and each line's value there: null where a point has none, so that no line crosses it,
  // undefined where the line has no such point.
  function aligned(lines) {
    const xs = [...new Set(lines.flatMap((line) => line.points.map(([x]) => x)))].sort((a, b) => a - b);
    const ys = lines.map((line) => {
      const by = new Map(line.points.map(([x, y]) => [x, y]));
      return xs.map((x) => by.get(x));
    });
    return { xs, ys };
  }

  function width(text, font) {
    const context = document.createElement("canvas").getContext("2d");
    context.font = font;
    return context.measureText(text).width;
  }

  // What is drawn of a view: its values, the part of the x axis, the y axis for what is in that part.
  function prepare(view) {
    const [xKind, yKind] = [axes.kinds[view.x.kind], axes.kinds[view.y.kind]];
    const drawable = (y) => there(y) && (y > 0 || (y === 0 && view.y.kind === "linear"));
    const lines = view.lines.map((line) => ({
      ...line, points: line.points.map(([x, y, ...more]) => [x, drawable(y) ? y : null, ...more]),
    }));
    const { xs, ys } = aligned(lines);
    const published = (view.published ?? []).filter((one) => one.drawn);
    const full = view.x.range ?? [xs[0], xs[xs.length - 1]];
    const [left, right] = view.zoom ?? full;
    const within = (x) => x >= left && x <= right;
    const ends = (line) => (view.free ? [] : line.points.filter(([x, y, band]) => band && there(y) && within(x)).flatMap(([, , band]) => band));
    const seen = [...ys.flatMap((line) => line.filter((y, index) => there(y) && within(xs[index]))), ...lines.flatMap(ends)];
    const marked = published.filter((one) => one.y !== null && (one.x === null || within(Math.min(one.x, full[1]))))
      .flatMap((one) => one.ends.filter((end) => end !== null));
    const all = [...seen, ...marked].length ? [...seen, ...marked] : ys.flat().filter(there);
    const y = all.length ? axes.scale(view.y.kind, all, 6) : null;
    return { view: { ...view, lines, published }, xKind, yKind, xs, ys, full, left, right, within, y };
  }

  // Draws `view` into `host` and returns what can be destroyed. A view is
  // { x: {kind, name, label, format, range?}, y: {kind, label, format}, lines: [{drive, name, points: [[x, y, band?]]}],
  //   a point may have a third part: [least, greatest] of several seeds,
  //   free?: lines go their own way in both directions, and a point's third part is what it is, in words,
  //   dense?, zoom?: [from, to], published?: what published.js makes,
  //   limit?: a line to drag }.
  function draw(host, view, live, zoomed) {
    host.replaceChildren();
    const drawn = prepare(view);
    if (drawn.y === null) {
      host.ticks = [];
      host.append(element("p", { class: "empty" }, view.empty ?? "Nothing was measured here."));
      return { destroy() {}, series: [], labelled: false };
    }
    const chart = build(host, drawn);
    const read = readout(host, chart, drawn);
    keys(host, chart, drawn, read, live, zoomed);
    zoom.attach(chart, (ends) => zoomed(ends && ends.map(drawn.xKind.back)));
    // uPlot lays its axes out in a microtask of its own.
    queueMicrotask(() => {
      host.ticks = drawn.ticks();
      if (!view.limit) return;
      limit.attach(chart, view.limit, (x) => chart.valToPos(drawn.xKind.forward(x), "x"),
        (at) => drawn.xKind.back(chart.posToVal(at, "x")));
    });
    return { destroy: () => chart.destroy(), series: [drawn.xs, ...drawn.ys], labelled: host.clientWidth > 640 };
  }

  function build(host, drawn) {
    const { view, xKind, yKind, left, right } = drawn;
    const [wide, high] = [host.clientWidth, host.clientHeight];
    const ink = theme.colour("--ink-soft");
    const rule = theme.colour("--rule");
    const write = xKind.write ? (tick) => xKind.write(tick, right) : view.x.format;
    const candidates = xKind.ticks(left, right, Math.max(3, Math.floor(wide / 80)));
    const wideness = (tick) => width(write(tick), FONT);
    // At the right: the lines' names, or at least half of the last label below.
    const room = wide > 640
      ? Math.max(...view.lines.map((line) => width(line.name, LABEL)), 0) + 26
      : Math.max(14, ...candidates.map((tick) => wideness(tick) / 2));
    const [from, to] = [xKind.forward(left), xKind.forward(right)];
    const place = (tick) => (xKind.forward(tick) - from) / (to - from || 1) * (wide - 68 - room) * 0.97;
    const xTicks = axes.apart(candidates, place, wideness);
    const axis = (scale, kind, ticks, text) => ({
      scale, stroke: ink, font: FONT, labelFont: FONT,
      splits: () => ticks.map(kind.forward),
      values: () => ticks.map(text),
      ticks: { show: scale === "x", stroke: rule, width: 1, size: 5 },
    });
    const chart = new uPlot({
      width: wide, height: high,
      padding: [26, room, 0, 4],
      legend: { show: false },
      cursor: { drag: { x: false, y: false, setScale: false }, y: false, points: { show: false } },
      scales: {
        x: { time: false, range: () => padded(from, to) },
        y: { range: () => [yKind.forward(drawn.y.min), yKind.forward(drawn.y.max)] },
      },
      axes: [
        { ...axis("x", xKind, xTicks, write), grid: { show: view.x.kind === "nines", stroke: rule, width: 1 }, label: view.x.label, labelSize: 26, size: 32, gap: 6 },
        { ...axis("y", yKind, drawn.y.ticks, view.y.format), grid: { stroke: rule, width: 1 }, size: 64, gap: 8 },
      ],
      series: [{}, ...view.lines.map((line) => ({
        // Lines are drawn below: uPlot knows nothing of bands.
        stroke: marks.colour(line.drive), points: { show: false }, paths: () => null,
      }))],
      hooks: { draw: [(u) => paint(u, drawn, wide > 640)] },
    }, [
      drawn.xs.map(xKind.forward),
      ...drawn.ys.map((line) => line.map((y) => (there(y) ? yKind.forward(y) : y))),
    ], host);
    // Where the labels of the x axis are, for tests and for the curious.
    drawn.ticks = () => xTicks.map((tick) => {
      const at = chart.valToPos(xKind.forward(tick), "x") + chart.bbox.left / uPlot.pxRatio;
      return { text: write(tick), from: at - wideness(tick) / 2, to: at + wideness(tick) / 2 };
    });
    return chart;
  }

  // Rows of a chart whose lines go their own way: the points at this x alone, each with what it is.
  function rowsOf(view, x) {
    const here = (line) => line.points.filter((point) => point[0] === x && there(point[1]));
    return view.lines.flatMap((line) => here(line).map(([, y, what]) => ({
      drive: line.drive, name: `${line.name}, ${what}`, value: view.y.format(y),
    })));
  }

  // The value of each line at an index, or at its nearest point if that is hardly farther; the greatest first.
  function rowsAt(chart, drawn, index) {
    const { view, xs, ys, xKind } = drawn;
    if (view.free) return rowsOf(view, xs[index]);
    const at = (i) => chart.valToPos(xKind.forward(xs[i]), "x");
    const near = (line) => {
      if (line[index] !== undefined) return line[index];
      for (let step = 1; step < xs.length; step += 1) {
        const found = [index - step, index + step].find((i) => i >= 0 && i < xs.length && line[i] !== undefined);
        if (found !== undefined) return Math.abs(at(found) - at(index)) < 10 ? line[found] : null;
      }
      return null;
    };
    return view.lines.map((line, i) => ({ line, y: near(ys[i]) })).filter(({ y }) => there(y)).sort((a, b) => b.y - a.y)
      .map(({ line, y }) => ({ drive: line.drive, name: line.name, value: view.y.format(y) + spanned(view, line, y) }));
  }

  // What the seeds span at a value, in words; nothing where they agree.
  function spanned(view, line, y) {
    const [low, high] = (line.points.find((point) => point[1] === y)?.[2] ?? []).map(view.y.format);
    return low === undefined || low === high ? "" : ` (${low} to ${high})`;
  }

  // Of a chart whose lines go their own way: the point nearest to the pointer.
  function nearest(chart, drawn, left, top) {
    const { view, xKind, yKind } = drawn;
    let best = null;
    for (const line of view.lines) {
      for (const [x, y, what] of line.points) {
        if (!there(y) || !drawn.within(x)) continue;
        const away = Math.hypot(chart.valToPos(xKind.forward(x), "x") - left, chart.valToPos(yKind.forward(y), "y") - top);
        if (!best || away < best.away) best = { away, x, y, what, line };
      }
    }
    return best;
  }

  // The readout under the pointer; returns what is said at an index, for the keys.
  function readout(host, chart, drawn) {
    const { view, xs, xKind, yKind } = drawn;
    const box = tip.make(host);
    const head = (x) => `${view.x.name} ${view.x.format(x)}`;
    const edge = () => chart.over.getBoundingClientRect().left - host.getBoundingClientRect().left;
    const targets = (left, top) => view.published.filter((one) => {
      const x = one.x === null ? left : chart.valToPos(xKind.forward(Math.min(one.x, drawn.full[1])), "x");
      const near = one.y === null || top === null || Math.abs(chart.valToPos(yKind.forward(one.y), "y") - top) < 24;
      return Math.abs(x - left) < 12 && near;
    }).map(({ drive, name, one, ends }) => ({
      drive, name, value: published.words(ends, published.writing(one, view)), soft: true,
    }));
    function follow() {
      const { idx, left, top } = chart.cursor;
      if (!there(idx) || left < 0) { box.hide(); return; }
      if (view.free) {
        const point = nearest(chart, drawn, left, top);
        if (!point) { box.hide(); return; }
        const row = { drive: point.line.drive, name: `${point.line.name}, ${point.what}`, value: view.y.format(point.y) };
        box.show(head(point.x), [row, ...targets(left, top)], edge() + left);
        return;
      }
      const x = chart.valToPos(xKind.forward(xs[idx]), "x");
      box.show(head(xs[idx]), [...rowsAt(chart, drawn, idx), ...targets(x, top)], edge() + x);
    }
    (chart.hooks.setCursor ??= []).push(follow);
    return (index) => `${head(xs[index])}: ${rowsAt(chart, drawn, index).map((row) => `${row.name} ${row.value}`).join(", ")}`;
  }

  function keys(host, chart, drawn, read, live, zoomed) {
    const { xs, xKind, yKind, within } = drawn;
    // Only where some line has a value: at other places there is nothing to read.
    const inside = xs.map((_, index) => index).filter((index) => within(xs[index]) && drawn.ys.some((line) => there(line[index])));
    // Half of what is shown, around the reader's place, or twice as much.
    function scaled(factor) {
      const [from, to] = [drawn.left, drawn.right].map(xKind.forward);
      const half = (to - from) / 2 * factor;
      const middle = there(chart.cursor.idx) ? xKind.forward(xs[chart.cursor.idx]) : (from + to) / 2;
      const [least, most] = drawn.full.map(xKind.forward);
      const ends = [Math.max(least, middle - half), Math.min(most, middle + half)];
      zoomed(ends[0] <= least && ends[1] >= most ? null : ends.map(xKind.back));
    }
    host.onkeydown = (event) => {
      const changes = { "+": () => scaled(0.5), "=": () => scaled(0.5), "-": () => scaled(2), 0: () => zoomed(null) };
      if (changes[event.key]) { event.preventDefault(); changes[event.key](); return; }
      const at = inside.indexOf(chart.cursor.idx ?? -1);
      const to = { ArrowRight: at + 1, ArrowLeft: at - 1, Home: 0, End: inside.length - 1, Escape: null }[event.key];
      if (to === undefined || inside.length === 0) return;
      event.preventDefault();
      if (to === null) { chart.setCursor({ left: -10, top: -10 }); return; }
      const index = inside[Math.max(0, Math.min(inside.length - 1, to))];
      const y = drawn.ys.map((line) => line[index]).find(there);
      const top = there(y) ? chart.valToPos(yKind.forward(y), "y") : 10;
      chart.setCursor({ left: chart.valToPos(xKind.forward(xs[index]), "x"), top });
      live.textContent = read(index);
    };
    host.onblur = () => chart.setCursor({ left: -10, top: -10 });
  }

  function padded(min, max) {
    const room = (max - min || 1) * 0.015;
    return [min - room, max + room];
  }

  // What uPlot does not draw: markers, free lines, published figures, names at the lines' ends, the unit above the axis.
  function paint(u, drawn, wide) {
    const { view, xKind, yKind } = drawn;
    const context = u.ctx;
    const ratio = uPlot.pxRatio;
    const px = (x) => u.valToPos(xKind.forward(x), "x", true);
    const py = (y) => u.valToPos(yKind.forward(y), "y", true);
    context.save();
    context.setLineDash([]);
    context.font = LABEL.replace("12.5", String(12.5 * ratio));
    context.textBaseline = "middle";
    context.textAlign = "left";
    context.fillStyle = theme.colour("--ink");
    context.fillText(view.y.label, 4 * ratio, 10 * ratio);
    const ends = [];
    view.lines.forEach((line) => {
      context.fillStyle = context.strokeStyle = marks.colour(line.drive);
      if (!view.free) band(context, u, line, px, py);
      path(context, u, line, px, py, ratio, view.free ? () => false : isWide);
      context.lineWidth = 1.75 * ratio;
      let last = null;
      for (const [x, y] of line.points) {
        if (!there(y) || !drawn.within(x)) continue;
        const at = { x: px(x), y: py(y) };
        if (!last || view.free || at.x >= last.x) last = at;
        if (!view.dense) marks.marker(context, line.drive, at.x, at.y, 3.6 * ratio);
      }
      if (last) ends.push({ ...last, line });
    });
    told(context, u, drawn, px, py, ratio);
    if (wide) labels(context, u, ends, ratio);
    context.restore();
  }

  // Seeds that differ by more than half: what is drawn there is chance as much as the drive.
  const WIDE = 1.5;
  const isWide = ([, , band]) => Boolean(band) && band[1] > WIDE * band[0];

  // Calls `draw` with what is drawn kept inside the axes.
  function clipped(context, u, draw) {
    context.save();
    context.beginPath();
    context.rect(u.bbox.left, u.bbox.top, u.bbox.width, u.bbox.height);
    context.clip();
    draw();
    context.restore();
  }

  // What the seeds span, behind the line.
  function band(context, u, line, px, py) {
    clipped(context, u, () => {
      context.globalAlpha = 0.16;
      line.points.forEach(([x, y, ends], at) => {
        const [nextX, nextY, nextEnds] = line.points[at + 1] ?? [];
        if (!ends || !nextEnds || !there(y) || !there(nextY) || ends[0] <= 0 || nextEnds[0] <= 0) return;
        context.beginPath();
        context.moveTo(px(x), py(ends[0]));
        context.lineTo(px(nextX), py(nextEnds[0]));
        context.lineTo(px(nextX), py(nextEnds[1]));
        context.lineTo(px(x), py(ends[1]));
        context.fill();
      });
    });
  }

  // A line from point to point as they come, interrupted where one has no value; faint between points of which one is.
  function path(context, u, line, px, py, ratio, isFaint) {
    clipped(context, u, () => {
      context.lineWidth = 2.25 * ratio;
      context.lineJoin = "round";
      context.setLineDash(marks.dash(line.drive).map((length) => length * ratio));
      let last = null;
      let faint = null;
      for (const point of line.points) {
        const [x, y] = point;
        if (last && there(y)) {
          const now = isFaint(last) || isFaint(point);
          if (now !== faint) {
            if (faint !== null) context.stroke();
            context.globalAlpha = now ? 0.3 : 1;
            context.beginPath();
            context.moveTo(px(last[0]), py(last[1]));
            faint = now;
          }
          context.lineTo(px(x), py(y));
        } else if (faint !== null) {
          context.stroke();
          faint = null;
        }
        last = there(y) ? point : null;
      }
      if (faint !== null) context.stroke();
    });
  }

  // Published figures; one beyond the axis stands at its end, with an arrow.
  function told(context, u, drawn, px, py, ratio) {
    for (const one of drawn.view.published) {
      context.fillStyle = context.strokeStyle = marks.colour(one.drive);
      context.lineWidth = 1.75 * ratio;
      context.globalAlpha = one.like ? 1 : 0.6;
      if (one.lies) clipped(context, u, () => across(context, u, one, one.lies === "across" ? py : px, ratio));
      else point(context, drawn, one, px, py, ratio);
      context.globalAlpha = 1;
    }
  }

  // A figure at one point of the axis: a target, of a range or bound with its ends.
  function point(context, drawn, one, px, py, ratio) {
    const x = Math.min(one.x, drawn.full[1]);
    if (!drawn.within(x)) return;
    const [left, top] = [px(x), py(one.y)];
    marks.target(context, left, top, 6.5 * ratio);
    const [low, high] = one.ends.map((end, at) => (end === null ? top + (at === 0 ? 16 : -16) * ratio : py(end)));
    if (low !== high) stroke(context, [[left, low], [left, high]]);
    one.ends.forEach((end, at) => {
      // An end that is known is a bar, one that is not an arrow.
      const [y, away] = at === 0 ? [low, -1] : [high, 1];
      const wing = 4 * ratio;
      if (end === null) stroke(context, [[left - wing, y + away * wing], [left, y], [left + wing, y + away * wing]]);
      else if (low !== high) stroke(context, [[left - wing, y], [left + wing, y]]);
    });
    if (one.x > drawn.full[1]) {
      const tip = (away, along) => [left + along * ratio, top + away * ratio];
      stroke(context, [tip(-4, 9), tip(0, 14), tip(4, 9)]);
    }
  }

  // A figure of a whole sweep: a line across the chart or down it, of a range a band.
  function across(context, u, one, at, ratio) {
    const { left, top, width: wide, height: high } = u.bbox;
    const flat = one.lies === "across";
    const ends = one.ends.filter((end) => end !== null).map(at);
    const [from, to] = [Math.min(...ends), Math.max(...ends)];
    if (from !== to) {
      const alpha = context.globalAlpha;
      context.globalAlpha = 0.14;
      if (flat) context.fillRect(left, from, wide, to - from); else context.fillRect(from, top, to - from, high);
      context.globalAlpha = alpha;
    }
    context.lineWidth = 1.25 * ratio;
    context.setLineDash([2 * ratio, 5 * ratio]);
    for (const end of ends) stroke(context, flat ? [[left, end], [left + wide, end]] : [[end, top], [end, top + high]]);
    context.setLineDash([]);
  }

  function stroke(context, corners) {
    context.beginPath();
    corners.forEach(([x, y], at) => (at === 0 ? context.moveTo(x, y) : context.lineTo(x, y)));
    context.stroke();
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
