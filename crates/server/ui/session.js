// The page of one session.
import { post, remove } from "./api.js";
import { Composer } from "./composer.js";
import { html, useEffect, useRef, useState } from "./dom.js";
import { useFeed } from "./feed.js";
import { duration, money, number, plural, reach, tokens } from "./format.js";
import { approvals, forget, keep, server } from "./live.js";
import { Bar, Failure, OnDemand, Status, Tabs, tabOf } from "./parts.js";
import { go, route, setHash } from "./router.js";
import { useStore } from "./store.js";
import { line, plain } from "./text.js";
import { TimelineView } from "./timeline.js";
import { nameOf, together, whose, withWhom } from "./who.js";

const TABS = [
  ["timeline", "Timeline"],
  ["changes", "Changes"],
  ["files", "Files"],
  ["details", "Details"],
];

// Not looked at first, so that they are no part of what is loaded first.
const changes = () => import("./changes.js").then((module) => module.Changes);
const files = () => import("./files.js").then((module) => module.Files);
const details = () => import("./details.js").then((module) => module.Details);
const ending = () => import("./ending.js").then((module) => module.Ending);
const deleting = () => import("./ending.js").then((module) => module.Deleting);
const resuming = () => import("./resuming.js").then((module) => module.Resuming);
const sharing = () => import("./share.js").then((module) => module.Sharing);

export function SessionPage({ id }) {
  const feed = useFeed(id);
  const { info, timeline } = feed;
  const { hash } = useStore(route);
  const tab = tabOf(TABS, hash);
  const questions = useStore(approvals).data.filter((question) => question.session === id);
  const you = useStore(server)?.person;
  const [failure, setFailure] = useState(null);

  // The list of sessions learns what this page's own stream says.
  useEffect(() => {
    if (info) keep([info]);
  }, [info]);

  if (!info) return html`<div class="wide"><h1 tabindex="-1">Session</h1><${Failure} error=${feed.error} />
    ${feed.error ? html`<p><a href="/">To the sessions</a></p>` : html`<p class="loading">Opening the session…</p>`}</div>`;

  const at = `/v1/sessions/${encodeURIComponent(id)}`;
  const attempt = async (does) => {
    setFailure(null);
    try {
      return await does();
    } catch (error) {
      setFailure(error);
      throw error;
    }
  };
  const act = (what, body) => attempt(() => post(`${at}/${what}`, body));
  const discard = async () => {
    await attempt(() => remove(at));
    forget(id);
    go("/");
  };
  return html`<div class="wide session">
    <${Head} info=${info} act=${act} onDelete=${discard} you=${you} />
    <${Failure} error=${feed.error} />
    <${Tabs} tabs=${TABS} tab=${tab} label="Parts of the session" />
    <div id="panel" role="tabpanel" aria-labelledby=${`tab-${tab}`} class="panel">
      ${tab === "timeline" && html`<${TimelineView} feed=${feed} questions=${questions} />`}
      ${tab === "changes" && html`<${OnDemand} load=${changes} info=${info} stamp=${timeline.settledTool} />`}
      ${tab === "files" && html`<${OnDemand} load=${files} base=${`${at}/files`} what="The agent's copy," />`}
      ${tab === "details" && !feed.whole && html`<p class="loading">Reading the events…</p>`}
      ${tab === "details" && feed.whole && html`<${OnDemand} load=${details} info=${info} timeline=${timeline} version=${timeline.head} />`}
    </div>
    <${Foot} info=${info} act=${act} questions=${questions} tab=${tab} others=${feed.people.filter((person) => person !== you)} connected=${feed.connected} warning=${feed.warning} failure=${failure} />
  </div>`;
}

