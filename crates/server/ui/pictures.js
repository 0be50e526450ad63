// Pictures that go with what a person says, and those that came with it.
import { html } from "./dom.js";
import { line } from "./text.js";

const KINDS = ["image/png", "image/jpeg", "image/gif", "image/webp"];
// As much as a server takes of one.
const BYTES_MAX = 3_932_160;

/// Reads a file as it is sent. One that can't be has an `error` instead of its content.
export async function read(file) {
  const { name } = file;
  if (!KINDS.includes(file.type)) return { name, error: "it is no PNG, JPEG, GIF or WebP" };
  if (file.size > BYTES_MAX) return { name, error: "it has more than 3.75 MiB" };
  const url = await new Promise((resolve, reject) => {
    const reader = new FileReader();
    reader.onload = () => resolve(reader.result);
    reader.onerror = () => reject(reader.error);
    reader.readAsDataURL(file);
  });
  return { name, content: url.slice(url.indexOf(",") + 1), url };
}

export function Attached({ pictures, onRemove }) {
  return html`<ul class="pictures" aria-label="Pictures that go with it">${pictures.map((picture, at) => html`<li key=${at}>
    ${picture.url && html`<img src=${picture.url} alt="" />`}
    <span class=${picture.error ? "bad" : "faint"}>${line(picture.name, 60)}${picture.error ? ` is left out: ${picture.error}` : ""}</span>
    <button type="button" class="quiet" aria-label=${`Leave out ${line(picture.name, 60)}`} onClick=${() => onRemove(picture)}>Leave out</button>
  </li>`)}</ul>`;
}

/// Those of an event, whose address is `at`.
export function Shown({ pictures, at }) {
  return html`<ul class="pictures">${pictures.map(({ name, width, height }, number) => html`<li key=${number}>
    <a href=${`${at}/${number}`} target="_blank" rel="noopener"><img src=${`${at}/${number}`} width=${width} height=${height} loading="lazy" alt=${line(name, 60)} /></a>
    <span class="faint">${line(name, 60)}, ${width} × ${height}</span>
  </li>`)}</ul>`;
}
