// A terminal in a sandbox. What it is drawn with is loaded when one is opened.
//
// What comes from the sandbox is drawn by an emulator, which knows text and colours and no markup;
// links, titles and the clipboard are not given to it.
import { html, useEffect, useRef, useState } from "../dom.js";
import { Failure } from "../parts.js";
import { plain } from "../text.js";

const ENDED = { 1001: "The server ended.", 1006: "The connection was lost." };
// Of what is typed before there is a connection.
const TYPED_MAX = 1000;
// So long nothing is resized again.
const RESIZE_MS = 80;

let loading = null;

function emulator() {
  return (loading ??= Promise.all([import("../vendor/xterm.js"), import("../vendor/fit.js"), loadStyles()]).then(([{ Terminal }, { FitAddon }]) => {
    obeyStylePolicy();
    return { Terminal, FitAddon };
  }));
}

function loadStyles() {
  return new Promise((resolve) => {
    const link = document.createElement("link");
    Object.assign(link, { rel: "stylesheet", href: new URL("../vendor/xterm.css", import.meta.url).href, onload: resolve, onerror: resolve });
    document.head.append(link);
  });
}

// The page permits no style that stands in an element. What the emulator would write there becomes
// a sheet of its own, and what it would set as an attribute is set as properties. Nothing else here
// makes elements this way.
function obeyStylePolicy() {
  const create = document.createElement.bind(document);
  document.createElement = (name, options) => {
    if (name === "style") return sheetElement(create("i"));
    const element = create(name, options);
    if (name === "span") {
      element.setAttribute = (attribute, value) => {
        if (attribute === "style") element.style.cssText = value;
        else Element.prototype.setAttribute.call(element, attribute, value);
      };
    }
    return element;
  };
}

function sheetElement(element) {
  const sheet = new CSSStyleSheet();
  document.adoptedStyleSheets.push(sheet);
  element.hidden = true;
  Object.defineProperty(element, "textContent", { set: (text) => sheet.replaceSync(text) });
  element.remove = () => {
    document.adoptedStyleSheets = document.adoptedStyleSheets.filter((other) => other !== sheet);
    Element.prototype.remove.call(element);
  };
  return element;
}

