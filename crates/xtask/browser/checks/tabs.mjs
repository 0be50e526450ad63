// Two tabs of one browser share one listener, and both know everything at once.
import { TASK } from "../script.mjs";
import { until } from "../until.mjs";

export async function run(t) {
  // A sandbox that is just going to rest can't be looked into; the page asks again by itself.
  const one = await t.page();
  const two = await t.page();
  for (const page of [one, two]) {
    await page.goto(t.url);
    await page.waitForSelector(".session-row, text=No session yet").catch(() => page.waitForSelector("[data-composer]"));
  }
  const session = await t.create(TASK.once);
  await t.step("both see a new session and its question", async () => {
    for (const page of [one, two]) {
      await page.waitForSelector(`.session-row[href$="${session}"] .asks`);
      await until("the badge", async () => (await page.title()).startsWith("(1) "));
    }
  });
  await t.step("answered in one, it is gone in the other", async () => {
    for (const page of [one, two]) {
      await page.click(`.session-row[href$="${session}"]`);
      await page.waitForSelector(".question .approve:not(:disabled)");
    }
    await one.click(".question .approve");
    await two.waitForSelector(".question", { state: "detached" });
    for (const page of [one, two]) await page.waitForSelector("text=I asked once.");
  });
  await t.step("when the tab that listens goes, the other one listens", async () => {
    await one.close();
    await two.goto(t.url);
    const next = await t.create(TASK.short);
    await two.waitForSelector(`.session-row[href$="${next}"] .status:has-text('answered')`);
  });
  await t.step("logging out in one tab ends it in the other", async () => {
    // Not of the profile that the other checks have: it would be logged out as well.
    const context = await t.house.browser.newContext();
    t.house.profiles.push(context);
    t.expect(/status of 401/);
    const left = await t.page(context);
    await left.goto(t.world.link(t.url));
    await left.waitForSelector("[data-composer]");
    const right = await t.page(context);
    await right.goto(`${t.url}/sessions/${session}`);
    await right.waitForSelector("text=I asked once.");
    await left.click("text=Log out");
    await right.fill("[data-composer]", "Are you there?");
    await right.click("button:has-text('Send')");
    await right.waitForSelector("text=You are not logged in");
  });
}
