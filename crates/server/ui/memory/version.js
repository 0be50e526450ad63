// One version of an entry, as it is named in several places: who wrote it, when, through what.
import { html } from "../dom.js";
import { when } from "../format.js";
import { sessionPath } from "../router.js";
import { line } from "../text.js";

const VIA = { tool: "with a tool", sandbox: "as a file of a sandbox", person: "by hand", import: "by an import" };

export function Author({ of }) {
  return html`<strong>${line(of.author, 80)}</strong>${of.agent && html`, by the agent ${line(of.agent, 80)}`}${of.via && html` <span class="faint">${VIA[of.via] ?? line(of.via, 40)}</span>`}${of.session && html` in <a href=${sessionPath(of.session)}>this session</a>`}`;
}

export const At = ({ at }) => html`<time class="faint" datetime=${new Date(at).toISOString()}>${when(at)}</time>`;

export const Labels = ({ labels }) => (labels ?? []).map((label) => html` <span class="tag">${line(label, 60)}</span>`);

export function Redacted({ version }) {
  const { redacted } = version;
  return redacted ? html`<p class="warn">Redacted by ${line(redacted.by, 80)}, ${when(redacted.at_ms)}: ${line(redacted.why, 300)}</p>` : null;
}

/// Where the content of an entry is asked for and changed.
export const contentAt = (path) => `/v1/memory/content?path=${encodeURIComponent(path)}`;
