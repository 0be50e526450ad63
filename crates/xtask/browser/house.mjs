// What checks happen in: a world with a server, and a browser that is logged in there.
import { page, profile } from "./browser.mjs";
import { SCRIPT } from "./script.mjs";
import { Server } from "./server.mjs";
import { World } from "./world.mjs";

export class House {
  constructor(program, root, browser) {
    this.browser = browser;
    this.profiles = [];
    this.world = new World(program, root, SCRIPT);
  }

  async serve(listen) {
    this.server = await Server.begin(this.world, listen);
  }

  /// Opens a profile; unless told otherwise, its link logs it in.
  async enter({ login = true } = {}) {
    this.context = await profile(this.browser);
    this.profiles.push(this.context);
    if (!login) return;
    const first = await page(this.context, []);
    await first.goto(this.server.link);
    await first.waitForSelector("[data-composer]");
    await first.close();
  }

  /// Ends everything, whatever state it is in. Throws where the server did not end as it should.
  async leave() {
    for (const context of this.profiles) await context.close().catch(() => {});
    const how = await this.server?.end();
    const log = this.world.read("server.log");
    await this.world.remove();
    if (how !== 0) throw new Error(`the server ended with ${how} when it was told to: ${log.slice(-1_000)}`);
    if (log.includes("panicked")) throw new Error(`the server panicked: ${log.slice(-1_000)}`);
  }
}
