// What a thread waits for and who has it; what its run did to the graph; in which order an eager run ended.

import { clock, h, put, when } from "./dom.js";

const MOST = 40;

export class Work {
  constructor() {
    this.element = h("section", { class: "card work", "aria-label": "Open work", hidden: true });
  }

  draw({ thread, report, run, order, trace: { edits } }) {
    const active = thread.runs.find((one) => one.status === "running");
    const stuck = run?.stuck ?? [];
    const shown = JSON.stringify([active?.since, report, stuck, edits.length, order]);
    if (shown === this.shown) return;
    this.shown = shown;
    const parts = [
      holder(report?.holder, active), ...joins(report?.joins ?? [], false), ...joins(stuck, true),
      report?.deferred?.length > 0 && part("Deferred", h("p", {}, nodes(report.deferred), report.deferred.length > 1 ? " wait" : " waits", " until nothing else can run.")),
      editList(report, edits), order?.run.run_id === run?.run_id && order?.merged.length > 0 && orderList(order),
    ].filter(Boolean);
    this.element.hidden = parts.length === 0;
    put(this.element, h("h2", {}, "Open work and edits"), parts);
  }
}

const part = (title, ...content) => h("div", { class: "part" }, h("h3", {}, title), content);
const nodes = (names) => names.slice(0, MOST).map((name, at) => [at > 0 && ", ", h("code", {}, name)]);

function holder(lease, run) {
  if (!lease) return null;
  const { is_here: isHere, is_cancelled: isCancelled, until } = lease;
  return part("Held", h("p", {}, isHere ? "A run of this server has the thread" : "A run of another process has the thread",
    run?.since && [" since ", clock(run.since), ", ", when(run.since)],
    !isHere && [", until ", clock(until), " unless it shows activity"], isCancelled && "; it was asked to stop", "."));
}

function joins(all, isStuck) {
  return all.slice(0, MOST).map(({ to, arrived, missing, until }) => part([isStuck ? "Stuck join into " : "Join into ", h("code", {}, to)],
    h("ul", { class: `join ${isStuck ? "stuck" : ""}` }, arrived.slice(0, MOST).map((name) => h("li", { class: "arrived" }, h("code", {}, name), " arrived")),
      missing.slice(0, MOST).map((name) => h("li", { class: "missing" }, h("code", {}, name), " missing"))),
    isStuck && h("p", {}, "The run ended before these sources arrived."), until && h("p", {}, "It fires without them at ", clock(until), ".")));
}

/** The edits in effect, and those of the run that were refused. */
function editList(report, marks) {
  const row = (kind, text, more) => h("li", { class: `edit ${kind}` }, h("span", { class: "kind" }, kind), " ", text, more);
  const inEffect = (report?.edits ?? []).slice(0, MOST).map((edit) => row("temporary", editText(edit)));
  const skips = (report?.skips ?? []).slice(0, MOST).map((name) => row("skipped", ["next turn of ", h("code", {}, name)]));
  const refused = marks.filter((mark) => mark.rejection).slice(0, MOST).map(({ type, node, edits, rejection, lost }) => row(
    type === "edit_dropped" ? "dropped" : "rejected",
    edits?.length ? edits.slice(0, 6).map((edit, at) => [at > 0 && ", ", editText(edit)]) : rejection.edit ? editText(rejection.edit) : "an edit",
    h("p", {}, "by ", h("code", {}, node ?? "the caller"), ": ", rejection.message, lost?.length > 0 && [" Never reached: ", nodes(lost), "."])));
  const all = [...inEffect, ...skips, ...refused];
  return all.length > 0 && part("Temporary edits", h("ul", {}, all));
}

const EDITS = {
  add_node: ({ name, template }) => ["add node ", name, template && ` from template ${template}`],
  add_edge: ({ from, to }) => ["add edge ", from, " → ", to], prepend_edge: ({ from, to }) => ["prepend edge ", from, " → ", to],
  remove_edge: ({ from, to }) => ["remove edge ", from, " → ", to], remove_node: ({ name, node }) => ["remove node ", name ?? node],
  skip: ({ nodes }) => ["skip ", nodes?.join(", ")],
};

/** An edit as text: it may be text already. */
function editText(edit) {
  if (typeof edit === "string") return edit;
  const [kind, about] = Object.entries(edit)[0] ?? [];
  return EDITS[kind] ? h("code", {}, EDITS[kind](about)) : h("code", {}, JSON.stringify(edit).slice(0, 200));
}

/** The order in which tasks ended, which the store keeps and a replay follows. */
function orderList({ merged, is_whole: isWhole, diverged }) {
  const first = Math.max(0, merged.length - MOST);
  // A replay leaves the order with the end after this step.
  const left = (from, to) => (diverged ?? []).filter(({ step }) => step >= from && step < to).map(({ expected }) => h("li", { class: "diverged" },
    "the replay left the order here: ", expected ? h("code", {}, expected) : "a join", " was due"));
  const row = ({ node, step }, at) => [left(merged[first + at - 1]?.step ?? 0, step), h("li", {}, isWhole && `${first + at + 1} `, h("code", {}, node))];
  return part("Recorded order of ends", (first > 0 || !isWhole) && h("p", {}, `the last ${Math.min(MOST, merged.length)}${isWhole ? ` of ${merged.length}` : ""}`),
    h("ol", { class: "order" }, merged.slice(first).map(row), left(merged.at(-1).step, Infinity)));
}
