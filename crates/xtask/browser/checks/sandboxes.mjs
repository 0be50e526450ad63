// Sandboxes without an agent: one is made, typed to, looked into, kept, forked and removed.
import http from "node:http";
import { findings, isBad } from "../axe.mjs";
import { FILE, MARKUP, quoted } from "../hostile.mjs";
import { until } from "../until.mjs";

// As long as these are all that there are.
export const alone = {};

const item = (name) => `.tree [role=treeitem]:has(code:text-is(${JSON.stringify(name)}))`;
const shows = (page, text) => page.waitForFunction((wanted) => document.querySelector(".xterm-rows")?.textContent.includes(wanted), text);

export async function run(t) {
  const page = await t.page();
  await made(t, page);
  await typed(t, page);
  await files(t, page);
  await network(t, page);
  await snapshots(t, page);
  await others(t, page);
  await removed(t, page);
}

async function made(t, page) {
  await t.step("one is made from a template, with limits", async () => {
    await page.goto(t.url);
    await page.keyboard.press("x");
    await page.waitForSelector("text=There is no sandbox yet.");
    await page.fill("label:has-text('What it is for') input", "Trying things");
    await page.click("summary");
    await page.fill("label:has-text('Memory in MiB') input", "256");
    await page.click("button:has-text('Make it')");
    await page.waitForSelector(".facts-line:has-text('Trying things'):has-text('256 MiB')");
    const [info] = (await t.get("/v1/sandboxes")).data;
    return info.limits.memory_mib === 256 && page.url().endsWith(`/sandboxes/${info.id}`);
  });
}

async function typed(t, page) {
  await t.step("a terminal is opened and typed to, without styles that the page forbids", async () => {
    await page.click("button:has-text('Open a terminal')");
    await page.waitForSelector(".terminal .xterm-rows");
    await page.keyboard.type("echo $((40 + 2)) things\n");
    await shows(page, "42 things");
    await page.keyboard.type("printf '\\033[31mred\\033[0m \\033[38;2;1;200;30mtrue\\033[0m '; echo colours\n");
    return shows(page, "red true colours");
  });
  await t.step("what it shows is only ever text", async () => {
    await page.keyboard.type(`clear; printf '%s\\n' ${quoted(MARKUP)}; printf '\\033]8;;javascript:window.PWNED=1\\007lin\\033]8;;\\007; \\033]0;title\\007'; echo en''d\n`);
    await shows(page, "end");
    return page.evaluate(() => window.PWNED === undefined && !document.title.includes("title") && !document.querySelector(".terminal img, .terminal script, .terminal a"));
  });
  await t.step("it is as large as there is room", async () => {
    await page.setViewportSize({ width: 700, height: 700 });
    await page.keyboard.type("clear; stty size\n");
    const rows = () => page.locator(".xterm-rows > div").count();
    const size = await until("the shell knows", async () => {
      await page.keyboard.type("clear; stty size\n");
      const [, tall] = /(\d+) \d+/.exec(await page.textContent(".xterm-rows")) ?? [];
      return Number(tall) === (await rows()) && tall;
    });
    await page.setViewportSize({ width: 1280, height: 800 });
    return Number(size) > 5;
  });
  await t.step("its keys are not the page's, and the keyboard gets out of it", async () => {
    await page.keyboard.type("cat > keys\n?jx/");
    await page.keyboard.press("Enter");
    await page.keyboard.press("Control+d");
    await page.keyboard.press("Escape");
    const isInside = await page.evaluate(() => document.activeElement.closest(".terminal") !== null);
    await page.keyboard.press("Shift+Escape");
    const button = await page.evaluate(() => document.activeElement.textContent);
    return isInside && button === "Close the terminal" && (await page.locator("dialog[open]").count()) === 0;
  });
  await t.step("axe finds nothing serious while it is open", async () => {
    const bad = (await findings(page)).filter(isBad);
    if (bad.length > 0) throw new Error(bad.map(({ text }) => text).join("\n"));
  });
  await t.step("it says how it ended", async () => {
    await page.focus(".xterm-helper-textarea");
    await page.keyboard.press("Control+c");
    await page.keyboard.type("exit 3\n");
    await page.waitForSelector("[role=status]:has-text('The shell ended with 3.')");
    return (await page.locator(".xterm").count()) === 0;
  });
}

