// Tells a person who looks elsewhere that something waits: in the title, and by the system.
import { html, useEffect, useState } from "./dom.js";
import { approvals } from "./live.js";
import { approvalPath, go } from "./router.js";
import { line } from "./text.js";

let known = null;

export function watchWaiting() {
  approvals.watch(({ data, loaded }) => {
    if (!loaded) return;
    const before = known;
    known = new Set(data.map((info) => info.id));
    if (before && document.hidden) data.filter((info) => !before.has(info.id)).forEach(tell);
  });
}

// Tabs that tell the same thing have the same tag, so that it is shown once.
function tell(info) {
  if (!("Notification" in window) || Notification.permission !== "granted") return;
  try {
    const note = new Notification(`Outrigger asks about ${line(info.tool, 60)}`, {
      body: line(info.title, 120),
      tag: info.id,
      icon: "/ui/icon.svg",
    });
    note.onclick = () => {
      window.focus();
      go(approvalPath(info.id));
      note.close();
    };
  } catch {
    // Some phones allow them from a service worker only, which we have not.
  }
}

export function NotifyButton() {
  const [state, setState] = useState("denied");
  // Once the page is there: the browser takes long to say so.
  useEffect(() => setState(window.Notification?.permission ?? "denied"), []);
  if (state !== "default") return null;
  const ask = async () => setState(await Notification.requestPermission());
  return html`<button class="quiet" onClick=${ask}>Notify me</button>`;
}
