// Shows a diff: files, hunks, lines with their numbers.
import { html, memoOn, useState } from "./dom.js";
import { plural } from "./format.js";
import { exact } from "./text.js";

const LINE_CHARS_MAX = 600;
const MORE_LINES = 1000;

/// The lines of one file, at most `most` of them until somebody asks for more.
export const DiffLines = memoOn(["file", "most"], function DiffLines({ file, most = 300 }) {
  const [shown, setShown] = useState(most);
  const rows = rowsOf(file);
  const numbered = file.hunks.some((hunk) => hunk.oldAt !== undefined);
  return html`<div>
    <div class=${`diff ${numbered ? "" : "bare"}`} tabindex="0" role="group" aria-label=${`Changes of ${exact(file.path)}`}>
      <div class="diff-in">${rows.slice(0, shown).map((row) => html`<${CodeLine} row=${row} />`)}</div>
    </div>
    ${rows.length > shown &&
    html`<button class="quiet" onClick=${() => setShown(shown + MORE_LINES)}>
      Show ${rows.length - shown > MORE_LINES ? `${MORE_LINES} more` : "the rest"} (${plural(rows.length - shown, "line")} hidden)
    </button>`}
  </div>`;
});

function rowsOf(file) {
  const rows = [];
  for (const note of file.notes) rows.push({ sign: "i", text: note });
  for (const hunk of file.hunks) {
    if (hunk.oldAt !== undefined) rows.push({ sign: "@", text: hunk.title || `line ${hunk.lines.find((line) => line.new)?.new ?? 1}` });
    rows.push(...hunk.lines);
  }
  return rows;
}

const CLASSES = { "+": "add", "-": "del", "@": "at", "\\": "info", i: "info" };

/// A line of code, with its numbers before and after.
export function CodeLine({ row }) {
  const [all, setAll] = useState(false);
  const long = row.text.length > LINE_CHARS_MAX && !all;
  const text = exact(long ? row.text.slice(0, LINE_CHARS_MAX) : row.text);
  const sign = row.sign === "+" || row.sign === "-" ? row.sign : " ";
  // The numbers are drawn by the styles, so that they are not copied with the code.
  return html`<div class=${`dl ${CLASSES[row.sign] ?? ""}`}>
    <span class="no" data-n=${row.old ?? ""}></span><span class="no" data-n=${row.new ?? ""}></span>
    <span class="tx"><span class="sg">${sign}</span>${text}${long &&
    html`<button class="quiet tiny" onClick=${() => setAll(true)}>… ${plural(row.text.length, "character")}</button>`}</span>
  </div>`;
}

/// What became more and what less, in words for who does not see the colours.
export function DiffCount({ file }) {
  if (file.added + file.removed === 0) return null;
  return html`<span class="count" aria-label=${`${file.added} added, ${file.removed} removed`}>
    <span class="plus">+${file.added}</span> <span class="minus">−${file.removed}</span>
  </span>`;
}
