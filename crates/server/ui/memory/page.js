// What agents remember, and what they learned to do: all entries that are a person's to see.
import { html, useEffect, useState } from "../dom.js";
import { useFetched } from "../fetched.js";
import { plural } from "../format.js";
import { server } from "../live.js";
import { Failure, Tabs, tabOf } from "../parts.js";
import { route } from "../router.js";
import { useStore } from "../store.js";
import { NewEntry } from "./edit.js";
import { EntryPage } from "./entry.js";
import { EntryLists, EntryRow } from "./list.js";
import { Proposals } from "./proposals.js";

const PAUSE_MS = 250;
const TABS = [
  ["entries", "Entries"],
  ["proposals", "Proposals"],
  ["new", "New entry"],
];

export function MemoryPage({ id }) {
  return id ? html`<${EntryPage} key=${id} path=${id} />` : html`<${Home} />`;
}

function Home() {
  const mayWrite = useStore(server)?.rights.write_memory ?? true;
  const { hash } = useStore(route);
  // One proposal has an address of its own.
  const number = Number(/^proposal-(\d+)$/.exec(hash)?.[1] ?? 0);
  const tabs = TABS.filter(([name]) => mayWrite || name !== "new");
  const tab = number ? "proposals" : tabOf(tabs, hash);
  return html`
    <${Tabs} tabs=${tabs} tab=${tab} label="Parts of memory" />
    <div id="panel" role="tabpanel" aria-labelledby=${`tab-${tab}`}>
      ${tab === "entries" && html`<${Entries} />`}
      ${tab === "proposals" && html`<${Proposals} key=${number} number=${number} />`}
      ${tab === "new" && html`<${NewEntry} />`}
    </div>`;
}

function Entries() {
  const [words, setWords] = useState("");
  const [asked, setAsked] = useState("");
  useEffect(() => {
    const timer = setTimeout(() => setAsked(words.trim()), PAUSE_MS);
    return () => clearTimeout(timer);
  }, [words]);
  return html`
    <form role="search" class="search" onSubmit=${(event) => (event.preventDefault(), setAsked(words.trim()))}>
      <label class="field">Search for words
        <input type="text" value=${words} maxlength="200" placeholder=${'all of them, "in this order", or a beginn*'} autocapitalize="off" onInput=${(event) => setWords(event.target.value)} /></label>
    </form>
    ${asked ? html`<${Found} words=${asked} />` : html`<${All} />`}`;
}

function All() {
  const { value, error } = useFetched("/v1/memory?recursive=true");
  return html`<${Failure} error=${error} />
    ${!value && !error && html`<p class="loading">Reading what is there…</p>`}
    ${value && html`<${EntryLists} entries=${value.data} />`}`;
}

function Found({ words }) {
  const { value, error } = useFetched(`/v1/memory/search?words=${encodeURIComponent(words)}&limit=50`);
  return html`<${Failure} error=${error} />
    <p class="lead" role="status">${value ? (value.data.length ? `${plural(value.data.length, "entry", "entries")} found.` : "Nothing has these words.") : error ? "" : "Searching…"}</p>
    ${value?.data.length > 0 && html`<ul class="entries">${value.data.map(({ entry, snippet }) => html`<${EntryRow} key=${entry.path} entry=${entry} name=${entry.path} snippet=${snippet} />`)}</ul>`}`;
}
