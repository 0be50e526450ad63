// What is spent and what may be: bars of the accounts, a plot of days, the sessions behind it; limits
// that are set, an account that is stopped.
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
  await limited(t, page);
  await stopped(t, page);
  await another(t, page);
  await others(t);
}

const section = (name) => `.account:has(h2:has-text(${JSON.stringify(name)}))`;
const accountOf = async (t, account) => (await t.get("/v1/budgets")).data.find((info) => info.account === account);
const limitOf = (info, measure, kind = "limit") => info.measures.find((one) => one.measure === measure)?.[kind];

async function limited(t, page) {
  const organisation = section("The organisation");
  await t.step("a limit is set, and all else stays", async () => {
    await page.goto(`${t.url}/budgets`);
    await page.click(`${organisation} button:has-text('Limits…')`);
    const isThere = (await page.inputValue("input[aria-label='Tokens: at most']")) === "1000000";
    if (!isThere || (await page.locator("button:has-text('Set the limits')").isEnabled())) return false;
    await page.fill("input[aria-label='Dollars: at most']", "12.50");
    await page.fill("input[aria-label='Seconds of processors: a person is asked from']", "90000.5");
    await page.click("button:has-text('Set the limits')");
    await page.waitForSelector("[role=status]:has-text('The organisation: the limits are set.')");
    await page.waitForSelector(`${organisation} .measure:has-text('Money'):has-text('of $12.50')`);
    const info = await accountOf(t, "org");
    return limitOf(info, "money_nanos") === 12_500_000_000 && limitOf(info, "cpu_ms", "soft") === 90_000_500 && limitOf(info, "tokens") === 1_000_000 && info.period === "month";
  });
  await t.step("one is taken away, and all else stays", async () => {
    await page.click(`${organisation} button:has-text('Limits…')`);
    await page.fill("input[aria-label='Dollars: at most']", "");
    await page.selectOption("label:has-text('Counted anew') select", "day");
    await page.keyboard.press("Tab");
    await page.keyboard.press("Enter");
    await page.waitForSelector(`${organisation} h2:has-text('counted anew each day')`);
    const info = await accountOf(t, "org");
    return limitOf(info, "money_nanos") === undefined && limitOf(info, "tokens", "soft") === 900_000 && limitOf(info, "cpu_ms", "soft") === 90_000_500;
  });
}

async function stopped(t, page) {
  const [organisation, session] = [section("The organisation"), await t.create(TASK.sleep)];
  await t.step("an account is not stopped where one does not mean it", async () => {
    await t.status(session, "running");
    await page.click(`${organisation} button:has-text('Stop…')`);
    await page.click("button:has-text('Keep it going')");
    return !(await accountOf(t, "org")).stopped;
  });
  await t.step("stopped it says who did it and why, and what worked is interrupted", async () => {
    await page.click(`${organisation} button:has-text('Stop…')`);
    await page.fill("label:has-text('Why') input", "The bill is looked at");
    await page.keyboard.press("Enter");
    await page.waitForSelector("[role=status]:has-text('is stopped; 1 session interrupted.')");
    await page.waitForSelector(`${organisation} .trouble:has-text('Stopped by'):has-text('The bill is looked at')`);
    await t.status(session, "interrupted");
    return (await accountOf(t, "org")).stopped.reason === "The bill is looked at";
  });
  await t.step("it is allowed again", async () => {
    await page.click(`${organisation} button:has-text('Allow again')`);
    await page.waitForSelector("[role=status]:has-text('may start things again')");
    await page.waitForSelector(`${organisation} button:has-text('Stop…')`);
    return !(await accountOf(t, "org")).stopped;
  });
}

async function another(t, page) {
  await t.step("somebody who has no account yet is limited", async () => {
    await page.click("button:has-text(\"Another person's account\")");
    if (await page.locator(".other-account button:has-text('Limits…')").isEnabled()) return false;
    await page.fill(".other-account label:has-text('Whose') input", "grace");
    await page.waitForSelector("text=Nobody of this name is known here.");
    await page.click(".other-account button:has-text('Limits…')");
    await page.fill("input[aria-label='Steps: at most']", "100");
    await page.click("button:has-text('Set the limits')");
    await page.waitForSelector(`${section("grace")} .measure:has-text('Steps'):has-text('of 100')`);
    return limitOf(await accountOf(t, "user:grace"), "steps") === 100;
  });
}

async function others(t) {
  await t.step("who does not administer sees what is spent, and changes nothing", async () => {
    const bobs = await t.person("bob");
    await bobs.goto(`${t.url}/budgets`);
    await bobs.waitForSelector(section("The organisation"));
    return (await bobs.locator(".budgets button", { hasText: /Limits|Stop|Allow|Another/ }).count()) === 0;
  });
}
