// The messages of a thread, with those under way as a model writes them, and a field for the next one.

import { follow } from "./api.js";
import { button, h, put } from "./dom.js";
import { longText, tree } from "./json.js";
import { markdown } from "./markdown.js";

const SHOWN = 30;
/** How many elements the texts of all messages may have; others are shown without their Markdown. */
const ELEMENTS = 500;
const WHO = { human: "You", user: "You", ai: "Model", assistant: "Model", tool: "Tool", system: "System" };

export class Chat {
  constructor(screen) {
    this.screen = screen;
    this.earlier = 0;
    this.pieces = new Map();
    this.list = h("ol", { class: "chat" });
    this.more = h("div", { class: "pager" });
    this.input = h("textarea", { rows: 2, name: "message", "aria-label": "Message", placeholder: "Say something" });
    this.composer = h("form", { class: "composer", onsubmit: (event) => this.send(event) }, this.input,
      h("button", { type: "submit", class: "primary" }, "Send"));
    this.element = h("div", { class: "chat-panel" }, this.more, this.list, this.composer);
  }

  unmount() {
    this.aborts?.abort();
  }

  draw(values) {
    const messages = messagesOf(values);
    const isOld = Boolean(this.screen.query.get("at"));
    this.composer.hidden = isOld || !this.screen.graph;
    this.listen();
    const known = new Set(messages.map((message) => message.id));
    const all = isOld ? messages : [...messages, ...[...this.pieces.values()].filter((piece) => !known.has(piece.id))];
    const text = JSON.stringify([all.length, this.earlier, all.slice(-3)]);
    if (text !== this.shown) {
      this.shown = text;
      const first = Math.max(0, all.length - SHOWN - this.earlier);
      put(this.list, bubbles(all.slice(first, first + SHOWN)), all.length === 0 && h("li", { class: "empty" }, "No messages"));
      const move = (by) => () => { this.earlier = Math.max(0, this.earlier + by); this.draw(values); };
      put(this.more, all.length > SHOWN && [
        h("span", {}, `messages ${first + 1}–${Math.min(first + SHOWN, all.length)} of ${all.length}`),
        button("Earlier", move(SHOWN), { disabled: first === 0 }), button("Later", move(-SHOWN), { disabled: this.earlier === 0 }),
      ]);
    }
    return this.element;
  }

  /** Hears the pieces of models' messages of the run under way. */
  async listen() {
    const run = this.screen.thread?.runs.find((run) => ["pending", "running"].includes(run.status));
    if (this.heard === run?.run_id) return;
    this.heard = run?.run_id;
    this.aborts?.abort();
    this.pieces.clear();
    if (!run) return;
    const { signal } = this.aborts = new AbortController();
    const onEvent = (name, data) => {
      if (!name.startsWith("messages") || !Array.isArray(data)) return;
      const [piece] = data;
      const before = this.pieces.get(piece.id);
      const text = (content) => typeof content === "string" ? content : (content ?? []).map((block) => block.text ?? "").join("");
      this.pieces.set(piece.id, { ...piece, content: (before?.content ?? "") + text(piece.content) });
      this.frame ||= requestAnimationFrame(() => { this.frame = 0; this.draw(this.screen.shown?.values); });
    };
    await follow(`threads/${this.screen.id}/runs/${run.run_id}/stream?stream_mode=messages-tuple`, onEvent, signal).catch(() => {});
  }

  async send(event) {
    event.preventDefault();
    const content = this.input.value.trim();
    if (!content) return;
    this.input.value = "";
    try {
      await this.screen.start({ input: { messages: [{ type: "human", content }] } });
    } catch {
      this.input.value = content;
    }
  }
}

/** The newest messages have Markdown first. */
function bubbles(messages) {
  const budget = { left: ELEMENTS };
  return messages.toReversed().map((message) => bubble(message, budget)).reverse();
}

function bubble(message, budget) {
  const kind = message.type?.replace(/MessageChunk$/i, "").toLowerCase() ?? message.role;
  const calls = message.tool_calls ?? [];
  return h("li", { class: `message ${WHO[kind] ? kind : "other"}` },
    h("p", { class: "who" }, WHO[kind] ?? kind, message.name && ` · ${message.name}`),
    content(message.content, kind === "tool" ? null : budget),
    calls.slice(0, 20).map(({ name, args }) => h("details", { class: "call" }, h("summary", {}, "calls ", h("code", {}, name)), lazily(args))));
}

/** Texts as Markdown, within a budget if there is one. */
function content(given, budget) {
  if (typeof given === "string") {
    if (given.length > 20_000) return longText(given);
    const elements = budget && given && markdown(given, budget);
    return elements ? h("div", { class: "text markdown" }, elements) : given && h("p", { class: "text" }, given);
  }
  const blocks = Array.isArray(given) ? given : [given];
  return blocks.slice(0, 20).map((block) => typeof block?.text === "string" ? content(block.text, budget) : block && lazily(block));
}

/** A value that is drawn when it is opened. */
function lazily(value) {
  const place = h("div");
  const details = h("details", { ontoggle: () => details.open && !place.firstChild && place.append(tree(value)) }, h("summary", {}, "JSON"), place);
  return details;
}

/** The messages of a state: the channel `messages`, or the first list of what look like messages. */
export function messagesOf(values) {
  const isMessage = (item) => item && typeof item === "object" && typeof (item.type ?? item.role) === "string" && "content" in item;
  const lists = [values?.messages, ...Object.values(values ?? {})];
  return lists.find((list) => Array.isArray(list) && list.length && list.every(isMessage)) ?? [];
}
