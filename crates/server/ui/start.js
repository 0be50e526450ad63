// The first page: say what is to be done, and see how everything stands.
import { post } from "./api.js";
import { Composer } from "./composer.js";
import { html, useNow, useState } from "./dom.js";
import { age, money, plural, reach, tokens } from "./format.js";
import { keep, moreSessions, server, sessions } from "./live.js";
import { Failure, Status } from "./parts.js";
import { go, sessionPath } from "./router.js";
import { useStore } from "./store.js";
import { exact, line, plain } from "./text.js";
import { needsYou, whose } from "./who.js";

export function StartPage({ focus }) {
  const about = useStore(server);
  // Most may: it is there at once, and goes where it turns out that one may not.
  const mayStart = about?.rights.start ?? true;
  return html`<div class="wide start">
    <h1 class="unseen" tabindex="-1">Sessions</h1>
    ${mayStart ? html`<${NewTask} focus=${focus} />` : html`<p class="lead">You may look at sessions here, and not begin one.</p>`}
    <${SessionGroups} you=${about?.person} mayStart=${mayStart} />
  </div>`;
}

function NewTask({ focus }) {
  const about = useStore(server);
  const [network, setNetwork] = useState(null);
  const [model, setModel] = useState("");
  const [since, setSince] = useState(null);
  const [error, setError] = useState(null);
  const configured = (about?.network ?? []).filter(isWord);
  // A server may say in prose what holds where nothing is chosen.
  const otherwise = about?.network.find((word) => !isWord(word)) ?? "nothing";
  const chosen = network ?? configured;

  const start = async (said) => {
    setError(null);
    setSince(Date.now());
    const body = { ...said, network: wordsOf(chosen, configured) };
    if (model.trim()) body.model = model.trim();
    try {
      const info = await post("/v1/sessions", body);
      keep([info]);
      go(sessionPath(info.id));
    } catch (failure) {
      setError(failure);
      throw failure;
    } finally {
      setSince(null);
    }
  };

  return html`<section class="new-task" aria-label="New session">
    <${Composer}
      place="new" rows=${3} focus=${focus} onSend=${start}
      label="What should the agent do?"
      hint="For example: Find out why the tests fail, and repair it."
      action="Start" busyWord="Starting…"
    >
      <${NetworkChoice} words=${chosen} otherwise=${otherwise} onChange=${setNetwork} />
      <details class="more"><summary>Model: ${about ? plain(model || about.model || "none is chosen") : "…"}</summary>
        <label class="field">Another model, by name
          <input type="text" value=${model} placeholder=${about?.model ?? ""} onInput=${(event) => setModel(event.target.value)} /></label>
      </details>
    </${Composer}>
    ${since && html`<${Progress} since=${since} directory=${about?.directory} />`}
    <${Failure} error=${error} />
    <p class="explain">The agent works on a copy of <code>${about ? exact(about.directory) : "the directory"}</code> in a sandbox.
      Nothing in your files is changed until you look at its diff and write it back.</p>
  </section>`;
}

function Progress({ since, directory }) {
  const now = useNow(500);
  const seconds = Math.max(0, Math.floor((now - since) / 1000));
  return html`<p class="progress" role="status"><span class="pulse" aria-hidden="true"></span>
    Copying <code>${directory ? line(directory, 100) : "the directory"}</code>${seconds > 1 ? `, ${seconds} s` : ""}…</p>`;
}

const isWord = (word) => !/\s/.test(word);

const READY = [
  ["packages", "packages", "the registries of pip, npm, cargo and others, for reading"],
  ["git", "git", "the remotes of the repository, for fetching"],
];

