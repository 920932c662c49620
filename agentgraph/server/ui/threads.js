// The list of threads: search and filters in the address, pages, and actions on those that are selected.

import { change, go, link } from "./address.js";
import { each, every, get, graphs, post, remove, search, startRun } from "./api.js";
import { costText, learnPrices } from "./cost.js";
import { button, confirmed, counted, h, keepFocus, labelled, number, pill, put, shortId, toast, when } from "./dom.js";

const PAGE = 50;
const WHOLE_ID = 36;
const STATUSES = ["idle", "busy", "interrupted", "error"];
const FIELDS = ["thread_id", "created_at", "updated_at", "metadata", "status", "error", "tokens"];
const SORTS = [["updated_at", "Last change"], ["created_at", "Creation"], ["status", "Status"], ["thread_id", "Id"]];

/** Fields of the address for a page that is found by its number. */
const FIRST = { page: "", after: "", before: "" };
/** The place of a row in the order of the list, for the address. */
const placeOf = (row, order) => row ? `${row[order]} ${row.thread_id}` : "";
/** The place in an address, as a search takes it. */
function placed(text, order) {
  const at = text.lastIndexOf(" ");
  return { [order]: text.slice(0, at), thread_id: text.slice(at + 1) };
}

/** The filters of an address as the body of a search. Throws if the metadata cannot be read. */
export function filters(query) {
  const body = {};
  const metadata = metadataOf(query.get("metadata") ?? "");
  if (query.get("graph")) metadata.graph_id = query.get("graph");
  if (Object.keys(metadata).length) body.metadata = metadata;
  const id = (query.get("id") ?? "").trim();
  if (id.length === WHOLE_ID) body.ids = [id];
  else if (id) body.id_prefix = id;
  return body;
}

/** `user=ada, tier=2` or a JSON object. Values that are JSON are read as such. */
export function metadataOf(text) {
  if (!text.trim()) return {};
  if (text.trim().startsWith("{")) return JSON.parse(text);
  const pairs = text.split(",").map((pair) => {
    const [name, ...value] = pair.split("=");
    if (!value.length) throw new Error("metadata is written as name=value, or as a JSON object");
    const given = value.join("=").trim();
    try { return [name.trim(), JSON.parse(given)]; } catch { return [name.trim(), given]; }
  });
  return Object.fromEntries(pairs);
}

export function mount(main, address) {
  const screen = new Threads(main);
  screen.update(address);
  return screen;
}

class Threads {
  title = "Threads";

  constructor(main) {
    this.selected = new Set();
    this.rows = [];
    this.counts = h("nav", { class: "chips", "aria-label": "Threads by status" });
    this.form = h("form", { class: "filters", role: "search", onsubmit: (event) => { event.preventDefault(); this.apply(); } });
    this.problem = h("p", { class: "problem", role: "alert" });
    this.actions = h("div", { class: "actions", role: "group", "aria-label": "Selected threads", hidden: true });
    this.all = h("input", { type: "checkbox", "aria-label": "Select all of this page", onchange: () => this.selectPage() });
    this.body = h("tbody");
    this.pager = h("nav", { class: "pager", "aria-label": "Pages" });
    const head = ["Status", "Thread", "Graph", "Metadata", "Cost", "Changed", "Created"];
    put(main, h("h1", {}, "Threads"), this.counts, this.form, this.problem, this.actions,
      h("table", { class: "threads" }, h("thead", {}, h("tr", {},
        h("th", {}, this.all), head.map((name) => h("th", { scope: "col" }, name)))), this.body),
      this.pager);
    this.stop = every(3000, () => this.load());
    learnPrices().then(() => { this.seen = null; this.load().catch(() => {}); }, () => {});
    graphs().then((list) => { this.graphs = list.map((graph) => graph.graph_id); this.showForm(true); }, () => {});
  }

  unmount() {
    this.stop();
    this.aborts?.abort();
  }

  online() {
    this.load().catch(() => {});
  }

  update({ query }) {
    this.query = query;
    this.showForm();
    this.load().catch(() => {});
  }

  /** The form as the address has it; what is being typed is kept if `keeps`. */
  showForm(keeps = false) {
    const typed = keeps ? new FormData(this.form) : new FormData();
    const value = (name) => typed.get(name) ?? this.query.get(name) ?? "";
    const choice = (name, options) => h("select", { name, onchange: () => this.apply() }, options.map(([value, text]) =>
      h("option", { value, selected: (this.query.get(name) ?? options[0][0]) === value }, text)));
    keepFocus(this.form, () => put(this.form,
      labelled("Id", h("input", { name: "id", value: value("id"), "data-search": true, "data-key": "id", autocomplete: "off",
        spellcheck: "false", placeholder: "its beginning" })),
      labelled("Graph", choice("graph", [["", "all"], ...(this.graphs ?? []).map((name) => [name, name])])),
      labelled("Metadata", h("input", { name: "metadata", value: value("metadata"), "data-key": "metadata", autocomplete: "off",
        spellcheck: "false", placeholder: "user=ada, tier=2" })),
      labelled("Order by", choice("sort", SORTS)),
      h("button", { type: "submit" }, "Search"),
      this.query.size > 0 && h("a", { class: "button quiet", href: "#/threads" }, "Clear")));
  }

