// The files of a sandbox, as they are at the moment: a tree, and one of them beside it.
import { get } from "./api.js";
import { CodeLine } from "./diffview.js";
import { html, useEffect, useLayoutEffect, useMemo, useRef, useState } from "./dom.js";
import { bytes, plural, when } from "./format.js";
import { Failure } from "./parts.js";
import { exact } from "./text.js";

const ROOT = "/workspace";
const LINES = 1000;
const NARROW_PX = 100;

/// `base`: their address; `what` they are, before the name of the folder. `read` promises what is
/// in one, and `acts` is drawn below its name, where there is anything to do.
export function Files({ base, what, read, acts }) {
  const [chosen, setChosen] = useState(null);
  // Another number asks for everything anew.
  const [look, setLook] = useState(0);
  const gone = () => {
    setChosen(null);
    setLook(look + 1);
  };
  return html`<section class="file-browser" aria-label="Files">
    <p class="tools"><span class="faint">${what} <code>${ROOT}</code>, as it is now.</span>
      <button class="quiet" onClick=${() => setLook(look + 1)}>Look again</button></p>
    <${Tree} key=${look} base=${base} chosen=${chosen} onChoose=${setChosen} />
    ${chosen
      ? html`<${FileView} key=${`${chosen.path} ${look}`} base=${base} file=${chosen} read=${read} acts=${acts} onGone=${gone} />`
      : html`<p class="faint file-none">Choose a file to see what is in it.</p>`}
  </section>`;
}

// Folders that were opened stay open when everything is read anew.
const opened = new Map();

function Tree({ base, chosen, onChoose }) {
  const [folders, setFolders] = useState(new Map());
  const [open, setOpen] = useState(opened.get(base) ?? new Set([ROOT]));
  const [at, setAt] = useState(0);
  const list = useRef(null);
  // Which row had the focus last.
  const focused = useRef(null);
  const rows = useMemo(() => rowsOf(folders, open), [folders, open]);
  const current = Math.min(at, rows.length - 1);

  const read = async (path) => {
    const found = await get(`${base}?path=${encodeURIComponent(path)}`).catch((error) => ({ error }));
    setFolders((was) => new Map(was).set(path, found));
  };
  const setIsOpen = (path, isOpen) => {
    const next = new Set(open);
    if (isOpen) next.add(path);
    else next.delete(path);
    opened.set(base, next);
    setOpen(next);
    if (isOpen && !(folders.get(path)?.data)) read(path);
  };
  useEffect(() => open.forEach(read), [base]);

  // A row that says that a folder is opened is gone once it is: what is in there has the focus then.
  useLayoutEffect(() => {
    const isGone = focused.current !== null && !rows.some((row) => row.key === focused.current);
    if (isGone && document.activeElement === document.body) list.current.children[current]?.focus();
  }, [rows]);

  const go = (to) => {
    setAt(to);
    list.current.children[to].focus();
  };
  const choose = (row) => {
    if (row.kind === "folder") setIsOpen(row.path, !open.has(row.path));
    else if (row.kind !== "note") onChoose(row);
  };
  const keys = {
    ArrowDown: () => go(Math.min(rows.length - 1, current + 1)),
    ArrowUp: () => go(Math.max(0, current - 1)),
    Home: () => go(0),
    End: () => go(rows.length - 1),
    ArrowRight: (row) => {
      if (row.kind !== "folder") return;
      if (open.has(row.path)) go(current + 1);
      else setIsOpen(row.path, true);
    },
    ArrowLeft: (row) => {
      if (row.kind === "folder" && open.has(row.path)) setIsOpen(row.path, false);
      else if (row.level > 1) go(rows.findLastIndex((other, n) => n < current && other.level < row.level));
    },
    Enter: choose,
    " ": choose,
  };
  const onKeyDown = (event) => {
    const does = keys[event.key];
    if (!does || event.ctrlKey || event.metaKey || event.altKey) return;
    event.preventDefault();
    event.stopPropagation();
    does(rows[current]);
  };
  return html`<ul class="tree" role="tree" ref=${list} aria-label=${`Files in ${ROOT}`} onKeyDown=${onKeyDown}>
    ${rows.map((row, n) => html`<${Item} key=${row.key} row=${row} isOpen=${open.has(row.path)} isChosen=${row.path === chosen?.path}
      isCurrent=${n === current} onFocus=${() => ((focused.current = row.key), setAt(n))} onClick=${() => choose(row)} />`)}
  </ul>`;
}

