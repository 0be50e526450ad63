// With whom a session is shared: seen, given, taken back.
import { put } from "./api.js";
import { html, useState } from "./dom.js";
import { useAction, useFetched } from "./fetched.js";
import { keep } from "./live.js";
import { CopyButton, Failure } from "./parts.js";
import { sessionPath } from "./router.js";
import { withWhom } from "./who.js";

const MAY = [["read", "may read"], ["take_part", "may take part"]];

export function Sharing({ info }) {
  const { busy, error, act } = useAction();
  const share = (who, access) => act(async () => keep([await put(`/v1/sessions/${encodeURIComponent(info.id)}/shares`, { with: who, access })]));
  return html`<section class="sharing" aria-label="Sharing">
    ${info.shares.length === 0 && html`<p>Nobody else sees this session, but for those whose role lets them.</p>`}
    <ul class="shares">${info.shares.map((it) => html`<${Share} key=${it.with} share=${it} busy=${busy} onChange=${(access) => share(it.with, access)} />`)}</ul>
    <${Add} info=${info} busy=${busy} onAdd=${share} />
    <${Failure} error=${error} />
    <p class="faint">Who may read sees everything in it. Who takes part also writes to the agent, stops it, and answers what it asks; it works on with your memory and your budget, and does only what you both may.
      <${CopyButton} text=${location.origin + sessionPath(info.id)} label="Copy its link" /></p>
  </section>`;
}

function Share({ share, busy, onChange }) {
  const who = withWhom(share.with);
  return html`<li>
    <span class="share-who">${who}</span>
    <${Access} value=${share.access} label=${`What ${who} may do`} onChange=${onChange} />
    <button class="quiet" disabled=${busy} aria-label=${`Take back from ${who}`} onClick=${() => onChange("none")}>Take back</button>
  </li>`;
}

// It shows what is so: another access once that is given, and not before.
function Access({ value, label, onChange }) {
  const choose = ({ target }) => {
    const wanted = target.value;
    target.value = value;
    onChange(wanted);
  };
  return html`<select aria-label=${label} value=${value} onChange=${choose}>
    ${MAY.map(([access, words]) => html`<option value=${access} selected=${access === value}>${words}</option>`)}
  </select>`;
}

// Somebody whom no group names is not in the list, and has to be named.
const OTHER = "other";

function Add({ info, busy, onAdd }) {
  const { value, error } = useFetched("/v1/people");
  const [chosen, setChosen] = useState("");
  const [name, setName] = useState("");
  const [access, setAccess] = useState("read");
  if (error) return html`<${Failure} error=${error} />`;
  if (!value) return html`<p class="loading">Looking who there is…</p>`;
  const groups = choices(value, new Set([info.person, ...info.shares.map((share) => share.with)]));
  // What was chosen may be shared by now, by somebody else too.
  const isThere = chosen === OTHER || groups.some(([, list]) => list.includes(chosen));
  const who = chosen === OTHER ? personOf(name) : isThere ? chosen : "";
  const add = async (event) => {
    event.preventDefault();
    if (!who) return;
    if (!(await onAdd(who, access))) return;
    setChosen("");
    setName("");
  };
  return html`<form class="share-add" onSubmit=${add}>
    <select aria-label="Share with" value=${isThere ? chosen : ""} onChange=${(event) => setChosen(event.target.value)}>
      <option value="" selected=${!isThere}>Share with…</option>
      ${groups.map(([title, list]) => html`<optgroup key=${title} label=${title}>${list.map((one) => html`<option key=${one} value=${one} selected=${one === chosen}>${withWhom(one)}</option>`)}</optgroup>`)}
      <option value=${OTHER} selected=${chosen === OTHER}>another person…</option>
    </select>
    ${chosen === OTHER && html`<label class="field">Their name, as in their link
      <input type="text" value=${name} maxlength="80" autocapitalize="off" spellcheck=${false} onInput=${(event) => setName(event.target.value)} /></label>`}
    <${Access} value=${access} label="What they may do" onChange=${setAccess} />
    <button class="primary" type="submit" disabled=${busy || !who}>${busy ? "Sharing…" : "Share"}</button>
  </form>`;
}

const personOf = (name) => name.trim() && (name.includes(":") ? name.trim() : `person:${name.trim()}`);

// Whoever is not there yet, in the order from many to one.
function choices({ organisation, groups, data }, taken) {
  const all = [
    ["Everybody", [`org:${organisation}`]],
    ["Groups", groups.map((group) => `group:${group.name}`)],
    ["People", data.map((person) => person.name)],
  ];
  return all.map(([title, list]) => [title, list.filter((one) => !taken.has(one))]).filter(([, list]) => list.length > 0);
}
