// The chat page in a real browser: an answer arrives piece by piece, reasoning folds, the stop button stops.
// CHROMIUM names a browser; without it the one from the package registry is used.
import assert from "node:assert/strict";
import test from "node:test";
import puppeteer from "puppeteer-core";

const QUESTION = "What is the capital of France?";

async function launch() {
  const options = ["--no-sandbox", "--disable-gpu"];
  if (process.env.CHROMIUM) {
    return puppeteer.launch({ executablePath: process.env.CHROMIUM, args: options, headless: true });
  }
  const { default: chromium } = await import("@sparticuz/chromium");
  return puppeteer.launch({
    executablePath: await chromium.executablePath(), args: [...chromium.args, ...options], headless: "shell",
  });
}

const text = (page, selector) => page.$eval(selector, element => element.textContent);
const say = async (page, what) => {
  await page.type("#prompt", what);
  await page.keyboard.press("Enter");
};
const over = page => page.waitForFunction(() => document.querySelector("#stop").hidden, { timeout: 60000 });

test("the page", async t => {
  let browser;
  try {
    browser = await launch();
  } catch (error) {
    // A machine without the system libraries that every browser needs.
    if (!/shared libraries/.test(error.message)) throw error;
    t.skip(error.message.split("\n").find(line => /shared libraries/.test(line)));
    return;
  }
  t.after(() => browser.close());
  const page = await browser.newPage();
  const foreign = [], errors = [];
  page.on("request", request => { if (!request.url().startsWith(process.env.DS4_URL)) foreign.push(request.url()); });
  page.on("pageerror", error => errors.push(error.message));
  await page.setViewport({ width: 900, height: 700 });
  await page.goto(process.env.DS4_URL + "/");

  await t.test("asks for the key, and says what is served", async () => {
    await page.waitForFunction(() => !document.querySelector("#keyed").hidden);
    await page.type("#key", process.env.DS4_KEY);
    await page.keyboard.press("Tab");
    await page.waitForFunction(() => document.querySelector("#model").textContent.startsWith("ds4-demo"));
  });

  await t.test("an answer arrives in pieces", async () => {
    await page.$eval("#temperature", input => { input.value = 0; });
    await page.evaluate(() => {
      window.seen = new Set();
      new MutationObserver(() => window.seen.add(document.querySelector(".assistant .text")?.textContent))
        .observe(document.querySelector("#talk"), { childList: true, subtree: true, characterData: true });
    });
    await say(page, QUESTION);
    await over(page);
    assert.equal(await text(page, ".assistant .text"), "The capital of France is Paris.");
    assert.match(await text(page, ".assistant .note"), /^9 tokens, [0-9.]+ tokens\/s$/);
    assert.ok(await page.evaluate(() => window.seen.size) >= 3);
  });

  await t.test("reasoning folds when the answer begins", async () => {
    await page.click("#think");
    await say(page, "What is the capital of Japan?");
    await over(page);
    const last = ".assistant:last-of-type";
    assert.match(await text(page, last + " details div"), /Japan/);
    assert.equal(await page.$eval(last + " details", fold => fold.open), false);
    assert.match(await text(page, last + " .text"), /Tokyo/);
    if (process.env.DS4_SCREENSHOT) await page.screenshot({ path: process.env.DS4_SCREENSHOT });
  });

  await t.test("the stop button stops a stream that runs", async () => {
    await page.click("#reset");
    assert.equal(await page.$(".assistant"), null);
    // The demo model says little, so the request is made one for thousands of numbers.
    const schema = {
      type: "object", required: ["a"], additionalProperties: false,
      properties: { a: { type: "array", items: { enum: [1, 2] }, minItems: 1500 } },
    };
    await page.setRequestInterception(true);
    page.on("request", request => {
      if (request.isInterceptResolutionHandled()) return;
      if (!request.url().endsWith("/completions")) return request.continue();
      const body = { ...JSON.parse(request.postData()), thinking: { type: "disabled" },
        response_format: { type: "json_schema", json_schema: { name: "x", schema } } };
      request.continue({ postData: JSON.stringify(body) });
    });
    const gone = () => page.evaluate(async key => {
      const reply = await fetch("/metrics", { headers: { authorization: "Bearer " + key } });
      return Number(/^ds4_answers_total\{ended="gone"\} (\d+)/m.exec(await reply.text())?.[1] ?? 0);
    }, process.env.DS4_KEY);
    const before = await gone();
    await say(page, QUESTION);
    const written = () => page.$eval(".assistant .text", element => element.textContent.length);
    await page.waitForFunction(() => document.querySelector(".assistant .text")?.textContent.length > 20, { timeout: 60000 });
    await page.click("#stop");
    await over(page);
    assert.equal(await text(page, ".assistant .note"), "stopped");
    const length = await written();
    for (const from = Date.now(); await gone() === before;) assert.ok(Date.now() - from < 10000, "it goes on");
    assert.equal(await gone(), before + 1);
    assert.equal(await written(), length);
  });

  assert.deepEqual(foreign, []);
  assert.deepEqual(errors, []);
});
