// Changes that wait until somebody has looked at them.
import { post } from "../api.js";
import { html, useState } from "../dom.js";
import { useAction, useFetched } from "../fetched.js";
import { server } from "../live.js";
import { Disclosure, Failure } from "../parts.js";
import { memoryPath } from "../router.js";
import { useStore } from "../store.js";
import { exact, line, plain } from "../text.js";
import { PatchView } from "./history.js";
import { At, Author } from "./version.js";

/// `number`: the one that an address names, which is open from the beginning.
export function Proposals({ number }) {
  const [all, setAll] = useState(number > 0);
  const [decided, setDecided] = useState(null);
  const { value, error, reload } = useFetched(`/v1/proposals${all ? "?all=true" : ""}`);
  const onDecided = async (info) => {
    setDecided(info);
    await reload();
  };
  return html`
    <p class="good" role="status">${decided && `Proposal ${decided.number} is ${decided.standing}.`}</p>
    <p class="tools"><label class="accept"><input type="checkbox" checked=${all} onChange=${() => setAll(!all)} /> Also those that are decided</label></p>
    <${Failure} error=${error} />
    ${!value && !error && html`<p class="loading">Looking for what waits…</p>`}
    ${value?.data.length === 0 && html`<p class="lead" role="status">Nothing waits for a review.</p>`}
    ${(value?.data ?? []).map((info) => html`<${Proposal} key=${info.number} info=${info} isOpen=${info.number === number} onDecided=${onDecided} />`)}`;
}

function Proposal({ info, isOpen, onDecided }) {
  const title = html`<span class="proposal-title"><span>${info.number}: ${info.removes ? "removes" : info.base > 0 ? "changes" : "makes"} <code>${exact(info.path)}</code></span>
    <span class=${info.standing === "open" ? "asks" : "faint"}>${line(info.standing, 20)}</span></span>`;
  return html`<section class="file proposal" aria-label=${`Proposal ${info.number}`}>
    <${Disclosure} title=${title} open=${isOpen}><${Body} info=${info} onDecided=${onDecided} /></${Disclosure}>
  </section>`;
}

function Body({ info, onDecided }) {
  const mayWrite = useStore(server)?.rights.write_memory ?? true;
  const { value, error, reload } = useFetched(`/v1/proposals/${info.number}`);
  return html`
    <p><${Author} of=${info} />, <${At} at=${info.at_ms} />. <a href=${memoryPath(info.path)}>The entry as it is</a></p>
    ${info.message && html`<p>${plain(info.message)}</p>`}
    <${Decision} info=${info} />
    <${Failure} error=${error} />
    ${!value && !error && html`<p class="loading">Reading it…</p>`}
    ${value && html`<${PatchView} patch=${value.diff} path=${info.path} />
      ${value.comments.length > 0 && html`<ul class="comments">${value.comments.map((comment) => html`<li><strong>${line(comment.author, 80)}</strong> <${At} at=${comment.at_ms} />: ${plain(comment.text)}</li>`)}</ul>`}`}
    ${value && mayWrite && html`<${Remark} number=${info.number} onSaid=${reload} />`}
    ${value && info.standing === "open" && mayWrite && html`<${Answers} info=${info} onDecided=${onDecided} />`}`;
}

function Remark({ number, onSaid }) {
  const [text, setText] = useState("");
  const { busy, error, act } = useAction();
  const say = (event) => {
    event.preventDefault();
    act(async () => {
      await post(`/v1/proposals/${number}/comments`, { text: text.trim() });
      setText("");
      await onSaid();
    });
  };
  return html`<form class="proposal-answers" onSubmit=${say}>
    <${Failure} error=${error} />
    <div class="answer-row deny-row">
      <label class="field">Say something about it
        <input type="text" maxlength="1000" value=${text} onInput=${(event) => setText(event.target.value)} /></label>
      <button disabled=${busy || text.trim() === ""}>Comment</button>
    </div>
  </form>`;
}

function Decision({ info }) {
  if (info.standing === "open") return null;
  const words = `${info.standing}${info.decided_by ? ` by ${line(info.decided_by, 80)}` : ""}${info.revision ? `, as revision ${info.revision}` : ""}`;
  return html`<p class=${info.standing === "accepted" ? "good" : "warn"}>It was ${words}${info.reason ? `: ${plain(info.reason)}` : "."}</p>`;
}

function Answers({ info, onDecided }) {
  const about = useStore(server);
  const [reason, setReason] = useState("");
  const { busy, error, act } = useAction();
  const decide = (answer) => act(async () => {
    const said = answer === "reject" ? { answer, reason: reason.trim() } : { answer };
    await onDecided(await post(`/v1/proposals/${info.number}`, said));
  });
  return html`<div class="proposal-answers">
    <${Failure} error=${error} />
    <div class="answer-row"><button class="approve" disabled=${busy} onClick=${() => decide("accept")}>Accept</button>
      ${about?.person === info.author && html`<button disabled=${busy} onClick=${() => decide("withdraw")}>Withdraw</button>`}</div>
    <div class="answer-row deny-row">
      <label class="field">Why not, for who proposed it (may be empty)
        <input type="text" maxlength="500" value=${reason} onInput=${(event) => setReason(event.target.value)} /></label>
      <button class="deny" disabled=${busy} onClick=${() => decide("reject")}>Reject</button>
    </div>
  </div>`;
}
