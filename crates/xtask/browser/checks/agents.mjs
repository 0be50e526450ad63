// Agents: added, started with one button, changed in versions.

// As long as this is all that there is.
export const alone = {};

export async function run(t) {
  t.expect(/status of 4(00|12)/);
  const page = await t.page();
  await added(t, page);
  await refused(t, page);
  await changed(t, page);
  await started(t, page);
}

const row = (name) => `.agents > li:has(.entry-name:text-is("${name}"))`;

async function added(t, page) {
  await t.step("one is added, which begins by itself", async () => {
    await page.goto(t.url);
    await page.click("nav >> text=Agents");
    await page.waitForSelector("text=There is no agent yet.");
    await page.fill(".new-agent label:has-text('Name') input", "reviewer");
    await page.fill(".new-agent label:has-text('What it is for') input", "reads a change");
    await page.fill(".new-agent label:has-text('Its task') textarea", "Review the newest commit.");
    await page.click(".new-agent summary:has-text('begins by itself')");
    await page.fill(".new-agent label:has-text('At times') input", "30 7 * * MON-FRI");
    await page.fill(".new-agent label:has-text('Of the clock') input", "Europe/Zurich");
    await page.click("button:has-text('Add it')");
    await page.waitForSelector("[role=status]:has-text('reviewer is kept.')");
    await page.waitForSelector(`${row("reviewer")}:has-text("yours"):has-text("30 7 * * MON-FRI"):has-text("next")`);
    const [info] = (await t.get("/v1/agents")).data;
    return info.definition.schedule.time_zone === "Europe/Zurich" && info.revision === 1;
  });
}

async function refused(t, page) {
  await t.step("what can't be is said by its key, and nothing written is lost", async () => {
    await page.click(`${row("reviewer")} button:has-text('Edit…')`);
    await page.fill(`${row("reviewer")} label:has-text('At times') input`, "every day");
    await page.click("button:has-text('Keep another version')");
    await page.waitForSelector(`${row("reviewer")} .failure:has-text("cron")`);
    return (await page.inputValue(`${row("reviewer")} label:has-text('At times') input`)) === "every day";
  });
}

async function changed(t, page) {
  await t.step("it is given another version, and keeps the one before", async () => {
    await page.fill(`${row("reviewer")} label:has-text('At times') input`, "");
    await page.fill(`${row("reviewer")} label:has-text('What it is told') textarea`, "Be brief.");
    await page.click("button:has-text('Keep another version')");
    await page.waitForSelector(`${row("reviewer")} >> text=r2`);
    const [info] = (await t.get("/v1/agents")).data;
    if (info.definition.schedule || info.definition.instructions !== "Be brief.") return false;
    await page.click(`${row("reviewer")} a:has-text('r2')`);
    await page.waitForSelector("h1:has-text('/agents/user/reviewer.toml')");
    await page.goBack();
    return true;
  });
}

async function started(t, page) {
  await t.step("one button starts it, and its session says which agent it is", async () => {
    await page.click(`${row("reviewer")} button:has-text('Start')`);
    await page.waitForURL(/\/sessions\/./);
    await page.waitForSelector("text=Review the newest commit.");
    const [info] = (await t.get("/v1/sessions")).data;
    await page.goto(t.url);
    await page.waitForSelector(".session-row:has-text('reviewer')");
    return info.agent === "reviewer";
  });
}
