"use strict";
// The review, read from the page, and the figures that charts ask of it.
const data = (() => {
  const read = (id) => JSON.parse(document.getElementById(id).textContent);
  const review = read("review-data");
  // What the chapters say of their charts.
  const drawn = read("chart-data");

  const metrics = {
    iops: { label: "IOPS", axis: "IOPS", format: format.count, of: (f) => f.iops, across: (a) => a.iops },
    mb_s: { label: "MB/s", axis: "Throughput", format: format.megabytes, of: (f) => f.mb_s, across: (a) => a.mb_s },
    mean: { label: "Mean", axis: "Mean latency", format: format.microseconds, of: (f) => f.latency.mean_us, across: (a) => a.mean_us },
    p50: { label: "Median", axis: "Median latency", format: format.microseconds, of: (f) => f.latency.p50_us, across: (a) => a.percentiles_us[0] },
    p99: { label: "99th", axis: "99th percentile of latency", format: format.microseconds, of: (f) => f.latency.p99_us, across: (a) => a.percentiles_us[1] },
    p99_99: {
      label: "99.99th", axis: "99.99th percentile of latency", format: format.microseconds,
      of: (f) => f.latency.p99_99_us, across: (a) => a.percentiles_us[3],
    },
    p99_999: {
      label: "99.999th", axis: "99.999th percentile of latency", format: format.microseconds,
      of: (f) => f.latency.p99_999_us, across: (a) => a.percentiles_us[4],
    },
  };

  const chapter = (id) => review.chapters.find((one) => one.id === id);

  // Points of a chapter whose settings have these values.
  function points(id, wanted = {}) {
    const all = chapter(id)?.points ?? [];
    return all.filter((point) => Object.entries(wanted).every(([key, value]) => point.settings[key] === value));
  }

  // The figures of one direction; reads and writes together where a mix asks for "all".
  function figures(point, drive, direction) {
    const result = point.results[drive];
    if (!result) return null;
    if (direction === "read" || direction === "write") return result[direction];
    return result.read && result.write ? null : result.read ?? result.write;
  }

  function value(point, drive, direction, metric) {
    const one = figures(point, drive, direction);
    return one ? metrics[metric].of(one) : null;
  }

  // The least and the greatest of the seeds, where there are several.
  function band(point, drive, direction, metric) {
    const across = figures(point, drive, direction)?.across_seeds;
    return (across && metrics[metric].across(across)) ?? null;
  }

  // Drives that a reader has hidden, by number; `shown` are the others, with their numbers.
  const hidden = new Set();
  const shown = () => review.drives.map((drive, at) => ({ drive, at })).filter(({ at }) => !hidden.has(at));

  // What else is in the page, beside the charts: each has start, restore and redraw.
  const others = [];

  return { review, drawn, metrics, chapter, points, figures, value, band, hidden, shown, others };
})();
