// One checkpoint: its state, what it changed, its messages, its JSON, and what can be run from it.

import { change } from "./address.js";
import { Chat, messagesOf } from "./chat.js";
import { compare } from "./compare.js";
import * as delta from "./delta.js";
import { button, clock, h, keepFocus, pill, put, shortId } from "./dom.js";
import { edit } from "./fork.js";
import { source, tree } from "./json.js";
import { inputForm } from "./start.js";
import { testCase } from "./testcase.js";

const TABS = ["state", "changes", "messages", "json", "edit", "run", "compare", "test"];
const NAMES = { state: "State", changes: "Changes", messages: "Messages", json: "JSON", edit: "Edit and fork", run: "New input", compare: "Compare", test: "Test" };
/** Views that are not drawn again while the run goes on, but for another checkpoint. */
const STEADY = ["edit", "run", "compare", "test"];

export class Inspector {
  constructor(screen) {
    this.screen = screen;
    this.place = { opened: new Set(), first: 0 };
    this.chat = new Chat(screen);
    this.title = h("div", { class: "checkpoint-title" });
    this.tabs = h("div", { role: "tablist", "aria-label": "Views of the checkpoint" }, TABS.map((tab) => h("button", {
      type: "button", role: "tab", id: `tab-${tab}`, "aria-controls": "panel", "data-key": tab,
      onclick: () => change({ tab: tab === TABS[0] ? "" : tab }),
      onkeydown: (event) => this.arrow(event),
    }, NAMES[tab])));
    this.panel = h("div", { role: "tabpanel", id: "panel", tabindex: 0 });
    this.element = h("section", { class: "card inspector", "aria-label": "Checkpoint" }, this.title, this.tabs, this.panel);
  }

  unmount() {
    this.chat.unmount();
  }

  get tab() {
    const tab = this.screen.query.get("tab");
    // A chat is looked at as one.
    return TABS.includes(tab) ? tab : !tab && this.isChat ? "messages" : "state";
  }

  get isChat() {
    return messagesOf(this.screen.shown?.values).length > 0;
  }

  choose(at) {
    change({ tab: TABS[at] });
    return true;
  }

  arrow(event) {
    const by = { ArrowRight: 1, ArrowLeft: -1 }[event.key];
    if (!by) return;
    const to = (TABS.indexOf(this.tab) + by + TABS.length) % TABS.length;
    this.choose(to);
    this.tabs.children[to].focus();
  }

  draw() {
    const { shown, shownAt, query, run, trace } = this.screen;
    const { tab } = this;
    for (const element of this.tabs.children) {
      const isChosen = element.id === `tab-${tab}`;
      element.setAttribute("aria-selected", String(isChosen));
      element.tabIndex = isChosen ? 0 : -1;
    }
    this.panel.setAttribute("aria-labelledby", `tab-${tab}`);
    this.drawTitle();
    if (!shown) return;
    // A form stays as it is while the run goes on, but is never that of another checkpoint.
    const beside = tab === "compare" ? `${shown.checkpoint_id} ${query.get("with")}` : tab === "test" ? `${run?.run_id} ${run?.status} ${trace.tasks.length}` : "";
    const key = STEADY.includes(tab) ? `${tab} ${shownAt} ${Boolean(shown.checkpoint_id)} ${beside}` : null;
    if (tab === this.shownTab && (key ? key === this.shownKey : shown === this.shownState)) {
      if (tab === "messages") this.chat.draw(shown.values);
      return;
    }
    [this.shownTab, this.shownKey, this.shownState] = [tab, key, shown];
    keepFocus(this.panel, () => this.fill(tab, shown));
  }

  fill(tab, shown) {
    if (tab === "changes") this.fillChanges(shown);
    else if (tab === "messages") this.fillChat(shown);
    else if (tab === "json") put(this.panel, source({ ...shown }));
    else if (tab === "edit") put(this.panel, edit(this.screen));
    else if (tab === "compare") put(this.panel, compare(this.screen));
    else if (tab === "test") put(this.panel, testCase(this.screen));
    else if (tab === "run") put(this.panel, inputForm(this.screen.graph, (fields) => this.screen.start(fields)));
    else put(this.panel, tree(shown.values ?? {}, this.place, "State"));
  }

  fillChat(shown) {
    const chat = this.chat.draw(shown.values);
    // What is being typed would lose the focus.
    if (this.panel.firstChild !== chat) put(this.panel, chat);
  }

  async fillChanges(shown) {
    const parent = shown.parent_checkpoint_id;
    put(this.panel, h("p", { class: "empty" }, "Comparing …"));
    try {
      const before = parent ? await this.screen.stateAt(parent) : null;
      if (this.shownState !== shown || this.shownTab !== "changes") return;
      put(this.panel, delta.view(delta.differences(before?.values, shown.values)));
    } catch (error) {
      put(this.panel, h("p", { class: "problem" }, error.message));
    }
  }

  drawTitle() {
    const { shown, query, newest } = this.screen;
    const at = query.get("at");
    const isHead = !at || at === newest?.checkpoint_id;
    const key = `${shown?.checkpoint_id} ${isHead} ${shown?.tasks?.length}`;
    if (key === this.titleShown) return;
    this.titleShown = key;
    if (!shown?.checkpoint_id) {
      put(this.title, h("h2", {}, "State"), h("p", { class: "facts" }, "The thread has no checkpoint yet."));
      return;
    }
    const { step, source } = shown.metadata;
    put(this.title, h("h2", {}, isHead ? "Newest checkpoint" : `Checkpoint of step ${step}`),
      h("p", { class: "facts" }, h("span", {}, `step ${step}, ${source}`), h("span", {}, clock(shown.created_at)),
        h("code", { title: shown.checkpoint_id }, shortId(shown.checkpoint_id)),
        shown.next.length > 0 && h("span", {}, `next: ${shown.next.slice(0, 6).join(", ")}`), shown.tasks.some((task) => task.error) && pill("failed")),
      !isHead && shown.next.length > 0 && button("Replay from here", () => this.screen.replay(shown), { class: "small", title: "Runs what is next on a new branch; the others stay" }),
      !isHead && button("To the newest", () => change({ at: "" }), { class: "small" }));
  }
}
