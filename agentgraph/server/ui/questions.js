// The open questions of all threads, each with a form made of its schema. Several are answered at once.

import { change, link } from "./address.js";
import { each, every, get, search, startRun } from "./api.js";
import { button, counted, h, number, put, shortId, toast, when } from "./dom.js";
import { anything, formOf, Unread } from "./form.js";
import { brief, longText, tree } from "./json.js";

const PAGE = 20;

export function mount(main, address) {
  const screen = new Questions(main);
  screen.update(address);
  return screen;
}

class Questions {
  title = "Questions";

  constructor(main) {
    this.cards = new Map();
    this.note = h("p", { class: "facts" });
    this.list = h("div", { class: "questions" });
    this.pager = h("nav", { class: "pager", "aria-label": "Pages" });
    this.send = button("", () => this.answer([...this.cards.values()].filter((card) => card.isTouched)), { class: "primary" });
    this.bar = h("div", { class: "answer-bar", hidden: true }, this.send);
    put(main, h("h1", {}, "Questions"), this.note, this.list, this.pager, this.bar);
    this.stop = every(3000, () => this.load());
  }

  unmount() {
    this.stop();
  }

  online() {
    this.load().catch(() => {});
  }

  update({ query }) {
    this.query = query;
    this.load().catch((error) => { this.note.textContent = error.message; });
  }

  async load() {
    const page = Math.max(1, Number(this.query.get("page")) || 1);
    const thread = this.query.get("thread");
    const fields = thread ? `thread=${encodeURIComponent(thread)}` : `limit=${PAGE}&offset=${(page - 1) * PAGE}`;
    const { items, total } = await search("GET", `ui/questions?${fields}`);
    // The copy of a thread has questions with the same ids.
    const asked = items.flatMap((thread) => thread.questions.map((question) => ({ ...question, thread, key: `${thread.thread_id} ${question.id}` })));
    // A card that is being filled in stays; one whose question is closed goes.
    const ids = new Set(asked.map((question) => question.key));
    for (const [id, card] of this.cards) if (!ids.has(id)) { card.element.remove(); this.cards.delete(id); }
    for (const question of asked) {
      if (!this.cards.has(question.key)) this.cards.set(question.key, this.card(question));
    }
    // A card that stays in its place keeps the focus.
    asked.forEach((question, at) => {
      const { element } = this.cards.get(question.key);
      element.setAttribute("aria-label", `Question ${at + 1} of ${asked.length}, by ${question.node}`);
      if (this.list.children[at] !== element) this.list.insertBefore(element, this.list.children[at] ?? null);
    });
    const paused = items.filter((thread) => !thread.questions.length);
    this.showNote(asked, paused, total, thread);
    this.showPager(page, thread ? 1 : Math.ceil(total / PAGE));
    this.touched();
  }

  showNote(asked, paused, total, thread) {
    const open = counted(asked.length, "open question");
    const of = [`${open} of `, h("a", { href: link("threads", thread) }, `thread ${shortId(thread)}`), ". "];
    const all = asked.length ? `${open} of ${counted(total, "waiting thread")}${total > PAGE ? ", a page of them" : ""}. ` : "No question is open. ";
    const waiting = h("a", { href: link("threads", null, { status: "interrupted" }) }, `Waiting without a question: ${counted(paused.length, "thread")}.`);
    put(this.note, thread ? [of, h("a", { href: "#/questions" }, "All questions")] : all, paused.length > 0 && waiting);
  }

  showPager(page, last) {
    const to = (page) => () => change({ page: page === 1 ? "" : String(page) }, true);
    put(this.pager, last > 1 && [h("span", {}, `Page ${page} of ${last}`),
      button("Previous", to(page - 1), { disabled: page <= 1 }), button("Next", to(page + 1), { disabled: page >= last })]);
  }

  card(question) {
    const { thread, node, value, schema, replaces, id } = question;
    const answer = schema ? formOf(schema, undefined, "Answer") : anything("Answer");
    const problem = h("p", { class: "problem", role: "alert" });
    const card = { question, read: answer.read, problem, isTouched: false };
    const touch = () => { card.isTouched = true; this.touched(); };
    card.element = h("form", { class: "card question", oninput: touch, onchange: touch,
      onsubmit: (event) => { event.preventDefault(); this.answer([card]); } },
      h("header", {}, h("strong", {}, node), h("span", {}, thread.metadata?.graph_id ?? ""),
        h("a", { href: link("threads", thread.thread_id), title: thread.thread_id }, shortId(thread.thread_id)), when(thread.updated_at)),
      replaces && h("div", { class: "replaced" }, h("del", {}, brief(replaces.value, 300)),
        h("p", {}, replaces.reason ? `Its answer was refused: ${replaces.reason}` : "Its answer is void: the node asked something else.")),
      asked(value), answer.element, problem,
      h("div", { class: "actions" }, h("button", { type: "submit", "data-key": id }, "Answer")));
    return card;
  }

  touched() {
    const count = [...this.cards.values()].filter((card) => card.isTouched).length;
    this.bar.hidden = count < 2;
    this.send.textContent = count < 2 ? "" : `Answer ${number(count)} questions`;
  }

  /** Answers questions: those of one thread by one run. */
  async answer(cards) {
    const threads = new Map();
    for (const card of cards) {
      card.problem.textContent = "";
      const { thread, id } = card.question;
      try {
        const answers = threads.get(thread.thread_id) ?? { thread, cards: [], resume: {} };
        answers.resume[id] = card.read();
        answers.cards.push(card);
        threads.set(thread.thread_id, answers);
      } catch (error) {
        if (!(error instanceof Unread)) throw error;
        card.element.querySelector("[aria-invalid]")?.focus();
        return;
      }
    }
    for (const button of this.bar.children) button.disabled = true;
    const failures = await each(threads.values(), send, () => {});
    for (const button of this.bar.children) button.disabled = false;
    for (const { item, error } of failures) for (const card of item.cards) card.problem.textContent = error.message;
    const sent = cards.length - failures.reduce((count, { item }) => count + item.cards.length, 0);
    if (sent) toast(`${number(sent)} answered`);
    this.load().catch(() => {});
  }
}

async function send({ thread, resume, cards }) {
  const run = await startRun(thread.thread_id, thread.metadata.graph_id, { command: { resume }, strict_resume: true });
  const failed = await outcome(thread.thread_id, run.run_id);
  if (failed) throw new Error(`${failed.error}: ${failed.message}`);
  for (const card of cards) card.isTouched = false;
}

/** The error of a run that refuses its answers at once; null while it goes on. */
async function outcome(thread, id) {
  for (let tries = 0; tries < 20; tries++) {
    const { runs } = await get(`ui/threads/${thread}?limit=3`);
    const run = runs.find((run) => run.run_id === id);
    if (!run || !["pending", "running"].includes(run.status)) return run?.error ?? null;
    await new Promise((resolve) => setTimeout(resolve, 100));
  }
  return null;
}

/** What is asked: a text, or the one text of an object, or a tree. */
function asked(value) {
  if (typeof value === "string") return value.length > 2000 ? longText(value) : h("p", { class: "asked" }, value);
  const names = ["question", "message", "prompt", "text", "title"];
  const texts = Object.entries(value ?? {}).filter(([name, one]) => names.includes(name) && typeof one === "string");
  if (texts.length === 1) {
    const [[name, text]] = texts;
    const { [name]: _, ...rest } = value;
    return h("div", {}, h("p", { class: "asked" }, text.slice(0, 2000)),
      Object.keys(rest).length > 0 && tree(rest, undefined, "More of the question"));
  }
  return tree(value, undefined, "The question");
}
