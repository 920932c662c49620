// When the tasks of a run ran and waited. From the trace of the run, which the server keeps while the run is
// in memory; else from the times of the checkpoints, which know supersteps but no attempts.

import { addTo, costText, sumOf } from "./cost.js";
import { button, clock, counted, duration, h, keepFocus, number, pill, put, svg, when } from "./dom.js";

const ROWS = 40;

/** What a run did, as its server noted it. */
export class Trace {
  constructor() {
    this.reset();
  }

  reset() {
    Object.assign(this, { tasks: [], byId: new Map(), times: new Map(), open: [], edits: [], ends: new Map(), next: 0, dropped: 0, ended: false });
  }

  /** Whether a task is under way. */
  get isOpen() {
    return !this.ended && this.tasks.some((task) => task.end === null);
  }

  timeOf(checkpoint) {
    return this.times.get(checkpoint);
  }

  add({ from, next, marks, ended }) {
    if (from > this.next) this.dropped += from - this.next;
    this.next = next;
    this.ended = ended;
    for (const mark of marks) this.take({ ...mark, at: mark.at / 1000 });
    if (ended) for (const task of this.tasks) if (task.end === null) Object.assign(task, { end: task.last, status: "stopped" });
  }

  take(mark) {
    if (mark.type === "checkpoint") {
      if (mark.namespace) return;
      this.times.set(mark.checkpoint, mark.at);
      for (const task of this.open) task.checkpoint = mark.checkpoint;
      this.open = [];
      return;
    }
    if (["edited", "edit_rejected", "edit_dropped"].includes(mark.type)) this.edits.push(mark);
    if (!mark.task) return;
    const task = this.taskOf(mark);
    task.last = mark.at;
    const attempt = task.attempts.at(-1);
    if (mark.type === "attempt_failed") {
      Object.assign(attempt, { end: mark.at, error: mark.error, wait: mark.next_in_ms ?? null });
    } else if (mark.type === "attempt_started") {
      task.attempts.push({ start: mark.at, end: null });
    } else if (mark.type === "durable_step") {
      if (mark.status !== "started") task.notes.push(`durable step ${mark.durable_step?.name ?? ""}: ${mark.status}`);
    } else if (mark.type === "answer_voided") {
      task.notes.push(`answer void: ${mark.question?.reason ?? "another question"}`);
    } else if (mark.rejection) {
      task.notes.push(`${mark.type === "edit_dropped" ? "edit dropped" : "edit rejected"}: ${mark.rejection.message}`);
    } else if (mark.usage) {
      const { input_total: input, output_total: output } = mark.usage;
      addTo(task.tokens, { [mark.model]: [input, output] });
    } else if (mark.type === "task_ended") {
      this.ends.set(mark.namespace, mark.node);
      task.end = attempt.end = mark.at;
      task.status = mark.status;
      task.error = attempt.error = mark.error ?? attempt.error ?? null;
    }
  }

  taskOf(mark) {
    const key = `${mark.namespace}/${mark.task?.id}`;
    if (mark.type !== "task_started" && this.byId.has(key)) return this.byId.get(key);
    const task = {
      node: mark.node, ns: mark.namespace, step: mark.step, start: mark.at, end: null, status: "running", error: null,
      attempts: [{ start: mark.at, end: null }], notes: [], checkpoint: null, tokens: {},
      // In an eager graph an end makes the next tasks start.
      cause: this.ends.get(mark.namespace) ?? "__start__",
    };
    this.tasks.push(task);
    this.byId.set(key, task);
    if (!mark.namespace) this.open.push(task);
    return task;
  }
}

/** The rows of the timeline: tasks, the oldest first. */
export function taskRows(trace, history, runs) {
  if (trace.tasks.length) return trace.tasks;
  const rows = [];
  const began = runs.map((run) => Date.parse(run.created_at)).sort((one, other) => one - other);
  for (let at = history.length - 2; at >= 0; at--) {
    const [before, after] = [history[at + 1], history[at]];
    if (after.metadata.source !== "loop" || before.next[0] === "__start__") continue;
    const [from, end] = [Date.parse(before.created_at), Date.parse(after.created_at)];
    // A run that began in between: until then the thread waited.
    const start = began.findLast((time) => time > from && time < end) ?? from;
    for (const node of before.next) {
      rows.push({ node, ns: "", step: after.metadata.step, start, end, waited: from, status: "done", error: null, notes: [], tokens: {},
        attempts: [{ start, end }], checkpoint: after.checkpoint_id });
    }
  }
  return rows;
}