  apply() {
    const fields = Object.fromEntries(new FormData(this.form));
    if (fields.sort === SORTS[0][0]) fields.sort = "";
    this.selected.clear();
    change({ ...fields, ...FIRST }, true);
  }

  async load() {
    this.aborts?.abort();
    const { signal } = this.aborts = new AbortController();
    const page = Math.max(1, Number(this.query.get("page")) || 1);
    let body;
    try { body = filters(this.query); } catch (error) { this.problem.textContent = error.message; return; }
    const status = this.query.get("status");
    const order = this.query.get("sort") || "updated_at";
    const beside = ["after", "before"].find((name) => this.query.get(name) && !body.id_prefix);
    const request = { ...body, select: FIELDS, limit: PAGE, offset: beside ? 0 : (page - 1) * PAGE, sort_by: order };
    if (beside) request[beside] = placed(this.query.get(beside), order);
    if (["status", "thread_id"].includes(order)) request.sort_order = "asc";
    if (status) request.status = status;
    try {
      const count = (status) => post("threads/count", status ? { ...body, status } : body, signal);
      const [found, ...counts] = await Promise.all([search("POST", "threads/search", request, signal), count(), ...STATUSES.map(count)]);
      this.problem.textContent = "";
      this.show(found, counts, page, status, order);
    } catch (error) {
      if (error.name === "AbortError") return;
      this.problem.textContent = error.status ? error.message : "";
      throw error;
    }
  }

  show({ items, total }, counts, page, status, order) {
    const kept = Object.fromEntries(this.query);
    keepFocus(this.counts, () => put(this.counts, [null, ...STATUSES].map((one, at) =>
      h("a", { href: link("threads", null, { ...kept, ...FIRST, status: one }), "data-key": one ?? "all", "aria-current": one === status ? "true" : null },
        one ?? "all", " ", h("span", { class: "count" }, number(counts[at]))))));
    this.rows = items;
    this.total = total;
    this.showPager(page, total, order);
    // Rows are replaced when they change, or their ages do.
    const seen = JSON.stringify([items, this.selected.size, this.query.toString(), Math.floor(Date.now() / 30_000)]);
    if (seen === this.seen) return;
    this.seen = seen;
    keepFocus(this.body, () => put(this.body, items.map((thread) => this.row(thread)),
      items.length === 0 && h("tr", {}, h("td", { colspan: 8, class: "empty" }, this.empty()))));
    this.showActions();
  }

  empty() {
    return this.query.size ? "No thread fits these filters." : ["No thread yet. ", h("a", { href: "#/new" }, "Start a run"), " to make one."];
  }

  row(thread) {
    const { graph_id: graph, assistant_id: _, ...metadata } = thread.metadata ?? {};
    const id = thread.thread_id;
    const select = h("input", {
      type: "checkbox", checked: this.selected.has(id), "aria-label": `Select ${id}`, "data-key": `select ${id}`,
      onchange: ({ target }) => { this.selected[target.checked ? "add" : "delete"](id); this.showActions(); },
    });
    return h("tr", { class: this.selected.has(id) ? "selected" : null },
      h("td", { class: "select" }, select),
      h("td", {}, pill(thread.status)),
      h("td", { class: "id" }, h("a", { href: link("threads", id), title: id, "data-key": id }, shortId(id)),
        thread.error && h("span", { class: "error-line", title: thread.error.message }, `${thread.error.error}: ${thread.error.message}`)),
      h("td", { "data-name": "Graph" }, graph ?? "–"),
      h("td", { class: "metadata", "data-name": "Metadata" }, summary(metadata)),
      h("td", { class: "cost", "data-name": "Cost" }, costText(thread.tokens)),
      h("td", { "data-name": "Changed" }, when(thread.updated_at)),
      h("td", { "data-name": "Created" }, when(thread.created_at)));
  }

