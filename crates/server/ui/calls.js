// What a call of a tool would do, shown as what it is: a command, a path, an edit.
import { editDiff } from "./diff.js";
import { DiffCount, DiffLines } from "./diffview.js";
import { html, useMemo } from "./dom.js";
import { duration } from "./format.js";
import { LongText } from "./parts.js";
import { exact } from "./text.js";

const INLINE_CHARS = 110;
const EDIT_LINES = 24;

/// The arguments as an object, or nothing where they are not a plain one. A name that is
/// there twice has two readings, so then the text itself has to be shown.
export function parseArguments(text) {
  try {
    const value = JSON.parse(text);
    if (typeof value !== "object" || value === null || Array.isArray(value)) return null;
    return Object.keys(value).length === topNames(text) ? value : null;
  } catch {
    return null;
  }
}

// Counts the names of the outermost object of a JSON text that is known to be well formed.
function topNames(text) {
  let depth = 0;
  let names = 0;
  for (let at = 0; at < text.length; at += 1) {
    const char = text[at];
    if (char === '"') {
      for (at += 1; text[at] !== '"'; at += 1) if (text[at] === "\\") at += 1;
    } else if (char === "{" || char === "[") depth += 1;
    else if (char === "}" || char === "]") depth -= 1;
    else if (char === ":" && depth === 1) names += 1;
  }
  return names;
}

const isText = (value) => typeof value === "string";

// How to show which arguments: the first that fits. `short` is for the line of the step,
// `shows` are the names that it accounts for, `body` is below it.
const SHAPES = [
  {
    fits: (a) => isText(a.command),
    shows: ["command"],
    short: (a) => (isOneLine(a.command) ? a.command : null),
    body: (a, whole) => (whole || !isOneLine(a.command) ? html`<${CommandText} text=${a.command} whole=${whole} />` : null),
  },
  {
    fits: (a) => isText(a.file_path ?? a.path) && isText(a.old_string) && isText(a.new_string),
    shows: ["file_path", "path", "old_string", "new_string"],
    short: (a) => a.file_path ?? a.path,
    body: (a) => html`<${Edit} path=${a.file_path ?? a.path} before=${a.old_string} after=${a.new_string} />`,
  },
  {
    fits: (a) => isText(a.file_path ?? a.path) && isText(a.content),
    shows: ["file_path", "path", "content"],
    short: (a) => a.file_path ?? a.path,
    body: (a, whole) => html`<${LongText} text=${a.content} ...${most(whole, 14)} raw label="Content of the file" />`,
  },
  {
    fits: (a) => isText(a.pattern),
    shows: ["pattern", "path", "glob"],
    short: (a) => [a.pattern, a.path && `in ${a.path}`, a.glob && `(${a.glob})`].filter(isText).join(" "),
    body: () => null,
  },
  {
    fits: (a) => isText(a.file_path ?? a.path ?? a.url),
    shows: ["file_path", "path", "url"],
    short: (a) => a.file_path ?? a.path ?? a.url,
    body: () => null,
  },
  {
    fits: (a) => isText(a.task),
    shows: ["task"],
    short: () => null,
    body: (a, whole) => html`<${LongText} text=${a.task} ...${most(whole, 8)} raw class="wrap" label="Task of the subagent" />`,
  },
  { fits: () => true, shows: [], short: () => null, body: () => null },
];

// Who is asked about it has to see all of it, unless it is truly long.
const most = (whole, lines) => (whole ? { lines: 400, chars: 40_000 } : { lines });

const isOneLine = (text) => text.length <= INLINE_CHARS && !text.includes("\n");

/// The call in one line, or nothing where it takes more.
export function shortCall(args) {
  if (!args) return null;
  const short = SHAPES.find((shape) => shape.fits(args)).short(args);
  return short === null ? null : exact(short.slice(0, 300));
}

/// Everything that a call has. `whole` repeats what the line of the step says already;
/// `previewed` leaves out a change of a file, which is shown better by what it would make.
export function CallBody({ text, whole = false, previewed = false }) {
  const args = useMemo(() => parseArguments(text), [text]);
  if (text === "") return null;
  if (!args) {
    return html`<p class="faint">These are no plain JSON object, so here they are as they stand:</p>
      <${LongText} text=${text} raw label="Arguments" />`;
  }
  const shape = SHAPES.find((candidate) => candidate.fits(args));
  const rest = Object.entries(args).filter(([name, value]) => !shape.shows.includes(name) || !isText(value));
  const path = whole && !previewed && shape.shows[0] !== "command" ? shape.short(args) : null;
  return html`
    ${path && html`<p class="path"><code>${exact(path)}</code></p>`}
    ${!(previewed && shape.shows.includes("file_path")) && shape.body(args, whole)}
    ${rest.length > 0 && html`<${Rest} entries=${rest} />`}
  `;
}

function Rest({ entries }) {
  return html`<dl class="args">
    ${entries.map(([name, value]) => html`<div><dt>${exact(name)}</dt><dd><${Value} name=${name} value=${value} /></dd></div>`)}
  </dl>`;
}

function Value({ name, value }) {
  if (name === "timeout" && typeof value === "number") return html`<span>${duration(value)}</span>`;
  const text = isText(value) ? value : JSON.stringify(value, null, 1);
  if (isOneLine(text)) return html`<code>${exact(text)}</code>`;
  return html`<${LongText} text=${text} lines=${8} raw label=${name} />`;
}

function CommandText({ text, whole }) {
  return html`<${LongText} text=${text} ...${most(whole, 16)} raw class="wrap cmd" label="Command" />`;
}

function Edit({ path, before, after }) {
  const file = useMemo(() => editDiff(path, before, after), [path, before, after]);
  const isLong = file.added + file.removed > EDIT_LINES;
  return html`<div class="edit">${isLong && html`<${DiffCount} file=${file} />`}<${DiffLines} file=${file} most=${EDIT_LINES} /></div>`;
}
