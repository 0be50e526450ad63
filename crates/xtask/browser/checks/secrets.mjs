// Secrets: set, rotated, revoked; their values are nowhere but in what is sent.
const VALUE = "a-value-that-nobody-sees-4711";
const OTHER = "another-value-that-nobody-sees-4712";

// As long as this is all that there is.
export const alone = {};

export async function run(t) {
  t.expect(/status of 4(00|03|22)/);
  const page = await t.page();
  const seen = [];
  page.on("response", async (response) => response.url().includes("/v1/") && seen.push(await response.text().catch(() => "")));
  const isNowhere = async () => {
    const fields = await page.locator("input").evaluateAll((all) => all.map((one) => one.value));
    const said = [await page.content(), ...fields, ...seen].join("\n");
    return !said.includes(VALUE) && !said.includes(OTHER);
  };
  await set(t, page, isNowhere);
  await refused(t, page, isNowhere);
  await rotated(t, page, isNowhere);
  await others(t);
  await revoked(t, page);
}

const row = (name) => `.secrets li:has(.entry-name:text-is("${name}"))`;

async function set(t, page, isNowhere) {
  await t.step("one is set, with where it is sent", async () => {
    await page.goto(t.url);
    await page.click("nav >> text=Secrets");
    await page.waitForSelector("text=There is no secret yet.");
    await page.fill(".new-secret label:has-text('Name') input", "API_TOKEN");
    await page.fill(".new-secret input[type=password]", VALUE);
    // Without a place there is nothing that it could be for.
    if (await page.locator("button:has-text('Set it')").isEnabled()) return false;
    await page.fill(".new-secret label:has-text('Hosts') input", "api.example.com https://example.com/v1/*");
    await page.click("summary");
    await page.fill(".new-secret label:has-text('Methods') input", "GET");
    await page.fill(".new-secret label:has-text('Days') input", "30");
    await page.click("button:has-text('Set it')");
    await page.waitForSelector("[role=status]:has-text('API_TOKEN is set.')");
    await page.waitForSelector(`${row("API_TOKEN")}:has-text('set by local'):has-text('ends')`);
  });
  await t.step("it is sent to those places, and its value is nowhere in the page", async () => {
    const [info] = (await t.get("/v1/secrets")).data;
    const places = await page.locator(`${row("API_TOKEN")} .places code`).allTextContents();
    return places.join() === info.places.join() && places.some((place) => place.includes("api.example.com")) && isNowhere();
  });
}

async function refused(t, page, isNowhere) {
  await t.step("one that can't be is not kept in the page either", async () => {
    await page.fill(".new-secret label:has-text('Name') input", "no name");
    await page.fill(".new-secret input[type=password]", OTHER);
    await page.fill(".new-secret label:has-text('Hosts') input", "api.example.com");
    await page.click("button:has-text('Set it')");
    await page.waitForSelector(".new-secret .failure");
    await page.waitForSelector("text=write it once more");
    const kept = await page.inputValue(".new-secret label:has-text('Hosts') input");
    return kept === "api.example.com" && isNowhere();
  });
}

async function rotated(t, page, isNowhere) {
  await t.step("it is given another value", async () => {
    const before = (await t.get("/v1/secrets")).data[0];
    await page.click(`${row("API_TOKEN")} button:has-text('Rotate…')`);
    await page.fill(`${row("API_TOKEN")} input[type=password]`, OTHER);
    await page.keyboard.press("Enter");
    await page.waitForSelector("[role=status]:has-text('API_TOKEN has its new value.')");
    const after = (await t.get("/v1/secrets")).data[0];
    return after.changed_ms > before.changed_ms && after.places.join() === before.places.join() && isNowhere();
  });
}

async function others(t) {
  await t.step("others see that it is there, and change nothing", async () => {
    const bobs = await t.person("bob");
    await bobs.goto(`${t.url}/secrets`);
    await bobs.waitForSelector(row("API_TOKEN"));
    await bobs.waitForSelector("text=Who administers the organisation sets them.");
    return (await bobs.locator("main button, main input").count()) === 0;
  });
}

async function revoked(t, page) {
  await t.step("it is kept where one does not mean it", async () => {
    await page.click(`${row("API_TOKEN")} button:has-text('Revoke…')`);
    await page.click("button:has-text('Keep it')");
    return (await t.get("/v1/secrets")).data.length === 1;
  });
  await t.step("revoked it is gone", async () => {
    await page.click(`${row("API_TOKEN")} button:has-text('Revoke…')`);
    await page.click("button:has-text('Revoke it')");
    await page.waitForSelector("[role=status]:has-text('API_TOKEN is revoked.')");
    await page.waitForSelector("text=There is no secret yet.");
    return (await t.get("/v1/secrets")).data.length === 0;
  });
}
