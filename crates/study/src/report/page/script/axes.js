"use strict";
// Axes: values are transformed before uPlot sees them, so that every scale is linear to it and its ticks are ours.
const axes = (() => {
  const kinds = {
    linear: { forward: (v) => v, ticks: linearTicks },
    log10: { forward: (v) => Math.log10(v), ticks: decades },
    log2: { forward: (v) => Math.log2(v), ticks: powersOfTwo },
    // Percentiles: each further nine takes the same room.
    nines: { forward: (v) => -Math.log10(1 - Math.min(v, 99.9999) / 100), ticks: ninesTicks },
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

  function ninesTicks(min, max) {
    return [0, 50, 90, 99, 99.9, 99.99, 99.999].filter((tick) => tick >= min && tick <= max);
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

  return { kinds, scale };
})();
