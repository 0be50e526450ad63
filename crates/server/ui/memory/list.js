// Lists of entries, those of one scope together.
import { html, useNow, useState } from "../dom.js";
import { age, bytes, number, when } from "../format.js";
import { memoryPath } from "../router.js";
import { exact, line } from "../text.js";

const ROWS = 200;
// What is nearest to a person first.
const SCOPES = { user: "Your own", group: "The group's", organisation: "The organisation's" };

export function EntryLists({ entries }) {
  const files = entries.filter((entry) => !entry.folder);
  if (files.length === 0) return html`<p class="lead">Nothing is remembered yet. Agents write here while they work, and so can you.</p>`;
  const scopes = new Map();
  for (const entry of files) {
    const scope = scopeOf(entry.path);
    scopes.set(scope, [...(scopes.get(scope) ?? []), entry]);
  }
  const rank = ([scope]) => [scope.startsWith("/skills"), Object.keys(SCOPES).indexOf(scope.split("/")[2])].map(Number).join(" ");
  return [...scopes].sort((a, b) => rank(a).localeCompare(rank(b))).map(([scope, list]) => html`<${Scope} key=${scope} scope=${scope} entries=${list} />`);
}

/// The folder that says whose an entry is: `/memory/user`, `/skills/group/web`.
export function scopeOf(path) {
  const parts = path.split("/");
  return parts.slice(0, parts[2] === "group" ? 4 : 3).join("/");
}

function Scope({ scope, entries }) {
  const [most, setMost] = useState(ROWS);
  const [, kind, owner] = scope.split("/");
  const title = `${SCOPES[owner] ?? line(owner ?? "", 60)} ${kind}`;
  return html`<section aria-label=${line(scope, 120)}>
    <h2 class="group">${title} <span class="faint"><code>${exact(scope)}</code></span></h2>
    <ul class="entries">${entries.slice(0, most).map((entry) => html`<${EntryRow} key=${entry.path} entry=${entry} name=${entry.path.slice(scope.length + 1)} />`)}</ul>
    ${entries.length > most && html`<button class="earlier" onClick=${() => setMost(most + ROWS)}>Show more (${number(entries.length - most)} hidden)</button>`}
  </section>`;
}

export function EntryRow({ entry, name, snippet }) {
  const now = useNow(60_000);
  return html`<li><a data-row class="entry-row" href=${memoryPath(entry.path)}>
    <code class="entry-name">${exact(name)}</code>
    <span class="row-facts">
      ${entry.executable && html`<span class="tag">can be run</span>`}
      ${entry.redacted && html`<span class="tag">redacted</span>`}
      ${entry.review_by_ms && html`<span class=${entry.review_by_ms < now ? "warn" : ""}>to be reviewed by ${new Date(entry.review_by_ms).toLocaleDateString()}</span>`}
      <span>${bytes(entry.bytes)}</span>
      <time datetime=${new Date(entry.modified_ms).toISOString()} title=${when(entry.modified_ms)}>${age(entry.modified_ms, now)}</time>
    </span>
    ${snippet && html`<span class="snippet">${line(snippet, 300)}</span>`}
  </a></li>`;
}
