// What else is to be known of a session: where it stands, what it reached, where time went.
import { Audit } from "./audit.js";
import { Checkpoints } from "./checkpoints.js";
import { html, useMemo, useState } from "./dom.js";
import { bytes, duration, money, number, plural, reach, tokens, when } from "./format.js";
import { CopyButton } from "./parts.js";
import { sessionPath } from "./router.js";
import { exact, line, plain } from "./text.js";
import { ACCESS, nameOf, withWhom } from "./who.js";

const ROWS = 150;
// Where nothing runs for longer than this, the waterfall leaves the rest of the pause out.
const PAUSE_MS = 1500;

export function Details({ info, timeline, version }) {
  return html`<section class="details" aria-label="Details">
    <${Facts} info=${info} timeline=${timeline} />
    <${Checkpoints} info=${info} />
    <${Audit} info=${info} />
    <${Network} timeline=${timeline} version=${version} />
    <${Spent} timeline=${timeline} version=${version} />
  </section>`;
}

function Facts({ info, timeline }) {
  const { opened, touched } = timeline;
  const rows = [
    ["Session", html`<code>${info.id}</code> <${CopyButton} text=${info.id} />`],
    info.parent && ["Subagent of", html`<a href=${sessionPath(info.parent)}>${info.parent}</a>`],
    ["Began", when(info.created_at_ms)],
    ["Last event", `${when(info.last_at_ms)}, number ${number(info.head)}`],
    ["On behalf of", nameOf(info.person)],
    ["Shared with", info.shares.length ? info.shares.map((share) => `${withWhom(share.with)}, ${ACCESS[share.access]}`).join("; ") : "nobody"],
    ["Model", html`${plain(info.model)}${info.scripted ? " (a script plays it, no model is asked)" : ""}`],
    info.directory && ["Directory", html`<code>${exact(info.directory)}</code>`],
    ["Commands may reach", reach(info.network)],
    ["Labels", info.labels.length ? info.labels.map((label) => html`<span class="tag">${line(label, 80)}</span> `) : "none"],
    touched.changed.size > 0 && ["Memory changed", [...touched.changed].map((path) => line(path, 120)).join(", ")],
    opened && ["Tools", html`<span class="wrap-list">${opened.tools.map((tool) => html`<code>${line(tool, 60)}</code> `)}</span>`],
  ];
  return html`<h2 class="group">About it</h2>
    <dl class="facts">${rows.filter(Boolean).map(([name, value]) => html`<dt>${name}</dt><dd>${value}</dd>`)}</dl>`;
}

function Network({ timeline }) {
  const flows = [...timeline.flows.values()].sort((a, b) => Boolean(b.refusal) - Boolean(a.refusal) || b.requests - a.requests);
  return html`<h2 class="group">Network</h2>
    ${flows.length === 0
      ? html`<p class="faint">No command reached anything, or tried to.</p>`
      : html`<div class="scroll" tabindex="0" role="group" aria-label="Network flows"><table>
          <thead><tr><th>Host</th><th class="num">Requests</th><th class="num">Sent</th><th class="num">Received</th><th>Outcome</th></tr></thead>
          <tbody>${flows.slice(0, 200).map((flow) => html`<tr>
            <td><code>${line(flow.host, 120)}:${flow.port}</code></td>
            <td class="num">${number(flow.requests)}</td><td class="num">${bytes(flow.sent_bytes)}</td><td class="num">${bytes(flow.received_bytes)}</td>
            <td>${flow.refusal ? html`<span class="bad">refused: ${line(flow.refusal, 240)}</span>` : "reached"}</td>
          </tr>`)}</tbody>
        </table></div>`}`;
}

function Spent({ timeline, version }) {
  const { rows, sums, total } = useMemo(() => waterfall(timeline), [timeline, version]);
  const [most, setMost] = useState(ROWS);
  if (rows.length === 0) return null;
  const shown = rows.slice(-most);
  const from = shown[0].x;
  const span = Math.max(1, total - from);
  return html`<h2 class="group">Where time and money went</h2>
    <div class="scroll" tabindex="0" role="group" aria-label="Sums"><table>
      <thead><tr><th>What</th><th class="num">Times</th><th class="num">Time</th><th class="num">Tokens</th><th class="num">Money</th></tr></thead>
      <tbody>${sums.map((sum) => html`<tr><td>${line(sum.name, 80)}</td><td class="num">${number(sum.count)}</td>
        <td class="num">${duration(sum.ms)}</td><td class="num">${sum.tokens ? tokens(sum.tokens) : ""}</td><td class="num">${sum.nanos ? money(sum.nanos) : ""}</td></tr>`)}</tbody>
    </table></div>
    ${rows.length > most && html`<button class="quiet" onClick=${() => setMost(most + ROWS * 2)}>Show earlier ones (${number(rows.length - most)} hidden)</button>`}
    <ol class="waterfall" aria-label=${`${plural(rows.length, "effect")} in time; pauses are left out`}>
      ${shown.map((row) => html`<li>
        <span class="wf-name">${line(row.name, 40)}</span>
        <span class="wf-lane"><span class=${`wf-bar ${row.kind} ${row.outcome ?? "running"}`}
          style=${{ left: `${((row.x - from) / span) * 100}%`, width: `${Math.max(0.4, (row.ms / span) * 100)}%` }}></span></span>
        <span class="wf-end">${duration(row.ms)}${row.nanos > 0 && html`<span class="wf-money">, ${money(row.nanos)}</span>`}</span>
      </li>`)}
    </ol>`;
}

/// Every effect that was started, on an axis of time from which long pauses are taken out.
function waterfall(timeline) {
  const rows = [];
  const sums = new Map();
  let skipped = 0;
  let busyUntil = null;
  for (const step of timeline.effects.values()) {
    if (!step.startedAt) continue;
    const end = step.settledAt ?? step.startedAt;
    if (busyUntil === null) skipped = step.startedAt;
    else if (step.startedAt - busyUntil > PAUSE_MS) skipped += step.startedAt - busyUntil - PAUSE_MS;
    busyUntil = Math.max(busyUntil ?? 0, end);
    const row = {
      name: step.kind === "sandbox" ? `sandbox ${step.name}` : step.name || step.kind,
      kind: step.kind,
      outcome: step.outcome,
      x: Math.max(0, step.startedAt - skipped),
      ms: end - step.startedAt,
      nanos: step.usage?.money_nanos ?? 0,
    };
    rows.push(row);
    addTo(sums, row, step.usage?.tokens ?? 0);
  }
  const total = rows.reduce((most, row) => Math.max(most, row.x + row.ms), 0);
  return { rows, total, sums: [...sums.values()].sort((a, b) => b.ms - a.ms) };
}

function addTo(sums, row, used) {
  const sum = sums.get(row.name) ?? { name: row.name, count: 0, ms: 0, tokens: 0, nanos: 0 };
  sum.count += 1;
  sum.ms += row.ms;
  sum.tokens += used;
  sum.nanos += row.nanos;
  sums.set(row.name, sum);
}
