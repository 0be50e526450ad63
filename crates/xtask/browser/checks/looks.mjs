// Every page in light, in dark and on a phone: a picture, the rules of axe, nothing that sticks out.
import path from "node:path";
import { findings, isBad } from "../axe.mjs";
import { MODES, profile } from "../browser.mjs";
import { MARKUP } from "../hostile.mjs";
import { PNG } from "./pictures.mjs";
import { REACHED, TASK } from "../script.mjs";

const ENTRY = "/memory/user/looks.md";

export async function run(t) {
  // A sandbox that is just going to rest can't be looked into; the page asks again by itself.
  const at = await sessions(t);
  for (const [mode, options] of Object.entries(MODES)) {
    const context = await t.profile(options);
    const page = await t.page(context);
    // One that counts while it is looked at, however long the modes before took.
    at.count = await t.create(TASK.count);
    for (const [name, address, ready, open] of pages(at)) {
      await looked(t, page, `${name}-${mode}`, async () => {
        await page.goto("about:blank");
        await page.goto(t.url + address);
        await page.waitForSelector(ready);
        await open?.(page);
      });
    }
    await looked(t, page, `keys-${mode}`, async () => {
      await page.keyboard.press("?");
      await page.waitForSelector("dialog[open]");
    });
    await page.close();
    await t.post(`/v1/sessions/${at.count}/cancel`).catch(() => {});
    await strangers(t, mode, options);
  }
  for (const { id } of (await t.get("/v1/snapshots")).data) await t.remove(`/v1/snapshots/${id}`);
  await t.remove(`/v1/sandboxes/${at.sandbox}`);
  delete at.sandbox;
  for (const session of Object.values(at)) await t.post(`/v1/sessions/${session}/cancel`).catch(() => {});
}

/// A session of every kind, as it stands when somebody looks.
async function sessions(t) {
  const at = {};
  for (const name of ["edit", "hostile", "once", "sleep"]) at[name] = await t.create(TASK[name]);
  at.reach = (await t.post("/v1/sessions", { text: TASK.reach, network: [REACHED] })).id;
  const pictures = [{ name: "before.png", content: PNG }, { name: `after ${MARKUP}.png`, content: PNG }];
  at.pictured = (await t.post("/v1/sessions", { text: TASK.short, pictures })).id;
  await t.status(at.pictured, "answered");
  await t.status(at.edit, "answered");
  await t.status(at.reach, "answered");
  await t.status(at.hostile, "answered");
  await t.status(at.once, "waits for approval");
  const [question] = (await t.get("/v1/approvals")).data;
  await t.write(ENTRY, "# Notes\n\nWe use tabs.\n");
  await t.write(ENTRY, `# Notes\n\nWe use spaces.\n${MARKUP}\n`, 1);
  await t.put("/v1/secrets/LOOKS", { value: "a-value-of-some-length", for: ["api.example.com"], days: 7 });
  const schedule = { cron: "30 7 * * MON-FRI", time_zone: "Europe/Zurich" };
  await t.put("/v1/agents/looks", { description: "looks at what is new", task: "Look around.", schedule }, { "If-None-Match": "*" });
  const { id: sandbox } = await t.post("/v1/sandboxes", { label: "Looked at", network: ["packages", REACHED] });
  await t.post(`/v1/sandboxes/${sandbox}/execs`, { shell: "mkdir -p src && echo hello > src/notes.txt && echo one > first.txt" });
  await t.post(`/v1/sandboxes/${sandbox}/execs`, { shell: `curl -s ${REACHED}/ https://refused.example/; true` });
  await t.post(`/v1/sandboxes/${sandbox}/snapshots`, { label: "With notes" });
  return { ...at, question: question.id, sandbox };
}

async function attach(page) {
  const files = [["shot.png", "image/png"], ["notes.txt", "text/plain"]];
  await page.setInputFiles(".foot input[type=file]", files.map(([name, mimeType]) => ({ name, mimeType, buffer: Buffer.from(PNG, "base64") })));
  await page.waitForSelector(".composer .pictures li:nth-child(2)");
}

