"use strict";
// The page of `drivelab lab`: drives put together, a job, what came out, and what it takes to repeat it. What is wrong is
// told in the words of the program, which reads drives and jobs inside the page.
(() => {
  const { element, build, select } = controls;
  const known = JSON.parse(document.getElementById("lab-data").textContent);
  const MOST = 6;
  // What is made of the drive that is named.
  const SHAPES = [
    ["alone", "as it is", (it) => it],
    ["mirror", "a mirror of two", (it) => `mirror(2*${it})`],
    ["stripe", "a stripe over four", (it) => `stripe(4*${it})`],
    ["mirrors", "a stripe over two mirrors", (it) => `stripe(2*mirror(2*${it}))`],
    ["log", "the mirrored log of six disks", (it) => `intent-log(main=raidz(6*exos-x18-16tb; parity=2), log=mirror(2*${it}))`],
  ];
  const STATES = [["auto", "By the load"], ["fresh", "Fresh"], ["filled", "Filled"], ["steady", "Steady"]];
  const PERCENTILES = [[50, "p50_us"], [99, "p99_us"], [99.9, "p99_9_us"], [99.99, "p99_99_us"], [99.999, "p99_999_us"]];
  const COLUMNS = [["IOPS", "iops", format.count], ["MB/s", "mb_s", format.megabytes], ["Mean", "mean_us", format.microseconds],
    ["Median", "p50_us", format.microseconds], ["99th", "p99_us", format.microseconds], ["99.9th", "p99_9_us", format.microseconds],
    ["99.99th", "p99_99_us", format.microseconds], ["99.999th", "p99_999_us", format.microseconds], ["Longest", "max_us", format.microseconds]];
  // Drive settings: option of the command line, its label, an example.
  const SETTINGS = [["overprovision", "Over-provisioning", "20%"], ["fill", "Filled", "80%"], ["age", "Age", "3y or 3y@20MB/s"],
    ["lba-format", "LBA format", "4096"], ["power-limit", "Power limit", "12W"], ["percentage-used", "Percentage Used", "104"],
    ["wear-factor", "Wear factor", "1e5"], ["uptime", "Time since power-on", "10min"]];
  const SIZES = [[1e12, "TB"], [1e9, "GB"], [0, "B"]];

  // Of options that were given to the program; figures one a line.
  const given = (option) => known.set.filter(([one]) => one === option).map(([, value]) => value).join("\n");
  const first = {
    benches: known.benches.length ? known.benches : [{ drive: "p4800x-375", toml: null }, { drive: "p3700-1600", toml: null }],
    job: known.job ?? known.jobs[0][1], host: known.host, state: "auto", seed: "1", whole: "no",
    set: given("set"), ...Object.fromEntries(SETTINGS.map(([option]) => [option, given(option)])),
  };
  const setup = structuredClone(first);
  const look = { way: "read", length: "share", kept: 0, preset: "" };
  const CHOICES = ["host", "state", "seed", "whole", "set", ...SETTINGS.map(([option]) => option)];

  const byId = (id) => document.getElementById(id);
  const bytes = (value) => {
    const [least, unit] = SIZES.find(([size]) => value >= size);
    return `${format.digits(value / (least || 1))}\u202f${unit}`;
  };
  const sharing = { drive: "", shape: "alone", file: "", text: "" };
  const parts = {};
  const seats = [];
  let asked = [];
  let began = 0;
  let drawn = null;
  let pending = 0;

  // Options and values, in the order in which a command has them.
  const settings = () => [
    ...setup.set.split("\n").map((line) => ["set", line.trim()]), ...SETTINGS.map(([option]) => [option, setup[option].trim()]),
  ].filter(([, value]) => value);

  const question = ({ drive, toml }) => ({
    experiment: { drive, toml, settings: settings(), whole: setup.whole === "yes", job: setup.job, host: setup.host, state: setup.state, seed: +setup.seed },
  });
  const answer = (at) => asked[at] && engine.answer(asked[at]);
  const results = (at) => answer(at)?.results ?? null;

  function button(text, pressed, more = {}) {
    const made = element("button", { type: "button", class: "quiet", ...more }, text);
    made.addEventListener("click", pressed);
    return made;
  }

  function field(label, input) {
    return element("div", { class: "choice" }, element("label", { for: input.id }, label), input);
  }

  // --- what is chosen ---

  function keep() {
    const chosen = { benches: JSON.stringify(setup.benches.map(({ drive, toml }) => (toml === null ? [drive] : [drive, toml]))), job: setup.job };
    for (const name of CHOICES) chosen[name] = setup[name];
    const usual = { ...first, benches: JSON.stringify(first.benches.map(({ drive, toml }) => (toml === null ? [drive] : [drive, toml]))) };
    for (const [name, value] of Object.entries(chosen)) address.keep(name, value === usual[name] ? null : value);
  }

  // Benches of an address that somebody may have cut short.
  function restored(text) {
    try {
      const all = JSON.parse(text).map(([drive, toml = null]) => ({ drive, toml }));
      const sound = all.length > 0 && all.length <= MOST && all.every(({ drive, toml }) => typeof drive === "string" && (toml === null || typeof toml === "string"));
      return sound ? all : null;
    } catch { return null; }
  }

  function restore() {
    Object.assign(setup, structuredClone(first));
    const told = address.get("benches");
    const benches = told === undefined ? first.benches : restored(told);
    if (benches) setup.benches = structuredClone(benches);
    setup.job = address.get("job") ?? setup.job;
    const can = {
      host: (it) => known.hosts.some(([id]) => id === it), state: (it) => STATES.some(([name]) => name === it),
      seed: (it) => /^\d{1,15}$/.test(it), whole: (it) => ["yes", "no"].includes(it),
    };
    const written = () => true;
    for (const name of CHOICES) {
      const value = address.get(name);
      if (value !== undefined && (can[name] ?? written)(value)) setup[name] = value;
    }
    return benches !== null;
  }

  // --- drives ---

  function add(bench) {
    if (!bench.drive || setup.benches.length >= MOST) return;
    setup.benches.push(bench);
    chosen();
  }

  function chosen() {
    listBenches();
    run();
  }

  // A plain name of a file for what an expression or a name says.
  const fileOf = (drive) => `${drive.replace(/\.toml$/, "").replace(/[^\w.-]+/g, "-").replace(/^-+|-+$/g, "").slice(0, 60) || "mine"}.toml`;

  function listBenches() {
    data.review.drives = setup.benches.map(({ drive }) => ({ id: drive, label: drive }));
    parts.list.replaceChildren(...setup.benches.map((bench, at) => element("li", {}, marks.swatch(at), element("span", { class: "bench-name" }, bench.drive),
      button("Edit as a file", () => edit(at), { "aria-label": `Edit ${bench.drive} as a file` }),
      button("Remove", () => { setup.benches.splice(at, 1); chosen(); parts.drive.focus(); }, { "aria-label": `Remove ${bench.drive}` }))));
    parts.add.disabled = parts.take.disabled = setup.benches.length >= MOST;
    parts.full.textContent = setup.benches.length >= MOST ? `${MOST} at most: remove one to add another.` : "";
  }

  // Its file into the editor, once the program has read it.
  function edit(at) {
    const { drive, toml } = setup.benches[at];
    const text = toml ?? results(at)?.about.toml;
    parts.own.open = true;
    parts.name.value = fileOf(drive);
    parts.text.value = text ?? "";
    parts.full.textContent = text === undefined ? "Its file comes with its results: run first." : "";
    parts.text.focus();
  }

  function buildBenches() {
    const place = byId("benches");
    parts.list = element("ul", { class: "benches" });
    const names = element("datalist", { id: "names" }, ...[...known.drives, ...known.pools].map((value) => element("option", { value })));
    parts.drive = element("input", { type: "text", id: "drive", list: "names", autocomplete: "off", spellcheck: "false", placeholder: "p4800x-375 or mirror(2*p4801x-100)" });
    const shape = select({ name: "shape", label: "Take it", options: SHAPES.map(([name, label]) => [name, label]) }, sharing, () => {});
    const adding = () => {
      const name = parts.drive.value.trim();
      if (!name) return;
      add({ drive: SHAPES.find(([one]) => one === sharing.shape)[2](name), toml: null });
      parts.drive.value = "";
      parts.drive.focus();
    };
    parts.add = button("Add", adding);
    parts.drive.addEventListener("keydown", (event) => { if (event.key === "Enter") { event.preventDefault(); adding(); } });
    parts.full = element("p", { class: "note", role: "status" });
    parts.name = element("input", { type: "text", id: "file-name", value: "mine.toml", spellcheck: "false" });
    parts.text = element("textarea", { id: "file-text", rows: "14", spellcheck: "false" });
    parts.take = button("Add this file", () => {
      const [name, text] = [fileOf(parts.name.value), parts.text.value];
      const taken = setup.benches.some(({ drive, toml }) => toml !== null && drive === name);
      if (text.trim() && !taken) add({ drive: name, toml: text });
      if (taken) parts.full.textContent = `There is a file ${name}: name this one otherwise, or remove that one.`;
    });
    parts.own = element("details", { class: "data" }, element("summary", {}, "A file of your own"),
      field("Name of the file", parts.name), field("TOML of a drive or pool", parts.text), parts.take);
    place.append(parts.list, names, element("div", { class: "choices" }, field("Drive, pool or expression", parts.drive), shape.made, parts.add), parts.full, parts.own);
  }

  // --- job ---

  function buildJob() {
    const place = byId("job");
    const preset = select({ name: "preset", label: "Begin with", options: [["", "a job of your own"], ...known.jobs.map(([name], at) => [String(at), name])] }, look, () => {
      if (look.preset === "") return;
      parts.job.value = setup.job = known.jobs[+look.preset][1];
      run();
    });
    parts.job = element("textarea", { id: "job-text", rows: "14", spellcheck: "false" });
    parts.job.addEventListener("input", () => { setup.job = parts.job.value; showPreset(); stale(); });
    const host = select({ name: "host", label: "Host", options: known.hosts }, setup, run);
    const start = build({ name: "state", label: "State at the start", options: STATES }, setup, run);
    const whole = build({ name: "whole", label: "Flash drives", options: [["no", "Smaller, alike"], ["yes", "In full size"]] }, setup, run);
    parts.seed = element("input", { type: "text", id: "seed", inputmode: "numeric", size: "6" });
    parts.seed.addEventListener("input", () => {
      const right = /^\d{1,15}$/.test(parts.seed.value);
      parts.seed.setCustomValidity(right ? "" : "A whole number of at most 15 digits");
      parts.seed.setAttribute("aria-invalid", String(!right));
      if (right) { setup.seed = String(+parts.seed.value); stale(); }
    });
    const setting = (name, made, more) => {
      parts.settings[name] = element(made, { id: `set-${name}`, autocomplete: "off", spellcheck: "false", ...more });
      parts.settings[name].addEventListener("input", () => { setup[name] = parts.settings[name].value; stale(); });
      return parts.settings[name];
    };
    parts.settings = {};
    parts.set = element("details", { class: "data" }, element("summary", {}, "Drive settings"),
      element("div", { class: "choices" }, ...SETTINGS.map(([option, label, example]) => field(label, setting(option, "input", { type: "text", size: "11", placeholder: example })))),
      field("Changed figures, KEY=VALUE, one a line", setting("set", "textarea", { rows: "2", placeholder: "xpoint.power.limit=12W" })));
    parts.run = button("Run", run, { title: "Ctrl+Enter" });
    parts.stop = button("Stop", stop);
    place.append(element("div", { class: "choices" }, preset.made, host.made, start.made, whole.made, field("Seed", parts.seed)),
      parts.set, field("fio job file", parts.job), element("div", { class: "choices" }, parts.run, parts.stop));
    parts.preset = preset;
    parts.syncs = [host, start, whole];
    addEventListener("keydown", (event) => {
      if (event.key === "Enter" && (event.ctrlKey || event.metaKey)) { event.preventDefault(); run(); }
    });
  }

  // Which of the page's jobs the text is, if any.
  function showPreset() {
    const at = known.jobs.findIndex(([, text]) => text === setup.job);
    look.preset = at < 0 ? "" : String(at);
    parts.preset.sync();
  }

  function show() {
    parts.job.value = setup.job;
    showPreset();
    parts.seed.value = setup.seed;
    parts.syncs.forEach((one) => one.sync());
    for (const [name, input] of Object.entries(parts.settings)) input.value = setup[name];
    if (settings().length) parts.set.open = true;
    listBenches();
  }

  // --- running ---

  function run() {
    asked = setup.benches.map(question);
    began = performance.now();
    while (seats.length < asked.length) seats.push(engine.seat(soon));
    seats.forEach((seat, at) => (at < asked.length ? seat.want([asked[at]]) : seat.end()));
    keep();
    delete document.documentElement.dataset.done;
    soon();
  }

  function stop() {
    seats.forEach((seat) => seat.end());
    asked = asked.map((one) => (one && engine.answer(one) ? one : null));
    soon();
  }

  // What is shown is of another job than what is written.
  function stale() {
    say("The job has changed. Press Run or Ctrl+Enter to update the results.");
  }

  function say(text) { if (byId("status").textContent !== text) byId("status").textContent = text; }

  function soon() { pending ||= requestAnimationFrame(() => { pending = 0; draw(); }); }

  // --- results ---

  function buildResults() {
    const place = byId("figures");
    parts.tables = element("div");
    parts.direction = build({ name: "way", label: "Of", options: [["read", "Reads"], ["write", "Writes"]] }, look, soon);
    parts.length = build({ name: "length", label: "Length of a bar", options: [["share", "Shares"], ["time", "Time"]] }, look, soon);
    parts.tails = element("div", { class: "plot", tabindex: "0", role: "group", "aria-label": "Latency by percentile. Chart; left and right arrow keys read its values." });
    parts.live = element("p", { class: "hidden", "aria-live": "polite" });
    parts.bars = element("div", { class: "bars" });
    place.append(parts.tables, element("div", { class: "choices" }, parts.direction.made),
      element("h3", {}, "Latency by percentile"), parts.tails, parts.live,
      element("p", { class: "note" }, "Each line ends where fewer than ten I/Os were slower: more I/Os (number_ios, runtime) reach further."),
      element("h3", {}, "Where the time goes"), element("div", { class: "choices" }, parts.length.made), parts.bars);
  }

  const waysOf = (one) => ["read", "write"].filter((way) => one?.[way]);

  function scrolling(name, made) {
    return element("div", { class: "scroll", tabindex: "0", role: "region", "aria-label": name }, made);
  }

  function tables() {
    const rows = setup.benches.flatMap(({ drive }, at) => waysOf(results(at)).map((way) =>
      [`${drive}, ${way}s`, ...COLUMNS.map(([, name]) => results(at)[way][name])]));
    const plain = (unit) => (value) => `${format.digits(value)}\u202f${unit}`;
    const about = setup.benches.map(({ drive }, at) => {
      const one = results(at);
      if (!one) return null;
      const { capacity_bytes: capacity, endurance_bytes: endurance, warranty_years: years, price_usd: price, price_date: when } = one.about;
      return [drive, one.about.name, capacity, endurance, years, price === null ? null : `$${format.digits(price)}${when ? ` (${when})` : ""}`,
        price === null ? null : price / (capacity / 1e12), one.watts, one.write_amplification, one.host_cores];
    }).filter(Boolean);
    const none = (text) => element("p", { class: "empty" }, text);
    const words = (value) => value;
    parts.tables.replaceChildren(
      rows.length ? scrolling("Figures", table.build({
        caption: "Results", head: ["Drive", ...COLUMNS.map(([label]) => label)], formats: [String, ...COLUMNS.map(([, , write]) => write)], rows,
      })) : none("…"),
      ...(about.length ? [scrolling("Costs", table.build({
        caption: "Costs. A dash: not published, or not modelled.",
        head: ["Drive", "Name", "Capacity", "Endurance", "Warranty", "Price", "Price per TB", "Mean power", "Write amplification", "Host cores"],
        formats: [words, words, bytes, bytes, plain("years"), words, (value) => `$${format.digits(value)}`, plain("W"), format.digits, format.digits], rows: about,
      }))] : []));
  }

  function notes() {
    const told = setup.benches.flatMap(({ drive }, at) => {
      const { problems, results: one } = answer(at) ?? {};
      const smaller = one && one.about.smaller > 1.05
        ? [["note", `${drive}: run at 1/${format.digits(one.about.smaller, 2)} of its capacity, so that its steady state is there at once. Rates of random writes may be some percent off the whole drive's.`]] : [];
      const unmoved = one?.about.note ? [["note", one.about.note]] : [];
      return [...(problems ?? []).map((text) => ["wrong", text]), ...smaller, ...unmoved, ...(one?.warnings ?? []).map((text) => ["note", `${drive}: ${text}`])];
    });
    const seen = new Set();
    const once = told.filter(([, text]) => !seen.has(text) && seen.add(text));
    byId("problems").replaceChildren(...once.map(([kind, text]) => (kind === "wrong"
      ? element("pre", { class: "wrong", role: "alert" }, text) : element("p", { class: "note" }, text))));
  }

  function view() {
    return {
      x: { kind: "nines", label: "Percentile of I/Os", name: "Percentile", format: format.percentile, range: [0, 99.999] },
      y: { kind: "log10", label: "Latency", format: format.microseconds },
      lines: setup.benches.map(({ drive }, at) => ({
        drive: at, name: drive, points: results(at)?.[look.way] ? PERCENTILES.map(([percent, name]) => [percent, results(at)[look.way][name]]) : [],
      })).filter(({ points }) => points.length),
      empty: "…",
    };
  }

  function draw() {
    const there = new Set(setup.benches.flatMap((_, at) => waysOf(results(at))));
    if (there.size && !there.has(look.way)) look.way = [...there][0];
    parts.direction.made.hidden = there.size < 2;
    parts.direction.sync();
    parts.length.sync();
    tables();
    notes();
    drawn?.destroy();
    drawn = plot.draw(parts.tails, view(), parts.live, () => {});
    parts.tails.drawn = drawn.series;
    anatomy.draw(parts.bars, { results: setup.benches.map((_, at) => results(at)) }, look.way, look.length === "share");
    kept();
    marks.repaint();
    const open = asked.filter((one) => one && !engine.answer(one)).length;
    const wrong = asked.filter((one) => one && engine.answer(one)?.problems).length;
    parts.stop.disabled = open === 0;
    if (open) return say(`Running on ${open} of ${asked.length}…`);
    if (!asked.length) say("Add a drive.");
    else if (asked.includes(null)) say("Stopped.");
    else say(wrong ? `${wrong} of ${asked.length} could not run: see below.` : "Done.");
    document.documentElement.dataset.done ??= String(Math.round(performance.now() - began));
    return undefined;
  }

  // --- to keep ---

  const quoted = (word) => (/^[\w./=:,+%-]+$/.test(word) ? word : `'${word.replaceAll("'", "'\\''")}'`);

  function commandOf(at) {
    const { drive, toml, settings: set, host, state, seed } = asked[at].experiment;
    return ["drivelab", "run", "job.fio", toml === null ? drive : `./${drive}`, ...set.map(([option, value]) => `--${option}=${value}`),
      ...(results(at)?.about.set ?? []).map(([key, value]) => `--set=${key}=${value}`),
      `--host=${host}`, `--state=${state}`, `--seed=${seed}`].map(quoted).join(" ");
  }

  function save(name, text) {
    const link = element("a", { download: name });
    link.href = URL.createObjectURL(new Blob([text], { type: "text/plain" }));
    link.click();
    setTimeout(() => URL.revokeObjectURL(link.href), 1000);
  }

  // A text with what copies it and, under a name, what saves it.
  function keeping(title, name) {
    const text = element("pre", { tabindex: "0", "aria-label": title });
    const copy = button("Copy", async () => {
      try { await navigator.clipboard.writeText(text.textContent); copy.textContent = "Copied"; } catch { getSelection().selectAllChildren(text); }
      setTimeout(() => { copy.textContent = "Copy"; }, 2000);
    }, { "aria-label": `Copy: ${title}` });
    const saving = name ? [button("Save", () => save(name(), text.textContent), { "aria-label": `Save: ${title}` })] : [];
    return { text, made: element("div", { class: "keeping" }, element("h3", {}, title), element("div", { class: "choices" }, copy, ...saving), text) };
  }

  function buildKeep() {
    const place = byId("keep");
    parts.which = element("select", { id: "which" });
    parts.which.addEventListener("change", () => { look.kept = +parts.which.value; kept(); });
    parts.command = keeping("Command");
    parts.jobFile = keeping("Job file: job.fio", () => "job.fio");
    parts.toml = keeping("Drive or pool as TOML", () => fileOf(setup.benches[look.kept].drive));
    place.append(element("div", { class: "choices" }, field("Of", parts.which)), parts.command.made, parts.jobFile.made, parts.toml.made);
  }

  function kept() {
    if (look.kept >= setup.benches.length) look.kept = 0;
    parts.which.replaceChildren(...setup.benches.map(({ drive }, at) => element("option", { value: at }, drive)));
    parts.which.value = String(look.kept);
    const one = results(look.kept);
    const fill = ({ text }, content) => { if (text.textContent !== content) text.textContent = content; };
    // What broke off for want of memory runs on a machine.
    fill(parts.command, answer(look.kept) ? commandOf(look.kept) : "…");
    fill(parts.jobFile, answer(look.kept) ? asked[look.kept].experiment.job : setup.job);
    fill(parts.toml, one ? one.about.toml : setup.benches[look.kept]?.toml ?? "…");
  }

  // --- start ---

  theme.start();
  address.read();
  const sound = restore();
  buildBenches();
  buildJob();
  buildResults();
  buildKeep();
  show();
  run();
  if (!sound) parts.full.textContent = "The address of this page does not name its drives rightly: it may have been cut short.";
  theme.changed(soon);
  addEventListener("hashchange", () => { if (address.read()) { restore(); show(); run(); } });
  let width = innerWidth;
  addEventListener("resize", () => { if (innerWidth !== width) { width = innerWidth; soon(); } });
  addEventListener("beforeprint", theme.beginPrint);
  addEventListener("afterprint", theme.endPrint);
  document.documentElement.dataset.ready = "yes";
})();