async function files(t, page) {
  await t.step("files are sent, looked at and deleted", async () => {
    await page.click("#tab-files");
    await page.waitForSelector(item("keys"));
    await page.setInputFiles("input[type=file]", { name: FILE, mimeType: "text/plain", buffer: Buffer.from(`${MARKUP}\n`) });
    await page.waitForSelector(item(FILE));
    await page.click(item(FILE));
    await page.waitForSelector(".file-view .dl:has-text('PWNED')");
    const [fetched] = await Promise.all([page.waitForEvent("download"), page.click("a:has-text('Fetch it')")]);
    const isPlain = await page.evaluate(() => window.PWNED === undefined);
    await page.click("button:has-text('Delete it')");
    await page.waitForSelector(item(FILE), { state: "detached" });
    return isPlain && (await fetched.failure()) === null;
  });
}

async function network(t, page) {
  const host = http.createServer((_, answer) => answer.end("hello"));
  await new Promise((resolve) => host.listen(0, "127.0.0.2", resolve));
  const word = `http://127.0.0.2:${host.address().port}`;
  const [{ id }] = (await t.get("/v1/sandboxes")).data;
  await t.step("it reaches what one says, and one sees what it reached", async () => {
    await page.click("#tab-network");
    await page.waitForSelector("text=It reaches nothing.");
    await page.fill("label:has-text('What it may reach') input", word);
    await page.click("button:has-text('Set')");
    await page.waitForSelector(`p:has-text('It may reach ${word}')`);
    await t.post(`/v1/sandboxes/${id}/execs`, { shell: `curl -s ${word}/; curl -s https://refused.example/; true` });
    await page.reload();
    await page.waitForSelector(`.flow:has-text('passed'):has-text('by ${word}')`);
    await page.waitForSelector(".flow:has-text('refused'):has-text('refused.example'):has-text('among the words of its')");
    return (await page.locator(".flow").count()) === 2;
  });
  t.expect(/status of 400/);
  await t.step("words that mean nothing are refused with why", async () => {
    await page.fill("label:has-text('What it may reach') input", "none, packages");
    await page.click("button:has-text('Set')");
    await page.waitForSelector("text=`none` stands alone");
    return (await t.get(`/v1/sandboxes/${id}`)).network[0] === word;
  });
  host.close();
}

async function snapshots(t, page) {
  await t.step("the disk is kept, and another one begins there", async () => {
    const before = page.url().split("#")[0];
    await page.click("#tab-snapshots");
    await page.fill("label:has-text('What it is for') input", "With keys");
    await page.click("button:has-text('Take a snapshot')");
    await page.waitForSelector(".checkpoints li:has-text('With keys')");
    await page.click("button:has-text('Fork from here')");
    await page.waitForFunction((was) => !location.href.startsWith(was), before);
    await page.waitForSelector(".facts-line:has-text('snapshot-')");
    await page.click("#tab-files");
    await page.waitForSelector(item("keys"));
    return (await t.get("/v1/sandboxes")).data.length === 2;
  });
  await t.step("and from how it is now", async () => {
    const before = page.url().split("#")[0];
    await page.click(".tools >> button:text-is('Fork')");
    await page.waitForFunction((was) => !location.href.startsWith(was), before);
    await page.waitForSelector(".facts-line");
    return (await t.get("/v1/sandboxes")).data.length === 3;
  });
}

async function others(t, page) {
  await t.step("others do not see it", async () => {
    t.expect(/status of 404/);
    const bobs = await t.person("bob");
    await bobs.goto(`${t.url}/sandboxes`);
    await bobs.waitForSelector("text=There is no sandbox yet.");
    await bobs.goto(page.url());
    await bobs.waitForSelector(".failure");
    return (await bobs.locator("button:has-text('Open a terminal')").count()) === 0;
  });
}

async function removed(t, page) {
  await t.step("it is suspended, and removed", async () => {
    await page.click("button:has-text('Suspend')");
    await page.waitForSelector(".facts-line:has-text('cold')");
    await page.click("button:has-text('Remove…')");
    await page.click("button:has-text('Remove it')");
    await page.waitForSelector("text=A sandbox of your own");
    return until("it is gone", async () => (await t.get("/v1/sandboxes")).data.length === 2);
  });
}
