// Agents: which there are, what each is and when it begins by itself; started with one button.
import { post } from "../api.js";
import { html, useState } from "../dom.js";
import { useAction, useFetched } from "../fetched.js";
import { reach, when } from "../format.js";
import { keep, server } from "../live.js";
import { Disclosure, Failure } from "../parts.js";
import { go, memoryPath, sessionPath } from "../router.js";
import { useStore } from "../store.js";
import { exact, line, plain } from "../text.js";
import { nameOf } from "../who.js";
import { AgentForm } from "./form.js";

const WHOSE = { user: "yours", group: "a group's", organisation: "everybody's", configuration: "of the configuration" };

export function AgentsPage() {
  const rights = useStore(server)?.rights;
  const { value, error, reload } = useFetched("/v1/agents");
  const [said, setSaid] = useState("");
  const onDone = async (words) => {
    setSaid(words);
    await reload();
  };
  const agents = value?.data ?? [];
  return html`
    <p class="lead">An agent is what a session is begun with by one button: its task, what it is told, what it may reach and spend. It can begin by itself as well, at set times or for messages of another system. Each change is another version.</p>
    <p class="good" role="status">${said}</p>
    <${Failure} error=${error} />
    ${!value && !error && html`<p class="loading">Looking what there is…</p>`}
    ${value && agents.length === 0 && html`<p class="lead">There is no agent yet.</p>`}
    ${agents.length > 0 && html`<ul class="entries agents">${agents.map((info) => html`<${Agent} key=${info.path ?? info.name} info=${info} rights=${rights} onDone=${onDone} />`)}</ul>`}
    ${value && rights?.write_memory && html`<div class="file new-agent"><${Disclosure} title="Add an agent" open=${agents.length === 0}><${AgentForm} onDone=${onDone} /></${Disclosure}></div>`}`;
}

function Agent({ info, rights, onDone }) {
  const [opened, setOpened] = useState(null);
  const toggle = (name) => setOpened(opened === name ? null : name);
  const { definition } = info;
  const name = line(info.name, 40);
  const done = (words) => {
    setOpened(null);
    return onDone(words);
  };
  return html`<li data-row tabindex="-1" class="entry-row">
    <code class="entry-name">${exact(info.name)}</code>
    <span class="tools">
      ${rights?.start && !info.problem && html`<${StartButton} info=${info} opened=${opened === "start"} onOpen=${() => toggle("start")} />`}
      ${rights?.write_memory && info.path && html`<button class="quiet" aria-expanded=${opened === "edit"} aria-label=${`Edit ${name}`} onClick=${() => toggle("edit")}>Edit…</button>`}
      ${info.path && html`<a href=${memoryPath(info.path)} aria-label=${`r${info.revision}, versions of ${name}`}>r${info.revision}</a>`}</span>
    ${definition.description && html`<span class="snippet">${line(definition.description, 300)}</span>`}
    ${definition.task && html`<span class="snippet">Task: ${line(definition.task, 300)}</span>`}
    <span class="snippet">${WHOSE[info.source] ?? plain(info.source)}${info.author ? `, written by ${nameOf(info.author)}` : ""}${definition.network ? `, reaches ${reach(definition.network)}` : ""}</span>
    ${definition.schedule && html`<span class="snippet">begins at <code>${exact(definition.schedule.cron)}</code> ${plain(definition.schedule.time_zone ?? "UTC")}${info.next_ms ? html`, next <time datetime=${new Date(info.next_ms).toISOString()}>${when(info.next_ms)}</time>` : ""}</span>`}
    ${info.webhook_path && html`<span class="snippet">begins for messages to <code>${exact(location.origin + info.webhook_path)}</code>, signed with <code>${exact(definition.webhook?.secret ?? "")}</code></span>`}
    ${info.problem && html`<span class="snippet bad">${plain(info.problem)}</span>`}
    ${opened === "start" && html`<${StartForm} name=${info.name} />`}
    ${opened === "edit" && html`<${AgentForm} info=${info} onDone=${done} />`}
  </li>`;
}

async function start(agent, text) {
  const info = await post("/v1/sessions", text ? { agent, text } : { agent });
  keep([info]);
  go(sessionPath(info.id));
}

// One that knows its task begins at once; another one is told it first.
function StartButton({ info, opened, onOpen }) {
  const { busy, error, act } = useAction();
  const name = line(info.name, 40);
  if (!info.definition.task) return html`<button class="primary" aria-expanded=${opened} aria-label=${`Start ${name}`} onClick=${onOpen}>Start…</button>`;
  return html`<button class="primary" disabled=${busy} aria-label=${`Start ${name}`} onClick=${() => act(() => start(info.name))}>${busy ? "Starting…" : "Start"}</button>
    <${Failure} error=${error} />`;
}

function StartForm({ name }) {
  const [text, setText] = useState("");
  const { busy, error, act } = useAction();
  const submit = (event) => {
    event.preventDefault();
    act(() => start(name, text));
  };
  return html`<form class="secret-form" onSubmit=${submit}>
    <label class="field">What should it do?<textarea rows="3" required value=${text} onInput=${(event) => setText(event.target.value)}></textarea></label>
    <p class="tools"><button class="primary" type="submit" disabled=${busy || !text.trim()}>${busy ? "Starting…" : "Start it"}</button></p>
    <${Failure} error=${error} />
  </form>`;
}
