// A run with a new input: a message for graphs that have messages, a form made of the schema, or JSON.

import { change, go, link } from "./address.js";
import { graphNamed, graphs, post, startRun } from "./api.js";
import { h, labelled, put } from "./dom.js";
import { formOf, json, Unread } from "./form.js";

export function mount(main, address) {
  const screen = new Start(main);
  screen.update(address);
  return screen;
}

class Start {
  title = "New run";

  constructor(main) {
    this.place = h("div");
    put(main, h("h1", {}, "New run"), this.place);
  }

  async update({ query }) {
    const list = await graphs().catch((error) => { put(this.place, h("p", { class: "problem" }, error.message)); });
    if (!list) return;
    const name = query.get("graph") ?? list[0]?.graph_id;
    if (name === this.name) return;
    this.name = name;
    const select = h("select", { onchange: () => change({ graph: select.value }, true) }, list.map((graph) =>
      h("option", { value: graph.graph_id, selected: graph.graph_id === name }, graph.graph_id)));
    put(this.place, labelled("Graph", select), inputForm(name, (fields) => this.start(name, fields)));
  }

  async start(graph, fields) {
    const { thread_id: id } = await post("threads", { graph_id: graph });
    await startRun(id, graph, fields);
    go(link("threads", id));
  }
}

/** A form for an input of a graph, and for where the run pauses. `start` gets the fields of the run. */
export function inputForm(name, start) {
  const element = h("form", { class: "card input" }, h("p", { class: "empty" }, name ? "Loading …" : "The thread has no graph yet."));
  if (name) graphNamed(name).then((graph) => graph && fillForm(element, graph, start), (error) => { element.textContent = error.message; });
  return element;
}

function fillForm(element, graph, start) {
  const isChat = Array.isArray(graph.initial?.messages);
  const message = h("textarea", { name: "message", rows: 3, "data-search": true });
  const initial = isChat ? without(graph.initial, "messages") : graph.initial;
  const input = isChat ? json(initial, { name: "fields", label: "Other fields", isRequired: false })
    : graph.schema ? formOf(optional(graph.schema), graph.initial) : json(initial ?? {}, { name: "input", label: "Input", isRequired: true });
  const pauses = pauseFields();
  const problem = h("p", { class: "problem", role: "alert" });
  const hasMore = !isChat || Object.keys(initial).length > 0;
  element.onsubmit = async (event) => {
    event.preventDefault();
    problem.textContent = "";
    try {
      const values = hasMore ? input.read() ?? {} : {};
      if (isChat && message.value.trim()) values.messages = [{ type: "human", content: message.value.trim() }];
      await start({ input: values, ...pauses.read() });
    } catch (error) {
      problem.textContent = error instanceof Unread ? `An input cannot be read: ${error.message}` : error.message;
    }
  };
  put(element, isChat && labelled("Message", message),
    hasMore && (isChat ? h("details", {}, h("summary", {}, "Other fields"), input.element) : input.element),
    pauses.element, problem, h("div", { class: "actions" }, h("button", { type: "submit", class: "primary" }, "Run")));
}

/** Fields for the nodes at which a run pauses. */
export function pauseFields() {
  const [before, after] = ["before", "after"].map((name) =>
    h("input", { name: `pause-${name}`, autocomplete: "off", placeholder: "names of nodes, or *" }));
  return {
    element: h("div", { class: "pair" }, labelled("Pause before", before), labelled("Pause after", after)),
    read: () => ({ interrupt_before: nodesOf(before.value), interrupt_after: nodesOf(after.value) }),
  };
}

/** A list of names, separated by commas. */
function nodesOf(text) {
  const names = text.split(",").map((name) => name.trim()).filter(Boolean);
  return names.includes("*") ? "*" : names;
}

const without = (object, name) => Object.fromEntries(Object.entries(object).filter(([one]) => one !== name));

/** An input is an update: no field of the state is required. */
const optional = (schema) => ({ ...schema, title: undefined, description: undefined, required: [] });
