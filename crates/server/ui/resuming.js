// Lets a session go on with other limits, once those that it had are used up.
import { html, useState } from "./dom.js";
import { duration, money, number, tokens } from "./format.js";

// What is typed is so many of what the server counts.
const LIMITS = [
  ["money_nanos", "Dollars, all together", 1e9, money],
  ["tokens", "Tokens, all together", 1, tokens],
  ["steps", "Steps of a turn", 1, number],
  ["wall_ms", "Seconds in turns, all together", 1000, duration],
];

export function Resuming({ usage, onResume, onKeep }) {
  const [said, setSaid] = useState({});
  const [busy, setBusy] = useState(false);
  const named = LIMITS.filter(([measure]) => said[measure]);
  const resume = (event) => {
    event.preventDefault();
    setBusy(true);
    const limits = named.map(([measure, , unit]) => [`${measure}_max`, Math.round(Number(said[measure]) * unit)]);
    onResume({ limits: Object.fromEntries(limits) }).catch(() => setBusy(false));
  };
  return html`<form class="sharing" aria-label="Go on with other limits" onSubmit=${resume} autocomplete="off">
    <p>What it may use from now on. What stays empty is as it was; the configuration and the budgets hold above it.</p>
    <div class="amounts">${LIMITS.map(([measure, title, unit, write]) => html`<label class="field">${title}${told(usage, measure, write)}
      <input type="number" min="0" step=${unit === 1 ? "1" : "any"} value=${said[measure] ?? ""} onInput=${(event) => setSaid({ ...said, [measure]: event.target.value })} /></label>`)}</div>
    <p class="tools"><button class="primary" type="submit" disabled=${busy || named.length === 0}>${busy ? "Resuming…" : "Go on with these"}</button>
      <button class="quiet" type="button" onClick=${onKeep}>Leave it</button></p>
  </form>`;
}

// What is used, of how much. Steps of other turns say nothing about the next one.
function told(usage, measure, write) {
  const [used, most] = [usage[measure], usage[`${measure}_max`]];
  if (used === undefined || used === null || measure === "steps") return "";
  return html` <span class="faint">(${write(used)}${most ? ` of ${write(most)}` : ""} used)</span>`;
}
