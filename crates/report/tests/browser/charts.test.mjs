// What a reader does with the charts: the box under the pointer, zoom, hiding drives, the line to drag, the address,
// paper; on a desktop and on a phone.
import assert from "node:assert/strict";
import { createHash } from "node:crypto";
import { test } from "node:test";
import { chapter, choose, contrast, figure, names, open, pixels, review, series } from "./open.mjs";

const PHONE = { viewport: { width: 390, height: 844 }, hasTouch: true };
const inside = (inner, outer) => inner.left >= outer.left - 0.5 && inner.right <= outer.right + 0.5
  && inner.top >= outer.top - 0.5 && inner.bottom <= outer.bottom + 0.5;
const over = (page, name) => figure(page, name).locator(".u-over");

async function hover(page, name, share, y = 100) {
  const box = await over(page, name).boundingBox();
  await page.mouse.move(box.x + box.width * share, box.y + y);
}

// The box under the pointer as it is on the screen.
const tipOf = (page, name) => figure(page, name).evaluate((chart) => {
  const rect = (one) => { const { left, right, top, bottom, width, height } = one.getBoundingClientRect(); return { left, right, top, bottom, width, height }; };
  const tip = chart.querySelector(".tip");
  return {
    hidden: tip.hidden, box: rect(tip), plot: rect(chart.querySelector(".plot")), screen: document.documentElement.clientWidth,
    swatches: [...tip.querySelectorAll("canvas")].map(rect), values: [...tip.querySelectorAll("b")].map(rect),
    rows: [...tip.querySelectorAll(".tip-row:not(.soft)")].map((row) => [row.querySelector("span").textContent, row.querySelector("b").textContent]),
    head: tip.querySelector(".tip-head")?.textContent,
  };
});

for (const [where, options] of [["desktop", {}], ["phone", PHONE]]) {
  test(`the box under the pointer is whole and inside every chart: ${where}`, async () => {
    const { page, complaints, close } = await open(options);
    for (const name of await names(page)) {
      if (name === "anatomy") continue;
      await over(page, name).scrollIntoViewIfNeeded();
      for (const share of [0.02, 0.3, 0.6, 0.98]) {
        await hover(page, name, share);
        const tip = await tipOf(page, name);
        const at = `${where}, ${name} at ${share}`;
        assert.equal(tip.hidden, false, `${at}: it is there`);
        assert.ok(inside(tip.box, tip.plot), `${at}: ${JSON.stringify(tip.box)} in ${JSON.stringify(tip.plot)}`);
        assert.ok(tip.box.left >= 0 && tip.box.right <= tip.screen, `${at}: on the screen`);
        assert.ok(tip.box.height < 250, `${at}: ${tip.box.height} px high`);
        assert.ok(tip.swatches.length > 0 && tip.swatches.length >= tip.rows.length, at);
        for (const swatch of tip.swatches) assert.deepEqual([swatch.width, swatch.height], [34, 12], at);
        for (const part of [...tip.swatches, ...tip.values]) assert.ok(inside(part, tip.box), `${at}: a value inside the box`);
      }
    }
    assert.deepEqual(complaints, []);
    await close();
  });
}

test("the box under the pointer says what the chart has there", async () => {
  const { page, close } = await open();
  await over(page, "queue-depth").scrollIntoViewIfNeeded();
  await hover(page, "queue-depth", 0.255);
  const tip = await tipOf(page, "queue-depth");
  const depth = +tip.head.match(/^Queue depth (\d+)$/)[1];
  const point = chapter("queue-depth").points.find(({ settings }) => settings.direction === "read" && settings.queue_depth === depth);
  const expected = review.drives.map((drive, at) => [drive.label, point.results[at].read.iops, point.results[at].read.across_seeds?.iops])
    .sort((a, b) => b[1] - a[1]);
  // With what the seeds span, where they differ in what is shown.
  const written = await page.evaluate((all) => all.map(([name, iops, ends]) => {
    const [low, high] = (ends ?? []).map(format.count);
    return [name, format.count(iops) + (low === high ? "" : ` (${low} to ${high})`)];
  }), expected);
  assert.deepEqual(tip.rows, written);
  await close();
});

