// Elements, times and sizes. Everything that comes from the server is set as text or as an attribute's value,
// never parsed as HTML.

const PROPERTIES = new Set(["value", "checked", "disabled", "indeterminate", "selected", "open", "hidden"]);
const SVG = "http://www.w3.org/2000/svg";

/** An element with attributes, listeners (`onclick`) and children; strings become text. */
export function h(tag, attributes, ...children) {
  return fill(document.createElement(tag), attributes, children);
}

/** The same in SVG. */
export function svg(tag, attributes, ...children) {
  return fill(document.createElementNS(SVG, tag), attributes, children);
}

function fill(element, attributes, children) {
  for (const [name, value] of Object.entries(attributes ?? {})) {
    if (value === null || value === undefined || value === false && !PROPERTIES.has(name)) continue;
    if (name.startsWith("on")) element.addEventListener(name.slice(2), value);
    else if (PROPERTIES.has(name)) element[name] = value;
    else element.setAttribute(name, value === true ? "" : String(value));
  }
  element.append(...shown(children));
  return element;
}

function shown(children) {
  return children.flat(3).filter((child) => child !== null && child !== undefined && child !== false);
}

/** Replaces the children of an element. */
export function put(element, ...children) {
  element.replaceChildren(...shown(children));
  return element;
}

/** Keeps the element with the focus, by its `data-key`, while `change` replaces elements. */
export function keepFocus(root, change) {
  const active = document.activeElement;
  const key = root.contains(active) ? active?.dataset?.key : undefined;
  change();
  if (key && !root.contains(document.activeElement)) root.querySelector(`[data-key="${CSS.escape(key)}"]`)?.focus();
}

export const button = (text, onclick, attributes = {}) => h("button", { type: "button", onclick, ...attributes }, text);

export function labelled(text, control, attributes = {}) {
  return h("label", { class: "field", ...attributes }, h("span", {}, text), control);
}

/** A pill with a status. The word says it, too: colour alone would not do. */
export const pill = (status) => h("span", { class: `pill ${known(status)}` }, status ?? "unknown");

const STATUSES = ["idle", "busy", "interrupted", "error", "success", "pending", "running", "timeout", "done", "failed",
  "stopped", "skipped", "cached"];
const known = (status) => STATUSES.includes(status) ? `is-${status}` : "";

export const shortId = (id) => id && id.length > 18 ? `${id.slice(0, 8)}…${id.slice(-6)}` : id ?? "";

const UNITS = [["d", 86_400], ["h", 3600], ["min", 60], ["s", 1]];

export function ago(time) {
  const seconds = Math.max(0, (Date.now() - Date.parse(time)) / 1000);
  if (!Number.isFinite(seconds)) return "";
  if (seconds < 5) return "now";
  const [unit, size] = UNITS.find(([, size]) => seconds >= size);
  return `${Math.floor(seconds / size)} ${unit} ago`;
}

export function when(time) {
  const date = new Date(time);
  if (Number.isNaN(date.getTime())) return h("span", {}, "–");
  return h("time", { datetime: date.toISOString(), title: date.toLocaleString() }, ago(time));
}

export function clock(time) {
  const date = new Date(time);
  if (Number.isNaN(date.getTime())) return "";
  return date.toLocaleTimeString([], { hour12: false }) + "." + String(date.getMilliseconds()).padStart(3, "0");
}

export function duration(ms) {
  if (!Number.isFinite(ms) || ms < 0) return "";
  if (ms < 1000) return `${ms < 10 ? ms.toFixed(1) : Math.round(ms)} ms`;
  if (ms < 60_000) return `${(ms / 1000).toFixed(ms < 10_000 ? 2 : 1)} s`;
  if (ms < 3_600_000) return `${Math.floor(ms / 60_000)} min ${Math.round(ms % 60_000 / 1000)} s`;
  return `${Math.floor(ms / 3_600_000)} h ${Math.floor(ms % 3_600_000 / 60_000)} min`;
}

export function size(bytes) {
  if (bytes < 1000) return `${bytes} B`;
  return bytes < 1_000_000 ? `${(bytes / 1000).toFixed(1)} kB` : `${(bytes / 1_000_000).toFixed(1)} MB`;
}

export const number = (count) => count.toLocaleString("en");
/** A number of things: `1 thread`, `2 threads`. */
export const counted = (count, one) => `${number(count)} ${one}${count === 1 ? "" : "s"}`;

let hide = 0;
export function toast(text, isError = false) {
  const element = document.getElementById("toast");
  element.textContent = text;
  element.classList.toggle("bad", isError);
  element.hidden = false;
  clearTimeout(hide);
  hide = setTimeout(() => { element.hidden = true; }, isError ? 10_000 : 3000);
}

export async function copy(text) {
  try {
    await navigator.clipboard.writeText(text);
    toast("Copied");
  } catch {
    toast("The browser refused to copy", true);
  }
}

/** Hands a text to the user as a file. */
export function save(name, text, type) {
  const url = URL.createObjectURL(new Blob([text], { type }));
  h("a", { href: url, download: name }).click();
  setTimeout(() => URL.revokeObjectURL(url), 10_000);
}

/** A button that asks a second time before it acts. */
export function confirmed(text, question, act, attributes = {}) {
  let armed = 0;
  const element = button(text, () => {
    if (armed) {
      clearTimeout(armed);
      armed = 0;
      element.textContent = text;
      act();
      return;
    }
    element.textContent = question;
    armed = setTimeout(() => { armed = 0; element.textContent = text; }, 4000);
  }, attributes);
  return element;
}
