// Questions: a card with the diff in the timeline, the inbox, one alone on a phone.
import { MODES } from "../browser.mjs";
import { TASK } from "../script.mjs";
import { until } from "../until.mjs";

export async function run(t) {
  // A sandbox that is just going to rest can't be looked into; the page asks again by itself.
  const page = await t.page();
  const session = await t.create(TASK.careful);
  await page.goto(`${t.url}/sessions/${session}`);
  await t.step("a card shows what would change", async () => {
    await page.waitForSelector(".question .dl.add:has-text('and two')");
    await page.waitForSelector(".question code:has-text('changes-ask')");
    return page.locator(".question .approve").isEnabled();
  });
  await t.step("the title and the bar say that one waits", async () => {
    await until("the badge", async () => (await page.title()).startsWith("(1) "));
    await page.click(".waiting-bar button");
    await page.waitForFunction(() => document.activeElement.classList.contains("question"));
  });
  await t.step("approved it is done, and the next one is asked", async () => {
    await page.click(".question .approve");
    await page.waitForSelector(".question .dl.del:has-text('and two')");
    return (await page.locator(".question").count()) === 1 && (await page.locator("text=/approved it after/").count()) === 1;
  });
  await inbox(t, page);
  await alone(t, session);
  await t.step("the session goes on, and says who denied it and why", async () => {
    await page.goto(`${t.url}/sessions/${session}`);
    await page.waitForSelector("text=I asked twice.");
    await page.waitForSelector(".verdict:has-text('denied it'):has-text('Once is enough.')");
  });
  await t.step("the badge is gone", () => until("no badge", async () => !(await page.title()).startsWith("(")));
  await t.step("the file has what was approved, and not what was denied", async () => {
    await page.click("#tab-changes");
    await page.waitForSelector(".dl.add:has-text('and two')");
    return (await page.locator(".dl:has-text('nothing is left')").count()) === 0;
  });
}

async function inbox(t, page) {
  await t.step("the inbox has it too", async () => {
    await page.click("nav >> text=Approvals");
    await page.waitForSelector(".question .dl.add:has-text('nothing is left')");
    return (await page.locator(".question").count()) === 1;
  });
}

async function alone(t, session) {
  const phone = await t.page(await t.profile(MODES.phone));
  await t.step("on a phone one question alone is denied with a reason", async () => {
    const [question] = (await t.get("/v1/approvals")).data.filter((one) => one.session === session);
    await phone.goto(`${t.url}/approvals/${question.id}`);
    await phone.waitForSelector(".question .dl.add:has-text('nothing is left')");
    await phone.fill(".deny-row input", "Once is enough.");
    await phone.tap("button.deny");
    await phone.waitForSelector("text=This was answered");
  });
}
