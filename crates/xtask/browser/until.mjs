// Waiting for what another process does: looked for again and again, never for a fixed time.
const PATIENCE_MS = 30_000;
const PAUSE_MS = 50;

/// What `look` finds, once that is something.
export async function until(what, look, patienceMs = PATIENCE_MS) {
  const begun = Date.now();
  for (;;) {
    const found = await look();
    if (found) return found;
    if (Date.now() - begun > patienceMs) throw new Error(`waited ${patienceMs} ms in vain: ${what}`);
    await pause(PAUSE_MS);
  }
}

/// Only for what has to be watched for a while, such as that nothing happens.
export const pause = (ms) => new Promise((resolve) => setTimeout(resolve, ms));
