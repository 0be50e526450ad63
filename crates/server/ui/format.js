// Numbers, money and times, as people read them.

// By hand: what the browser has for it takes long to make, before the first step is there.
export const number = (value) => `${value}`.replace(/\B(?=(\d{3})+$)/g, ",");

export function tokens(value) {
  if (value < 1000) return `${value}`;
  if (value < 1e6) return `${trim(value / 1e3)} k`;
  return `${trim(value / 1e6)} M`;
}

/// Billionths of a dollar; an unknown price is said to be unknown.
export function money(nanos) {
  if (nanos === undefined || nanos === null) return "unknown";
  const dollars = nanos / 1e9;
  if (dollars === 0) return "$0";
  if (dollars < 0.0001) return "under $0.0001";
  return `$${dollars.toFixed(dollars < 0.01 ? 4 : dollars < 1 ? 3 : 2)}`;
}

export function duration(ms) {
  if (ms < 0 || !Number.isFinite(ms)) return "0 ms";
  if (ms < 1000) return `${Math.round(ms)} ms`;
  const s = ms / 1000;
  if (s < 60) return `${s < 10 ? s.toFixed(1) : Math.round(s)} s`;
  const min = Math.floor(s / 60);
  if (min < 60) return `${min} min ${Math.round(s % 60)} s`;
  const hours = Math.floor(min / 60);
  if (hours < 48) return `${hours} h ${min % 60} min`;
  return `${Math.floor(hours / 24)} days`;
}

export function age(ms, now) {
  const s = Math.max(0, (now - ms) / 1000);
  if (s < 45) return "just now";
  if (s < 3600) return `${Math.max(1, Math.round(s / 60))} min ago`;
  if (s < 86400) return `${Math.round(s / 3600)} h ago`;
  const days = Math.round(s / 86400);
  return days === 1 ? "yesterday" : `${days} days ago`;
}

const two = (value) => `${value}`.padStart(2, "0");

/// A day and a time of it, where the reader is.
export function when(ms) {
  const date = new Date(ms);
  return `${date.getFullYear()}-${two(date.getMonth() + 1)}-${two(date.getDate())} ${clock(ms)}`;
}

export function clock(ms) {
  const date = new Date(ms);
  return [date.getHours(), date.getMinutes(), date.getSeconds()].map(two).join(":");
}

export function bytes(value) {
  if (value < 1024) return `${value} B`;
  if (value < 1024 ** 2) return `${trim(value / 1024)} kB`;
  return `${trim(value / 1024 ** 2)} MB`;
}

export const plural = (count, one, many = `${one}s`) => `${number(count)} ${count === 1 ? one : many}`;

/// What commands may reach, in a sentence's end.
export function reach(words) {
  if (!words?.length || (words.length === 1 && words[0] === "none")) return "nothing";
  return words.join(", ");
}

const trim = (value) => (value < 10 ? value.toFixed(1).replace(/\.0$/, "") : `${Math.round(value)}`);
