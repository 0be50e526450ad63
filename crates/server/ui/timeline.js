// The steps of a session: a window onto them, which follows the end while a person is there.
import { html, useEffect, useLayoutEffect, useRef, useState } from "./dom.js";
import { number } from "./format.js";
import { Question } from "./question.js";
import { Step, labelOf } from "./step.js";

const WINDOW = 100;
const NEAR_PX = 120;

const distance = () => document.documentElement.scrollHeight - window.innerHeight - window.scrollY;

// A step that can be seen, and where: it has to be there still when something above it changed.
function anchor() {
  const element = [...document.querySelectorAll(".timeline > .step")].find((step) => step.getBoundingClientRect().bottom > NEAR_PX);
  return element ? { element, top: element.getBoundingClientRect().top } : null;
}

/// `feed` has the timeline, and says whether all of it is there.
export function TimelineView({ feed, questions }) {
  const { timeline, loaded, whole } = feed;
  const { steps } = timeline;
  const total = steps.length;
  // Nothing: the newest steps. An event: from there on, so that nothing moves under the eyes.
  const [from, setFrom] = useState(null);
  const [atEnd, setAtEnd] = useState(true);
  const follows = useRef(true);
  const kept = useRef(null);
  const drawn = useRef(timeline);
  const start = from === null ? Math.max(0, total - WINDOW) : steps.findIndex((step) => step.seq >= from);

  useEffect(() => {
    const onScroll = () => {
      const near = distance() < NEAR_PX;
      follows.current = near;
      setAtEnd(near);
      setFrom((was) => (near ? null : (was ?? steps[Math.max(0, steps.length - WINDOW)]?.seq ?? null)));
    };
    window.addEventListener("scroll", onScroll, { passive: true });
    return () => window.removeEventListener("scroll", onScroll);
  }, [steps]);

  // With those before it, a step may say more than it did.
  if (drawn.current !== timeline && !follows.current) kept.current = anchor();
  drawn.current = timeline;
  useLayoutEffect(() => {
    // A button that is pressed stays beneath the pointer.
    if (document.querySelector("button:active")) return;
    if (follows.current) window.scrollTo(0, document.documentElement.scrollHeight);
    else if (kept.current) window.scrollBy(0, kept.current.element.getBoundingClientRect().top - kept.current.top);
    kept.current = null;
  });

  const earlier = () => {
    // What is added above must not push what is looked at away; not every browser sees to it.
    kept.current = anchor();
    follows.current = false;
    setFrom(steps[Math.max(0, start - WINDOW)].seq);
  };
  const newest = () => {
    follows.current = true;
    setFrom(null);
    setAtEnd(true);
  };

  const shown = steps.slice(start);
  const here = new Set(shown.map((step) => step.seq));
  return html`<section aria-label="Timeline" class=${`timeline ${loaded && !whole ? "partial" : ""}`}>
    ${!loaded && !feed.error && html`<p class="loading">Reading the events…</p>`}
    ${loaded && html`<${Earlier} feed=${feed} hidden=${start} onShow=${earlier} />`}
    ${shown.flatMap((step) => rowsOf(step, questions, feed.info.id))}
    ${questions.filter((q) => !here.has(q.effect)).map((q) => html`<${Question} key=${q.id} info=${q} inline />`)}
    ${!atEnd && total > 0 && html`<button class="newest" onClick=${newest}>Jump to newest</button>`}
    <${Announce} timeline=${timeline} loaded=${loaded} />
  </section>`;
}

// What lies above the first step that is shown.
function Earlier({ feed, hidden, onShow }) {
  if (feed.whole) return hidden > 0 && html`<button class="earlier" onClick=${onShow}>Show earlier steps (${number(hidden)} hidden)</button>`;
  if (feed.reading) return html`<p class="earlier loading">Reading earlier steps…</p>`;
  return html`<button class="earlier" onClick=${() => feed.readEarlier()}>Read earlier steps</button>`;
}

// A step and the questions about it, side by side: only so do their keys keep them in place.
function rowsOf(step, questions, session) {
  const about = questions.filter((question) => question.effect === step.seq);
  return [
    html`<${Step} key=${step.seq} step=${step} version=${step.version} asked=${about.length > 0} session=${session} />`,
    ...about.map((question) => html`<${Question} key=${question.id} info=${question} inline />`),
  ];
}

// Says new steps to those who hear the page: one line for each pause, not for each token.
function Announce({ timeline, loaded }) {
  const [said, setSaid] = useState("");
  const last = useRef(null);
  useEffect(() => {
    if (!loaded) return undefined;
    last.current ??= timeline.steps.at(-1)?.seq ?? 0;
    const timer = setInterval(() => {
      const step = timeline.steps.at(-1);
      if (!step || step.seq === last.current) return;
      last.current = step.seq;
      setSaid(labelOf(step));
    }, 2000);
    return () => clearInterval(timer);
  }, [timeline, loaded]);
  return html`<p class="unseen" role="status" aria-live="polite">${said}</p>`;
}
