"use strict";
// What each chart shows: its choices, and from a choice its lines and its table.
const charts = (() => {
  const { review, metrics, shown } = data;
  const THROUGHPUT = ["iops", "mb_s"];
  const LATENCY = ["mean", "p50", "p99", "p99_99", "p99_999"];

  const choice = (name, label, ...options) => ({ name, label, options });
  const show = (...names) => choice("metric", "Show", ...names.map((name) => [name, metrics[name].label]));
  const direction = choice("direction", "Direction", ["read", "Read"], ["write", "Write"]);
  const scale = choice("scale", "Scale", ["linear", "Linear"], ["log10", "Logarithmic"]);

  // Lines by drive over one setting of the points, with what the seeds span.
  function lines(points, setting, value, band = () => null) {
    return shown().map(({ drive, at }) => ({
      drive: at,
      name: drive.label,
      points: points.map((point) => [point.settings[setting], value(point, at), band(point, at)]),
    }));
  }

  const FEW = "Too few samples for this percentile";
  const FULL = review.suite === "full" ? "." : "; run --suite full.";

  // Why a drive has no value at a metric: the ten-sample rule.
  function absent(view, metric) {
    if (!metric.startsWith("p")) return "";
    const without = view.lines.filter((line) => line.points.length && line.points.every(([, y]) => y === null));
    const some = view.lines.some((line) => line.points.some(([, y]) => y === null));
    if (without.length) return `${FEW}: ${without.map((line) => line.name).join(", ")}${FULL}`;
    return some ? `${FEW} at some points${FULL}` : "";
  }

  // Rows: one a point; columns: each drive's metrics.
  function figuresTable(caption, axis, points, setting, value) {
    const names = [...THROUGHPUT, ...LATENCY];
    return {
      caption,
      head: [axis.label, ...shown().flatMap(({ drive }) => names.map((name) => `${drive.label}: ${metrics[name].label}`))],
      formats: [axis.format, ...shown().flatMap(() => names.map((name) => metrics[name].format))],
      rows: points.map((point) => [
        point.settings[setting],
        ...shown().flatMap(({ at }) => names.map((name) => value(point, at, name))),
      ]),
    };
  }

  const blockSize = {
    choices: [
      choice("pattern", "Access", ["random", "Random"], ["sequential", "Sequential"]),
      direction,
      choice("alignment", "Offsets", ["block", "Block-aligned"], ["sector", "512 B-aligned"]),
      show("mb_s", "iops", "mean", "p50", "p99"),
      scale,
    ],
    state: { pattern: "random", direction: "read", alignment: "block", metric: "mb_s", scale: "log10" },
    view(state) {
      const points = data.points("block-size", {
        pattern: state.pattern, direction: state.direction, alignment: state.alignment,
      });
      const metric = metrics[state.metric];
      const x = { kind: "log2", label: "Block size", name: "Block size", format: format.bytes };
      const value = (point, drive, name) => data.value(point, drive, state.direction, name);
      return {
        x,
        y: { kind: state.scale, label: metric.axis, format: metric.format },
        lines: lines(points, "block_bytes", (point, drive) => value(point, drive, state.metric),
          (point, drive) => data.band(point, drive, state.direction, state.metric)),
        published: published.points("block-size", { pattern: state.pattern, alignment: state.alignment },
          state.direction, state.metric, "block_bytes"),
        table: figuresTable(`${state.pattern} ${state.direction}s at queue depth 1`, x, points, "block_bytes", value),
      };
    },
  };

  function byDepth(id, first) {
    return {
      choices: [direction, show("iops", "mb_s", ...LATENCY), scale],
      state: { direction: "read", metric: first, scale: "linear" },
      view(state) {
        const points = data.points(id, { direction: state.direction });
        const metric = metrics[state.metric];
        const x = { kind: "depth", label: "Queue depth", name: "Queue depth", format: format.plain };
        const value = (point, drive, name) => data.value(point, drive, state.direction, name);
        const chart = lines(points, "queue_depth", (point, drive) => value(point, drive, state.metric),
          (point, drive) => data.band(point, drive, state.direction, state.metric));
        return {
          x,
          y: { kind: state.scale, label: metric.axis, format: metric.format },
          lines: chart,
          published: published.points(id, {}, state.direction, state.metric, "queue_depth"),
          note: absent({ lines: chart }, state.metric),
          empty: `${FEW}${FULL}`,
          table: figuresTable(`${state.direction}s by queue depth`, x, points, "queue_depth", value),
        };
      },
    };
  }

  // Workloads whose latency distribution can be looked at: name, point and direction.
  const WORKLOADS = [
    ...data.points("queue-depth", {}).filter((point) => [1, 16, 64].includes(point.settings.queue_depth))
      .map((point) => [`4 KiB random ${point.settings.direction}, QD${point.settings.queue_depth}`,
        point, point.settings.direction]),
    ...data.points("sequential", {}).filter((point) => [1, 8].includes(point.settings.queue_depth))
      .map((point) => [`128 KiB sequential ${point.settings.direction}, QD${point.settings.queue_depth}`,
        point, point.settings.direction]),
    ...data.points("mix", {}).filter((point) => [70, 30].includes(point.settings.read_percent))
      .flatMap((point) => ["read", "write"].map((way) =>
        [`${way === "read" ? "Reads" : "Writes"} of a ${point.settings.read_percent}/${100 - point.settings.read_percent} mix`, point, way])),
    ...data.points("yours", {}).flatMap((point) => ["read", "write"]
      .filter((way) => point.results.some((result) => result?.[way]))
      .map((way) => [`${point.name.replace(/^yours\//, "")}, ${way}s`, point, way])),
  ];
  // By name, so that an address means the same in another review.
  const keyOf = ([, point, way]) => `${point.name}:${way}`;
  const workload = choice("workload", "Workload", ...WORKLOADS.map((one) => [keyOf(one), one[0]]));
  const chosen = (state) => WORKLOADS.find((one) => keyOf(one) === state.workload);
  const first = WORKLOADS.length ? keyOf(WORKLOADS[0]) : "";

  const distribution = {
    choices: [workload, scale],
    state: { workload: first, scale: "log10" },
    view(state) {
      const [name, point, way] = chosen(state);
      const x = { kind: "nines", label: "Percentile of I/Os", name: "Percentile", format: format.percentile, range: [0, 99.999] };
      const at = (drive) => data.figures(point, drive, way)?.latency.at ?? [];
      return {
        x,
        y: { kind: state.scale, label: "Latency", format: format.microseconds },
        dense: true,
        lines: shown().map(({ drive, at: index }) => ({
          drive: index,
          name: drive.label,
          points: at(index).map((us, step) => [review.percentiles[step], us,
            data.figures(point, index, way).across_seeds?.at?.[step] ?? null]),
        })),
        note: "Each line ends where fewer than ten I/Os were slower.",
        table: {
          caption: name,
          head: ["Percentile", ...shown().map(({ drive }) => drive.label)],
          formats: [format.percentile, ...shown().map(() => format.microseconds)],
          rows: review.percentiles.map((p, step) => [p, ...shown().map((one) => at(one.at)[step] ?? null)]),
        },
      };
    },
  };

  const parts = {
    choices: [workload, choice("length", "Length of a bar", ["share", "Shares"], ["time", "Time"])],
    state: { workload: first, length: "share" },
    bars(state, host) {
      const [, point, way] = chosen(state);
      anatomy.draw(host, point, way, state.length === "share");
    },
    view(state) {
      const [name, point, way] = chosen(state);
      return { table: { caption: name, ...anatomy.rows(point, way) } };
    },
  };

  const mix = {
    choices: [
      choice("direction", "Count", ["total", "All"], ["read", "Reads"], ["write", "Writes"]),
      show("iops", "mb_s", ...LATENCY), scale,
    ],
    state: { direction: "total", metric: "iops", scale: "linear" },
    view(state) {
      const points = data.points("mix");
      const value = (point, drive, name) => {
        if (state.direction !== "total") return data.value(point, drive, state.direction, name);
        const [read, write] = ["read", "write"].map((way) => data.value(point, drive, way, name));
        if (read === null || write === null) return read ?? write;
        if (THROUGHPUT.includes(name)) return read + write;
        if (name !== "mean") return null;
        const [a, b] = ["read", "write"].map((way) => data.figures(point, drive, way).ios);
        return (read * a + write * b) / (a + b);
      };
      const metric = metrics[state.metric];
      const x = {
        kind: "linear", label: "Share of reads", name: "Reads", format: (v) => format.percent(v), range: [0, 100],
      };
      const percentiles = state.direction === "total" && state.metric.startsWith("p");
      return {
        x,
        y: { kind: state.scale, label: metric.axis, format: metric.format },
        lines: lines(points, "read_percent", (point, drive) => value(point, drive, state.metric),
          (point, drive) => (state.direction === "total" ? null : data.band(point, drive, state.direction, state.metric))),
        published: published.points("mix", {}, state.direction, state.metric, "read_percent"),
        note: percentiles ? "Percentiles of reads and writes do not add up: choose one of the two." : "",
        table: figuresTable("Mixes of 4 KiB random reads and writes", x, points, "read_percent", value),
      };
    },
  };

  const paced = {
    choices: [
      choice("direction", "Workload", ["read", "Reads"], ["mix", "70/30 mix, reads"], ["write", "Writes"]),
      show(...LATENCY),
      choice("against", "Against", ["offered_iops", "Rate"], ["share_of_saturation", "Share of saturation"]),
      scale,
    ],
    state: { direction: "read", metric: "p99", against: "offered_iops", scale: "log10" },
    view(state) {
      const points = data.points("paced", { direction: state.direction })
        .filter((point) => point.settings[state.against] !== undefined);
      const way = state.direction === "write" ? "write" : "read";
      const metric = metrics[state.metric];
      const rate = state.against === "offered_iops";
      const x = rate
        ? { kind: "log10", label: "I/Os that arrive a second", name: "Arrivals a second:", format: format.count }
        : {
          kind: "linear", label: "Share of the drive's own saturation", name: "Load", range: [0, 1],
          format: (v) => format.percent(v * 100),
        };
      const chart = shown().map(({ drive, at }) => ({
        drive: at,
        name: drive.label,
        points: points.filter((point) => point.results[at])
          .map((point) => [point.settings[state.against], data.value(point, at, way, state.metric), data.band(point, at, way, state.metric)])
          .sort(([a], [b]) => a - b),
      }));
      const rows = points.flatMap((point) => shown().map(({ drive, at }) => [point, drive, at]))
        .filter(([point, , at]) => point.results[at])
        .map(([point, drive, at]) => [
          drive.label, point.settings.offered_iops, point.settings.share_of_saturation ?? null,
          ...LATENCY.map((name) => data.value(point, at, way, name)),
        ]);
      return {
        x,
        y: { kind: state.scale, label: metric.axis, format: metric.format },
        lines: chart,
        note: absent({ lines: chart }, state.metric),
        table: {
          caption: `Latency of ${way}s that arrive at a fixed rate`,
          head: ["Drive", "Offered IOPS", "Load", ...LATENCY.map((name) => metrics[name].label)],
          formats: [String, format.count, (v) => format.percent(v * 100), ...LATENCY.map((n) => metrics[n].format)],
          rows,
        },
      };
    },
  };

  // What is to be known of the runs, once for all drives.
  function notes(all) {
    const steady = all.filter(({ series }) => series.steady_at_seconds !== null)
      .map(({ drive, series }) => `${drive.label} ${format.duration(series.steady_at_seconds)}`);
    const never = all.filter(({ series }) => series.steady_at_seconds === null).map(({ drive }) => drive.label);
    const between = (values, write) => [...new Set([Math.min(...values), Math.max(...values)].map(write))].join(" to ");
    const said = [];
    if (steady.length) said.push(`Steady by SNIA's rule after: ${steady.join(", ")}.`);
    if (never.length) said.push(`Not steady by that rule at the end: ${never.join(", ")}.`);
    const scaled = all.map(({ series }) => series.scale).filter((scale) => scale > 1);
    if (scaled.length) {
      said.push(`Scaled model: 1/${between(scaled, (scale) => format.plain(Math.round(scale)))} of the capacity; time scaled to match; `
        + "the steady rate may read up to 10\u202f% high.");
    }
    const writes = all.map(({ series }) => series.ios_an_interval);
    if (writes.length) {
      said.push(`Maxima cover ${between(writes, (count) => format.digits(count))} writes a point`
        + `${scaled.length ? "; a full-size drive would see longer ones" : ""}.`);
    }
    return said.join(" ");
  }

  const sustained = {
    choices: [
      choice("metric", "Show", ["iops", "IOPS"], ["mb_s", "MB/s"], ["mean_us", "Mean latency"], ["max_us", "Longest latency"]),
      choice("against", "Against", ["written", "Drive fills written"], ["time", "Time"]),
      scale,
    ],
    state: { metric: "iops", against: "written", scale: "linear" },
    view(state) {
      const point = data.points("sustained")[0];
      const seconds = (series, at) => (at + 0.5) * series.every_seconds;
      const written = (series, drive) => {
        let bytes = 0;
        return series.mb_s.map((rate) => {
          bytes += rate * 1e6 * series.every_seconds;
          return bytes / review.drives[drive].capacity_bytes;
        });
      };
      const time = state.against === "time";
      const quantity = {
        iops: ["I/Os a second", format.count], mb_s: ["Throughput", format.megabytes],
        mean_us: ["Mean latency", format.microseconds], max_us: ["Longest latency", format.microseconds],
      }[state.metric];
      const all = shown().map(({ drive, at }) => ({ drive, at, series: point.results[at]?.series }))
        .filter(({ series }) => series);
      const xOf = ({ series, at }) => {
        const fills = written(series, at);
        return series.iops.map((_, index) => +(time ? seconds(series, index) : fills[index]).toPrecision(5));
      };
      const x = time
        ? { kind: "time", label: "Time", name: "After", format: format.duration }
        : { kind: "linear", label: "Written, in capacities of the drive", name: "Written:", format: (v) => `${format.digits(v)}×` };
      return {
        x,
        y: { kind: state.scale, label: quantity[0], format: quantity[1] },
        dense: true,
        lines: all.map((one) => {
          const xs = xOf(one);
          return { drive: one.at, name: one.drive.label, points: one.series[state.metric].map((y, i) => [xs[i], y]) };
        }),
        note: notes(all),
        table: {
          caption: "4 KiB random writes from fresh",
          head: ["Drive", "Seconds", "Written (capacities)", "IOPS", "MB/s", "Mean latency", "Longest latency"],
          formats: [String, format.plain, format.plain, format.count, format.megabytes, format.microseconds, format.microseconds],
          rows: all.flatMap(({ drive, at, series }) => {
            const fills = written(series, at);
            return series.iops.map((_, i) => [
              drive.label, seconds(series, i), fills[i], series.iops[i], series.mb_s[i], series.mean_us[i], series.max_us[i],
            ]);
          }),
        },
      };
    },
  };

  const COSTS = {
    watts: ["Watts", "Power", (v) => `${format.digits(v)}\u202fW`, (r) => r.watts],
    per_watt: ["IOPS per watt", "I/Os a second for each watt", format.count,
      (r) => (r.watts ? ((r.read?.iops ?? 0) + (r.write?.iops ?? 0)) / r.watts : null)],
    controller: ["Controller", "Controller busy", (v) => format.percent(v * 100), (r) => r.controller_busy],
    link: ["Link", "Link busy", (v) => format.percent(v * 100), (r) => r.link_busy],
    medium: ["Medium", "Dies busy", (v) => format.percent(v * 100), (r) => r.medium_busy],
    amplification: ["Write amplification", "Bytes written to the medium for each byte", format.plain,
      (r) => r.write_amplification],
    host: ["Host cores", "Cores of the host kept busy", format.plain, (r) => r.host_cores],
  };
  const costs = {
    choices: [direction, choice("metric", "Show", ...Object.entries(COSTS).map(([key, [name]]) => [key, name]))],
    state: { direction: "read", metric: "watts" },
    view(state) {
      const points = data.points("queue-depth", { direction: state.direction });
      const [, label, write, of] = COSTS[state.metric];
      const cost = (point, drive, get) => (point.results[drive] ? get(point.results[drive]) : null);
      const x = { kind: "depth", label: "Queue depth", name: "Queue depth", format: format.plain };
      return {
        x,
        y: { kind: "linear", label, format: write },
        lines: lines(points, "queue_depth", (point, drive) => cost(point, drive, of)),
        empty: "The model of these drives does not say.",
        table: {
          caption: `4 KiB random ${state.direction}s`,
          head: ["Queue depth", ...shown().flatMap(({ drive: d }) => Object.values(COSTS).map(([name]) => `${d.label}: ${name}`))],
          formats: [format.plain, ...shown().flatMap(() => Object.values(COSTS).map(([, , f]) => f))],
          rows: points.map((point) => [
            point.settings.queue_depth,
            ...shown().flatMap(({ at }) => Object.values(COSTS).map(([, , , get]) => cost(point, at, get))),
          ]),
        },
      };
    },
  };

  return {
    lead, "block-size": blockSize, "queue-depth": byDepth("queue-depth", "iops"), distribution, anatomy: parts,
    "one-thread": byDepth("one-thread", "iops"), sequential: byDepth("sequential", "mb_s"),
    "sequential-filled": byDepth("sequential-filled", "mb_s"), mix, paced, sustained, costs,
  };
})();