test("published figures stand on their charts, with their source", async () => {
  const { page, close } = await open();
  const [like, beyond] = review.published;
  const chart = figure(page, like.chapter);
  await over(page, like.chapter).scrollIntoViewIfNeeded();
  // Under the pointer, at its own depth and height.
  const [depths] = JSON.parse(await series(page, like.chapter));
  const span = depths.at(-1) - depths[0];
  const share = ((like.settings.queue_depth - depths[0]) / span + 0.015) / 1.03;
  const box = await over(page, like.chapter).boundingBox();
  let seen = "";
  for (let y = 4; y < box.height && !seen.includes(like.row); y += 12) {
    await page.mouse.move(box.x + box.width * share, box.y + y);
    seen = await chart.locator(".tip").textContent();
  }
  assert.ok(seen.includes(`${like.row}, published: ${like.conditions}`), seen);
  const details = chart.locator("details", { hasText: "Published figures on this chart" });
  await details.locator("summary").click();
  await details.locator("tbody tr").first().waitFor();
  const rows = await details.locator("tbody tr").evaluateAll((all) => all.map((row) => [...row.cells].map((cell) => cell.textContent)));
  assert.equal(rows.length, 2);
  assert.equal(rows[0][0], like.row);
  assert.equal(rows[0][6], like.source);
  assert.equal(rows[1][5], beyond.differs.join(", "), "what was otherwise is said");
  // Of a load of one direction that is all of it, where a chart counts both together; of a mix it is not.
  const whole = (figures) => page.evaluate((settings) => {
    const [one] = data.review.published;
    Object.assign(one.settings, settings);
    return published.points(one.chapter, {}, "total", one.metric, "queue_depth").map((it) => it.one.row);
  }, figures);
  assert.ok((await whole({ direction: like.of })).includes(like.row));
  assert.ok(!(await whole({ direction: "mix" })).includes(like.row));
  await whole({ direction: like.of });
  // No published figure is about writes.
  await choose(page, like.chapter, "Write");
  await details.locator("tbody tr").first().waitFor({ state: "detached" });
  await close();
});

test("ranges, bounds, knees and ratios are told as such", async () => {
  const { page, complaints, close } = await open();
  await choose(page, "queue-depth", "Mean");
  const chart = figure(page, "queue-depth");
  const details = chart.locator("details", { hasText: "Published figures on this chart" });
  await details.locator("summary").click();
  await details.locator("tbody tr").first().waitFor();
  const rows = await details.locator("tbody tr").evaluateAll((all) => all.map((row) => [...row.cells].map((cell) => cell.textContent.replaceAll("\u202f", " "))));
  assert.deepEqual(rows.map(([row, , value, here]) => [row, value, here]), [
    ["P0-003", "20 µs to 45 µs", "–"], ["P0-004", "at most 60 µs", "–"], ["P0-005", "Queue depth 8", "–"], ["P0-006", "2 times", "1.5 times"],
  ]);
  assert.match(rows[1][4], /the greatest/);
  // Something is drawn of all but the ratio: without them the picture is another.
  const drawn = () => pixels(page, "queue-depth");
  const seen = new Set([await drawn()]);
  for (const row of ["P0-003", "P0-004", "P0-005"]) {
    await page.evaluate((gone) => { data.review.published.find((one) => one.row === gone).metric = "none"; }, row);
    await choose(page, "queue-depth", "IOPS");
    await choose(page, "queue-depth", "Mean");
    seen.add(await drawn());
  }
  assert.equal(seen.size, 4);
  // The bound lies across the whole chart: the pointer finds it at each depth.
  await over(page, "queue-depth").scrollIntoViewIfNeeded();
  assert.deepEqual(complaints, []);
  await close();
});

