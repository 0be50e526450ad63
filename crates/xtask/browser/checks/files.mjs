// The files of a session's copy: a tree that the keyboard walks, and one of them beside it.
import { MODES } from "../browser.mjs";
import { FILE } from "../hostile.mjs";
import { TASK } from "../script.mjs";
import { until } from "../until.mjs";

const item = (name) => `.tree [role=treeitem]:has(code:text-is(${JSON.stringify(name)}))`;

export async function run(t) {
  const page = await t.page();
  const session = await t.create(TASK.files);
  await t.status(session, "answered");
  await t.step("the tab shows what is in the copy", async () => {
    await page.goto(`${t.url}/sessions/${session}`);
    await page.click("#tab-files");
    for (const name of ["notes.txt", "deep", "empty", "long.txt", FILE]) await page.waitForSelector(item(name));
    return page.url().endsWith("#files");
  });
  await walked(t, page);
  await opened(t, page);
  await t.step("what was made since is there when one looks again", async () => {
    t.world.outrigger("sandbox", "exec", `${session}.work`, "--", "touch", "/workspace/just-made.txt");
    await page.click("button:has-text('Look again')");
    await page.waitForSelector(item("just-made.txt"));
    // What was open still is.
    await page.waitForSelector(item("three.txt"));
  });
  await phone(t, session);
}

async function walked(t, page) {
  const at = () => page.evaluate(() => document.activeElement.textContent.trim());
  await t.step("arrows open folders and go into them", async () => {
    await page.focus(item("deep"));
    await page.keyboard.press("ArrowRight");
    await page.waitForSelector(item("er"));
    await until("the folder has opened", async () => (await page.getAttribute(item("deep"), "aria-expanded")) === "true");
    await page.keyboard.press("ArrowRight");
    await until("the focus is on what is in it", async () => (await at()) === "er");
    await page.keyboard.press("Enter");
    await page.waitForSelector(item("three.txt"));
    await page.keyboard.press("ArrowDown");
    await page.keyboard.press("Enter");
    await page.waitForSelector(".file-view .dl:has-text('3')");
    return (await page.locator(".lines .dl").count()) === 3 && (await page.locator(".lines .no[data-n='3']").count()) === 1;
  });
  await t.step("and out of them again", async () => {
    await page.keyboard.press("ArrowLeft");
    await until("the folder has the focus", async () => (await at()) === "er");
    await page.keyboard.press("ArrowLeft");
    await page.waitForSelector(item("three.txt"), { state: "detached" });
    await page.keyboard.press("ArrowRight");
    await page.waitForSelector(item("three.txt"));
    const levels = await page.locator(item("three.txt")).getAttribute("aria-level");
    return levels === "3";
  });
}

async function opened(t, page) {
  await t.step("a folder with nothing in it says so", async () => {
    await page.click(item("empty"));
    await page.waitForSelector(".tree-note:has-text('Empty')");
  });
  for (const [name, said] of [["blank.txt", "The file is empty."], ["picture.bin", "not text"], ["long.txt", "It is cut off here"]]) {
    await t.step(`${name}: ${said}`, async () => {
      await page.click(item(name));
      await page.waitForSelector(`.file-view:has-text(${JSON.stringify(said)}):has-text(${JSON.stringify(name)})`);
    });
  }
  await t.step("a long file is shown in bites", async () => {
    const count = () => page.locator(".lines .dl").count();
    const before = await count();
    await page.click("button:has-text('Show more')");
    await until("more lines", async () => (await count()) > before);
    return before <= 1_000;
  });
  await t.step("markup in a file and in its name is text", async () => {
    await page.click(item(FILE));
    await page.waitForSelector(".lines .dl:has-text('<script>')");
    return (await page.evaluate(() => window.PWNED)) === undefined && (await page.locator(".file-browser img").count()) === 0;
  });
}

async function phone(t, session) {
  const page = await t.page(await t.profile(MODES.phone));
  await t.step("on a phone the file stands below the tree", async () => {
    await page.goto(`${t.url}/sessions/${session}#files`);
    await page.tap(item("notes.txt"));
    await page.waitForSelector(".lines .dl:has-text('two')");
    const [tree, file] = await Promise.all([".tree", ".file-view"].map((name) => page.locator(name).boundingBox()));
    return file.y > tree.y + tree.height - 1 && file.width <= 360;
  });
}
