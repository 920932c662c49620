// What a checkpoint changed: the fields of two states, compared. Pure but for the last function.

import { brief, longText } from "./json.js";
import { button, h, number, put } from "./dom.js";

const MOST = 500;
const ROWS = 100;
const isObject = (value) => value !== null && typeof value === "object" && !Array.isArray(value);

/** The differences as `{ path, kind, before, after }`; kinds are added, removed, changed, appended. */
export function differences(before, after) {
  const found = [];
  compare(before ?? {}, after ?? {}, [], found);
  return found;
}

function compare(before, after, path, found) {
  if (found.length >= MOST || before === after) return;
  if (isObject(before) && isObject(after)) {
    for (const name of new Set([...Object.keys(before), ...Object.keys(after)])) {
      const at = [...path, name];
      if (!(name in before)) found.push({ path: at, kind: "added", after: after[name] });
      else if (!(name in after)) found.push({ path: at, kind: "removed", before: before[name] });
      else compare(before[name], after[name], at, found);
    }
    return;
  }
  if (Array.isArray(before) && Array.isArray(after)) {
    compareLists(before, after, path, found);
    return;
  }
  found.push({ path, kind: "changed", before, after });
}

/** Lists whose items have ids are compared by them, others by position. */
function compareLists(before, after, path, found) {
  const ids = (list) => list.every((item) => isObject(item) && typeof item.id === "string");
  if (before.length && ids(before) && ids(after)) {
    const old = new Map(before.map((item) => [item.id, item]));
    const now = new Set(after.map((item) => item.id));
    after.forEach((item, at) => {
      if (old.has(item.id)) compare(old.get(item.id), item, [...path, at], found);
      else found.push({ path: [...path, at], kind: "appended", after: item });
    });
    before.forEach((item, at) => {
      if (!now.has(item.id)) found.push({ path: [...path, at], kind: "removed", before: item });
    });
    return;
  }
  for (let at = 0; at < Math.max(before.length, after.length) && found.length < MOST; at++) {
    if (at >= before.length) found.push({ path: [...path, at], kind: "appended", after: after[at] });
    else if (at >= after.length) found.push({ path: [...path, at], kind: "removed", before: before[at] });
    else compare(before[at], after[at], [...path, at], found);
  }
}

const WORDS = { added: "new", removed: "gone", changed: "changed", appended: "added" };

/** The differences, to be seen. */
export function view(found) {
  if (!found.length) return h("p", { class: "empty" }, "This checkpoint changed no field.");
  const list = h("ul", { class: "delta" });
  const pager = h("div", { class: "pager" });
  let first = 0;
  const draw = () => {
    put(list, found.slice(first, first + ROWS).map(row));
    const all = found.length >= MOST ? `the first ${number(MOST)}` : number(found.length);
    put(pager, found.length > ROWS && [
      h("span", {}, `${first + 1}–${Math.min(first + ROWS, found.length)} of ${all}`),
      button("Previous changes", () => { first -= ROWS; draw(); }, { disabled: first === 0 }),
      button("Next changes", () => { first += ROWS; draw(); }, { disabled: first + ROWS >= found.length }),
    ]);
  };
  draw();
  return h("div", {}, list, pager);
}

function row({ path, kind, before, after }) {
  return h("li", { class: `is-${kind}` }, h("span", { class: "kind" }, WORDS[kind]), " ", h("code", { class: "path" }, path.join(" › ")),
    before !== undefined && h("del", {}, shown(before)), after !== undefined && h("ins", {}, shown(after)));
}

function shown(value) {
  if (typeof value === "string") return value.length > 400 ? longText(value) : JSON.stringify(value);
  const text = JSON.stringify(value);
  return text.length > 400 ? brief(value, 200) : text;
}
