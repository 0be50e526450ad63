// The one door to the vendored libraries: everything else imports from here.
import { h, render, Component, Fragment } from "./vendor/preact.js";
import { useState, useEffect, useLayoutEffect, useRef, useMemo, useCallback } from "./vendor/hooks.js";
import htm from "./vendor/htm.js";

export { h, render, Component, Fragment };
export { useState, useEffect, useLayoutEffect, useRef, useMemo, useCallback };

export const html = htm.bind(h);

/// A component that is drawn again only if one of the named props is another.
export function memoOn(names, draw) {
  return class extends Component {
    shouldComponentUpdate(next) {
      return names.some((name) => this.props[name] !== next[name]);
    }
    render(props) {
      return h(draw, props);
    }
  };
}

/// The time, again every so often, so that ages and durations go on.
export function useNow(everyMs, active = true) {
  const [now, setNow] = useState(Date.now());
  useEffect(() => {
    if (!active) return undefined;
    const timer = setInterval(() => setNow(Date.now()), everyMs);
    return () => clearInterval(timer);
  }, [everyMs, active]);
  return now;
}
