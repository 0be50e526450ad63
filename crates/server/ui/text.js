// Text that a model, a command or a file wrote, made fit to be looked at.
//
// It is hostile until proven otherwise: it never becomes markup, and what can't be seen is
// written out, so that what a person reads is what is there.

// Controls, bidi and zero-width characters, fillers, tags: all that has no shape of its own.
const UNSEEN =
  /[\u0000-\u0008\u000b-\u001f\u007f-\u009f\u00ad\u034f\u061c\u115f\u1160\u17b4\u17b5\u180b-\u180f\u200b-\u200f\u2028-\u202e\u2060-\u206f\u3164\ufe00-\ufe0d\ufeff\uffa0\ufff9-\ufffb]|\udb40[\udc00-\uddef]|[\ud800-\udbff](?![\udc00-\udfff])/g;
// Joiners inside of words belong to scripts that need them, and to pictures of people.
const JOINERS = /[\u200c\u200d]/;
const ANSI =
  /\u001b\[[0-?]*[ -/]*[@-~]|\u001b[\]PX^_][^\u0007\u001b]*(?:\u0007|\u001b\\)|\u001b[ -/]*[0-~]|\u009b[0-?]*[ -/]*[@-~]/g;

/// Exactly what is there, everything unseen written out. For what is done or asked about.
export function exact(text) {
  return String(text).replace(UNSEEN, named);
}

/// Prose: colours of terminals are left out, the rest that is unseen is written out.
export function plain(text) {
  const bare = String(text).replace(ANSI, "").replace(/\r\n?/g, "\n");
  return bare.replace(UNSEEN, (found) => (JOINERS.test(found) ? found : named(found)));
}

/// One line of it, at most so many characters long.
export function line(text, most = 200) {
  const cut = String(text).slice(0, most * 4);
  const flat = plain(cut).replace(/\s+/g, " ").trim();
  return flat.length > most ? `${flat.slice(0, most - 1)}…` : flat;
}

function named(found) {
  const hex = found.codePointAt(0).toString(16).toUpperCase().padStart(4, "0");
  return `\u27e8U+${hex}\u27e9`;
}

/// The number of lines.
export function lineCount(text) {
  let count = 1;
  for (let at = text.indexOf("\n"); at >= 0; at = text.indexOf("\n", at + 1)) count += 1;
  return text.endsWith("\n") ? count - 1 : count;
}

/// Where the first `lines` lines end, or `chars` characters if that is sooner.
export function cutAt(text, lines, chars) {
  let at = -1;
  for (let n = 0; n < lines; n += 1) {
    at = text.indexOf("\n", at + 1);
    if (at < 0 || at > chars) break;
  }
  return Math.min(at < 0 ? text.length : at, chars, text.length);
}

/// The end of it: the last `lines` lines, or `chars` characters if that is less.
export function tail(text, lines, chars) {
  const last = text.slice(-chars);
  const rows = last.split("\n");
  return rows.slice(-lines).join("\n");
}
