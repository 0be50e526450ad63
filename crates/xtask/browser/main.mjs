// The suite: every check, one after another, against the real server with the scripted model.
//
// `cargo xtask browser` starts it, and gives it everything that it needs of this machine.
import fs from "node:fs";
import path from "node:path";
import { parseArgs } from "node:util";
import { open } from "./browser.mjs";
import { Check } from "./check.mjs";
import { House } from "./house.mjs";
import * as approvals from "./checks/approvals.mjs";
import * as budgets from "./checks/budgets.mjs";
import * as changes from "./checks/changes.mjs";
import * as device from "./checks/device.mjs";
import * as files from "./checks/files.mjs";
import * as hostile from "./checks/hostile.mjs";
import * as keyboard from "./checks/keyboard.mjs";
import * as killed from "./checks/killed.mjs";
import * as list from "./checks/list.mjs";
import * as login from "./checks/login.mjs";
import * as long from "./checks/long.mjs";
import * as looks from "./checks/looks.mjs";
import * as memory from "./checks/memory.mjs";
import * as oidc from "./checks/oidc.mjs";
import * as people from "./checks/people.mjs";
import * as pictures from "./checks/pictures.mjs";
import * as proposals from "./checks/proposals.mjs";
import * as egress from "./checks/egress.mjs";
import * as rewind from "./checks/rewind.mjs";
import * as rules from "./checks/rules.mjs";
import * as agents from "./checks/agents.mjs";
import * as sandboxes from "./checks/sandboxes.mjs";
import * as secrets from "./checks/secrets.mjs";
import * as session from "./checks/session.mjs";
import * as sharing from "./checks/sharing.mjs";
import * as tabs from "./checks/tabs.mjs";

// In this order. Those that say `alone` have a house of their own: they kill the server, log out,
// or count everything.
const CHECKS = { login, oidc, device, session, pictures, changes, rewind, files, memory, proposals, budgets, approvals, sharing, people, rules, egress, agents, secrets, sandboxes, keyboard, tabs, killed, hostile, looks, list, long };

const { values: asked } = parseArgs({
  options: {
    program: { type: "string" },
    chromium: { type: "string" },
    dir: { type: "string" },
    shots: { type: "string" },
    only: { type: "string" },
  },
});

if (asked.only && !Object.hasOwn(CHECKS, asked.only)) {
  console.error(`there is no check of the name ${asked.only}; there are ${Object.keys(CHECKS).join(", ")}`);
  process.exit(2);
}

const houses = new Set();
let browser = null;

async function build(name, options) {
  const house = new House(asked.program, path.join(asked.dir, `world-${process.pid}-${name}`), browser, options);
  houses.add(house);
  await house.serve();
  await house.enter(options);
  return house;
}

// Whether it ended as it should.
async function leave(house) {
  houses.delete(house);
  try {
    await house.leave();
    return true;
  } catch (error) {
    console.log(`FAIL end: ${error.message}`);
    return false;
  }
}

async function leaveAll() {
  let clean = true;
  for (const house of houses) clean = (await leave(house)) && clean;
  await browser?.close().catch(() => {});
  return clean;
}

async function suite() {
  const names = asked.only ? [asked.only] : Object.keys(CHECKS);
  let shared = null;
  const failed = [];
  for (const name of names) {
    const { run, alone } = CHECKS[name];
    const house = alone ? await build(name, alone) : (shared ??= await build("shared", {}));
    if (!(await new Check(name, house, asked.shots).run(run))) failed.push(name);
    if (alone && !(await leave(house))) failed.push(name);
  }
  return failed;
}

// Whoever ends us, the time that is too long included, wants nothing of ours to stay.
for (const signal of ["SIGTERM", "SIGINT", "SIGHUP"]) {
  process.once(signal, async () => {
    console.log(`FAIL ended by ${signal}`);
    await leaveAll();
    process.exit(1);
  });
}

const begun = Date.now();
fs.mkdirSync(asked.shots, { recursive: true });
fs.mkdirSync(path.join(asked.dir, "home"), { recursive: true });
let failed = ["start"];
try {
  browser = await open(asked.chromium, path.join(asked.dir, "home"));
  failed = await suite();
} catch (error) {
  console.log(`FAIL ${error.stack}`);
}
if (!(await leaveAll())) failed.push("end");
const seconds = Math.round((Date.now() - begun) / 1000);
console.log(failed.length ? `browser: failed in ${seconds} s: ${failed.join(", ")}` : `browser: all is well, in ${seconds} s`);
process.exit(failed.length ? 1 : 0);
