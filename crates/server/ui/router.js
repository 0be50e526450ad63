// Which page is shown: the address of the browser.
import { Store } from "./store.js";

const here = () => ({ path: location.pathname, hash: location.hash.slice(1) });

export const route = new Store(here());

export function go(path) {
  history.pushState(null, "", path);
  route.set(here());
  window.scrollTo(0, 0);
}

/// Another part of the same page, without a step in the history.
export function setHash(hash) {
  history.replaceState(null, "", location.pathname + (hash ? `#${hash}` : ""));
  route.set(here());
}

/// The page and what it is about.
export function pageOf(path) {
  const parts = path.split("/").filter(Boolean).map(decoded);
  if (parts[0] === "sessions" && parts[1]) return { name: "session", id: parts[1] };
  if (parts[0] === "approvals") return { name: "approvals", id: parts[1] ?? null };
  if (parts[0] === "memory") return { name: "memory", id: entryOf(parts) };
  if (["agents", "budgets", "people", "rules", "secrets", "device"].includes(parts[0])) return { name: parts[0] };
  if (parts[0] === "sandboxes") return { name: "sandboxes", id: parts[1] };
  if (parts.length === 0 || parts[0] === "new" || parts[0] === "sessions") {
    return { name: "start", focus: parts[0] === "new" };
  }
  return { name: "missing" };
}

// Memory is at the addresses that sessions know it by; skills and agents are below it.
const entryOf = (parts) => (parts.length > 1 ? `/${parts.slice(["skills", "agents"].includes(parts[1]) ? 1 : 0).join("/")}` : null);
const encoded = (path) => path.split("/").map(encodeURIComponent).join("/");

export const memoryPath = (entry) => (entry.startsWith("/memory/") ? encoded(entry) : `/memory${encoded(entry)}`);
export const sandboxPath = (id) => `/sandboxes/${encodeURIComponent(id)}`;
export const sessionPath = (id) => `/sessions/${encodeURIComponent(id)}`;
export const approvalPath = (id) => `/approvals/${encodeURIComponent(id)}`;

function decoded(part) {
  try {
    return decodeURIComponent(part);
  } catch {
    return part;
  }
}

/// Lets links of this page change it without loading it anew.
export function followLinks() {
  window.addEventListener("popstate", () => route.set(here()));
  document.addEventListener("click", (event) => {
    const plain = event.button === 0 && !event.metaKey && !event.ctrlKey && !event.shiftKey && !event.altKey;
    const link = event.target.closest?.("a[href]");
    if (!plain || event.defaultPrevented || !link || link.target || link.hasAttribute("download")) return;
    if (link.origin !== location.origin || link.pathname.startsWith("/v1/")) return;
    if (link.getAttribute("href").startsWith("#")) return;
    event.preventDefault();
    go(link.pathname + link.hash);
  });
}
