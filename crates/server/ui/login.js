// What a person sees who is not logged in: how they get in.
import { html } from "./dom.js";
import { useFetched } from "./fetched.js";
import { line } from "./text.js";

const here = () => encodeURIComponent(location.pathname + location.search + location.hash);

export function LoginPage() {
  const { value, error } = useFetched("/v1/login");
  const provider = value?.provider;
  if (!value && !error) return html`<p class="loading">Looking how you get in…</p>`;
  return provider ? html`<${WithProvider} provider=${provider} />` : html`<${WithLink} />`;
}

function WithProvider({ provider }) {
  return html`
    <p>This page shows agents that work with your files, so it only opens for people who are known here.</p>
    <p class="tools"><a class="button primary" target="_self" href=${`${provider.url}?next=${here()}`}>Sign in with ${line(provider.name, 40)}</a></p>
    <p class="faint">Without an account there: <code>outrigger keys link</code> on the machine of the server writes a link that logs a browser in.</p>`;
}

function WithLink() {
  return html`
    <p>This page shows agents that work with your files, so it only opens for those who have a link from the server itself.</p>
    <p>On the machine on which Outrigger runs:</p>
    <ul>
      <li>If <code>outrigger serve</code> just started, it wrote a link to its terminal. Open that.</li>
      <li>Otherwise run <code>outrigger keys link</code> there, and open the link that it writes.</li>
    </ul>
    <p class="faint">A link is good for a short time only. After that this browser stays logged in until you log out.</p>
    <p><button class="primary" onClick=${() => location.reload()}>Try again</button></p>`;
}
