// Where the session stood: another one can begin there, or it goes back.
import { get, post } from "./api.js";
import { html, useEffect, useState } from "./dom.js";
import { useAction } from "./fetched.js";
import { when } from "./format.js";
import { Failure } from "./parts.js";
import { go, sessionPath } from "./router.js";
import { line } from "./text.js";

export function Checkpoints({ info }) {
  const [all, setAll] = useState(null);
  const { busy, error, act } = useAction();
  const base = `/v1/sessions/${encodeURIComponent(info.id)}`;
  const load = async () => setAll((await get(`${base}/checkpoints`)).data.reverse());
  // One is made where the session waits: there is nothing new before.
  useEffect(() => void act(load), [base, info.group]);

  const fork = (at) => act(async () => go(sessionPath((await post(`${base}/fork`, { at })).id)));
  const rewind = (to) => act(async () => {
    await post(`${base}/rewind`, { to });
    await load();
  });
  const still = info.group !== "running" && !info.cancelled;
  return html`<h2 class="group">Checkpoints</h2>
    <${Failure} error=${error} />
    ${all?.length === 0 && html`<p class="faint">None yet: one is made when a turn ends.</p>`}
    <ul class="checkpoints">
      ${(all ?? []).map((it) => html`<li>
        <span>After ${it.said ? html`“${line(it.said, 100)}”` : "the beginning"} <span class="faint">${when(it.at_ms)}, ${it.status}${it.kept ? "" : "; its files are not kept any more"}</span></span>
        ${info.rights.manage && html`<span class="tools">
          <button disabled=${busy || !it.kept} onClick=${() => fork(it.at)}>Fork from here</button>
          <button class="quiet" disabled=${busy || !it.kept || !still} onClick=${() => rewind(it.at)}>Go back to here</button>
        </span>`}
      </li>`)}
    </ul>`;
}