function Head({ info, act, onDelete, you }) {
  // Of what stands under the title there is one at a time.
  const [opened, setOpened] = useState(null);
  const toggle = (name) => setOpened(opened === name ? null : name);
  const { usage, rights, shares } = info;
  const owner = whose(info, you);
  const quietly = (what, body) => act(what, body).catch(() => {});
  // It stopped before its answer and nobody is asked: only then there is something to go on with.
  const canResume = rights.speak && !info.cancelled && info.group === "needs_you" && info.approvals === 0;
  const isOver = info.cancelled || (info.group !== "running" && info.approvals === 0 && info.status !== "interrupted");
  return html`<header class="session-head">
    <div class="title-row">
      <h1 tabindex="-1">${line(info.title, 240) || "Session"}</h1>
      <div class="acts">
        ${rights.speak && info.group === "running" && html`<button class="stop" onClick=${() => quietly("interrupt")}>Stop</button>`}
        ${canResume && html`<button class="primary" onClick=${() => quietly("resume")}>Resume</button>`}
        ${canResume && rights.manage && html`<button class="quiet" aria-expanded=${opened === "resuming"} onClick=${() => toggle("resuming")}>Limits…</button>`}
        ${rights.manage && html`<button class="quiet" aria-expanded=${opened === "sharing"} onClick=${() => toggle("sharing")}>Share…</button>`}
        ${rights.manage && !info.cancelled && html`<button class="quiet" aria-expanded=${opened === "ending"} onClick=${() => toggle("ending")}>End…</button>`}
        ${rights.remove && isOver && html`<button class="quiet" aria-expanded=${opened === "deleting"} onClick=${() => toggle("deleting")}>Delete…</button>`}
      </div>
    </div>
    ${opened === "resuming" && canResume && html`<${OnDemand} load=${resuming} usage=${usage} onResume=${(body) => act("resume", body).then(() => setOpened(null))} onKeep=${() => setOpened(null)} />`}
    ${opened === "sharing" && html`<${OnDemand} load=${sharing} info=${info} />`}
    ${opened === "ending" && html`<${OnDemand} load=${ending} onEnd=${(reason) => quietly("cancel", { reason }).then(() => setOpened(null))} onKeep=${() => setOpened(null)} />`}
    ${opened === "deleting" && html`<${OnDemand} load=${deleting} onDelete=${onDelete} onKeep=${() => setOpened(null)} />`}
    <p class="facts-line">
      <${Status} info=${info} />
      ${owner && html`<span class="whose">${owner}</span>`}
      ${shares.length > 0 && html`<span>shared with ${together(shares.map((share) => withWhom(share.with)))}</span>`}
      <span>${plain(info.model)}${info.scripted ? html` <span class="tag">played by a script</span>` : ""}</span>
      <span>reaches ${reach(info.network)}</span>
      ${info.directory && html`<span>copy of <code>${line(info.directory, 120)}</code></span>`}
      ${info.labels.map((label) => html`<span class="tag">${line(label, 60)}</span>`)}
    </p>
    <div class="bars">
      <${Bar} name="Cost" value=${ofMost(usage.money_nanos, usage.money_nanos_max, money)} used=${usage.money_nanos ?? 0} limit=${usage.money_nanos_max} />
      <${Bar} name="Tokens" value=${ofMost(usage.tokens, usage.tokens_max, tokens)} used=${usage.tokens} limit=${usage.tokens_max} />
      <${Bar} name="Steps" value=${number(usage.steps)} />
      <${Bar} name="Time in turns" value=${duration(usage.wall_ms)} />
    </div>
  </header>`;
}

const ofMost = (value, most, write) => (most ? `${write(value)} of ${write(most)}` : write(value));

// What stays at the bottom: questions that wait, and where one writes.
function Foot({ info, act, questions, tab, others, connected, warning, failure }) {
  return html`<footer class="foot">
    ${!connected && html`<p class="offline" role="status">The connection is lost; it is tried again.</p>`}
    ${warning && html`<p class="warn" role="status">${line(warning, 300)}</p>`}
    <${Failure} error=${failure} />
    ${others.length > 0 && html`<p class="here">${together(others.map(nameOf), 4)} ${others.length === 1 ? "is" : "are"} here</p>`}
    ${info.rights.answer && questions.length > 0 && html`<${Waiting} questions=${questions} tab=${tab} />`}
    <${Writing} info=${info} act=${act} />
  </footer>`;
}

// What becomes of what is said while a turn runs.
const WHEN_BUSY = {
  steer: ["Steer", "Read before the next step"],
  queue: ["Queue", "Begins another turn when this one is over"],
  interrupt: ["Stop and send", "Stops this turn, and begins another one"],
};

function Writing({ info, act }) {
  const { speak, answer } = info.rights;
  const [chosen, setChosen] = useState(info.when_busy in WHEN_BUSY ? info.when_busy : "steer");
  if (info.cancelled) return html`<p class="faint ended-note">This session was ended. What it said and changed stays here.</p>`;
  if (!speak) return html`<p class="faint ended-note">You may read this session${answer ? ", and answer what it asks" : ""}.</p>`;
  // A turn that waits for an answer has not ended: what is said now still steers it.
  const running = info.group === "running" || info.approvals > 0;
  if (running && info.when_busy === "refuse") return html`<p class="faint ended-note">This session takes nothing more while a turn runs.</p>`;
  const [action, hint] = running ? WHEN_BUSY[chosen] : ["Send", "Begins another turn"];
  return html`<${Composer}
    place=${info.id}
    label="Say something to the agent"
    hint=${hint}
    action=${action}
    busyWord="Sending…"
    onSend=${(said) => act("messages", running ? { ...said, when_busy: chosen } : said)}
  >
    ${running && html`<select class="when-busy" aria-label="What becomes of it while a turn runs" onChange=${(event) => setChosen(event.target.value)}>
      ${Object.entries(WHEN_BUSY).map(([name, [, words]]) => html`<option value=${name} selected=${name === chosen}>${words}</option>`)}
    </select>`}
  </${Composer}>`;
}

function Waiting({ questions, tab }) {
  const names = [...new Set(questions.map((question) => question.tool))].slice(0, 3);
  const next = useRef(0);
  const look = () => {
    if (tab !== "timeline") setHash("");
    requestAnimationFrame(() => {
      const card = document.getElementById(`q${questions[next.current++ % questions.length].effect}`);
      card?.scrollIntoView({ block: "center" });
      card?.focus({ preventScroll: true });
    });
  };
  return html`<div class="waiting-bar" role="status">
    <span>${plural(questions.length, "question")} ${questions.length === 1 ? "waits" : "wait"} for you: <code>${names.map((name) => line(name, 40)).join(", ")}</code></span>
    <button class="ask" onClick=${look}>${questions.length === 1 ? "Look at it" : "Look at them"}</button>
  </div>`;
}
