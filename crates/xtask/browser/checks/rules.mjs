// The rules: read, asked about what nobody does, and about what was done.
import { TASK } from "../script.mjs";
import { until } from "../until.mjs";

export const alone = {};

export async function run(t) {
  const page = await t.page();
  await listed(t, page);
  await asked(t, page);
  const session = await t.create(TASK.once);
  await t.status(session, "waits for approval");
  await explained(t, page, session);
}

async function listed(t, page) {
  await t.step("every rule is there, and opens", async () => {
    await page.goto(t.url);
    await page.click("nav >> text=Rules");
    const ours = page.locator(".rule", { hasText: "changes-ask" });
    await ours.locator(".says.ask").waitFor();
    await ours.locator(".fold-head").click();
    await ours.locator("pre:has-text('action == Action::\"write_files\"')").waitFor();
    await ours.locator("text=rules.cedar").waitFor();
    await ours.locator("text=May be approved by anyone").waitFor();
    return (await page.locator(".rule").count()) === (await t.get("/v1/rules")).data.length;
  });
  await t.step("words leave those that have all of them", async () => {
    await page.fill("[role=search] input", "ask write_files");
    await until("fewer", async () => (await page.locator(".rule").count()) < (await t.get("/v1/rules")).data.length);
    const words = await page.locator(".rule .says").allTextContents();
    return words.length > 0 && (await page.locator(".rule:has-text('changes-ask')").count()) === 1;
  });
}

async function asked(t, page) {
  await t.step("what would be asked about is, and it is said whose rule that is", async () => {
    await page.click("#tab-ask");
    await page.selectOption(".explain-form select >> nth=0", "write_files");
    await page.fill(".explain-form input[required]", "/workspace/notes.txt");
    await page.fill("label:has-text('For whom') input", "eve");
    await page.click("button:has-text('Ask the rules')");
    await page.waitForSelector(".explained [role=status] .says.ask");
    await page.waitForSelector(".explained .asked-situation:has-text('/workspace/notes.txt'):has-text('eve')");
    await page.waitForSelector(".explained .rule:has-text('changes-ask')");
    await page.waitForSelector(".explained .subjects tr:has-text('eve'):has-text('changes-ask')");
  });
  await t.step("what is permitted is said to be", async () => {
    await page.selectOption(".explain-form select >> nth=0", "execute");
    await page.fill(".explain-form input[required]", "main");
    await page.click("button:has-text('Ask the rules')");
    await page.waitForSelector(".explained [role=status] .says.permit");
  });
}

async function explained(t, page, session) {
  await t.step("a question says why it is asked, then and now", async () => {
    await page.goto(`${t.url}/sessions/${session}`);
    await page.click(".question .why-button");
    await page.waitForSelector(".question .why-body:has-text('Then and now') .says.ask");
    await page.waitForSelector(".question .why-body .rule:has-text('changes-ask')");
  });
  await t.step("a step that was simply permitted says so too", async () => {
    const step = page.locator(".step.tool", { hasText: "execute" }).first();
    await step.hover();
    await step.locator(".why-button").click();
    await step.locator(".why-body .says.permit").first().waitFor();
    await step.locator(".why-button").click();
    return (await step.locator(".why-body").count()) === 0;
  });
  await t.step("with other rules, what holds now stands beside what was said then", async () => {
    const rules = t.world.read("rules.cedar");
    t.world.write("rules.cedar", `${rules}\n@id("no-care")\n@reason("Nobody touches it.")\nforbid (principal, action == Action::"write_files", resource in Path::"/workspace/care.txt");\n`);
    await page.click(".question .why-button");
    await page.click(".question .why-button");
    const why = page.locator(".question .why-body");
    await why.locator("p:has-text('Then:') .says.ask").waitFor();
    await why.locator("text=The rules are others now.").waitFor();
    await why.locator("[role=status] .says.forbid").waitFor();
    await why.locator(".rule:has-text('no-care'):has-text('Nobody touches it.')").waitFor();
    t.world.write("rules.cedar", rules);
  });
  await t.post(`/v1/sessions/${session}/cancel`);
}
