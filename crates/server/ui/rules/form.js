// Asks the rules about something that nobody does.
import { post } from "../api.js";
import { html, useState } from "../dom.js";
import { useAction, useFetched } from "../fetched.js";
import { server } from "../live.js";
import { Failure } from "../parts.js";
import { useStore } from "../store.js";
import { line } from "../text.js";
import { nameOf } from "../who.js";
import { Asked, Explained } from "./explained.js";

// Each with what it is done to, and an example of that.
const ACTIONS = {
  egress: ["reach a host", "Host", "api.github.com"],
  execute: ["run a command", "Sandbox", "main"],
  provision: ["make a sandbox", "Sandbox", "main"],
  read_files: ["read a file", "Path", "/workspace/notes.txt"],
  write_files: ["write a file", "Path", "/workspace/notes.txt"],
  ask_model: ["ask a model", "Model", "claude-opus-4"],
  use_secret: ["use a secret", "Secret", "GITHUB_TOKEN"],
  write_shared_memory: ["write shared memory", "Path of memory", "memory/organisation/notes.md"],
  call_outside_tool: ["call an outside tool", "Server and tool", "github/create_issue"],
  start_subagent: ["start a subagent", "Agent", "agent:reviewer"],
  approve: ["approve something", "What is approved", "egress"],
};
const TRIGGERS = { "": "not said", person: "a person", schedule: "a schedule", webhook: "a webhook", agent: "an agent" };
// Situations have more than most questions need.
const MORE = [["agent", "Agent", "agent:default"], ["tool", "Tool", "execute"], ["host", "Host that a secret goes to", "api.github.com"], ["port", "Port", "443"], ["method", "Method", "GET"], ["path", "Path of the request", "/repos/acme/site"]];

export function ExplainForm() {
  const you = useStore(server)?.person ?? "";
  const people = useFetched("/v1/people").value;
  const [said, setSaid] = useState({ action: "egress", resource: "" });
  const [answer, setAnswer] = useState(null);
  const { busy, error, act } = useAction();
  const field = (name) => ({ value: said[name] ?? "", onInput: (event) => setSaid({ ...said, [name]: event.target.value }), autocapitalize: "off", spellcheck: false });
  const [, what, example] = ACTIONS[said.action];
  const ask = (event) => {
    event.preventDefault();
    act(async () => {
      setAnswer(null);
      const situation = bodyOf(said);
      const found = await post("/v1/rules/explain", situation);
      setAnswer({ situation: { person: you, ...situation }, found });
    });
  };
  return html`
    <form class="explain-form" onSubmit=${ask}>
      <label class="field">What would be done<select value=${said.action} onChange=${(event) => setSaid({ ...said, action: event.target.value })}>
        ${Object.entries(ACTIONS).map(([name, [words]]) => html`<option value=${name} selected=${name === said.action}>${words} (${name})</option>`)}</select></label>
      <label class="field">${what}<input type="text" required placeholder=${example} ...${field("resource")} /></label>
      <label class="field">For whom<input type="text" list="known-people" placeholder=${nameOf(you)} ...${field("person")} /></label>
      <datalist id="known-people">${(people?.data ?? []).map((person) => html`<option value=${line(person.name, 90)}></option>`)}</datalist>
      <label class="field">Labels of the session<input type="text" placeholder="untrusted others" ...${field("labels")} /></label>
      <details class="more"><summary>More of the situation</summary><div class="explain-more">
        <label class="field">Begun by<select value=${said.trigger ?? ""} onChange=${(event) => setSaid({ ...said, trigger: event.target.value })}>
          ${Object.entries(TRIGGERS).map(([name, words]) => html`<option value=${name} selected=${name === (said.trigger ?? "")}>${words}</option>`)}</select></label>
        ${MORE.map(([name, title, such]) => html`<label class="field">${title}<input type="text" inputmode=${name === "port" ? "numeric" : undefined} placeholder=${such} ...${field(name)} /></label>`)}
      </div></details>
      <p class="tools"><button class="primary" type="submit" disabled=${busy}>${busy ? "Asking…" : "Ask the rules"}</button><span class="faint">Nothing is done.</span></p>
    </form>
    <${Failure} error=${error} />
    ${answer && html`<section class="explained" aria-label="What the rules say"><${Asked} situation=${answer.situation} /><${Explained} found=${answer.found} /></section>`}`;
}

// What is left empty is not said.
function bodyOf(said) {
  const entries = Object.entries(said).map(([name, text]) => [name, text.trim()]).filter(([, text]) => text);
  const body = Object.fromEntries(entries);
  if (body.labels) body.labels = body.labels.split(/[\s,]+/).filter(Boolean);
  if (body.port) body.port = Number(body.port);
  if (body.person && !body.person.includes(":")) body.person = `person:${body.person}`;
  if (body.agent && !body.agent.includes(":")) body.agent = `agent:${body.agent}`;
  return body;
}
