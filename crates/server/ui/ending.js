// Asks once more before a session is ended for good, or removed.
import { html, useState } from "./dom.js";

export function Ending({ onEnd, onKeep }) {
  const [reason, setReason] = useState("");
  return html`<div class="ending" role="group" aria-label="End the session">
    <p>Ending it is for good: nothing further starts, and what runs is killed. Its events and its changes stay to be read.</p>
    <label class="field">Why, for who reads it later (may be empty)
      <input type="text" value=${reason} maxlength="500" onInput=${(event) => setReason(event.target.value)} /></label>
    <p class="tools"><button class="deny" onClick=${() => onEnd(reason)}>End the session</button>
      <button class="quiet" onClick=${onKeep}>Keep it</button></p>
  </div>`;
}

export function Deleting({ onDelete, onKeep }) {
  const [busy, setBusy] = useState(false);
  const remove = () => {
    setBusy(true);
    onDelete().catch(() => setBusy(false));
  };
  return html`<div class="ending" role="group" aria-label="Delete the session">
    <p>Deleting it is for good: what was said and done in it goes, with its disk and its changes, for everybody. What it spent and what it wrote to memory stays, and the audit log says that it was removed.</p>
    <p class="tools"><button class="deny" disabled=${busy} onClick=${remove}>${busy ? "Deleting…" : "Delete the session"}</button>
      <button class="quiet" disabled=${busy} onClick=${onKeep}>Keep it</button></p>
  </div>`;
}
