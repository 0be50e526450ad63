// Who has no link is told where one is; a link opens the page once; logging out ends it.
export const alone = { login: false };

export async function run(t) {
  t.expect(/status of 401/);
  // A link that is used up is answered with JSON, for which a browser looks for an icon.
  t.expect(/status of 404.*favicon/);
  const page = await t.page();
  await t.step("who is not logged in is told how to", async () => {
    await page.goto(t.url);
    await page.waitForSelector("text=You are not logged in");
    await page.waitForSelector("code:has-text('outrigger keys link')");
  });
  await t.step("the link opens an empty start page, and is no longer in the address", async () => {
    await page.goto(t.house.server.link);
    await page.waitForSelector("text=No session yet");
    return page.url() === `${t.url}/` && (await page.title()) === "Outrigger";
  });
  await t.step("used twice it says that it is used up", async () => {
    const other = await t.page(await t.house.browser.newContext());
    const response = await other.goto(t.house.server.link);
    const said = await other.textContent("body");
    t.figure(`it says: ${said.replace(/\s+/g, " ").trim().slice(0, 160)}`);
    await other.context().close();
    return response.status() === 401 && /link/i.test(said);
  });
  await t.step("a link of `outrigger keys link` opens it too", async () => {
    const other = await t.page(await t.house.browser.newContext());
    await other.goto(t.world.link(t.url));
    await other.waitForSelector("text=No session yet");
    await other.context().close();
  });
  await t.step("logging out shows the login page, and it stays so", async () => {
    await page.click("text=Log out");
    await page.waitForSelector("text=You are not logged in");
    await page.reload();
    await page.waitForSelector("text=You are not logged in");
  });
}
