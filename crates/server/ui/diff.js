// Unified diffs, read into files, hunks and lines; and the difference of two short texts.

const LCS_LINES_MAX = 600;

/// The files of a unified diff. What it does not understand it keeps as lines without a sign.
export function parseDiff(patch) {
  const files = [];
  let file = null;
  let hunk = null;
  const begin = () => {
    file = { path: "", hunks: [], added: 0, removed: 0, notes: [] };
    hunk = null;
    files.push(file);
  };
  for (const row of patch.split("\n")) {
    if (hunk && hunk.oldLeft + hunk.newLeft > 0 && /^[ +\-\\]|^$/.test(row)) {
      hunkRow(file, hunk, row);
    } else if (row.startsWith("diff --git ")) {
      begin();
      file.path = gitPath(row);
    } else if (row.startsWith("--- ")) {
      if (!file || file.hunks.length) begin();
      if (!row.startsWith("--- /dev/null")) file.path = namedPath(row) || file.path;
    } else if (row.startsWith("+++ ")) {
      if (file && !row.startsWith("+++ /dev/null")) file.path = namedPath(row) || file.path;
    } else if (row.startsWith("@@")) {
      if (!file) begin();
      hunk = hunkOf(row);
      file.hunks.push(hunk);
    } else if (row.startsWith("\\")) {
      hunk?.lines.push({ sign: "\\", text: row });
    } else if (file && row && !row.startsWith("index ")) {
      file.notes.push(row);
    }
  }
  return files;
}

function gitPath(row) {
  const both = row.slice("diff --git ".length);
  const at = both.indexOf(" b/");
  return at < 0 ? both : both.slice(at + 3);
}

function namedPath(row) {
  return row.slice(4).split("\t")[0].replace(/^[ab]\//, "");
}

function hunkOf(row) {
  const found = /^@@ -(\d+)(?:,(\d+))? \+(\d+)(?:,(\d+))? @@ ?(.*)/.exec(row);
  const n = (at, otherwise) => (found?.[at] === undefined ? otherwise : Number(found[at]));
  return {
    title: found?.[5] ?? row,
    oldAt: n(1, 1),
    newAt: n(3, 1),
    oldLeft: n(2, 1),
    newLeft: n(4, 1),
    lines: [],
  };
}

function hunkRow(file, hunk, row) {
  const sign = row[0] ?? " ";
  const text = row.slice(1);
  if (sign === "\\") {
    hunk.lines.push({ sign, text: row });
    return;
  }
  const line = { sign, text };
  if (sign !== "+") {
    line.old = hunk.oldAt++;
    hunk.oldLeft -= 1;
  }
  if (sign !== "-") {
    line.new = hunk.newAt++;
    hunk.newLeft -= 1;
  }
  if (sign === "+") file.added += 1;
  if (sign === "-") file.removed += 1;
  hunk.lines.push(line);
}

/// One file whose text was replaced: what an edit's old and new text differ in.
export function editDiff(path, before, after) {
  const a = linesOf(before);
  const b = linesOf(after);
  const lines = a.length > LCS_LINES_MAX || b.length > LCS_LINES_MAX ? replaced(a, b) : common(a, b);
  const count = (sign) => lines.filter((line) => line.sign === sign).length;
  return { path, hunks: [{ title: "", lines }], added: count("+"), removed: count("-"), notes: [] };
}

// A line break ends a line; it does not begin another one.
const linesOf = (text) => (text === "" ? [] : text.replace(/\n$/, "").split("\n"));

const replaced = (a, b) => [...a.map((text) => ({ sign: "-", text })), ...b.map((text) => ({ sign: "+", text }))];

// The longest common subsequence of lines, by the table that everybody knows.
function common(a, b) {
  const width = b.length + 1;
  const best = new Uint16Array((a.length + 1) * width);
  for (let i = a.length - 1; i >= 0; i -= 1) {
    for (let j = b.length - 1; j >= 0; j -= 1) {
      const at = i * width + j;
      best[at] = a[i] === b[j] ? best[at + width + 1] + 1 : Math.max(best[at + width], best[at + 1]);
    }
  }
  const lines = [];
  let i = 0;
  let j = 0;
  while (i < a.length || j < b.length) {
    const at = i * width + j;
    if (i < a.length && j < b.length && a[i] === b[j]) {
      lines.push({ sign: " ", text: a[i++] });
      j += 1;
    } else if (j >= b.length || (i < a.length && best[at + width] >= best[at + 1])) {
      lines.push({ sign: "-", text: a[i++] });
    } else {
      lines.push({ sign: "+", text: b[j++] });
    }
  }
  return lines;
}
