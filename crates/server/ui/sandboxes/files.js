// The files of a sandbox: looked at as those of sessions are, and sent, fetched and removed.
import { ApiError, remove } from "../api.js";
import { html, useCallback, useState } from "../dom.js";
import { Files } from "../files.js";
import { useAction } from "../fetched.js";
import { Failure } from "../parts.js";
import { line } from "../text.js";

// Of a file that is shown.
const SHOWN_BYTES = 512 * 1024;

async function answered(response) {
  if (response.ok) return response;
  const plain = { title: `The server answered ${response.status}.`, status: response.status };
  throw new ApiError({ ...plain, ...(await response.json().catch(() => ({}))) });
}

const contentOf = (base, path) => `${base}/files/content?path=${encodeURIComponent(path)}`;

async function read(base, { path, bytes }) {
  if (bytes === 0) return { path, bytes, text: "", hidden_bytes: 0 };
  const headers = { Range: `bytes=0-${SHOWN_BYTES - 1}` };
  const response = await answered(await fetch(contentOf(base, path), { headers, cache: "no-store" }));
  const whole = Number(response.headers.get("Content-Range")?.split("/")[1] ?? bytes);
  const begin = new Uint8Array(await response.arrayBuffer());
  return { path, bytes: whole, text: textOf(begin), hidden_bytes: Math.max(0, whole - begin.length) };
}

// Nothing for what is no text. The end may be in the middle of a character.
function textOf(bytes) {
  if (bytes.includes(0)) return null;
  try {
    return new TextDecoder("utf-8", { fatal: true, ignoreBOM: true }).decode(bytes, { stream: true });
  } catch {
    return null;
  }
}

export function SandboxFiles({ base, mayDrive }) {
  const [sent, setSent] = useState(0);
  const { busy, error, act } = useAction();
  const send = (event) => {
    const [file] = event.target.files;
    if (!file) return;
    act(async () => {
      await answered(await fetch(contentOf(base, file.name), { method: "PUT", body: file }));
      setSent(sent + 1);
    });
    event.target.value = "";
  };
  const acts = useCallback((props) => html`<${FileActs} base=${base} mayDrive=${mayDrive} ...${props} />`, [base, mayDrive]);
  return html`
    ${mayDrive && html`<p class="tools send-file"><label class="field">Send a file into <code>/workspace</code><input type="file" disabled=${busy} onChange=${send} /></label>
      ${busy && html`<span class="loading">Sending…</span>`}</p>`}
    <${Failure} error=${error} />
    <${Files} key=${sent} base=${`${base}/files`} what="The files in" read=${(file) => read(base, file)} acts=${acts} />
    <p class="faint after"><a href=${`${base}/archive?path=/workspace`} download="workspace.tar">Fetch all of it as an archive</a></p>`;
}

function FileActs({ base, file, mayDrive, onGone }) {
  const { busy, error, act } = useAction();
  const gone = () => act(async () => {
    await remove(`${base}/files?path=${encodeURIComponent(file.path)}`);
    onGone();
  });
  return html`<p class="tools file-facts">
      ${file.kind === "file" && html`<a href=${contentOf(base, file.path)} download=${line(file.name, 200)}>Fetch it</a>`}
      ${mayDrive && html`<button class="quiet" disabled=${busy} onClick=${gone}>Delete it</button>`}</p>
    <${Failure} error=${error} />`;
}
