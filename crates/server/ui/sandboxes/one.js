// One sandbox: how it stands, a terminal, its files, its snapshots, and its end.
import { post, remove } from "../api.js";
import { html, useState } from "../dom.js";
import { useAction, useFetched } from "../fetched.js";
import { when } from "../format.js";
import { Failure, Tabs, tabOf } from "../parts.js";
import { go, route, sandboxPath } from "../router.js";
import { useStore } from "../store.js";
import { exact, line } from "../text.js";
import { nameOf } from "../who.js";
import { SandboxFiles } from "./files.js";
import { NetworkTab } from "./network.js";
import { SnapshotsTab } from "./snapshots.js";
import { TerminalTab } from "./terminal.js";

const TABS = [["terminal", "Terminal"], ["files", "Files"], ["snapshots", "Snapshots"], ["network", "Network"]];

export function OneSandbox({ id }) {
  const base = `/v1/sandboxes/${encodeURIComponent(id)}`;
  const { value: info, error, reload } = useFetched(base);
  const tab = tabOf(TABS, useStore(route).hash);
  return html`
    <${Failure} error=${error} />
    ${!info && !error && html`<p class="loading">Opening…</p>`}
    ${info && html`<${Facts} info=${info} />
      <${Acts} base=${base} info=${info} onChange=${reload} />
      <${Tabs} tabs=${TABS} tab=${tab} label="The sandbox" />
      <div id="panel" role="tabpanel" aria-labelledby=${`tab-${tab}`} class="panel">
        ${tab === "terminal" && html`<${TerminalTab} base=${base} mayDrive=${info.may_drive} onChange=${reload} />`}
        ${tab === "files" && html`<${SandboxFiles} base=${base} mayDrive=${info.may_drive} />`}
        ${tab === "network" && html`<${NetworkTab} base=${base} info=${info} onChange=${reload} />`}
        ${tab === "snapshots" && html`<${SnapshotsTab} base=${base} info=${info} />`}
      </div>`}
    ${error && html`<p><a href="/sandboxes">To the sandboxes</a></p>`}`;
}

function Facts({ info }) {
  const { limits } = info;
  return html`<p class="facts-line">
    ${info.label && html`<strong>${line(info.label, 100)}</strong>`}
    <span class="tag" role="status">${info.state}</span>
    <span>${nameOf(info.person)}'s</span>
    ${info.template && html`<span>from <code>${exact(info.template)}</code></span>`}
    ${info.snapshot && html`<span>from <code>${exact(info.snapshot)}</code></span>`}
    <span>${limits.memory_mib} MiB, ${limits.cpu_millis / 1000} cores, ${limits.pids} processes</span>
    <span>made ${when(info.created_ms)}</span>
  </p>`;
}

function Acts({ base, info, onChange }) {
  const { busy, error, act } = useAction();
  const [isEnding, setIsEnding] = useState(false);
  const fork = () => act(async () => go(sandboxPath((await post(`${base}/forks`, { label: info.label })).id)));
  const suspend = () => act(async () => {
    await post(`${base}/suspend`);
    await onChange();
  });
  const end = () => act(async () => {
    await remove(base);
    go("/sandboxes");
  });
  return html`<p class="tools after">
      ${info.may_drive && html`<button disabled=${busy} onClick=${fork}>Fork</button>`}
      <button class="quiet" disabled=${busy || info.state === "cold"} onClick=${suspend}>Suspend</button>
      <button class="quiet" aria-expanded=${isEnding} onClick=${() => setIsEnding(!isEnding)}>Remove…</button></p>
    <${Failure} error=${error} />
    ${isEnding && html`<div class="ending" role="group" aria-label="Remove the sandbox">
      <p>What runs in it is killed and its files are deleted. Snapshots of it stay.</p>
      <p class="tools"><button class="deny" disabled=${busy} onClick=${end}>${busy ? "Removing…" : "Remove it"}</button>
        <button class="quiet" onClick=${() => setIsEnding(false)}>Keep it</button></p></div>`}`;
}
