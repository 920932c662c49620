// The store that graphs and clients share: namespaces, their items, and one item.

import { change, link } from "./address.js";
import { get, post, remove } from "./api.js";
import { button, confirmed, copy, counted, h, keepFocus, labelled, put, toast, when } from "./dom.js";
import { brief, tree } from "./json.js";

const PAGE = 50;

export function mount(main, address) {
  const screen = new Store(main);
  screen.update(address);
  return screen;
}

class Store {
  title = "Store";

  constructor(main) {
    this.path = h("nav", { class: "path", "aria-label": "Namespace" });
    this.problem = h("p", { class: "problem", role: "alert" });
    this.text = h("input", { name: "text", "data-search": true, autocomplete: "off", placeholder: "part of a key" });
    this.filter = h("form", { class: "filters", role: "search", onsubmit: (event) => { event.preventDefault(); change({ text: this.text.value.trim(), page: "", key: "" }, true); } },
      labelled("Key", this.text), h("button", { type: "submit" }, "Search"));
    this.spaces = h("ul", { class: "namespaces" });
    this.items = h("tbody");
    this.pager = h("nav", { class: "pager", "aria-label": "Pages" });
    this.item = h("section", { class: "card item-view", "aria-label": "Item", hidden: true });
    put(main, h("h1", {}, "Store"), this.path, this.filter, this.problem, h("div", { class: "columns" },
      h("div", { class: "left" }, this.spaces, h("table", { class: "threads store" },
        h("thead", {}, h("tr", {}, ["Key", "Namespace", "Value", "Changed"].map((name) => h("th", { scope: "col" }, name)))), this.items), this.pager), this.item));
  }

  update({ query }) {
    this.query = query;
    this.text.value = query.get("text") ?? "";
    this.load().then(() => { this.problem.textContent = ""; }, (error) => { this.problem.textContent = error.message; });
  }

  get namespace() {
    return (this.query.get("ns") ?? "").split(".").filter(Boolean);
  }

  async load() {
    const { namespace } = this;
    const page = Math.max(1, Number(this.query.get("page")) || 1);
    const text = this.query.get("text");
    const [spaces, { items }] = await Promise.all([
      post("store/namespaces", { prefix: namespace, max_depth: namespace.length + 1, limit: PAGE }),
      post("store/items/search", { namespace_prefix: namespace, limit: PAGE + 1, offset: (page - 1) * PAGE }),
    ]);
    const to = (labels) => link("store", null, { ns: labels.join(".") });
    put(this.path, h("a", { href: "#/store" }, "all"), namespace.map((label, at) => [" › ", h("a", { href: to(namespace.slice(0, at + 1)) }, label)]));
    const inner = (spaces.namespaces ?? spaces).filter((labels) => labels.length > namespace.length);
    put(this.spaces, inner.map((labels) => h("li", {}, h("a", { class: "button small", href: to(labels) }, labels.at(-1), " ›"))));
    const shown = items.slice(0, PAGE).filter((item) => !text || item.key.includes(text));
    keepFocus(this.items, () => put(this.items, shown.map((item) => this.row(item)), shown.length === 0
      && h("tr", {}, h("td", { colspan: 4, class: "empty" }, text ? "No key of this page has that text." : "Nothing is kept here."))));
    const move = (to) => () => change({ page: to === 1 ? "" : String(to) }, true);
    put(this.pager, (page > 1 || items.length > PAGE) && [h("span", {}, `Page ${page}`),
      button("Previous", move(page - 1), { disabled: page === 1 }), button("Next", move(page + 1), { disabled: items.length <= PAGE })]);
    await this.show();
  }

  row(item) {
    const key = JSON.stringify([item.namespace, item.key]);
    return h("tr", { class: this.query.get("key") === key ? "selected" : null },
      h("td", { class: "id" }, button(item.key, () => change({ key }), { class: "quiet small", "data-key": key })),
      h("td", { "data-name": "Namespace" }, item.namespace.join(" › ")), h("td", { class: "metadata", "data-name": "Value" }, brief(item.value, 60)),
      h("td", { "data-name": "Changed" }, when(item.updated_at)));
  }

  /** The item of the address. */
  async show() {
    const key = this.query.get("key");
    this.item.hidden = !key;
    if (!key) return;
    let place;
    try { place = JSON.parse(key); } catch { place = [[], ""]; }
    const [namespace, name] = place;
    const item = await get(`store/items?namespace=${encodeURIComponent(namespace.join("."))}&key=${encodeURIComponent(name)}`);
    if (this.query.get("key") !== key) return;
    if (!item) return put(this.item, h("p", { class: "empty" }, "There is no such item."));
    const drop = async () => {
      try {
        await remove("store/items", { namespace, key: name });
        toast("Deleted");
        change({ key: "" });
      } catch (error) { toast(error.message, true); }
    };
    put(this.item, h("h2", {}, item.key), h("p", { class: "facts" }, h("code", {}, item.namespace.join(" › ")), h("span", {}, "made ", when(item.created_at)),
      h("span", {}, counted(Object.keys(item.value ?? {}).length, "field"))), tree(item.value, undefined, "Item"),
      h("div", { class: "actions" }, button("Copy JSON", () => copy(JSON.stringify(item.value, null, 2))),
        confirmed("Delete", "Delete this item?", drop, { class: "danger quiet" })));
  }
}