test("labels of the axis do not touch and are whole", async () => {
  for (const width of [360, 390, 800, 1280]) {
    const { page, close } = await open({ viewport: { width, height: 844 } });
    for (const name of await names(page)) {
      if (name === "anatomy") continue;
      const against = figure(page, name).locator("fieldset", { hasText: "Against" }).locator("label");
      for (const label of [null, ...await against.all()]) {
        await label?.click();
        const [ticks, room] = await figure(page, name).locator(".plot").evaluate((host) => [host.ticks, host.clientWidth]);
        assert.ok(ticks.length >= 2, `${name} at ${width}: ${ticks.map((one) => one.text)}`);
        ticks.forEach((tick, at) => {
          const what = `${name} at ${width}: ${tick.text}, ${tick.from} to ${tick.to} of ${room}`;
          assert.ok(at === 0 || tick.from >= ticks[at - 1].to + 4, what);
          assert.ok(tick.to <= room + 1, what);
        });
      }
    }
    await close();
  }
});

test("times are in units that fit", async () => {
  const { page, close } = await open();
  const wrong = await page.evaluate(() => [0.4, 30, 200, 1000, 8400, 40000, 150000, 900000].flatMap((max) => {
    const { ticks, write } = axes.kinds.time;
    const texts = ticks(0, max, 10).map((tick) => write(tick, max));
    const good = texts.length >= 3 && texts.length <= 12 && new Set(texts).size === texts.length
      && texts.every((text) => /^[\d,]+(\.\d\d?)?\u202f(s|min|h|d)$/.test(text) && parseFloat(text) <= 300);
    return good ? [] : [`${max}: ${texts}`];
  }));
  assert.deepEqual(wrong, []);
  assert.deepEqual(await page.evaluate(() => [90, 1000, 7300, 190800].map(format.duration).map((text) => text.replaceAll("\u202f", " "))),
    ["90 s", "16 min 40 s", "2 h 2 min", "2 d 5 h"]);
  await close();
});

test("lines do not cross missing points", async () => {
  const { page, close } = await open();
  await choose(page, "queue-depth", "99\\.999th");
  // Between depths 1 and 16 nothing was measured: no line there, in no drive's colour.
  const coloured = await figure(page, "queue-depth").evaluate((chart) => {
    const canvas = chart.querySelector(".uplot canvas");
    const plot = chart.querySelector(".u-over");
    const ratio = canvas.width / canvas.clientWidth;
    const left = (plot.offsetLeft + plot.clientWidth * 0.05) * ratio;
    const wide = plot.clientWidth * 0.12 * ratio;
    const { data: bytes } = canvas.getContext("2d").getImageData(left, (plot.offsetTop + 4) * ratio, wide, (plot.clientHeight - 8) * ratio);
    let count = 0;
    for (let at = 0; at < bytes.length; at += 4) {
      const [r, g, b, a] = bytes.slice(at, at + 4);
      if (a > 128 && Math.max(r, g, b) - Math.min(r, g, b) > 60) count += 1;
    }
    return count;
  });
  assert.equal(coloured, 0);
  await close();
});

test("seeds that differ show as a band, and the line is faint where it is wide", async () => {
  const { page, close } = await open();
  const shades = await page.evaluate(() => {
    const host = document.body.appendChild(document.createElement("div"));
    host.style.cssText = "width: 600px; height: 300px; position: relative";
    const axis = { kind: "linear", name: "x", label: "x", format: String };
    const flat = [1, 2, 3, 4, 5].map((x) => [x, 90, x < 3 ? [88, 92] : [55, 150]]);
    const draw = (points) => {
      plot.draw(host, { x: axis, y: axis, dense: true, lines: [{ drive: 0, name: "a", points }] }, document.createElement("p"), () => {});
      return new Promise((done) => { requestAnimationFrame(() => requestAnimationFrame(() => {
        const canvas = host.querySelector("canvas");
        const over = host.querySelector(".u-over");
        const at = (share, y) => canvas.getContext("2d")
          .getImageData((over.offsetLeft + over.clientWidth * share) * devicePixelRatio, (over.offsetTop + over.clientHeight * (1 - y / 200)) * devicePixelRatio, 1, 1).data[3];
        done({ clear: at(0.125, 90), faint: at(0.875, 90), within: at(0.875, 70), outside: at(0.125, 70), text: host.textContent });
      })); });
    };
    return draw(flat);
  });
  assert.ok(shades.clear > 240, JSON.stringify(shades));
  assert.ok(shades.faint > 60 && shades.faint < 160, JSON.stringify(shades));
  assert.ok(shades.within > 20 && shades.within < 80, JSON.stringify(shades));
  assert.equal(shades.outside, 0, JSON.stringify(shades));
  await close();
});

