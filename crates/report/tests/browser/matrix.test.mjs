// The table of every block size with every mix of reads and writes, which SNIA's suite has: its figures are the data's, its colours go
// with them on one scale for all drives, choices and hidden drives are followed, and its text is read on its ground.
import assert from "node:assert/strict";
import { readFileSync } from "node:fs";
import { test } from "node:test";
import { chapter, choose, contrast, figure, open, review } from "./open.mjs";

const NAME = "snia-matrix";
const { points } = chapter("snia-iops");

// A cell's figure out of the data: rates add up, means weigh by I/Os.
function expected(at, metric, count) {
  const of = { iops: (f) => f.iops, mb_s: (f) => f.mb_s, mean: (f) => f.latency.mean_us }[metric];
  const sides = [["read", "Reads"], ["write", "Writes"]].filter(([, label]) => count === "All" || count === label);
  return ({ results }) => {
    const found = sides.map(([way]) => results[at]?.[way]).filter(Boolean);
    if (found.length === 0) return null;
    const weights = found.map((f) => (metric === "mean" && found.length > 1 ? f.ios : 1));
    const sum = found.reduce((all, f, index) => all + of(f) * weights[index], 0);
    return metric === "mean" && found.length > 1 ? sum / weights.reduce((a, b) => a + b) : sum;
  };
}

// Each table: its drive, the heads and, by row, texts and strengths of colour.
const tables = (page) => figure(page, NAME).locator(".heat table").evaluateAll((all) => all.map((one) => ({
  drive: one.caption.textContent.trim(), across: [...one.tHead.rows[0].cells].slice(1).map((cell) => cell.textContent),
  rows: [...one.tBodies[0].rows].map((row) => ({
    name: row.cells[0].textContent, texts: [...row.cells].slice(1).map((cell) => cell.textContent),
    heats: [...row.cells].slice(1).map((cell) => parseFloat(cell.style.getPropertyValue("--heat"))),
  })),
})));

const LABELS = { iops: "IOPS", mb_s: "MB/s", mean: "Mean" };
const sizes = [...new Set(points.map(({ settings }) => settings.block_bytes))].sort((a, b) => a - b);
const profiles = [...new Set(points.map(({ settings }) => settings.profile))];
const at = (bytes, profile) => points.find(({ settings }) => settings.block_bytes === bytes && settings.profile === profile);

test("a table for each drive has the data's figures, whatever is chosen", async () => {
  const { page, complaints, close } = await open();
  for (const [metric, label] of Object.entries(LABELS)) {
    for (const count of ["All", "Reads", "Writes"]) {
      await choose(page, NAME, label);
      await choose(page, NAME, count);
      const found = await tables(page);
      assert.deepEqual(found.map(({ drive }) => drive), review.drives.map(({ label: name }) => name));
      for (const [drive, one] of found.entries()) {
        assert.deepEqual(one.across, profiles);
        const values = sizes.map((bytes) => profiles.map((profile) => expected(drive, metric, count)(at(bytes, profile))));
        const written = await page.evaluate(([name, rows]) => rows.map((row) => row.map((value) => (value > 0 ? data.metrics[name].format(value) : "–"))), [metric, values]);
        assert.deepEqual(one.rows.map(({ texts }) => texts), written, `${label} of ${count}`);
        assert.deepEqual(one.rows.map(({ name }) => name), await page.evaluate((all) => all.map(format.bytes), sizes));
      }
    }
  }
  // What a drive has no figure for stands as a dash.
  assert.ok((await tables(page)).some(({ rows }) => rows.some(({ texts }) => texts.includes("–"))));
  assert.deepEqual(complaints, []);
  await close();
});

test("the greater a figure, the stronger its colour, on one scale for all drives", async () => {
  const { page, close } = await open();
  await choose(page, NAME, "IOPS");
  await choose(page, NAME, "All");
  const cells = (await tables(page)).flatMap(({ rows }, drive) => rows.flatMap(({ heats }, row) => heats.map((heat, column) => ({
    heat, value: expected(drive, "iops", "All")(at(sizes[row], profiles[column])),
  }))));
  const known = cells.filter(({ value }) => value > 0).sort((a, b) => a.value - b.value);
  assert.deepEqual([known[0].heat, known.at(-1).heat], [4, 50]);
  const [least, most] = [known[0].value, known.at(-1).value].map(Math.log);
  for (const { heat, value } of known) {
    const share = (Math.log(value) - least) / (most - least);
    assert.ok(Math.abs(heat - (4 + 46 * share)) <= 0.51, `${value}: ${heat}`);
  }
  for (const { heat } of cells.filter(({ value }) => !(value > 0))) assert.ok(Number.isNaN(heat));
  await close();
});

test("a hidden drive has no table, and its figures no part in the scale", async () => {
  const { page, close } = await open();
  await page.locator(".drive-box", { hasText: review.drives[0].label }).click();
  const found = await tables(page);
  assert.deepEqual(found.map(({ drive }) => drive), review.drives.slice(1).map(({ label }) => label));
  const heats = found.flatMap(({ rows }) => rows.flatMap((row) => row.heats)).filter((heat) => heat > 0);
  assert.deepEqual([Math.min(...heats), Math.max(...heats)], [4, 50]);
  await close();
});

test("its data saves as CSV, a line for each cell", async () => {
  const { page, close } = await open();
  await figure(page, NAME).locator("summary").first().click();
  const [download] = await Promise.all([
    page.waitForEvent("download"), figure(page, NAME).getByRole("button", { name: "Save as CSV" }).click(),
  ]);
  const lines = readFileSync(await download.path(), "utf8").trim().split("\n");
  assert.match(lines[0], /^Drive,Block size,Reads\/writes,IOPS,/);
  assert.equal(lines.length, 1 + review.drives.length * points.length);
  await close();
});

test("figures are read on their ground in both themes, and a phone shows every column", async () => {
  for (const colorScheme of ["light", "dark"]) {
    const { page, close } = await open({ viewport: { width: 390, height: 844 }, colorScheme });
    const seen = await page.evaluate(({ contrast, name }) => {
      const ratio = eval(contrast);
      const cells = [...document.querySelectorAll(`figure[data-chart=${name}] .heat td`)];
      const ratios = cells.map((cell) => { const style = getComputedStyle(cell); return ratio(style.color, style.backgroundColor); });
      const boxes = [...document.querySelectorAll(".heat")].map((one) => [one.scrollWidth, one.clientWidth]);
      return { least: Math.min(...ratios), boxes, wide: document.documentElement.scrollWidth };
    }, { contrast, name: NAME });
    assert.ok(seen.least >= 4.5, `${colorScheme}: ${seen.least.toFixed(2)}`);
    assert.ok(seen.wide <= 390, `${seen.wide} px`);
    for (const [inner, outer] of seen.boxes) assert.ok(inner <= outer, `${inner} px in ${outer} px`);
    await close();
  }
});
