// A form made of a JSON schema. What a schema says that this does not know becomes a field for JSON, so
// every value can be given.

import { button, h, put } from "./dom.js";

const DEEPEST = 4;

/** A value that cannot be read, with the field that has it. */
export class Unread extends Error {}

/** Fields for a value: `{ element, read() }`. `read` throws `Unread` and shows the problem at the field. */
export function formOf(schema, value, name = "value") {
  return field(schema ?? true, value, { name, root: schema, depth: 0, isRequired: true });
}

function field(given, value, place) {
  const schema = resolved(given, place.root);
  const { title, description } = schema;
  const label = title && place.depth === 0 ? title : place.name;
  const about = { ...place, label, description };
  const options = optionsOf(schema);
  if (options) return choice(options, value, about);
  const types = [schema.type ?? []].flat().filter((type) => type !== "null");
  const type = types.length === 1 ? types[0] : null;
  if (type === "object" && schema.properties && place.depth < DEEPEST) return fields(schema, value, about);
  if (type === "boolean") return choice([[true, "yes"], [false, "no"]], value, about);
  if (type === "string") return line(schema, value, about, (text) => text);
  if (type === "integer" || type === "number") return line(schema, value, about, (text) => numeric(text, type));
  if (type === "array" && place.depth < DEEPEST && schema.items && schema.items !== true) return items(schema, value, about);
  return json(value, about);
}

/** The schema behind references and behind `anyOf` with null. */
function resolved(schema, root, most = 16) {
  if (schema === true || schema === null || typeof schema !== "object") return {};
  if (most === 0) return schema;
  if (typeof schema.$ref === "string" && schema.$ref.startsWith("#/")) {
    const target = schema.$ref.slice(2).split("/").reduce((at, part) => at?.[part.replaceAll("~1", "/").replaceAll("~0", "~")], root);
    const { $ref: _, ...beside } = schema;
    return { ...resolved(target, root, most - 1), ...beside };
  }
  const some = (schema.anyOf ?? schema.oneOf ?? schema.allOf)?.filter((one) => one?.type !== "null");
  if (some?.length === 1) return { ...resolved(some[0], root, most - 1), ...(schema.description ? { description: schema.description } : {}) };
  return schema;
}

/** The values of an enumeration with their texts. */
function optionsOf(schema) {
  if ("const" in schema) return [[schema.const, text(schema.const)]];
  if (Array.isArray(schema.enum)) return schema.enum.map((one) => [one, text(one)]);
  const some = schema.oneOf ?? schema.anyOf;
  const isFlat = some?.length && some.every((one) => one && typeof one === "object" && ("const" in one || Array.isArray(one.enum)));
  return isFlat ? some.flatMap((one) => ("const" in one ? [one.const] : one.enum).map((value) => [value, one.title ?? text(value)])) : null;
}

const text = (value) => typeof value === "string" ? value : JSON.stringify(value);

const small = ({ description }) => description && h("small", {}, description.slice(0, 300));

/** A label with a control, a description, and a place for what is wrong. */
function framed(control, { label, description, isRequired, depth }) {
  const problem = h("span", { class: "problem", role: "alert" });
  const star = isRequired && depth > 0 && h("span", { class: "required", title: "required" }, " *");
  const element = h("label", { class: "field" }, h("span", {}, label, star),
    small({ description }), control, problem);
  const refuse = (message) => {
    problem.textContent = message;
    control.setAttribute("aria-invalid", "true");
    throw new Unread(message);
  };
  const clear = () => {
    problem.textContent = "";
    control.removeAttribute("aria-invalid");
  };
  return { element, refuse, clear };
}

function line(schema, value, about, parse) {
  const { name } = about;
  const isLong = schema.type === "string" && (String(value ?? "").length > 60 || (schema.maxLength ?? 0) > 200 || schema.format === "textarea");
  const type = schema.type === "string" ? "text" : "number";
  const step = schema.type === "integer" ? 1 : "any";
  const control = isLong ? h("textarea", { name, rows: 3 }) : h("input", { name, type, step, autocomplete: "off" });
  for (const [from, to] of [["minLength", "minlength"], ["maxLength", "maxlength"], ["minimum", "min"], ["maximum", "max"], ["pattern", "pattern"]]) {
    if (schema[from] !== undefined && !isLong) control.setAttribute(to, schema[from]);
  }
  control.value = value ?? schema.default ?? "";
  const frame = framed(control, about);
  return {
    element: frame.element,
    read() {
      frame.clear();
      if (control.validity.badInput) frame.refuse("not a number");
      if (control.value === "" && (!about.isRequired || schema.type !== "string")) return about.isRequired ? frame.refuse("missing") : undefined;
      if (!control.checkValidity()) frame.refuse(control.validationMessage);
      return parse(control.value);
    },
  };
}

