// What the rules say of a situation, and which of them say it to whom.
import { html } from "../dom.js";
import { line, plain } from "../text.js";
import { RuleList, Says, approversOf } from "./rule.js";

/// Somebody who is judged: a person, an agent, the organisation.
const subject = (who) => line(who, 90).replace(/^person:/, "").replace(/^(agent|group):/, "$1 ").replace(/^org(anisation)?:/, "the organisation ");

/// A situation, as a question that they answered.
export function Asked({ situation }) {
  const { action, resource, person, speakers = [], agent, labels = [] } = situation;
  const people = [person, ...speakers].filter(Boolean).map(subject).join(" and ");
  const on = [people, agent && subject(agent)].filter(Boolean).join(" with ");
  return html`<p class="asked-situation"><code>${line(action, 40)}</code> <code>${line(resource, 300)}</code>${on && ` for ${on}`}${labels.map((label) => html` <span class="tag">${line(label, 80)}</span>`)}</p>`;
}

/// `when`: which judgement it is, where there may be another.
export function Explained({ found, when }) {
  const { ruling, why, approvers, rules, subjects } = found;
  return html`
    <p role="status">${when && html`<strong>${when}:</strong> `}<${Says} what=${ruling} /> ${plain(why)}</p>
    ${approvers.length > 0 && html`<p>May be approved by ${approversOf(approvers)}.</p>`}
    ${rules.length > 0 && html`<${RuleList} rules=${rules} label="The rules that decide" />`}
    ${subjects.length > 0 && html`<div class="scroll" tabindex="0" role="group" aria-label="Each who is judged"><table class="subjects">
      <thead><tr><th scope="col">Who is judged</th><th scope="col">Permitted by</th><th scope="col">Held back by</th></tr></thead>
      <tbody>${subjects.map((one) => html`<tr><th scope="row">${subject(one.who)}</th>
        <td>${one.permitted_by.length > 0 ? html`<${Names} of=${one.permitted_by} />` : html`<span class="bad">no rule</span>`}</td>
        <td>${one.held_by.length > 0 ? html`<${Names} of=${one.held_by} />` : "nothing"}</td></tr>`)}</tbody>
    </table></div>`}`;
}

/// Names of rules, one after another.
export const Names = ({ of }) => of.map((name) => html`<code>${line(name, 120)}</code> `);
