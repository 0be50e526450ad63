// Everything that a session's page follows: its newest events, those before, then as they come.
import { ApiError, get } from "./api.js";
import { useEffect, useRef, useState } from "./dom.js";
import { Timeline } from "./fold.js";
import { forget } from "./live.js";
import { listen } from "./stream.js";

const HIDDEN_MS = 20_000;
// More than fill a screen, and few enough to be there at once.
const NEWEST_EVENTS = 60;

// No frame comes while the page is hidden.
const drawn = () => new Promise((resolve) => (document.hidden ? resolve() : requestAnimationFrame(() => setTimeout(resolve))));

export class Feed {
  constructor(id, changed) {
    this.id = id;
    this.base = `/v1/sessions/${encodeURIComponent(id)}`;
    this.changed = changed;
    this.timeline = new Timeline();
    this.info = null;
    this.error = null;
    /// What went wrong beside the work of any effect.
    this.warning = null;
    /// Whether the newest events are there.
    this.loaded = false;
    /// Whether those before are there as well, or on their way.
    this.whole = false;
    this.reading = false;
    /// What has to be added to those before, until they are there: the events that are shown.
    this.newest = [];
    this.connected = true;
    /// Who looks at it now.
    this.people = [];
    this.queue = [];
    this.scheduled = false;
    this.closed = false;
    this.onVisible = () => this.visibility();
    document.addEventListener("visibilitychange", this.onVisible);
  }

  async start() {
    try {
      // What happened last is asked for together with how it stands; it fails for the same reasons.
      // Both are drawn at once.
      const newest = get(`${this.base}/events?last=${NEWEST_EVENTS}`);
      const [info, page] = await Promise.all([get(this.base), newest]);
      this.info = info;
      this.begin(page.data);
    } catch (error) {
      this.fail(error);
    }
    this.changed();
    if (!this.loaded || this.whole) return;
    await drawn();
    this.readEarlier();
  }

  begin(events) {
    this.timeline = new Timeline((events[0]?.seq ?? 1) - 1);
    this.whole = this.timeline.head === 0;
    for (const event of events) this.add(event);
    this.loaded = true;
    if (!document.hidden) this.connect();
  }

  /// Takes an event in. `false` if one before it is missing.
  add(event) {
    const isNew = event.seq === this.timeline.head + 1;
    if (isNew && !this.whole) this.newest.push(event);
    return this.timeline.add(event);
  }

  /// Reads everything from the first event on, and shows that instead once it is complete.
  async readEarlier() {
    this.reading = true;
    this.changed();
    try {
      const whole = new Timeline();
      while (whole.head < this.newest[0].seq - 1 && !this.closed) {
        const { head } = whole;
        for (const event of (await get(`${this.base}/events?after=${head}`)).data) whole.add(event);
        if (whole.head === head) throw new ApiError({ title: "The earlier events can't be read." });
      }
      this.becomeWhole(whole);
    } catch (error) {
      this.fail(error);
    }
    this.reading = false;
    this.changed();
  }

  // In one go, so that no event comes between.
  becomeWhole(whole) {
    if (this.closed) return;
    for (const event of this.newest) whole.add(event);
    whole.takeLive(this.timeline);
    this.timeline = whole;
    this.newest = [];
    this.whole = true;
    this.error = null;
  }

  fail(error) {
    if (!(error instanceof ApiError)) throw error;
    this.error = error;
  }

  /// Reads what was missed in pages, which is far cheaper than one message for each.
  async catchUp() {
    if (this.catching) return;
    this.catching = true;
    await this.readOn().finally(() => (this.catching = false));
  }

  async readOn() {
    for (let more = true; more && !this.closed; ) {
      const head = this.timeline.head;
      const page = await get(`${this.base}/events?after=${this.timeline.head}`);
      for (const event of page.data) this.add(event);
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
        presence: ({ people }) => this.enqueue("presence", people),
      },
      (connected) => {
        this.connected = connected;
        if (!connected) this.people = [];
        // How it stands is told only when it changes, so what was missed is asked for.
        get(this.base).then((info) => this.enqueue("session", info), (error) => this.gone(error));
        this.changed();
      },
    );
  }

  // It was removed, or is no longer shared: then nothing of it is to be seen.
  gone(error) {
    if (error.status !== 404 || this.closed) return;
    this.disconnect();
    this.queue = [];
    this.info = null;
    this.fail(error);
    forget(this.id);
    this.changed();
  }

  disconnect() {
    this.stop?.();
    this.stop = null;
  }

  // A browser opens six connections to a server: a page that nobody sees gives its own back.
  visibility() {
    clearTimeout(this.hiding);
    if (document.hidden) this.hiding = setTimeout(() => this.disconnect(), HIDDEN_MS);
    else if (this.loaded && this.info) this.connect();
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
    let gapless = true;
    for (const [kind, value] of queue) {
      if (kind === "event") gapless = this.add(value) && gapless;
      else if (kind === "live" && value.effect === 0) this.warning = value.text;
      else if (kind === "live") this.timeline.live(value);
      else if (kind === "presence") this.people = value;
      else this.info = value;
    }
    if (!gapless) this.catchUp().catch(() => {});
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
    // Not only once the page was drawn: that is when there could be an answer already.
    feed.current.feed.start();
  }
  const current = feed.current.feed;
  useEffect(() => () => current.close(), [current]);
  return current;
}
