// A session from its first word to its end: begun, watched, steered, stopped, resumed, ended.
import path from "node:path";
import { TASK } from "../script.mjs";
import { until } from "../until.mjs";

export async function run(t) {
  const page = await t.page();
  await counted(t, page);
  await stopped(t, page);
}

const session = (page) => page.url().match(/sessions\/([^#?]+)/)[1];

async function start(page, t, text) {
  await page.goto(t.url);
  await page.fill("[data-composer]", text);
  await page.click("button:has-text('Start')");
  await page.waitForSelector(".session-head");
}

async function counted(t, page) {
  await t.step("an agent is started", async () => {
    await start(page, t, TASK.count);
    await page.waitForSelector(`.said:has-text("${TASK.count}")`);
    return (await page.title()).startsWith(TASK.count);
  });
  await t.step("the output of a command is seen while it runs", async () => {
    const live = () => page.textContent(".step.tool.is-running .live pre");
    const first = await live();
    await until("more of it", async () => (await live()).length > first.length + 50);
    await page.waitForSelector(".status:has-text('running')");
  });
  await t.step("what it thought is folded, and unfolds", async () => {
    await page.click("button:has-text('Thinking, 2 lines')");
    await page.waitForSelector("text=So there is time to look.");
  });
  await t.step("it is steered while it runs", async () => {
    await page.fill("[data-composer]", TASK.steer);
    await page.click("button:has-text('Steer')");
    await page.waitForSelector(`.said:has-text("${TASK.steer}")`);
    return (await page.inputValue("[data-composer]")) === "";
  });
  await t.step("the answer is to what it was steered to", async () => {
    t.world.open(session(page));
    await page.waitForSelector(".said-by-model strong:has-text('off we go')");
    await page.waitForSelector(".status:has-text('answered')");
    await page.waitForSelector("text=The agent answered.");
  });
  await t.step("the whole output is there", async () => {
    await page.click(".step.tool .fold-head");
    return /tick 1\n[^]*tick 9\n[^]*done/.test(await page.textContent(".step.tool pre.out"));
  });
  await t.step("loaded anew it is the same", async () => {
    const before = await page.locator(".step").count();
    await page.reload();
    await page.waitForSelector("text=The agent answered.");
    return (await page.locator(".step").count()) === before;
  });
}

async function stopped(t, page) {
  await t.step("a turn is stopped", async () => {
    await start(page, t, TASK.sleep);
    await page.waitForSelector(".step.tool.is-running .live pre:has-text('tick')");
    await page.click("button.stop");
    await page.waitForSelector("text=/stopped the turn/");
    await page.waitForSelector(".status:has-text('interrupted')");
  });
  await t.step("it is resumed, and answers", async () => {
    await page.click("button:has-text('Resume')");
    await page.waitForSelector("text=I slept less than I meant to.");
    await page.waitForSelector(".status:has-text('answered')");
  });
  await t.step("one that used up its limits goes on with more", async () => {
    const { id } = await t.post("/v1/sessions", { text: TASK.edit, limits: { steps_max: 1 } });
    await page.goto(`${t.url}/sessions/${id}`);
    await page.click("button:has-text('Limits…')");
    await page.fill("label:has-text('Steps of a turn') input", "100");
    await page.screenshot({ path: path.join(t.shots, "limits.png") });
    await page.click("text=Go on with these");
    await page.waitForSelector(".status:has-text('answered')");
  });
  await t.step("it is ended for good, with a reason", async () => {
    await page.click("text=End…");
    await page.fill(".ending input", "I have seen enough");
    await page.click("text=End the session");
    await page.waitForSelector(".ended-note");
    await page.waitForSelector(".timeline >> text=I have seen enough");
    return (await page.locator("[data-composer], button.stop").count()) === 0;
  });
  await t.step("it is deleted, and gone from the list of another page", async () => {
    // The page may ask for it once more before it leaves.
    t.expect(/status of 404/);
    const id = page.url().split("/").at(-1).split("#")[0];
    const other = await t.page();
    await other.goto(t.url);
    await other.waitForSelector(`.session-row[href="/sessions/${id}"]`);
    await page.click("text=Delete…");
    await page.click("text=Delete the session");
    await page.waitForSelector(".session-row");
    await other.waitForFunction((id) => !document.querySelector(`.session-row[href="/sessions/${id}"]`), id);
    return (await page.locator(`.session-row[href="/sessions/${id}"]`).count()) === 0;
  });
}
