// The page as a whole: who we are, which page is shown, what stands above all of them.
import { loggedIn, post } from "./api.js";
import { html, render, useEffect, useRef } from "./dom.js";
import { help, listenToKeys } from "./keys.js";
import { approvals, connected, follow, server, sessions } from "./live.js";
import { NotifyButton, watchWaiting } from "./notify.js";
import { OnDemand } from "./parts.js";
import { followLinks, pageOf, route } from "./router.js";
import { SessionPage } from "./session.js";
import { StartPage } from "./start.js";
import { useStore } from "./store.js";
import { exact, line, plain } from "./text.js";
import { nameOf } from "./who.js";

// Pages that are no part of what is loaded first.
const ON_DEMAND = {
  agents: { title: "Agents", load: () => import("./agents/page.js").then((module) => module.AgentsPage) },
  sandboxes: { title: "Sandboxes", load: () => import("./sandboxes/page.js").then((module) => module.SandboxesPage) },
  memory: { title: "Memory", load: () => import("./memory/page.js").then((module) => module.MemoryPage) },
  budgets: { title: "Budgets", load: () => import("./budgets.js").then((module) => module.BudgetsPage) },
  people: { title: "People", load: () => import("./people.js").then((module) => module.PeoplePage) },
  rules: { title: "Rules", load: () => import("./rules/page.js").then((module) => module.RulesPage) },
  secrets: { title: "Secrets", load: () => import("./secrets/page.js").then((module) => module.SecretsPage) },
  device: { title: "Let a program in", load: () => import("./device.js").then((module) => module.DevicePage), aside: true },
};

function App() {
  const page = pageOf(useStore(route).path);
  const isIn = useStore(loggedIn);
  const waiting = useStore(approvals).data.length;
  const keys = useStore(help);
  useTitle(page, waiting);
  useFocusOnPage(page);
  return html`
    <a class="skip" href="#main" onClick=${skip}>To the content</a>
    <${Top} page=${page} waiting=${waiting} isIn=${isIn} />
    <main id="main" tabindex="-1">${isIn === false ? html`<${LoginPage} />` : html`<${Page} page=${page} />`}</main>
    ${keys && html`<${OnDemand} load=${loadKeyCard} />`}
  `;
}

function Page({ page }) {
  if (page.name === "session") return html`<${SessionPage} key=${page.id} id=${page.id} />`;
  if (page.name === "approvals") return html`<${Approvals} key=${page.id} id=${page.id} />`;
  if (page.name === "start") return html`<${StartPage} focus=${page.focus} />`;
  const other = ON_DEMAND[page.name];
  if (other) return html`<div class="wide"><h1 tabindex="-1">${page.id ? exact(page.id) : other.title}</h1><${OnDemand} key=${page.name} load=${other.load} id=${page.id} /></div>`;
  return html`<div class="narrow"><h1 tabindex="-1">There is no such page</h1><p><a href="/">To the sessions</a></p></div>`;
}

function Approvals({ id }) {
  return html`<div class="narrow">
    <div class="title-row"><h1 tabindex="-1">${id ? "A question" : "Approvals"}</h1>${!id && html`<${NotifyButton} />`}</div>
    <${OnDemand} load=${id ? loadApproval : loadApprovals} id=${id} />
  </div>`;
}

function Top({ page, waiting, isIn }) {
  const about = useStore(server);
  const isConnected = useStore(connected);
  const nav = useRef(null);
  // Where not all pages fit, the one that is shown is among those that do.
  useEffect(() => void nav.current?.querySelector("[aria-current]")?.scrollIntoView({ block: "nearest", inline: "center" }), [page.name, isIn, waiting > 0]);
  const current = (name) => (page.name === name ? "page" : undefined);
  return html`<header class="top">
    <a class="brand" href="/" aria-label="Outrigger"><img src="/ui/icon.svg" alt="" width="22" height="22" /><span>Outrigger</span></a>
    ${isIn !== false && html`
      <nav aria-label="Pages" ref=${nav}>
        <a href="/" aria-current=${current("start")}>Sessions</a>
        <a href="/approvals" aria-current=${current("approvals")}>Approvals${waiting > 0 && html` <span class="badge" aria-label=${`${waiting} waiting`}>${waiting}</span>`}</a>
        ${Object.entries(ON_DEMAND).map(([name, { title, aside }]) => !aside && html`<a href=${`/${name}`} aria-current=${current(name)}>${title}</a>`)}
      </nav>
      <div class="top-end">
        ${!isConnected && html`<span class="offline" role="status">offline</span>`}
        ${page.name !== "approvals" && html`<span class="notify"><${NotifyButton} /></span>`}
        <button class="quiet key-button" aria-label="Keys" title="Keys" onClick=${() => help.set(true)}>?</button>
        ${about && html`<span class="who" title=${`Outrigger ${about.version}`}>${nameOf(about.person)}</span>
          <button class="quiet" onClick=${logOut}>Log out</button>`}
      </div>`}
  </header>`;
}

const loadApproval = () => import("./approvals.js").then((module) => module.ApprovalPage);
const loadApprovals = () => import("./approvals.js").then((module) => module.ApprovalsPage);
const loadKeyCard = () => import("./keycard.js").then((module) => module.KeyCard);
const loadLogin = () => import("./login.js").then((module) => module.LoginPage);

function LoginPage() {
  return html`<div class="narrow login"><h1 tabindex="-1">You are not logged in</h1><${OnDemand} load=${loadLogin} /></div>`;
}

async function logOut() {
  await post("/v1/logout").catch(() => {});
  loggedIn.set(false);
}

function skip(event) {
  event.preventDefault();
  document.getElementById("main").focus();
}

function useTitle(page, waiting) {
  const { byId } = useStore(sessions);
  const titles = { session: byId.get(page.id)?.title, approvals: "Approvals", memory: page.id };
  const about = line(titles[page.name] ?? ON_DEMAND[page.name]?.title ?? "", 60);
  useEffect(() => {
    document.title = plain(`${waiting > 0 ? `(${waiting}) ` : ""}${about ? `${about} · ` : ""}Outrigger`);
  }, [about, waiting]);
}

// Who hears the page is told that it is another one now.
function useFocusOnPage(page) {
  const before = useRef(null);
  const key = `${page.name} ${page.id ?? ""}`;
  useEffect(() => {
    if (before.current !== null && before.current !== key && !page.focus) {
      document.querySelector("main h1")?.focus({ preventScroll: true });
    }
    before.current = key;
  }, [key]);
}

followLinks();
listenToKeys();
watchWaiting();
follow();
const root = document.getElementById("app");
root.replaceChildren();
render(html`<${App} />`, root);
