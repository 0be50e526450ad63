// What all pages share: the sessions, what waits for a person, and who we are.
//
// One tab of the browser listens for all of them and tells the others, because a browser
// opens no more than six connections to a server, and each listener keeps one.
import { get, loggedIn } from "./api.js";
import { Store } from "./store.js";
import { listen } from "./stream.js";

const PAGE_SESSIONS = 50;

export const server = new Store(null);
export const sessions = new Store({ byId: new Map(), loaded: false, cursor: null });
export const approvals = new Store({ data: [], loaded: false });
export const connected = new Store(true);

const HANDLERS = {
  session: (info) => keep([info]),
  removed: ({ session }) => forget(session),
  approvals: (list) => approvals.set({ data: list.data, loaded: true }),
  missed: () => refresh(),
};

/// Reads what there is, and follows it from then on.
export async function follow() {
  try {
    server.set(await get("/v1/server"));
  } catch {
    return;
  }
  loggedIn.set(true);
  refresh();
  const channel = window.BroadcastChannel ? new BroadcastChannel("outrigger-updates") : null;
  if (channel) channel.onmessage = ({ data }) => HANDLERS[data.name]?.(data.value);
  const handlers = handlersFor(channel);
  lead(() => listen(() => "/v1/updates", handlers, (is) => onState(is, handlers.missed)));
}

/// Reads the newest sessions and what waits.
export async function refresh() {
  await Promise.allSettled([moreSessions(null), refreshApprovals()]);
}

export async function refreshApprovals() {
  HANDLERS.approvals(await get("/v1/approvals"));
}

export async function moreSessions(cursor = sessions.value.cursor) {
  const after = cursor ? `&cursor=${encodeURIComponent(cursor)}` : "";
  const page = await get(`/v1/sessions?limit=${PAGE_SESSIONS}${after}`);
  keep(page.data);
  sessions.update({ loaded: true, cursor: page.next_cursor ?? null });
}

/// Takes in how sessions stand. What is older than what is known is passed over.
export function keep(infos) {
  const byId = new Map(sessions.value.byId);
  for (const info of infos) {
    if (info.parent || (byId.get(info.id)?.head ?? 0) > info.head) continue;
    byId.set(info.id, info);
  }
  sessions.update({ byId });
}

/// Leaves out a session that is not to be seen any more.
export function forget(id) {
  const byId = new Map(sessions.value.byId);
  if (byId.delete(id)) sessions.update({ byId });
}

function handlersFor(channel) {
  return Object.fromEntries(
    Object.entries(HANDLERS).map(([name, handle]) => [
      name,
      (value) => {
        handle(value);
        channel?.postMessage({ name, value });
      },
    ]),
  );
}

// Whatever is otherwise from here on is told; what was before is read by every tab.
function onState(is, missed) {
  connected.set(is);
  if (is) missed();
}

// Whoever holds the lock listens; it falls to another tab when this one goes.
function lead(begin) {
  if (!navigator.locks) return begin();
  navigator.locks.request("outrigger-updates", () => {
    begin();
    return new Promise(() => {});
  });
}