function numeric(text, type) {
  const number = Number(text);
  return type === "integer" ? Math.trunc(number) : number;
}

function choice(options, value, about) {
  const at = options.findIndex(([one]) => JSON.stringify(one) === JSON.stringify(value));
  const control = h("select", { name: about.name }, (at < 0 || !about.isRequired) && h("option", { value: "" }, "–"),
    options.map(([, text], index) => h("option", { value: String(index), selected: index === at }, text)));
  const frame = framed(control, about);
  return {
    element: frame.element,
    read() {
      frame.clear();
      if (control.value === "") return about.isRequired ? frame.refuse("choose one") : undefined;
      return options[Number(control.value)][0];
    },
  };
}

function fields(schema, value, about) {
  const required = schema.required ?? [];
  const inner = Object.entries(schema.properties).map(([name, one]) => {
    const place = { name, root: about.root, depth: about.depth + 1, isRequired: required.includes(name) };
    return [name, field(one, value?.[name] ?? one?.default, place)];
  });
  const legend = about.depth > 0 || about.label !== "value";
  return {
    element: h("fieldset", {}, legend && h("legend", {}, about.label), small(about), inner.map(([, one]) => one.element)),
    read() {
      const read = inner.map(([name, one]) => [name, one.read()]).filter(([, value]) => value !== undefined);
      return read.length || about.isRequired ? Object.fromEntries(read) : undefined;
    },
  };
}

function items(schema, value, about) {
  const rows = [];
  const list = h("div", { class: "items" });
  const add = (value) => {
    const one = field(schema.items, value, { name: `${about.name} ${rows.length + 1}`, root: about.root, depth: about.depth + 1, isRequired: true });
    const row = { ...one, element: h("div", { class: "item" }, one.element,
      button("Remove", () => { rows.splice(rows.indexOf(row), 1); row.element.remove(); }, { class: "small" })) };
    rows.push(row);
    list.append(row.element);
  };
  for (const one of (Array.isArray(value) ? value : []).slice(0, 50)) add(one);
  return {
    element: h("fieldset", {}, h("legend", {}, about.label), small(about), list, button("Add", () => add(undefined), { class: "small" })),
    read: () => rows.length || about.isRequired ? rows.map((row) => row.read()) : undefined,
  };
}

/** A field for JSON. What is no JSON is a text if `isLoose`. */
export function json(value, about, isLoose = false) {
  const text = value === undefined ? "" : JSON.stringify(value, null, 2);
  const rows = Math.min(12, text.split("\n").length + 1);
  const control = h("textarea", { name: about.name, rows, spellcheck: "false", class: "code" });
  control.value = text;
  const frame = framed(control, about);
  return {
    element: frame.element,
    control,
    read() {
      frame.clear();
      if (!control.value.trim()) return about.isRequired ? frame.refuse("missing") : undefined;
      try { return JSON.parse(control.value); } catch (error) {
        return isLoose ? control.value : frame.refuse(`not JSON: ${error.message}`);
      }
    },
  };
}

/** A field for an answer of which nothing is known: JSON, or a text; with the usual two. */
export function anything(name) {
  const one = json(undefined, { name, label: name, description: "JSON; anything else is sent as a text", isRequired: true }, true);
  one.control.rows = 2;
  const set = (text) => () => {
    one.control.value = text;
    one.control.dispatchEvent(new Event("input", { bubbles: true }));
  };
  const element = h("div", { class: "anything" });
  put(element, one.element, h("div", { class: "quick" }, button("Yes (true)", set("true"), { class: "small" }),
    button("No (false)", set("false"), { class: "small" })));
  return { element, read: one.read };
}
