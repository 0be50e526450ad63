// Sets a secret, or another value of it.
//
// The value is in one field of the page, from where it is read once, and goes from there when it is
// sent, whatever comes of it: no state, draft or answer ever has it.
import { post, put } from "../api.js";
import { html, useRef, useState } from "../dom.js";
import { useAction } from "../fetched.js";
import { Failure } from "../parts.js";
import { line } from "../text.js";

/// Promises what `send` made of the value in the field, which is empty from then on.
function sendValue(field, send) {
  const promise = send(field.current.value);
  field.current.value = "";
  return promise;
}

function ValueField({ field, label }) {
  return html`<label class="field">${label}<input type="password" ref=${field} required autocomplete="off" autocapitalize="off" spellcheck=${false} /></label>`;
}

function NotKept({ error }) {
  if (!error) return null;
  return html`<${Failure} error=${error} /><p class="warn">The value is not kept in this page: write it once more.</p>`;
}

export function Rotation({ name, onDone }) {
  const field = useRef(null);
  const { busy, error, act } = useAction();
  const rotate = (event) => {
    event.preventDefault();
    act(async () => {
      await sendValue(field, (value) => post(`/v1/secrets/${encodeURIComponent(name)}/rotate`, { value }));
      await onDone(`${line(name, 80)} has its new value.`);
    });
  };
  return html`<form class="secret-form" onSubmit=${rotate} autocomplete="off">
    <${ValueField} field=${field} label="The new value" />
    <p class="tools"><button class="primary" type="submit" disabled=${busy}>${busy ? "Rotating…" : "Rotate"}</button>
      <span class="faint">It goes to the same places; placeholders stay as they are.</span></p>
    <${NotKept} error=${error} />
  </form>`;
}

// Each with what it means, and an example.
const PLACES = [["for", "Hosts, or addresses with a path", "api.example.com https://example.com/v1/*"], ["git", "Git repositories", "https://github.com/OWNER/NAME"]];
const LIMITS = [["methods", "Methods", "GET POST"], ["headers", "Headers that it may stand in", "x-api-key"], ["branches", "Branches that may be pushed", "agent/*"]];
const EMPTY = { name: "", fetch_only: false };

export function NewSecret({ names, onDone }) {
  const [said, setSaid] = useState(EMPTY);
  const field = useRef(null);
  const { busy, error, act } = useAction();
  const write = (name) => (event) => setSaid({ ...said, [name]: event.target.value });
  const text = (name, example) => ({ value: said[name] ?? "", placeholder: example, onInput: write(name), autocapitalize: "off", spellcheck: false, autocomplete: "off" });
  const name = said.name.trim();
  const isNowhere = !said.for?.trim() && !said.git?.trim();
  const save = (event) => {
    event.preventDefault();
    if (isNowhere) return;
    act(async () => {
      await sendValue(field, (value) => put(`/v1/secrets/${encodeURIComponent(name)}`, { value, ...bodyOf(said) }));
      setSaid(EMPTY);
      await onDone(`${line(name, 80)} is set.`);
    });
  };
  return html`<form class="secret-form" onSubmit=${save} autocomplete="off">
    <label class="field">Name<input type="text" class="mono" required maxlength="100" ...${text("name", "GITHUB_TOKEN")} /></label>
    ${names.includes(name) && html`<p class="warning" role="note">There is one of this name: it is replaced, with its places.</p>`}
    <${ValueField} field=${field} label="Value" />
    <p class="faint">Where it may be sent, at least one place; several with spaces:</p>
    ${PLACES.map(([at, label, example]) => html`<label class="field">${label}<input type="text" class="mono" ...${text(at, example)} /></label>`)}
    <details class="more"><summary>More limits</summary><div class="explain-more">
      ${LIMITS.map(([at, label, example]) => html`<label class="field">${label}<input type="text" class="mono" ...${text(at, example)} /></label>`)}
      <label class="field">Days until it ends<input type="number" min="1" max="3650" ...${text("days", "never")} /></label>
      <label class="accept"><input type="checkbox" checked=${said.fetch_only} onChange=${() => setSaid({ ...said, fetch_only: !said.fetch_only })} /> Git only fetches with it, and pushes nothing</label>
    </div></details>
    <p class="tools"><button class="primary" type="submit" disabled=${busy || isNowhere}>${busy ? "Setting…" : "Set it"}</button></p>
    <${NotKept} error=${error} />
  </form>`;
}

// What is left empty is not said.
function bodyOf(said) {
  const body = {};
  for (const name of ["for", "git", "methods", "headers", "branches"]) {
    const words = (said[name] ?? "").split(/[\s,]+/).filter(Boolean);
    if (words.length > 0) body[name] = words;
  }
  if (said.days) body.days = Number(said.days);
  if (said.fetch_only) body.fetch_only = true;
  return body;
}
