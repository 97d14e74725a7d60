// The page of `drivelab lab`, in headless Chromium.
import assert from "node:assert/strict";
import { readFileSync, writeFileSync } from "node:fs";
import { dirname, join } from "node:path";
import { test } from "node:test";
import { pathToFileURL } from "node:url";
import { contrast, file, open, openPlain } from "./open.mjs";

const settled = (page) => page.waitForSelector("html[data-done]", { timeout: 120_000 });
// By their cells: `innerText` of what is scrolled out of sight is another text.
const rows = (page) => page.locator("#figures table").first().locator("tbody tr").evaluateAll((all) =>
  all.map((row) => [...row.cells].map((cell) => cell.textContent)));
const text = (page, label) => page.locator(`pre[aria-label^="${label}"]`).textContent();

async function opened(options, hash) {
  const made = await open(options, hash);
  await settled(made.page);
  return made;
}

async function write(page, job) {
  await page.locator("#job-text").fill(job);
  await page.keyboard.press("Control+Enter");
  await settled(page);
}

test("drives, a pool and a file run, and what is exported is kept for the native engine", async () => {
  const { page, complaints, requests, close } = await opened();
  assert.equal((await rows(page)).length, 6, "three drives, reads and writes");
  assert.equal(await page.locator("#status").textContent(), "Done.");
  const kept = [];
  for (const at of ["0", "1", "2"]) {
    await page.locator("#which").selectOption(at);
    kept.push({
      drive: await page.locator("#which option").nth(+at).textContent(),
      command: await text(page, "Command"), job: await text(page, "Job file"), toml: await text(page, "Drive or pool"),
    });
  }
  // A pool added by name and shape, and one of a text.
  await page.locator("#drive").fill("p4801x-100");
  await page.getByLabel("Take it").selectOption("stripe");
  await page.getByRole("button", { name: "Add", exact: true }).click();
  await settled(page);
  assert.equal((await rows(page)).length, 8);
  await page.getByRole("button", { name: "Edit p4800x-375 as a file" }).click();
  const toml = await page.locator("#file-text").inputValue();
  assert.equal(toml, kept[0].toml);
  await page.locator("#file-text").fill(toml.replace(/^capacity .*$/m, 'capacity = { value = "300 GB", kind = "assumed", source = "a test" }'));
  await page.getByRole("button", { name: "Add this file" }).click();
  await settled(page);
  assert.equal((await rows(page)).length, 10);
  await page.locator("#which").selectOption("4");
  assert.match(await text(page, "Command"), /^drivelab run job\.fio \.\/p4800x-375\.toml --host=linux --state=auto --seed=1$/);
  const said = await page.evaluate("engine.said()");
  writeFileSync(join(dirname(file), "said.json"), JSON.stringify([said, kept]));
  assert.deepEqual(complaints, []);
  assert.deepEqual(requests.filter((one) => !one.startsWith("blob:")), [pathToFileURL(file).href]);
  await close();
});

test("figures, tails and anatomy follow the job", async () => {
  const { page, close } = await opened();
  const seen = async () => [await rows(page), await page.locator(".plot").evaluate((host) => JSON.stringify(host.drawn)),
    await page.locator(".bars").innerHTML()];
  const before = await seen();
  assert.ok(await page.locator(".bars .piece").count() > 10);
  await write(page, "[a]\nioengine=libaio\ndirect=1\nrw=randwrite\nbs=16k\niodepth=4\nnorandommap=1\nnumber_ios=3000\n");
  const after = await seen();
  before.forEach((one, at) => assert.notDeepEqual(after[at], one, `part ${at}`));
  assert.equal(after[0].length, 3, "writes only");
  await close();
});

test("what is set on the drives is what they run with, in the command and in a link", async () => {
  const { page, complaints, close } = await opened();
  const before = await rows(page);
  await page.getByText("Drive settings").click();
  await page.getByLabel("Over-provisioning").fill("30%");
  await page.keyboard.press("Control+Enter");
  await settled(page);
  const after = await rows(page);
  assert.equal(after.length, before.length, "all run");
  assert.notDeepEqual(after.find(([name]) => name === "p3700-800, writes"), before.find(([name]) => name === "p3700-800, writes"));
  const notes = await page.locator("#problems .note").allTextContents();
  assert.ok(notes.some((one) => /p4800x-375: written in place.*--overprovision/.test(one)), notes.join("\n"));
  assert.equal(await text(page, "Command"), "drivelab run job.fio p4800x-375 --overprovision=30% --host=linux --state=auto --seed=1");
  const hash = await page.evaluate("location.hash");
  const second = await opened({}, hash);
  assert.deepEqual(await rows(second.page), after);
  assert.equal(await second.page.getByLabel("Over-provisioning").inputValue(), "30%");
  await second.close();
  await page.getByLabel("Changed figures").fill("xpoint.power.limit = 12W\n\n");
  await page.keyboard.press("Control+Enter");
  await settled(page);
  assert.equal(await text(page, "Command"), "drivelab run job.fio p4800x-375 '--set=xpoint.power.limit = 12W' --overprovision=30% --host=linux --state=auto --seed=1");
  assert.deepEqual((await rows(page)).map(([name]) => name), ["p4800x-375, reads", "p4800x-375, writes"], "no other drive has the figure");
  await page.getByLabel("LBA format").fill("4097");
  await page.getByLabel("Age", { exact: true }).fill("old");
  await page.keyboard.press("Control+Enter");
  await settled(page);
  const wrong = (await page.locator(".wrong").allTextContents()).join("\n");
  assert.match(wrong, /--lba-format=4097/);
  assert.match(wrong, /--age=old/);
  assert.deepEqual(complaints, []);
  await close();
});

