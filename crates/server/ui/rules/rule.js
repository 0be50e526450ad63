// One rule: what it says in a line, and the rest where somebody opens it.
import { html } from "../dom.js";
import { Disclosure, LongText } from "../parts.js";
import { line, plain } from "../text.js";
import { together, withWhom } from "../who.js";

const WORDS = { permit: "permit", ask: "ask", forbid: "forbid" };

/// What was said, in a word; its colour is beside the word, never instead of it.
export const Says = ({ what }) => html`<span class=${`says ${WORDS[what] ?? ""}`}>${line(what, 20)}</span>`;

/// Who may approve something.
export const approversOf = (names) => together(names.map((name) => (name === "anyone" ? "anyone who may speak in the session" : withWhom(name))), 9);

export function RuleList({ rules, label }) {
  return html`<ul class="entries rule-list" aria-label=${label}>${rules.map((rule) => html`<${Rule} key=${`${rule.file} ${rule.line} ${rule.id}`} rule=${rule} />`)}</ul>`;
}

function Rule({ rule }) {
  const { id, says, reason, approvers, escalates, file, text } = rule;
  const title = html`<${Says} what=${says} /> <code>${line(id, 120)}</code>${reason && html` <span class="rule-reason">${line(reason, 300)}</span>`}`;
  return html`<li data-row tabindex="-1"><${Disclosure} title=${title} class="rule">
    ${reason.length > 300 && html`<p>${plain(reason)}</p>`}
    ${approvers.length > 0 && html`<p>May be approved by ${approversOf(approvers)}${escalates.length > 0 && html`; once it has waited, also by ${approversOf(escalates)}`}.</p>`}
    <${LongText} text=${text} lines=${60} raw class="wrap" label=${`The rule ${line(id, 120)}`} />
    <p class="faint"><code>${line(file, 200)}</code>, line ${rule.line}</p>
  </${Disclosure}></li>`;
}
