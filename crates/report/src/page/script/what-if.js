"use strict";
// The chapter that simulates: what is asked of the drives and what is set on them, their figures, and a chart over the
// queue depth; the command that repeats it. A short run answers first, so that the chart moves at once, and is told as
// such until the whole one has replaced it; the command is the whole one's.
const whatIf = (() => {
  const { element } = controls;
  const { review, shown } = data;
  const { drives, hosts, host, seed } = JSON.parse(document.getElementById("engine-data").textContent);
  const NAME = "what-if";
  // I/Os of the first answer.
  const COARSE = 500;
  const DEPTHS = [1, 2, 4, 8, 16, 32, 64, 128, 256];
  // A reader who changes something waits for the run under way: at QD1 as many I/Os take the longest virtual time.
  const LONGEST_LAST = [...DEPTHS].reverse();
  const THREADS = 8;

  const there = ({ at }) => drives[at] !== null;
  const governors = drives.filter(Boolean).map((one) => one.governor_watts).filter(Boolean);
  const WATTS = governors.length
    ? [Math.floor(Math.min(...governors.map(([idle]) => idle))) + 1, Math.ceil(Math.max(...governors.map(([, limit]) => limit)))]
    : null;
  const spare = drives.some((one) => one?.capacity_bytes);

  const PATTERNS = [["randread", "Random read"], ["randwrite", "Random write"], ["randrw", "Random mix"],
    ["read", "Sequential read"], ["write", "Sequential write"]];
  const SIZES = [512, 1024, 2048, 4096, 8192, 16384, 32768, 65536, 131072, 262144, 524288, 1048576];
  const plain = (bytes) => (bytes % 1048576 === 0 ? `${bytes / 1048576}m` : bytes % 1024 === 0 ? `${bytes / 1024}k` : String(bytes));

  // What can be turned on a pool: keys and values are those of `--set`.
  const DIALS = drives.flatMap((one, at) => (one?.dials ?? []).map(({ key, now, values, words }) => {
    const [, tier, below] = key.match(/^tier\.([^.]+)\.(.+)$/);
    const choice = { name: `${at + 1}.${tier}.${below}`, at, key, label: `${tier}: ${below.replaceAll("_", " ")}`, first: now };
    return words ? { ...choice, options: values.map((value) => [value, value]), select: true } : { ...choice, steps: values, write: (value) => value };
  }));

  // Each choice: its values, the first shown, and what a reader sees of one. Numbers are text, as in the address.
  const CHOICES = [
    { name: "rw", label: "Pattern", options: PATTERNS, first: "randread" },
    { name: "reads", label: "Reads in the mix", steps: Array.from({ length: 21 }, (_, at) => at * 5), first: "70", write: format.percent, only: (state) => state.rw === "randrw" },
    { name: "bs", label: "Block size", steps: SIZES, first: "4096", write: format.bytes },
    { name: "depth", label: "Queue depth", steps: DEPTHS, first: "16", write: format.plain },
    ...(spare ? [{ name: "unused", label: "Over-provisioned by", steps: Array.from({ length: 41 }, (_, at) => at), first: "0", write: format.percent }] : []),
    ...(WATTS ? [{
      name: "watts", label: "Power limit", first: "0", write: (watts) => (watts ? `${format.plain(watts)}\u202fW` : "as it is"),
      steps: [...Array.from({ length: WATTS[1] - WATTS[0] }, (_, at) => WATTS[0] + at), 0],
    }] : []),
    { name: "host", label: "Host", options: hosts, first: host, select: true },
    { name: "ios", label: "I/Os a run", options: [["2000", "2,000"], ["20000", "20,000"], ["200000", "200,000"]], first: "20000" },
    ...DIALS,
  ];
  const FIRST = Object.fromEntries(CHOICES.map(({ name, first }) => [name, first]));
  const METRICS = ["iops", "mb_s", "mean_us", "p99_us", "p99_9_us"];
  const SHOWN = {
    iops: ["IOPS", "IOPS", format.count], mb_s: ["MB/s", "Throughput", format.megabytes],
    mean_us: ["Mean", "Mean latency", format.microseconds], p99_us: ["99th", "99th percentile of latency", format.microseconds],
    p99_9_us: ["99.9th", "99.9th percentile of latency", format.microseconds],
  };
  const state = { ...FIRST };
  let base = { ...FIRST };
  const chart = { metric: "iops", direction: "read" };

  // I/Os of a run: large blocks take longer to simulate.
  const iosOf = (of, most) => Math.max(200, Math.min(most, Math.floor((most * 16384) / +of.bs)));

  // What fio is told.
  function options(of, depth, most) {
    const random = of.rw.startsWith("rand");
    const threads = random ? Math.min(depth, THREADS) : 1;
    return ["--name=what-if", "--ioengine=libaio", "--direct=1", `--rw=${of.rw}`,
      ...(of.rw === "randrw" ? [`--rwmixread=${of.reads}`] : []), `--bs=${plain(+of.bs)}`, `--iodepth=${depth / threads}`,
      ...(threads > 1 ? [`--numjobs=${threads}`, "--group_reporting"] : []), ...(random ? ["--norandommap"] : []),
      `--number_ios=${Math.ceil(iosOf(of, most) / threads)}`];
  }

  // The question to a drive.
  function question(at, of, depth = +of.depth, most = +of.ios) {
    const { drive, set, capacity_bytes: capacity, power_limit_watts: limit, governor_watts: governor } = drives[at];
    const changes = set.map(([key, value]) => [key, value]);
    for (const { name, key } of DIALS.filter((dial) => dial.at === at && of[dial.name] !== dial.first)) {
      const own = changes.find((change) => change[0] === key);
      if (own) own[1] = of[name]; else changes.push([key, of[name]]);
    }
    if (capacity && +of.unused > 0) {
      const bytes = `${Math.floor((capacity * (100 - of.unused)) / 100 / 4096) * 4096} B`;
      const own = changes.find(([key]) => key === "capacity");
      if (own) own[1] = bytes; else changes.push(["capacity", bytes]);
    }
    const watts = governor && +of.watts > 0 && +of.watts < governor[1] ? +of.watts : limit;
    return { drive, set: changes, power_limit_watts: watts, host: of.host, state: "steady", seed, options: options(of, depth, most) };
  }

  const quoted = (word) => (/^[\w./=:,+%-]+$/.test(word) ? word : `'${word.replaceAll("'", "'\\''")}'`);
  function command({ drive, set, power_limit_watts: watts, host: machine, seed: number, options: fio }) {
    return ["drivelab", "run", drive, ...set.map(([key, value]) => `--set=${key}=${value}`),
      ...(watts === null ? [] : [`--power-limit=${watts}W`]), `--host=${machine}`, "--state=steady", `--seed=${number}`, ...fio].map(quoted).join(" ");
  }

  const sectionOf = () => document.getElementById(NAME);
  // Reads have a worker of their own, so that they are answered while the other brings flash into its steady state, which the
  // first write needs.
  const readers = drives.map((one) => one && engine.seat(() => soon()));
  const writers = drives.map((one) => one && engine.seat(() => soon()));
  let started = false;
  let since = 0;
  let pending = 0;
  let parts = null;
  let drawn = null;

  const same = () => CHOICES.every(({ name }) => state[name] === base[name]);

  const coarse = (of, at, depth) => question(at, of, depth, Math.min(COARSE, +of.ios));

  // Asks for what is not known: first answers of all that is seen, then figures, then the chart.
  function ask() {
    if (!started) return;
    since = performance.now();
    for (const mark of ["moved", "coarse", "figures", "done"]) delete parts.box.dataset[mark];
    for (const { at } of shown().filter(there)) {
      const all = [[state, coarse(state, at, +state.depth)], ...DEPTHS.map((depth) => [state, coarse(state, at, depth)]),
        [state, question(at, state)], [base, question(at, base)], ...LONGEST_LAST.map((depth) => [state, question(at, state, depth)]),
        ...(same() ? [] : LONGEST_LAST.map((depth) => [base, question(at, base, depth)]))];
      const of = (writing) => all.filter(([from]) => writes(from) === writing).map(([, one]) => one);
      readers[at].want(of(false));
      writers[at].want(of(true));
    }
    soon();
  }

  // What a reader who looks at reads may ask next.
  const makeReady = (all) => all.forEach(({ at }) => writers[at].prepare(question(at, { ...state, rw: "randwrite" })));

  // A value in words.
  const worded = ({ name, options: choices, steps, write }, of) => (choices ? choices.find(([value]) => value === of[name])[1]
    : write(steps.find((step) => String(step) === of[name])));

  // What is chosen, in words.
  function told(of) {
    const chosen = CHOICES.filter(({ only }) => !only || only(of)).map((spec) => {
      const { name, options: choices, label, first: usual, key } = spec;
      if ((key || ["unused", "watts"].includes(name)) && of[name] === usual) return null;
      const words = worded(spec, of);
      if (key) return `${label} ${words}`;
      return name === "ios" ? `${words} I/Os` : choices ? words : `${label.toLowerCase()} ${words}`;
    });
    return chosen.filter(Boolean).join(", ");
  }

  function soon() { pending ||= requestAnimationFrame(() => { pending = 0; draw(); }); }

  const writes = ({ rw }) => !["randread", "read"].includes(rw);
  const waysOf = (of) => ({ randrw: ["read", "write"], randread: ["read"], read: ["read"] })[of.rw] ?? ["write"];
  const whole = (at, of, depth) => engine.answer(question(at, of, depth));
  const first = (at, of, depth) => whole(at, of, depth) ?? engine.answer(coarse(of, at, depth ?? +of.depth));
  const figureOf = (at, of, depth, way, metric) => first(at, of, depth)?.figures?.[way]?.[metric] ?? null;

  function change(now, before) {
    if (!now || !before || same()) return "";
    const ratio = now / before;
    if (Math.abs(ratio - 1) < 0.0005) return "=";
    return ratio >= 2 ? `${format.digits(ratio)}×` : `${ratio > 1 ? "+" : "−"}${format.percent(Math.abs(ratio - 1) * 100)}`;
  }

  function rows() {
    const body = element("tbody");
    for (const { drive, at } of shown().filter(there)) {
      const now = first(at, state);
      const settled = whole(at, state) !== undefined;
      // A first answer is compared with nothing: most of the difference would be chance.
      const before = settled ? whole(at, base) : undefined;
      for (const way of waysOf(state)) {
        const head = element("th", { scope: "row" }, marks.swatch(at), `${drive.label}${state.rw === "randrw" ? `, ${way}s` : ""}`);
        const row = element("tr", { "data-drive": at, "data-way": way, ...(settled ? {} : { class: "coarse" }) }, head);
        const figures = now?.figures?.[way];
        if (figures) {
          for (const metric of METRICS) {
            const was = before?.figures?.[way]?.[metric];
            const value = figures[metric];
            row.append(element("td", {}, element("b", {}, value === null ? "–" : SHOWN[metric][2](value)),
              element("span", { class: "soft" }, change(value, was))));
          }
          const { watts, write_amplification: amplification } = now.figures;
          row.append(element("td", {}, watts === null ? "–" : `${format.digits(watts)}\u202fW`),
            element("td", {}, amplification === null ? "–" : format.digits(amplification)));
        } else {
          row.append(element("td", { colspan: METRICS.length + 2, class: "words" }, now?.problems ? now.problems.join(" ") : "…"));
        }
        body.append(row);
      }
    }
    parts.body.replaceWith(body);
    parts.body = body;
  }

  function view() {
    const way = waysOf(state).includes(chart.direction) ? chart.direction : waysOf(state)[0];
    const [, label, write] = SHOWN[chart.metric];
    const all = shown().filter(there);
    const of = (from, at) => DEPTHS.map((depth) => [depth, figureOf(at, from, depth, way, chart.metric)]);
    const rings = same() || !waysOf(base).includes(way) ? [] : all.flatMap(({ drive, at }) => of(base, at).filter(([, y]) => y !== null)
      .map(([x, y]) => published.ring(at, x, y, `${drive.label}, compared with`)));
    return {
      x: { kind: "log2", label: "Queue depth", name: "Queue depth", format: format.plain },
      y: { kind: "linear", label: waysOf(state).length > 1 ? `${label}, ${way}s` : label, format: write },
      lines: all.map(({ drive, at }) => ({ drive: at, name: drive.label, points: of(state, at) })),
      published: rings,
      empty: first(all[0]?.at ?? 0, state) ? "Too few I/Os for this percentile: choose more." : "…",
    };
  }

  function draw() {
    if (!started) return;
    rows();
    drawn?.destroy();
    const seen = view();
    drawn = plot.draw(parts.host, seen, parts.live, () => {});
    parts.host.drawn = drawn.series;
    const known = shown().filter(there);
    parts.legend.textContent = same() ? "Figures are compared with these conditions. “Compare with this” takes others."
      : `${seen.published.length ? "Rings, and the changes in the table:" : "Changes in the table:"} compared with ${told(base)}.`;
    const all = (of) => known.every(({ at }) => DEPTHS.every((depth) => of(at, state, depth)));
    const settled = all(whole) && known.every(({ at }) => whole(at, state));
    parts.mark.textContent = settled ? `Runs of ${format.plain(iosOf(state, +state.ios))} I/Os.`
      : `First answer, from ${format.plain(iosOf(state, COARSE))} I/Os a run: runs of ${format.plain(iosOf(state, +state.ios))} are on their way.`;
    parts.box.classList.toggle("coarse", !settled);
    const commands = known.map(({ at }) => command(question(at, state)));
    if (parts.commands.textContent !== commands.join("\n")) parts.commands.textContent = commands.join("\n");
    // How long the reader waited, for tests and for the curious.
    const took = String(Math.round(performance.now() - since));
    const moved = known.every(({ at }) => first(at, state));
    if (moved) parts.box.dataset.moved ??= took;
    if (moved && all(first)) parts.box.dataset.coarse ??= took;
    if (moved && !writes(state)) makeReady(known);
    if (known.every(({ at }) => whole(at, state))) parts.box.dataset.figures ??= took;
    if (settled) parts.box.dataset.done ??= took;
  }

  function keep() {
    for (const { name } of CHOICES) address.keep(`${NAME}.${name}`, state[name] === FIRST[name] ? null : state[name], NAME);
    const compared = CHOICES.map(({ name }) => base[name]).join(",");
    address.keep(`${NAME}.base`, CHOICES.every(({ name }) => base[name] === FIRST[name]) ? null : compared, NAME);
  }

  function changed() {
    parts.syncs.forEach((sync) => sync());
    keep();
    ask();
  }

  // A row of steps, moved by mouse, finger or arrow keys.
  function slider(spec) {
    const id = `${NAME}-${spec.name}`;
    const input = element("input", { type: "range", id, min: 0, max: spec.steps.length - 1, step: 1 });
    const output = element("output", { for: id });
    const sync = () => {
      input.value = spec.steps.findIndex((step) => String(step) === state[spec.name]);
      output.textContent = worded(spec, state);
      input.setAttribute("aria-valuetext", output.textContent);
      input.disabled = spec.only ? !spec.only(state) : false;
    };
    input.addEventListener("input", () => { state[spec.name] = String(spec.steps[input.value]); changed(); });
    return { made: element("div", { class: "choice slider" }, element("label", { for: id }, spec.label), input, output), sync };
  }

  const known = (spec, value) => (spec.steps ? spec.steps.some((step) => String(step) === value) : spec.options.some(([option]) => option === value));

  function restore() {
    for (const spec of CHOICES) {
      const told = address.get(`${NAME}.${spec.name}`);
      state[spec.name] = told !== undefined && known(spec, told) ? told : spec.first;
    }
    const told = (address.get(`${NAME}.base`) ?? "").split(",");
    const whole = told.length === CHOICES.length && CHOICES.every((spec, at) => known(spec, told[at]));
    base = whole ? Object.fromEntries(CHOICES.map(({ name }, at) => [name, told[at]])) : { ...FIRST };
    parts?.syncs.forEach((sync) => sync());
    ask();
  }

  function build() {
    const box = sectionOf().querySelector(".what-if");
    const bar = element("div", { class: "choices" });
    const pools = element("div", { class: "pools" });
    const built = CHOICES.map((spec) => (spec.steps ? slider(spec)
      : (spec.select ? controls.select : controls.build)(spec, state, changed)));
    const more = [["metric", "Show", METRICS.map((name) => [name, SHOWN[name][0]])], ["direction", "Of a mix", [["read", "Reads"], ["write", "Writes"]]]]
      .map(([name, label, choices]) => controls.build({ name, label, options: choices }, chart, soon));
    const again = element("button", { type: "button", class: "quiet" }, "Start over");
    again.addEventListener("click", () => { Object.assign(state, FIRST); base = { ...FIRST }; changed(); });
    const compare = element("button", { type: "button", class: "quiet" }, "Compare with this");
    compare.addEventListener("click", () => { base = { ...state }; changed(); });
    bar.append(...built.filter((_, index) => CHOICES[index].at === undefined).map((one) => one.made), compare, again);
    for (const at of drives.keys()) {
      const own = built.filter((_, index) => CHOICES[index].at === at).map(({ made }) => made);
      if (!own.length) continue;
      const row = element("div", { class: "choices" });
      row.append(...own);
      pools.append(element("fieldset", { class: "choice" }, element("legend", {}, `Settings of ${review.drives[at].label}`), row));
    }
    const body = element("tbody");
    const head = element("tr", {}, element("td"));
    for (const name of [...METRICS.map((metric) => SHOWN[metric][0]), "Power", "Write amplification"]) head.append(element("th", { scope: "col" }, name));
    const table = element("div", { class: "scroll", tabindex: "0", role: "region", "aria-label": "Figures of what is chosen" },
      element("table", { class: "simulated" }, element("thead", {}, head), body));
    const host = element("div", {
      class: "plot", tabindex: "0", role: "group", "aria-label": "Selected figure by queue depth. Chart; left and right arrow keys read its values.",
    });
    const live = element("p", { class: "hidden", "aria-live": "polite" });
    const legend = element("p", { class: "note" });
    const mark = element("p", { class: "note mark" });
    const commands = element("pre", { tabindex: "0", "aria-label": "Commands" });
    const copy = element("button", { type: "button", class: "quiet" }, "Copy");
    copy.addEventListener("click", async () => {
      try { await navigator.clipboard.writeText(commands.textContent); copy.textContent = "Copied"; } catch { getSelection().selectAllChildren(commands); }
      setTimeout(() => { copy.textContent = "Copy"; }, 2000);
    });
    box.append(bar, pools, mark, table, element("div", { class: "choices" }, ...more.map((one) => one.made)), host, live, legend,
      element("h3", {}, "Repeat this on your machine"), commands, copy);
    // Which of its two ways is asked of a mix only.
    const ofMix = () => { more[1].made.hidden = waysOf(state).length < 2; };
    parts = { box, body, host, live, legend, mark, commands, syncs: [...[...built, ...more].map((one) => one.sync), ofMix] };
    parts.syncs.forEach((sync) => sync());
  }

  // The model is unpacked when the reader comes near, or has come by a link to something chosen.
  function start() {
    build();
    restore();
    const begin = () => {
      if (started) return;
      started = true;
      ask();
    };
    const near = new IntersectionObserver((entries) => { if (entries.some((one) => one.isIntersecting)) { near.disconnect(); begin(); } }, { rootMargin: "400px" });
    near.observe(sectionOf());
  }

  return { start, restore, redraw: () => ask() };
})();
data.others.push(whatIf);
