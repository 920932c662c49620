// The drawing of a graph, which the server makes, with a run laid over it by classes of its nodes and edges.
// Subgraphs are opened in place; those that are open are in the address.

import { change } from "./address.js";
import { text } from "./api.js";
import { button, h, put, save, svg, toast } from "./dom.js";

/** A larger drawing is shown as a picture: it costs one element, and is not laid over. */
const MOST_ELEMENTS = 700;
/** A value of the address by which no subgraph is open. */
const FOLDED = "-";
const STATES = ["done", "running", "next", "failed", "asking", "skipped"];

export class Drawing {
  constructor(onNode) {
    this.onNode = onNode;
    this.tools = h("div", { class: "tools" });
    this.place = h("div", { class: "drawing" });
    this.legend = h("p", { class: "legend" }, [...STATES, "temporary"].map((state) => h("span", { class: state }, state)));
    this.element = h("section", { class: "card graph", "aria-label": "Graph" },
      h("header", {}, h("h2", {}, "Graph"), this.tools), this.place, this.legend);
  }

  /** Shows a graph, with the temporary edits of a run if `edited` is its address. */
  async load(name, edited, opened) {
    const path = edited ?? `ui/graphs/${encodeURIComponent(name)}.svg?`;
    const from = opened === null ? path : `${path}&open=${encodeURIComponent(opened)}`;
    if (this.from === from) return;
    [this.from, this.name] = [from, name];
    try {
      const source = await text(from);
      if (this.from === from) this.insert(source);
    } catch (error) {
      this.from = null;
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
    this.legend.hidden = parsed.querySelectorAll("*").length > MOST_ELEMENTS;
    this.drawTools(source, parsed);
    if (this.legend.hidden) {
      const url = URL.createObjectURL(new Blob([source], { type: "image/svg+xml" }));
      put(this.place, h("img", { src: url, alt: `The graph ${this.name}` }));
      return;
    }
    for (const element of parsed.querySelectorAll("style, script, foreignObject, a")) element.remove();
    const drawing = document.importNode(parsed, true);
    drawing.setAttribute("role", "group");
    drawing.setAttribute("aria-label", `The graph ${this.name}`);
    for (const node of drawing.querySelectorAll(".node[data-node]")) {
      this.makeButton(node, () => this.onNode(node.dataset.node));
      if (node.classList.contains("graph")) node.after(this.fold(node));
    }
    put(this.place, drawing);
    if (this.last) this.draw(...this.last);
  }

  /** What can be done with the whole drawing. */
  drawTools(source, parsed) {
    const paths = [...parsed.querySelectorAll(".node.graph")];
    const open = paths.filter((node) => node.classList.contains("open")).length;
    // By default all are open, unless they are too many.
    const all = this.from.includes("open=") ? "" : paths.map((node) => node.dataset.node).join(",");
    const name = this.name.replace(/[^\w-]+/g, "_");
    const mermaid = async () => {
      try {
        save(`${name}.mmd`, await text(`ui/graphs/${encodeURIComponent(this.name)}.mmd`), "text/plain");
      } catch (error) { toast(error.message, true); }
    };
    put(this.tools, paths.length > 0 && [
      open < paths.length && button("Open subgraphs", () => change({ open: all }), { class: "small" }),
      open > 0 && button("Fold subgraphs", () => change({ open: FOLDED }), { class: "small" })],
      button("SVG", () => save(`${name}.svg`, source, "image/svg+xml"), { class: "small", title: "Take the drawing away as SVG" }),
      button("Mermaid", mermaid, { class: "small", title: "Take the graph away as a Mermaid flowchart" }));
  }

  /** The mark that opens or folds the subgraph of a node, at the corner of its box. */
  fold(node) {
    const box = node.querySelector("rect");
    const at = (name) => Number(box.getAttribute(name));
    const isOpen = node.classList.contains("open");
    const { node: path } = node.dataset;
    const mark = svg("g", { class: "fold-mark", "aria-label": `${isOpen ? "Fold" : "Open"} the subgraph ${path}`, "aria-expanded": String(isOpen) },
      svg("circle", { cx: at("x") + at("width") - 2, cy: at("y") + 2, r: 9 }),
      svg("text", { x: at("x") + at("width") - 2, y: at("y") + 2 }, isOpen ? "−" : "+"));
    this.makeButton(mark, () => {
      const open = [...this.place.querySelectorAll(".node.open")].map((one) => one.dataset.node);
      const left = isOpen ? open.filter((one) => one !== path && !one.startsWith(`${path}/`)) : [...open, path];
      change({ open: left.join(",") || FOLDED });
    });
    return mark;
  }

  makeButton(node, act) {

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
      const about = [name, state, count > 1 && `ran ${count} times`, node.classList.contains("temporary") && "temporary"];
      node.setAttribute("aria-label", about.filter(Boolean).join(", "));
      node.setAttribute("aria-pressed", String(name === chosen));
    }
    for (const edge of this.place.querySelectorAll(".edge[data-from]")) {
      edge.classList.toggle("taken", states.edges.has(JSON.stringify([edge.dataset.from, edge.dataset.to])));
    }
  }
}

/** The state of each node at the checkpoint that is shown, by its path. */
export function statuses({ trace, isEager, history, shown, newest, query, report }) {
  const nodes = new Map();
  const edges = new Set();
  const counts = new Map();
  const ran = (name) => { nodes.set(name, "done"); counts.set(name, (counts.get(name) ?? 0) + 1); };
  const at = query.get("at");
  const isHead = !at || at === newest?.checkpoint_id;
  if (trace.tasks.length) {
    // Of a checkpoint in the past, only what led to it.
    const until = isHead ? Infinity : trace.timeOf(at) ?? Infinity;
    const levels = new Map();
    for (const task of trace.tasks) {
      if (task.start > until || !isHead && !(task.end <= until)) continue;
      const path = pathOf(task);
      const level = levels.get(task.ns) ?? { before: [pathOf({ ns: task.ns, node: "__start__" })], step: [] };
      levels.set(task.ns, level);
      if (level.step.length && task.step !== level.step[0].step) {
        level.before = level.step.map(pathOf);
        level.step = [];
      }
      level.step.push(task);
      const cause = isEager ? [pathOf({ ns: task.ns, node: task.cause })] : level.before;
      for (const from of cause) edges.add(JSON.stringify([from, path]));
      ran(path);
      if (task.status === "failed") nodes.set(path, "failed");
      else if (task.status === "skipped") nodes.set(path, "skipped");
      else if (task.end === null && !trace.ended) nodes.set(path, "running");
    }
    for (const ns of levels.keys()) nodes.set(pathOf({ ns, node: "__start__" }), "done");
  } else {
    const place = Math.max(0, history.findIndex((one) => one.checkpoint_id === at));
    for (const one of isHead ? history.slice(1) : history.slice(place + 1)) for (const name of one.next) ran(name);
  }
  for (const name of shown?.next ?? []) if (nodes.get(name) !== "running") nodes.set(name, "next");
  for (const name of report?.skips ?? []) nodes.set(name, "skipped");
  for (const task of shown?.tasks ?? []) {
    if (task.error) nodes.set(task.name, "failed");
    else if (task.interrupts?.length) nodes.set(task.name, "asking");
  }
  if (counts.size) nodes.set("__start__", "done");
  return { nodes, edges, counts };
}

/** The path of a task's node: the nodes whose subgraphs it is in, and its own. */
function pathOf({ ns, node }) {
  return [...ns.split("|").filter(Boolean).map((level) => level.split(":")[0]), node].join("/");
}
