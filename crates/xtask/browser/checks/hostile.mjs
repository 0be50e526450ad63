// What a model and a real command write against the page: it is text, and only ever text.
import { TASK } from "../script.mjs";

export async function run(t) {
  const page = await t.page();
  const session = await t.create(TASK.hostile);
  await page.goto(`${t.url}/sessions/${session}`);
  await innocent(t, page, "while it comes");
  await page.waitForSelector("text=The agent answered.");
  await page.click(".brand");
  await page.waitForSelector(`.session-row[href$="${session}"]`);
  await innocent(t, page, "in the list");
  await page.goto(`${t.url}/sessions/${session}`);
  await page.waitForSelector("text=The agent answered.");
  await t.step("everything unfolds", async () => {
    const folded = page.locator(".fold-head[aria-expanded=false]");
    while (await folded.count()) await folded.first().click();
    await page.waitForSelector(".step.tool pre.out");
  });
  await innocent(t, page, "in the timeline");
  await t.step("a line of five million characters is shown in bites", async () => {
    const more = page.locator(".step.tool .long button").last();
    const size = (await t.get(`/v1/sessions/${session}/events`)).data.find((one) => one.type === "settled" && one.exit_code === 0)?.text.length;
    const begun = Date.now();
    if (await more.count()) await more.click();
    await page.evaluate(() => new Promise((done) => requestAnimationFrame(() => requestAnimationFrame(done))));
    t.figure(`${size} characters of output are kept; a bite takes ${Date.now() - begun} ms`);
    return (await page.textContent(".step.tool pre.out")).length < 1_000_000;
  });
  await t.step("a question that the model makes up has neither frame nor buttons", async () => {
    const links = await page.locator(".said-by-model a").evaluateAll((all) => all.map((a) => [a.protocol, a.rel, a.target]));
    const safe = links.every(([protocol, rel, target]) => /^https?:$/.test(protocol) && rel.includes("noopener") && target === "_blank");
    return safe && (await page.locator(".question, .approve, .said-by-model button.approve").count()) === 0;
  });
  await page.click("#tab-changes");
  await page.waitForSelector(".files li");
  await innocent(t, page, "among the changes");
  await page.click("#tab-files");
  await page.click(`.tree li:has-text("onerror")`);
  await page.waitForSelector(".lines .dl");
  await innocent(t, page, "among the files");
  await page.click("#tab-details");
  await page.waitForSelector(".waterfall li");
  await innocent(t, page, "in the details");
}

async function innocent(t, page, where) {
  await t.step(`nothing of it is more than text ${where}`, async () => {
    const found = await page.evaluate(() => {
      const elements = document.querySelectorAll("#app script, #app svg, #app iframe, #app img:not(.brand img), #app [onclick], #app [onerror]");
      const unseen = /[\u001b\u200b\u202a-\u202e\u2066-\u2069]/.test(document.body.textContent + document.title);
      const links = [...document.querySelectorAll("a")].filter((a) => !/^https?:$/.test(a.protocol));
      return { pwned: window.PWNED, elements: elements.length, unseen, links: links.length };
    });
    const text = JSON.stringify(found);
    if (text !== '{"elements":0,"unseen":false,"links":0}') throw new Error(text);
  });
}
