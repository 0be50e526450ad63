// A value that several components look at.
import { useState, useLayoutEffect } from "./dom.js";

export class Store {
  constructor(value) {
    this.value = value;
    this.watchers = new Set();
  }

  set(value) {
    if (value === this.value) return;
    this.value = value;
    for (const watcher of [...this.watchers]) watcher(value);
  }

  update(change) {
    this.set({ ...this.value, ...change });
  }

  watch(watcher) {
    this.watchers.add(watcher);
    return () => this.watchers.delete(watcher);
  }
}

/// The value of a store, in a component.
export function useStore(store) {
  const [, redraw] = useState(0);
  const drawn = store.value;
  useLayoutEffect(() => {
    const again = () => redraw((n) => n + 1);
    const stop = store.watch(again);
    // It may have changed between the drawing and now, when nobody watched it for us.
    if (store.value !== drawn) again();
    return stop;
  }, [store]);
  return drawn;
}
