"use strict";
// Latency breakdown by percentile band: one stacked bar for each drive and band.
const anatomy = (() => {
  const { element } = controls;
  const { review } = data;

  // Parts in the order of the bar, grouped by what they have in common. The names are the model's.
  const GROUPS = [
    ["host", ["thread busy", "host submission", "queue slot", "host completion", "network"]],
    ["drive", ["link", "controller", "transfer", "tier"]],
    ["medium", ["medium"]],
    ["wait", ["behind a read", "behind a program", "behind an erase", "behind garbage collection",
      "behind refresh", "collision"]],
    ["full", ["write buffer full", "throttle", "congestion"]],
  ];
  const ORDER = GROUPS.flatMap(([group, names]) => names.map((name, shade) => ({ group, name, shade })));
  for (const name of review.parts) {
    if (!ORDER.some((part) => part.name === name)) ORDER.push({ group: "host", name, shade: 4 });
  }

  // fio's latency does not count the time before the thread issues.
  const counted = ORDER.filter((part) => part.name !== "thread busy");

  function bandName(index) {
    const [from, to] = [review.band_edges[index], review.band_edges[index + 1]];
    if (from === 0) return `Fastest ${to}${"\u202f"}%`;
    if (to === 100) return `Slowest ${+(100 - from).toPrecision(3)}${"\u202f"}%`;
    return `${from}–${to}${"\u202f"}%`;
  }

  // [{ name, drives: [{ drive, ios, total, parts: [{...part, us}] } or { drive, none }] }] of one point.
  function dissect(point, direction) {
    const drives = data.shown().map(({ at }) => ({ drive: at, bands: data.figures(point, at, direction)?.bands ?? null }));
    const count = review.band_edges.length - 1;
    return Array.from({ length: count }, (_, band) => ({
      name: bandName(band),
      drives: drives.map(({ drive, bands }) => {
        const one = bands?.[band];
        if (!one) return { drive, none: true };
        const parts = counted.map((part) => ({ ...part, us: one.parts_us[review.parts.indexOf(part.name)] ?? 0 }));
        return { drive, ios: one.ios, total: parts.reduce((sum, part) => sum + part.us, 0), parts };
      }),
    }));
  }

  // Black or white, whichever stands out more from a ground of this colour.
  function inkOn(colour) {
    const canvas = document.createElement("canvas").getContext("2d");
    canvas.fillStyle = colour;
    canvas.fillRect(0, 0, 1, 1);
    const [r, g, b] = [...canvas.getImageData(0, 0, 1, 1).data]
      .map((v) => v / 255).map((v) => (v <= 0.04045 ? v / 12.92 : ((v + 0.055) / 1.055) ** 2.4));
    const luminance = 0.2126 * r + 0.7152 * g + 0.0722 * b;
    return (luminance + 0.05) ** 2 > 1.05 * 0.05 ? "#000" : "#fff";
  }

  function bar(one, longest, relative) {
    const row = element("div", { class: "bar-row" });
    const { label } = review.drives[one.drive];
    const name = element("span", { class: "bar-name", title: label }, marks.swatch(one.drive), element("span", {}, label));
    if (one.none) {
      row.append(name, element("span", { class: "bar-none" }, "fewer than ten I/Os"));
      return row;
    }
    const track = element("div", { class: "bar-track", "aria-hidden": "true" });
    const fill = element("div", { class: "bar" });
    fill.style.width = relative ? "100%" : `${Math.max((one.total / longest) * 100, 0.4)}%`;
    for (const part of one.parts) {
      const share = part.us / one.total;
      if (share < 0.002) continue;
      const piece = element("span", {
        class: `piece ${part.group} shade-${part.shade}`,
        title: `${part.name}: ${format.microseconds(part.us)} (${format.percent(share * 100)})`,
      });
      piece.style.flexGrow = share;
      piece.append(element("span", { class: "piece-name" }, part.name));
      fill.append(piece);
    }
    track.append(fill);
    row.append(name, track, element("b", { class: "bar-total" }, format.microseconds(one.total)));
    return row;
  }

  // One scale for all bands: a bar of time is as long as its time, whichever band it is in.
  function draw(host, point, direction, relative) {
    host.replaceChildren();
    const bands = dissect(point, direction);
    const seen = new Set();
    const longest = Math.max(...bands.flatMap((band) => band.drives.map((one) => one.total ?? 0)));
    for (const band of bands) {
      if (band.drives.every((one) => one.none)) continue;
      const group = element("div", { class: "band", role: "group", "aria-label": band.name },
        element("div", { class: "band-name" }, band.name));
      band.drives.forEach((one) => {
        one.parts?.forEach((part) => { if (part.us / one.total >= 0.002) seen.add(part.name); });
        group.append(bar(one, longest, relative));
      });
      host.append(group);
    }
    if (seen.size === 0) host.append(element("p", { class: "empty" }, "Nothing was measured here."));
    const key = element("ul", { class: "key" });
    for (const part of counted.filter((one) => seen.has(one.name))) {
      key.append(element("li", {}, element("span", { class: `piece ${part.group} shade-${part.shade}` }), part.name));
    }
    host.prepend(key);
    // The grounds are the style sheet's, so they are asked for once the bars are in the page.
    const grounds = new Map();
    for (const name of host.querySelectorAll(".piece-name")) {
      // Half a name says nothing.
      if (name.scrollWidth > name.parentElement.clientWidth) { name.remove(); continue; }
      const ground = getComputedStyle(name.parentElement).backgroundColor;
      if (!grounds.has(ground)) grounds.set(ground, inkOn(ground));
      name.style.color = grounds.get(ground);
    }
  }

  function rows(point, direction) {
    const bands = dissect(point, direction);
    const all = bands.flatMap((band) => band.drives.filter((one) => !one.none).map((one) => ({ band, one })));
    const used = counted.filter((part) => all.some(({ one }) => one.parts.some((p) => p.name === part.name && p.us > 0)));
    return {
      head: ["Band", "Drive", "I/Os", "Mean", ...used.map((part) => part.name)],
      formats: [String, String, format.plain, format.microseconds, ...used.map(() => format.microseconds)],
      rows: all.map(({ band, one }) => [
        band.name, review.drives[one.drive].label, one.ios, one.total,
        ...used.map((part) => one.parts.find((p) => p.name === part.name).us),
      ]),
    };
  }

  return { draw, rows, inkOn };
})();