test("of several jobs it says that they are shown together, and a long name ends in dots", async () => {
  const { page, close } = await opened();
  await page.locator("#drive").fill("intent-log(main=stripe(2*p4801x-375), log=mirror(2*p4801x-100))");
  await page.locator("#drive").press("Enter");
  await write(page, "[global]\nioengine=libaio\ndirect=1\nbs=4k\nnorandommap=1\nnumber_ios=1000\n[reader]\nrw=randread\n[writer]\nrw=randwrite\n");
  const notes = await page.locator("#problems .note").allTextContents();
  assert.ok(notes.some((one) => /figures are of all jobs of the file together \(reader, writer\)/.test(one)), notes.join("\n"));
  const cut = await page.locator(".bar-name > span:last-child").evaluateAll((all) => all.filter((one) => one.scrollWidth > one.clientWidth)
    .map((one) => [getComputedStyle(one).textOverflow, one.parentElement.title]));
  assert.ok(cut.every(([dots]) => dots === "ellipsis") && cut.some(([, whole]) => whole.startsWith("intent-log(")), JSON.stringify(cut));
  await close();
});

test("what is wrong is told in the program's words, beside what ran", async () => {
  const { page, complaints, close } = await opened();
  await page.locator("#drive").fill("mirror(2*p4801x-101)");
  await page.locator("#drive").press("Enter");
  await settled(page);
  const told = await page.locator(".wrong").first().textContent();
  assert.match(told, /no drive|there is no/);
  assert.match(told, /p4801x-100/, "the nearest name");
  assert.equal((await rows(page)).length, 6, "the others ran");
  await write(page, "[a]\nrw=sideways\n");
  const all = await page.locator(".wrong").allTextContents();
  assert.ok(all.some((one) => one.includes("job.fio:2") && one.includes("sideways")), all.join("\n"));
  assert.equal((await rows(page)).length, 0);
  assert.equal(await text(page, "Command"), "drivelab run job.fio p4800x-375 --host=linux --state=auto --seed=1");
  assert.deepEqual(complaints, []);
  await close();
});

test("a link shows the same", async () => {
  const first = await opened();
  await first.page.getByRole("button", { name: "Remove p3700-800" }).click();
  await write(first.page, "[a]\nioengine=libaio\ndirect=1\nrw=randread\nbs=8k\niodepth=2\nnorandommap=1\nnumber_ios=2000\n");
  await first.page.getByLabel("Host").selectOption("xeon-2017");
  await settled(first.page);
  const [hash, figures] = [await first.page.evaluate("location.hash"), await rows(first.page)];
  await first.close();
  const second = await opened({}, hash);
  assert.deepEqual(await rows(second.page), figures);
  assert.equal(await second.page.evaluate("location.hash"), hash);
  await second.close();
  const cut = await opened({}, "#benches=%5B%5B%22p48");
  assert.match(await cut.page.locator("#benches .note").textContent(), /cut short/);
  assert.equal((await rows(cut.page)).length, 6);
  await cut.close();
});

test("works by keyboard, on a phone and in the dark", async () => {
  const { page, complaints, close } = await opened({ viewport: { width: 360, height: 740 }, colorScheme: "dark" });
  await page.locator("#drive").focus();
  await page.keyboard.type("optane-memory-16");
  await page.keyboard.press("Enter");
  await settled(page);
  assert.equal((await rows(page)).length, 8);
  const [wide, seen] = await page.evaluate(() => [document.documentElement.scrollWidth, innerWidth]);
  assert.ok(wide <= seen, `${wide} px on ${seen} px`);
  const ratio = await page.evaluate(`${contrast}(getComputedStyle(document.querySelector("#job-text")).color, getComputedStyle(document.querySelector("#job-text")).backgroundColor)`);
  assert.ok(ratio > 7, `contrast ${ratio}`);
  const ground = await page.evaluate("getComputedStyle(document.body).backgroundColor");
  assert.equal(ground, "rgb(21, 23, 27)");
  const nameless = await page.evaluate(() => [...document.querySelectorAll("main input, main select, main textarea, main button, main [role]")]
    .filter((one) => !(one.getAttribute("aria-label") || one.labels?.length || one.textContent.trim() || ["status", "alert"].includes(one.getAttribute("role")))).map((one) => one.outerHTML));
  assert.deepEqual(nameless, []);
  assert.deepEqual(complaints, []);
  await close();
});

test("a long run can be stopped, and files are saved", async () => {
  const { page, close } = await opened();
  await page.locator("#job-text").fill("[a]\nioengine=libaio\ndirect=1\nrw=randread\nbs=4k\niodepth=32\nnorandommap=1\nnumber_ios=200000000\n");
  await page.keyboard.press("Control+Enter");
  await page.waitForTimeout(300);
  assert.equal(await page.locator("html[data-done]").count(), 0);
  await page.getByRole("button", { name: "Stop" }).click();
  await settled(page);
  assert.equal(await page.locator("#status").textContent(), "Stopped.");
  const job = await page.locator("#job-text").inputValue();
  const [download] = await Promise.all([page.waitForEvent("download"), page.getByRole("button", { name: "Save: Job file" }).click()]);
  assert.equal(download.suggestedFilename(), "job.fio");
  assert.equal(readFileSync(await download.path(), "utf8"), job);
  await close();
});

test("without scripts it says that it needs them", async () => {
  const { page, close } = await openPlain();
  assert.match(await page.locator("header").textContent(), /needs scripts/);
  await close();
});
