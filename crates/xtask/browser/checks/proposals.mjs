// Changes of what others read too: proposed, looked at, accepted, rejected, taken back.
const PATH = "/memory/organisation/policy.md";

export const alone = {};

export async function run(t) {
  const page = await t.page();
  t.world.outrigger("memory", "scope", "/memory/organisation", "--own", "true");
  await t.step("a new entry waits as a proposal", async () => {
    await page.goto(`${t.url}/memory#new`);
    await page.fill(".editor input.mono", PATH);
    await page.fill(".editor textarea", "Be kind.\n");
    await page.click("button:has-text('Save')");
    await page.click("[role=status] a:has-text('proposal')");
    await page.waitForSelector(".proposal .dl.add:has-text('Be kind.')");
    return (await page.locator(`.entry-row:has-text("${PATH}")`).count()) === 0;
  });
  await t.step("accepted it is there", async () => {
    await page.click(".proposal .approve");
    await page.waitForSelector("[role=status]:has-text('accepted')");
    await page.waitForSelector(".proposal:has-text('It was accepted by')");
    return t.world.outrigger("memory", "cat", PATH) === "Be kind.\n";
  });
  await t.step("rejected it is not, and whoever proposed it reads why", async () => {
    await propose(t, page, "Be quick.\n");
    await page.fill(".proposal label:has-text('Say something') input", "Quick at what?");
    await page.click(".proposal button:has-text('Comment')");
    await page.waitForSelector(".proposal .comments:has-text('Quick at what?')");
    await page.fill(".proposal label:has-text('Why not') input", "Kind is enough.");
    await page.click(".proposal .deny");
    await page.waitForSelector(".proposal:has-text('It was rejected by'):has-text('Kind is enough.')");
    return t.world.outrigger("memory", "cat", PATH) === "Be kind.\n";
  });
  await t.step("one's own is taken back", async () => {
    await propose(t, page, "Be kind, please.\n");
    await page.click(".proposal button:has-text('Withdraw')");
    await page.waitForSelector("[role=status]:has-text('withdrawn')");
  });
  await t.step("nothing waits any more", async () => {
    await page.goto("about:blank");
    await page.goto(`${t.url}/memory#proposals`);
    await page.waitForSelector("text=Nothing waits for a review.");
    await page.check("label:has-text('Also those that are decided') input");
    await page.waitForSelector(".proposal >> nth=2");
    return (await page.locator(".proposal").count()) === 3;
  });
}

async function propose(t, page, text) {
  await page.goto("about:blank");
  await page.goto(`${t.url}${PATH}#edit`);
  await page.fill(".editor textarea", text);
  await page.click("button:has-text('Save')");
  await page.click("[role=status] a:has-text('proposal')");
  await page.waitForSelector(`.proposal .dl.add:has-text(${JSON.stringify(text.trim())})`);
}
