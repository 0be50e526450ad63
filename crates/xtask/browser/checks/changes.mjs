// What a session changed: seen, taken as a patch, written back into the directory.
import fs from "node:fs";
import { TASK } from "../script.mjs";

// What it writes back would be what all later sessions begin with.
export const alone = {};

export async function run(t) {
  const page = await t.page();
  const session = await t.create(TASK.edit);
  await t.status(session, "answered");
  const before = t.world.read("repo/notes.txt");
  await t.step("the tab shows every file and what became of it", async () => {
    await page.goto(`${t.url}/sessions/${session}`);
    await page.click("#tab-changes");
    await page.waitForSelector(".files li");
    const files = (await page.locator(".files li").allTextContents()).map((text) => text.replace(/\s+/g, " ").trim());
    for (const wanted of [/^changed ?notes.txt ?\+1 −1$/, /^removed ?old.txt ?\+0 −1$/, /^new ?src\/added.rs ?\+40 −0$/]) {
      if (!files.some((file) => wanted.test(file))) throw new Error(`${wanted} is not in ${JSON.stringify(files)}`);
    }
  });
  await t.step("the diff shows lines that came and went", async () => {
    await page.waitForSelector(".dl.del:has-text('two')");
    await page.waitForSelector(".dl.add:has-text('TWO, and more')");
  });
  await t.step("the patch is downloaded, and git can apply it", async () => {
    const [download] = await Promise.all([page.waitForEvent("download"), page.click("text=Download the patch")]);
    const patch = fs.readFileSync(await download.path(), "utf8");
    const git = t.world.git("repo", "apply", "--check", await download.path());
    if (git.status !== 0) throw new Error(`git: ${git.stderr}`);
    return download.suggestedFilename() === `${session}.patch` && /^-two\n\+TWO, and more$/m.test(patch);
  });
  await t.step("until now nothing in the directory is changed", () => t.world.read("repo/notes.txt") === before);
  await t.step("it is written back, and the files on the disk are otherwise", async () => {
    await page.click("button:has-text('Write it back')");
    await page.waitForSelector(".apply .good:has-text('3 files')");
    const isGone = !fs.existsSync(t.world.at("repo/old.txt"));
    return isGone && t.world.read("repo/notes.txt") === "one\nTWO, and more\nthree\n" && t.world.read("repo/src/added.rs").endsWith("line 40\n");
  });
  await t.step("the details tell where time went", async () => {
    await page.click("#tab-details");
    await page.waitForSelector(".waterfall li:has-text('execute')");
    return (await page.textContent(".facts")).includes(session);
  });
  await t.step("its journal is verified", async () => {
    await page.click("button:has-text('Verify the journal')");
    await page.waitForSelector("text=As it was written");
  });
}
