// The part of Markdown that models write, as nodes. Never as markup: there is no path from a
// text to HTML here, and a link is one only if it leads to http or https.
import { html, useState } from "./dom.js";
import { exact, plain } from "./text.js";

const CHARS_MAX = 40_000;
const DEPTH_MAX = 5;

export function Markdown({ text }) {
  const [all, setAll] = useState(false);
  const shown = all ? text : text.slice(0, CHARS_MAX);
  return html`<div class="prose">
    ${blocks(plain(shown).split("\n"), 0)}
    ${shown.length < text.length &&
    html`<button class="quiet" onClick=${() => setAll(true)}>Show all of it</button>`}
  </div>`;
}

/// Lines to blocks, one kind after another.
function blocks(lines, depth) {
  const out = [];
  let at = 0;
  while (at < lines.length) {
    const reader = READERS.find((r) => r.begins.test(lines[at]));
    const [node, next] = (reader?.read ?? paragraph)(lines, at, depth);
    if (node) out.push(node);
    at = next;
  }
  return out;
}

const ITEM = /^(\s*)([-*+]|\d{1,9}[.)])\s+(.*)$/;
const FENCE = /^\s{0,3}(`{3,}|~{3,})\s*([\w+#.-]*)/;
const RULE = /^\s{0,3}([-*_])(\s*\1){2,}\s*$/;
const TABLE = /^\s*\|.*\|\s*$/;

const READERS = [
  { begins: /^\s*$/, read: (lines, at) => [null, at + 1] },
  { begins: FENCE, read: fence },
  { begins: /^#{1,6}\s+\S/, read: heading },
  { begins: RULE, read: (lines, at) => [html`<hr />`, at + 1] },
  { begins: /^\s{0,3}>/, read: quote },
  { begins: ITEM, read: list },
  { begins: TABLE, read: table },
];

function fence(lines, at) {
  const mark = FENCE.exec(lines[at])[1];
  let end = at + 1;
  while (end < lines.length && !lines[end].trim().startsWith(mark)) end += 1;
  return [html`<pre class="code" tabindex="0" role="group" aria-label="Code"><code>${lines.slice(at + 1, end).join("\n")}</code></pre>`, end + 1];
}

// A heading of the model is none of the page: it looks like one, and is not in its outline.
function heading(lines, at) {
  const [, marks, text] = /^(#{1,6})\s+(.*?)\s*#*$/.exec(lines[at]);
  return [html`<p class=${`head head-${Math.min(3, marks.length)}`}>${inline(text)}</p>`, at + 1];
}

function quote(lines, at, depth) {
  let end = at;
  while (end < lines.length && /^\s{0,3}>/.test(lines[end])) end += 1;
  const inner = lines.slice(at, end).map((line) => line.replace(/^\s{0,3}> ?/, ""));
  return [html`<blockquote>${depth < DEPTH_MAX ? blocks(inner, depth + 1) : inner.join("\n")}</blockquote>`, end];
}

function list(lines, at, depth) {
  const [, space, mark] = ITEM.exec(lines[at]);
  const indent = space.length;
  const ordered = /\d/.test(mark);
  const items = [];
  let end = at;
  while (end < lines.length) {
    const found = ITEM.exec(lines[end]);
    const deeper = /^\s*/.exec(lines[end])[0].length > indent;
    if (found && found[1].length <= indent) {
      if (found[1].length < indent || /\d/.test(found[2]) !== ordered) break;
      items.push([found[3]]);
    } else if (items.length && (deeper || (lines[end].trim() === "" && continues(lines, end + 1, indent)))) {
      items.at(-1).push(lines[end].slice(Math.min(indent + 2, lines[end].length)));
    } else break;
    end += 1;
  }
  const body = items.map((item) => html`<li>${itemBody(item, depth)}</li>`);
  const first = ordered ? parseInt(mark, 10) : undefined;
  return [ordered ? html`<ol start=${first}>${body}</ol>` : html`<ul>${body}</ul>`, Math.max(end, at + 1)];
}

const continues = (lines, at, indent) =>
  at < lines.length && (/^\s*/.exec(lines[at])[0].length > indent || ITEM.test(lines[at])) && lines[at].trim() !== "";

function itemBody(item, depth) {
  if (item.length === 1 || depth >= DEPTH_MAX) return inline(item.join("\n"));
  const rest = item.slice(1);
  return [inline(item[0]), ...blocks(rest, depth + 1)];
}

function table(lines, at) {
  let end = at;
  while (end < lines.length && TABLE.test(lines[end])) end += 1;
  const rows = lines.slice(at, end).map((line) => line.trim().slice(1, -1).split("|"));
  const isRule = (row) => row.every((cell) => /^\s*:?-+:?\s*$/.test(cell));
  if (rows.length < 2 || !isRule(rows[1])) return paragraph(lines, at);
  const cells = (row, Tag) => row.map((cell) => html`<${Tag}>${inline(cell.trim())}</${Tag}>`);
  return [
    html`<div class="scroll" tabindex="0" role="group" aria-label="Table"><table>
      <thead><tr>${cells(rows[0], "th")}</tr></thead>
      <tbody>${rows.slice(2).map((row) => html`<tr>${cells(row, "td")}</tr>`)}</tbody>
    </table></div>`,
    end,
  ];
}

function paragraph(lines, at) {
  let end = at + 1;
  while (end < lines.length && !READERS.some((r) => r.begins.test(lines[end]))) end += 1;
  return [html`<p>${inline(lines.slice(at, end).join("\n"))}</p>`, end];
}

// Each alternative is bounded, so that no text makes it slow.
const INLINE =
  /(`{1,3})([^`]{1,2000})\1|\*\*([^*\n]{1,1000})\*\*|\*([^*\s][^*\n]{0,500})\*|(?<![\w])_([^_\s][^_\n]{0,500})_(?!\w)|!?\[([^\]\n]{0,500})\]\(([^)\s]{1,2000})\)|(https?:\/\/[^\s<>()"'`]{1,2000})/g;

function inline(text) {
  const out = [];
  let from = 0;
  for (const found of text.matchAll(INLINE)) {
    if (found.index > from) out.push(text.slice(from, found.index));
    out.push(span(found));
    from = found.index + found[0].length;
  }
  if (from < text.length) out.push(text.slice(from));
  return out;
}

function span([whole, , code, bold, italic, underline, label, target, bare]) {
  if (code !== undefined) return html`<code>${code}</code>`;
  if (bold !== undefined) return html`<strong>${bold}</strong>`;
  if (italic !== undefined || underline !== undefined) return html`<em>${italic ?? underline}</em>`;
  const end = bare ? bare.replace(/[.,;:!?]+$/, "") : null;
  if (bare) return [link(end, end), bare.slice(end.length)];
  return link(label || target, target) ?? whole;
}

// The host is said beside the words, so that a link can't pretend to lead elsewhere.
function link(label, target) {
  let url;
  try {
    url = new URL(target);
  } catch {
    return null;
  }
  if (url.protocol !== "https:" && url.protocol !== "http:") return null;
  const said = label === target ? null : html`<span class="host"> (${exact(url.host)})</span>`;
  return html`<a href=${url.href} target="_blank" rel="noopener noreferrer">${label}</a>${said}`;
}
