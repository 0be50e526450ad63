// What is spent, by whom, and how much may be: the accounts, the last days, the sessions that spent most.
import { get } from "./api.js";
import { html, useEffect, useState } from "./dom.js";
import { useFetched } from "./fetched.js";
import { money, plural, tokens } from "./format.js";
import { server } from "./live.js";
import { Disclosure, Failure, OnDemand, Status } from "./parts.js";
import { sessionPath } from "./router.js";
import { useStore } from "./store.js";
import { line } from "./text.js";
import { Account } from "./budgets/account.js";
import { DailyChart } from "./budgets/chart.js";

const DAYS = 30;
const DAY_MS = 24 * 60 * 60 * 1000;
const PAGE_SESSIONS = 200;
// So that a server with very many sessions is not asked for all of them.
const PAGES_MAX = 25;
const TOP_SESSIONS = 10;

const loadOther = () => import("./budgets/other.js").then((module) => module.OtherAccount);

export function BudgetsPage() {
  const administers = useStore(server)?.rights.administer ?? false;
  const { value, error, reload } = useFetched("/v1/budgets");
  const [said, setSaid] = useState("");
  const onDone = async (words) => {
    setSaid(words);
    await reload();
  };
  const infos = value ? shown(value.data, administers) : [];
  return html`<div class="budgets">
    <p class="good" role="status">${said}</p>
    <${Failure} error=${error} />
    ${!value && !error && html`<p class="loading">Reading the accounts…</p>`}
    ${value && infos.length === 0 && html`<p class="lead">No account is kept here.</p>`}
    ${infos.map((info) => html`<${Account} key=${info.account} info=${info} mayChange=${administers} onDone=${onDone} />`)}
    ${value && administers && html`<div class="file other"><${Disclosure} title="Another person's account"><${OnDemand} load=${loadOther} accounts=${infos.map((info) => info.account)} onDone=${onDone} /></${Disclosure}></div>`}
    <${Spending} />
  </div>`;
}

// The organisation has an account, also where nothing was charged to it yet.
function shown(infos, administers) {
  const isThere = infos.some((info) => info.account === "org");
  return administers && !isThere ? [{ account: "org", measures: [] }, ...infos] : infos;
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
