// Folds the events of a session, one after another, to the steps that a person sees.
//
// Pure but for its own state. A step that became otherwise has another `version`, so that
// only what changed is drawn again, however long the session is.
import { when } from "./format.js";
import { ACCESS, nameOf, withWhom } from "./who.js";

// What of a running effect is kept to be shown; the settled event has the rest.
const LIVE_CHARS_MAX = 200_000;

export class Timeline {
  /// `before`: the number of the last event that is left out, where it does not begin at the first.
  constructor(before = 0) {
    this.head = before;
    this.steps = [];
    this.effects = new Map();
    this.flows = new Map();
    this.opened = null;
    this.touched = { changed: new Set(), labels: new Set() };
    /// The newest event that settled something that may have changed files.
    this.settledTool = 0;
  }

  /// Takes an event in. `false` if one before it is missing.
  add(event) {
    if (event.seq <= this.head) return true;
    if (event.seq !== this.head + 1) return false;
    this.head = event.seq;
    if (Object.hasOwn(FOLDS, event.type)) FOLDS[event.type](this, event);
    return true;
  }

  /// Takes in what a running effect gives at the moment.
  live({ effect, kind, text }) {
    const step = this.effects.get(effect);
    if (!step || step.outcome) return;
    const live = (step.live ??= emptyLive());
    if (kind === "attempt") step.live = emptyLive();
    else if (kind === "retrying" || kind === "warning") live.notes.push(text);
    else if (kind === "calling") live.calling.push(text);
    else if (Object.hasOwn(live, kind)) live[kind] = (live[kind] + text).slice(-LIVE_CHARS_MAX);
    touch(step);
  }

  /// Takes over what running effects gave so far in another timeline of the same session.
  takeLive(other) {
    for (const { seq, live } of other.effects.values()) if (live) this.change(seq, { live });
  }

  push(step) {
    step.version = 1;
    step.index = this.steps.length;
    this.steps.push(step);
    return step;
  }

  note(event, text, tone = "") {
    this.push({ kind: "note", seq: event.seq, at: event.at_ms, text, tone });
  }

  /// Changes the step of an effect, if it is known.
  change(effect, change) {
    const step = this.effects.get(effect);
    if (!step) return;
    Object.assign(step, change);
    touch(step);
  }
}

const emptyLive = () => ({ text: "", thinking: "", output: "", calling: [], notes: [] });

function touch(step) {
  step.version += 1;
}

