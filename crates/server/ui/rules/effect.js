// Why an effect was permitted, asked about or forbidden: as it was judged then, and as it is now.
import { html } from "../dom.js";
import { useFetched } from "../fetched.js";
import { Failure } from "../parts.js";
import { Asked, Explained, Names } from "./explained.js";
import { Says } from "./rule.js";

export function EffectRules({ session, seq }) {
  const { value, error } = useFetched(`/v1/sessions/${encodeURIComponent(session)}/effects/${seq}/rules`);
  if (error) return html`<${Failure} error=${error} />`;
  if (!value) return html`<p class="loading">Asking the rules…</p>`;
  const { now, then, situation } = value;
  const isSame = then && then.rule_set === now.rule_set && then.ruling === now.ruling;
  return html`
    <${Asked} situation=${situation} />
    ${then && !isSame && html`<p><strong>Then:</strong> <${Says} what=${then.ruling} /> ${then.rules.length > 0 ? html`by <${Names} of=${then.rules} />` : "by no rule"}</p>
      <p class="faint">${then.rule_set === now.rule_set ? "The rules are the same now, and the situation is another." : "The rules are others now."}</p>`}
    <${Explained} found=${now} when=${isSame ? "Then and now" : "Now"} />`;
}
