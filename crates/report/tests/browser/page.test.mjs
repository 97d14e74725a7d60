// The review page in headless Chromium: PAGE names the file, CHROMIUM the browser.
import assert from "node:assert/strict";
import { readFileSync } from "node:fs";
import { test } from "node:test";
import { pathToFileURL } from "node:url";
import { chapter, choose, contrast, figure, file, open, openPlain, pixels, review, series } from "./open.mjs";

test("opens from a file without errors and without asking the network", async () => {
  const { page, complaints, requests, close } = await open();
  assert.deepEqual(complaints, []);
  assert.deepEqual(requests, [pathToFileURL(file).href]);
  assert.equal(await page.title(), review.drives.map((drive) => drive.label).join(", ").replace(/, ([^,]*)$/, " and $1"));
  await close();
});

test("what a user wrote stays text", async () => {
  const { page, close } = await open();
  const trap = chapter("yours").points[0].name;
  assert.match(trap, /<\/script><img/);
  assert.equal(await page.locator("img").count(), 0);
  assert.ok((await page.locator("table.yours").textContent()).includes(trap.replace(/^yours\//, "")));
  await close();
});

// Every choice of every chart must change what is drawn, in the data or on the canvas.
test("every choice changes what is drawn", async () => {
  const { page, complaints, close } = await open();
  for (const chart of await page.locator("figure[data-chart]").all()) {
    const name = await chart.getAttribute("data-chart");
    const drawn = async () => (name === "anatomy"
      ? chart.locator(".bars").innerHTML()
      : chart.locator(".uplot canvas, .empty").first().evaluate((one) => one.toDataURL?.() ?? one.textContent));
    for (const input of await chart.locator("input[type=radio]").all()) {
      if (await input.isChecked()) continue;
      const was = await drawn();
      const group = await input.getAttribute("name");
      const back = chart.locator(`input[name="${group}"]:checked`);
      const backId = await back.getAttribute("id");
      const id = await input.getAttribute("id");
      await chart.locator(`label[for="${id}"]`).click();
      assert.ok(await input.isChecked(), `${id} is chosen`);
      assert.notEqual(await drawn(), was, `${name}: ${id} draws something else`);
      await chart.locator(`label[for="${backId}"]`).click();
      assert.equal(await drawn(), was, `${name}: ${backId} draws what it drew before`);
    }
    for (const select of await chart.locator("select").all()) {
      const was = await drawn();
      await select.selectOption({ index: 1 });
      assert.notEqual(await drawn(), was, `${name}: another workload`);
    }
  }
  assert.deepEqual(complaints, []);
  await close();
});

test("charts draw the review's figures", async () => {
  const { page, close } = await open();
  const { points: all } = chapter("queue-depth");
  const expected = (direction, of) => {
    const points = all.filter((point) => point.settings.direction === direction);
    return [
      points.map((point) => point.settings.queue_depth),
      ...review.drives.map((_, drive) => points.map((point) => of(point.results[drive][direction]))),
    ];
  };
  assert.deepEqual(JSON.parse(await series(page, "queue-depth")), expected("read", (f) => f.iops));
  await choose(page, "queue-depth", "Write");
  await choose(page, "queue-depth", "99th");
  assert.deepEqual(JSON.parse(await series(page, "queue-depth")), expected("write", (f) => f.latency.p99_us));
  await choose(page, "queue-depth", "Logarithmic");
  assert.deepEqual(JSON.parse(await series(page, "queue-depth")), expected("write", (f) => f.latency.p99_us));
  await close();
});

test("a percentile with too few samples is absent, and said so", async () => {
  const { page, close } = await open();
  await choose(page, "queue-depth", "99\\.999th");
  const [depths, ...lines] = JSON.parse(await series(page, "queue-depth"));
  const { points } = chapter("queue-depth");
  for (const [drive, line] of lines.entries()) {
    const long = points.filter(({ settings, results }) => settings.direction === "read" && results[drive].read.ios >= 1e6);
    assert.deepEqual(long.map(({ settings }) => settings.queue_depth), [1, 16, 64], "the review ran a million I/Os there, over all seeds");
    assert.deepEqual(depths.filter((_, at) => line[at] !== null), [1, 16, 64], "only the depths that ran a million I/Os");
  }
  assert.match(await figure(page, "queue-depth").locator(".note").textContent(), /^Too few samples for this percentile/);
  await close();
});

test("tables hold the data of their charts", async () => {
  const { page, close } = await open();
  for (const name of ["block-size", "queue-depth", "costs", "distribution", "anatomy", "sequential", "mix", "paced", "sustained"]) {
    await figure(page, name).locator("summary").first().click();
    await figure(page, name).locator("tbody tr").first().waitFor();
  }
  const { points: all } = chapter("queue-depth");
  const reads = all.filter((point) => point.settings.direction === "read");
  const values = () => figure(page, "queue-depth").locator("details").first().locator("tbody tr").evaluateAll((rows) =>
    rows.map((row) => [...row.cells].map((cell) => (cell.dataset.value === undefined ? null : +cell.dataset.value))));
  const expected = (points, way) => points.map((point) => [
    point.settings.queue_depth,
    ...point.results.flatMap((result) => {
      const { iops, mb_s, latency: l } = result[way];
      return [iops, mb_s, l.mean_us, l.p50_us, l.p99_us, l.p99_99_us, l.p99_999_us];
    }),
  ]);
  assert.deepEqual(await values(), expected(reads, "read"));
  // An open table follows the choice above it.
  await choose(page, "queue-depth", "Write");
  const writes = all.filter((point) => point.settings.direction === "write");
  assert.deepEqual(await values(), expected(writes, "write"));
  await close();
});

test("a table saves as CSV", async () => {
  const { page, close } = await open();
  await figure(page, "mix").locator("summary").first().click();
  const [download] = await Promise.all([
    page.waitForEvent("download"),
    figure(page, "mix").getByRole("button", { name: "Save as CSV" }).click(),
  ]);
  const lines = readFileSync(await download.path(), "utf8").trim().split("\n");
  assert.equal(lines.length, 12);
  assert.match(lines[0], /^Share of reads,/);
  await close();
});

test("works by keyboard", async () => {
  const { page, close } = await open();
  await page.keyboard.press("Tab");
  assert.equal(await page.evaluate(() => document.activeElement.className), "skip");
  const before = await series(page, "queue-depth");
  await figure(page, "queue-depth").locator("input[value=read]").focus();
  await page.keyboard.press("ArrowRight");
  assert.equal(await figure(page, "queue-depth").locator("input[value=write]").isChecked(), true);
  assert.notEqual(await series(page, "queue-depth"), before);
  const ring = await page.evaluate(() =>
    getComputedStyle(document.activeElement.nextElementSibling).outlineStyle);
  assert.equal(ring, "solid", "focus is visible");
  // Arrow keys read a chart's values aloud.
  await figure(page, "queue-depth").locator(".plot").focus();
  await page.keyboard.press("ArrowRight");
  await page.keyboard.press("ArrowRight");
  const spoken = await figure(page, "queue-depth").locator("[aria-live]").textContent();
  assert.match(spoken, /^Queue depth 2: /);
  for (const drive of review.drives) assert.ok(spoken.includes(drive.label));
  await figure(page, "queue-depth").locator("summary").first().focus();
  await page.keyboard.press("Enter");
  await figure(page, "queue-depth").locator("tbody tr").first().waitFor();
  await close();
});

test("every control and region has a name", async () => {
  const { page, close } = await open();
  const nameless = await page.evaluate(() => {
    const named = (one) => one.getAttribute("aria-label") || one.labels?.length || one.textContent.trim();
    return [...document.querySelectorAll("input, select, button, summary, [role=region], [role=group], a")]
      .filter((one) => !named(one)).map((one) => one.outerHTML);
  });
  assert.deepEqual(nameless, []);
  const groups = await page.locator("fieldset.choice").count();
  assert.equal(await page.locator("fieldset.choice > legend").count(), groups);
  await close();
});

test("follows the system's dark mode, and the reader's own choice before it", async () => {
  const light = await open();
  const dark = await open({ colorScheme: "dark" });
  const ground = (page) => page.evaluate(() => getComputedStyle(document.body).backgroundColor);
  const brightness = async (page) => (await ground(page)).match(/\d+/g).map(Number).reduce((a, b) => a + b) / 3;
  assert.ok(await brightness(light.page) > 200);
  assert.ok(await brightness(dark.page) < 60);
  assert.notEqual(await pixels(light.page, "queue-depth"), await pixels(dark.page, "queue-depth"), "charts follow");
  const drawnDark = await pixels(dark.page, "queue-depth");
  await dark.page.locator("label[for=theme-light]").click();
  assert.ok(await brightness(dark.page) > 200);
  assert.notEqual(await pixels(dark.page, "queue-depth"), drawnDark);
  await light.page.emulateMedia({ colorScheme: "dark" });
  assert.ok(await brightness(light.page) < 60, "a change of the system is followed while the page is open");
  await light.close();
  await dark.close();
});

// WCAG AA: 4.5:1 for text, 3:1 for lines.
test("colours stand out from their ground in both themes", async () => {
  for (const colorScheme of ["light", "dark"]) {
    const { page, close } = await open({ colorScheme });
    const ratios = await page.evaluate((contrast) => {
      const ratio = eval(contrast);
      const style = getComputedStyle(document.documentElement);
      const of = (name) => style.getPropertyValue(name).trim();
      const names = ["--ink", "--ink-soft", "--accent", ...[0, 1, 2, 3, 4, 5].map((n) => `--drive-${n}`)];
      return names.map((name) => [name, ratio(of(name), of("--paper"))]);
    }, contrast);
    for (const [name, ratio] of ratios) assert.ok(ratio >= 4.5, `${colorScheme} ${name}: ${ratio.toFixed(2)}`);
    await close();
  }
});

test("a narrow screen shows everything without scrolling sideways", async () => {
  const { page, complaints, close } = await open({ viewport: { width: 360, height: 740 } });
  const [wide, seen] = await page.evaluate(() => [document.documentElement.scrollWidth, innerWidth]);
  assert.ok(wide <= seen, `${wide} px on ${seen} px`);
  assert.deepEqual(complaints, []);
  await page.setViewportSize({ width: 1000, height: 800 });
  await page.waitForFunction(() => document.querySelector("figure[data-chart=mix] .uplot canvas").clientWidth > 700);
  await close();
});

test("every link of the contents is in view on a desktop, and can be scrolled to on a phone", async () => {
  for (const width of [1000, 1280, 1600]) {
    const { page, close } = await open({ viewport: { width, height: 900 } });
    const bar = await page.locator(".contents ol").boundingBox();
    for (const link of await page.locator(".contents a").all()) {
      const box = await link.boundingBox();
      assert.ok(box.x >= 0 && box.x + box.width <= bar.x + bar.width + 1, `${await link.textContent()} at ${width}`);
    }
    await close();
  }
  const { page, close } = await open({ viewport: { width: 390, height: 844 } });
  const [style, hides] = await page.locator(".contents ol").evaluate((list) => [getComputedStyle(list).scrollbarWidth, list.scrollWidth > list.clientWidth]);
  assert.ok(hides && style !== "none", `${style}`);
  await close();
});

test("the figures on the cards stand in rows, and names are on one line", async () => {
  for (const width of [768, 1280]) {
    const { page, close } = await open({ viewport: { width, height: 900 } });
    // A remark in brackets, as drives have that are slower when overwritten.
    const cards = await page.locator(".card").evaluateAll((all) => all.map((card) => [...card.querySelectorAll("dl > div")].map((row) => {
      const { top } = row.getBoundingClientRect();
      const name = row.querySelector("dt");
      return { top, name: name.textContent, lines: Math.round(name.getBoundingClientRect().height / parseFloat(getComputedStyle(name).lineHeight)) };
    })));
    const sideBySide = cards.filter(([first]) => first.top === cards[0][0].top);
    assert.ok(sideBySide.length > 1);
    for (const card of sideBySide) card.forEach((row, at) => assert.equal(row.top, cards[0][at].top, `${row.name} at ${width}`));
    for (const row of cards.flat()) assert.equal(row.lines, 1, `${row.name} at ${width}`);
    await close();
  }
});

test("nothing moves when a choice is made", async () => {
  const { page, close } = await open();
  const places = () => page.locator("section, figure").evaluateAll((all) => all.map((one) => one.getBoundingClientRect().height));
  const before = await places();
  for (const text of ["Write", "99\\.999th", "Logarithmic", "Read", "99th"]) await choose(page, "queue-depth", text);
  assert.deepEqual(await places(), before);
  await close();
});

test("prints light, without controls, on a few sheets", async () => {
  const { page, close } = await open({ colorScheme: "dark" });
  const onScreen = await pixels(page, "queue-depth");
  const pdf = await page.pdf({ format: "A4" });
  const sheets = pdf.toString("latin1").match(/\/Type\s*\/Page\b/g).length;
  assert.ok(sheets >= 4 && sheets <= 16, `${sheets} sheets`);
  await page.emulateMedia({ media: "print" });
  assert.equal(await page.locator(".contents").isVisible(), false);
  assert.equal(await page.locator("fieldset.theme").isVisible(), false);
  await page.evaluate(() => dispatchEvent(new Event("beforeprint")));
  assert.equal(await page.evaluate(() => getComputedStyle(document.body).backgroundColor), "rgb(255, 255, 255)");
  assert.notEqual(await pixels(page, "queue-depth"), onScreen, "charts are redrawn for paper");
  await page.evaluate(() => dispatchEvent(new Event("afterprint")));
  await page.emulateMedia({ media: "screen" });
  assert.ok(await page.evaluate(() => getComputedStyle(document.body).backgroundColor) !== "rgb(255, 255, 255)");
  await close();
});

test("without scripts the words are there", async () => {
  const { page, close } = await openPlain();
  assert.ok(await page.locator("dl.verdict dd").count() > 3);
  assert.ok(await page.locator("noscript").count() > 0);
  await close();
});

test("without scripts, a dark page prints dark ink on white", async () => {
  const { page, close } = await openPlain({ colorScheme: "dark" });
  await page.emulateMedia({ media: "print", colorScheme: "dark" });
  const title = page.locator("h1").first();
  assert.equal(await title.evaluate((one) => getComputedStyle(one).color), "rgb(28, 29, 32)");
  await close();
});

test("the vendored uPlot is the package's", () => {
  const vendored = new URL("../../src/page/vendor/uplot/", import.meta.url);
  const installed = new URL("./node_modules/uplot/", import.meta.url);
  for (const [mine, theirs] of [
    ["uPlot.iife.min.js", "dist/uPlot.iife.min.js"], ["uPlot.min.css", "dist/uPlot.min.css"], ["LICENSE", "LICENSE"],
  ]) {
    assert.deepEqual(readFileSync(new URL(mine, vendored)), readFileSync(new URL(theirs, installed)), mine);
  }
});
