// What a session changed in its copy of the directory, and how it comes back into the real one.
import { get, post } from "./api.js";
import { parseDiff } from "./diff.js";
import { DiffCount, DiffLines } from "./diffview.js";
import { html, useCallback, useEffect, useMemo, useState } from "./dom.js";
import { useAction } from "./fetched.js";
import { bytes, plural } from "./format.js";
import { Command, Disclosure, Failure } from "./parts.js";
import { exact, plain } from "./text.js";

const OPEN_LINES_MAX = 400;
const OPEN_FILES_MAX = 15;
const SETTLE_MS = 1500;

/// `stamp` is another one whenever something may have changed files.
export function Changes({ info, stamp }) {
  const [changes, setChanges] = useState(null);
  const [error, setError] = useState(null);
  const [busy, setBusy] = useState(false);
  const base = `/v1/sessions/${encodeURIComponent(info.id)}`;

  const load = useCallback(async () => {
    setBusy(true);
    try {
      setChanges(await get(`${base}/changes`));
      setError(null);
    } catch (failure) {
      setError(failure);
    }
    setBusy(false);
  }, [base]);

  useEffect(() => {
    const timer = setTimeout(load, changes ? SETTLE_MS : 0);
    return () => clearTimeout(timer);
  }, [load, stamp]);

  return html`<section class="changes" aria-label="Changes">
    <${Failure} error=${error} />
    ${!changes && !error && html`<p class="loading">Comparing the copy with what it began with…</p>`}
    ${changes && html`<${Found} info=${info} changes=${changes} base=${base} busy=${busy} onReload=${load} />`}
  </section>`;
}

function Found({ info, changes, base, busy, onReload }) {
  const diffs = useMemo(() => byPath(parseDiff(changes.patch)), [changes]);
  if (changes.files.length === 0) {
    return html`<p class="lead">No file is changed so far. <button class="quiet" onClick=${onReload}>Look again</button></p>`;
  }
  const listed = changes.files.map((file) => ({ ...file, diff: diffs.get(file.path) }));
  return html`
    ${changes.warnings.map((warning) => html`<p class="warning" role="note">${plain(warning)}</p>`)}
    <div class="apply">
      <p>This is the agent's copy. ${info.directory ? html`Nothing in <code>${exact(info.directory)}</code> is changed` : "Nothing of yours is changed"} until you write it back.</p>
      ${info.directory && info.rights.manage && html`<${WriteBack} info=${info} base=${base} hasWarnings=${changes.warnings.length > 0} />`}
      ${info.rights.manage && html`<p class="faint">Or on the command line:</p>
      <${Command} text=${`outrigger sessions apply ${info.id}`} />`}
      <p class="tools">
        <a class="button" href=${`${base}/changes.patch`} download=${`${info.id}.patch`}>Download the patch</a>
        <button class="quiet" disabled=${busy} onClick=${onReload}>${busy ? "Looking…" : "Look again"}</button>
      </p>
    </div>
    <${FileList} files=${listed} />
    ${listed.map((file, at) => html`<${File} key=${file.path} file=${file} at=${at} />`)}
    ${changes.hidden_bytes > 0 && html`<p class="lead">${bytes(changes.hidden_bytes)} more are not shown here; the patch has all of it.</p>`}
  `;
}

// All of it or nothing; what programs obey by themselves has to be accepted in so many words.
function WriteBack({ info, base, hasWarnings }) {
  const [accepts, setAccepts] = useState(false);
  const [done, setDone] = useState(null);
  const { busy, error, act } = useAction();
  const runs = info.group === "running" || info.approvals > 0;
  const apply = () => act(async () => setDone(await post(`${base}/apply`, { accept_hazards: accepts })));
  return html`
    ${hasWarnings && html`<label class="accept"><input type="checkbox" checked=${accepts} onChange=${() => setAccepts(!accepts)} /> I looked at what is warned of above, and want it all the same</label>`}
    <p class="tools">
      <button class="primary" disabled=${busy || runs || (hasWarnings && !accepts)} onClick=${apply}>${busy ? "Writing it back…" : "Write it back"}</button>
      ${runs && html`<span class="faint">when its turn is over</span>`}
    </p>
    ${done && html`<p class="good" role="status">${plural(done.files, "file")} in <code>${exact(done.directory)}</code> ${done.files === 1 ? "is" : "are"} changed now.</p>`}
    <${Failure} error=${error} />
  `;
}

function byPath(files) {
  return new Map(files.map((file) => [file.path, file]));
}

const SIGNS = { added: "new", modified: "changed", removed: "removed" };

function FileList({ files }) {
  const sum = (name) => files.reduce((all, file) => all + (file.diff?.[name] ?? 0), 0);
  return html`<h2 class="group">${plural(files.length, "file")} <${DiffCount} file=${{ added: sum("added"), removed: sum("removed") }} /></h2>
    <ul class="files">
      ${files.map((file, at) => html`<li>
        <a data-row href=${`#file-${at}`} onClick=${(event) => jump(event, at)}>
          <span class=${`kind ${file.change}`}>${SIGNS[file.change] ?? file.change}</span>
          <code>${exact(file.path)}</code>
          ${file.diff && html`<${DiffCount} file=${file.diff} />`}
        </a>
      </li>`)}
    </ul>`;
}

// A fragment would take the place of the tab's own in the address.
function jump(event, at) {
  event.preventDefault();
  const target = document.getElementById(`file-${at}`);
  target?.scrollIntoView({ block: "start" });
  target?.querySelector("button")?.focus({ preventScroll: true });
}

function File({ file, at }) {
  const { diff } = file;
  const open = at < OPEN_FILES_MAX && (!diff || diff.added + diff.removed <= OPEN_LINES_MAX);
  const title = html`<code>${exact(file.path)}</code> ${diff && html`<${DiffCount} file=${diff} />`}`;
  return html`<div class="file" id=${`file-${at}`}>
    <${Disclosure} title=${title} open=${open}>
      ${diff ? html`<${DiffLines} file=${diff} />` : html`<p class="faint">Its content is not shown: it is not text, or it was cut off.</p>`}
    </${Disclosure}>
  </div>`;
}