function Item({ row, isOpen, isChosen, isCurrent, onFocus, onClick }) {
  const isFolder = row.kind === "folder";
  const levels = { "aria-level": row.level, style: { "--level": row.level - 1 } };
  if (row.kind === "note") {
    return html`<li role="treeitem" class="tree-note" tabindex=${isCurrent ? 0 : -1} aria-disabled="true" ...${levels} onFocus=${onFocus}>${row.name}</li>`;
  }
  return html`<li role="treeitem" data-row tabindex=${isCurrent ? 0 : -1} ...${levels}
    aria-expanded=${isFolder ? isOpen : undefined} aria-selected=${isFolder ? undefined : isChosen} onFocus=${onFocus} onClick=${onClick}>
    <span class=${isFolder ? "chev" : "no-chev"} aria-hidden="true"></span>
    <code>${exact(row.name)}</code>
    <span class="tree-end">${isFolder ? "" : row.kind === "file" ? bytes(row.bytes) : row.kind}</span>
  </li>`;
}

// The tree as it is seen, from the top to the bottom.
function rowsOf(folders, open) {
  const rows = [];
  const note = (path, level, name) => rows.push({ kind: "note", key: `${path} note ${name}`, level, name });
  const walk = (path, level) => {
    const folder = folders.get(path);
    if (!folder) return note(path, level, "Opening…");
    if (folder.error) return note(path, level, `It can't be opened: ${exact(folder.error.message)}`);
    if (folder.data.length === 0) note(path, level, "Empty");
    for (const entry of folder.data) {
      const row = { ...entry, path: `${path}/${entry.name}`, level };
      rows.push({ ...row, key: row.path });
      if (entry.kind === "folder" && open.has(row.path)) walk(row.path, level + 1);
    }
    if (folder.more) note(path, level, "There are more, which are not shown");
    return undefined;
  };
  walk(ROOT, 1);
  return rows;
}

function FileView({ base, file, read, acts: Acts, onGone }) {
  const [content, setContent] = useState(null);
  const [error, setError] = useState(null);
  const view = useRef(null);
  useEffect(() => {
    // Where it stands below the tree and not beside it.
    if (view.current.offsetLeft < NARROW_PX) view.current.scrollIntoView({ block: "start" });
    const content = () => (read ? read(file) : get(`${base}/content?path=${encodeURIComponent(file.path)}`));
    if (file.kind !== "other") content().then(setContent, setError);
  }, []);
  return html`<section ref=${view} class="file file-view" aria-label="Content of the file">
    <h2 class="file-head"><code>${exact(file.path)}</code></h2>
    <p class="file-facts faint">${bytes(content?.bytes ?? file.bytes)}, changed ${when(file.modified_ms)}</p>
    ${Acts && html`<${Acts} file=${file} onGone=${onGone} />`}
    <${Failure} error=${error} />
    ${file.kind === "other" && html`<p class="file-facts">This is neither a file nor a folder, so it has no content.</p>`}
    ${!content && !error && file.kind !== "other" && html`<p class="file-facts loading">Reading it…</p>`}
    ${content && html`<${Content} content=${content} />`}
  </section>`;
}

function Content({ content }) {
  const [most, setMost] = useState(LINES);
  const { path, text } = content;
  const lines = useMemo(() => (text ?? "").replace(/\n$/, "").split("\n"), [text]);
  if (text === null || text === undefined) return html`<p class="file-facts">Its content is not text, so it is not shown.</p>`;
  if (text === "") return html`<p class="file-facts">The file is empty.</p>`;
  const rest = lines.length - most;
  return html`
    <div class="diff lines" tabindex="0" role="group" aria-label=${`Content of ${exact(path)}, ${plural(lines.length, "line")}`}>
      <div class="diff-in">${lines.slice(0, most).map((line, n) => html`<${CodeLine} row=${{ sign: " ", text: line, new: n + 1 }} />`)}</div>
    </div>
    ${rest > 0 && html`<button class="quiet" onClick=${() => setMost(most + LINES * 5)}>Show more (${plural(rest, "line")} hidden)</button>`}
    ${content.hidden_bytes > 0 && html`<p class="file-facts">It is cut off here: ${bytes(content.hidden_bytes)} more are not shown.</p>`}
  `;
}
