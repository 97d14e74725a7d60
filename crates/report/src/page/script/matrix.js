"use strict";
// All points of a chapter over two settings: a table for each drive, stronger in colour where a figure is greater. One scale for all drives,
// by the figure's logarithm.
const matrix = (() => {
  const { review, metrics, shown } = data;
  const { element } = controls;
  const choice = (name, label, ...options) => ({ name, label, options });
  const NAMES = { block_bytes: ["Block size", format.bytes], profile: ["Reads/writes", String] };

  // The figure of reads and writes together: rates add up, latencies weigh by I/Os.
  function both(point, drive, name) {
    const [read, write] = ["read", "write"].map((one) => data.value(point, drive, one, name));
    if (read === null || write === null) return read ?? write;
    if (name !== "mean") return read + write;
    const [a, b] = ["read", "write"].map((one) => data.figures(point, drive, one).ios);
    return (read * a + write * b) / (a + b);
  }

  const settings = (points, name) => [...new Set(points.map((point) => point.settings[name]))];

  function of(spec) {
    const value = (point, drive, state) => (state.direction === "total"
      ? both(point, drive, state.metric) : data.value(point, drive, state.direction, state.metric));
    return {
      choices: [
        choice("metric", "Show", ...spec.metrics.map((name) => [name, metrics[name].label])),
        choice("direction", "Count", ["total", "All"], ["read", "Reads"], ["write", "Writes"]),
      ],
      state: { metric: spec.metrics[0], direction: "total" },
      bars(state, host) {
        const points = data.points(spec.chapter);
        const [down, across] = [settings(points, spec.rows).sort((a, b) => a - b), settings(points, spec.columns)];
        const write = metrics[state.metric].format;
        const all = shown().flatMap(({ at }) => points.map((point) => value(point, at, state))).filter((one) => one > 0).map(Math.log);
        const [least, most] = [Math.min(...all), Math.max(...all)];
        host.replaceChildren();
        host.classList.add("heats");
        host.append(element("p", { class: "note" }, "The stronger the colour, the more, by the logarithm; one scale for all drives."));
        for (const { drive, at } of shown()) {
          const cell = (row, column) => {
            const point = points.find((one) => one.settings[spec.rows] === row && one.settings[spec.columns] === column);
            const found = point ? value(point, at, state) : null;
            const made = element("td", {}, found > 0 ? write(found) : "–");
            if (found > 0) made.style.setProperty("--heat", `${Math.round(4 + 46 * ((Math.log(found) - least) / (most - least || 1)))}%`);
            return made;
          };
          const head = element("tr", {}, element("th", { scope: "col" }, NAMES[spec.rows][0]),
            ...across.map((one) => element("th", { scope: "col" }, NAMES[spec.columns][1](one))));
          const body = down.map((row) => element("tr", {}, element("th", { scope: "row" }, NAMES[spec.rows][1](row)),
            ...across.map((column) => cell(row, column))));
          host.append(element("div", { class: "heat" }, element("table", {}, element("caption", {}, marks.swatch(at), drive.label),
            element("thead", {}, head), element("tbody", {}, ...body))));
        }
      },
      view(state) {
        const points = data.points(spec.chapter);
        const ways = ["rows", "columns"].map((one) => NAMES[spec[one]]);
        return {
          table: {
            caption: spec.caption,
            head: ["Drive", ...ways.map(([name]) => name), ...spec.metrics.map((name) => metrics[name].label)],
            formats: [String, ...ways.map(([, write]) => write), ...spec.metrics.map((name) => metrics[name].format)],
            rows: shown().flatMap(({ drive, at }) => points.map((point) => [
              drive.label, point.settings[spec.rows], point.settings[spec.columns],
              ...spec.metrics.map((metric) => value(point, at, { ...state, metric })),
            ])),
          },
        };
      },
    };
  }

  return { of };
})();
