// Server-sent events that come back by themselves.
import { get } from "./api.js";

const RETRY_MS = 3000;

/// Listens at `url()`, which is asked again for every connection that the browser gave up.
/// `handlers` has a function for each name of event; `onState` is told `true` or `false`.
export function listen(url, handlers, onState = () => {}) {
  let source = null;
  let timer = 0;
  let closed = false;

  const open = () => {
    source = new EventSource(url());
    source.onopen = () => onState(true);
    source.onerror = () => {
      onState(false);
      // While it is CONNECTING the browser tries again, with Last-Event-ID.
      if (closed || source.readyState !== EventSource.CLOSED) return;
      timer = setTimeout(again, RETRY_MS);
    };
    for (const [name, handle] of Object.entries(handlers)) {
      source.addEventListener(name, (message) => {
        const value = parsed(message.data);
        if (value) handle(value);
      });
    }
  };
  // An event source does not say why it was refused; an ordinary request does (401).
  const again = async () => {
    await get("/v1/server").catch(() => {});
    if (!closed) open();
  };

  open();
  return () => {
    closed = true;
    clearTimeout(timer);
    source?.close();
  };
}

function parsed(text) {
  try {
    return JSON.parse(text);
  } catch {
    return null;
  }
}