export class Timeline {
  constructor(onCheckpoint, onRun) {
    this.onCheckpoint = onCheckpoint;
    this.onRun = onRun;
    this.back = 0;
    this.runs = h("div", { class: "run-picker" });
    this.rows = h("ol", { class: "waterfall" });
    this.pager = h("div", { class: "pager" });
    this.note = h("p", { class: "note" });
    this.element = h("section", { class: "card timeline", "aria-label": "Timeline" },
      h("h2", {}, "Timeline"), this.runs, this.note, this.rows, this.pager);
  }

  draw(...drawn) {
    this.drawn = drawn;
    const [rows, runs, run, at, node, dropped] = drawn;
    this.drawRuns(runs, run);
    const last = Math.max(0, rows.length - ROWS);
    this.back = Math.min(this.back, last);
    const first = last - this.back;
    const seen = rows.slice(first, first + ROWS);
    const now = run && ["pending", "running"].includes(run.status) ? Date.now() : null;
    const begin = Math.min(...seen.map((row) => row.waited ?? row.start));
    const end = Math.max(begin + 0.1, ...seen.map((row) => row.end ?? now ?? row.last ?? row.start));
    const scale = (time) => 1000 * (time - begin) / (end - begin);
    const notes = [node && `Only ${node}.`, dropped && `The first ${number(dropped)} marks of this run are no longer kept.`,
      seen.length && !seen.some((row) => row.last) && "From the checkpoints: attempts are known while the run is in memory."].filter(Boolean);
    this.note.textContent = notes.join(" ");
    this.note.hidden = notes.length === 0;
    keepFocus(this.rows, () => put(this.rows, seen.map((row, index) => this.row(row, scale, now, at, first + index)),
      seen.length === 0 && h("li", { class: "empty" }, "No task yet")));
    this.drawPager(rows, first, begin, end);
  }

  drawRuns(runs, run) {
    const shown = JSON.stringify([runs, run?.run_id]);
    if (this.shown === shown) return;
    this.shown = shown;
    const option = (one, at) => h("option", { value: one.run_id, selected: one === run },
      `${runs.length - at} · ${one.status} · ${duration(Date.parse(one.updated_at) - Date.parse(one.created_at))} · ${clock(one.created_at)}`);
    put(this.runs, runs.length > 0 && h("label", {}, h("span", {}, "Run "),
      h("select", { onchange: ({ target }) => this.onRun(target.value === runs[0].run_id
        ? "" : target.value) }, runs.map(option))), run && pill(run.status),
    run && h("span", { class: "cost" }, costText(run.tokens ?? {})), waitBefore(runs, run));
  }

  row(row, scale, now, at, key) {
    const end = row.end ?? now ?? row.last ?? row.start;
    const bars = row.attempts.flatMap((attempt, index) => {
      const until = attempt.end ?? end;
      const failed = attempt.error ? "failed" : row.end === null ? "running" : row.status;
      const wait = row.attempts[index + 1] ? row.attempts[index + 1].start : attempt.wait ? attempt.end + attempt.wait : null;
      return [bar(scale(attempt.start), scale(until), `bar ${failed}`), wait && bar(scale(until), scale(Math.min(wait, end)), "bar waits")];
    });
    if (row.waited && row.waited < row.start) bars.unshift(bar(scale(row.waited), scale(row.start), "bar waits"));
    const tries = row.attempts.length > 1 ? `${row.attempts.length} attempts` : "";
    const status = row.end === null ? "running" : row.status;
    const cost = costText(row.tokens);
    const error = row.error?.message ?? row.attempts.findLast((attempt) => attempt.error)?.error?.message;
    const about = [clock(row.start), status, tries, cost, ...row.notes, error].filter(Boolean).join(" · ");
    return h("li", { class: row.checkpoint && row.checkpoint === at ? "chosen" : null },
      h("button", { type: "button", "data-key": `row ${key}`, title: about.slice(0, 500), disabled: !row.checkpoint
        && row.status === "done", onclick: () => this.onCheckpoint(row.checkpoint ?? "") },
        h("span", { class: "name" }, row.ns && h("span", { class: "ns" }, around(row.ns)), row.node),
        svg("svg", { viewBox: "0 0 1000 16", preserveAspectRatio: "none", "aria-hidden": "true" }, bars),
        h("span", { class: "took" }, duration(end - row.start)),
        (status !== "done" || tries || error || cost || row.notes.length > 0) && h("span", { class: `about ${status === "failed" || error ? "bad" : ""}` },
          [status !== "done" && status, tries, cost, ...row.notes.slice(-4), error && error.slice(0, 120)].filter(Boolean).join(" · "))));
  }