export function TerminalTab({ base, mayDrive, onChange }) {
  const [isOpen, setIsOpen] = useState(false);
  const [end, setEnd] = useState("");
  const button = useRef(null);
  const closed = (words) => {
    setEnd(words);
    setIsOpen(false);
    onChange();
    button.current?.focus();
  };
  if (!mayDrive) return html`<p class="lead">You may look at this sandbox, and not type in it.</p>`;
  return html`
    <p class="tools">
      <button ref=${button} class=${isOpen ? "" : "primary"} onClick=${() => (isOpen ? closed("You closed it.") : (setEnd(""), setIsOpen(true)))}>${isOpen ? "Close the terminal" : "Open a terminal"}</button>
      <span class="faint">${isOpen ? html`<kbd>Shift</kbd> <kbd>Esc</kbd> leaves it; every other key is the shell's.` : "A shell in the sandbox. It ends when it is closed."}</span></p>
    <p role="status" class="faint">${end && `The terminal is closed. ${end}`}</p>
    ${isOpen && html`<${Screen} base=${base} onClose=${closed} onLeave=${() => button.current?.focus()} />`}`;
}

function Screen({ base, onClose, onLeave }) {
  const place = useRef(null);
  const [error, setError] = useState(null);
  useEffect(() => {
    let open = null;
    let isGone = false;
    emulator().then(
      (parts) => {
        if (!isGone) open = connect(parts, place.current, base, onClose, onLeave);
      },
      setError,
    );
    return () => {
      isGone = true;
      open?.();
    };
  }, []);
  // Keys of the page are none here.
  const keep = (event) => event.stopPropagation();
  return html`<${Failure} error=${error} /><div class="terminal-place" ref=${place} role="group" aria-label="Terminal" onKeyDown=${keep}></div>`;
}

// Opens one, and gives what closes it.
function connect({ Terminal, FitAddon }, place, base, onClose, onLeave) {
  const dark = matchMedia("(prefers-color-scheme: dark)");
  const terminal = new Terminal({
    screenReaderMode: true,
    fontFamily: getComputedStyle(document.documentElement).getPropertyValue("--mono"),
    fontSize: 14,
    scrollback: 5000,
    theme: themeOf(),
    // A hint over a link could say something else than where it leads.
    linkHandler: { activate: () => {} },
  });
  const fit = new FitAddon();
  terminal.loadAddon(fit);
  terminal.open(place);
  fit.fit();
  const scheme = location.protocol === "https:" ? "wss:" : "ws:";
  const size = () => ({ cols: Math.min(terminal.cols, 1000), rows: Math.min(terminal.rows, 1000) });
  const socket = new WebSocket(`${scheme}//${location.host}${base}/terminal?${new URLSearchParams(size())}`);
  socket.binaryType = "arraybuffer";
  // What is typed before it is open waits for it.
  const typed = [];
  const send = (data) => {
    if (socket.readyState === WebSocket.OPEN) socket.send(data);
    else if (socket.readyState === WebSocket.CONNECTING && typed.length < TYPED_MAX) typed.push(data);
  };
  socket.onopen = () => typed.splice(0).forEach((data) => socket.send(data));
  const encoder = new TextEncoder();
  terminal.onData((text) => send(encoder.encode(text)));
  terminal.onBinary((text) => send(Uint8Array.from(text, (char) => char.charCodeAt(0))));
  terminal.onResize(() => send(JSON.stringify(size())));
  terminal.attachCustomKeyEventHandler((event) => {
    if (event.key !== "Escape" || !event.shiftKey) return true;
    if (event.type === "keydown") onLeave();
    return false;
  });
  socket.onmessage = ({ data }) => terminal.write(new Uint8Array(data));
  let isOurs = false;
  socket.onclose = ({ code, reason }) => {
    if (!isOurs) onClose(plain(sentence(reason) || ENDED[code] || "It ended."));
  };
  let later = 0;
  const resized = new ResizeObserver(() => {
    clearTimeout(later);
    later = setTimeout(() => fit.fit(), RESIZE_MS);
  });
  resized.observe(place);
  const recolour = () => (terminal.options.theme = themeOf());
  dark.addEventListener("change", recolour);
  terminal.focus();
  return () => {
    isOurs = true;
    clearTimeout(later);
    resized.disconnect();
    dark.removeEventListener("change", recolour);
    socket.close();
    terminal.dispose();
  };
}

const sentence = (words) => words && `${words.charAt(0).toUpperCase()}${words.slice(1)}.`;

// The colours of the page; the sixteen of terminals so that they can be read on them.
function themeOf() {
  const style = getComputedStyle(document.documentElement);
  const colour = (name) => style.getPropertyValue(name).trim();
  const own = { background: colour("--panel"), foreground: colour("--ink"), cursor: colour("--accent"), cursorAccent: colour("--panel"), selectionBackground: colour("--line-strong") };
  return matchMedia("(prefers-color-scheme: dark)").matches ? { ...own, ...DARK } : { ...own, ...LIGHT };
}

const LIGHT = { black: "#1c2226", red: "#a8261c", green: "#17693f", yellow: "#8a4b00", blue: "#1f4fa3", magenta: "#7b2d8b", cyan: "#0b5f69", white: "#5a636a", brightBlack: "#5a636a", brightRed: "#a8261c", brightGreen: "#17693f", brightYellow: "#8a4b00", brightBlue: "#1f4fa3", brightMagenta: "#7b2d8b", brightCyan: "#0b5f69", brightWhite: "#1c2226" };
const DARK = { black: "#6d7981", red: "#ff9b90", green: "#6fce95", yellow: "#f4b860", blue: "#8fb8ff", magenta: "#dca0e8", cyan: "#6cc7cf", white: "#e4e8ea", brightBlack: "#9ba6ad", brightRed: "#ff9b90", brightGreen: "#6fce95", brightYellow: "#f4b860", brightBlue: "#8fb8ff", brightMagenta: "#dca0e8", brightCyan: "#6cc7cf", brightWhite: "#ffffff" };
