// A question of the harness to a person: what exactly would be done, why it is asked, yes or no.
//
// It is framed as nothing else in these pages, and stands outside of everything that a model
// says: text can imitate words, never the frame.
import { get, post } from "./api.js";
import { CallBody, parseArguments } from "./calls.js";
import { parseDiff } from "./diff.js";
import { DiffCount, DiffLines } from "./diffview.js";
import { html, useEffect, useNow, useState } from "./dom.js";
import { age, duration, when } from "./format.js";
import { approvals, refreshApprovals, sessions } from "./live.js";
import { Disclosure, Failure, LongText, Rules } from "./parts.js";
import { approvalPath, sessionPath } from "./router.js";
import { useStore } from "./store.js";
import { exact, line, plain } from "./text.js";
import { withWhom } from "./who.js";
import { Why } from "./why.js";

export function Question({ info, inline = false }) {
  const [detail, setDetail] = useState(info.preview ? info : null);
  const [error, setError] = useState(null);
  const look = async () => {
    setError(null);
    try {
      setDetail(await get(`/v1/approvals/${encodeURIComponent(info.id)}`));
    } catch (failure) {
      setError(failure);
    }
  };
  useEffect(() => {
    if (info.changes_file && !info.preview) look();
  }, [info.id]);

  // Who is asked in a session that is not theirs may know nothing else of it.
  const mayAnswer = useStore(sessions).byId.get(info.session)?.rights.answer ?? true;
  const full = detail ?? info;
  const heading = `question-${info.id}`;
  return html`<section class="question" id=${`q${info.effect}`} aria-labelledby=${heading} tabindex="-1" data-row>
    <header class="question-head">
      <h2 id=${heading}>${info.budget ? "Outrigger asks: may it spend more, on" : "Outrigger asks: may"} <code>${line(info.tool, 60)}</code>${info.budget ? "?" : " be done?"}${!inline && html`<span class="unseen"> In ${line(info.title, 80)}, step ${info.effect}</span>`}</h2>
      <${Since} info=${info} />
    </header>
    ${!inline && html`<p class="from">In <a href=${sessionPath(info.session)}>${line(info.title, 120)}</a></p>`}
    <${Act} info=${full} waits=${info.changes_file && !detail && !error} />
    <${Reasons} info=${info} />
    <${Failure} error=${error} />
    ${error && info.changes_file && !detail && html`<p><button onClick=${look}>Look at it again</button></p>`}
    ${mayAnswer
      ? html`<${Answers} info=${full} blind=${info.changes_file && !detail} onStale=${look} onError=${setError} />`
      : html`<p class="faint">Somebody else answers this.</p>`}
    ${inline && html`<p class="faint alone"><a href=${approvalPath(info.id)}>This question alone</a></p>`}
  </section>`;
}

function Since({ info }) {
  const now = useNow(15_000);
  const left = info.expires_ms ? info.expires_ms - now : null;
  return html`<p class="since">
    <time datetime=${new Date(info.since_ms).toISOString()} title=${when(info.since_ms)}>asked ${age(info.since_ms, now)}</time>
    ${left !== null && (left > 0 ? `, denied by itself in ${duration(left)}` : ", no longer open")}
  </p>`;
}

function Act({ info, waits }) {
  const isPlain = parseArguments(info.arguments) !== null;
  return html`<div class="act">
    <${CallBody} text=${info.arguments} whole previewed=${Boolean(info.preview?.diff)} />
    ${waits && html`<p class="loading">Looking at what it would change…</p>`}
    ${info.preview && html`<${Preview} diff=${info.preview.diff} />`}
    ${isPlain && html`<${Disclosure} title="The exact arguments, as JSON">
      <${LongText} text=${info.arguments} raw class="wrap" label="Exact arguments" />
    </${Disclosure}>`}
  </div>`;
}

function Preview({ diff }) {
  const files = parseDiff(diff);
  return html`<h3>What it would change</h3>
    ${files.length === 0 && html`<p class="faint">Nothing: the file has this already.</p>`}
    ${files.map((file) => html`<div class="file"><p class="file-head"><code>${exact(file.path)}</code> <${DiffCount} file=${file} /></p>
      <${DiffLines} file=${file} most=${200} /></div>`)}`;
}

function Reasons({ info }) {
  return html`<dl class="why">
    ${info.rules.length > 0 && html`<dt>Asked because of</dt><dd class="asked-by"><${Rules} rules=${info.rules} /> <${Why} session=${info.session} seq=${info.effect} /></dd>`}
    ${info.budget && html`<dt>Budget</dt><dd>${plain(info.budget)}</dd>`}
    ${info.approvers.length > 0 && html`<dt>May be answered by</dt><dd>${info.approvers.map(withWhom).join(", ")}</dd>`}
  </dl>`;
}

// `blind`: what it would change is not there yet, so nobody can say yes to it.
function Answers({ info, blind, onStale, onError }) {
  const [busy, setBusy] = useState(null);
  const [reason, setReason] = useState("");
  const [edited, setEdited] = useState(null);

  const answer = async (kind) => {
    setBusy(kind);
    onError(null);
    const body = { answer: kind };
    if (kind === "approve" && info.preview) body.seen = info.preview.seen;
    if (kind === "approve" && edited !== null && edited !== info.arguments) body.arguments = edited;
    if (kind === "deny" && reason.trim()) body.reason = reason.trim();
    try {
      await post(`/v1/approvals/${encodeURIComponent(info.id)}`, body);
      // It is gone from the list at once; the stream says the same a little later.
      approvals.set({ ...approvals.value, data: approvals.value.data.filter((other) => other.id !== info.id) });
    } catch (failure) {
      setBusy(null);
      onError(failure);
      if (failure.status !== 409) return;
      // It was answered already, or the file is another now: then it has to be looked at anew.
      if (info.changes_file) onStale().then(() => onError(failure));
      refreshApprovals().catch(() => {});
    }
  };

  return html`<div class="answers">
    ${edited !== null && html`<label class="field">Arguments that are taken instead, as JSON
      <textarea rows="6" class="mono" value=${edited} onInput=${(event) => setEdited(event.target.value)}></textarea></label>`}
    <div class="answer-row">
      <button class="approve" disabled=${busy || blind} onClick=${() => answer("approve")}>
        ${busy === "approve" ? "Approving…" : edited !== null && edited !== info.arguments ? "Approve with these arguments" : "Approve once"}
      </button>
      ${!info.changes_file && !info.budget && edited === null &&
      html`<button class="quiet" onClick=${() => setEdited(info.arguments)}>Change the arguments</button>`}
    </div>
    <div class="answer-row deny-row">
      <label class="field">Why not, for the model (may be empty)
        <input type="text" value=${reason} maxlength="2000" onInput=${(event) => setReason(event.target.value)} />
      </label>
      <button class="deny" disabled=${busy} onClick=${() => answer("deny")}>${busy === "deny" ? "Denying…" : "Deny"}</button>
    </div>
  </div>`;
}
