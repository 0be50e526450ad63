// What is spent and what may be: bars of the accounts, a plot of days, the sessions behind it.
import { TASK } from "../script.mjs";

export const alone = {};

export async function run(t) {
  const page = await t.page();
  const session = await t.create(TASK.short);
  await t.status(session, "answered");
  t.world.outrigger("budget", "set", "org", "--tokens", "1000000", "--soft-tokens", "900000", "--per", "month");
  await t.step("every account is there, with what is spent of its limit", async () => {
    await page.goto(t.url);
    await page.click("nav >> text=Budgets");
    await page.waitForSelector(".account h2:has-text('The organisation')");
    const { data } = await t.get("/v1/budgets");
    const organisation = page.locator(".account", { hasText: "The organisation" });
    await organisation.locator(".measure:has-text('Tokens'):has-text('of 1 M') .lane-soft").waitFor();
    await organisation.locator("text=counted anew each month").waitFor();
    return (await page.locator(".account").count()) === data.length;
  });
  await t.step("the plot has a bar for each of 30 days, and the table the same", async () => {
    await page.waitForSelector(".chart svg[role=img]");
    await page.check(".chip:has-text('Tokens') input");
    const bars = await page.locator(".chart rect").evaluateAll((all) => all.map((bar) => Number(bar.getAttribute("height"))));
    await page.click("button:has-text('The same as a table')");
    const rows = await page.locator(".chart tbody tr").allTextContents();
    const { usage } = await t.get(`/v1/sessions/${session}`);
    return bars.length === 30 && rows.length === 30 && bars[29] > 0 === usage.tokens > 0 && bars[0] === 0 && rows[0].endsWith("1");
  });
  await t.step("it says what was added up", () => page.locator("figcaption:has-text('1 session')").isVisible());
  await t.step("a session that spent is one link away", async () => {
    await page.click(`.top-sessions a[href$="${session}"]`);
    await page.waitForSelector(".session-head");
    await page.goBack();
    await page.waitForSelector(".top-sessions");
  });
  await t.step("an account that was stopped says who did it and why", async () => {
    t.world.outrigger("budget", "stop", "org", "--reason", "The bill is looked at");
    await page.reload();
    await page.waitForSelector(".account .trouble:has-text('Stopped by'):has-text('The bill is looked at')");
    await page.waitForSelector("code:has-text('outrigger budget allow org')");
    t.world.outrigger("budget", "allow", "org");
  });
}
