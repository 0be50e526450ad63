// One step of the timeline.
import { CallBody, parseArguments, shortCall } from "./calls.js";
import { html, memoOn, useMemo, useNow } from "./dom.js";
import { phase } from "./fold.js";
import { bytes, clock, duration, money, plural, reach, tokens, when } from "./format.js";
import { server } from "./live.js";
import { Markdown } from "./markdown.js";
import { Disclosure, LongText, OnDemand, Rules } from "./parts.js";
import { sessionPath, setHash } from "./router.js";
import { useStore } from "./store.js";
import { lineCount, line, plain, tail } from "./text.js";
import { nameOf } from "./who.js";
import { Why } from "./why.js";

const LIVE_LINES = 24;
const LIVE_CHARS = 8000;

/// A step, drawn again only when it became otherwise. `asked`: a question below it says the rest.
export const Step = memoOn(["step", "version", "asked"], function Step({ step, asked, session }) {
  const Kind = KINDS[step.kind] ?? Note;
  const state = step.kind === "end" ? (step.answered ? "done" : "stopped") : phase(step);
  return html`<article
    class=${`step ${step.kind} is-${state}${step.undone ? " undone" : ""}`}
    id=${`s${step.seq}`}
    tabindex="-1"
    data-row
    aria-label=${labelOf(step)}
  >
    <span class="dot" aria-hidden="true"></span>
    <div class="step-body"><${Kind} step=${step} state=${state} asked=${asked} session=${session} /></div>
  </article>`;
});

/// What a step is, in a few words: for those who hear the page.
export function labelOf(step) {
  const at = `Event ${step.seq}${step.undone ? ", undone" : ""}: `;
  if (step.kind === "said") return `${at}${authorOf(step)} said something`;
  if (step.kind === "tool") {
    const short = step.arguments && shortCall(parseArguments(step.arguments));
    return `${at}${line(step.name, 60)} ${short ? line(short, 80) : ""}`;
  }
  if (step.kind === "end") return `${at}the turn is over`;
  if (step.kind === "note") return at + line(step.text, 120);
  return at + { model: "model call", compaction: "summary of the conversation", sandbox: "a sandbox is made" }[step.kind];
}

const AUTHORS = {
  person: "",
  agent: "another agent",
  untrusted: "nobody vouches for this",
  file: "a file that a person trusts",
};

// Only of a person the name is known to be theirs: all others have theirs in full.
const authorOf = ({ author, name }) => (author === "person" ? nameOf(name) : line(name, 90));

const shown = () => import("./pictures.js").then((module) => module.Shown);

function Said({ step, session }) {
  const you = useStore(server)?.person;
  const isPerson = step.author === "person";
  const name = isPerson && step.name === you ? "You" : authorOf(step);
  const body = html`<${LongText} text=${step.text} lines=${isPerson ? 40 : 8} chars=${8000} class="wrap message" label="Message" />`;
  return html`
    <header class="step-head">
      <strong>${name || "Someone"}</strong>
      ${AUTHORS[step.author] && html`<span class="tag">${AUTHORS[step.author]}</span>`}
      <${At} at=${step.at} />
    </header>
    ${step.author === "file" ? html`<${Disclosure} title=${plural(lineCount(step.text), "line")}>${body}</${Disclosure}>` : body}
    ${step.pictures && html`<${OnDemand} load=${shown} pictures=${step.pictures} at=${`/v1/sessions/${encodeURIComponent(session)}/events/${step.seq}/pictures`} />`}
  `;
}

function Model({ step, state, session }) {
  const parts = step.parts ?? [];
  const thinking = parts.filter((part) => part.type === "thinking").map((part) => part.text).join("\n\n");
  const texts = parts.filter((part) => part.type === "text");
  const calls = parts.filter((part) => part.type === "call" && !step.proposed?.has(part.id));
  return html`
    <header class="step-head">
      <span class="what">${step.kind === "compaction" ? "Summary of the conversation" : "Model"}</span>
      <${State} step=${step} state=${state} />
      <${Meta} step=${step} session=${session} />
    </header>
    <${Verdict} step=${step} />
    ${thinking && html`<${Disclosure} title=${`Thinking, ${plural(lineCount(thinking), "line")}`} class="thinking">
      <${LongText} text=${thinking} lines=${60} chars=${12000} class="wrap prose-pre" label="Thinking" />
    </${Disclosure}>`}
    ${texts.length > 0 && html`<div class="said-by-model">${texts.map((part) => html`<${Markdown} text=${part.text} />`)}</div>`}
    ${calls.map((call) => html`<${LostCall} call=${call} />`)}
    ${!step.outcome && step.live && html`<${LiveModel} live=${step.live} />`}
    <${Trouble} step=${step} />
  `;
}

