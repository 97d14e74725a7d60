// What the tests of the page share: PAGE names the file, CHROMIUM the browser.
import { readFileSync } from "node:fs";
import { after, before } from "node:test";
import { pathToFileURL } from "node:url";
import { chromium } from "playwright-core";

export const file = process.env.PAGE;
export const review = JSON.parse(readFileSync(file.replace(/html$/, "json"), "utf8"));
let browser;

before(async () => {
  browser = await chromium.launch({ executablePath: process.env.CHROMIUM, args: ["--no-sandbox"] });
});
after(() => browser?.close());

// A page that has finished drawing, and everything it complained about or asked for.
export async function open(options = {}, hash = "") {
  const context = await browser.newContext({ viewport: { width: 1280, height: 900 }, colorScheme: "light", ...options });
  const page = await context.newPage();
  const complaints = [];
  const requests = [];
  page.on("console", (message) => { if (message.type() !== "log") complaints.push(message.text()); });
  page.on("pageerror", (error) => complaints.push(error.message));
  page.on("request", (request) => requests.push(request.url()));
  await page.goto(pathToFileURL(file).href + hash);
  await page.waitForSelector("html[data-ready=yes]");
  return { page, complaints, requests, close: () => context.close() };
}

export async function openPlain(options = {}) {
  const context = await browser.newContext({ javaScriptEnabled: false, ...options });
  const page = await context.newPage();
  await page.goto(pathToFileURL(file).href);
  return { page, close: () => context.close() };
}

export const figure = (page, name) => page.locator(`figure[data-chart=${name}]`);
export const pixels = (page, name) => figure(page, name).locator(".uplot canvas").evaluate((canvas) => canvas.toDataURL());
export const series = (page, name) => figure(page, name).locator(".plot").evaluate((host) => JSON.stringify(host.drawn));
export const choose = (page, name, text) => figure(page, name).locator("label", { hasText: new RegExp(`^${text}$`) }).click();
export const chapter = (id) => review.chapters.find((one) => one.id === id);
export const names = (page) => page.locator("figure[data-chart]").evaluateAll((all) => all.map((one) => one.dataset.chart));

// Luminance ratio of WCAG between two colours, in the page.
export const contrast = `(() => {
  const canvas = document.createElement("canvas").getContext("2d", { willReadFrequently: true });
  const luminance = (colour) => {
    canvas.fillStyle = colour;
    canvas.fillRect(0, 0, 1, 1);
    const [r, g, b] = [...canvas.getImageData(0, 0, 1, 1).data].slice(0, 3)
      .map((v) => v / 255).map((v) => (v <= 0.04045 ? v / 12.92 : ((v + 0.055) / 1.055) ** 2.4));
    return 0.2126 * r + 0.7152 * g + 0.0722 * b;
  };
  return (a, b) => {
    const [light, dark] = [luminance(a), luminance(b)].sort((x, y) => y - x);
    return (light + 0.05) / (dark + 0.05);
  };
})()`;

// A page without charts of scripts, which has nothing to wait for.
export async function openAt(options) {
  const context = await browser.newContext(options);
  const page = await context.newPage();
  await page.goto(pathToFileURL(file).href);
  return { page, close: () => context.close() };
}
