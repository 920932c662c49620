// A thread: its graph with the run laid over it, the timeline, the checkpoints, and one of them inspected.
// The thread is asked for at intervals, its newest run is followed by its trace, and its state is read when
// either moves.

import { change, go, link, read } from "./address.js";
import { every, get, graphNamed, post, remove, search, startRun } from "./api.js";
import { costText, learnPrices } from "./cost.js";
import { button, confirmed, copy, counted, h, keepFocus, pill, put, shortId, toast, when } from "./dom.js";
import { Drawing, statuses } from "./graph.js";
import { Inspector } from "./inspector.js";
import { Checkpoints, Timeline, Trace, taskRows } from "./timeline.js";
import { Work } from "./work.js";

const FIELDS = "checkpoint_id,parent_checkpoint_id,next,tasks,metadata,created_at";
const PAGE = 20;
export const isActive = (run) => run && ["pending", "running"].includes(run.status);

export function mount(main, address) {
  return new Run(main, address);
}

class Run {
  constructor(main, { id, query }) {
    this.id = id;
    this.title = shortId(id);
    this.query = query;
    this.trace = new Trace();
    this.history = [];
    this.aborts = new AbortController();
    this.head = h("header", { class: "run-head" });
    this.alert = h("div", { class: "alert", role: "alert", hidden: true });
    this.drawing = new Drawing((node) => change({ node: node === this.query.get("node") ? "" : node }));
    this.timeline = new Timeline((at) => change({ at }), (run) => change({ run, at: "" }));
    this.checkpoints = new Checkpoints((at) => change({ at }), (before) => change({ before }));
    this.work = new Work();
    this.inspector = new Inspector(this);
    this.columns = h("div", { class: "columns" },
      h("div", { class: "left" }, this.drawing.element, this.work.element, this.timeline.element, this.checkpoints.element),
      this.inspector.element);
    put(main, this.head, this.alert, this.columns);
    learnPrices().then(() => this.draw(), () => {});
    this.stop = every(1500, () => this.look());
    this.look().catch((error) => this.failed(error));
  }

  unmount() {
    this.stop();
    this.aborts.abort();
    this.inspector.unmount();
  }

  online() {
    this.seen = null;
    this.look().catch(() => {});
  }

  update({ query }) {
    const before = this.query;
    this.query = query;
    const moved = (name) => before.get(name) !== query.get(name);
    if (moved("run")) this.follow();
    if (moved("run") || moved("before") || moved("at")) this.refresh();
    else this.draw();
  }

  get graph() {
    return this.thread?.metadata?.graph_id ?? null;
  }

  /** The run that is shown: that of the address, or the newest. */
  get run() {
    const runs = this.thread?.runs ?? [];
    return runs.find((run) => run.run_id === this.query.get("run")) ?? runs[0] ?? null;
  }

  /** Reads the thread, and its state if something has moved. */
  async look() {
    const { signal } = this.aborts;
    try {
      this.thread = await get(`ui/threads/${this.id}`, signal);
    } catch (error) {
      this.failed(error);
      throw error;
    }
    const now = JSON.stringify([this.thread.updated_at, this.thread.runs.map((run) => [run.run_id, run.status])]);
    if (now === this.seen) return;
    this.seen = now;
    this.follow();
    this.draw();
    await this.refresh();
  }

  failed(error) {
    if (error.name === "AbortError") return;
    if (error.status === 404 || error.status === 422) {
      this.stop();
      this.aborts.abort();
      put(this.alert, h("strong", {}, this.thread ? "This thread was deleted." : "There is no such thread."), " ",
        h("a", { href: "#/threads" }, "All threads"));
      this.alert.hidden = false;
      put(this.head, h("h1", {}, "Thread ", h("code", {}, shortId(this.id))));
      this.inspector.element.hidden = true;
    } else if (error.status) {
      toast(error.message, true);
    }
  }

  /** Follows the trace of the run that is shown, until it ends or another one is shown. */
  async follow() {
    const run = this.run;
    if (this.followed === run?.run_id) return;
    this.followed = run?.run_id;
    this.trace.reset();
    if (!run?.has_trace) return;
    while (this.followed === run.run_id && !this.aborts.signal.aborted) {
      try {
        const { next } = this.trace;
        const part = await get(`ui/threads/${this.id}/trace/${run.run_id}?after=${next}`, this.aborts.signal);
        if (this.followed !== run.run_id) return;
        this.trace.add(part);
        this.soon();
        if (part.ended) break;
      } catch (error) {
        if (error.name === "AbortError" || error.status === 404) return;
        // The server restarts: its trace of a run that goes on begins anew.
        await new Promise((resolve) => setTimeout(resolve, 1000));
        this.trace.reset();
      }
    }
    if (this.followed === run.run_id) this.look().catch(() => {});
  }

