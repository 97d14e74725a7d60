"use strict";
// Pools: runs over time with what their tiers say of themselves, and what each member does.
const gauged = (() => {
  const { shown } = data;
  const rate = (v) => format.megabytes(v);
  // Name, what stands at the axis, how a value is written.
  const METRICS = {
    iops: ["IOPS", "IOPS", format.count],
    mb_s: ["MB/s", "Throughput", format.megabytes],
    mean_us: ["Mean latency", "Mean latency", format.microseconds],
    max_us: ["Longest latency", "Longest latency", format.microseconds],
    dirty_gb: ["Dirty data", "Acknowledged and not yet moved on, GB", (v) => `${format.digits(v)}\u202fGB`],
    congestion: ["Congestion", "Congestion, 0 to 255", format.plain],
    freed_mb_s: ["Room made", "Moved on or overwritten", rate],
    hit_ratio: ["Hit ratio", "Reads that hit", (v) => format.percent(v * 100)],
  };

  const nameOf = (point) => point.settings.profile ?? point.name;

  const overTime = (spec) => {
    const points = () => data.points(spec.chapter);
    const workloads = points().map((point) => [nameOf(point), nameOf(point)]);
    const given = (series, name) => (series[name]?.length ? series[name] : null);
    return {
      choices: [
        { name: "workload", label: "Workload", options: workloads },
        { name: "metric", label: "Show", options: spec.metrics.map((name) => [name, METRICS[name][0]]) },
        { name: "scale", label: "Scale", options: [["linear", "Linear"], ["log10", "Logarithmic"]] },
      ],
      state: { workload: workloads[0]?.[0] ?? "", metric: spec.metrics[0], scale: "linear" },
      view(state) {
        const point = points().find((one) => nameOf(one) === state.workload);
        const [, label, write] = METRICS[state.metric];
        const all = shown().map(({ drive, at }) => ({ drive, at, result: point.results[at] }))
          .filter(({ result }) => result?.series);
        const seconds = (series, index) => +((index + 1) * series.every_seconds).toPrecision(5);
        const notes = [...new Set(all.flatMap(({ drive, result }) => (result.notes ?? [])
          .map((note) => `${all.length > 1 ? `${drive.label}: ${note}` : note[0].toUpperCase() + note.slice(1)}.`)))];
        return {
          x: { kind: "time", label: "Time", name: "After", format: format.duration },
          y: { kind: state.scale, label, format: write },
          dense: true,
          lines: all.filter(({ result }) => given(result.series, state.metric)).map(({ drive, at, result }) => ({
            drive: at,
            name: drive.label,
            points: result.series[state.metric].map((y, index) => [seconds(result.series, index), y]),
          })),
          empty: "These drives have no tier that says so.",
          note: notes.join(" "),
          table: {
            caption: `${spec.caption}: ${state.workload}`,
            head: ["Drive", "Seconds", ...spec.metrics.map((name) => METRICS[name][0])],
            formats: [String, format.plain, ...spec.metrics.map((name) => METRICS[name][2])],
            rows: all.flatMap(({ drive, result: { series } }) => series.iops.map((_, index) => [
              drive.label, seconds(series, index), ...spec.metrics.map((name) => given(series, name)?.[index] ?? null),
            ])),
          },
        };
      },
    };
  };

  const COLUMNS = [
    ["Read", rate, (m) => m.read_mb_s], ["Written", rate, (m) => m.write_mb_s],
    ["Write amplification", format.plain, (m) => m.write_amplification],
    ["Busy", (v) => format.percent(v * 100), (m) => m.busy],
    ["Power", (v) => `${format.digits(v)}\u202fW`, (m) => m.watts],
    ["Years to its rating", format.digits, (m) => m.years],
  ];

  // A table only: what is compared has a line for each member.
  const members = (spec) => {
    const points = () => data.points(spec.chapter).filter((point) => point.results.some((one) => one?.members?.length));
    const keyOf = (point) => (point.settings.queue_depth && point.settings.profile
      ? `${point.settings.profile}, ${point.settings.queue_depth} outstanding` : nameOf(point));
    const workloads = points().map((point) => [point.name, keyOf(point)]);
    return {
      choices: [{ name: "workload", label: "Workload", options: workloads }],
      state: { workload: workloads[0]?.[0] ?? "" },
      bars(state, host) {
        const { table: content } = this.view(state);
        const made = content.rows.length ? table.build(content) : "No pool is among these drives.";
        host.style.minHeight = "0";
        host.replaceChildren(controls.element("div", { class: "scroll" }, made));
      },
      view(state) {
        const point = points().find((one) => one.name === state.workload);
        const rows = !point ? [] : shown().flatMap(({ drive, at }) => (point.results[at]?.members ?? []).map((member) => [
          drive.label, member.name, member.drive, ...COLUMNS.map(([, , of]) => of(member) ?? null),
        ]));
        return {
          table: {
            caption: spec.caption,
            head: ["Pool", "Member", "Drive", ...COLUMNS.map(([name]) => name)],
            formats: [String, String, String, ...COLUMNS.map(([, write]) => write)],
            rows,
          },
        };
      },
    };
  };

  return { overTime, members };
})();
