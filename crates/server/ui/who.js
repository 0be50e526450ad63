// People, groups and the organisation, as one speaks of them, and what they may do in a session.
import { line } from "./text.js";

/// A person by their name; what is no person keeps the word that says so.
export const nameOf = (who) => line(who, 90).replace(/^person:/, "");

/// Somebody with whom something is shared, or who is asked.
export function withWhom(who) {
  const [kind, name] = line(who, 90).split(/:(.*)/s);
  if (kind === "org" && name) return `everybody in ${name}`;
  if (kind === "group" && name) return `group ${name}`;
  return nameOf(who);
}

/// Several in one phrase, of which the last may be how many more there are.
export function together(words, most = 3) {
  const shown = words.length > most ? [...words.slice(0, most - 1), `${words.length - most + 1} more`] : words;
  return shown.length < 2 ? shown.join("") : `${shown.slice(0, -1).join(", ")} and ${shown.at(-1)}`;
}

/// What somebody with whom a session is shared may do there.
export const ACCESS = { read: "to read", take_part: "to take part" };

/// Whose a session is, and how little one may do there; nothing where it is one's own.
export function whose(info, you) {
  if (!you || info.person === you) return null;
  const { speak, answer } = info.rights;
  return `${nameOf(info.person)}'s${speak ? "" : answer ? " · read and answer" : " · read only"}`;
}

/// Whether it waits for oneself: somebody has to answer, or to let it go on, and one may.
export const needsYou = ({ group, approvals, rights }) => group === "needs_you" && (approvals > 0 ? rights.answer : rights.speak);