  /** Draws what the trace says with the next frame, and reads the state a little later. */
  soon() {
    this.frame ||= requestAnimationFrame(() => {
      this.frame = 0;
      this.draw();
    });
    // A large state that takes long is read less often.
    this.later ||= setTimeout(() => {
      this.later = 0;
      this.refresh();
    }, Math.max(500, 4 * (this.took ?? 0)));
  }

  /** Reads checkpoints and the state that is inspected, one time after the other. */
  async refresh() {
    if (this.refreshing) {
      this.again = true;
      return;
    }
    this.refreshing = true;
    do {
      this.again = false;
      const began = performance.now();
      await this.read().catch((error) => this.failed(error));
      this.took = performance.now() - began;
    } while (this.again && !this.aborts.signal.aborted);
    this.refreshing = false;
  }

  async read() {
    const { signal } = this.aborts;
    const before = this.query.get("before");
    const history = `threads/${this.id}/history?limit=${PAGE + 1}&select=${FIELDS}&line=true${before ? `&before=${before}` : ""}`;
    const at = this.query.get("at");
    const [list, shown, report, order] = await Promise.all([
      get(history, signal),
      at ? this.stateAt(at) : get(`threads/${this.id}/state`, signal),
      // Of a thread whose graph has changed there is none.
      this.graph && get(`ui/threads/${this.id}/report${at ? `?at=${at}` : ""}`, signal).catch(() => null),
      this.readOrder(signal),
    ]);
    this.history = list.slice(0, PAGE);
    this.hasOlder = list.length > PAGE;
    [this.shown, this.shownAt, this.report, this.order] = [shown, at, report, order];
    if (!before) this.newest = list[0] ?? null;
    this.draw();
  }

  /** The order in which an eager run merged its tasks, from what is stored. */
  async readOrder(signal) {
    const { graph, run } = this;
    this.isEager = Boolean(graph && run && (await graphNamed(graph))?.is_eager);
    if (!this.isEager) return null;
    const order = await get(`ui/threads/${this.id}/order/${run.run_id}`, signal).catch(() => null);
    return order && { run, ...order };
  }

  /** The state at a checkpoint. The last few are kept. */
  async stateAt(id) {
    if (id === this.newest?.checkpoint_id) return get(`threads/${this.id}/state/${id}`, this.aborts.signal);
    this.kept ??= new Map();
    if (!this.kept.has(id)) {
      this.kept.set(id, await get(`threads/${this.id}/state/${id}`, this.aborts.signal));
      if (this.kept.size > 4) this.kept.delete(this.kept.keys().next().value);
    }
    return this.kept.get(id);
  }

  draw() {
    if (!this.thread || this.aborts.signal.aborted) return;
    const node = this.query.get("node");
    const rows = taskRows(this.trace, this.history, this.thread.runs);
    const filtered = node ? rows.filter((row) => row.node === node) : rows;
    this.drawHead();
    this.drawAlert();
    if (this.graph) this.loadDrawing();
    this.columns.classList.toggle("wide", this.inspector.tab === "compare");
    this.drawing.draw(statuses(this), node);
    this.work.draw(this);
    this.timeline.draw(filtered, this.thread.runs, this.run, this.query.get("at"), node, this.trace.dropped);
    this.checkpoints.draw(this.history, this.shown?.checkpoint_id, this.hasOlder, this.query.get("before"));
    this.inspector.draw();
  }

  /** The drawing of the run's own graph if it has temporary edits, else that of the compiled one. */
  loadDrawing() {
    const isEdited = this.report?.edits.length > 0 || this.report?.skips.length > 0;
    const at = this.shown?.checkpoint_id;
    const edited = isEdited && at ? `ui/threads/${this.id}/drawing?at=${at}` : null;
    this.drawing.load(this.graph, edited, this.query.get("open"));
  }