const FOLDS = {
  opened(timeline, event) {
    timeline.opened = event;
  },

  said(timeline, event) {
    timeline.push({ kind: "said", seq: event.seq, at: event.at_ms, ...pick(event, "author", "name", "text", "pictures") });
  },

  proposed(timeline, event) {
    const step = timeline.push({
      kind: event.effect_kind,
      seq: event.seq,
      at: event.at_ms,
      name: event.name ?? "",
      call: event.call,
      amends: event.amends,
      attempts: 0,
      arguments: argumentsOf(timeline, event),
    });
    timeline.effects.set(event.seq, step);
  },

  decided(timeline, event) {
    const { verdict, rules, approvers = [], reason } = event;
    timeline.change(event.effect, { verdict: { verdict, rules, approvers, reason, at: event.at_ms } });
  },

  answered(timeline, event) {
    timeline.change(event.effect, { answer: { ...pick(event, "by", "answer", "text"), at: event.at_ms } });
  },

  started(timeline, event) {
    const change = { startedAt: event.at_ms, attempts: event.attempt, sandbox: event.sandbox, live: null };
    timeline.change(event.effect, change);
  },

  withheld(timeline, event) {
    timeline.change(event.effect, { withheld: event.reason });
  },

  settled(timeline, event) {
    const change = {
      ...pick(event, "outcome", "parts", "text", "exit_code", "hidden_bytes", "usage"),
      settledAt: event.at_ms,
      live: null,
      withheld: null,
    };
    timeline.change(event.effect, change);
    if (event.retry_at_ms) {
      timeline.note(event, `The provider takes no more requests now: it is asked again at ${when(event.retry_at_ms)}.`);
    }
    // What was proposed before all that is known here may have been a tool as well.
    if ((timeline.effects.get(event.effect)?.kind ?? "tool") === "tool") timeline.settledTool = event.seq;
  },

  sandbox(timeline, event) {
    if (event.lost) timeline.note(event, `Sandbox ${event.name}: ${event.text}`);
  },

  interrupted(timeline, event) {
    timeline.note(event, `${nameOf(event.by)} stopped the turn.`, "warn");
  },

  compaction_requested(timeline, event) {
    timeline.note(event, `${nameOf(event.by)} asked for a summary of the conversation.`);
  },

  cancelled(timeline, event) {
    const why = event.reason ? `: ${event.reason}` : ".";
    timeline.note(event, `${nameOf(event.by)} ended the session for good${why}`, "warn");
  },

  resumed(timeline, event) {
    const what = event.changes.length ? `: ${event.changes.join(", ")}` : ".";
    timeline.note(event, `${nameOf(event.by)} let the turn go on${what}`);
  },

  turn_ended(timeline, event) {
    timeline.push({ kind: "end", seq: event.seq, at: event.at_ms, answered: event.answered, text: event.text });
  },

  forked(timeline, event) {
    // A session that begins as another stood says so in its second event; later it is one that went back.
    if (event.seq > 2) {
      for (const step of timeline.steps.filter((it) => it.seq > event.at && !it.undone)) {
        step.undone = true;
        touch(step);
      }
      timeline.note(event, `${nameOf(event.by)} took the session back to event ${event.at}: what came after that is undone.`, "warn");
      return;
    }
    timeline.note(event, `${nameOf(event.by)} let this begin as a session stood at event ${event.at}.`);
    timeline.steps.at(-1).session = event.session;
  },

  shared(timeline, event) {
    const { access } = event;
    const who = withWhom(event.with);
    timeline.note(event, access === "none" ? `${nameOf(event.by)} no longer shares this with ${who}.` : `${nameOf(event.by)} shared this with ${who}, ${ACCESS[access] ?? access}.`);
  },

  touched(timeline, event) {
    for (const path of event.changed) timeline.touched.changed.add(path);
    for (const label of event.labels) timeline.touched.labels.add(label);
    const said = [];
    if (event.changed.length) said.push(`Memory changed: ${event.changed.join(", ")}.`);
    if (event.refused.length) said.push(`Memory refused: ${event.refused.join(", ")}.`);
    if (event.labels.length) said.push(`Labelled since: ${event.labels.join(", ")}.`);
    if (said.length) timeline.note(event, said.join(" "), event.refused.length ? "warn" : "");
  },

  reached(timeline, event) {
    const step = timeline.effects.get(event.effect);
    if (step) timeline.change(event.effect, { flows: [...(step.flows ?? []), ...event.flows] });
    for (const flow of event.flows) sumFlow(timeline.flows, flow);
  },
};

/// The arguments of a call are in the reply that asked for it, or a person's instead of them.
function argumentsOf(timeline, event) {
  const amended = timeline.effects.get(event.amends);
  if (amended?.answer?.text) return amended.answer.text;
  const reply = timeline.effects.get(event.reply);
  const part = reply?.parts?.find((p) => p.type === "call" && p.id === event.call);
  if (!part) return null;
  (reply.proposed ??= new Set()).add(event.call);
  touch(reply);
  return part.arguments;
}

function sumFlow(flows, flow) {
  const key = `${flow.host}:${flow.port} ${flow.refusal ?? ""}`;
  const sum = flows.get(key) ?? { ...flow, requests: 0, sent_bytes: 0, received_bytes: 0 };
  sum.requests += flow.requests;
  sum.sent_bytes += flow.sent_bytes;
  sum.received_bytes += flow.received_bytes;
  flows.set(key, sum);
}

function pick(from, ...names) {
  return Object.fromEntries(names.map((name) => [name, from[name]]));
}

/// Where a step stands, in one word that the styles know too.
export function phase(step) {
  if (step.outcome) return step.outcome;
  if (step.answer?.answer === "denied" || step.verdict?.verdict === "forbid") return "forbidden";
  if (step.startedAt) return "running";
  if (step.withheld) return "withheld";
  if (step.verdict?.verdict === "ask" && !step.answer) return "asked";
  return "waiting";
}
