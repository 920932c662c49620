// The drawing of a graph, which the server makes, with a run laid over it by classes of its nodes and edges.

import { text } from "./api.js";
import { h, put } from "./dom.js";

/** A larger drawing is shown as a picture: it costs one element, and is not laid over. */
const MOST_ELEMENTS = 700;
const STATES = ["done", "running", "next", "failed", "asking", "skipped"];

export class Drawing {
  constructor(onNode) {
    this.onNode = onNode;
    this.place = h("div", { class: "drawing" });
    this.legend = h("p", { class: "legend" }, STATES.map((state) => h("span", { class: state }, state)));
    this.element = h("section", { class: "card graph", "aria-label": "Graph" }, h("h2", {}, "Graph"), this.place, this.legend);
  }

  async load(name) {
    if (this.name === name) return;
    this.name = name;
    try {
      this.insert(await text(`ui/graphs/${encodeURIComponent(name)}.svg`));
    } catch (error) {
      this.name = null;
      put(this.place, h("p", { class: "empty" }, `No drawing: ${error.message}`));
    }
  }

  insert(source) {
    // The page has a stylesheet of its own for the drawing, and its policy allows no other.
    const bare = source.replace(/<style>[^]*?<\/style>/, "");
    const parsed = new DOMParser().parseFromString(bare, "image/svg+xml").documentElement;
    if (parsed.localName !== "svg" || !parsed.firstElementChild) {
      put(this.place, h("p", { class: "empty" }, "No drawing"));
      return;
    }
    if (parsed.querySelectorAll("*").length > MOST_ELEMENTS) {
      const url = URL.createObjectURL(new Blob([source], { type: "image/svg+xml" }));
      put(this.place, h("img", { src: url, alt: `The graph ${this.name}` }));
      this.legend.hidden = true;
      return;
    }
    for (const element of parsed.querySelectorAll("style, script, foreignObject, a")) element.remove();
    const drawing = document.importNode(parsed, true);
    drawing.setAttribute("role", "group");
    drawing.setAttribute("aria-label", `The graph ${this.name}`);
    for (const node of drawing.querySelectorAll(".node[data-node]")) this.makeButton(node);
    put(this.place, drawing);
    if (this.last) this.draw(...this.last);
  }

  makeButton(node) {
    const act = () => this.onNode(node.dataset.node);
    node.setAttribute("tabindex", "0");
    node.setAttribute("role", "button");
    node.addEventListener("click", act);
    node.addEventListener("keydown", (event) => {
      if (event.key !== "Enter" && event.key !== " ") return;
      event.preventDefault();
      act();
    });
  }

  /** Sets the classes by `{ nodes: Map(name -> state), edges: Set(json of [from, to]), counts: Map }`. */
  draw(states, chosen) {
    this.last = [states, chosen];
    for (const node of this.place.querySelectorAll(".node[data-node]")) {
      const name = node.dataset.node;
      const state = states.nodes.get(name);
      node.classList.remove(...STATES);
      if (state) node.classList.add(state);
      node.classList.toggle("chosen", name === chosen);
      const count = states.counts.get(name) ?? 0;
      node.setAttribute("aria-label", `${name}${state ? `, ${state}` : ""}${count > 1 ? `, ran ${count} times` : ""}`);
      node.setAttribute("aria-pressed", String(name === chosen));
    }
    for (const edge of this.place.querySelectorAll(".edge[data-from]")) {
      edge.classList.toggle("taken", states.edges.has(JSON.stringify([edge.dataset.from, edge.dataset.to])));
    }
  }
}

/** The state of each node at the checkpoint that is shown. */
export function statuses({ trace, history, shown, newest, query }) {
  const nodes = new Map();
  const edges = new Set();
  const counts = new Map();
  const ran = (name) => { nodes.set(name, "done"); counts.set(name, (counts.get(name) ?? 0) + 1); };
  const at = query.get("at");
  const isHead = !at || at === newest?.checkpoint_id;
  if (trace.tasks.length) {
    // Of a checkpoint in the past, only what led to it.
    const until = isHead ? Infinity : trace.timeOf(at) ?? Infinity;
    let before = ["__start__"];
    let step = [];
    for (const task of trace.tasks) {
      if (task.ns || task.start > until || !isHead && !(task.end <= until)) continue;
      if (step.length && task.step !== step[0].step) {
        before = step.map((one) => one.node);
        step = [];
      }
      step.push(task);
      for (const from of before) edges.add(JSON.stringify([from, task.node]));
      ran(task.node);
      if (task.status === "failed") nodes.set(task.node, "failed");
      else if (task.status === "skipped") nodes.set(task.node, "skipped");
      else if (task.end === null && !trace.ended) nodes.set(task.node, "running");
    }
  } else {
    const place = Math.max(0, history.findIndex((one) => one.checkpoint_id === at));
    for (const one of isHead ? history.slice(1) : history.slice(place + 1)) for (const name of one.next) ran(name);
  }
  for (const name of shown?.next ?? []) if (nodes.get(name) !== "running") nodes.set(name, "next");
  for (const task of shown?.tasks ?? []) {
    if (task.error) nodes.set(task.name, "failed");
    else if (task.interrupts?.length) nodes.set(task.name, "asking");
  }
  if (counts.size) nodes.set("__start__", "done");
  return { nodes, edges, counts };
}
