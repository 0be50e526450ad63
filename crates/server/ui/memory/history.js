// Every version of an entry: who made it of the one before, and how it comes back.
import { change, get, post } from "../api.js";
import { parseDiff } from "../diff.js";
import { DiffCount, DiffLines } from "../diffview.js";
import { html, useEffect, useMemo, useState } from "../dom.js";
import { useAction, useFetched } from "../fetched.js";
import { bytes } from "../format.js";
import { Disclosure, Failure } from "../parts.js";
import { line, plain } from "../text.js";
import { At, Author, Labels, Redacted } from "./version.js";

export function History({ path, onChanged, mayWrite }) {
  const address = `/v1/memory/history?path=${encodeURIComponent(path)}`;
  const [versions, setVersions] = useState([]);
  const [more, setMore] = useState(null);
  const reading = useAction();
  const reverting = useAction();
  const read = (before) => reading.act(async () => {
    const page = await get(before ? `${address}&before=${before}` : address);
    setVersions((was) => (before ? [...was, ...page.data] : page.data));
    setMore(page.more);
  });
  useEffect(() => void read(null), [address]);

  const [newest] = versions;
  const current = newest?.state === "removed" ? null : newest?.revision;
  const bringBack = (to) => reverting.act(async () => onChanged(await change("POST", "/v1/memory/revert", current, { path, to })));
  return html`
    <${Failure} error=${reading.error} />
    <${Failure} error=${reverting.error} />
    ${more === null && !reading.error && html`<p class="loading">Reading its history…</p>`}
    <ol class="versions" reversed>
      ${versions.map((version, at) => html`<${Version} key=${version.revision} version=${version} before=${versions[at + 1]?.revision ?? version.revision - 1}
        onRedacted=${mayWrite && version.state === "file" && version.kept ? () => read(null) : null}
        onBringBack=${mayWrite && at > 0 && version.state === "file" && version.kept && !reverting.busy ? bringBack : null} />`)}
    </ol>
    ${more && html`<button class="earlier" disabled=${reading.busy} onClick=${() => read(versions.at(-1).revision)}>Show older versions</button>`}`;
}

function Version({ version, before, onBringBack, onRedacted }) {
  const { revision, state } = version;
  const [redacting, setRedacting] = useState(false);
  return html`<li>
    <p class="version-head"><strong>Revision ${revision}</strong>
      <span>${state === "removed" ? "removed" : state === "folder" ? "a folder" : bytes(version.bytes)}</span>
      <span><${Author} of=${version} /></span> <${At} at=${version.at_ms} /> <${Labels} labels=${version.labels} />
    </p>
    ${version.message && html`<p class="prose">${plain(version.message)}</p>`}
    ${version.accepted_by && html`<p class="faint">Accepted by ${line(version.accepted_by, 80)}.</p>`}
    <${Redacted} version=${version} />
    ${!version.kept && !version.redacted && html`<p class="faint">Its content is not kept any more.</p>`}
    <div class="version-acts">
      ${state !== "folder" && html`<${Disclosure} title="What it changed"><${VersionDiff} path=${version.path} from=${before} to=${revision} /></${Disclosure}>`}
      ${onBringBack && html`<button class="quiet" onClick=${() => onBringBack(revision)}>Bring revision ${revision} back</button>`}
      ${onRedacted && html`<button class="quiet" aria-expanded=${redacting} onClick=${() => setRedacting(!redacting)}>Redact…</button>`}
    </div>
    ${onRedacted && redacting && html`<${Redaction} version=${version} onDone=${onRedacted} onKeep=${() => setRedacting(false)} />`}
  </li>`;
}

// Where other versions have a part of it, it is asked what becomes of those before anything goes.
function Redaction({ version, onDone, onKeep }) {
  const [why, setWhy] = useState("");
  const { busy, error, act } = useAction();
  const redact = (derived) => act(async () => {
    await post("/v1/memory/redact", { path: version.path, revision: version.revision, why, ...derived });
    onDone();
  });
  const isShared = error?.status === 409;
  return html`<div class="ending" role="group" aria-label=${`Redact revision ${version.revision}`}>
    <p>Its content is destroyed for good, wherever it was copied to. That it was there stays, with who destroyed it and why.</p>
    <label class="field">Why
      <input type="text" value=${why} maxlength="500" onInput=${(event) => setWhy(event.target.value)} /></label>
    <${Failure} error=${error} />
    <p class="tools">
      ${isShared
        ? html`<button class="deny" disabled=${busy} onClick=${() => redact({ derived: "destroy" })}>Destroy those as well</button>
            <button disabled=${busy} onClick=${() => redact({ derived: "leave" })}>Destroy this alone</button>`
        : html`<button class="deny" disabled=${busy || !why.trim()} onClick=${() => redact({})}>Destroy its content</button>`}
      <button class="quiet" disabled=${busy} onClick=${onKeep}>Keep it</button></p>
  </div>`;
}

function VersionDiff({ path, from, to }) {
  const { value, error } = useFetched(`/v1/memory/diff?path=${encodeURIComponent(path)}&from=${from}&to=${to}`);
  return html`<${Failure} error=${error} />
    ${!value && !error && html`<p class="loading">Comparing…</p>`}
    ${value && html`<${PatchView} patch=${value.diff} path=${path} />`}`;
}

/// A unified diff of one entry.
export function PatchView({ patch, path }) {
  const files = useMemo(() => parseDiff(patch ?? ""), [patch]);
  const changed = files.filter((file) => file.hunks.length + file.notes.length > 0);
  if (changed.length === 0) return html`<p class="faint">Its text is not changed.</p>`;
  return changed.map((file) => html`<div class="edit"><${DiffCount} file=${file} /><${DiffLines} file=${file.path ? file : { ...file, path }} /></div>`);
}
