// Where a person writes: the first words of a session, and all that follow.
import { html, useEffect, useRef, useState } from "./dom.js";
import { OnDemand } from "./parts.js";

// What was begun and not sent, by the place where it was: it survives looking elsewhere.
const drafts = new Map();

// On a phone Enter is the only way to a new line.
const hasKeyboard = () => window.matchMedia("(pointer: fine)").matches;

const attached = () => import("./pictures.js").then((module) => module.Attached);

/// A field for text, and a button that does something with it and with the pictures beside it.
/// `onSend` returns a promise; what was written stays until it is fulfilled.
export function Composer({ place, label, hint, action, busyWord, rows = 1, onSend, focus = false, children }) {
  const [text, setText] = useState(drafts.get(place) ?? "");
  const [busy, setBusy] = useState(false);
  const [pictures, setPictures] = useState([]);
  const field = useRef(null);

  useEffect(() => {
    if (focus) field.current.focus();
  }, [focus]);
  useEffect(() => {
    grow(field.current);
  }, [text]);

  const write = (value) => {
    drafts.set(place, value);
    setText(value);
  };
  const send = async (event) => {
    event?.preventDefault();
    if (busy || !text.trim()) return;
    setBusy(true);
    try {
      const shown = pictures.filter((it) => it.content).map(({ name, content }) => ({ name, content }));
      await onSend(shown.length ? { text, pictures: shown } : { text });
      write("");
      setPictures([]);
    } catch {
      // Whoever passed `onSend` says what went wrong.
    }
    setBusy(false);
  };
  const add = async (files) => {
    const { read } = await import("./pictures.js");
    const more = await Promise.all([...files].map(read));
    setPictures((before) => [...before, ...more]);
  };
  const onPaste = (event) => {
    const { files, types } = event.clipboardData;
    // What was copied from a document is its words, although there is a picture of them as well.
    if (files.length === 0 || types.includes("text/plain")) return;
    event.preventDefault();
    add(files);
  };
  const onKeyDown = (event) => {
    const enters = event.key === "Enter" && !event.shiftKey && !event.isComposing;
    if (enters && (hasKeyboard() || event.ctrlKey || event.metaKey)) send(event);
  };

  return html`<form class="composer" onSubmit=${send}>
    <label for=${`composer-${place}`}>${label}</label>
    <textarea
      id=${`composer-${place}`}
      ref=${field}
      data-composer
      rows=${rows}
      value=${text}
      placeholder=${hint}
      onInput=${(event) => write(event.target.value)}
      onKeyDown=${onKeyDown}
      onPaste=${onPaste}
    ></textarea>
    ${pictures.length > 0 && html`<${OnDemand} load=${attached} pictures=${pictures} onRemove=${(one) => setPictures(pictures.filter((it) => it !== one))} />`}
    ${children}
    <div class="send">
      <button class="primary" type="submit" disabled=${busy || !text.trim()}>${busy ? busyWord : action}</button>
      <label class="attach" title="Or paste one">Add a picture…<input type="file" class="unseen" multiple accept="image/png,image/jpeg,image/gif,image/webp" onChange=${(event) => { add(event.target.files).then(() => (event.target.value = "")); }} /></label>
      <span class="faint keys-hint">Enter sends, Shift+Enter begins a line</span>
    </div>
  </form>`;
}

function grow(field) {
  field.style.height = "auto";
  field.style.height = `${Math.min(field.scrollHeight + 2, window.innerHeight * 0.4)}px`;
}
