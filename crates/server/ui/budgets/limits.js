// Says what an account may spend.
import { put } from "../api.js";
import { html, useState } from "../dom.js";
import { useAction } from "../fetched.js";
import { Failure } from "../parts.js";
import { accountPath, nameOf } from "./names.js";

// What is typed is so many of what the server counts.
const MEASURES = [
  ["money_nanos", "Dollars", 1e9],
  ["tokens", "Tokens", 1],
  ["steps", "Steps", 1],
  ["wall_ms", "Seconds in turns", 1000],
  ["cpu_ms", "Seconds of processors", 1000],
  ["egress_bytes", "Megabytes sent", 1024 ** 2],
];
const KINDS = [["limit", "At most"], ["soft", "A person is asked from"]];
const PERIODS = [["", "Never"], ["day", "Each day (UTC)"], ["month", "Each month (UTC)"]];

export function LimitsForm({ info, onDone }) {
  const [before] = useState(() => saidOf(info));
  const [said, setSaid] = useState(before);
  const { busy, error, act } = useAction();
  const write = (key) => (event) => setSaid({ ...said, [key]: event.target.value });
  const isSame = Object.keys(before).every((key) => before[key] === said[key]);
  const save = (event) => {
    event.preventDefault();
    act(async () => {
      await put(accountPath(info.account), bodyOf(said, before));
      await onDone(`${nameOf(info.account)}: the limits are set.`);
    });
  };
  return html`<form class="limits-form" aria-label=${`Limits of ${nameOf(info.account)}`} onSubmit=${save} autocomplete="off">
    <table><thead><tr><td></td>${KINDS.map(([, title]) => html`<th scope="col">${title}</th>`)}</tr></thead>
      <tbody>${MEASURES.map(([measure, title, unit]) => html`<tr><th scope="row">${title}</th>
        ${KINDS.map(([kind, of]) => html`<td><input type="number" min="0" max=${Math.floor(Number.MAX_SAFE_INTEGER / unit)} step=${unit === 1 ? "1" : "any"} aria-label=${`${title}: ${of.toLowerCase()}`} value=${said[`${kind} ${measure}`]} onInput=${write(`${kind} ${measure}`)} /></td>`)}</tr>`)}</tbody></table>
    <label class="field">Counted anew<select value=${said.period} onChange=${write("period")}>${PERIODS.map(([value, title]) => html`<option value=${value}>${title}</option>`)}</select></label>
    <p class="faint">Where a field is empty, the configuration of the server holds; where that says nothing, there is no limit.</p>
    <p class="tools"><button class="primary" type="submit" disabled=${busy || isSame}>${busy ? "Setting…" : "Set the limits"}</button></p>
    <${Failure} error=${error} />
  </form>`;
}

function saidOf({ measures, period }) {
  const said = { period: period ?? "" };
  for (const [measure, , unit] of MEASURES) {
    const found = measures.find((one) => one.measure === measure);
    for (const [kind] of KINDS) said[`${kind} ${measure}`] = found?.[kind] === undefined ? "" : `${found[kind] / unit}`;
  }
  return said;
}

// Only what is otherwise is said, so that what the configuration says is not made this account's own.
// What is taken away can't be said alone: then all of it is said anew.
function bodyOf(said, before) {
  const anew = Object.keys(before).some((key) => before[key] !== "" && said[key] === "");
  const isSaid = (key) => said[key] !== "" && (anew || said[key] !== before[key]);
  const body = anew ? { clear: true } : {};
  if (isSaid("period")) body.period = said.period;
  for (const [kind] of KINDS) {
    const own = MEASURES.filter(([measure]) => isSaid(`${kind} ${measure}`));
    body[kind] = Object.fromEntries(own.map(([measure, , unit]) => [measure, Math.round(Number(said[`${kind} ${measure}`]) * unit)]));
  }
  return body;
}
