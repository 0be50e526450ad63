// A session goes back to where it stood, and another one begins there.
import { TASK } from "../script.mjs";

export async function run(t) {
  const page = await t.page();
  const session = await t.create(TASK.edit);
  await t.status(session, "answered");
  const address = `${t.url}/sessions/${session}`;
  await t.step("something more is said", async () => {
    await page.goto(address);
    await page.fill("[data-composer]", TASK.short);
    await page.click("button:has-text('Send')");
    await page.waitForSelector("text=Something short.");
    await t.status(session, "answered");
  });
  await t.step("the details have where it stood after each turn", async () => {
    await page.click("#tab-details");
    await page.waitForSelector(".checkpoints li:nth-child(2)");
    const said = await page.locator(".checkpoints li").allTextContents();
    return said[0].includes(TASK.short) && said[1].includes(TASK.edit);
  });
  await t.step("it goes back", async () => {
    await page.click(".checkpoints li:nth-child(2) button:has-text('Go back to here')");
    await page.waitForSelector(`.checkpoints li:first-child:has-text('${TASK.edit}')`);
  });
  await t.step("what came after is seen to be undone, and nothing before it", async () => {
    await page.click("#tab-timeline");
    await page.waitForSelector(".note:has-text('what came after that is undone')");
    await page.waitForSelector(`.said.undone:has-text('${TASK.short}')`);
    const undone = await page.locator(".step.undone").allTextContents();
    return undone.every((text) => !text.includes(TASK.edit));
  });
  await t.step("another one begins there", async () => {
    await page.click("#tab-details");
    await page.click(".checkpoints li:first-child button:has-text('Fork from here')");
    await page.waitForURL((url) => !url.pathname.endsWith(session));
    await page.waitForSelector(".note:has-text('let this begin as a session stood at event')");
  });
  await t.step("it is talked with like any other", async () => {
    await page.fill("[data-composer]", TASK.short);
    await page.click("button:has-text('Send')");
    await page.waitForSelector("text=Something short.");
  });
}
