// Secrets of the organisation: which there are, where each is sent, and for who may: how they change.
import { remove } from "../api.js";
import { html, useState } from "../dom.js";
import { useAction, useFetched } from "../fetched.js";
import { when } from "../format.js";
import { server } from "../live.js";
import { Disclosure, Failure } from "../parts.js";
import { useStore } from "../store.js";
import { exact, line } from "../text.js";
import { nameOf } from "../who.js";
import { NewSecret, Rotation } from "./form.js";

const SOON_MS = 14 * 24 * 60 * 60 * 1000;

export function SecretsPage() {
  const administers = useStore(server)?.rights.administer ?? false;
  const { value, error, reload } = useFetched("/v1/secrets");
  const [said, setSaid] = useState("");
  const onDone = async (words) => {
    setSaid(words);
    await reload();
  };
  return html`
    <p class="lead">A secret is put into requests on their way to the places that are named with it. Commands have a placeholder instead, and nobody is shown its value. A session has it that may reach <code>secret:NAME</code>.</p>
    <p class="good" role="status">${said}</p>
    <${Failure} error=${error} />
    ${!value && !error && html`<p class="loading">Looking what there is…</p>`}
    ${value?.data.length === 0 && html`<p class="lead">There is no secret yet.</p>`}
    ${value?.data.length > 0 && html`<ul class="entries secrets">${value.data.map((info) => html`<${Secret} key=${info.name} info=${info} mayChange=${administers} onDone=${onDone} />`)}</ul>`}
    ${administers && value && html`<div class="file new-secret"><${Disclosure} title="Set a secret" open=${value.data.length === 0}><${NewSecret} names=${value.data.map((info) => info.name)} onDone=${onDone} /></${Disclosure}></div>`}
    ${value && !administers && html`<p class="faint after">Who administers the organisation sets them.</p>`}`;
}

function Secret({ info, mayChange, onDone }) {
  // Of what can be done with it one is open at a time.
  const [opened, setOpened] = useState(null);
  const toggle = (name) => setOpened(opened === name ? null : name);
  const done = (words) => {
    setOpened(null);
    return onDone(words);
  };
  return html`<li data-row tabindex="-1" class="entry-row">
    <code class="entry-name">${exact(info.name)}</code>
    ${mayChange && html`<span class="tools">
      <button class="quiet" aria-expanded=${opened === "rotate"} aria-label=${`Rotate ${line(info.name, 80)}`} onClick=${() => toggle("rotate")}>Rotate…</button>
      <button class="quiet" aria-expanded=${opened === "revoke"} aria-label=${`Revoke ${line(info.name, 80)}`} onClick=${() => toggle("revoke")}>Revoke…</button></span>`}
    <span class="snippet places">to ${info.places.map((place) => html`<code>${exact(place)}</code> `)}</span>
    <span class="snippet">set by ${nameOf(info.set_by)}, <time datetime=${new Date(info.changed_ms).toISOString()}>${when(info.changed_ms)}</time><${End} info=${info} /></span>
    ${opened === "rotate" && html`<${Rotation} name=${info.name} onDone=${done} />`}
    ${opened === "revoke" && html`<${Revocation} name=${info.name} onDone=${done} onKeep=${() => setOpened(null)} />`}
  </li>`;
}

function End({ info }) {
  if (!info.ends_ms) return null;
  const left = info.ends_ms - Date.now();
  const day = new Date(info.ends_ms).toLocaleDateString();
  return html`; <span class=${left < 0 ? "bad" : left < SOON_MS ? "warn" : ""}>${left < 0 ? `ended ${day}` : `ends ${day}`}</span>`;
}

function Revocation({ name, onDone, onKeep }) {
  const { busy, error, act } = useAction();
  const revoke = () => act(async () => {
    await remove(`/v1/secrets/${encodeURIComponent(name)}`);
    await onDone(`${line(name, 80)} is revoked.`);
  });
  return html`<div class="ending" role="group" aria-label=${`Revoke ${line(name, 80)}`}>
    <p>It is sent nowhere from now on, and requests that are under way with it end at once. Where it came from it is still good: end it there too.</p>
    <p class="tools"><button class="deny" disabled=${busy} onClick=${revoke}>${busy ? "Revoking…" : "Revoke it"}</button>
      <button class="quiet" onClick=${onKeep}>Keep it</button></p>
    <${Failure} error=${error} />
  </div>`;
}
