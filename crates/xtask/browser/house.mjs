// What checks happen in: a world with a server, and a browser that is logged in there.
import { page, profile } from "./browser.mjs";
import { AccountProvider } from "./provider.mjs";
import { SCRIPT } from "./script.mjs";
import { Server } from "./server.mjs";
import { World } from "./world.mjs";

export class House {
  constructor(program, root, browser, { people, provider } = {}) {
    this.browser = browser;
    this.profiles = [];
    this.hasProvider = provider;
    this.world = new World(program, root, SCRIPT, { people });
  }

  async serve(listen) {
    if (this.hasProvider) this.provider ??= await AccountProvider.begin(this.world);
    this.server = await Server.begin(this.world, listen);
    this.provider?.serve(this.server.url);
  }

  /// Opens a profile; unless told otherwise, its link logs it in.
  async enter({ login = true } = {}) {
    this.context = await profile(this.browser);
    this.profiles.push(this.context);
    if (!login) return;
    await logIn(this.context, this.server.link);
  }

  /// A profile in which another person is logged in.
  async admit(person) {
    const context = await profile(this.browser);
    this.profiles.push(context);
    await logIn(context, this.world.link(this.server.url, person));
    return context;
  }

  /// Ends everything, whatever state it is in. Throws where the server did not end as it should.
  async leave() {
    for (const context of this.profiles) await context.close().catch(() => {});
    const how = await this.server?.end();
    this.provider?.end();
    const log = this.world.read("server.log");
    await this.world.remove();
    if (how !== 0) throw new Error(`the server ended with ${how} when it was told to: ${log.slice(-1_000)}`);
    if (log.includes("panicked")) throw new Error(`the server panicked: ${log.slice(-1_000)}`);
  }
}

async function logIn(context, link) {
  const first = await page(context, []);
  await first.goto(link);
  // Who is logged in stands there once the page knows it.
  await first.waitForSelector(".who");
  await first.close();
}
