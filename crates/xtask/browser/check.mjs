// One check: a story in steps, each a line of the report. Where a step fails, the rest of the
// story makes no sense, so it ends there with a picture of the moment.
import path from "node:path";
import { page as newPage, profile } from "./browser.mjs";
import { until } from "./until.mjs";

export class Check {
  constructor(name, house, shots) {
    Object.assign(this, { name, house, shots, complaints: [], expected: [], pages: [] });
  }

  get world() {
    return this.house.world;
  }

  get url() {
    return this.house.server.url;
  }

  /// A page of the browser that is logged in, or of another profile.
  async page(context = this.house.context) {
    const made = await newPage(context, this.complaints);
    this.pages.push(made);
    return made;
  }

  /// A page of another person, in a browser of theirs.
  async person(name) {
    return this.page(await this.house.admit(name));
  }

  /// A profile of its own, logged in as the house is, that looks otherwise.
  async profile(options) {
    const state = await this.house.context.storageState();
    const made = await profile(this.house.browser, options, state);
    this.house.profiles.push(made);
    return made;
  }

  /// Something that has to hold. What `look` throws is why it does not.
  async step(title, look) {
    const begun = Date.now();
    try {
      const found = await look();
      if (found === false) throw new Error("it is not so");
      this.line("ok  ", `${title} (${Date.now() - begun} ms)`);
    } catch (error) {
      this.line("FAIL", title);
      throw Object.assign(error, { told: true });
    }
  }

  line(mark, text) {
    console.log(`${mark} ${this.name}: ${text}`);
  }

  /// A measurement that is told, and not judged.
  figure(text) {
    this.line("    ", text);
  }

  /// A complaint of the console that belongs to the story.
  expect(pattern) {
    this.expected.push(pattern);
  }

  async run(story) {
    try {
      await story(this);
      await this.step("nothing in the console", () => this.quiet());
      return true;
    } catch (error) {
      if (!error.told) this.line("FAIL", "it did not come to that");
      console.log(indented(String(error.stack ?? error).split("\n").slice(0, 12)));
      await this.picture();
      return false;
    } finally {
      for (const page of this.pages) await page.close().catch(() => {});
    }
  }

  quiet() {
    const loud = this.complaints.filter((text) => !this.expected.some((pattern) => pattern.test(text)));
    if (loud.length > 0) throw new Error(loud.slice(0, 5).join("\n"));
  }

  async picture() {
    for (const [at, page] of this.pages.entries()) {
      const file = path.join(this.shots, `failed-${this.name}-${at + 1}.png`);
      const taken = await page.screenshot({ path: file, timeout: 5_000 }).then(() => true, () => false);
      if (taken) this.line("    ", `the moment: ${file} (${page.url().split("?")[0]})`);
    }
    if (this.complaints.length > 0) console.log(indented(this.complaints.slice(0, 5)));
  }

  /// Asks the server as the page does.
  async get(path_) {
    const response = await this.house.context.request.get(this.url + path_);
    if (!response.ok()) throw new Error(`GET ${path_}: ${response.status()} ${await response.text()}`);
    return response.json();
  }

  async post(path_, data = {}) {
    const response = await this.house.context.request.post(this.url + path_, { data, headers: { Origin: this.url } });
    if (!response.ok()) throw new Error(`POST ${path_}: ${response.status()} ${await response.text()}`);
    const text = await response.text();
    return text ? JSON.parse(text) : null;
  }

  async put(path_, data, headers = {}) {
    const response = await this.house.context.request.put(this.url + path_, { data, headers: { Origin: this.url, ...headers } });
    if (!response.ok()) throw new Error(`PUT ${path_}: ${response.status()} ${await response.text()}`);
    return response.json();
  }

  async remove(path_) {
    const response = await this.house.context.request.delete(this.url + path_, { headers: { Origin: this.url } });
    if (!response.ok()) throw new Error(`DELETE ${path_}: ${response.status()} ${await response.text()}`);
  }

  /// Writes an entry of memory as the page does: a new one, or instead of the revision `replaces`.
  async write(path_, text, replaces = null) {
    const match = replaces === null ? { "If-None-Match": "*" } : { "If-Match": `"${replaces}"` };
    const address = `${this.url}/v1/memory/content?path=${encodeURIComponent(path_)}`;
    const response = await this.house.context.request.put(address, { data: { text }, headers: { Origin: this.url, ...match } });
    if (!response.ok()) throw new Error(`PUT ${path_}: ${response.status()} ${await response.text()}`);
    return response.json();
  }

  /// Begins a session without the page; its name.
  async create(text) {
    return (await this.post("/v1/sessions", { text })).id;
  }

  status(session, wanted, patienceMs) {
    const look = async () => (await this.get(`/v1/sessions/${session}`)).status === wanted;
    return until(`${session} is ${wanted}`, look, patienceMs);
  }
}

const indented = (lines) => lines.map((line) => `       ${line}`).join("\n");
