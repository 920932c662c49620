// The frame of the page: which screen is shown, the key, the connection, and the keyboard.

import { read } from "./address.js";
import { every, search, state } from "./api.js";
import { button, h, number, put } from "./dom.js";
import * as graphs from "./graphs.js";
import * as questions from "./questions.js";
import * as run from "./run.js";
import * as start from "./start.js";
import * as store from "./store.js";
import * as threads from "./threads.js";
import * as token from "./token.js";

const SCREENS = { threads, questions, new: start, graphs, store };
const main = document.getElementById("main");
let shown = null; // { name, id, screen }

function show() {
  const address = read();
  const known = Object.hasOwn(SCREENS, address.screen) ? address.screen : "threads";
  const name = known === "threads" && address.id ? "run" : known;
  const module = name === "run" ? run : SCREENS[name];
  if (shown?.name === name && shown.id === address.id) {
    shown.screen.update?.(address);
    return;
  }
  shown?.screen.unmount?.();
  put(main);
  main.className = `screen-${name}`;
  for (const link of document.querySelectorAll("nav a")) {
    if (link.dataset.screen === known) link.setAttribute("aria-current", "page");
    else link.removeAttribute("aria-current");
  }
  shown = { name, id: address.id, screen: module.mount(main, address) };
  document.title = `${shown.screen.title ?? "agentgraph"} · agentgraph`;
}

function askForKey() {
  if (shown?.name === "token") return;
  shown?.screen.unmount?.();
  const again = () => { shown = null; show(); };
  shown = { name: "token", id: null, screen: token.mount(main, again) };
}

const offline = document.getElementById("offline");
state.addEventListener("unauthorized", askForKey);
state.addEventListener("offline", () => {
  offline.textContent = "The server does not answer. Trying again …";
  offline.hidden = false;
});
state.addEventListener("online", () => {
  offline.hidden = true;
  shown?.screen.online?.();
});
addEventListener("hashchange", show);

async function countQuestions() {
  if (shown?.name === "token") return;
  const { total } = await search("GET", "ui/questions?limit=0");
  const count = document.getElementById("question-count");
  count.hidden = total === 0;
  count.textContent = number(total);
  count.setAttribute("aria-label", `${total} waiting threads`);
}

// --- The keyboard ---------------------------------------------------------------------------------------------

const KEYS = [
  ["/", "to the search"],
  ["j, k", "next, previous row or checkpoint"],
  ["Enter", "open the row"],
  ["x", "select the row"],
  ["t, q, n, g, s", "threads, questions, new run, graphs, store"],
  ["1 … 8", "the tabs of a checkpoint"],
  ["Ctrl Enter", "send"],
  ["?", "these keys"],
];
const dialog = document.getElementById("keys");

function showKeys() {
  put(dialog, h("h2", { id: "keys-title" }, "Keys"), h("dl", {}, KEYS.map(([key, does]) => [h("dt", {}, key), h("dd", {}, does)])),
    button("Close", () => dialog.close()));
  dialog.showModal();
}

document.getElementById("help").addEventListener("click", showKeys);

function isTyping(target) {
  return target instanceof Element && target.matches("input:not([type=checkbox]), textarea, select, [contenteditable]");
}

addEventListener("keydown", (event) => {
  if (event.key === "Enter" && (event.ctrlKey || event.metaKey)) {
    event.target.closest?.("form")?.requestSubmit();
    return;
  }
  if (event.ctrlKey || event.metaKey || event.altKey || dialog.open || isTyping(event.target)) return;
  const places = { t: "#/threads", q: "#/questions", n: "#/new", g: "#/graphs", s: "#/store" };
  if (event.key === "?") showKeys();
  else if (event.key === "/") main.querySelector("[data-search]")?.focus();
  else if (places[event.key]) location.hash = places[event.key];
  else if (!shown?.screen.key?.(event.key)) return;
  event.preventDefault();
});

show();
countQuestions().catch(() => {});
every(5000, countQuestions);
