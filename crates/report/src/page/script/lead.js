"use strict";
// The first chart: what each drive does at the latency that a reader can accept.
const lead = (() => {
  const { element } = controls;
  const { review, shown } = data;

  // A load of a sweep in words, or what lies between two of them.
  function loadOf(sweep, ...loads) {
    const text = loads.map((load) => (sweep.along === "queue_depth" ? `QD${load}` : format.count(load))).join(" to ");
    return sweep.along === "queue_depth" ? text : `at ${text} arrivals per second`;
  }

  // For a drive: [99th percentile, IOPS, load as text, load] at each point, in ascending order of load.
  const SWEEPS = data.drawn.sweeps;
  function along(direction, at) {
    const sweep = SWEEPS.find((one) => one.direction === direction);
    return data.points(sweep.chapter, { direction }).filter((point) => point.results[at])
      .sort((a, b) => a.settings[sweep.along] - b.settings[sweep.along])
      .map((point) => {
        const { read, write } = point.results[at];
        const load = point.settings[sweep.along];
        return [(direction === "write" ? write : read)?.latency.p99_us ?? null, (read?.iops ?? 0) + (write?.iops ?? 0),
          loadOf(sweep, load), load];
      });
  }

  const known = (points) => points.filter(([p99, iops]) => p99 !== null && iops !== null);

  // A round number near the middle of what the drives need at some depth, so that the line tells them apart.
  function middle() {
    const all = review.drives.map((_, at) => known(along(SWEEPS[0].direction, at))).filter((points) => points.length)
      .map((points) => points[Math.floor(points.length / 2)][0]).sort((a, b) => a - b);
    if (all.length === 0) return 100;
    const wanted = all[Math.floor(all.length / 2)];
    const decade = 10 ** Math.floor(Math.log10(wanted));
    const away = (one) => Math.abs(Math.log(one / wanted));
    return [1, 1.5, 2, 3, 5, 7, 10].map((factor) => factor * decade).reduce((best, one) => (away(one) < away(best) ? one : best));
  }

  if (SWEEPS.length === 0) return null;
  const options = SWEEPS.map(({ direction, label }) => [direction, label]);
  const what = (state) => (state.direction === "write" ? "writes" : "reads");

  // The most that a drive does with its 99th percentile within the limit, on the line as it is drawn: at a measured point, or
  // where the line between two of them crosses the limit. Returns [IOPS, load as text], or null.
  function within(direction, points, accept) {
    const sweep = SWEEPS.find((one) => one.direction === direction);
    const all = known(points);
    const found = all.flatMap(([p99, iops, words, load], at) => {
      const here = p99 <= accept ? [[iops, words]] : [];
      const next = all[at + 1];
      if (!next || (p99 <= accept) === (next[0] <= accept)) return here;
      const share = Math.log(accept / p99) / Math.log(next[0] / p99);
      return [...here, [iops + share * (next[1] - iops), loadOf(sweep, load, next[3])]];
    });
    return found.reduce((best, one) => (best && best[0] >= one[0] ? best : one), null);
  }

  return {
    choices: [{ name: "direction", label: "4 KiB I/O", options }],
    state: { direction: SWEEPS[0].direction, accept: middle() },
    view(state) {
      const lines = shown().map(({ drive, at }) => ({ drive: at, name: drive.label, points: along(state.direction, at) }));
      const all = lines.flatMap((line) => known(line.points).map(([p99]) => p99));
      const range = [Math.min(...all, state.accept) * 0.85, Math.max(...all, state.accept) * 1.15];
      return {
        free: true,
        x: { kind: "log10", label: `99th percentile of latency of ${what(state)}`, name: "99th percentile", format: format.microseconds, range },
        y: { kind: "linear", label: "IOPS", format: format.count },
        lines,
        note: "Between two points, figures next to the chart are interpolated.",
        empty: "Too few samples for this percentile; run without --ios.",
        limit: {
          x: state.accept, min: +range[0].toPrecision(3), max: +range[1].toPrecision(3),
          label: `Acceptable 99th percentile of ${what(state)}`, format: format.microseconds,
        },
        table: {
          caption: `4 KiB random I/O: 99th percentile of ${what(state)} and IOPS`,
          head: ["Drive", "Load", "99th percentile", "IOPS"],
          formats: [String, String, format.microseconds, format.count],
          rows: lines.flatMap((line) => line.points.map(([p99, iops, words]) => [line.name, words, p99, iops])),
        },
      };
    },
    // What each drive does at the line.
    aside(state) {
      const body = element("tbody");
      for (const { drive, at } of shown()) {
        const points = known(along(state.direction, at));
        const best = within(state.direction, points, state.accept);
        const least = points.length ? Math.min(...points.map(([p99]) => p99)) : null;
        const text = best ? format.count(best[0]) : "–";
        const soft = best ? best[1] : least === null ? "too few samples" : `needs ${format.microseconds(least)}`;
        body.append(element("tr", {}, element("th", { scope: "row" }, marks.swatch(at), drive.label),
          element("td", {}, element("b", {}, text), element("span", { class: "soft" }, soft))));
      }
      return element("table", {}, element("caption", {},
        `IOPS with 99${"\u202f"}% of ${what(state)} within ${format.microseconds(state.accept)}`), body);
    },
  };
})();
