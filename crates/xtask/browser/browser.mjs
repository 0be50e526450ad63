// The browser, and pages that are watched for everything that a console would say.
import { chromium } from "playwright-core";
import fs from "node:fs";
import path from "node:path";

export const ACTION_MS_MAX = 15_000;

/// The sizes and colours in which every page has to be right.
export const MODES = {
  light: { viewport: { width: 1200, height: 850 } },
  dark: { viewport: { width: 1200, height: 850 }, colorScheme: "dark" },
  phone: { viewport: { width: 360, height: 740 }, hasTouch: true, isMobile: true },
};

export function open(executablePath, home) {
  const env = { ...process.env, HOME: home, XDG_CONFIG_HOME: home, XDG_CACHE_HOME: home };
  return chromium.launch({ executablePath, env, handleSIGTERM: false, handleSIGINT: false });
}

/// A browser's profile: it is logged in once, and all of its pages are.
export async function profile(browser, options = MODES.light, storageState = undefined) {
  const context = await browser.newContext({ ...options, storageState, acceptDownloads: true });
  context.setDefaultTimeout(ACTION_MS_MAX);
  await fromSources(context);
  return context;
}

/// A page. What it complains about is pushed to `complaints`.
export async function page(context, complaints) {
  const made = await context.newPage();
  made.on("console", (message) => {
    if (["error", "warning"].includes(message.type())) complaints.push(`${message.text()} (${message.location().url})`);
  });
  made.on("pageerror", (error) => complaints.push(`thrown: ${error.message}`));
  made.on("response", async (response) => {
    // What the console says of it does not say why.
    if (response.status() >= 500) complaints.push(`${response.status()} ${response.url()}: ${await response.text().catch(() => "")}`);
  });
  made.on("dialog", (dialog) => {
    complaints.push(`dialog: ${dialog.message()}`);
    dialog.dismiss().catch(() => {});
  });
  return made;
}

/// For who works on the page: a directory with its files, instead of those in the program.
export const SOURCES = process.env.OUTRIGGER_BROWSER_UI;

async function fromSources(context) {
  if (!SOURCES) return;
  const types = { ".js": "text/javascript", ".css": "text/css", ".svg": "image/svg+xml" };
  await context.route(/\/ui\//, (route) => {
    // The address has the version of the files in the program.
    const file = path.join(SOURCES, new URL(route.request().url()).pathname.replace(/^\/ui\/([0-9a-f]{12}\/)?/, ""));
    if (!fs.existsSync(file)) return route.continue();
    return route.fulfill({ path: file, contentType: types[path.extname(file)] });
  });
}
