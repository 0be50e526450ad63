// Makes a sandbox: from which template, and what it may take.
import { post } from "../api.js";
import { html, useState } from "../dom.js";
import { useAction, useFetched } from "../fetched.js";
import { Failure } from "../parts.js";
import { go, sandboxPath } from "../router.js";
import { exact } from "../text.js";
import { WORDS } from "./network.js";

// Each with its name in the contract, what it means, and the least that can be asked for.
const LIMITS = [["memory_mib", "Memory in MiB", 16], ["cpu_millis", "Processor, in thousandths of a core", 10], ["pids", "Processes", 8], ["disk_mib", "Disk in MiB", 1]];

export function NewSandbox() {
  const { value: templates, error: unknown } = useFetched("/v1/templates");
  const [said, setSaid] = useState({});
  const { busy, error, act } = useAction();
  const write = (name) => (event) => setSaid({ ...said, [name]: event.target.value });
  const make = (event) => {
    event.preventDefault();
    act(async () => {
      const limits = {};
      for (const [name] of LIMITS) if (said[name]) limits[name] = Number(said[name]);
      const body = { limits, label: (said.label ?? "").trim() };
      if ((said.network ?? "").trim()) body.network = [said.network];
      if (said.template) body.template = said.template;
      if (said.idle) body.idle_seconds = Number(said.idle) * 60;
      go(sandboxPath((await post("/v1/sandboxes", body)).id));
    });
  };
  if (unknown) return html`<${Failure} error=${unknown} />`;
  if (!templates) return html`<p class="loading">Looking what there is…</p>`;
  return html`<form class="secret-form" onSubmit=${make} autocomplete="off">
    <label class="field">What it is for<input type="text" maxlength="100" value=${said.label ?? ""} onInput=${write("label")} /></label>
    <label class="field">Template<select value=${said.template ?? templates.data[0].name} onChange=${write("template")}>
      ${templates.data.map(({ name, source }) => html`<option value=${name}>${exact(name)}${source ? `: ${exact(source)}` : ""}</option>`)}
    </select></label>
    <label class="field">What it may reach<input type="text" maxlength="2000" placeholder="as the server is configured" aria-describedby="reach-words" autocapitalize="off" spellcheck=${false} value=${said.network ?? ""} onInput=${write("network")} /></label>
    <p class="faint" id="reach-words">${WORDS}</p>
    <details class="more"><summary>Limits</summary><div class="explain-more">
      ${LIMITS.map(([name, label, least]) => html`<label class="field">${label}<input type="number" min=${least} max=${templates.limits[name]} placeholder=${templates.limits[name]} value=${said[name] ?? ""} onInput=${write(name)} /></label>`)}
      <label class="field">Suspend after so many minutes without use<input type="number" min="1" max="5256000" placeholder="15" value=${said.idle ?? ""} onInput=${write("idle")} /></label>
    </div></details>
    <p class="tools"><button class="primary" type="submit" disabled=${busy}>${busy ? "Making it…" : "Make it"}</button></p>
    <${Failure} error=${error} />
  </form>`;
}
