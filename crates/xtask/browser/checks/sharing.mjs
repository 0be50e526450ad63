// A session with several people: shared, read, taken part in, answered, taken back.
import { TASK } from "../script.mjs";
import { until } from "../until.mjs";

export const PEOPLE = `organisation = "acme"
[groups]
ops = ["person:bob"]
leads = ["person:lea", "group:ops"]
viewer = ["person:vic"]
`;

export const alone = { people: PEOPLE };

export async function run(t) {
  // What is not shared is asked for, on purpose.
  t.expect(/status of 404/);
  const session = await t.create(TASK.short);
  await t.status(session, "answered");
  const [mine, bobs] = [await t.page(), await t.person("bob")];
  await t.step("what is not shared is not there", async () => {
    await bobs.goto(`${t.url}/sessions/${session}`);
    await bobs.waitForSelector(".failure");
    await bobs.goto(t.url);
    await bobs.waitForSelector("text=No session yet");
  });
  await shared(t, { mine, bobs, session });
  await met(t, { mine, bobs });
  await spoken(t, { mine, bobs });
  await answered(t, { mine, bobs });
  await watched(t);
  await takenBack(t, { mine, bobs, session });
}

const share = async (page, who, access) => {
  await page.selectOption(".share-add select >> nth=0", who);
  await page.selectOption(".share-add select >> nth=1", access);
  await page.click(".share-add button:has-text('Share')");
};

async function shared(t, { mine, bobs, session }) {
  await t.step("its owner shares it with a group, to read", async () => {
    await mine.goto(`${t.url}/sessions/${session}`);
    await mine.click("button:has-text('Share…')");
    await mine.waitForSelector("text=Nobody else sees this session");
    const offered = await mine.locator(".share-add select >> nth=0").locator("option").evaluateAll((all) => all.map((one) => one.value));
    for (const who of ["org:acme", "group:ops", "person:bob"]) if (!offered.includes(who)) throw new Error(`${who} is not in ${offered}`);
    await share(mine, "group:ops", "read");
    await mine.waitForSelector(".shares li:has-text('group ops')");
    await mine.waitForSelector(".facts-line:has-text('shared with group ops')");
    await mine.waitForSelector(".timeline >> text=local shared this with group ops, to read.");
  });
  await t.step("whoever is in it has it in the list, without asking for it", async () => {
    await bobs.waitForSelector(`.session-row[href$="${session}"] .whose:text-is("local's · read only")`);
  });
  await t.step("they read it, and have nothing that they may not do", async () => {
    await bobs.click(`.session-row[href$="${session}"]`);
    await bobs.waitForSelector("text=Something short.");
    await bobs.waitForSelector("text=You may read this session.");
    await bobs.waitForSelector(".said strong:text-is('local')");
    await bobs.click("#tab-details");
    await bobs.waitForSelector(".facts:has-text('group ops, to read')");
    await bobs.waitForSelector(".checkpoints li");
    await bobs.click("#tab-timeline");
    return (await bobs.locator("[data-composer], .acts button, .checkpoints button").count()) === 0;
  });
}

async function met(t, { mine, bobs }) {
  await t.step("each sees that the other is there", async () => {
    await mine.waitForSelector(".here:text-is('bob is here')");
    await bobs.waitForSelector(".here:text-is('local is here')");
  });
  await t.step("and that nobody is, once they are gone", async () => {
    const address = bobs.url();
    await bobs.goto("about:blank");
    await mine.waitForSelector(".here", { state: "detached" });
    await bobs.goto(address);
    await mine.waitForSelector(".here");
  });
}

async function spoken(t, { mine, bobs }) {
  await t.step("let to take part they speak, and it is said who did", async () => {
    await mine.selectOption(".shares select", "take_part");
    await bobs.waitForSelector("[data-composer]");
    await bobs.fill("[data-composer]", TASK.short);
    await bobs.keyboard.press("Enter");
    await mine.waitForSelector(".said strong:text-is('bob')");
    await bobs.waitForSelector(".said strong:text-is('You')");
    await bobs.waitForSelector(".facts-line .whose:text-is(\"local's\")");
    return (await bobs.locator("button:has-text('Share…'), button:has-text('End…')").count()) === 0;
  });
}

async function answered(t, { mine, bobs }) {
  const session = await t.create(TASK.once);
  await t.status(session, "waits for approval");
  await t.put(`/v1/sessions/${session}/shares`, { with: "org:acme", access: "take_part" });
  await t.step("whoever takes part answers what it asks", async () => {
    await bobs.goto(`${t.url}/approvals`);
    await bobs.click(".question .approve:not(:disabled)");
    await mine.goto(`${t.url}/sessions/${session}`);
    await mine.waitForSelector(".verdict:has-text('bob approved it')");
    await mine.waitForSelector("text=I asked once.");
  });
}

// A viewer, to whom everybody's share to take part is one to read.
async function watched(t) {
  const session = await t.create(TASK.once);
  await t.status(session, "waits for approval");
  await t.put(`/v1/sessions/${session}/shares`, { with: "org:acme", access: "take_part" });
  const vics = await t.person("vic");
  await t.step("a viewer begins nothing, and has no button", async () => {
    await vics.goto(t.url);
    await vics.waitForSelector("text=You may look at sessions here, and not begin one.");
    await vics.waitForSelector(`section[aria-label='Needs somebody else'] .session-row[href$="${session}"]`);
    await vics.click(`.session-row[href$="${session}"]`);
    await vics.waitForSelector("text=You may read this session.");
    await vics.waitForSelector(".step.tool.is-asked");
    return (await vics.locator("[data-composer], .approve, .deny, .acts button").count()) === 0;
  });
  await t.post(`/v1/sessions/${session}/cancel`);
}

async function takenBack(t, { mine, bobs, session }) {
  await t.step("taken back it is gone, also for who looks at it", async () => {
    await bobs.goto(`${t.url}/sessions/${session}`);
    await bobs.waitForSelector("text=Something short.");
    await mine.goto(`${t.url}/sessions/${session}`);
    await mine.click("button:has-text('Share…')");
    await mine.click(".shares button:has-text('Take back')");
    await mine.waitForSelector(".timeline >> text=local no longer shares this with group ops.");
    await bobs.waitForSelector(".failure");
    return (await bobs.locator(".step").count()) === 0;
  });
  await t.step("and from the list", async () => {
    await bobs.goto(t.url);
    await bobs.waitForSelector(".session-row");
    await until("it is gone", async () => (await bobs.locator(`.session-row[href$="${session}"]`).count()) === 0);
  });
  await t.step("somebody whom no group names is named by hand", async () => {
    await mine.selectOption(".share-add select >> nth=0", "other");
    await mine.fill(".share-add input", "ada");
    await mine.click(".share-add button:has-text('Share')");
    await mine.waitForSelector(".shares li:has-text('ada')");
    return (await t.get(`/v1/sessions/${session}`)).shares.some((one) => one.with === "person:ada" && one.access === "read");
  });
}
