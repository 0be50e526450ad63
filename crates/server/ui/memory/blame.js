// Who wrote which line of an entry.
import { html, useState } from "../dom.js";
import { useFetched } from "../fetched.js";
import { number } from "../format.js";
import { Failure } from "../parts.js";
import { sessionPath } from "../router.js";
import { exact, line } from "../text.js";

const ROWS = 500;

export function Blame({ path }) {
  const { value, error } = useFetched(`/v1/memory/blame?path=${encodeURIComponent(path)}`);
  const [most, setMost] = useState(ROWS);
  if (error) return html`<${Failure} error=${error} />`;
  if (!value) return html`<p class="loading">Looking who wrote what…</p>`;
  const rest = value.lines.length - most;
  return html`
    <div class="scroll" tabindex="0" role="group" aria-label="Who wrote which line"><table class="blame">
      <thead><tr><th class="num">Line</th><th>Revision</th><th>Who</th><th>Text</th></tr></thead>
      <tbody>${value.lines.slice(0, most).map((row, at) => html`<${Row} row=${row} at=${at} isSame=${at > 0 && value.lines[at - 1].revision === row.revision} />`)}</tbody>
    </table></div>
    ${rest > 0 && html`<button class="quiet" onClick=${() => setMost(most + ROWS * 4)}>Show more (${number(rest)} hidden)</button>`}`;
}

// What is the same as above is said once to those who see it, and always to those who hear it.
function Row({ row, at, isSame }) {
  const who = `${line(row.author, 40)}${row.agent ? `, ${line(row.agent, 40)}` : ""}`;
  const quiet = isSame ? "unseen" : "";
  return html`<tr class=${isSame ? "same" : ""}>
    <td class="num faint">${at + 1}</td>
    <td><span class=${quiet}>${row.revision}, ${new Date(row.at_ms).toLocaleDateString()}</span></td>
    <td><span class=${quiet}>${row.session && !isSame ? html`<a href=${sessionPath(row.session)}>${who}</a>` : who}</span></td>
    <td><code>${exact(row.line)}</code></td>
  </tr>`;
}
