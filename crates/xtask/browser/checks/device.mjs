// A program asks to be let in, and the person at the page says that it is theirs, or not.
export async function run(t) {
  const page = await t.page();
  const ask = async (path, body) => (await page.request.post(`${t.url}/v1/login/device${path}`, { data: body })).json();
  const begun = await ask("", { label: "outrigger of ada <b>on</b> laptop" });
  const poll = () => ask("/key", { device_code: begun.device_code });
  await t.step("the address that a program shows asks whether it is one's own", async () => {
    await page.goto(begun.url);
    await page.click("text=Look");
    await page.waitForSelector(`strong:has-text('${begun.code}')`);
    await page.waitForSelector("strong:has-text('ada <b>on</b> laptop')");
    return (await poll()).state === "waiting";
  });
  await t.step("a yes gives the program its key, once", async () => {
    await page.click("text=Let it in");
    await page.waitForSelector("text=It is let in");
    const { state, key } = await poll();
    const headers = { Authorization: `Bearer ${key}` };
    const told = await (await page.request.get(`${t.url}/v1/server`, { headers })).json();
    return state === "granted" && told.person === "person:local" && (await poll()).code === "not_found";
  });
  await t.step("a no gives it none, and a code can be typed in any form", async () => {
    const other = await ask("", { label: "somebody" });
    await page.goto(`${t.url}/device`);
    await page.fill("input", other.code.replace("-", " ").toLowerCase());
    await page.click("text=Look");
    await page.click("button:has-text('Refuse')");
    await page.waitForSelector("text=It is refused");
    return (await ask("/key", { device_code: other.device_code })).state === "refused";
  });
  await t.step("what nobody asked for is told", async () => {
    t.expect(/status of 404/);
    await page.goto(`${t.url}/device?code=BBBB-BBBB`);
    await page.click("text=Look");
    await page.waitForSelector("text=no program waits with the code");
  });
}
