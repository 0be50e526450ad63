// One entry: its content, its editor, its history, and who wrote which line.
import { change } from "../api.js";
import { html, useState } from "../dom.js";
import { useAction, useFetched } from "../fetched.js";
import { bytes } from "../format.js";
import { server } from "../live.js";
import { Failure, LongText, Tabs, tabOf } from "../parts.js";
import { route, setHash } from "../router.js";
import { useStore } from "../store.js";
import { line } from "../text.js";
import { Blame } from "./blame.js";
import { Changed, Editor } from "./edit.js";
import { History } from "./history.js";
import { EntryLists } from "./list.js";
import { At, Author, Labels, Redacted, contentAt } from "./version.js";

const TABS = [
  ["content", "Content"],
  ["edit", "Edit"],
  ["history", "History"],
  ["blame", "Blame"],
];

export function EntryPage({ path }) {
  const mayWrite = useStore(server)?.rights.write_memory ?? true;
  const { hash } = useStore(route);
  const tabs = TABS.filter(([name]) => mayWrite || name !== "edit");
  const tab = tabOf(tabs, hash);
  const { value, error, reload } = useFetched(contentAt(path));
  const [changed, setChanged] = useState(null);
  const onChanged = async (done) => {
    setChanged(done);
    await reload();
    setHash("");
  };
  const parts = { content: value, path, onChanged, mayWrite };
  const isMissing = error?.status === 404;
  return html`
    <p class="facts-line"><a href="/memory">All entries</a> ${value && html`<${Facts} version=${value.version} />`}</p>
    <${Tabs} tabs=${tabs} tab=${tab} label="Parts of the entry" />
    <${Changed} change=${changed} />
    <div id="panel" role="tabpanel" aria-labelledby=${`tab-${tab}`} class="panel">
      ${tab === "history" && html`<${History} ...${parts} />`}
      ${tab !== "history" && isMissing && html`<p class="lead">There is no such entry (any more). Its history may say more.</p>`}
      ${tab !== "history" && !isMissing && html`<${Failure} error=${error} />`}
      ${tab !== "history" && !value && !error && html`<p class="loading">Reading it…</p>`}
      ${tab === "content" && value && html`<${Content} ...${parts} />`}
      ${tab === "edit" && value && html`<${Editor} key=${value.version.revision} ...${parts} />`}
      ${tab === "blame" && value && html`<${Blame} path=${path} />`}
    </div>`;
}

function Facts({ version }) {
  return html`
    <span>Revision ${version.revision}, ${bytes(version.bytes)}</span>
    <span><${Author} of=${version} />, <${At} at=${version.at_ms} /></span>
    ${version.accepted_by && html`<span>accepted by ${line(version.accepted_by, 80)}</span>`}
    ${version.labels.length > 0 && html`<span><${Labels} labels=${version.labels} /></span>`}`;
}

function Content({ content, path, onChanged, mayWrite }) {
  const { version, text } = content;
  if (version.state === "folder") return html`<${Folder} path=${path} />`;
  const isKnown = text !== null && text !== undefined;
  return html`
    <${Redacted} version=${version} />
    ${text === "" && html`<p class="lead">It is empty.</p>`}
    ${text && html`<${LongText} text=${text} lines=${400} chars=${60_000} raw class="wrap" label="Content of the entry" />`}
    ${!isKnown && !version.redacted && html`<p class="lead">Its content is not text, so it is not shown.</p>`}
    ${mayWrite && html`<${Removal} version=${version} path=${path} onChanged=${onChanged} />`}`;
}

function Folder({ path }) {
  const { value, error } = useFetched(`/v1/memory?path=${encodeURIComponent(path)}&recursive=true`);
  return html`<${Failure} error=${error} />${value && html`<${EntryLists} entries=${value.data} />`}`;
}

function Removal({ version, path, onChanged }) {
  const [sure, setSure] = useState(false);
  const { busy, error, act } = useAction();
  const remove = () => act(async () => onChanged(await change("DELETE", contentAt(path), version.revision)));
  return html`
    <p class="tools after">
      <button onClick=${() => setHash("edit")}>Edit</button>
      <button class="quiet" aria-expanded=${sure} onClick=${() => setSure(!sure)}>Remove…</button>
    </p>
    ${sure && html`<div class="ending" role="group" aria-label="Remove the entry">
      <p>Agents don't find it any more. Its history stays, and every version can be brought back.</p>
      <p class="tools"><button class="deny" disabled=${busy} onClick=${remove}>Remove it</button>
        <button class="quiet" onClick=${() => setSure(false)}>Keep it</button></p>
      <${Failure} error=${error} />
    </div>`}`;
}