// A call that has no effect (yet): all others are steps of their own.
function LostCall({ call }) {
  return html`<${Disclosure} title=${html`<span>calls <code>${line(call.tool, 60)}</code></span>`}>
    <${CallBody} text=${call.arguments} whole />
  </${Disclosure}>`;
}

function LiveModel({ live }) {
  return html`<div class="live">
    ${live.thinking && !live.text && html`<${LongText} text=${tail(live.thinking, 6, 800)} class="wrap prose-pre faint" label="Thinking" />`}
    ${live.text && html`<div class="said-by-model"><${Markdown} text=${live.text} /></div>`}
    ${live.calling.map((tool) => html`<p class="faint">writes a call of <code>${line(tool, 60)}</code></p>`)}
    ${live.notes.map((note) => html`<p class="warn">${line(note, 400)}</p>`)}
    <span class="pulse" aria-hidden="true"></span>
  </div>`;
}

function Tool({ step, state, asked, session }) {
  const args = useMemo(() => (step.arguments === null ? null : parseArguments(step.arguments)), [step.arguments]);
  const short = shortCall(args);
  return html`
    <header class="step-head">
      <code class="tool-name">${line(step.name, 60)}</code>
      ${short && html`<code class="short">${short}</code>`}
      <${State} step=${step} state=${state} />
      <${Meta} step=${step} session=${!asked && session} />
    </header>
    ${step.amends && html`<p class="faint">With the arguments that a person wrote, instead of step ${step.amends}.</p>`}
    ${step.arguments && !asked && html`<${CallBody} text=${step.arguments} />`}
    ${!asked && html`<${Verdict} step=${step} />`}
    ${!step.outcome && step.live && html`<${LiveOutput} live=${step.live} />`}
    <${Output} step=${step} />
    <${Flows} flows=${step.flows} />
  `;
}

function LiveOutput({ live }) {
  return html`<div class="live">
    ${live.output && html`<pre class="code out">${plain(tail(live.output, LIVE_LINES, LIVE_CHARS))}</pre>`}
    ${live.notes.map((note) => html`<p class="warn">${line(note, 400)}</p>`)}
    <span class="pulse" aria-hidden="true"></span>
  </div>`;
}

// What the model is told of a command that printed nothing and went well.
const NOTHING = /^\(no output\)\s*\[exit code 0\]\s*$/;

function Output({ step }) {
  const { text, outcome, hidden_bytes: hidden } = step;
  if (outcome && outcome !== "done" && outcome !== "error") return html`<${Trouble} step=${step} />`;
  if (!text?.trim()) return null;
  if (outcome === "done" && NOTHING.test(text)) return html`<p class="faint">No output.</p>`;
  if (outcome === "done" && text.length < 160 && lineCount(text) === 1) return html`<p class="faint"><code>${plain(text.trim())}</code></p>`;
  const few = outcome === "done" && lineCount(text) <= 3 && text.length < 300;
  const body = html`
    <${LongText} text=${text} lines=${outcome === "error" ? 30 : 60} class="out" label="Output" />
    ${hidden > 0 && html`<p class="faint">The model does not see ${bytes(hidden)} more of it.</p>`}
  `;
  if (few) return body;
  return html`<${Disclosure} title=${`Output, ${plural(lineCount(text), "line")}`} open=${outcome === "error"}>${body}</${Disclosure}>`;
}

const TROUBLE = {
  failed: "It could not be done.",
  cancelled: "It was stopped.",
  unknown: "Nobody knows whether this was done. It is not repeated by itself; the model is told so.",
};

function Trouble({ step }) {
  const said = TROUBLE[step.outcome];
  // Where the rules or a person said no, the verdict has told it already.
  const refused = step.answer?.answer === "denied" || step.verdict?.verdict === "forbid";
  if (!said || (refused && step.outcome === "failed")) return null;
  return html`<div class=${`trouble ${step.outcome}`}>
    <p><strong>${said}</strong></p>
    ${step.text && html`<${LongText} text=${step.text} class="wrap" label="What went wrong" />`}
  </div>`;
}

