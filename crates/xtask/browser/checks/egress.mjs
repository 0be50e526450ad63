// What sandboxes reached: on the page of the rules, with what was refused.
import { REACHED, TASK } from "../script.mjs";
import { until } from "../until.mjs";

export async function run(t) {
  const page = await t.page();
  const session = (await t.post("/v1/sessions", { text: TASK.reach, network: [REACHED] })).id;
  await t.status(session, "answered");
  await until("it is noted", async () => (await t.get(`/v1/egress?session=${session}`)).data.length > 0);
  await t.step("what was refused is there, with why", async () => {
    await page.goto(`${t.url}/rules#egress`);
    const flow = page.locator(".flow", { hasText: "refused.example" }).first();
    await flow.locator(".says.forbid").waitFor();
    await flow.locator(`a[href="/sessions/${session}"]`).waitFor();
    return (await flow.locator(".flow-why").textContent()).includes("refused.example");
  });
  await t.step("a host and a verdict leave what fits", async () => {
    await page.fill("label:has-text('Host') input", "nowhere.example");
    await page.click(".egress-form button");
    await page.waitForSelector("[role=status]:has-text('Nothing of that kind')");
    await page.fill("label:has-text('Host') input", "example");
    await page.selectOption(".egress-form select", "forbid");
    await page.click(".egress-form button");
    await page.waitForSelector(".flow:has-text('refused.example')");
    return (await page.locator(".flow .says.permit").count()) === 0;
  });
}
