// Everything that waits for a person, and one of it alone.
import { get } from "./api.js";
import { html, useEffect, useState } from "./dom.js";
import { plural } from "./format.js";
import { approvals, sessions } from "./live.js";
import { Failure } from "./parts.js";
import { Question } from "./question.js";
import { sessionPath } from "./router.js";
import { useStore } from "./store.js";
import { line } from "./text.js";
import { needsYou } from "./who.js";

export function ApprovalsPage() {
  const { data, loaded } = useStore(approvals);
  return html`
    <p class="lead" role="status">
      ${!loaded ? "Looking for what waits…" : data.length === 0 ? "Nothing waits for you." : `${plural(data.length, "question")} waiting. Each yes is for once, and for exactly what is shown.`}
    </p>
    ${data.map((info) => html`<${Question} key=${info.id} info=${info} />`)}
    <${Stopped} />`;
}

// A session that stopped before its answer needs somebody too, although it asks nothing.
function Stopped() {
  const { byId } = useStore(sessions);
  const stopped = [...byId.values()].filter((info) => info.approvals === 0 && needsYou(info));
  if (stopped.length === 0) return null;
  return html`<h2 class="group">Stopped before the answer</h2>
    <ul class="plain">${stopped.map((info) => html`<li><a data-row href=${sessionPath(info.id)}>${line(info.title, 120)}</a> <span class="faint">${line(info.status, 60)}</span></li>`)}</ul>`;
}

export function ApprovalPage({ id }) {
  const { data, loaded } = useStore(approvals);
  const [info, setInfo] = useState(null);
  const [error, setError] = useState(null);
  useEffect(() => {
    setInfo(null);
    setError(null);
    get(`/v1/approvals/${encodeURIComponent(id)}`).then(setInfo, setError);
  }, [id]);
  const waits = !loaded || data.some((other) => other.id === id);
  return html`
    <p class="lead"><a href="/approvals">All that waits</a></p>
    <${Failure} error=${error} />
    ${info && waits && html`<${Question} key=${id} info=${info} />`}
    ${info && !waits && html`<p class="lead" role="status">This was answered. <a href=${sessionPath(info.session)}>See what became of it</a></p>`}
    ${!info && !error && html`<p class="loading">Looking for it…</p>`}`;
}
