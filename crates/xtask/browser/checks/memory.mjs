// What agents remember: written, changed by two at once, looked back at, brought back, removed.
import { findings, isBad } from "../axe.mjs";
import { MARKUP } from "../hostile.mjs";
import { until } from "../until.mjs";

const PATH = "/memory/user/team/notes.md";
const FIRST = `# Notes\n\nWe use tabs.\n${MARKUP}\n`;
const MINE = "# Notes\n\nWe use spaces, two of them.\n";
const THEIRS = "# Notes\n\nWe use spaces, four of them.\n";

export const alone = {};

export async function run(t) {
  const page = await t.page();
  await written(t, page);
  await found(t, page);
  await edited(t, page);
  await atOnce(t, page);
  await lookedBack(t, page);
  await removed(t, page);
}

const text = (page) => page.textContent("pre.code");

async function written(t, page) {
  await t.step("where nothing is remembered, the page says so", async () => {
    await page.goto(t.url);
    await page.click("nav >> text=Memory");
    await page.waitForSelector("text=Nothing is remembered yet");
  });
  await t.step("an entry is written", async () => {
    await page.click("#tab-new");
    await page.fill(".editor input.mono", PATH);
    await page.fill(".editor textarea", FIRST);
    await page.fill(".editor input:not(.mono)", "So that nobody asks again");
    await page.click("button:has-text('Save')");
    await page.waitForSelector(`h1:has-text("${PATH}")`);
    await page.waitForSelector("pre.code:has-text('We use tabs.')");
    return new URL(page.url()).pathname === PATH && (await page.evaluate(() => window.PWNED)) === undefined;
  });
  await t.step("agents and the command line have the same", () => t.world.outrigger("memory", "cat", PATH) === FIRST);
  await t.step("a path that is taken is not written over, and what was written stays", async () => {
    t.expect(/status of 412/);
    await page.goto(`${t.url}/memory#new`);
    await page.fill(".editor input.mono", PATH);
    await page.fill(".editor textarea", MINE);
    await page.click("button:has-text('Save')");
    await page.waitForSelector("text=There is an entry at this path already");
    return (await page.inputValue(".editor textarea")) === MINE && t.world.outrigger("memory", "cat", PATH) === FIRST;
  });
}

async function found(t, page) {
  await t.step("the list has it, below what it belongs to", async () => {
    await page.click("#tab-entries");
    await page.waitForSelector("section[aria-label='/memory/user'] .entry-row:has-text('team/notes.md')");
  });
  await t.step("words find it, and others do not", async () => {
    await page.fill(".search input", "tabs");
    await page.waitForSelector(`.entry-row:has-text("${PATH}") .snippet`);
    await page.fill(".search input", "nobodywroteanythinglikethis");
    await page.waitForSelector("text=Nothing has these words.");
  });
}

async function edited(t, page) {
  await t.step("it is changed", async () => {
    await page.goto(t.url + PATH);
    await page.click("button:has-text('Edit') >> nth=-1");
    await page.fill(".editor textarea", FIRST.replace("tabs", "spaces"));
    await page.fill(".editor input", "Spaces it is");
    await page.click("button:has-text('Save')");
    await page.waitForSelector("pre.code:has-text('We use spaces.')");
    await page.waitForSelector("[role=status]:has-text('Done')");
  });
}

