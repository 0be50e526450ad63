// Writing an entry. What a person wrote is never lost, whoever else writes the same one.
import { change, get } from "../api.js";
import { editDiff } from "../diff.js";
import { DiffLines } from "../diffview.js";
import { html, useEffect, useMemo, useRef, useState } from "../dom.js";
import { useAction } from "../fetched.js";
import { Failure, LongText } from "../parts.js";
import { go, memoryPath } from "../router.js";
import { At, Author, contentAt } from "./version.js";

// What was begun and not saved, by path: it survives looking elsewhere.
const drafts = new Map();

/// What became of a change: it is done, or somebody looks at it first.
export function Changed({ change: done }) {
  if (!done) return null;
  if (done.proposal) return html`<p class="good" role="status">Changes of this memory are reviewed first: it waits as <a href=${`/memory#proposal-${done.proposal}`}>proposal ${done.proposal}</a>.</p>`;
  return html`<p class="good" role="status">Done${done.revision ? `: revision ${done.revision}` : ""}.</p>`;
}

export function Editor({ content, path, onChanged }) {
  const { version, text: before } = content;
  const draft = drafts.get(path) ?? { text: before ?? "", message: "", base: version.revision, before };
  const [state, setState] = useState(draft);
  const [conflict, setConflict] = useState(null);
  const { busy, error, act } = useAction();
  if (before === null || before === undefined) return html`<p class="lead">Its content is not text, or not to be seen, so it can't be edited here.</p>`;

  const write = (more) => {
    const next = { ...state, ...more };
    drafts.set(path, next);
    setState(next);
  };
  const discard = () => {
    drafts.delete(path);
    setConflict(null);
    setState({ text: before, message: "", base: version.revision, before });
  };
  const save = () => act(async () => {
    try {
      const done = await change("PUT", contentAt(path), state.base, bodyOf(state));
      drafts.delete(path);
      await onChanged(done);
    } catch (failure) {
      if (failure.status !== 412) throw failure;
      const now = await current(path);
      setConflict({ now, before: state.before });
      write({ base: now?.version.revision ?? null, before: now?.text ?? "" });
    }
  });
  const isStale = !conflict && state.base !== version.revision;
  return html`<form class="editor" onSubmit=${(event) => (event.preventDefault(), save())}>
    ${isStale && html`<p class="warning" role="note">You began this when it was revision ${state.base}. It is revision ${version.revision} now.</p>`}
    ${conflict && html`<${Conflict} conflict=${conflict} />`}
    <${Fields} state=${state} onWrite=${write} />
    <${Failure} error=${error} />
    <p class="tools">
      <button class="primary" type="submit" disabled=${busy || state.text === before}>${busy ? "Saving…" : conflict ? "Save both together" : "Save"}</button>
      ${drafts.has(path) && html`<button type="button" class="quiet" onClick=${discard}>Discard what I wrote</button>`}
    </p>
  </form>`;
}

const bodyOf = ({ text, message }) => (message.trim() ? { text, message: message.trim() } : { text });

// Nothing where it was removed.
async function current(path) {
  try {
    return await get(contentAt(path));
  } catch (error) {
    if (error.status === 404) return null;
    throw error;
  }
}

function Fields({ state, onWrite }) {
  return html`
    <label class="field">Text
      <textarea class="mono" rows="18" spellcheck=${false} value=${state.text} onInput=${(event) => onWrite({ text: event.target.value })}></textarea></label>
    <label class="field">What you changed and why (may be empty)
      <input type="text" maxlength="500" value=${state.message} onInput=${(event) => onWrite({ message: event.target.value })} /></label>`;
}

function Conflict({ conflict }) {
  const { now, before } = conflict;
  const file = useMemo(() => editDiff(now?.version.path ?? "", before ?? "", now?.text ?? ""), [conflict]);
  const shown = useRef(null);
  // Whoever saved looks at the other end of the field.
  useEffect(() => void shown.current.scrollIntoView({ block: "start" }), [conflict]);
  if (!now) return html`<div class="conflict" ref=${shown} role="alert"><p><strong>Somebody removed it meanwhile.</strong> Your text is still here; saved again, the entry is made anew.</p></div>`;
  return html`<div class="conflict" ref=${shown}>
    <p role="alert"><strong>Somebody else changed it meanwhile.</strong> Your text is still here, and not saved yet. Bring both together in the field below, then save.</p>
    <p>Revision ${now.version.revision}: <${Author} of=${now.version} />, <${At} at=${now.version.at_ms} /></p>
    <p class="faint">What changed meanwhile:</p>
    <div class="edit"><${DiffLines} file=${file} most=${60} /></div>
    <p class="faint">What is there now:</p>
    <${LongText} text=${now.text ?? ""} lines=${60} raw class="wrap" label="What is there now" />
  </div>`;
}

export function NewEntry() {
  const [path, setPath] = useState("/memory/user/");
  const [state, setState] = useState(drafts.get("") ?? { text: "", message: "" });
  const [proposed, setProposed] = useState(null);
  const { busy, error, act } = useAction();
  const write = (more) => {
    const next = { ...state, ...more };
    drafts.set("", next);
    setState(next);
  };
  const save = () => act(async () => {
    const done = await change("PUT", contentAt(path.trim()), null, bodyOf(state));
    drafts.delete("");
    if (done.proposal) setProposed(done);
    else go(memoryPath(done.path));
  });
  const isPath = /^\/(memory|skills)\/.+[^/\s]\s*$/.test(path);
  return html`<form class="editor" onSubmit=${(event) => (event.preventDefault(), save())}>
    <label class="field">Path, as agents see it
      <input type="text" class="mono" autocapitalize="off" spellcheck=${false} value=${path} onInput=${(event) => setPath(event.target.value)} /></label>
    <p class="faint">For example <code>/memory/user/notes.md</code>, <code>/memory/group/NAME/style.md</code> or <code>/skills/user/release/SKILL.md</code>.</p>
    <${Fields} state=${state} onWrite=${write} />
    <${Changed} change=${proposed} />
    ${error?.status === 412
      ? html`<p class="failure" role="alert">There is an entry at this path already, so nothing was changed. <a href=${memoryPath(path.trim())}>Look at it</a>, or choose another path. Your text is still here.</p>`
      : html`<${Failure} error=${error} />`}
    <p class="tools"><button class="primary" type="submit" disabled=${busy || !isPath}>${busy ? "Saving…" : "Save"}</button></p>
  </form>`;
}
