// What can be turned on pools in the chapter that simulates, in headless Chromium.
import assert from "node:assert/strict";
import { writeFileSync } from "node:fs";
import { dirname, join } from "node:path";
import { test } from "node:test";
import { file, open } from "./open.mjs";

const settled = (page) => page.waitForSelector(".what-if[data-done]", { timeout: 240_000 });
const dial = (page, name) => page.locator(`.what-if .pools .choice:not(fieldset)`, { has: page.getByText(name, { exact: true }) });
const slide = (page, name, to) => dial(page, name).locator("input").evaluate((input, value) => {
  input.value = value;
  input.dispatchEvent(new Event("input"));
}, to);
const choose = (page, name, value) => dial(page, name).locator("select").selectOption(value);
const rows = (page) => page.locator("table.simulated tbody tr").evaluateAll((all) =>
  all.map((row) => [...row.cells].map((cell) => cell.textContent)));
const commands = async (page) => (await page.locator(".what-if pre").textContent()).split("\n");

async function opened(hash) {
  const made = await open({}, hash);
  await made.page.locator("#what-if h2").scrollIntoViewIfNeeded();
  await settled(made.page);
  return made;
}

test("the settings of a pool move its figures, stand in its command and in the address", async () => {
  const { page, complaints, close } = await opened();
  await page.locator(".what-if .choices").first().locator("label", { hasText: /^Random write$/ }).click();
  await settled(page);
  const plain = await rows(page);
  await choose(page, "tank: sync", "always");
  await slide(page, "tank: txg", 2);
  await choose(page, "group: like", "bcache");
  await settled(page);
  const turned = await rows(page);
  assert.deepEqual(turned[0][1].split(/[=+−]/)[0], plain[0][1], "a drive beside pools stays as it is");
  assert.notDeepEqual(turned[1], plain[1], "intent log");
  assert.notDeepEqual(turned[2], plain[2], "write-back cache");
  const shown = await commands(page);
  assert.match(shown[1], /--set=tier\.tank\.sync=always/);
  assert.match(shown[1], /--set=tier\.tank\.txg=/);
  assert.match(shown[2], /--set=tier\.group\.like=bcache/);
  assert.doesNotMatch(shown[0], /tier/);
  writeFileSync(join(dirname(file), "said.json"), JSON.stringify([await page.evaluate("engine.said()"), shown]));
  const hash = await page.evaluate("location.hash");
  assert.deepEqual(complaints, []);
  await close();
  const again = await opened(hash);
  assert.deepEqual(await rows(again.page), turned);
  assert.deepEqual(await commands(again.page), shown);
  await again.close();
});
