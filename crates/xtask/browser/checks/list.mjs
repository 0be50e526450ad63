// A list of some dozens of sessions.
import { TASK } from "../script.mjs";
import { until } from "../until.mjs";

const SESSIONS = 61;
const AT_ONCE = 6;

export const alone = {};

export async function run(t) {
  const page = await t.page();
  await page.goto(t.url);
  await page.waitForSelector("text=No session yet");
  await t.step("the first session of all appears on a page that is open", async () => {
    await t.create(`${TASK.short}, number 0`);
    await page.waitForSelector(".session-row .status:has-text('answered')");
  });
  await t.step(`${SESSIONS} sessions are begun`, async () => {
    const begun = Date.now();
    for (let at = 1; at < SESSIONS; at += AT_ONCE) {
      await Promise.all(Array.from({ length: AT_ONCE }, (_, n) => t.create(`${TASK.short}, number ${at + n}`)));
    }
    await until("all have answered", async () => {
      const { data } = await t.get("/v1/sessions?limit=200");
      return data.length === SESSIONS && data.every((info) => info.status === "answered");
    });
    t.figure(`${Math.round((Date.now() - begun) / SESSIONS)} ms each`);
  });
  await t.step("a page that was open all the time lists all of them", () =>
    until("all rows", async () => (await page.locator(".session-row").count()) === SESSIONS));
  await t.step("a page that is opened now shows the newest, and older ones when asked", async () => {
    await page.reload();
    await page.waitForSelector(".session-row");
    const first = await page.locator(".session-row").count();
    await page.click("text=Show older sessions");
    await until("all rows", async () => (await page.locator(".session-row").count()) === SESSIONS);
    return first < SESSIONS && (await page.locator("text=Show older sessions").count()) === 0;
  });
  await t.step("none of them is there twice", async () => {
    const links = await page.locator(".session-row").evaluateAll((rows) => rows.map((row) => row.href));
    return new Set(links).size === SESSIONS;
  });
}