function Flows({ flows }) {
  const refused = (flows ?? []).filter((flow) => flow.refusal);
  if (!flows?.length) return null;
  const names = [...new Set(flows.filter((flow) => !flow.refusal).map((flow) => line(flow.host, 80)))];
  return html`
    ${names.length > 0 && html`<p class="faint">Reached ${reach(names.slice(0, 6))}${names.length > 6 ? ` and ${names.length - 6} more` : ""}.</p>`}
    ${refused.slice(0, 4).map((flow) => html`<p class="warn">Not reached: <code>${line(flow.host, 80)}:${flow.port}</code>, ${line(flow.refusal, 300)}</p>`)}
  `;
}

// Rules are only worth a line where they did not simply permit.
function Verdict({ step }) {
  const { verdict, answer, withheld } = step;
  if (withheld) return html`<p class="verdict warn">Not started: ${plain(withheld)}</p>`;
  if (!verdict || verdict.verdict === "permit") return null;
  if (verdict.verdict === "forbid") {
    return html`<p class="verdict bad">Forbidden by <${Rules} rules=${verdict.rules} />${verdict.reason && `: ${plain(verdict.reason)}`}</p>`;
  }
  return html`<p class="verdict">
    ${answer ? "A person was asked because of " : "A person is asked because of "}<${Rules} rules=${verdict.rules} />${answer && html`<${Answer} answer=${answer} asked=${verdict.at} />`}
  </p>`;
}

function Answer({ answer, asked }) {
  const words = { approved: "approved it", amended: "approved it with other arguments", denied: "denied it" };
  return html`<span class=${answer.answer === "denied" ? "bad" : "good"}>
    · ${nameOf(answer.by)} ${words[answer.answer]} after ${duration(answer.at - asked)}${answer.answer === "denied" && answer.text ? `: ${plain(answer.text)}` : ""}
  </span>`;
}

const STATES = {
  running: "running",
  waiting: "is next",
  asked: "waits for an answer",
  withheld: "not started",
  failed: "failed",
  cancelled: "stopped",
  unknown: "outcome unknown",
  forbidden: "not done",
};

function State({ step, state }) {
  const code = step.exit_code;
  if (state === "error" || (state === "done" && code)) {
    return html`<span class="state error">${code !== undefined && code !== null ? `exit ${code}` : "error"}</span>`;
  }
  if (state === "running") return html`<${Running} since=${step.startedAt} />`;
  return STATES[state] ? html`<span class=${`state ${state}`}>${STATES[state]}</span>` : null;
}

function Running({ since }) {
  const now = useNow(1000);
  const seconds = Math.floor((now - since) / 1000);
  return html`<span class="state running">running${seconds > 0 ? ` ${duration(seconds * 1000)}` : ""}</span>`;
}

// How long it took and what it cost, faintly at the end of the line, and why it was permitted.
function Meta({ step, session }) {
  const said = [];
  if (step.attempts > 1) said.push(`attempt ${step.attempts}`);
  if (step.usage?.tokens) said.push(`${tokens(step.usage.tokens)} tokens`);
  if (step.usage?.money_nanos) said.push(money(step.usage.money_nanos));
  if (step.startedAt && step.settledAt) said.push(duration(step.settledAt - step.startedAt));
  return html`${session && step.verdict && html`<${Why} session=${session} seq=${step.seq} />`}
    <span class="meta" title=${`Event ${step.seq}, ${when(step.at)}`}>${said.join(" · ")}</span>`;
}

const At = ({ at }) => html`<time class="meta" datetime=${new Date(at).toISOString()} title=${when(at)}>${clock(at)}</time>`;

function Sandbox({ step, state, session }) {
  return html`<header class="step-head">
      <span class="what">Sandbox ${line(step.name, 60)}${step.outcome === "done" && step.text ? ` (${line(step.text, 80)})` : ""}</span><${State} step=${step} state=${state} /><${Meta} step=${step} session=${session} />
    </header>
    <${Verdict} step=${step} />
    <${Trouble} step=${step} />`;
}

function Note({ step }) {
  return html`<p class=${`note ${step.tone ?? ""}`}>${line(step.text ?? "", 2000)}${step.session && html` <a href=${sessionPath(step.session)}>That session</a>`} <${At} at=${step.at} /></p>`;
}

function End({ step }) {
  return html`<p class="note">${step.answered ? "The agent answered." : `The turn stopped: ${line(step.text, 600)}.`}${" "}
    <button class="quiet tiny" onClick=${() => setHash("changes")}>See the changes</button> <${At} at=${step.at} /></p>`;
}

const KINDS = { said: Said, model: Model, compaction: Model, tool: Tool, sandbox: Sandbox, note: Note, end: End };
