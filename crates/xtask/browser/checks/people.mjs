// Who there is: read here, and changed in a file.
import { PEOPLE } from "./sharing.mjs";

export const alone = { people: PEOPLE };

export async function run(t) {
  const page = await t.page();
  await t.step("the page says who one is, and of what", async () => {
    await page.goto(t.url);
    await page.click("nav >> text=People");
    await page.waitForSelector(".lead:has-text('You are local'):has-text('acme')");
    return (await page.locator(".who").textContent()) === "local";
  });
  await t.step("people have their groups, also those that they are in through another", async () => {
    await page.waitForSelector(".entry-row:has-text('bob'):has-text('leads, ops')");
    await page.waitForSelector(".entry-row:has-text('local'):has-text('you')");
  });
  await t.step("groups have their members, and roles what they mean", async () => {
    await page.waitForSelector(".entry-row:has-text('leads'):has-text('lea'):has-text('group ops')");
    const viewer = page.locator(".entry-row", { has: page.locator(".entry-name:text-is('viewer')") });
    const { groups } = await t.get("/v1/people");
    return (await viewer.locator(".snippet").textContent()) === groups.find((group) => group.name === "viewer").role;
  });
  await t.step("it says where that is changed, and changes nothing itself", async () => {
    await page.waitForSelector("text=policy.people");
    await page.waitForSelector("code:has-text('outrigger keys link --person NAME')");
    return (await page.locator("main input, main select").count()) === 0;
  });
  await t.step("another person sees themselves there", async () => {
    const lea = await t.person("lea");
    await lea.goto(`${t.url}/people`);
    await lea.waitForSelector(".lead:has-text('You are lea')");
    await lea.waitForSelector(".entry-row:has-text('lea') .tag:has-text('you')");
  });
}
