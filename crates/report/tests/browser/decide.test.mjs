// Pages of decisions on a phone, between, and on a desktop: every name and every value of a chart is on the screen, whole, none over
// another, in letters of a size that is read; without scripts as with them.
import assert from "node:assert/strict";
import { test } from "node:test";
import { openAt, review as known } from "./open.mjs";

const WIDTHS = [360, 390, 768, 1000, 1280];

// The charts that are shown, and their texts as they are on the screen.
const shown = (page) => page.evaluate(() => {
  const rect = (one) => { const { left, right, top, bottom } = one.getBoundingClientRect(); return { left, right, top, bottom }; };
  return [...document.querySelectorAll("figure")].map((figure) => {
    const charts = [...figure.querySelectorAll("svg.chart")].filter((svg) => svg.getBoundingClientRect().width > 0);
    return charts.map((svg) => ({
      box: rect(svg), letters: 12 * svg.getBoundingClientRect().width / svg.viewBox.baseVal.width,
      texts: [...svg.querySelectorAll("text")].map((one) => ({
        kind: one.getAttribute("class") ?? "", box: rect(one), whole: one.querySelector("title")?.textContent,
        text: [...one.childNodes].filter((node) => node.nodeType === 3).map((node) => node.data).join(""),
      })),
    }));
  });
});

const over = (a, b) => Math.min(a.right, b.right) - Math.max(a.left, b.left) > 1 && Math.min(a.bottom, b.bottom) - Math.max(a.top, b.top) > 3;

for (const width of WIDTHS) {
  test(`charts are whole and readable at ${width} pixels`, async () => {
    for (const javaScriptEnabled of [true, false]) {
      const { page, close } = await openAt({ viewport: { width, height: 844 }, javaScriptEnabled });
      const wide = await page.evaluate(() => document.documentElement.scrollWidth);
      assert.ok(wide <= width, `${wide} px`);
      const figures = await shown(page);
      assert.equal(figures.length, known.figures);
      for (const charts of figures) {
        assert.equal(charts.length, 1, "a chart is shown once");
        const [{ box, letters, texts }] = charts;
        assert.ok(letters >= 9.5 && letters <= 18, `letters of ${letters} px`);
        assert.ok(box.left >= 0 && box.right <= width, JSON.stringify(box));
        for (const { box: one, text } of texts) {
          const what = `"${text}" ${JSON.stringify(one)} in ${JSON.stringify(box)}`;
          assert.ok(one.left >= box.left - 1 && one.right <= box.right + 1, what);
          assert.ok(one.top >= box.top - 2 && one.bottom <= box.bottom + 2, what);
        }
        const words = texts.filter(({ kind }) => /name|of|value|soft/.test(kind) && !/rotate/.test(kind));
        words.forEach((one, at) => words.slice(at + 1).forEach((other) => {
          assert.ok(!over(one.box, other.box), `"${one.text}" over "${other.text}" at ${width}`);
        }));
      }
      await close();
    }
  });
}

test("every name is there", async () => {
  for (const width of [390, 1280]) {
    const { page, close } = await openAt({ viewport: { width, height: 844 } });
    const figures = await shown(page);
    const texts = figures.flatMap(([chart]) => chart.texts);
    const wholes = texts.map(({ whole }) => whole);
    for (const name of known.names) assert.ok(wholes.includes(name), `${name} at ${width}`);
    const rows = texts.filter(({ kind }) => kind === "of").map(({ text }) => text).join(" ");
    for (const row of known.rows) assert.ok(rows.includes(row), `"${row}" in "${rows}"`);
    const values = figures.map(([chart]) => chart.texts.filter(({ kind }) => kind.includes("value")).length);
    if (known.rows.length > 0) assert.ok(values[0] >= known.rows.length, `${values}`);
    await close();
  }
});

test("the command can be copied, the table takes focus, drives without a figure are named", async () => {
  const { page, close } = await openAt({ viewport: { width: 1280, height: 844 } });
  const complaints = [];
  page.on("pageerror", (error) => complaints.push(error.message));
  const button = page.locator("button.copy");
  assert.equal(await button.isVisible(), true);
  await button.click();
  await page.waitForFunction(() => /Copied|Selected/.test(document.querySelector("button.copy").textContent));
  if (await button.textContent() === "Selected") {
    assert.equal(await page.evaluate(() => getSelection().toString()), await page.locator(".again").textContent());
  }
  const table = page.getByRole("region", { name: "Table" });
  await table.focus();
  assert.equal(await table.evaluate((one) => document.activeElement === one), true);
  for (const name of known.unknown ?? []) assert.ok((await page.locator("figcaption").first().textContent()).includes(name), name);
  const lines = await page.locator("svg.chart:visible").first().locator("line.limit").count();
  assert.ok(lines >= (known.limits ?? 0), `${lines} limits`);
  assert.deepEqual(complaints, []);
  await close();
  const plain = await openAt({ javaScriptEnabled: false });
  assert.equal(await plain.page.locator("button.copy").isVisible(), false);
  await plain.close();
});
