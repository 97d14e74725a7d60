// The chapter that simulates, in headless Chromium.
import assert from "node:assert/strict";
import { writeFileSync } from "node:fs";
import { dirname, join } from "node:path";
import { test } from "node:test";
import { pathToFileURL } from "node:url";
import { file, open, openPlain } from "./open.mjs";

const DONE = ".what-if[data-done]";
const settled = (page) => page.waitForSelector(DONE, { timeout: 120_000 });
const slide = (page, name, to) => page.locator(`#what-if-${name}`).evaluate((input, value) => {
  input.value = value;
  input.dispatchEvent(new Event("input"));
}, to);
const pick = (page, text) => page.locator(".what-if .choices").first().locator("label", { hasText: new RegExp(`^${text}$`) }).click();
// By their cells: `innerText` of what is scrolled out of sight is another text.
const rows = (page) => page.locator("table.simulated tbody tr").evaluateAll((all) =>
  all.map((row) => [...row.cells].map((cell) => cell.textContent)));
const drawn = (page) => page.locator(".what-if .plot").evaluate((host) => JSON.stringify(host.drawn));

async function opened(options, hash) {
  const made = await open(options, hash);
  await made.page.locator("#what-if h2").scrollIntoViewIfNeeded();
  await settled(made.page);
  return made;
}

test("every control moves figures and chart, and answers are kept for the native engine", async () => {
  const { page, complaints, requests, close } = await opened();
  const steps = [
    () => slide(page, "depth", 6), () => slide(page, "bs", 5), () => pick(page, "Random write"), () => slide(page, "unused", 20),
    () => slide(page, "watts", 3), () => pick(page, "Random mix"), () => slide(page, "reads", 6),
    () => page.locator(".what-if select").first().selectOption("xeon-2017"), () => pick(page, "2,000"),
  ];
  for (const [at, step] of steps.entries()) {
    const before = [await rows(page), await drawn(page)];
    await step();
    await settled(page);
    assert.notDeepEqual(await rows(page), before[0], `step ${at}: figures`);
    // The chart is over the queue depth, so its choice changes the figures only.
    if (at > 0) assert.notEqual(await drawn(page), before[1], `step ${at}: chart`);
  }
  for (const text of ["Sequential read", "Sequential write"]) {
    await pick(page, text);
    await settled(page);
  }
  const commands = (await page.locator(".what-if pre").textContent()).split("\n");
  const said = await page.evaluate("engine.said()");
  writeFileSync(join(dirname(file), "said.json"), JSON.stringify([said, commands]));
  assert.deepEqual(complaints, []);
  assert.deepEqual(requests.filter((one) => !one.startsWith("blob:")), [pathToFileURL(file).href]);
  await close();
});

test("a coarse answer comes first, says so, and is replaced by the whole run", async () => {
  const { page, close } = await opened();
  const known = await page.evaluate("engine.said().length");
  await page.evaluate(() => {
    globalThis.seen = [];
    const box = document.querySelector(".what-if");
    new MutationObserver(() => {
      const rows = box.querySelectorAll("table.simulated tbody tr.coarse b").length;
      globalThis.seen.push([box.classList.contains("coarse"), box.querySelector(".mark").textContent, rows > 0, box.dataset.done !== undefined]);
    }).observe(box, { subtree: true, childList: true, attributes: true });
  });
  await pick(page, "Random write");
  await settled(page);
  const seen = await page.evaluate("seen");
  const coarse = seen.findIndex(([mark, words, rows]) => mark && words.startsWith("First answer, from 500 I/Os") && rows);
  assert.ok(coarse >= 0, JSON.stringify(seen.slice(0, 5)));
  assert.ok(seen.slice(0, coarse).every((one) => !one[3] || !one[0]), "no whole answer before it");
  const last = seen.at(-1);
  assert.deepEqual([last[0], last[1], last[2]], [false, "Runs of 20,000 I/Os.", false]);
  // Of each drive, in the order in which they came.
  const said = (await page.evaluate("engine.said()")).slice(known).map(([question]) => JSON.parse(question));
  for (const drive of new Set(said.map((one) => one.drive))) {
    const ios = said.filter((one) => one.drive === drive).map(({ options }) => {
      const of = (name) => +(options.find((option) => option.startsWith(`--${name}=`))?.split("=")[1] ?? 1);
      return of("number_ios") * of("numjobs");
    });
    assert.ok(ios.slice(0, 9).every((count) => count < 600), `${drive}: ${ios}`);
    assert.ok(ios.slice(9).every((count) => count >= 20000), `${drive}: ${ios}`);
  }
  assert.match(await page.locator(".what-if pre").textContent(), /--number_ios=2500/);
  await close();
});