const lead = (page) => figure(page, "lead");
const aside = (page) => lead(page).locator(".aside tbody tr").evaluateAll((rows) => rows.map((row) => row.cells[1].querySelector("b").textContent));
// What each drive does with its 99th percentile within a limit, from the data: the highest place of its line left of the limit,
// in steps of a ten-thousandth of each piece.
function highest(at, accept, way) {
  const points = chapter("queue-depth").points.filter(({ settings }) => settings.direction === way)
    .sort((a, b) => a.settings.queue_depth - b.settings.queue_depth).map(({ results }) => results[at][way])
    .filter((one) => one.latency.p99_us !== null).map((one) => [one.latency.p99_us, one.iops]);
  let most = 0;
  points.forEach(([x, y], index) => {
    const [nextX, nextY] = points[index + 1] ?? [x, y];
    for (let step = 0; step <= 10000; step += 1) {
      const share = step / 10000;
      if (x * (nextX / x) ** share <= accept) most = Math.max(most, y + share * (nextY - y));
    }
  });
  return most;
}
const best = async (page, accept, way) => {
  const all = review.drives.map((_, at) => highest(at, accept, way));
  return page.evaluate((values) => values.map((iops) => (iops ? format.count(iops) : "–")), all);
};

test("the first screen shows what each drive does at a latency, by a line to drag", async () => {
  const { page, complaints, close } = await open();
  const slider = lead(page).locator("[role=slider]");
  const now = async () => +await slider.getAttribute("aria-valuenow");
  const plot = await lead(page).locator(".plot").boundingBox();
  assert.ok(plot.y + plot.height <= 900, `the chart ends at ${plot.y + plot.height}`);
  assert.deepEqual(await aside(page), await best(page, await now(), "read"));
  const first = await now();
  // By mouse.
  const line = await slider.boundingBox();
  assert.ok(line.x > plot.x + 60 && line.x < plot.x + plot.width, "the line is on the chart");
  await page.mouse.move(line.x + line.width / 2, line.y + line.height / 2);
  await page.mouse.down();
  await page.mouse.move(line.x + line.width / 2 + 120, line.y + line.height / 2, { steps: 4 });
  await page.mouse.up();
  const dragged = await now();
  assert.ok(dragged > first * 1.2, `${first} to ${dragged}`);
  assert.deepEqual(await aside(page), await best(page, dragged, "read"));
  // By keyboard.
  await slider.focus();
  await page.keyboard.press("ArrowLeft");
  assert.ok(await now() < dragged);
  await page.keyboard.press("Home");
  const least = await now();
  assert.deepEqual(await aside(page), await best(page, least, "read"));
  await choose(page, "lead", "Random writes");
  assert.deepEqual(await aside(page), await best(page, await now(), "write"));
  assert.deepEqual(complaints, []);
  await close();
});

test("every line chart can be read with the arrow keys", async () => {
  const { page, complaints, close } = await open();
  for (const name of await names(page)) {
    const plot = figure(page, name).locator(".plot");
    if (await plot.count() === 0) continue;
    await plot.focus();
    const seen = new Set();
    for (const key of ["Home", "ArrowRight", "ArrowRight", "ArrowLeft", "End", "ArrowLeft"]) {
      await page.keyboard.press(key);
      const said = await figure(page, name).locator("[aria-live]").textContent();
      assert.match(said, /\d.*: .*\d/, `${name}: "${said}" after ${key}`);
      seen.add(said);
    }
    assert.ok(seen.size >= 4, `${name}: ${[...seen].join("; ")}`);
    assert.equal(await figure(page, name).locator(".tip").isVisible(), true, name);
    await page.keyboard.press("Escape");
    assert.equal(await figure(page, name).locator(".tip").isVisible(), false, name);
  }
  await lead(page).locator(".plot").focus();
  await page.keyboard.press("Home");
  const said = await lead(page).locator("[aria-live]").textContent();
  assert.match(said, /^99th percentile .*: .*, QD\d+ \d/, said);
  assert.deepEqual(complaints, []);
  await close();
});