  drawPager(rows, first, begin, end) {
    const count = rows.length;
    const cost = costText(sumOf(rows.map((row) => row.tokens)));
    const move = (by) => () => { this.back = Math.max(0, this.back + by); this.draw(...this.drawn); };
    keepFocus(this.pager, () => put(this.pager, count > 0 && h("span", {}, count > ROWS
      && `${number(first + 1)}–${number(Math.min(first + ROWS, count))} of `, `${counted(count, "task")}, ${duration(end - begin)}`, cost && ` · ${cost}`),
      count > ROWS && [
        button("Earlier", move(ROWS), { disabled: first === 0, "data-key": "earlier" }),
        button("Later", move(-ROWS), { disabled: this.back === 0, "data-key": "later" }),
      ]));
  }
}

/** The nodes whose subgraphs a namespace is in. */
const around = (namespace) => namespace.split("|").map((level) => `${level.split(":")[0]} › `).join("");

function bar(from, to, classes) {
  const x = Math.min(from, 997);
  return svg("rect", { class: classes, x: x.toFixed(1), y: 2, width: Math.max(3, to - x).toFixed(1), height: 12, rx: 2 });
}

/** How long the thread waited for a run that follows another one. */
function waitBefore(runs, run) {
  const before = runs[runs.indexOf(run) + 1];
  const waited = before ? Date.parse(run.created_at) - Date.parse(before.updated_at) : 0;
  return waited > 1000 && h("span", { class: "facts" }, `${duration(waited)} after the one before`);
}

const names = (nodes) => nodes.slice(0, 4).join(", ").replace("__start__", "START") + (nodes.length > 4 ? ", …" : "");

/** The checkpoints of the thread, the newest first. */
export class Checkpoints {
  constructor(onChoose, onPage) {
    this.onChoose = onChoose;
    this.onPage = onPage;
    this.list = h("ol", { class: "checkpoints" });
    this.pager = h("div", { class: "pager" });
    this.element = h("section", { class: "card", "aria-label": "Checkpoints" }, h("h2", {}, "Checkpoints"), this.list, this.pager);
  }

  draw(history, chosen, hasOlder, before) {
    const shown = JSON.stringify([history.map((one) => [one.checkpoint_id, one.tasks?.map((task) => [task.error, task.interrupts?.length])]), chosen, before]);
    if (shown === this.shown) return;
    this.shown = shown;
    const row = (one, index) => {
      const isNewest = index === 0 && !before;
      // A fork goes on from another checkpoint than the one below it.
      const isFork = history[index + 1] && one.parent_checkpoint_id && one.parent_checkpoint_id !== history[index + 1].checkpoint_id;
      return h("li", {}, h("button", {
        type: "button", "data-key": one.checkpoint_id, "aria-current": one.checkpoint_id === chosen ? "true" : null,
        onclick: () => this.onChoose(isNewest ? "" : one.checkpoint_id),
      }, h("span", { class: "step" }, `step ${one.metadata.step}`), h("span", { class: "source" }, one.metadata.source, isFork && " · branch"),
      h("span", { class: "next" }, one.next.length ? `→ ${names(one.next)}` : "end"),
      one.tasks?.some((task) => task.error) && pill("failed"), one.tasks?.some((task) => task.interrupts?.length)
        && h("span", { class: "pill is-interrupted" }, "asks"),
      when(one.created_at)));
    };
    keepFocus(this.list, () => put(this.list, history.map(row), history.length === 0 && h("li", { class: "empty" }, "No checkpoint yet")));
    put(this.pager, before && button("Newest", () => this.onPage("")), hasOlder && button("Older", () => this.onPage(history.at(-1).checkpoint_id)));
  }
}
