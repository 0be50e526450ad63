// Lets a program act as the person who is logged in here: it shows the same code.
import { get, post } from "./api.js";
import { html, useState } from "./dom.js";
import { useAction } from "./fetched.js";
import { server } from "./live.js";
import { Failure } from "./parts.js";
import { useStore } from "./store.js";
import { line } from "./text.js";
import { nameOf } from "./who.js";

const address = (code) => `/v1/login/device/${encodeURIComponent(code.trim())}`;

export function DevicePage() {
  const [code, setCode] = useState(new URLSearchParams(location.search).get("code") ?? "");
  const [asks, setAsks] = useState(null);
  const [said, setSaid] = useState(null);
  const { busy, error, act } = useAction();
  const look = (event) => {
    event.preventDefault();
    act(async () => setAsks(await get(address(code))));
  };
  const answer = (word) => act(async () => {
    await post(address(asks.code), { answer: word });
    setSaid(word);
  });
  if (said) {
    const words = said === "allow" ? "It is let in. You can close this page." : "It is refused, and acts for nobody.";
    return html`<p class="good" role="status">${words}</p>`;
  }
  if (asks) return html`<${Answer} asks=${asks} busy=${busy} error=${error} answer=${answer} />`;
  return html`
    <p class="lead">A program that you began, such as <code>outrigger login</code>, shows a code of eight letters.</p>
    <form class="secret-form" onSubmit=${look}>
      <label class="field">The code<input type="text" class="mono" required maxlength="20" value=${code} onInput=${(event) => setCode(event.target.value)} autocapitalize="characters" autocomplete="off" spellcheck=${false} placeholder="BCDF-GHJK" /></label>
      <p class="tools"><button class="primary" type="submit" disabled=${busy || !code.trim()}>${busy ? "Looking…" : "Look"}</button></p>
    </form>
    <${Failure} error=${error} />`;
}

function Answer({ asks, busy, error, answer }) {
  const person = useStore(server)?.person;
  return html`
    <p class="lead">Does the program show <strong class="mono">${line(asks.code, 20)}</strong>? It says that it is <strong>${line(asks.label, 100)}</strong>.</p>
    <p>Let in, it does whatever ${person ? nameOf(person) : "you"} may do here, until its key is revoked or 90 days are over. Refuse it if you did not begin it yourself, whoever sent you here.</p>
    <p class="tools"><button class="primary" disabled=${busy} onClick=${() => answer("allow")}>Let it in</button>
      <button disabled=${busy} onClick=${() => answer("refuse")}>Refuse</button></p>
    <${Failure} error=${error} />`;
}