test("the first chart is on the first screen of a phone", async () => {
  const { page, close } = await open(PHONE);
  const plot = await lead(page).locator(".plot").boundingBox();
  assert.ok(plot.y + plot.height <= 844, `the chart ends at ${plot.y + plot.height}`);
  await close();
});

test("contents stay in view and say where the reader is", async () => {
  const { page, close } = await open();
  for (const id of ["mix", "sustained"]) {
    await page.locator(`.contents a[href="#${id}"]`).click();
    await page.waitForFunction((id) => document.querySelector(".contents a[aria-current]")?.hash === `#${id}`, id);
    const bar = await page.locator(".contents").boundingBox();
    assert.ok(bar.y >= -1 && bar.y < 2, `${bar.y}`);
    const heading = await page.locator(`#${id} h2`).boundingBox();
    assert.ok(heading.y >= bar.y + bar.height, "the heading is not under the contents");
  }
  await close();
});

test("a drive can be hidden", async () => {
  const { page, complaints, close } = await open();
  const before = JSON.parse(await series(page, "queue-depth"));
  await page.locator(".contents .drives label").nth(1).click();
  const after = JSON.parse(await series(page, "queue-depth"));
  assert.deepEqual(after, [before[0], before[1], before[3]]);
  assert.equal(await figure(page, "anatomy").locator(".band").first().locator(".bar-row").count(), review.drives.length - 1);
  assert.equal((await aside(page)).length, review.drives.length - 1);
  await figure(page, "queue-depth").locator("summary").first().click();
  const head = await figure(page, "queue-depth").locator("thead").first().textContent();
  assert.ok(!head.includes(review.drives[1].label) && head.includes(review.drives[2].label));
  for (const at of [0, 2]) await page.locator(".contents .drives label").nth(at).click();
  assert.equal(await figure(page, "queue-depth").locator(".uplot").count(), 0, "none is left");
  for (const at of [0, 1, 2]) await page.locator(".contents .drives label").nth(at).click();
  assert.deepEqual(JSON.parse(await series(page, "queue-depth")), before);
  assert.deepEqual(complaints, []);
  await close();
});

async function drag(page, name, from, to) {
  await over(page, name).scrollIntoViewIfNeeded();
  const box = await over(page, name).boundingBox();
  await page.mouse.move(box.x + box.width * from, box.y + 150);
  await page.mouse.down();
  await page.mouse.move(box.x + box.width * to, box.y + 150, { steps: 5 });
  await page.mouse.up();
}
const ticks = (page, name) => figure(page, name).locator(".plot").evaluate((host) => host.ticks.map((one) => one.text));

test("a chart can be zoomed and shown whole again", async () => {
  const { page, complaints, close } = await open();
  const whole = await pixels(page, "queue-depth");
  const all = figure(page, "queue-depth").getByRole("button", { name: "Show all" });
  const places = () => page.locator("section").evaluateAll((sections) => sections.map((one) => one.getBoundingClientRect().height));
  const heights = await places();
  await drag(page, "queue-depth", 0.02, 0.25);
  const shown = (await ticks(page, "queue-depth")).map(Number);
  assert.ok(shown.at(-1) <= 18 && shown.length >= 3, `${shown}`);
  assert.notEqual(await pixels(page, "queue-depth"), whole);
  assert.deepEqual(await places(), heights, "nothing moves");
  await all.click();
  await page.mouse.move(0, 0);
  assert.equal(await pixels(page, "queue-depth"), whole);
  await drag(page, "queue-depth", 0.5, 0.2);
  await over(page, "queue-depth").dblclick({ position: { x: 200, y: 100 } });
  await page.mouse.move(0, 0);
  assert.equal(await pixels(page, "queue-depth"), whole, "a double click shows all");
  // By keyboard.
  await figure(page, "queue-depth").locator(".plot").focus();
  await page.keyboard.press("+");
  assert.ok((await ticks(page, "queue-depth")).map(Number).at(-1) < 64);
  await page.keyboard.press("0");
  assert.equal(await pixels(page, "queue-depth"), whole);
  for (const name of ["distribution", "block-size", "paced", "sustained", "lead"]) {
    await drag(page, name, 0.4, 0.6);
    assert.ok((await ticks(page, name)).length >= 1, name);
  }
  assert.deepEqual(complaints, []);
  await close();
});

