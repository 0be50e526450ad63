// Stops an account, with what its people read as the reason.
import { put } from "../api.js";
import { html, useState } from "../dom.js";
import { useAction } from "../fetched.js";
import { plural } from "../format.js";
import { Failure } from "../parts.js";
import { accountPath, nameOf } from "./names.js";

export function StopForm({ account, onDone, onKeep }) {
  const [reason, setReason] = useState("");
  const { busy, error, act } = useAction();
  const stop = (event) => {
    event.preventDefault();
    act(async () => {
      const { interrupted } = await put(accountPath(account), { stopped: true, reason: reason.trim() });
      await onDone(`${nameOf(account)} is stopped; ${plural(interrupted.length, "session")} interrupted.`);
    });
  };
  return html`<form class="ending" aria-label=${`Stop ${nameOf(account)}`} onSubmit=${stop} autocomplete="off">
    <p>Nothing further starts for this account, and its sessions that work are interrupted. They go on when somebody says so, once it is allowed again.</p>
    <label class="field">Why, for whoever is stopped by it<input type="text" maxlength="1000" value=${reason} onInput=${(event) => setReason(event.target.value)} /></label>
    <p class="tools"><button class="deny" type="submit" disabled=${busy}>${busy ? "Stopping…" : "Stop this account"}</button>
      <button class="quiet" type="button" onClick=${onKeep}>Keep it going</button></p>
    <${Failure} error=${error} />
  </form>`;
}
