"use strict";
// Axes: values are transformed before uPlot sees them, so that every scale is linear to it and its ticks are ours.
const axes = (() => {
  const same = (v) => v;
  const kinds = {
    linear: { forward: same, back: same, ticks: linearTicks },
    log10: { forward: (v) => Math.log10(v), back: (v) => 10 ** v, ticks: decades },
    log2: { forward: (v) => Math.log2(v), back: (v) => 2 ** v, ticks: powersOfTwo },
    // Queue depths: whole numbers, in steps of a power of two.
    depth: { forward: same, back: same, ticks: depthTicks },
    // Seconds, in steps of a clock; all ticks of an axis have one unit.
    time: { forward: same, back: same, ticks: timeTicks, write: writeTime },
    // Percentiles: each further nine takes the same room.
    nines: {
      forward: (v) => -Math.log10(1 - Math.min(v, 99.9999) / 100), back: (v) => 100 * (1 - 10 ** -v), ticks: ninesTicks,
    },
  };

  function step(range, most) {
    const rough = range / most;
    const power = 10 ** Math.floor(Math.log10(rough));
    return [1, 2, 5, 10].map((factor) => factor * power).find((candidate) => candidate >= rough * 0.999);
  }

  function linearTicks(min, max, most) {
    const by = step(max - min || 1, most);
    const ticks = [];
    for (let i = Math.ceil(min / by - 1e-9); i * by <= max * (1 + 1e-9); i += 1) ticks.push(+(i * by).toPrecision(12));
    return ticks;
  }

  function decades(min, max, most) {
    const wide = Math.log10(max / min);
    if (wide < 0.7) return linearTicks(min, max, most);
    const factors = wide > most * 0.8 ? [1] : wide > most / 3 ? [1, 3] : [1, 2, 5];
    const ticks = [];
    for (let power = Math.floor(Math.log10(min)); power <= Math.ceil(Math.log10(max)); power += 1) {
      for (const factor of factors) {
        const tick = factor * 10 ** power;
        if (tick >= min * 0.999 && tick <= max * 1.001) ticks.push(+tick.toPrecision(6));
      }
    }
    return ticks;
  }

  function powersOfTwo(min, max, most) {
    const ticks = [];
    const every = Math.max(1, Math.ceil((Math.log2(max / min) + 1) / most));
    for (let power = Math.ceil(Math.log2(min)); power <= Math.log2(max) + 1e-9; power += every) ticks.push(2 ** power);
    return ticks;
  }

  function depthTicks(min, max, most) {
    const by = 2 ** Math.max(0, Math.ceil(Math.log2((max - min || 1) / most)));
    const ticks = min <= 1 ? [1] : [];
    for (let tick = Math.ceil(min / by) * by; tick <= max; tick += by) if (tick > 1 || min > 1) ticks.push(tick);
    return ticks;
  }

  const CLOCK = [1, 2, 5, 10, 15, 30, 60, 120, 300, 600, 900, 1800, 3600, 7200, 10800, 21600, 43200, 86400, 172800];

  function timeTicks(min, max, most) {
    const by = CLOCK.find((candidate) => (max - min) / candidate <= most);
    if (by === undefined) return linearTicks(min / 86400, max / 86400, most).map((days) => days * 86400);
    if (by === 1) return linearTicks(min, max, most);
    const ticks = [];
    for (let tick = Math.ceil(min / by) * by; tick <= max; tick += by) ticks.push(tick);
    return ticks;
  }

  // In the unit that fits the axis; a tick that is no quarter of it, as in a narrow zoom, in two units.
  function writeTime(tick, max) {
    const units = [[86400, 2, "d"], [3600, 4, "h"], [60, 5, "min"], [1, 0, "s"]];
    const [size, , unit] = units.find(([one, least]) => max >= least * one);
    return (tick / size * 4) % 1 < 1e-9 || size === 1 ? `${format.digits(tick / size)}\u202f${unit}` : format.duration(tick);
  }

  // The named percentiles first; those between them where there is room.
  function ninesTicks(min, max) {
    const named = [99.999, 99.99, 99.9, 99, 90, 0, 50, 99.95, 99.5, 95, 75, 99.995, 97.5];
    return named.filter((tick) => tick >= min && tick <= max);
  }

  // Of these ticks, the more important first, those whose labels do not touch, rising. `at` gives a tick's place and
  // `wide` its label's width, in pixels.
  function apart(ticks, at, wide, gap = 10) {
    const kept = [];
    for (const tick of ticks) {
      const clear = (other) => Math.abs(at(tick) - at(other)) >= (wide(tick) + wide(other)) / 2 + gap;
      if (kept.every(clear)) kept.push(tick);
    }
    return kept.sort((a, b) => a - b);
  }

  // The range of a y axis and its ticks: from zero when linear, whole or part decades when logarithmic.
  function scale(kind, values, most) {
    const least = Math.min(...values);
    const largest = Math.max(...values);
    if (kind === "linear") {
      const by = step(largest * 1.02 || 1, most);
      const max = Math.ceil((largest * 1.02) / by) * by || 1;
      return { min: 0, max, ticks: linearTicks(0, max, Math.round(max / by)) };
    }
    const down = 10 ** Math.floor(Math.log10(least));
    const up = 10 ** Math.ceil(Math.log10(largest));
    const min = [5, 3, 2, 1].map((f) => f * down).find((f) => f <= least * 0.97) ?? down / 2;
    const max = [0.2, 0.3, 0.5, 1].map((f) => f * up).find((f) => f >= largest * 1.03) ?? up * 2;
    return { min, max, ticks: decades(min, max, most) };
  }

  return { kinds, scale, apart };
})();
