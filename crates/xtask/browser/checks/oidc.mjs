// People with accounts at a certified provider: a button, and who they are and may do comes along.
export const alone = { login: false, provider: true };

// The pages of the provider, of which its users see two.
async function signIn(page, name) {
  await page.click("text=Sign in with Acme");
  await page.fill("input[name=login]", name);
  await page.fill("input[name=password]", "any");
  await page.click("button[type=submit]");
  await page.click("text=Continue");
}

export async function run(t) {
  // Who is not logged in, or not let in; and the pages of the provider, which have no icon.
  t.expect(/status of 401/);
  t.expect(/status of 404.*favicon/);
  // Its pages would like to look otherwise, too.
  t.expect(/fonts\.googleapis\.com/);
  const page = await t.page();
  const ask = async (path, body) => (await page.request.post(`${t.url}/v1/login/device${path}`, { data: body })).json();
  const begun = await ask("", { label: "outrigger of ada" });
  await t.step("the page has a button, and leads back to what was asked for", async () => {
    await page.goto(begun.url);
    await signIn(page, "ada");
    await page.waitForSelector(".who:has-text('ada@example.com')");
    return page.url() === begun.url;
  });
  await t.step("a program is let in by who came by the provider", async () => {
    await page.click("text=Look");
    await page.click("text=Let it in");
    await page.waitForSelector("text=It is let in");
    const { key } = await ask("/key", { device_code: begun.device_code });
    const headers = { Authorization: `Bearer ${key}` };
    const told = await (await page.request.get(`${t.url}/v1/server`, { headers })).json();
    return told.person === "person:ada@example.com";
  });
  await t.step("their groups are those of the provider", async () => {
    await page.goto(`${t.url}/people`);
    await page.waitForSelector("li:has-text('ada@example.com'):has-text('admin')");
  });
  await t.step("who is in no group that is let in is told so", async () => {
    const other = await t.page(await t.house.browser.newContext());
    await other.goto(t.url);
    await signIn(other, "eve");
    await other.waitForSelector("text=nobody here lets you in");
    await other.goto(t.url);
    await other.waitForSelector("text=You are not logged in");
    await other.context().close();
  });
  await t.step("who logged out is asked again, and comes back with one press", async () => {
    await page.click("text=Log out");
    await page.click("text=Sign in with Acme");
    await page.waitForSelector(".who:has-text('ada@example.com')");
    return page.url() === `${t.url}/people`;
  });
}
