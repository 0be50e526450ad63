// What is spent, by whom, and how much may be: the accounts, the last days, the sessions that spent most.
import { get } from "./api.js";
import { html, useEffect, useState } from "./dom.js";
import { useFetched } from "./fetched.js";
import { bytes, duration, money, number, plural, tokens, when } from "./format.js";
import { DailyChart } from "./chart.js";
import { Command, Failure, Status } from "./parts.js";
import { sessionPath } from "./router.js";
import { line } from "./text.js";

const DAYS = 30;
const DAY_MS = 24 * 60 * 60 * 1000;
const PAGE_SESSIONS = 200;
// So that a server with very many sessions is not asked for all of them.
const PAGES_MAX = 25;
const TOP_SESSIONS = 10;

const MEASURES = {
  money_nanos: ["Money", money],
  tokens: ["Tokens", tokens],
  steps: ["Steps", number],
  wall_ms: ["Time in turns", duration],
  cpu_ms: ["Processor time", duration],
  egress_bytes: ["Sent to the network", bytes],
};
const PERIODS = { day: "counted anew each day", month: "counted anew each month" };

export function BudgetsPage() {
  const { value, error } = useFetched("/v1/budgets");
  return html`<div class="budgets">
    <${Failure} error=${error} />
    ${!value && !error && html`<p class="loading">Reading the accounts…</p>`}
    ${value?.data.length === 0 && html`<p class="lead">No account is kept here.</p>`}
    ${(value?.data ?? []).map((info) => html`<${Account} key=${info.account} info=${info} />`)}
    <${Spending} />
  </div>`;
}

function nameOf(account) {
  if (account === "org") return "The organisation";
  return account.startsWith("user:") ? line(account.slice("user:".length), 80) : line(account, 80);
}

function Account({ info }) {
  const { stopped, measures } = info;
  return html`<section class="account" aria-label=${nameOf(info.account)}>
    <h2>${nameOf(info.account)} <span class="faint">${PERIODS[info.period] ?? "counted from the beginning"}</span></h2>
    ${stopped && html`<div class="trouble failed"><p><strong>Stopped by ${line(stopped.by, 80)}</strong> <span class="faint">${when(stopped.at_ms)}</span></p>
      <p>${line(stopped.reason, 500) || "No reason was given."}</p>
      <p class="faint">Nothing further starts until it is allowed again:</p><${Command} text=${`outrigger budget allow ${line(info.account, 80)}`} /></div>`}
    ${measures.length === 0 && html`<p class="faint">Nothing is spent yet, and nothing is limited.</p>`}
    <ul class="measures">${measures.map((measure) => html`<${Measure} key=${measure.measure} of=${measure} />`)}</ul>
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

function Spending() {
  const { infos, error, isCut } = useRecentSessions();
  if (error) return html`<${Failure} error=${error} />`;
  if (!infos) return html`<h2 class="group">The last ${DAYS} days</h2><p class="loading">Adding up the sessions…</p>`;
  const first = firstDay();
  const days = Array.from({ length: DAYS }, (_, at) => ({ at_ms: dayAfter(first, at), tokens: 0, nanos: 0, sessions: 0 }));
  // What subagents spent is a part of what their session spent.
  const recent = infos.filter((info) => info.last_at_ms >= first && !info.parent);
  for (const info of recent) {
    const day = days.findLast((one) => one.at_ms <= info.last_at_ms);
    day.tokens += info.usage.tokens;
    day.nanos += info.usage.money_nanos ?? 0;
    day.sessions += 1;
  }
  return html`
    <h2 class="group">The last ${DAYS} days</h2>
    <${DailyChart} days=${days} note=${`Added up from ${plural(recent.length, "session")} that you can see; all of a session counts on the day of its last event${isCut ? "; older sessions are left out, because there are too many" : ""}.`} />
    <${TopSessions} infos=${recent} />`;
}

function firstDay() {
  const today = new Date();
  return new Date(today.getFullYear(), today.getMonth(), today.getDate() - DAYS + 1).getTime();
}

// By the calendar: a day on which clocks change has another length.
function dayAfter(first, days) {
  const date = new Date(first);
  return new Date(date.getFullYear(), date.getMonth(), date.getDate() + days).getTime();
}

// Pages come newest first as far as the server knows: once a whole page is older, all that follow are.
function useRecentSessions() {
  const [state, setState] = useState({ infos: null, error: null, isCut: false });
  useEffect(() => {
    let isGone = false;
    const since = firstDay() - DAY_MS;
    const read = async () => {
      const infos = [];
      let cursor = "";
      let pages = 0;
      do {
        const page = await get(`/v1/sessions?limit=${PAGE_SESSIONS}${cursor && `&cursor=${encodeURIComponent(cursor)}`}`);
        infos.push(...page.data);
        pages += 1;
        cursor = page.data.some((info) => info.last_at_ms >= since) ? page.next_cursor : null;
      } while (cursor && pages < PAGES_MAX && !isGone);
      return { infos, error: null, isCut: Boolean(cursor) };
    };
    read().then(setState, (error) => setState({ infos: null, error, isCut: false }));
    return () => (isGone = true);
  }, []);
  return state;
}

function TopSessions({ infos }) {
  const cost = (info) => info.usage.money_nanos ?? 0;
  const top = infos.toSorted((a, b) => cost(b) - cost(a) || b.usage.tokens - a.usage.tokens).slice(0, TOP_SESSIONS);
  if (top.length === 0) return null;
  return html`<h2 class="group">Sessions that spent most <span class="faint">in these days</span></h2>
    <ol class="sessions top-sessions">${top.map((info) => html`<li key=${info.id}><a class="session-row" data-row href=${sessionPath(info.id)}>
      <span class="row-title">${line(info.title, 160) || line(info.id, 80)}</span>
      <${Status} info=${info} />
      <span class="row-facts"><span>${money(info.usage.money_nanos)}</span><span>${tokens(info.usage.tokens)} tokens</span><span>${plural(info.usage.steps, "step")}</span></span>
    </a></li>`)}</ol>`;
}
