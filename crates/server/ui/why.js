// Why the rules ruled as they did: a small button, and what it opens.
import { html, useState } from "./dom.js";
import { OnDemand } from "./parts.js";

const effect = () => import("./rules/effect.js").then((module) => module.EffectRules);

/// Stands in a row that wraps, and takes a line of its own for what it opens.
export function Why({ session, seq }) {
  const [open, setOpen] = useState(false);
  return html`<button class="quiet tiny why-button" aria-expanded=${open} aria-label=${`Why? Event ${seq}`} onClick=${() => setOpen(!open)}>Why?</button>
    ${open && html`<div class="why-body"><${OnDemand} load=${effect} session=${session} seq=${seq} /></div>`}`;
}