  showPager(page, total, order) {
    const last = Math.max(1, Math.ceil(total / PAGE));
    const first = (page - 1) * PAGE;
    // The next page begins after what is shown, whatever has moved meanwhile.
    const to = (page, beside) => () => change({ ...FIRST, ...(page > 1 && { page, ...beside }) }, true);
    const rows = this.rows;
    keepFocus(this.pager, () => put(this.pager,
      h("span", {}, total ? `${number(first + 1)}–${number(Math.min(first + PAGE, total))} of ${number(total)}` : ""),
      button("First", to(1), { disabled: page <= 1, "data-key": "first" }),
      button("Previous", to(page - 1, { before: placeOf(rows[0], order) }), { disabled: page <= 1, "data-key": "previous" }),
      button("Next", to(page + 1, { after: placeOf(rows.at(-1), order) }), { disabled: page >= last, "data-key": "next" }),
      button("Last", to(last), { disabled: page >= last, "data-key": "last" })));
  }

  selectPage() {
    for (const { thread_id: id } of this.rows) this.selected[this.all.checked ? "add" : "delete"](id);
    for (const box of this.body.querySelectorAll("input")) box.checked = this.all.checked;
    this.showActions();
  }

  showActions() {
    const count = this.selected.size;
    for (const row of this.body.rows) row.classList.toggle("selected", row.querySelector("input")?.checked ?? false);
    const onPage = this.rows.filter((row) => this.selected.has(row.thread_id)).length;
    this.all.checked = onPage > 0 && onPage === this.rows.length;
    this.all.indeterminate = onPage > 0 && onPage < this.rows.length;
    this.actions.hidden = count === 0;
    // Buttons that wait for a second click stay as they are.
    if (this.acting || this.actionCount === count) return;
    this.actionCount = count;
    const threads = counted(count, "thread");
    put(this.actions, h("strong", {}, `${threads} selected`),
      this.total > this.rows.length && count < this.total && button(`Select all ${number(this.total)}`, () => this.selectAll()),
      button("Cancel runs", () => this.act("Cancelled", cancelRuns)),
      button("Continue", () => this.act("Continued", goOn), { title: "Runs what is next in each" }),
      confirmed("Delete", `Delete ${threads}?`, () => this.act("Deleted", (id) => remove(`threads/${id}`)), { class: "danger" }),
      button("Clear", () => { this.selected.clear(); this.load(); }, { class: "quiet" }));
  }

  /** The ids of all threads of the search, by pages. */
  async selectAll() {
    const body = { ...filters(this.query), select: ["thread_id"], limit: 1000, sort_by: "thread_id", sort_order: "asc" };
    if (this.query.get("status")) body.status = this.query.get("status");
    let items;
    do {
      ({ items } = await search("POST", "threads/search", body));
      for (const { thread_id: id } of items) this.selected.add(id);
      body.after = items.at(-1);
    } while (items.length === body.limit && !body.id_prefix);
    this.load();
  }

  async act(done, one) {
    const ids = [...this.selected];
    const bar = h("progress", { max: ids.length, value: 0, "aria-label": done });
    this.acting = true;
    put(this.actions, bar, h("span", {}, `${number(ids.length)} threads`));
    const failures = await each(ids, one, (count) => { bar.value = count; });
    this.acting = false;
    this.actionCount = null;
    this.selected = new Set(failures.map(({ item }) => item));
    const failed = failures.length ? `, ${failures.length} failed: ${failures[0].error.message}` : "";
    toast(`${done} ${number(ids.length - failures.length)}${failed}`, failures.length > 0);
    this.load();
  }

  key(key) {
    const links = [...this.body.querySelectorAll("td.id a")];
    const at = links.findIndex((link) => link.closest("tr").contains(document.activeElement));
    if (key === "j" || key === "k") {
      links[Math.min(links.length - 1, Math.max(0, at + (key === "j" ? 1 : -1)))]?.focus();
      return true;
    }
    if (key === "x" && at >= 0) {
      links[at].closest("tr").querySelector("input").click();
      return true;
    }
    if (key === "Enter" && at >= 0) {
      go(links[at].getAttribute("href"));
      return true;
    }
    return false;
  }
}

/** Cancels the runs of a thread that are under way or wait. */
async function cancelRuns(id) {
  const { runs } = await get(`ui/threads/${id}`);
  for (const run of runs.filter((run) => ["pending", "running"].includes(run.status))) {
    await post(`threads/${id}/runs/${run.run_id}/cancel`).catch((error) => {
      // It has ended meanwhile.
      if (error.status !== 404) throw error;
    });
  }
}

/** Goes on with a thread that stopped or failed. */
async function goOn(id) {
  const { metadata } = await get(`ui/threads/${id}?limit=1`);
  await startRun(id, metadata.graph_id, { input: null });
}

function summary(metadata) {
  const text = Object.entries(metadata).map(([name, value]) => `${name}=${typeof value === "string" ? value : JSON.stringify(value)}`).join(", ");
  return text.length > 80 ? text.slice(0, 79) + "…" : text;
}
