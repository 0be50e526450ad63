// Asks once more before a session is ended for good.
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
