// What a sandbox may reach, and what it reached.
import { put } from "../api.js";
import { html, useState } from "../dom.js";
import { useAction, useFetched } from "../fetched.js";
import { Failure } from "../parts.js";
import { Flow } from "../rules/egress.js";
import { line } from "../text.js";

export const WORDS = html`Words with commas between them: <code>packages</code> for the registries of packages, hosts such as <code>github.com</code>, <code>secret:NAME</code>, or <code>none</code>.`;

export function NetworkTab({ base, info, onChange }) {
  const { value, error, reload } = useFetched(`${base}/egress`);
  return html`
    <${Reach} base=${base} info=${info} onChange=${() => Promise.all([onChange(), reload()])} />
    <${Failure} error=${error} />
    ${!value && !error && html`<p class="loading">Looking what it reached…</p>`}
    ${value?.data.length === 0 && html`<p class="faint after">Nothing was reached, and nothing refused.</p>`}
    ${value?.data.length > 0 && html`<ul class="flows after" aria-label="What was reached">${value.data.map((flow) => html`<${Flow} info=${flow} />`)}</ul>
      <p class="faint">As it was noted when a command was over, the newest first.</p>`}`;
}

function Reach({ base, info, onChange }) {
  const { busy, error, act } = useAction();
  const [said, setSaid] = useState(info.network.join(", "));
  const set = (event) => {
    event.preventDefault();
    act(async () => {
      await put(`${base}/network`, { network: [said.trim() || "none"] });
      await onChange();
    });
  };
  const reaches = info.network.filter((word) => word !== "none");
  return html`<p>${reaches.length === 0 ? "It reaches nothing." : html`It may reach ${reaches.map((word, at) => html`${at > 0 && ", "}<code>${line(word, 200)}</code>`)}.`}</p>
    ${info.may_drive && html`<form class="secret-form" onSubmit=${set} autocomplete="off">
      <label class="field">What it may reach<input type="text" maxlength="2000" aria-describedby="reach-words" autocapitalize="off" spellcheck=${false} value=${said} onInput=${(event) => setSaid(event.target.value)} /></label>
      <p class="faint" id="reach-words">${WORDS}</p>
      <p class="tools"><button type="submit" disabled=${busy}>${busy ? "Setting it…" : "Set"}</button></p>
      <${Failure} error=${error} />
    </form>`}`;
}
