// The card that says what the keyboard does.
import { html, useEffect, useRef } from "./dom.js";
import { help } from "./keys.js";

const KEYS = [
  ["j  k", "next, previous in a list or among steps (arrows too, once one is chosen)"],
  ["Enter", "open it, or unfold the step"],
  ["n", "new session"],
  ["s", "sessions"],
  ["a", "approvals"],
  ["m  b", "memory, budgets"],
  ["p  r  S  x", "people, rules, secrets, sandboxes"],
  ["/", "write to the agent"],
  ["Esc", "leave the field"],
  ["g  G", "to the beginning, to the newest"],
  ["?", "this card"],
];

export function KeyCard() {
  const dialog = useRef(null);
  useEffect(() => {
    dialog.current.showModal();
  }, []);
  const close = () => help.set(false);
  return html`<dialog ref=${dialog} class="keys" aria-label="Keys" onClose=${close} onClick=${(event) => event.target === dialog.current && close()}>
    <h2>Keys</h2>
    <dl>${KEYS.map(([key, what]) => html`<dt>${key.split("  ").map((one) => html`<kbd>${one}</kbd> `)}</dt><dd>${what}</dd>`)}</dl>
    <button class="quiet" onClick=${close}>Close</button>
  </dialog>`;
}
