// Small parts that several pages have.
import { html, useEffect, useState } from "./dom.js";
import { bytes, plural } from "./format.js";
import { setHash } from "./router.js";
import { cutAt, exact, line, lineCount, plain } from "./text.js";

const CHUNK = 400_000;

/// Text of unknown length: the beginning, and the rest on request, in bites that a browser
/// can swallow. `raw` shows every control, also the colours of terminals.
export function LongText({ text, lines = 24, chars = 4000, raw = false, label, class: extra = "" }) {
  const [shown, setShown] = useState(0);
  const end = shown || cutAt(text, lines, chars);
  const part = raw ? exact(text.slice(0, end)) : plain(text.slice(0, end));
  const rest = text.length - end;
  return html`<div class="long">
    <pre class=${`code ${extra}`} tabindex="0" role="group" aria-label=${label ?? "Text"}>${part}${rest > 1 ? "\n…" : ""}</pre>
    ${rest > 1 &&
    html`<button class="quiet" onClick=${() => setShown(end + CHUNK)}>
      ${rest > CHUNK ? `Show ${bytes(CHUNK)} more` : "Show all"} (${sizeOf(text)})
    </button>`}
  </div>`;
}

const sizeOf = (text) => `${plural(lineCount(text), "line")}, ${bytes(text.length)}`;

/// Something that is drawn only while it is open.
export function Disclosure({ title, open: first = false, class: extra = "", children }) {
  const [open, setOpen] = useState(first);
  return html`<div class=${`fold ${extra}`}>
    <button class="fold-head" aria-expanded=${open} data-toggle onClick=${() => setOpen(!open)}>
      <span class="chev" aria-hidden="true"></span>${title}
    </button>
    ${open && html`<div class="fold-body">${children}</div>`}
  </div>`;
}

export function CopyButton({ text, label = "Copy" }) {
  const [said, setSaid] = useState("");
  const copy = async () => {
    try {
      await navigator.clipboard.writeText(text);
      setSaid("Copied");
    } catch {
      setSaid("Could not copy");
    }
    setTimeout(() => setSaid(""), 1600);
  };
  return html`<button class="quiet" onClick=${copy}>${said || label}</button>`;
}

/// A command to be run by a person, with a button to copy it.
export function Command({ text }) {
  return html`<span class="command"><code>${text}</code><${CopyButton} text=${text} /></span>`;
}

/// What could not be done, and what to do about it.
export function Failure({ error }) {
  if (!error) return null;
  const { title, detail } = error.problem ?? { title: "Something went wrong in this page.", detail: error.message };
  return html`<div class="failure" role="alert">
    <p><strong>${sentence(title)}</strong>${detail && detail !== title && ` ${sentence(detail)}`}</p>
    ${error.hints?.map((hint) => html`<p>${plain(hint)}</p>`)}
  </div>`;
}

// The server writes problems as parts of a sentence; here they stand alone.
function sentence(words) {
  const text = plain(words).trim();
  return text.charAt(0).toUpperCase() + text.slice(1) + (/[.!?:…]$/.test(text) ? "" : ".");
}

/// The names of rules, apart from each other.
export function Rules({ rules }) {
  return html`<span class="rules">${rules.map((rule) => html`<code>${line(rule, 120)}</code>`)}</span>`;
}

/// How much of a limit is used.
export function Bar({ name, value, used, limit }) {
  const share = limit ? Math.min(1, used / limit) : null;
  const level = share === null ? "" : share > 0.9 ? "high" : share > 0.7 ? "mid" : "";
  return html`<div class="bar">
    <span class="bar-name">${name}</span><span class="bar-value">${value}</span>
    ${share !== null &&
    html`<meter class=${level} min="0" max="1" value=${share} aria-label=${`${name}: ${Math.round(share * 100)} per cent of the limit`}></meter>`}
  </div>`;
}

export function Status({ info }) {
  const tone = info.group === "needs_you" ? "needs" : info.group === "running" ? "runs" : info.cancelled ? "ended" : "done";
  return html`<span class=${`status ${tone}`}>${plain(info.status)}</span>`;
}

/// The tab that the end of an address names; the first one needs none.
export const tabOf = (tabs, hash) => tabs.find(([name]) => name === hash)?.[0] ?? tabs[0][0];

/// `tabs`: names and titles. What is below them has the id `panel`.
export function Tabs({ tabs, tab, label }) {
  // On a narrow screen they are wider than it.
  useEffect(() => {
    const chosen = document.getElementById(`tab-${tab}`);
    chosen.parentNode.scrollLeft = chosen.offsetLeft - 24;
  }, [tab]);
  const choose = (name) => setHash(name === tabs[0][0] ? "" : name);
  const onKeyDown = (event) => {
    const step = { ArrowRight: 1, ArrowLeft: -1 }[event.key];
    if (!step) return;
    event.preventDefault();
    event.stopPropagation();
    const at = tabs.findIndex(([name]) => name === tab);
    const next = tabs[(at + step + tabs.length) % tabs.length][0];
    choose(next);
    document.getElementById(`tab-${next}`).focus();
  };
  return html`<div class="tabs" role="tablist" aria-label=${label} onKeyDown=${onKeyDown}>
    ${tabs.map(([name, title]) => html`<button
      role="tab" id=${`tab-${name}`} aria-selected=${tab === name} aria-controls="panel" tabindex=${tab === name ? 0 : -1}
      onClick=${() => choose(name)}>${title}</button>`)}
  </div>`;
}

// The styles of all such parts lie together, and come with the first of them.
let styles = null;

function loadStyles() {
  return (styles ??= new Promise((resolve) => {
    const link = document.createElement("link");
    Object.assign(link, { rel: "stylesheet", href: new URL("./ondemand.css", import.meta.url).href, onload: resolve, onerror: resolve });
    document.head.append(link);
  }));
}

/// What is no part of what is loaded first; `load` promises its component.
export function OnDemand({ load, ...props }) {
  const [part, setPart] = useState(null);
  const [error, setError] = useState(null);
  useEffect(() => {
    Promise.all([load(), loadStyles()]).then(([loaded]) => setPart(() => loaded), setError);
  }, [load]);
  if (error) return html`<${Failure} error=${error} />`;
  return part ? html`<${part} ...${props} />` : html`<p class="loading">Opening…</p>`;
}
