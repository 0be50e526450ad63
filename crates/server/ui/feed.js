// Everything that a session's page follows: its events so far, then as they come.
import { ApiError, get } from "./api.js";
import { useEffect, useRef, useState } from "./dom.js";
import { Timeline } from "./fold.js";
import { listen } from "./stream.js";

const HIDDEN_MS = 20_000;

export class Feed {
  constructor(id, changed) {
    this.base = `/v1/sessions/${encodeURIComponent(id)}`;
    this.changed = changed;
    this.timeline = new Timeline();
    this.info = null;
    this.error = null;
    /// What went wrong beside the work of any effect.
    this.warning = null;
    this.loaded = false;
    this.connected = true;
    this.queue = [];
    this.scheduled = false;
    this.closed = false;
    this.onVisible = () => this.visibility();
    document.addEventListener("visibilitychange", this.onVisible);
  }

  async start() {
    try {
      // What happened is asked for together with how it stands; it fails for the same reasons.
      const events = this.catchUp();
      events.catch(() => {});
      this.info = await get(this.base);
      this.changed();
      await events;
      this.loaded = true;
      if (!document.hidden) this.connect();
    } catch (error) {
      if (!(error instanceof ApiError)) throw error;
      this.error = error;
    }
    this.changed();
  }

  /// Reads what is there already in pages, which is far cheaper than one message for each.
  async catchUp() {
    if (this.catching) return;
    this.catching = true;
    await this.readOn().finally(() => (this.catching = false));
  }

  async readOn() {
    for (let more = true; more && !this.closed; ) {
      const head = this.timeline.head;
      const page = await get(`${this.base}/events?after=${this.timeline.head}`);
      for (const event of page.data) this.timeline.add(event);
      more = page.more && this.timeline.head > head;
      this.changed();
    }
  }

  connect() {
    if (this.closed || this.stop) return;
    this.stop = listen(
      () => `${this.base}/stream?after=${this.timeline.head}`,
      {
        event: (event) => this.enqueue("event", event),
        live: (frame) => this.enqueue("live", frame),
        session: (info) => this.enqueue("session", info),
      },
      (connected) => {
        this.connected = connected;
        // How it stands is told only when it changes, so what was missed is asked for.
        if (connected) get(this.base).then((info) => this.enqueue("session", info), () => {});
        this.changed();
      },
    );
  }

  disconnect() {
    this.stop?.();
    this.stop = null;
  }

  // A browser opens six connections to a server: a page that nobody sees gives its own back.
  visibility() {
    clearTimeout(this.hiding);
    if (document.hidden) this.hiding = setTimeout(() => this.disconnect(), HIDDEN_MS);
    else if (this.loaded) this.connect();
  }

  enqueue(kind, value) {
    this.queue.push([kind, value]);
    if (this.scheduled) return;
    this.scheduled = true;
    // No frame comes while the page is hidden, but events do.
    if (document.hidden) setTimeout(() => this.flush(), 250);
    else requestAnimationFrame(() => this.flush());
  }

  flush() {
    this.scheduled = false;
    if (this.closed) return;
    const queue = this.queue;
    this.queue = [];
    let whole = true;
    for (const [kind, value] of queue) {
      if (kind === "event") whole = this.timeline.add(value) && whole;
      else if (kind === "live" && value.effect === 0) this.warning = value.text;
      else if (kind === "live") this.timeline.live(value);
      else this.info = value;
    }
    if (!whole) this.catchUp().catch(() => {});
    this.changed();
  }

  close() {
    this.closed = true;
    clearTimeout(this.hiding);
    document.removeEventListener("visibilitychange", this.onVisible);
    this.disconnect();
  }
}

/// The feed of a session, in a component that is drawn again when it changed.
export function useFeed(id) {
  const [, redraw] = useState(0);
  const feed = useRef(null);
  if (feed.current?.id !== id) {
    feed.current?.feed.close();
    feed.current = { id, feed: new Feed(id, () => redraw((n) => n + 1)) };
  }
  const current = feed.current.feed;
  useEffect(() => {
    current.start();
    return () => current.close();
  }, [current]);
  return current;
}
