// The rules that are in force, a way to ask them something, and what sandboxes reached under them.
import { html, useState } from "../dom.js";
import { useFetched } from "../fetched.js";
import { plural } from "../format.js";
import { CopyButton, Failure, Tabs, tabOf } from "../parts.js";
import { route } from "../router.js";
import { useStore } from "../store.js";
import { EgressList } from "./egress.js";
import { line, plain } from "../text.js";
import { ExplainForm } from "./form.js";
import { RuleList } from "./rule.js";

const TABS = [
  ["rules", "Rules"],
  ["ask", "What would they say?"],
  ["egress", "What was reached"],
];

const PARTS = { rules: InForce, ask: ExplainForm, egress: EgressList };

export function RulesPage() {
  const { hash } = useStore(route);
  const tab = tabOf(TABS, hash);
  return html`
    <${Tabs} tabs=${TABS} tab=${tab} label="Parts of the rules" />
    <div id="panel" role="tabpanel" aria-labelledby=${`tab-${tab}`}>
      <${PARTS[tab]} />
    </div>`;
}

function InForce() {
  const { value, error } = useFetched("/v1/rules");
  const [words, setWords] = useState("");
  if (error) return html`<${Failure} error=${error} />`;
  if (!value) return html`<p class="loading">Reading the rules…</p>`;
  const found = value.data.filter((rule) => fits(rule, words));
  return html`
    ${value.warnings.map((warning) => html`<p class="warning" role="note">${plain(warning)}</p>`)}
    <form role="search" class="search" onSubmit=${(event) => event.preventDefault()}>
      <label class="field">Show those with
        <input type="text" value=${words} maxlength="200" placeholder="ask, egress, group:ops" autocapitalize="off" spellcheck=${false} onInput=${(event) => setWords(event.target.value)} /></label>
    </form>
    <p class="lead rule-count" role="status">${found.length === value.data.length ? plural(found.length, "rule") : `${found.length} of ${plural(value.data.length, "rule")}`}</p>
    ${found.length > 0 && html`<${RuleList} rules=${found} label="Rules" />`}
    <p class="faint after">Forbid wins over ask, and ask over permit; what no rule permits is forbidden. Rules come with the program, and from the files that <code>policy.files</code> of the configuration names. This set is <code>${line(value.rule_set, 12)}</code> <${CopyButton} text=${value.rule_set} label="Copy" /></p>`;
}

// Every word is somewhere in it.
function fits(rule, words) {
  const text = [rule.id, rule.says, rule.reason, rule.file, rule.text, ...rule.approvers, ...rule.escalates].join("\n").toLowerCase();
  return words.toLowerCase().split(/\s+/).every((word) => text.includes(word));
}