// Somebody else is quicker, with the same revision before their eyes.
async function atOnce(t, page) {
  await t.step("who is slower loses nothing, and sees what is there now", async () => {
    await page.click("#tab-edit");
    await page.fill(".editor textarea", MINE);
    t.world.write("theirs.md", THEIRS);
    t.world.outrigger("memory", "put", PATH, t.world.at("theirs.md"), "--replaces", "2", "--message", "Four");
    await page.click("button:has-text('Save')");
    await page.waitForSelector(".conflict:has-text('Somebody else changed it meanwhile')");
    await page.waitForSelector(".conflict .dl.add:has-text('four of them')");
    const now = await page.textContent(".conflict pre.code");
    return now === THEIRS && (await page.inputValue(".editor textarea")) === MINE && t.world.outrigger("memory", "cat", PATH) === THEIRS;
  });
  await t.step("axe has nothing against that", async () => {
    const bad = (await findings(page)).filter(isBad).map((one) => one.text);
    if (bad.length > 0) throw new Error(bad.join("\n"));
  });
  await t.step("both are brought together", async () => {
    await page.fill(".editor textarea", `${THEIRS}Or two.\n`);
    await page.click("button:has-text('Save both together')");
    await page.waitForSelector("pre.code:has-text('Or two.')");
    return t.world.outrigger("memory", "cat", PATH) === `${THEIRS}Or two.\n`;
  });
}

async function lookedBack(t, page) {
  await t.step("the history has every version, the newest first, and why it was made", async () => {
    await page.click("#tab-history");
    await page.waitForSelector(".versions li:has-text('Revision 1')");
    const versions = await page.locator(".versions li").allTextContents();
    const wanted = [/Revision 4/, /Revision 3[^]*Four/, /Revision 2[^]*Spaces it is/, /Revision 1[^]*So that nobody asks again/];
    return versions.length === wanted.length && wanted.every((pattern, at) => pattern.test(versions[at]));
  });
  await t.step("a version is compared with the one before", async () => {
    const version = page.locator(".versions li:has-text('Revision 2')");
    await version.locator(".fold-head").click();
    await version.locator(".dl.del:has-text('tabs')").waitFor();
    await version.locator(".dl.add:has-text('spaces')").waitFor();
  });
  await t.step("the first version made all of it", async () => {
    const version = page.locator(".versions li:has-text('Revision 1')");
    await version.locator(".fold-head").click();
    await version.locator(".dl.add:has-text('tabs')").waitFor();
    return (await version.locator(".dl.del").count()) === 0;
  });
  await t.step("every line is somebody's", async () => {
    await page.click("#tab-blame");
    await page.waitForSelector(".blame tr:has-text('Or two.')");
    const rows = await page.locator(".blame tbody tr").allTextContents();
    return rows.length === 4 && /^1/.test(rows[0]) && rows[3].includes("4,");
  });
  await t.step("an older version is brought back as a new one", async () => {
    await page.click("#tab-history");
    await page.click("button:has-text('Bring revision 1 back')");
    await page.waitForSelector("pre.code:has-text('We use tabs.')");
    return (await text(page)) === FIRST && t.world.outrigger("memory", "cat", PATH) === FIRST;
  });
}

async function removed(t, page) {
  t.expect(/status of 404/);
  await t.step("it is removed once that was asked twice", async () => {
    await page.click("button:has-text('Remove…')");
    await page.click("button:has-text('Remove it')");
    await page.waitForSelector("text=There is no such entry");
  });
  await t.step("its history stays, and brings it back", async () => {
    await page.click("#tab-history");
    await page.waitForSelector(".versions li:has-text('Revision 6'):has-text('removed')");
    await page.click("button:has-text('Bring revision 5 back')");
    await page.waitForSelector("pre.code:has-text('We use tabs.')");
    await until("it is listed again", async () => (await t.get("/v1/memory?recursive=true")).data.some((entry) => entry.path === PATH));
  });
  await t.step("a version's content is destroyed, and why stays", async () => {
    t.expect(/status of 409/);
    await page.click("#tab-history");
    const version = page.locator(".versions li:has-text('Revision 2')");
    await version.locator("button:has-text('Redact…')").click();
    await version.locator(".ending input").fill("A name was in it");
    await version.locator("button:has-text('Destroy its content')").click();
    await version.locator("button:has-text('Destroy this alone')").click();
    await page.waitForSelector(".versions li:has-text('Revision 2'):has-text('A name was in it')");
    return (await version.locator("button:has-text('Redact…')").count()) === 0;
  });
}
