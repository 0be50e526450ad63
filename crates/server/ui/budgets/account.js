// One account: what is used of what, and for who may: what can be done about it.
import { put } from "../api.js";
import { html, useState } from "../dom.js";
import { useAction } from "../fetched.js";
import { bytes, duration, money, number, tokens, when } from "../format.js";
import { Failure, OnDemand } from "../parts.js";
import { line } from "../text.js";
import { nameOf as personName } from "../who.js";
import { accountPath, nameOf } from "./names.js";

const MEASURES = {
  money_nanos: ["Money", money],
  tokens: ["Tokens", tokens],
  steps: ["Steps", number],
  wall_ms: ["Time in turns", duration],
  cpu_ms: ["Processor time", duration],
  egress_bytes: ["Sent to the network", bytes],
};
const PERIODS = { day: "counted anew each day", month: "counted anew each month" };

export function Account({ info, mayChange, onDone }) {
  const { account, stopped, measures } = info;
  return html`<section class="account" aria-label=${nameOf(account)}>
    <h2>${nameOf(account)} <span class="faint">${PERIODS[info.period] ?? "counted from the beginning"}</span></h2>
    ${stopped && html`<div class="trouble failed"><p><strong>Stopped by ${personName(stopped.by)}</strong> <span class="faint">${when(stopped.at_ms)}</span></p>
      <p>${line(stopped.reason, 500) || "No reason was given."}</p>
      <p class="faint">Nothing further starts until it is allowed again.</p></div>`}
    ${measures.length === 0 && html`<p class="faint">Nothing is spent yet, and nothing is limited.</p>`}
    <ul class="measures">${measures.map((measure) => html`<${Measure} key=${measure.measure} of=${measure} />`)}</ul>
    ${mayChange && html`<${Controls} info=${info} onDone=${onDone} />`}
  </section>`;
}

// The whole lane is the limit, or what is used where that is more.
function Measure({ of }) {
  const { spent, reserved, limit, soft } = of;
  const [name, write] = MEASURES[of.measure] ?? [line(of.measure, 40), number];
  const used = spent + reserved;
  const isLimited = limit !== undefined && limit !== null;
  const most = Math.max(limit ?? 0, soft ?? 0, used, 1);
  const share = (value) => `${Math.min(100, (value / most) * 100)}%`;
  const state = isLimited && used >= limit ? "over" : soft && used >= soft ? "near" : "";
  return html`<li class=${`measure ${state}`}>
    <span class="bar-name">${name}</span>
    <span class="bar-value">${write(spent)}${reserved > 0 && html` <span class="faint">+ ${write(reserved)} reserved</span>`}${isLimited ? ` of ${write(limit)}` : ""}</span>
    ${(isLimited || soft > 0) && html`<span class="lane" aria-hidden="true">
      <span class="lane-spent" style=${{ width: share(spent) }}></span><span class="lane-reserved" style=${{ width: share(reserved) }}></span>
      ${soft > 0 && html`<span class="lane-soft" style=${{ left: share(soft) }}></span>`}
    </span>`}
    <span class="measure-note">${noteOf(state, of, write)}</span>
  </li>`;
}

function noteOf(state, { spent, reserved, limit, soft }, write) {
  if (state === "over") return html`<strong class="bad">The limit is reached.</strong>`;
  const share = limit ? `${Math.round(((spent + reserved) / limit) * 100)} per cent of the limit` : "No limit";
  if (state === "near") return html`${share}. <strong class="warn">More than ${write(soft)}, so a person is asked.</strong>`;
  return `${share}.${soft ? ` A person is asked from ${write(soft)} on.` : ""}`;
}

const loadLimits = () => import("./limits.js").then((module) => module.LimitsForm);
const loadStop = () => import("./stop.js").then((module) => module.StopForm);

// Of what can be done about it one is open at a time.
export function Controls({ info, disabled = false, onDone }) {
  const { account, stopped } = info;
  const [opened, setOpened] = useState(null);
  const { busy, error, act } = useAction();
  const toggle = (name) => setOpened(opened === name ? null : name);
  const close = () => setOpened(null);
  const done = (words) => {
    close();
    return onDone(words);
  };
  const allow = () => act(async () => {
    await put(accountPath(account), { stopped: false });
    await done(`${nameOf(account)} may start things again.`);
  });
  return html`
    <p class="tools">
      <button class="quiet" disabled=${disabled} aria-expanded=${opened === "limits"} aria-label=${`Limits of ${nameOf(account)}`} onClick=${() => toggle("limits")}>Limits…</button>
      ${stopped
        ? html`<button class="primary" disabled=${busy} aria-label=${`Allow ${nameOf(account)} again`} onClick=${allow}>${busy ? "Allowing…" : "Allow again"}</button>`
        : html`<button class="quiet" disabled=${disabled} aria-expanded=${opened === "stop"} aria-label=${`Stop ${nameOf(account)}`} onClick=${() => toggle("stop")}>Stop…</button>`}
    </p>
    <${Failure} error=${error} />
    ${opened === "limits" && html`<${OnDemand} load=${loadLimits} info=${info} onDone=${done} />`}
    ${opened === "stop" && html`<${OnDemand} load=${loadStop} account=${account} onDone=${done} onKeep=${close} />`}`;
}