test("the address keeps the view", async () => {
  const { page, close } = await open();
  await choose(page, "queue-depth", "Write");
  await choose(page, "queue-depth", "99th");
  await choose(page, "sustained", "Time");
  await figure(page, "distribution").locator("select").selectOption({ index: 2 });
  await page.locator(".contents .drives label").nth(1).click();
  await drag(page, "queue-depth", 0.1, 0.6);
  await lead(page).locator("[role=slider]").focus();
  await page.keyboard.press("ArrowRight");
  await page.mouse.move(0, 0);
  await page.locator('.contents a[href="#mix"]').click();
  // The page hears of the link's address after the click, and adds what was chosen then.
  await page.waitForFunction(() => location.hash.startsWith("#mix&"));
  const hash = await page.evaluate(() => location.hash);
  assert.match(hash, /^#mix&/);
  assert.match(hash, /queue-depth\.direction=write/);
  const view = async (page) => Promise.all(["lead", "queue-depth", "distribution", "sustained"].map(async (name) =>
    [name, await series(page, name), createHash("sha1").update(await pixels(page, name)).digest("hex")]));
  const again = await open({}, hash);
  assert.deepEqual(await view(again.page), await view(page));
  assert.deepEqual(await aside(again.page), await aside(page));
  assert.equal(await again.page.locator(".contents .drives input").nth(1).isChecked(), false);
  // The chapter comes into view.
  await again.page.waitForFunction(() => {
    const { top } = document.querySelector("#mix").getBoundingClientRect();
    return top > 0 && top < 400;
  });
  // Nonsense in an address changes nothing.
  const odd = await open({}, "#nowhere&queue-depth.metric=speed&queue-depth.zoom=9~2&lead.accept=-1&hide=nobody&%E0%A4%A=%");
  const plain = await open();
  assert.deepEqual(await view(odd.page), await view(plain.page));
  assert.deepEqual(odd.complaints, []);
  for (const one of [again, odd, plain]) await one.close();
  await close();
});

test("bars of time share one scale over all bands", async () => {
  const { page, close } = await open();
  await figure(page, "anatomy").locator("select").selectOption({ index: 1 });
  await choose(page, "anatomy", "Time");
  await figure(page, "anatomy").locator("summary").click();
  await figure(page, "anatomy").locator("tbody tr").first().waitFor();
  const totals = await figure(page, "anatomy").locator("tbody tr").evaluateAll((rows) => rows.map((row) => +row.cells[3].dataset.value));
  const widths = await figure(page, "anatomy").locator(".bar").evaluateAll((bars) => bars.map((bar) => bar.getBoundingClientRect().width));
  assert.equal(widths.length, totals.length);
  const [longest, widest] = [Math.max(...totals), Math.max(...widths)];
  assert.ok(Math.max(...totals) > 3 * Math.min(...totals), "bands differ");
  totals.forEach((total, at) => {
    const expected = Math.max((total / longest) * widest, 0.004 * widest, 2);
    assert.ok(Math.abs(widths[at] - expected) < 1.5, `${total}: ${widths[at]} px, not ${expected}`);
  });
  await close();
});

test("labels on bars are whole and stand out, in both themes", async () => {
  for (const colorScheme of ["light", "dark"]) {
    const { page, close } = await open({ colorScheme });
    const select = figure(page, "anatomy").locator("select");
    const seen = new Set();
    for (let index = 0; index < await select.locator("option").count(); index += 1) {
      await select.selectOption({ index });
      const labels = await figure(page, "anatomy").evaluate((chart, contrast) => {
        const ratio = eval(contrast);
        return [...chart.querySelectorAll(".piece-name")].map((label) => ({
          text: label.textContent, cut: label.scrollWidth > label.parentElement.clientWidth,
          ratio: ratio(getComputedStyle(label).color, getComputedStyle(label.parentElement).backgroundColor),
        }));
      }, contrast);
      for (const label of labels) {
        seen.add(label.text);
        assert.ok(label.ratio >= 4.5, `${colorScheme}, ${label.text}: ${label.ratio.toFixed(2)}`);
        assert.ok(!label.cut, `${label.text} is cut`);
      }
    }
    assert.ok(seen.size >= 3, [...seen].join());
    // And every ground that there is, whatever these drives have.
    const all = await page.evaluate((contrast) => {
      const ratio = eval(contrast);
      const grounds = ["host", "host shade-1", "host shade-2", "host shade-3", "drive", "drive shade-1", "drive shade-2", "medium", "wait",
        ...[1, 2, 3, 4, 5].map((shade) => `wait shade-${shade}`), "full", "full shade-1"];
      return grounds.map((ground) => {
        const piece = document.body.appendChild(document.createElement("span"));
        piece.className = `piece ${ground}`;
        const colour = getComputedStyle(piece).backgroundColor;
        piece.remove();
        return [ground, ratio(anatomy.inkOn(colour), colour)];
      });
    }, contrast);
    for (const [ground, ratio] of all) assert.ok(ratio >= 4.5, `${colorScheme}, ${ground}: ${ratio.toFixed(2)}`);
    await close();
  }
});

test("the write cliff has one note for all drives", async () => {
  const { page, close } = await open();
  const note = await figure(page, "sustained").locator(".note").textContent();
  for (const said of ["Scaled model", "Maxima cover", "SNIA"]) assert.equal(note.split(said).length, 2, `${said} once: ${note}`);
  for (const drive of review.drives) assert.equal(note.split(drive.label).length, 2, `${drive.label} once: ${note}`);
  await close();
});

test("markers are whole whatever line was drawn before", async () => {
  const { page, close } = await open();
  const drawn = await page.evaluate(() => [0, 1, 2, 3, 4, 5, 6].map((drive) => [[], [1, 9]].map((dash) => {
    const canvas = document.createElement("canvas");
    [canvas.width, canvas.height] = [40, 40];
    const context = canvas.getContext("2d");
    context.lineWidth = 2;
    context.strokeStyle = context.fillStyle = "#123456";
    context.setLineDash(dash);
    marks.marker(context, drive, 20, 20, 8);
    return [canvas.toDataURL(), context.fillStyle];
  })));
  drawn.forEach(([plain, dashed], drive) => {
    assert.equal(dashed[0], plain[0], `the marker of drive ${drive}`);
    assert.equal(dashed[1], "#123456", "the colour is left as it was");
  });
  assert.equal(new Set(drawn.map(([plain]) => plain[0])).size, 6, "six shapes, and then another one than the first");
  await close();
});

test("paper cuts no table", async () => {
  // A sheet of A4 between its margins.
  const { page, close } = await open({ viewport: { width: 688, height: 1000 } });
  await page.evaluate(() => document.querySelectorAll("details").forEach((one) => { one.open = true; }));
  await figure(page, "costs").locator("tbody tr").first().waitFor();
  const columns = () => figure(page, "queue-depth").locator("details").first().locator("thead th").allTextContents();
  const onScreen = await columns();
  await page.emulateMedia({ media: "print" });
  await page.evaluate(() => dispatchEvent(new Event("beforeprint")));
  const cut = await page.locator("table, pre").evaluateAll((all) => all.map((one) => [one, one.getBoundingClientRect().right, one.scrollWidth - one.clientWidth])
    .filter(([, right, more]) => right > document.documentElement.clientWidth || more > 1)
    .map(([one, right, more]) => `${one.closest("details, section, figure")?.textContent.slice(0, 60)}: ${right}, ${more}`));
  assert.deepEqual(cut, []);
  const onPaper = await columns();
  assert.deepEqual([...new Set(onPaper)].sort(), [...new Set(onScreen)].sort(), "every column is on paper");
  assert.ok(onPaper.length > onScreen.length, "a wide table goes on in another");
  await page.evaluate(() => dispatchEvent(new Event("afterprint")));
  assert.deepEqual(await columns(), onScreen);
  await close();
});
