// `outrigger serve` in a world: begun, killed, begun again at the same address, ended.
import { spawn } from "node:child_process";
import fs from "node:fs";
import readline from "node:readline";

const BEGIN_MS_MAX = 30_000;
const END_MS_MAX = 10_000;

export class Server {
  static async begin(world, listen = "127.0.0.1:0") {
    const args = ["serve", "--listen", listen, "--dir", world.at("repo"), "--script", world.at("script.toml"), "--json"];
    const log = fs.openSync(world.at("server.log"), "a");
    const child = spawn(world.program, args, { env: world.env(), cwd: world.root, stdio: ["ignore", "pipe", log] });
    fs.closeSync(log);
    const server = new Server(child);
    const said = await server.firstLine(world);
    if (said.type !== "serving") throw new Error(`the server began with ${JSON.stringify(said)}`);
    server.url = said.url;
    server.link = said.link;
    return server;
  }

  constructor(child) {
    this.child = child;
    this.ended = new Promise((resolve) => child.once("exit", (code, signal) => resolve(signal ?? code)));
  }

  async firstLine(world) {
    const lines = readline.createInterface({ input: this.child.stdout });
    const timer = setTimeout(() => this.child.kill("SIGKILL"), BEGIN_MS_MAX);
    const first = await Promise.race([
      new Promise((resolve) => lines.once("line", resolve)),
      this.ended.then(() => null),
    ]);
    clearTimeout(timer);
    if (first === null) throw new Error(`the server did not begin to serve: ${world.read("server.log").slice(-2_000)}`);
    return JSON.parse(first);
  }

  get listen() {
    return new URL(this.url).host;
  }

  async kill() {
    this.child.kill("SIGKILL");
    await this.ended;
  }

  /// Asks it to end; what it ended with. One that does not is killed, and that is told.
  async end() {
    this.child.kill("SIGTERM");
    const timer = setTimeout(() => this.child.kill("SIGKILL"), END_MS_MAX);
    const how = await this.ended;
    clearTimeout(timer);
    return how;
  }
}