function NetworkChoice({ words, otherwise, onChange }) {
  const [hosts, setHosts] = useState(null);
  const named = words.filter((word) => !READY.some(([name]) => name === word));
  const toggle = (name) => onChange(words.includes(name) ? words.filter((word) => word !== name) : [...words, name]);
  const write = (text) => {
    setHosts(text);
    const ready = words.filter((word) => READY.some(([name]) => name === word));
    onChange([...ready, ...text.split(/[\s,]+/).filter(Boolean)]);
  };
  return html`<fieldset class="network">
    <legend>Its commands may reach</legend>
    <label class="chip"><input type="checkbox" checked=${words.length === 0} onChange=${() => (setHosts(""), onChange([]))} /> ${line(otherwise, 60)}</label>
    ${READY.map(([name, title, what]) => html`<label class="chip" title=${what}>
      <input type="checkbox" checked=${words.includes(name)} onChange=${() => toggle(name)} /> ${title}</label>`)}
    <label class="hosts"><span class="unseen">Hosts</span>
      <input type="text" autocapitalize="off" spellcheck=${false} placeholder="a host, for example docs.rs" value=${hosts ?? named.join(" ")} onInput=${(event) => write(event.target.value)} /></label>
  </fieldset>`;
}

// Nothing said is what is configured; only what differs from that has to be said.
function wordsOf(chosen, configured) {
  if (chosen.join(" ") === configured.join(" ")) return [];
  return chosen.length ? chosen : ["none"];
}

const GROUPS = [
  ["needs_you", "Needs you"],
  ["running", "Running"],
  ["needs_others", "Needs somebody else"],
  ["done", "Done"],
];

const groupOf = (info) => (info.group === "needs_you" && !needsYou(info) ? "needs_others" : info.group);

function SessionGroups({ you, mayStart }) {
  const { byId, loaded, cursor } = useStore(sessions);
  const now = useNow(20_000);
  const [error, setError] = useState(null);
  const all = [...byId.values()].sort((a, b) => b.last_at_ms - a.last_at_ms);
  if (!loaded) return html`<p class="loading">Reading the sessions…</p>`;
  if (all.length === 0 && !mayStart) return html`<p class="lead">There is no session that you may see.</p>`;
  if (all.length === 0) return html`<p class="lead">No session yet. Say above what is to be done; you will see every step here, be asked where a person has to decide, and read the diff at the end.</p>`;
  return html`
    ${GROUPS.map(([group, title]) => html`<${Group} key=${group} title=${title} infos=${all.filter((info) => groupOf(info) === group)} now=${now} you=${you} />`)}
    <${Failure} error=${error} />
    ${cursor && html`<button class="earlier" onClick=${() => moreSessions().catch(setError)}>Show older sessions</button>`}
  `;
}

function Group({ title, infos, now, you }) {
  if (infos.length === 0) return null;
  return html`<section aria-label=${title}>
    <h2 class="group">${title} <span class="faint">${infos.length}</span></h2>
    <ul class="sessions">${infos.map((info) => html`<${Row} key=${info.id} info=${info} now=${now} owner=${whose(info, you)} />`)}</ul>
  </section>`;
}

function Row({ info, now, owner }) {
  const { usage } = info;
  const spent = [usage.money_nanos !== undefined && usage.money_nanos !== null ? money(usage.money_nanos) : null, `${tokens(usage.tokens)} tokens`];
  return html`<li><a class="session-row" data-row href=${sessionPath(info.id)}>
    <span class="row-title">${line(info.title, 160) || info.id}</span>
    <${Status} info=${info} />
    <span class="row-facts">
      ${owner && html`<span class="whose">${owner}</span>`}
      ${info.approvals > 0 && html`<span class="asks">${plural(info.approvals, "question")}</span>`}
      ${info.agent && html`<span>${plain(info.agent)}${info.trigger ? `, by ${plain(info.trigger)}` : ""}</span>`}
      <span>${plain(info.model)}${info.scripted ? " (script)" : ""}</span>
      ${info.directory && html`<span class="dir">${line(info.directory, 80)}</span>`}
      ${info.network.length > 0 && html`<span>reaches ${reach(info.network)}</span>`}
      <span class="spent">${spent.filter(Boolean).join(" · ")}</span>
      <time datetime=${new Date(info.last_at_ms).toISOString()}>${age(info.last_at_ms, now)}</time>
    </span>
  </a></li>`;
}
