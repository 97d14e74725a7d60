"use strict";
// What each kind of chart shows: its choices, and from a choice its lines and its table. Which charts there are, and of
// what, the chapters of the review say.
const charts = (() => {
  const { review, metrics, shown } = data;
  const THROUGHPUT = ["iops", "mb_s"];
  const LATENCY = ["mean", "p50", "p99", "p99_99", "p99_999"];

  const choice = (name, label, ...options) => ({ name, label, options });
  const show = (...names) => choice("metric", "Show", ...names.map((name) => [name, metrics[name].label]));
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
  // The full suite runs longer; the reader's own jobs run as long as they say.
  const own = review.chapters.every((one) => one.id === "yours");
  const FULL = review.suite === "full" || own ? "." : "; run --suite full.";

  // Why a drive has no value at a percentile: the ten-sample rule. `lines` are { name, values }, with null for too few.
  function absent(lines) {
    const without = lines.filter(({ values }) => values.length && values.every((y) => y === null));
    const some = lines.some(({ values }) => values.includes(null));
    if (without.length) return `${FEW}: ${without.map(({ name }) => name).join(", ")}${FULL}`;
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

  const FORMATS = {
    bytes: format.bytes, plain: format.plain, count: format.count,
    percent: (v) => format.percent(v), share: (v) => format.percent(v * 100),
  };
  const axisOf = (axis) => ({ ...axis, format: FORMATS[axis.format] });

  // `{direction}s` with what is chosen.
  const filled = (text, chosen) => text.replace(/\{(\w+)\}/g, (_, name) => chosen[name]);

  // The figure of one direction, or of both together: of percentiles there is none.
  function figureOf(point, drive, way, name) {
    if (way !== "total") return data.value(point, drive, way, name);
    const [read, write] = ["read", "write"].map((one) => data.value(point, drive, one, name));
    if (read === null || write === null) return read ?? write;
    if (THROUGHPUT.includes(name)) return read + write;
    if (name !== "mean") return null;
    const [a, b] = ["read", "write"].map((one) => data.figures(point, drive, one).ios);
    return (read * a + write * b) / (a + b);
  }

  // Rows: one a point and drive that has it.
  function ownTable(caption, axes, points, names, value) {
    return {
      caption,
      head: ["Drive", ...axes.map((axis) => axis.column), ...names.map((name) => metrics[name].label)],
      formats: [String, ...axes.map((axis) => axis.format), ...names.map((name) => metrics[name].format)],
      rows: points.flatMap((point) => shown().filter(({ at }) => point.results[at]).map(({ drive, at }) => [
        drive.label, ...axes.map((axis) => point.settings[axis.setting] ?? null), ...names.map((name) => value(point, at, name)),
      ])),
    };
  }

  // A line for each drive over a setting of its chapter's points.
  function overSetting(spec) {
    const axes = spec.axes.map(axisOf);
    const against = choice("against", "Against", ...axes.map((axis) => [axis.setting, axis.choice]));
    const selecting = spec.choices.filter((one) => one.selects).map((one) => one.name);
    return {
      choices: [...spec.choices, show(...spec.metrics), ...(axes.length > 1 ? [against] : []), scale],
      state: {
        ...Object.fromEntries(spec.choices.map((one) => [one.name, one.options[0][0]])),
        metric: spec.metric, ...(axes.length > 1 ? { against: axes[0].setting } : {}), scale: spec.scale,
      },
      published: spec.chapter,
      view(state) {
        const x = axes.find((axis) => axis.setting === state.against) ?? axes[0];
        const wanted = Object.fromEntries(selecting.map((name) => [name, state[name]]));
        const points = data.points(spec.chapter, wanted).filter((point) => point.settings[x.setting] !== undefined);
        // Of a mix reads are looked at, unless the reader chooses whose figures.
        const way = state.direction === "mix" ? "read" : state.direction;
        const metric = metrics[state.metric];
        const value = (point, drive, name) => figureOf(point, drive, way, name);
        const one = (point, drive) => value(point, drive, state.metric);
        const band = (point, drive) => (way === "total" ? null : data.band(point, drive, way, state.metric));
        const chart = spec.own_points
          ? shown().map(({ drive, at }) => ({
            drive: at,
            name: drive.label,
            points: points.filter((point) => point.results[at])
              .map((point) => [point.settings[x.setting], one(point, at), band(point, at)]).sort(([a], [b]) => a - b),
          }))
          : lines(points, x.setting, one, band);
        const { direction: _, ...others } = wanted;
        const percentile = state.metric.startsWith("p");
        const caption = filled(spec.caption, { ...state, way });
        const both = way === "total" && percentile;
        const few = () => absent(shown().map(({ drive, at }) => ({
          name: drive.label,
          values: points.filter((point) => data.figures(point, at, way)).map((point) => one(point, at)),
        })));
        return {
          x,
          y: { kind: state.scale, label: metric.axis, format: metric.format },
          lines: chart,
          published: published.points(spec.chapter, others, way, state.metric, x.setting),
          note: both ? "Percentiles of reads and writes do not add up: choose one of the two." : percentile ? few() : "",
          ...(percentile && !both ? { empty: `${FEW}${FULL}` } : {}),
          table: spec.own_points
            ? ownTable(caption, axes, points, LATENCY, value) : figuresTable(caption, x, points, x.setting, value),
        };
      },
    };
  }

  // Workloads whose latency distribution can be looked at: name, point and direction.
  const everywhere = new Map(review.chapters.flatMap((one) => one.points).map((point) => [point.name, point]));
  const WORKLOADS = data.drawn.spreads.map(({ name, point, way }) => [name, everywhere.get(point), way]);
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
        + "the steady rate can be up to 10\u202f% too high.");
    }
    const writes = all.map(({ series }) => series.ios_an_interval);
    if (writes.length) {
      said.push(`Maxima cover ${between(writes, (count) => format.digits(count))} writes a point`
        + `${scaled.length ? "; a full-size drive would see longer ones" : ""}.`);
    }
    return said.join(" ");
  }

  const overTime = (spec) => ({
    choices: [
      choice("metric", "Show", ["iops", "IOPS"], ["mb_s", "MB/s"], ["mean_us", "Mean latency"], ["max_us", "Longest latency"]),
      choice("against", "Against", ["written", "Drive fills written"], ["time", "Time"]),
      scale,
    ],
    state: { metric: "iops", against: "written", scale: "linear" },
    view(state) {
      const point = data.points(spec.chapter)[0];
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
        iops: ["IOPS", format.count], mb_s: ["Throughput", format.megabytes],
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
          caption: spec.caption,
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
  });

  const COSTS = {
    watts: ["Watts", "Power", (v) => `${format.digits(v)}\u202fW`, (r) => r.watts],
    per_watt: ["IOPS per watt", "IOPS per watt", format.count,
      (r) => (r.watts ? ((r.read?.iops ?? 0) + (r.write?.iops ?? 0)) / r.watts : null)],
    controller: ["Controller", "Controller busy", (v) => format.percent(v * 100), (r) => r.controller_busy],
    link: ["Link", "Link busy", (v) => format.percent(v * 100), (r) => r.link_busy],
    medium: ["Medium", "Dies busy", (v) => format.percent(v * 100), (r) => r.medium_busy],
    amplification: ["Write amplification", "Bytes written to the medium for each byte", format.plain,
      (r) => r.write_amplification],
    host: ["Host cores", "Cores of the host kept busy", format.plain, (r) => r.host_cores],
  };
  const costs = (spec) => ({
    choices: [...spec.choices, choice("metric", "Show", ...Object.entries(COSTS).map(([key, [name]]) => [key, name]))],
    state: { ...Object.fromEntries(spec.choices.map((one) => [one.name, one.options[0][0]])), metric: "watts" },
    view(state) {
      const points = data.points(spec.chapter, Object.fromEntries(spec.choices.map(({ name }) => [name, state[name]])));
      const [, label, write, of] = COSTS[state.metric];
      const cost = (point, drive, get) => (point.results[drive] ? get(point.results[drive]) : null);
      const x = { kind: "depth", label: "Queue depth", name: "Queue depth", format: format.plain };
      return {
        x,
        y: { kind: "linear", label, format: write },
        lines: lines(points, "queue_depth", (point, drive) => cost(point, drive, of)),
        empty: "The model of these drives does not say.",
        table: {
          caption: filled(spec.caption, state),
          head: ["Queue depth", ...shown().flatMap(({ drive: d }) => Object.values(COSTS).map(([name]) => `${d.label}: ${name}`))],
          formats: [format.plain, ...shown().flatMap(() => Object.values(COSTS).map(([, , f]) => f))],
          rows: points.map((point) => [
            point.settings.queue_depth,
            ...shown().flatMap(({ at }) => Object.values(COSTS).map(([, , , get]) => cost(point, at, get))),
          ]),
        },
      };
    },
  });

  // By how they are drawn.
  const KINDS = {
    lines: overSetting, costs, over_time: overTime, gauged: gauged.overTime, members: gauged.members, matrix: matrix.of, distribution: () => distribution, anatomy: () => parts,
  };
  return { lead, ...Object.fromEntries(data.drawn.charts.map((spec) => [spec.id, KINDS[spec.draws](spec)])) };
})();
