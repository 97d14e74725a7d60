// Pages of decisions on a phone, between, and on a desktop: every name and every value of a chart is on the screen, whole, none over
// another, in letters of a size that is read; without scripts as with them.
import assert from "node:assert/strict";
import { test } from "node:test";
import { contrast, openAt, review as known } from "./open.mjs";

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

async function openWatched(options) {
  const opened = await openAt(options);
  const complaints = [];
  opened.page.on("pageerror", (error) => complaints.push(error.message));
  opened.page.on("console", (message) => complaints.push(message.text()));
  return { ...opened, complaints };
}

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
  for (const name of known.tables) {
    const region = page.getByRole("region", { name, exact: true });
    await region.focus();
    assert.equal(await region.evaluate((one) => document.activeElement === one), true);
    const table = region.getByRole("table", { name, exact: true });
    // Each cell of figures has a header of its column and of its row.
    const [heads, rows] = await table.evaluate((one) => [
      [...one.tHead.rows[0].cells].map((cell) => [cell.localName, cell.scope, cell.textContent]),
      [...one.tBodies[0].rows].map((row) => [...row.cells].map((cell) => [cell.localName, cell.scope, cell.textContent])),
    ]);
    assert.ok(heads.every(([tag, scope, text]) => tag === "th" && scope === "col" && text !== ""), JSON.stringify(heads));
    assert.ok(rows.length > 0);
    for (const row of rows) {
      assert.equal(row.length, heads.length);
      assert.deepEqual(row[0].slice(0, 2), ["th", "row"]);
      assert.ok(row.every(([, , text]) => !text.includes("!")), JSON.stringify(row));
    }
  }
  assert.equal(await page.locator("main pre").count(), 0);
  for (const name of known.unknown ?? []) assert.ok((await page.locator("figcaption").first().textContent()).includes(name), name);
  const lines = await page.locator("svg.chart:visible").evaluateAll((all) => all.map((svg) => svg.querySelectorAll("line.limit").length));
  assert.deepEqual(lines, known.limits, "every chart has its limits");
  assert.deepEqual(complaints, []);
  await close();
  const plain = await openAt({ javaScriptEnabled: false });
  assert.equal(await plain.page.locator("button.copy").isVisible(), false);
  await plain.close();
});

// A table is as wide as its container at 1280 pixels; on a phone it scrolls there, below a header and beside names that stay.
test("tables fit a desktop, and scroll in their own box on a phone", async () => {
  for (const width of [375, 1280]) {
    const { page, close } = await openAt({ viewport: { width, height: 844 } });
    assert.ok(await page.evaluate(() => document.documentElement.scrollWidth) <= width);
    for (const box of await page.locator(".answers").all()) {
      const size = await box.evaluate((one) => ({ own: one.scrollWidth, room: one.clientWidth }));
      if (width === 1280) assert.ok(size.own <= size.room, `${size.own} of ${size.room} px`);
      const [name, head] = await box.evaluate((one) => {
        one.scrollLeft = 1000;
        one.scrollTop = 1000;
        const frame = one.getBoundingClientRect();
        const last = [...one.querySelectorAll("tbody tr")].at(-1).cells[0].getBoundingClientRect();
        const header = one.querySelector("thead th").getBoundingClientRect();
        return [last.left - frame.left, one.classList.contains("tall") ? header.top - frame.top : 0];
      });
      assert.ok(Math.abs(name) < 2 && Math.abs(head) < 2, `names ${name} px, header ${head} px`);
      const names = await box.evaluate((one) => one.querySelector("tbody th").getBoundingClientRect().width / one.clientWidth);
      assert.ok(names <= 0.5, `names take ${names} of the width`);
    }
    await close();
  }
});

test("the pointer and the arrow keys read the points, with units", async () => {
  const { page, complaints, close } = await openWatched({ viewport: { width: 1280, height: 844 } });
  const drawing = page.locator(".drawing").first();
  const tip = drawing.locator(".tip");
  assert.equal(await tip.isVisible(), false);
  await drawing.focus();
  await page.keyboard.press("ArrowRight");
  const first = await tip.innerText();
  assert.match(first, known.tip ? new RegExp(known.tip) : /\d/);
  const spoken = await page.locator("figure [aria-live]").first().textContent();
  assert.equal(spoken.split(", ").length, first.split("\n").length, spoken);
  await page.keyboard.press("ArrowRight");
  await page.keyboard.press("ArrowDown");
  assert.notEqual(await tip.innerText(), first);
  await page.keyboard.press("Escape");
  assert.equal(await tip.isVisible(), false);
  const mark = page.locator("svg.broad circle:not(.named), svg.broad rect.bar").first();
  // The chart is higher than the window. A pointer that arrives before the scrolling has ended points at another place.
  await mark.scrollIntoViewIfNeeded();
  await page.evaluate(() => new Promise((done) => requestAnimationFrame(() => requestAnimationFrame(done))));
  await mark.hover({ force: true });
  assert.equal(await tip.innerText(), first);
  const inside = await tip.evaluate((one) => {
    const [own, outer] = [one.getBoundingClientRect(), one.parentElement.getBoundingClientRect()];
    return own.left >= outer.left - 1 && own.right <= outer.right + 1;
  });
  assert.ok(inside);
  assert.deepEqual(complaints, []);
  await close();
});

test("what a short run is of is hollow, named and in the legend", async () => {
  if (!known.screened) return;
  const { page, close } = await openAt({ viewport: { width: 1280, height: 844 } });
  const chart = page.locator("figure").first();
  assert.equal(await chart.locator("svg.broad circle.hollow:not(.named)").count(), known.screened.length);
  const caption = await page.locator("figcaption").first().textContent();
  for (const name of known.screened) assert.ok(caption.includes(name), name);
  assert.deepEqual(await chart.locator("ul.parts li").allInnerTexts(), ["full run", "short screening run"]);
  const fill = (which) => page.locator(`svg.broad circle.${which}`).first().evaluate((one) => getComputedStyle(one).fill);
  assert.notEqual(await fill("hollow"), await fill("full"));
  await close();
});

test("text and limits stand out from the paper in both themes", async () => {
  for (const colorScheme of ["light", "dark"]) {
    const { page, close } = await openAt({ viewport: { width: 1280, height: 844 }, colorScheme });
    const low = await page.evaluate(`(() => {
      const ratio = ${contrast};
      const paper = getComputedStyle(document.body).backgroundColor;
      const all = [];
      for (const one of document.querySelectorAll("p, figcaption, .answers th, .answers td, .answers .range, .answers .missed, .chart text:not(.on), .chart .limit")) {
        const style = getComputedStyle(one);
        const colour = one.matches(".limit") ? style.stroke : one.matches("text") ? style.fill : style.color;
        const found = ratio(colour, paper);
        if (found < (one.matches(".limit") ? 3 : 4.5)) all.push([one.className.baseVal ?? one.className, found]);
      }
      return all;
    })()`);
    assert.deepEqual(low, [], colorScheme);
    await close();
  }
});
