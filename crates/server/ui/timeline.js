// The steps of a session: a window onto them, which follows the end while a person is there.
import { html, useEffect, useLayoutEffect, useRef, useState } from "./dom.js";
import { number } from "./format.js";
import { Question } from "./question.js";
import { Step, labelOf } from "./step.js";

const WINDOW = 100;
const NEAR_PX = 120;

const distance = () => document.documentElement.scrollHeight - window.innerHeight - window.scrollY;

export function TimelineView({ timeline, loaded, head, questions }) {
  const total = timeline.steps.length;
  // Nothing: the newest steps. A number: from there on, so that nothing moves under the eyes.
  const [from, setFrom] = useState(null);
  const [atEnd, setAtEnd] = useState(true);
  const follows = useRef(true);
  // How far above the bottom the eyes were when earlier steps were asked for.
  const kept = useRef(null);
  const start = Math.max(0, from ?? total - WINDOW);

  useEffect(() => {
    const onScroll = () => {
      const near = distance() < NEAR_PX;
      follows.current = near;
      setAtEnd(near);
      setFrom((was) => (near ? null : (was ?? Math.max(0, timeline.steps.length - WINDOW))));
    };
    window.addEventListener("scroll", onScroll, { passive: true });
    return () => window.removeEventListener("scroll", onScroll);
  }, [timeline]);

  useLayoutEffect(() => {
    const bottom = document.documentElement.scrollHeight;
    if (follows.current) window.scrollTo(0, bottom);
    else if (kept.current !== null) window.scrollTo(0, bottom - kept.current);
    kept.current = null;
  });

  const earlier = () => {
    // What is added above must not push what is looked at away; not every browser sees to it.
    kept.current = document.documentElement.scrollHeight - window.scrollY;
    follows.current = false;
    setFrom(Math.max(0, start - WINDOW));
  };
  const newest = () => {
    follows.current = true;
    setFrom(null);
    setAtEnd(true);
  };

  // While a long session is read, drawing every stage of it would only make it slower.
  const shown = loaded || total < WINDOW ? timeline.steps.slice(start) : [];
  const here = new Set(shown.map((step) => step.seq));
  return html`<section aria-label="Timeline" class="timeline">
    ${start > 0 && loaded &&
    html`<button class="earlier" onClick=${earlier}>Show earlier steps (${number(start)} hidden)</button>`}
    ${!loaded && html`<p class="loading">Reading the events: ${number(timeline.head)} of ${number(head)}…</p>`}
    ${shown.flatMap((step) => rowsOf(step, questions))}
    ${questions.filter((q) => !here.has(q.effect)).map((q) => html`<${Question} key=${q.id} info=${q} inline />`)}
    ${!atEnd && total > 0 && html`<button class="newest" onClick=${newest}>Jump to newest</button>`}
    <${Announce} timeline=${timeline} loaded=${loaded} />
  </section>`;
}

// A step and the questions about it, side by side: only so do their keys keep them in place.
function rowsOf(step, questions) {
  const about = questions.filter((question) => question.effect === step.seq);
  return [
    html`<${Step} key=${step.seq} step=${step} version=${step.version} asked=${about.length > 0} />`,
    ...about.map((question) => html`<${Question} key=${question.id} info=${question} inline />`),
  ];
}

// Says new steps to those who hear the page: one line for each pause, not for each token.
function Announce({ timeline, loaded }) {
  const [said, setSaid] = useState("");
  const last = useRef(null);
  useEffect(() => {
    if (!loaded) return undefined;
    last.current ??= timeline.steps.length;
    const timer = setInterval(() => {
      if (timeline.steps.length === last.current) return;
      last.current = timeline.steps.length;
      setSaid(labelOf(timeline.steps.at(-1)));
    }, 2000);
    return () => clearInterval(timer);
  }, [timeline, loaded]);
  return html`<p class="unseen" role="status" aria-live="polite">${said}</p>`;
}