  drawHead() {
    const { status, metadata = {}, created_at: created } = this.thread;
    const active = this.thread.runs.filter(isActive);
    const more = Object.entries(metadata).filter(([name]) => !["graph_id", "assistant_id"].includes(name));
    const cost = costText(this.thread.tokens);
    const shown = JSON.stringify([status, cost, active.length, metadata, this.canGoOn(), this.asks().length]);
    if (shown === this.headShown) return;
    this.headShown = shown;
    keepFocus(this.head, () => put(this.head,
      h("h1", {}, "Thread ", h("code", { title: this.id }, shortId(this.id)), button("Copy id", () => copy(this.id), { class: "small quiet" })),
      h("p", { class: "facts" }, pill(status), h("span", {}, this.graph ?? "no graph yet"), h("span", {}, "made ", when(created)),
        cost && h("span", { title: "Tokens of all runs" }, cost),
        more.slice(0, 6).map(([name, value]) => h("code", {}, `${name}=${typeof value === "string" ? value : JSON.stringify(value)}`.slice(0, 60)))),
      h("div", { class: "actions" },
        this.asks().length > 0 && h("a", { class: "button primary", href: link("questions", null, { thread: this.id }), "data-key": "answer" },
          `Answer ${this.asks().length === 1 ? "the question" : counted(this.asks().length, "question")}`),
        active.length > 0 && button("Cancel", () => this.cancel(active), { class: "danger", "data-key": "cancel" }),
        this.canGoOn() && !this.run.error && button("Continue", () => this.goOn(), { "data-key": "continue", title: "Runs what is next" }),
        confirmed("Delete", "Delete this thread?", () => this.delete(), { class: "danger quiet", "data-key": "delete" }))));
  }

  /** The open questions of the newest checkpoint. */
  asks() {
    return (this.newest?.tasks ?? []).flatMap((task) => task.interrupts ?? []);
  }

  canGoOn() {
    return this.thread.runs.length > 0 && !this.thread.runs.some(isActive) && (this.newest?.next ?? []).length > 0 && this.asks().length === 0;
  }

  drawAlert() {
    const run = this.run;
    const error = isActive(run) ? null : run?.error;
    const failed = this.newest?.tasks?.filter((task) => task.error) ?? [];
    this.alert.hidden = !error;
    if (!error || this.alertShown === JSON.stringify([error, failed])) return;
    this.alertShown = JSON.stringify([error, failed]);
    const nodes = failed.map((task) => h("button", { type: "button", class: "small", onclick: () => change({ node: task.name }) }, task.name));
    const message = String(error.message ?? "");
    put(this.alert, h("p", {}, nodes.length > 0 && ["In ", nodes, ": "], h("strong", {}, error.error)), h("pre", {}, message.slice(0, 4000)),
      h("div", { class: "actions" }, this.canGoOn() && button("Run the failed node again", () => this.goOn()),
        button("As a test", () => change({ tab: "test" }), { title: "Writes the run as a test to paste" })));
  }

  /** Runs what is next at a checkpoint again, on a branch of its own. */
  async replay({ checkpoint_id: at }) {
    await this.start({ input: null, checkpoint_id: at }).catch(() => {});
  }

  search(path) {
    return search("GET", path, undefined, this.aborts.signal);
  }

  async schema() {
    return (await graphNamed(this.graph))?.schema ?? null;
  }

  async cancel(active) {
    for (const run of active) await post(`threads/${this.id}/runs/${run.run_id}/cancel`).catch((error) => this.failed(error));
    this.look().catch(() => {});
  }

  async goOn() {
    await this.start({ input: null });
  }

  /** Starts a run of this thread, and shows it. */
  async start(fields) {
    try {
      await startRun(this.id, this.graph, fields);
      change({ run: "", at: "", before: "" });
      await this.look();
    } catch (error) {
      toast(error.message, true);
      throw error;
    }
  }

  async delete() {
    try {
      await remove(`threads/${this.id}`);
      go("#/threads");
    } catch (error) {
      toast(error.message, true);
    }
  }

  key(key) {
    if (/^[1-8]$/.test(key)) return this.inspector.choose(Number(key) - 1);
    if (key !== "j" && key !== "k") return false;
    const ids = this.history.map((one) => one.checkpoint_id);
    // The address is ahead of the screen when keys follow quickly.
    const at = Math.max(0, ids.indexOf(read().query.get("at") ?? this.newest?.checkpoint_id));
    const to = ids[at + (key === "j" ? 1 : -1)];
    if (to) change({ at: to === this.newest?.checkpoint_id ? "" : to });
    return true;
  }
}
