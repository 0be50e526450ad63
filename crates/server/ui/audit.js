// Whether the journal of a session is as it was written.
import { get } from "./api.js";
import { html, useState } from "./dom.js";
import { useAction } from "./fetched.js";
import { plural } from "./format.js";
import { CopyButton, Failure } from "./parts.js";
import { line } from "./text.js";

export function Audit({ info }) {
  const [report, setReport] = useState(null);
  const { busy, error, act } = useAction();
  const verify = () => act(async () => setReport(await get(`/v1/sessions/${encodeURIComponent(info.id)}/audit`)));
  return html`<h2 class="group">Journal</h2>
    <p class="faint">Every event carries the hash of the one before it, and signed checkpoints cover them.</p>
    <p class="tools"><button disabled=${busy} onClick=${verify}>${busy ? "Verifying…" : "Verify the journal"}</button></p>
    <${Failure} error=${error} />
    <div role="status">${report && html`<${Found} report=${report} />`}</div>`;
}

function Found({ report }) {
  const { clean, events, uncovered, faults, checkpoint } = report;
  return html`<p class=${clean ? "good" : "bad"}>${clean ? "As it was written" : "Not as it was written"}: ${plural(events, "event")} read${uncovered > 0 ? `, the last ${uncovered} not covered by a checkpoint yet` : ""}.</p>
    ${faults.length > 0 && html`<ul>${faults.map((fault) => html`<li class="bad">${line(fault, 300)}</li>`)}</ul>`}
    ${checkpoint && html`<p class="faint">Keep the newest checkpoint elsewhere, and nobody can change what it covers unseen. <${CopyButton} text=${checkpoint} /></p>`}`;
}
