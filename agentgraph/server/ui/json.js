// A value as a tree of rows. Only the rows of a window are in the page, so a value may be of any size; long
// strings and images are folded.

import { button, copy, h, keepFocus, put, size } from "./dom.js";

const ROWS = 120;
const SHORT = 160;
const PIECE = 10_000;
const IMAGE = /^data:image\/(png|jpeg|gif|webp|svg\+xml);base64,/;

/** The text of a value on one line, cut. */
export function brief(value, most = 80) {
  const text = typeof value === "string" ? value : briefJson(value);
  return text.length > most ? `${text.slice(0, most - 1)}…` : text;
}

function briefJson(value) {
  if (Array.isArray(value)) return value.length ? `[ ${value.length} ${value.length === 1 ? "item" : "items"} ]` : "[ ]";
  if (value && typeof value === "object") {
    const names = Object.keys(value);
    return names.length ? `{ ${names.slice(0, 6).join(", ")}${names.length > 6 ? ", …" : ""} }` : "{ }";
  }
  return JSON.stringify(value) ?? "null";
}

const isTree = (value) => value !== null && typeof value === "object" && Object.keys(value).length > 0;

/** A view of a value. `place` keeps the open paths and the window, so that a later value is shown alike. */
export function tree(value, place = { opened: new Set(), first: 0 }, label = "Value") {
  const { opened } = place;
  const list = h("ul", { class: "json", "aria-label": label });
  const pager = h("div", { class: "pager" });
  const draw = () => keepFocus(list, () => {
    const rows = flat(value, opened);
    const first = place.first = Math.max(0, Math.min(place.first, rows.length - 1));
    const move = (by) => () => { place.first += by; draw(); };
    put(list, rows.slice(first, first + ROWS).map((row) => item(row, opened, draw)));
    put(pager, rows.length > ROWS && [
      h("span", {}, `rows ${first + 1}–${Math.min(first + ROWS, rows.length)} of ${rows.length}`),
      button("Previous rows", move(-ROWS), { disabled: first === 0 }),
      button("Next rows", move(ROWS), { disabled: first + ROWS >= rows.length }),
    ]);
  });
  draw();
  return h("div", { class: "tree" }, list, pager);
}

/** The rows that are seen. */
function flat(value, opened) {
  const rows = [];
  const add = (name, value, path, depth) => {
    rows.push({ name, value, path, depth });
    if (!isTree(value) || !opened.has(path)) return;
    for (const key of Object.keys(value)) add(key, value[key], `${path}/${key}`, depth + 1);
  };
  if (isTree(value)) {
    for (const key of Object.keys(value)) add(key, value[key], `/${key}`, 0);
  } else {
    add(null, value, "/", 0);
  }
  return rows;
}

function item({ name, value, path, depth }, opened, draw) {
  const key = name !== null && [h("span", { class: "key" }, name), " "];
  const indent = `d${Math.min(depth, 12)}`;
  if (!isTree(value)) return h("li", { class: indent }, key, leaf(value, path, opened, draw));
  const isOpen = opened.has(path);
  const toggle = () => {
    if (isOpen) opened.delete(path);
    else opened.add(path);
    draw();
  };
  return h("li", { class: indent },
    h("button", { type: "button", class: "fold", "aria-expanded": String(isOpen), onclick: toggle, "data-key": path }, key,
      h("span", { class: "brief" }, briefJson(value))));
}

function leaf(value, path, opened, draw) {
  if (typeof value !== "string") return h("span", { class: value === null ? "null" : typeof value }, briefJson(value));
  if (value.length <= SHORT) return h("span", { class: "string" }, JSON.stringify(value));
  const isOpen = opened.has(path);
  const toggle = () => { opened[isOpen ? "delete" : "add"](path); draw(); };
  const isImage = IMAGE.test(value);
  const show = isImage ? "Show image" : "Show text";
  const fold = button(`${isOpen ? "Hide" : show} (${size(value.length)})`, toggle, { class: "small", "aria-expanded": String(isOpen), "data-key": path });
  const copies = button("Copy", () => copy(value), { class: "small" });
  if (!isOpen) return [h("span", { class: "string" }, JSON.stringify(value.slice(0, 60)).slice(0, -1), "…\""), fold, copies];
  if (isImage) return [fold, copies, h("img", { src: value, alt: "An image of the state" })];
  return [fold, copies, longText(value)];
}

/** A long text, a piece at a time. */
export function longText(text) {
  const shown = h("pre", { class: "long", tabindex: 0 });
  const pager = h("div", { class: "pager" });
  let at = 0;
  const draw = () => {
    shown.textContent = text.slice(at, at + PIECE);
    put(pager, text.length > PIECE && [
      h("span", {}, `${size(at)}–${size(Math.min(at + PIECE, text.length))} of ${size(text.length)}`),
      button("Previous", () => { at -= PIECE; draw(); }, { disabled: at === 0, class: "small" }),
      button("Next", () => { at += PIECE; draw(); }, { disabled: at + PIECE >= text.length, class: "small" }),
    ]);
  };
  draw();
  return h("div", { class: "long-text" }, shown, pager);
}

/** The value as text to read and to copy, a piece at a time. */
export function source(value) {
  const text = JSON.stringify(value, null, 2) ?? "null";
  return h("div", { class: "source" }, button(`Copy (${size(text.length)})`, () => copy(text)), longText(text));
}
