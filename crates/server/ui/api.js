// Requests to the server, and what it says where it can't do them.
import { Store } from "./store.js";

/// Whether the server knows who we are: `null` until it answered.
export const loggedIn = new Store(null);

/// A `Problem` of the contract, or what stands in for one where nobody answered.
export class ApiError extends Error {
  constructor(problem) {
    super(problem.detail || problem.title);
    this.problem = problem;
    this.status = problem.status;
    this.code = problem.code;
    this.hints = problem.hints ?? [];
  }
}

export const get = (path) => twice(() => send("GET", path));

/// Asks for something to be done. Both attempts have one key, so it is done at most once.
export function post(path, body = {}) {
  const key = randomKey();
  return twice(() => send("POST", path, body, { "Idempotency-Key": key }));
}

/// Makes something be so: done twice it is the same as done once.
export const put = (path, body) => twice(() => send("PUT", path, body));

/// Takes something away. It is asked for once: the second time it would not be there.
export const remove = (path) => send("DELETE", path);

/// Changes what is there in this revision, or what must not be there yet (`null`). It is asked
/// for once: whether the first attempt was done could not be told from somebody else's change.
export function change(method, path, revision, body) {
  const match = revision === null ? { "If-None-Match": "*" } : { "If-Match": `"${revision}"` };
  return send(method, path, body, { ...match, "Idempotency-Key": randomKey() });
}

// What may succeed later is tried once more, after a moment.
async function twice(attempt) {
  try {
    return await attempt();
  } catch (error) {
    if (!(error instanceof ApiError) || !error.problem.retryable) throw error;
    await new Promise((resolve) => setTimeout(resolve, 900));
    return attempt();
  }
}

async function send(method, path, body, more) {
  const headers = { Accept: "application/json", ...more };
  if (body !== undefined) headers["Content-Type"] = "application/json";
  let response;
  try {
    response = await fetch(path, {
      method,
      headers,
      body: body === undefined ? undefined : JSON.stringify(body),
      credentials: "same-origin",
      cache: "no-store",
    });
  } catch {
    throw new ApiError(unreachable());
  }
  if (response.status === 401) loggedIn.set(false);
  if (!response.ok) throw new ApiError(await problemOf(response));
  if (response.status !== 204) loggedIn.value ?? loggedIn.set(true);
  const text = await response.text();
  return text ? JSON.parse(text) : null;
}

async function problemOf(response) {
  const plain = { title: `The server answered ${response.status}.`, status: response.status };
  try {
    return { ...plain, ...(await response.json()) };
  } catch {
    return plain;
  }
}

function unreachable() {
  return {
    title: "The server can't be reached.",
    detail: "The server can't be reached.",
    hints: ["Is `outrigger serve` still running?"],
    status: 0,
    retryable: true,
  };
}

// `randomUUID` is only there on https and localhost; a server in the local network has neither.
function randomKey() {
  if (crypto.randomUUID) return crypto.randomUUID();
  const bytes = crypto.getRandomValues(new Uint8Array(16));
  bytes[6] = (bytes[6] & 0x0f) | 0x40;
  bytes[8] = (bytes[8] & 0x3f) | 0x80;
  const hex = [...bytes].map((byte) => byte.toString(16).padStart(2, "0")).join("");
  return hex.replace(/^(.{8})(.{4})(.{4})(.{4})(.{12})$/, "$1-$2-$3-$4-$5");
}
