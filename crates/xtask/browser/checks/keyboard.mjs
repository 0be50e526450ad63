// Everything by the keyboard alone.
import { TASK } from "../script.mjs";

const focused = (page, test) => page.waitForFunction(test);

export async function run(t) {
  const page = await t.page();
  await page.goto(`${t.url}/approvals`);
  await page.waitForSelector("h1:has-text('Approvals')");
  await t.step("n, words and Enter start an agent", async () => {
    await page.keyboard.press("n");
    await focused(page, () => document.activeElement.matches("[data-composer]"));
    await page.keyboard.type(TASK.short);
    await page.keyboard.press("Enter");
    await page.waitForSelector("text=Something short.");
  });
  await t.step("/ and Escape lead into the field and out of it", async () => {
    await page.keyboard.press("/");
    await focused(page, () => document.activeElement.matches("[data-composer]"));
    await page.keyboard.press("Escape");
    await focused(page, () => !document.activeElement.matches("textarea"));
  });
  await t.step("j and k go from step to step", async () => {
    const place = () => page.evaluate(() => [...document.querySelectorAll("[data-row]")].indexOf(document.activeElement));
    await page.keyboard.press("j");
    const first = await place();
    await page.keyboard.press("j");
    const second = await place();
    await page.keyboard.press("k");
    return second === first + 1 && (await place()) === first;
  });
  await t.step("s shows the sessions, j and Enter open one", async () => {
    await page.keyboard.press("s");
    await page.waitForSelector(".session-row");
    await page.keyboard.press("j");
    await focused(page, () => document.activeElement.matches(".session-row"));
    await page.keyboard.press("Enter");
    await page.waitForSelector(".session-head");
  });
  await t.step("a shows the approvals, and who hears the page is at its beginning", async () => {
    await page.keyboard.press("a");
    await page.waitForSelector("h1:has-text('Approvals')");
    await focused(page, () => document.activeElement.tagName === "H1");
  });
  await t.step("? shows the keys, Escape hides them", async () => {
    await page.keyboard.press("?");
    await page.waitForSelector("dialog[open]");
    await page.keyboard.press("Escape");
    await page.waitForSelector("dialog", { state: "detached" });
  });
  await t.step("the tabs of a session are walked by arrows", async () => {
    await page.goBack();
    await page.waitForSelector("#tab-timeline");
    await page.focus("#tab-timeline");
    await page.keyboard.press("ArrowRight");
    await page.waitForSelector("#tab-changes[aria-selected=true]");
    return page.url().endsWith("#changes");
  });
  await t.step("Tab leads to the content first", async () => {
    await page.goto(t.url);
    await page.waitForSelector(".session-row");
    await page.keyboard.press("Tab");
    await focused(page, () => document.activeElement.matches(".skip"));
    await page.keyboard.press("Enter");
    await focused(page, () => document.activeElement.id === "main");
  });
  await t.step("every other page has a key", async () => {
    for (const [key, title] of [["m", "Memory"], ["b", "Budgets"], ["p", "People"], ["r", "Rules"], ["S", "Secrets"]]) {
      await page.keyboard.press(key);
      await page.waitForSelector(`h1:has-text('${title}')`);
      await focused(page, () => document.activeElement.tagName === "H1");
    }
  });
}