const pages = (at) => [
  ["start", "/", ".session-row"],
  ["new", "/new", "[data-composer]"],
  ["answered", `/sessions/${at.edit}`, "text=The agent answered."],
  ["pictured", `/sessions/${at.pictured}`, ".said .pictures img", attach],
  ["changes", `/sessions/${at.edit}#changes`, ".files li"],
  ["files", `/sessions/${at.edit}#files`, ".tree li:has-text('notes.txt')"],
  ["details", `/sessions/${at.edit}#details`, ".waterfall li"],
  ["live", `/sessions/${at.count}`, ".live pre"],
  ["asked", `/sessions/${at.once}`, ".question .approve:not(:disabled)"],
  ["approvals", "/approvals", ".question .approve:not(:disabled)"],
  ["approval", `/approvals/${at.question}`, ".question .approve:not(:disabled)"],
  ["hostile", `/sessions/${at.hostile}`, "text=The agent answered."],
  ["agents", "/agents", ".agents .entry-row"],
  ["memory", "/memory", ".entry-row"],
  ["memory-new", "/memory#new", ".editor textarea"],
  ["memory-proposals", "/memory#proposals", "text=Nothing waits for a review"],
  ["memory-entry", ENTRY, "pre.code"],
  ["memory-edit", `${ENTRY}#edit`, ".editor textarea"],
  ["memory-history", `${ENTRY}#history`, ".versions li", (page) => page.click("button:has-text('Redact…') >> nth=0")],
  ["memory-blame", `${ENTRY}#blame`, ".blame td"],
  ["budgets", "/budgets", ".chart svg"],
  ["budgets-limits", "/budgets", ".chart svg", openAccount],
  ["share", `/sessions/${at.edit}`, "text=The agent answered.", openShare],
  ["delete", `/sessions/${at.edit}`, "text=The agent answered.", openDelete],
  ["why", `/sessions/${at.once}`, ".question .why-button", openWhy],
  ["people", "/people", ".entry-row"],
  ["device", "/device", ".secret-form"],
  ["rules", "/rules", ".rule-list li", (page) => page.click(".rule >> nth=0 >> .fold-head")],
  ["rules-ask", "/rules#ask", ".explain-form", askRules],
  ["egress", "/rules#egress", ".flow"],
  ["secrets", "/secrets", ".secrets li", openSecret],
  ["sandboxes", "/sandboxes", ".entry-row", openNewSandbox],
  ["sandbox-terminal", `/sandboxes/${at.sandbox}`, ".facts-line", openTerminal],
  ["sandbox-files", `/sandboxes/${at.sandbox}#files`, ".tree li:has-text('first.txt')", (page) => page.click(".tree li:has-text('first.txt')")],
  ["sandbox-network", `/sandboxes/${at.sandbox}#network`, ".flow:has-text('refused.example')"],
  ["sandbox-snapshots", `/sandboxes/${at.sandbox}#snapshots`, ".checkpoints li", (page) => page.click("button:has-text('Remove…')")],
  ["none", "/sessions/none", ".failure"],
];

async function openAccount(page) {
  await page.click("button:has-text('Stop…') >> nth=0");
  await page.click("button:has-text(\"Another person's account\")");
  await page.fill(".other-account label:has-text('Whose') input", "grace");
  await page.click(".other-account button:has-text('Limits…')");
  await page.waitForSelector(".limits-form table");
}

async function openNewSandbox(page) {
  await page.click("button:has-text('Make a sandbox')");
  await page.click("summary");
}

async function openTerminal(page) {
  await page.click("button:has-text('Open a terminal')");
  await page.waitForSelector(".xterm-rows");
  await page.keyboard.type("ls -la --color=always / | head -8; echo do''ne\n");
  await page.waitForFunction(() => document.querySelector(".xterm-rows").textContent.includes("done"));
}

async function openShare(page) {
  await page.click("button:has-text('Share…')");
  await page.waitForSelector(".share-add");
  await page.evaluate(() => window.scrollTo(0, 0));
}

async function openDelete(page) {
  await page.click("button:has-text('Delete…')");
  await page.waitForSelector(".ending");
}

async function openWhy(page) {
  await page.click(".question .why-button");
  await page.waitForSelector(".question .subjects");
}

async function askRules(page) {
  await page.click("summary");
  await page.fill(".explain-form input[required]", "example.com");
  await page.click("button:has-text('Ask the rules')");
  await page.waitForSelector(".explained .subjects");
}

async function openSecret(page) {
  await page.click("button:has-text('Set a secret')");
  await page.click("summary");
  await page.click("button:has-text('Revoke…')");
  await page.waitForSelector(".ending");
}

// What somebody sees who is not logged in.
async function strangers(t, mode, options) {
  t.expect(/status of 40[14]/);
  const context = await profile(t.house.browser, options);
  t.house.profiles.push(context);
  const page = await t.page(context);
  await looked(t, page, `login-${mode}`, async () => {
    await page.goto(t.url);
    await page.waitForSelector("text=You are not logged in");
  });
  await page.close();
}

async function looked(t, page, name, go) {
  await t.step(`${name} looks right`, async () => {
    await go();
    await page.evaluate(() => document.fonts.ready);
    await page.screenshot({ path: path.join(t.shots, `${name}.png`) });
    const beyond = await page.evaluate(() => document.documentElement.scrollWidth - document.documentElement.clientWidth);
    if (beyond > 0) throw new Error(`the page is ${beyond} px wider than its window`);
    const found = await findings(page);
    for (const { text } of found.filter((one) => !isBad(one))) t.figure(text);
    const bad = found.filter(isBad).map(({ text }) => text);
    if (bad.length > 0) throw new Error(bad.join("\n"));
  });
}
