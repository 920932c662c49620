// A graph without a run: its drawing, and over it the findings that tests wrote to files. Nothing runs here.

import { change, go, link } from "./address.js";
import { get, graphs } from "./api.js";
import { button, counted, h, labelled, number, put } from "./dom.js";
import { Drawing } from "./graph.js";

const MOST = 100;

export function mount(main, address) {
  const screen = new Graphs(main);
  screen.update(address);
  return screen;
}

class Graphs {
  title = "Graphs";

  constructor(main) {
    this.choice = h("div", { class: "graph-choice" });
    this.drawing = new Drawing((node) => change({ node: node === this.query.get("node") ? "" : node }));
    this.drawing.legend.remove();
    this.findings = h("section", { class: "card findings", "aria-label": "Findings of tests" });
    put(main, h("h1", {}, "Graphs"), this.choice, h("div", { class: "columns" }, h("div", { class: "left" }, this.drawing.element), this.findings));
  }

  async update({ id, query }) {
    this.query = query;
    try {
      const names = (await graphs()).map((graph) => graph.graph_id);
      const name = names.includes(id) ? id : names[0];
      if (this.name !== name) {
        this.name = name;
        const select = h("select", { onchange: () => go(link("graphs", select.value)) }, names.map((one) =>
          h("option", { value: one, selected: one === name }, one)));
        put(this.choice, labelled("Graph", select), h("a", { class: "button", href: link("new", null, { graph: name }) }, "New run"),
          h("a", { class: "button", href: link("threads", null, { graph: name }) }, "Threads"));
        this.reports = await get(`ui/graphs/${encodeURIComponent(name)}/findings`);
      }
      await this.drawing.load(name, null, query.get("open"));
      this.draw();
    } catch (error) {
      put(this.findings, h("p", { class: "problem" }, error.message));
    }
  }

  draw() {
    const all = (this.reports ?? []).flatMap((report) => (report.findings ?? []).map((finding) => ({ ...finding, file: report.file })));
    const nodes = new Map();
    for (const { node } of all) {
      // A folded subgraph has the findings of its nodes.
      const path = node.split("/");
      path.forEach((_, at) => nodes.set(path.slice(0, at + 1).join("/"), "failed"));
    }
    const chosen = this.query.get("node");
    this.drawing.draw({ nodes, edges: new Set(), counts: new Map() }, chosen);
    const shown = all.filter(({ node }) => !chosen || node === chosen || node.startsWith(`${chosen}/`));
    const reports = (this.reports ?? []).map(({ file, runs, findings, problem }) => h("li", {}, h("code", {}, file), " ",
      problem ? h("span", { class: "problem" }, `cannot be read: ${problem}`) : `${counted(findings?.length ?? 0, "finding")} in ${number(runs ?? 0)} runs`));
    put(this.findings, h("h2", {}, "Findings of tests"),
      reports.length ? h("ul", { class: "facts" }, reports) : h("p", { class: "empty" }, "No report. A test writes one by ", h("code", {}, "report.save(path)"),
        ", and the server reads it by ", h("code", {}, "Server::findings(graph, path)"), "."),
      chosen && h("p", {}, `Only ${chosen}. `, button("All", () => change({ node: "" }), { class: "small" })),
      h("ul", { class: "finding-list" }, shown.slice(0, MOST).map(row)),
      shown.length > MOST && h("p", { class: "facts" }, `The first ${MOST} of ${number(shown.length)}.`));
  }
}

function row({ kind, node, problem, advice, kill, seed, times, file }) {
  const first = [kill && `first after a kill ${kill}`, typeof seed === "number" && `first with the seed ${seed}`, times > 1 && `in ${number(times)} runs`];
  return h("li", {}, h("p", {}, h("strong", {}, kind), " ", node && h("button", { type: "button", class: "small", onclick: () => change({ node }) }, node)),
    h("p", {}, problem), h("p", { class: "facts" }, [file, ...first].filter(Boolean).join(" · ")), h("p", { class: "advice" }, advice));
}
