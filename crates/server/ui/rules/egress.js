// What sandboxes reached and what was refused to them, over all sessions that somebody sees.
import { get } from "../api.js";
import { html, useEffect, useState } from "../dom.js";
import { bytes, plural, when } from "../format.js";
import { Failure } from "../parts.js";
import { sessionPath } from "../router.js";
import { line } from "../text.js";
import { nameOf } from "../who.js";

const PAGE_FLOWS = 50;
// A page may have none although more follow: so many are asked for at once.
const PAGES_AT_ONCE = 10;

export function EgressList() {
  const [asked, setAsked] = useState({ host: "", verdict: "", session: "" });
  const [typed, setTyped] = useState(asked);
  const { data, cursor, busy, error, more } = useFlows(asked);
  const set = (name) => (event) => setTyped({ ...typed, [name]: event.target.value });
  const submit = (event) => {
    event.preventDefault();
    setAsked({ host: typed.host.trim(), verdict: typed.verdict, session: typed.session.trim() });
  };
  const isFiltered = Object.values(asked).some(Boolean);
  return html`
    <form role="search" class="egress-form" onSubmit=${submit}>
      <label class="field">Host<input type="text" value=${typed.host} maxlength="253" placeholder="example.com" autocapitalize="off" spellcheck=${false} onInput=${set("host")} /></label>
      <label class="field">Session<input type="text" value=${typed.session} maxlength="64" autocapitalize="off" spellcheck=${false} onInput=${set("session")} /></label>
      <label class="field">Show<select value=${typed.verdict} onChange=${set("verdict")}>
        <option value="">all</option><option value="permit">what passed</option><option value="forbid">what was refused</option></select></label>
      <button type="submit">Show</button>
    </form>
    <${Failure} error=${error} />
    <p class="lead rule-count" role="status">${busy && data.length === 0 ? "Reading the journals…" : said(data.length, cursor, isFiltered)}</p>
    ${data.length > 0 && html`<ul class="flows" aria-label="What was reached">${data.map((info) => html`<${Flow} info=${info} from=${html`<a href=${sessionPath(info.session)}>${line(info.session, 64)}</a> <span>${nameOf(info.person)}</span>`} />`)}</ul>`}
    ${cursor && html`<p class="after"><button disabled=${busy} onClick=${more}>${busy ? "Reading…" : "Show more"}</button></p>`}
    <p class="faint after">Of the newest sessions first, as it was noted when a command was over. <code>outrigger egress tail</code> follows it.</p>`;
}

function said(count, cursor, isFiltered) {
  if (count === 0 && cursor) return "Nothing so far; there is more to look through.";
  if (count === 0) return isFiltered ? "Nothing of that kind was reached or refused." : "Nothing was reached, and nothing refused.";
  return `${plural(count, "host")}${cursor ? " so far" : ""}`;
}

// One of them; `from` says whose it was.
export function Flow({ info, from }) {
  const isRefused = info.verdict === "forbid";
  return html`<li class="flow">
    <span class=${`says ${isRefused ? "forbid" : "permit"}`}>${isRefused ? "refused" : "passed"}</span>
    <span class="flow-host"><code>${line(info.host, 253)}:${info.port}</code></span>
    <span class="flow-why">${isRefused ? line(info.refusal, 300) : html`by <code>${line(info.grant ?? "-", 120)}</code>`}</span>
    <span class="flow-facts faint">
      ${from}
      <span>${when(info.at_ms)}</span>
      <span>${plural(info.requests, "request")}</span>
      ${!isRefused && html`<span>${bytes(info.sent_bytes)} sent, ${bytes(info.received_bytes)} received</span>`}
    </span>
  </li>`;
}

const NONE = { data: [], cursor: "", busy: true, error: null };

function useFlows(asked) {
  const [state, setState] = useState(NONE);
  const read = async (before, isGone) => {
    let { data, cursor } = before;
    const most = data.length + PAGE_FLOWS;
    for (let pages = 0; pages < PAGES_AT_ONCE && data.length < most && !isGone(); pages += 1) {
      const query = new URLSearchParams({ limit: PAGE_FLOWS, ...(cursor && { cursor }) });
      Object.entries(asked).forEach(([name, value]) => value && query.set(name, value));
      const page = await get(`/v1/egress?${query}`);
      data = [...data, ...page.data];
      cursor = page.next_cursor ?? "";
      if (!cursor) break;
    }
    return { data, cursor, busy: false, error: null };
  };
  useEffect(() => {
    let gone = false;
    const set = (next) => gone || setState(next);
    setState(NONE);
    read(NONE, () => gone).then(set, (error) => set({ ...NONE, busy: false, error }));
    return () => (gone = true);
  }, [asked]);
  const more = () => {
    setState({ ...state, busy: true });
    read(state, () => false).then(setState, (error) => setState({ ...state, busy: false, error }));
  };
  return { ...state, more };
}
