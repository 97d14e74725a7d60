"use strict";
// Numbers as people read them: units chosen by size, three significant digits, a thin space before the unit.
const format = (() => {
  const THIN = "\u202f";

  function digits(value, significant = 3) {
    if (value === 0) return "0";
    const size = Math.abs(value);
    const places = Math.max(0, significant - 1 - Math.floor(Math.log10(size)));
    const text = value.toFixed(Math.min(places, 6));
    const trimmed = text.includes(".") ? text.replace(/\.?0+$/, "") : text;
    return trimmed.replace(/\B(?=(\d{3})+(?!\d))/g, (_, __, at, all) => {
      const dot = all.indexOf(".");
      return dot >= 0 && at > dot ? "" : ",";
    });
  }

  function scaled(value, steps) {
    const size = Math.abs(value);
    for (const [least, divisor, unit] of steps) {
      // Half a digit below the step already rounds up to it.
      if (size >= least * 0.9995) return digits(value / divisor) + unit;
    }
    return digits(value) + steps[steps.length - 1][2];
  }

  const microseconds = (us) => scaled(us, [
    [1e6, 1e6, THIN + "s"], [1e3, 1e3, THIN + "ms"], [1, 1, THIN + "µs"], [0, 1e-3, THIN + "ns"],
  ]);
  const count = (value) => scaled(value, [[1e6, 1e6, THIN + "M"], [1e3, 1e3, THIN + "k"], [0, 1, ""]]);
  const megabytes = (value) => scaled(value, [[1e3, 1e3, THIN + "GB/s"], [0, 1, THIN + "MB/s"]]);
  const bytes = (value) => scaled(value, [
    [1 << 20, 1 << 20, THIN + "MiB"], [1 << 10, 1 << 10, THIN + "KiB"], [0, 1, THIN + "B"],
  ]);

  // A length of time as people say it: 90 s, 16 min 40 s, 3 h 12 min, 2 d 5 h.
  const LENGTHS = [[86400, "d", 3600, "h"], [3600, "h", 60, "min"], [60, "min", 1, "s"]];
  function duration(value) {
    for (const [large, unit, small, smaller] of LENGTHS) {
      if (value < 2 * large) continue;
      const all = Math.round(value / small);
      const left = all % (large / small);
      const whole = Math.floor(all / (large / small)) + THIN + unit;
      return left ? `${whole} ${left}${THIN}${smaller}` : whole;
    }
    return digits(value) + THIN + "s";
  }

  const percent = (value) => digits(value, 3) + THIN + "%";
  // As many places as tell how rare the rest is: 99.99 is written in full, rounding it would say 100.
  function percentile(value) {
    const places = value >= 100 ? 0 : Math.max(0, Math.ceil(-Math.log10(100 - value)) + 1);
    return String(+value.toFixed(Math.min(places, 5))) + THIN + "%";
  }
  const plain = (value) => digits(value);

  return { digits, microseconds, count, megabytes, bytes, duration, percent, percentile, plain };
})();
