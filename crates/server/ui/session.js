// The page of one session.
import { post } from "./api.js";
import { Composer } from "./composer.js";
import { html, useEffect, useRef, useState } from "./dom.js";
import { useFeed } from "./feed.js";
import { duration, money, number, plural, reach, tokens } from "./format.js";
import { approvals, keep } from "./live.js";
import { Bar, Failure, OnDemand, Status, Tabs, tabOf } from "./parts.js";
import { route, setHash } from "./router.js";
import { useStore } from "./store.js";
import { line, plain } from "./text.js";
import { TimelineView } from "./timeline.js";

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

export function SessionPage({ id }) {
  const feed = useFeed(id);
  const { info, timeline } = feed;
  const { hash } = useStore(route);
  const tab = tabOf(TABS, hash);
  const questions = useStore(approvals).data.filter((question) => question.session === id);
  const [failure, setFailure] = useState(null);

  // The list of sessions learns what this page's own stream says.
  useEffect(() => {
    if (info) keep([info]);
  }, [info]);

  if (!info) return html`<div class="wide"><h1 tabindex="-1">Session</h1><${Failure} error=${feed.error} />
    ${feed.error ? html`<p><a href="/">To the sessions</a></p>` : html`<p class="loading">Opening the session…</p>`}</div>`;

  const act = async (what, body) => {
    setFailure(null);
    try {
      return await post(`/v1/sessions/${encodeURIComponent(id)}/${what}`, body);
    } catch (error) {
      setFailure(error);
      throw error;
    }
  };
  return html`<div class="wide session">
    <${Head} info=${info} act=${act} questions=${questions} />
    <${Failure} error=${feed.error} />
    <${Tabs} tabs=${TABS} tab=${tab} label="Parts of the session" />
    <div id="panel" role="tabpanel" aria-labelledby=${`tab-${tab}`} class="panel">
      ${tab === "timeline" && html`<${TimelineView} feed=${feed} questions=${questions} />`}
      ${tab === "changes" && html`<${OnDemand} load=${changes} info=${info} stamp=${timeline.settledTool} />`}
      ${tab === "files" && html`<${OnDemand} load=${files} session=${id} />`}
      ${tab === "details" && !feed.whole && html`<p class="loading">Reading the events…</p>`}
      ${tab === "details" && feed.whole && html`<${OnDemand} load=${details} info=${info} timeline=${timeline} version=${timeline.head} />`}
    </div>
    <${Foot} info=${info} act=${act} questions=${questions} tab=${tab} connected=${feed.connected} warning=${feed.warning} failure=${failure} />
  </div>`;
}

function Head({ info, act }) {
  const [ending, setEnding] = useState(false);
  const { usage } = info;
  const quietly = (what, body) => act(what, body).catch(() => {});
  // It stopped before its answer and nobody is asked: only then there is something to go on with.
  const canResume = !info.cancelled && info.group === "needs_you" && info.approvals === 0;
  return html`<header class="session-head">
    <div class="title-row">
      <h1 tabindex="-1">${line(info.title, 240) || "Session"}</h1>
      <div class="acts">
        ${info.group === "running" && html`<button class="stop" onClick=${() => quietly("interrupt")}>Stop</button>`}
        ${canResume && html`<button class="primary" onClick=${() => quietly("resume")}>Resume</button>`}
        ${!info.cancelled && html`<button class="quiet" aria-expanded=${ending} onClick=${() => setEnding(!ending)}>End…</button>`}
      </div>
    </div>
    ${ending && html`<${Ending} onEnd=${(reason) => quietly("cancel", { reason }).then(() => setEnding(false))} onKeep=${() => setEnding(false)} />`}
    <p class="facts-line">
      <${Status} info=${info} />
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

function Ending({ onEnd, onKeep }) {
  const [reason, setReason] = useState("");
  return html`<div class="ending" role="group" aria-label="End the session">
    <p>Ending it is for good: nothing further starts, and what runs is killed. Its events and its changes stay to be read.</p>
    <label class="field">Why, for who reads it later (may be empty)
      <input type="text" value=${reason} maxlength="500" onInput=${(event) => setReason(event.target.value)} /></label>
    <p class="tools"><button class="deny" onClick=${() => onEnd(reason)}>End the session</button>
      <button class="quiet" onClick=${onKeep}>Keep it</button></p>
  </div>`;
}

// What stays at the bottom: questions that wait, and where one writes.
function Foot({ info, act, questions, tab, connected, warning, failure }) {
  // A turn that waits for an answer has not ended: what is said now still steers it.
  const running = info.group === "running" || info.approvals > 0;
  return html`<footer class="foot">
    ${!connected && html`<p class="offline" role="status">The connection is lost; it is tried again.</p>`}
    ${warning && html`<p class="warn" role="status">${line(warning, 300)}</p>`}
    <${Failure} error=${failure} />
    ${questions.length > 0 && html`<${Waiting} questions=${questions} tab=${tab} />`}
    ${info.cancelled
      ? html`<p class="faint ended-note">This session was ended. What it said and changed stays here.</p>`
      : html`<${Composer}
          place=${info.id}
          label=${running ? "Steer the running turn" : "Say something to the agent"}
          hint=${running ? "Read before the next step" : "Begins another turn"}
          action=${running ? "Steer" : "Send"}
          busyWord="Sending…"
          onSend=${(text) => act("messages", { text })}
        />`}
  </footer>`;
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
