// Sandboxes that a person drives without an agent: which there are, and a new one.
import { html } from "../dom.js";
import { useFetched } from "../fetched.js";
import { when } from "../format.js";
import { server } from "../live.js";
import { Disclosure, Failure } from "../parts.js";
import { sandboxPath } from "../router.js";
import { useStore } from "../store.js";
import { exact, line } from "../text.js";
import { nameOf } from "../who.js";
import { NewSandbox } from "./form.js";
import { OneSandbox } from "./one.js";

export function SandboxesPage({ id }) {
  return id ? html`<${OneSandbox} key=${id} id=${id} />` : html`<${AllSandboxes} />`;
}

function AllSandboxes() {
  const about = useStore(server);
  const { value, error } = useFetched("/v1/sandboxes");
  return html`
    <p class="lead">A sandbox of your own, without an agent: commands, files, a terminal, and of the network what you allow. Those of sessions are with their sessions.</p>
    <${Failure} error=${error} />
    ${!value && !error && html`<p class="loading">Looking what there is…</p>`}
    ${value?.data.length === 0 && html`<p class="lead">There is no sandbox yet.</p>`}
    ${value?.data.length > 0 && html`<ul class="entries">${value.data.map((info) => html`<${Row} key=${info.id} info=${info} you=${about?.person} />`)}</ul>`}
    ${about?.rights.start && value && html`<div class="file new-secret"><${Disclosure} title="Make a sandbox" open=${value.data.length === 0}><${NewSandbox} /></${Disclosure}></div>`}`;
}

function Row({ info, you }) {
  return html`<li><a class="entry-row" data-row href=${sandboxPath(info.id)}>
    <span class="entry-name">${info.label ? line(info.label, 100) : html`<code>${exact(info.id)}</code>`}</span>
    <span class="tag">${info.state}</span>
    <span class="snippet">${info.person !== you && html`${nameOf(info.person)}'s, `}${info.template ? html`from <code>${exact(info.template)}</code>, ` : ""}made <time datetime=${new Date(info.created_ms).toISOString()}>${when(info.created_ms)}</time></span>
  </a></li>`;
}
