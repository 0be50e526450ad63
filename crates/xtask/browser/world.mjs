// A world of its own for a server: directories, an environment with nothing of the user's, a
// script for the model, rules. Nothing of it lies below /tmp, which every sandbox has of its own.
import { spawnSync } from "node:child_process";
import fs from "node:fs";
import net from "node:net";
import path from "node:path";
import { until } from "./until.mjs";

// Tools elsewhere are shown to sandboxes, and differ from machine to machine.
const PATH = "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin";

const RULES = `@id("changes-ask")
@approvable("anyone")
forbid (principal, action == Action::"write_files", resource);
`;

export class World {
  /// `people`: the text of the file that says who there is, where there is one.
  constructor(program, root, script, { people } = {}) {
    this.program = program;
    this.root = root;
    this.variables = {};
    fs.rmSync(root, { recursive: true, force: true });
    for (const name of ["home", "config", "cache", "state", "data", "repo"]) fs.mkdirSync(this.at(name), { recursive: true });
    this.write("rules.cedar", RULES);
    const rules = JSON.stringify(this.at("rules.cedar"));
    const known = people ? `people = ${JSON.stringify(this.at("people.toml"))}\n` : "";
    if (people) this.write("people.toml", people);
    this.write("config.toml", `[policy]\nfiles = [${rules}]\n${known}[limits]\nsteps_max = 100000\n`);
    this.write("script.toml", script);
    this.write("repo/notes.txt", "one\ntwo\nthree\n");
    this.write("repo/old.txt", "nobody reads this\n");
    this.write("repo/care.txt", "one\n");
  }

  at(name) {
    return path.join(this.root, name);
  }

  /// Adds to the configuration, for the next server.
  configure(text) {
    fs.appendFileSync(this.at("config.toml"), text);
  }

  write(name, text) {
    fs.writeFileSync(this.at(name), text);
  }

  read(name) {
    return fs.readFileSync(this.at(name), "utf8");
  }

  env() {
    return {
      PATH,
      HOME: this.at("home"),
      XDG_CONFIG_HOME: this.at("config"),
      XDG_DATA_HOME: this.at("home/share"),
      XDG_CACHE_HOME: this.at("cache"),
      XDG_STATE_HOME: this.at("state"),
      OUTRIGGER_DATA_DIR: this.at("data"),
      OUTRIGGER_CONFIG: this.at("config.toml"),
      GIT_CONFIG_NOSYSTEM: "1",
      ...this.variables,
    };
  }

  /// Runs the program to its end beside the server.
  outrigger(...args) {
    const ran = spawnSync(this.program, args, { env: this.env(), cwd: this.root, encoding: "utf8", timeout: 30_000 });
    if (ran.status !== 0) throw new Error(`\`outrigger ${args.join(" ")}\` ended with ${ran.status}: ${ran.stderr}`);
    return ran.stdout;
  }

  /// Makes a file in the copy of a session, which a command there waits for.
  open(session) {
    this.outrigger("sandbox", "exec", `${session}.work`, "--", "touch", "/workspace/go");
  }

  /// Runs git in a directory, which is in no repository, whatever lies above this world.
  git(dir, ...args) {
    const env = { ...this.env(), GIT_CEILING_DIRECTORIES: this.root };
    return spawnSync("git", args, { cwd: this.at(dir), env, encoding: "utf8", timeout: 30_000 });
  }

  /// A link that logs one browser in, as whoever is at the keyboard or as another person.
  link(url, person) {
    const who = person ? ["--person", person] : [];
    return this.outrigger("keys", "link", "--url", url, ...who).match(/http\S+/)[0];
  }

  /// Ends the sandboxes, which outlive a server, and deletes everything.
  async remove() {
    await endSpawner(this.at("data/native"));
    fs.rmSync(this.root, { recursive: true, force: true, maxRetries: 3 });
  }
}

// What keeps the sandboxes ends when its socket is gone, and looks when somebody has called.
async function endSpawner(native) {
  if (!fs.existsSync(path.join(native, "spawner.sock"))) return;
  const pids = spawners(native);
  // The path of a socket is short (unix(7)), whatever the path of this directory is.
  const dir = fs.openSync(native, "r");
  const socket = `/proc/self/fd/${dir}/spawner.sock`;
  await new Promise((resolve) => {
    const call = net.connect(socket, () => {
      fs.rmSync(socket, { force: true });
      call.destroy();
    });
    call.on("error", resolve).on("close", resolve);
  });
  fs.closeSync(dir);
  await until("the sandboxes end", () => pids.every((pid) => !fs.existsSync(`/proc/${pid}`) || isZombie(pid)));
}

function spawners(native) {
  const pids = fs.readdirSync("/proc").filter((name) => /^\d+$/.test(name));
  return pids.filter((pid) => readProc(pid, "cmdline").includes(`native-spawner\0${native}`));
}

const isZombie = (pid) => /\) [ZX]/.test(readProc(pid, "stat"));

function readProc(pid, name) {
  try {
    return fs.readFileSync(`/proc/${pid}/${name}`, "utf8");
  } catch {
    return ""; // It ended meanwhile.
  }
}
