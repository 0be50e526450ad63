// Disks that were kept of a sandbox: taken, forked from, forgotten.
import { post, remove } from "../api.js";
import { html, useState } from "../dom.js";
import { useAction, useFetched } from "../fetched.js";
import { when } from "../format.js";
import { Failure } from "../parts.js";
import { go, sandboxPath } from "../router.js";
import { exact, line } from "../text.js";

export function SnapshotsTab({ base, info }) {
  const { value, error: unknown, reload } = useFetched("/v1/snapshots");
  const { busy, error, act } = useAction();
  const [label, setLabel] = useState("");
  const own = (value?.data ?? []).filter((kept) => kept.sandbox === info.id);
  const take = (event) => {
    event.preventDefault();
    act(async () => {
      await post(`${base}/snapshots`, { label: label.trim() });
      setLabel("");
      await reload();
    });
  };
  const fork = (snapshot) => act(async () => go(sandboxPath((await post(`${base}/forks`, { snapshot, label: info.label })).id)));
  const forget = (snapshot) => act(async () => {
    await remove(`/v1/snapshots/${encodeURIComponent(snapshot)}`);
    await reload();
  });
  return html`
    <p class="lead">A snapshot keeps the disk as it is now, to make other sandboxes from. No command may run meanwhile, so close the terminal first.</p>
    ${info.may_drive && html`<form class="share-add after" onSubmit=${take}>
      <label class="field">What it is for<input type="text" maxlength="100" value=${label} onInput=${(event) => setLabel(event.target.value)} /></label>
      <button class="primary" type="submit" disabled=${busy}>${busy ? "Keeping it…" : "Take a snapshot"}</button></form>`}
    <${Failure} error=${error ?? unknown} />
    ${value && own.length === 0 && html`<p class="faint after">None yet.</p>`}
    <ul class="checkpoints">${own.map((kept) => html`<li key=${kept.id}>
      <span>${kept.label ? line(kept.label, 100) : html`<code>${exact(kept.id)}</code>`} <span class="faint">${when(kept.taken_ms)}</span></span>
      ${info.may_drive && html`<span class="tools">
        <button disabled=${busy} onClick=${() => fork(kept.id)}>Fork from here</button>
        <button class="quiet" disabled=${busy} onClick=${() => forget(kept.id)}>Forget</button></span>`}
    </li>`)}</ul>`;
}
