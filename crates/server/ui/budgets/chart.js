// A bar for each day, drawn as elements, with all of it as a table for who does not see it.
import { html, useState } from "../dom.js";
import { money, plural, tokens } from "../format.js";
import { Disclosure } from "../parts.js";

const WIDTH_MAX = 720;
const WIDTH_MIN = 300;
const HEIGHT = 180;
const LEFT = 60;
const TOP = 12;
const BOTTOM = 24;
const LINES = 4;

const MEASURES = [
  ["nanos", "Money", money],
  ["tokens", "Tokens", tokens],
];

/// `days`: each with `at_ms`, `tokens`, `nanos` and `sessions`, the oldest first.
export function DailyChart({ days, note }) {
  const hasMoney = days.some((day) => day.nanos > 0);
  const [chosen, setChosen] = useState(null);
  const [name, title, write] = MEASURES.find(([one]) => one === (chosen ?? (hasMoney ? "nanos" : "tokens")));
  return html`<figure class="chart">
    <div class="tools" role="group" aria-label="What is plotted">
      ${MEASURES.map(([one, label]) => html`<label class="chip"><input type="radio" name="measure" checked=${one === name} onChange=${() => setChosen(one)} /> ${label}</label>`)}
    </div>
    <${Bars} days=${days} name=${name} title=${title} write=${write} />
    <figcaption class="faint">${title} by day. ${note}</figcaption>
    <${Disclosure} title="The same as a table"><${Table} days=${days} /></${Disclosure}>
  </figure>`;
}

function Bars({ days, name, title, write }) {
  const top = ceiling(Math.max(...days.map((day) => day[name])));
  // One unit is about one pixel, also where there is little room, so that what is written can be read.
  const width = Math.min(WIDTH_MAX, Math.max(WIDTH_MIN, window.innerWidth - 60));
  const lane = (width - LEFT) / days.length;
  const y = (value) => TOP + (HEIGHT - TOP - BOTTOM) * (1 - value / top);
  const sum = days.reduce((all, day) => all + day[name], 0);
  const levels = Array.from({ length: LINES + 1 }, (_, n) => (top / LINES) * n);
  return html`<svg viewBox=${`0 0 ${width} ${HEIGHT}`} role="img" aria-label=${`${title} by day: ${write(sum)} in ${plural(days.length, "day")}. The table below has every day.`}>
    ${levels.map((level) => html`<line class="grid" x1=${LEFT} x2=${width} y1=${y(level)} y2=${y(level)} />
      <text class="axis" x=${LEFT - 8} y=${y(level) + 4} text-anchor="end">${write(level)}</text>`)}
    ${days.map((day, at) => html`<rect class="day" x=${LEFT + lane * at + lane * 0.15} width=${lane * 0.7} y=${y(day[name])} height=${Math.max(day[name] > 0 ? 1 : 0, y(0) - y(day[name]))} rx="2">
      <title>${`${dayName(day)}: ${write(day[name])}, ${plural(day.sessions, "session")}`}</title></rect>`)}
    ${days.map((day, at) => (days.length - 1 - at) % 7 === 0 && html`<text class="axis" x=${at === days.length - 1 ? width : LEFT + lane * (at + 0.5)} y=${HEIGHT - 6} text-anchor=${at === days.length - 1 ? "end" : "middle"}>${dayName(day)}</text>`)}
  </svg>`;
}

// The next number above that people divide by four easily.
function ceiling(value) {
  if (value <= 0) return 1;
  const power = 10 ** Math.floor(Math.log10(value));
  return [1, 2, 4, 8, 10].map((step) => step * power).find((step) => step >= value);
}

const dayName = ({ at_ms: at }) => new Date(at).toLocaleDateString([], { month: "short", day: "numeric" });

function Table({ days }) {
  return html`<div class="scroll" tabindex="0" role="group" aria-label="Spent by day"><table>
    <thead><tr><th>Day</th><th class="num">Money</th><th class="num">Tokens</th><th class="num">Sessions</th></tr></thead>
    <tbody>${days.toReversed().map((day) => html`<tr><td>${dayName(day)}</td><td class="num">${money(day.nanos)}</td><td class="num">${tokens(day.tokens)}</td><td class="num">${day.sessions}</td></tr>`)}</tbody>
  </table></div>`;
}
