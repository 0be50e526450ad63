// What the keyboard does.
import { go } from "./router.js";
import { Store } from "./store.js";

/// Whether the card is shown that says so.
export const help = new Store(false);

const DOES = {
  j: () => move(1),
  k: () => move(-1),
  ArrowDown: () => isRow(document.activeElement) && move(1),
  ArrowUp: () => isRow(document.activeElement) && move(-1),
  Enter: () => unfold(),
  n: () => go("/new"),
  s: () => go("/"),
  a: () => go("/approvals"),
  m: () => go("/memory"),
  b: () => go("/budgets"),
  p: () => go("/people"),
  r: () => go("/rules"),
  S: () => go("/secrets"),
  x: () => go("/sandboxes"),
  "/": () => focus(document.querySelector("[data-composer]")),
  g: () => window.scrollTo(0, 0) ?? true,
  G: () => window.scrollTo(0, document.documentElement.scrollHeight) ?? true,
  "?": () => help.set(!help.value) ?? true,
};

export function listenToKeys() {
  document.addEventListener("keydown", (event) => {
    if (event.ctrlKey || event.metaKey || event.altKey || event.isComposing) return;
    if (event.key === "Escape") return leave();
    if (isField(event.target) || help.value && event.key !== "?") return;
    if (DOES[event.key]?.() ?? false) event.preventDefault();
  });
}

const isField = (element) => element.matches?.("input, textarea, select, [contenteditable]");
const isRow = (element) => element?.matches?.("[data-row]") ?? false;

function leave() {
  help.set(false);
  if (isField(document.activeElement)) document.activeElement.blur();
}

// From the row that has the focus, or the first of those that can be seen.
function move(step) {
  const rows = [...document.querySelectorAll("[data-row]")];
  if (rows.length === 0) return false;
  const at = rows.findIndex((row) => row === document.activeElement || row.contains(document.activeElement));
  const seen = rows.findIndex((row) => row.getBoundingClientRect().bottom > 120);
  const next = at < 0 ? Math.max(0, seen) : Math.min(rows.length - 1, Math.max(0, at + step));
  return focus(rows[next]);
}

function focus(element) {
  if (!element) return false;
  element.focus({ preventScroll: true });
  element.scrollIntoView({ block: "nearest" });
  return true;
}

// Links and buttons know Enter themselves; a step unfolds what it has.
function unfold() {
  const row = document.activeElement;
  if (!isRow(row) || row.matches("a, button")) return false;
  row.querySelector("[data-toggle]")?.click();
  return true;
}
