// A checkpoint edited, and a run that goes on from there: the thread gets a branch, and nothing is lost.

import { graphNamed, post } from "./api.js";
import { h, labelled, put } from "./dom.js";
import { formOf, json, Unread } from "./form.js";
import { problemOf } from "./schema.js";
import { pauseFields } from "./start.js";

const LARGE = 20_000;

/** The form for the checkpoint that a screen shows. */
export function edit(screen) {
  const element = h("form", { class: "card fork" });
  const { shown, graph, id } = screen;
  if (!shown?.checkpoint_id || !graph) return put(element, h("p", { class: "empty" }, "There is no checkpoint yet."));
  if (shown.next[0] === "__start__") return put(element, h("p", { class: "empty" }, "The place before an input has no state to edit: give it another input."));
  graphNamed(graph).then((found) => fill(element, screen, shown, found?.schema ?? null, id), (error) => { element.textContent = error.message; });
  return element;
}

function fill(element, screen, shown, schema, thread) {
  const channels = Object.entries(shown.values ?? {}).map(([name, value]) => channel(name, value, schema));
  const placeholder = shown.next.length ? `goes on with ${shown.next.join(", ")}` : "name of a node";
  const as = h("input", { name: "as", autocomplete: "off", placeholder, required: !shown.next.length });
  const pauses = pauseFields();
  const problem = h("p", { class: "problem", role: "alert" });
  element.onsubmit = async (event) => {
    event.preventDefault();
    problem.textContent = "";
    try {
      const values = Object.fromEntries(channels.map(({ name, read }) => [name, read()]).filter(([, value]) => value !== undefined));
      // Without a node the branch goes on with the nodes of the placeholder, whatever a route would choose now.
      const as_node = as.value.trim() || "__copy__";
      await post(`threads/${thread}/state`, { checkpoint_id: shown.checkpoint_id, values, as_node });
      await screen.start({ input: null, ...pauses.read() });
    } catch (error) {
      element.querySelector("[aria-invalid=true]")?.focus();
      problem.textContent = error instanceof Unread ? `A field cannot be read: ${error.message}` : error.message;
    }
  };
  put(element, h("p", {}, "Changed fields replace those of the checkpoint. The run is a new branch; the others stay."),
    channels.map((one) => one.element), labelled("As if written by", as), pauses.element, problem,
    h("div", { class: "actions" }, h("button", { type: "submit", class: "primary" }, "Run from here")));
}

/** A field for one channel, whose `read` gives the write of a value that was changed. */
function channel(name, value, schema) {
  const before = JSON.stringify(value);
  if (before.length > LARGE) {
    return { name, read: () => undefined, element: h("p", { class: "facts" }, h("code", {}, name), " is too large to be edited here.") };
  }
  const known = schema?.properties?.[name];
  const about = { name, label: name, isRequired: false };
  const field = known && isSimple(known) ? formOf({ ...known, $defs: schema.$defs, title: undefined }, value, name) : json(value, about);
  const read = () => {
    const after = field.read();
    if (after === undefined || JSON.stringify(after) === before) return undefined;
    const problem = known && problemOf(known, after, schema);
    if (problem) {
      field.element.querySelector("input, select, textarea")?.setAttribute("aria-invalid", "true");
      throw new Unread(`${name}${problem}`);
    }
    return { __overwrite__: after };
  };
  return { name, read, element: field.element };
}

const isSimple = (schema) => ["string", "integer", "number", "boolean"].includes(schema.type);