test("reads or writes are chosen of a mix only, and rings are told of where there are some", async () => {
  const { page, close } = await opened();
  const ways = page.locator(".what-if fieldset", { hasText: "Of a mix" });
  const legend = () => page.locator(".what-if .note").filter({ hasText: "compared with" }).first().textContent();
  assert.equal(await ways.isVisible(), false);
  await pick(page, "Random mix");
  await settled(page);
  assert.equal(await ways.isVisible(), true);
  assert.match(await legend(), /^Rings, and the changes in the table: compared with/);
  await pick(page, "Random write");
  await settled(page);
  assert.equal(await ways.isVisible(), false);
  assert.match(await legend(), /^Changes in the table: compared with/);
  await close();
});

test("a link shows the same", async () => {
  const first = await opened();
  await pick(first.page, "Random write");
  await slide(first.page, "depth", 5);
  await first.page.getByRole("button", { name: "Compare with this" }).click();
  await slide(first.page, "unused", 10);
  await settled(first.page);
  const [hash, figures, chart] = [await first.page.evaluate("location.hash"), await rows(first.page), await drawn(first.page)];
  await first.close();
  const second = await opened({}, hash);
  assert.deepEqual(await rows(second.page), figures);
  assert.equal(await drawn(second.page), chart);
  assert.equal(await second.page.evaluate("location.hash"), hash);
  await second.page.getByRole("button", { name: "Start over" }).click();
  await settled(second.page);
  assert.notDeepEqual(await rows(second.page), figures);
  await second.close();
});

test("the page stays responsive while it simulates", async () => {
  const { page, close } = await opened();
  await page.evaluate(() => {
    globalThis.ticks = 0;
    const tick = () => { globalThis.ticks += 1; requestAnimationFrame(tick); };
    requestAnimationFrame(tick);
  });
  await pick(page, "Random mix");
  await pick(page, "200,000");
  await page.waitForTimeout(50);
  const before = await page.evaluate("ticks");
  await page.waitForTimeout(1000);
  const during = (await page.evaluate("ticks")) - before;
  assert.equal(await page.locator(DONE).count(), 0, "it was busy all the time");
  assert.ok(during >= 10, `${during} frames in a second`);
  // Another choice need not wait for the long runs.
  await pick(page, "2,000");
  await settled(page);
  await close();
});

test("works by keyboard, on a phone and in the dark", async () => {
  const { page, complaints, close } = await opened({ viewport: { width: 360, height: 740 }, colorScheme: "dark" });
  const before = await rows(page);
  await page.locator("#what-if-depth").focus();
  await page.keyboard.press("ArrowRight");
  await settled(page);
  assert.notDeepEqual(await rows(page), before);
  const [wide, seen] = await page.evaluate(() => [document.documentElement.scrollWidth, innerWidth]);
  assert.ok(wide <= seen, `${wide} px on ${seen} px`);
  const nameless = await page.evaluate(() => [...document.querySelectorAll(".what-if input, .what-if select, .what-if button, .what-if [role]")]
    .filter((one) => !(one.getAttribute("aria-label") || one.labels?.length || one.textContent.trim())).map((one) => one.outerHTML));
  assert.deepEqual(nameless, []);
  assert.deepEqual(complaints, []);
  await close();
});

test("without WebAssembly the rest of the page is as ever, and the chapter says why", async () => {
  const context = await open();
  const { page, complaints } = context;
  await page.addInitScript(() => { delete globalThis.WebAssembly; });
  await page.reload();
  await page.waitForSelector("html[data-ready=yes]");
  await page.locator("#what-if h2").scrollIntoViewIfNeeded();
  await page.waitForFunction(() => document.querySelector("table.simulated")?.textContent.includes("cannot run the model"));
  assert.ok(await page.locator("figure[data-chart] .uplot canvas").count() > 3);
  assert.deepEqual(complaints, []);
  await context.close();
});

test("without scripts it says that it needs them", async () => {
  const { page, close } = await openPlain();
  assert.match(await page.locator("#what-if").textContent(), /needs scripts/);
  await close();
});
