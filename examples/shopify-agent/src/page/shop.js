// The page of the shop assistant: a client of the same two routes as xRx's orchestrator. It keeps history and
// session in the tab, so a reload finds them again and another tab has others. All text is set as text.
"use strict";

const HISTORY = 20; // Messages of a request.
const LOOK_AGAIN = 700; // Milliseconds between two looks at a task whose stream was lost.
const PATIENCE = 120; // Such looks.

const at = (id) => document.getElementById(id);
const talk = at("talk");

/** An element with classes, properties and children; strings become text. */
function make(tag, classes, properties, ...children) {
  const element = document.createElement(tag);
  if (classes) element.className = classes;
  for (const [name, value] of Object.entries(properties || {})) {
    if (name.includes("-") || name === "role") element.setAttribute(name, value);
    else element[name] = value;
  }
  element.append(...children.filter((child) => child !== null));
  return element;
}

// --- What the tab keeps ---------------------------------------------------------------------------------------

const empty = () => ({ guid: crypto.randomUUID?.() ?? String(Math.random()), messages: [], session: null, entries: [], task: null, pieces: 0 });
let kept = load();

function load() {
  try {
    const found = JSON.parse(sessionStorage.getItem("shop"));
    if (found && Array.isArray(found.entries)) return found;
  } catch { /* Another form of an earlier version: begin anew. */ }
  return begun();
}

function begun() {
  const fresh = empty();
  fresh.session = { guid: fresh.guid };
  return fresh;
}

function keep() {
  try { sessionStorage.setItem("shop", JSON.stringify(kept)); } catch { /* Full: a reload then finds less. */ }
}

// A duplicated tab has a copy of the other's conversation. It asks who has it, and begins its own.
const tabs = "BroadcastChannel" in window ? new BroadcastChannel("shop") : null;
const tab = Math.random();
if (tabs) {
  tabs.onmessage = ({ data }) => {
    if (data.guid !== kept.guid || data.tab === tab) return;
    if (data.asks) tabs.postMessage({ guid: kept.guid, tab });
    else if (!running) { kept = begun(); show(); }
  };
  tabs.postMessage({ guid: kept.guid, tab, asks: true });
}

// --- A turn ---------------------------------------------------------------------------------------------------

let running = null; // { id, abort, stopped }

async function turn(entry, message, action) {
  if (running) await stop();
  const own = { id: null, abort: new AbortController(), stopped: false, entries: [] };
  running = own;
  if (message) kept.messages.push({ role: "user", content: message });
  if (entry) kept.entries.push(entry);
  busy();
  const body = { messages: kept.messages.slice(-HISTORY), session: kept.session };
  if (action) body.action = { type: "tool", details: action };
  try {
    const answer = await fetch("/run-reasoning-agent", {
      method: "POST",
      headers: { "content-type": "application/json", accept: "text/event-stream" },
      body: JSON.stringify(body),
      signal: own.abort.signal,
    });
    own.id = kept.task = answer.headers.get("x-task-id");
    keep();
    if (own.stopped) await cancelTask(own.id);
    else await read(answer, own);
  } catch {
    if (!own.stopped && own.id) await recover(own.id);
    else if (!own.stopped) note("The shop cannot be reached. Please try again.", true);
  }
  if (running === own) finished();
}

/** Reads frames; a frame may come in several chunks, and a chunk may have several frames. */
async function read(answer, own) {
  const reader = answer.body.pipeThrough(new TextDecoderStream()).getReader();
  let rest = "", last = null, ended = false;
  for (;;) {
    const { done, value } = await reader.read();
    if (done || own.stopped) break;
    const events = (rest + value).split("\n\n");
    rest = events.pop();
    for (const event of events.filter((event) => event.startsWith("data: "))) {
      const frame = JSON.parse(event.slice(6));
      if (frame.error) { note(frame.error, true); ended = true; break; }
      take(frame, own.id);
      last = frame;
    }
  }
  if (own.stopped || ended) return;
  if (last?.node === "CustomerResponse") history(last);
  else await recover(own.id); // The stream was cut off.
}

/** Shows a frame and takes its session. */
function take(frame, task) {
  kept.session = frame.session;
  const add = (entry) => { kept.entries.push({ ...entry, task }); busy(); };
  if (frame.node === "TaskDescriptionResponse") { add({ kind: "wait", text: frame.output }); say(frame.output); }
  if (frame.node === "CustomerResponse") { add({ kind: "agent", text: frame.output }); say(frame.output); }
  if (frame.node === "Widget") add({ kind: "widget", type: frame.output.type, details: frame.output.details });
  keep();
}

function history(frame) {
  kept.messages.push(...frame.messages.filter((message) => message.content));
}

/** Asks what became of a task, until it has ended: also of one that another process goes on with after a kill. */
async function recover(id) {
  at("status").textContent = "Connecting again…";
  for (let looks = 0; looks < PATIENCE; looks++) {
    const report = await fetch(`/tasks/${encodeURIComponent(id)}`).then((answer) => (answer.ok ? answer.json() : null), () => undefined);
    if (report === null) return note("The shop does not know this question any more.", true);
    if (report && report.status !== "running") {
      kept.entries = kept.entries.filter((entry) => entry.task !== id);
      report.frames.forEach((frame) => take(frame, id));
      const last = report.frames[report.frames.length - 1];
      if (report.status === "finished-with-success" && last) history(last);
      if (report.status === "finished-with-error") note("Something went wrong on our side. Please try again.", true);
      if (report.status === "cancelled") note("Stopped");
      return undefined;
    }
    await new Promise((resolve) => setTimeout(resolve, LOOK_AGAIN));
  }
  return note("The shop cannot be reached. Please try again.", true);
}

function cancelTask(id) {
  return fetch(`/cancel-reasoning-agent/${encodeURIComponent(id)}`, { method: "POST" }).catch(() => undefined);
}

async function stop() {
  const own = running;
  if (!own || own.stopped) return;
  own.stopped = true;
  running = null;
  window.speechSynthesis?.cancel();
  if (own.id) {
    await cancelTask(own.id);
    own.abort.abort();
  }
  note("Stopped");
  finished();
}

function finished() {
  running = null;
  kept.task = null;
  keep();
  show();
}

function busy() { keep(); show(); }

function note(text, bad) { kept.entries.push({ kind: bad ? "bad" : "note", text }); }

// --- What is seen ---------------------------------------------------------------------------------------------

let shown = [];

/** Brings the list of elements in line with the entries: those that stay keep their focus and their inputs. */
function show() {
  const newestCart = kept.entries.findLastIndex((entry) => entry.type === "shopify-cart-summary" || entry.type === "shopify-order-confirmation");
  const stays = shown.findIndex((old, index) => old.entry !== kept.entries[index]);
  const from = stays < 0 ? Math.min(shown.length, kept.entries.length) : stays;
  shown.splice(from).forEach(({ element }) => element.remove());
  talk.querySelector(".dots")?.remove();
  kept.entries.slice(from).forEach((entry) => {
    const element = draw(entry);
    shown.push({ entry, element });
    talk.append(element);
  });
  shown.forEach(({ entry, element }, index) => {
    if (entry.type !== "shopify-cart-summary") return;
    element.classList.toggle("old", index !== newestCart);
    element.querySelectorAll("button").forEach((button) => { button.disabled = index !== newestCart; });
  });
  if (running) talk.append(make("div", "dots", { "aria-hidden": "true" }, make("i"), make("i"), make("i")));
  at("hints").hidden = kept.entries.length > 0;
  at("cancel").hidden = !running;
  at("count").textContent = String(kept.pieces);
  at("cart").setAttribute("aria-label", `Cart, ${kept.pieces} pieces`);
  at("status").textContent = running ? "One moment…" : "Ready when you are";
  talk.scrollTop = talk.scrollHeight;
}

function draw(entry) {
  if (entry.kind === "widget") return widget(entry.type, details(entry.details));
  if (entry.kind === "note" || entry.kind === "bad") return make("p", `note ${entry.kind}`, {}, entry.text);
  const who = entry.kind === "user" ? "You" : "Corner Kitchen";
  const side = entry.kind === "user" ? "user" : entry.kind === "wait" ? "agent wait" : "agent";
  return make("div", `say ${side}`, {}, make("span", "hidden", {}, `${who}: `), entry.text);
}

function details(text) {
  try { return JSON.parse(text); } catch { return {}; }
}

const widget = (type, data) => ({
  "shopify-product-list": products,
  "shopify-product-details": product,
  "shopify-cart-summary": cart,
  "shopify-order-confirmation": order,
  "shopify-order-status": order,
})[type]?.(data, type) ?? make("p", "note", {}, "This cannot be shown here.");

function picture(source) {
  const safe = typeof source === "string" && /^https?:/.test(source);
  return safe ? make("img", "picture", { src: source, alt: "", loading: "lazy" }) : make("span", "picture");
}

function products(data) {
  const items = Object.values(data);
  const cards = items.map((item) => {
    const price = item.is_sold_out ? "Sold out" : item.price_from ? `from $${item.price_from}` : "";
    const card = make("button", "", { type: "button" }, picture(item.product_image_src),
      make("span", "name", {}, item.product_title), make("span", "price", {}, price));
    card.onclick = () => click("get_product_details", { product_id: item.product_id }, item.product_title);
    return make("li", "", {}, card);
  });
  return make("div", "card", { role: "group", "aria-label": "Products" },
    make("div", "head", {}, make("h2", "", {}, "On the menu"), make("span", "", {}, `${items.length} found`)),
    make("ul", "grid", {}, ...cards));
}

function product(data) {
  const rows = (data.product_variants || []).map((variant) => {
    const name = variant.variant_name === "Default Title" ? data.product_title : variant.variant_name;
    const out = variant.inventory_quantity !== null && variant.inventory_quantity < 1;
    const pieces = make("input", "pieces", { type: "number", min: "1", max: "1000", value: "1", disabled: out, "aria-label": `Pieces of ${name}` });
    const button = make("button", "main", { type: "button", disabled: out, "aria-label": `Add ${name} to the cart` }, out ? "Sold out" : "Add");
    const add = () => click("add_item_to_cart", { variant_id: variant.variant_id, quantity: Math.trunc(Number(pieces.value)) }, `${pieces.value} × ${data.product_title}`);
    button.onclick = add;
    pieces.onkeydown = (event) => { if (event.key === "Enter") add(); };
    return make("li", "", {}, make("span", "what", {}, name, make("small", "price", {}, `$${variant.price}`)), pieces, button);
  });
  return make("div", "card product", { role: "group", "aria-label": data.product_title }, picture(data.product_image_src),
    make("div", "text", {}, make("h2", "", {}, data.product_title), make("p", "", {}, data.product_description || ""),
      make("ul", "rows", {}, ...rows)));
}

function cart(data) {
  const summary = data.cart_summary || {};
  const lines = summary.line_items || [];
  const rows = lines.map((line) => {
    const name = line.variant_title ? `${line.name}, ${line.variant_title}` : line.name;
    const step = (sign, tool, label) => {
      const button = make("button", "", { type: "button", "aria-label": `${label} ${name}` }, sign);
      button.onclick = () => click(tool, { variant_id: line.variant_id, quantity: 1 }, `${label} ${name}`);
      return button;
    };
    const remove = make("button", "plain", { type: "button", "aria-label": `Remove ${name}` }, "Remove");
    remove.onclick = () => click("delete_item_from_cart", { variant_id: line.variant_id }, `Remove ${name}`);
    return make("li", "", {}, picture(line.product_image_src),
      make("span", "what", {}, name, make("small", "price", {}, `$${line.price} each`)),
      make("span", "step", {}, step("−", "delete_item_from_cart", "One less of"), make("b", "", {}, String(line.quantity)), step("+", "add_item_to_cart", "One more of")),
      remove);
  });
  kept.pieces = lines.reduce((sum, line) => sum + line.quantity, 0);
  const place = make("button", "main", { type: "button" }, "Order now");
  place.onclick = () => click("submit_cart_for_order", {}, `Order now for $${summary.total_price}`);
  const body = rows.length ? make("ul", "rows lines", {}, ...rows) : make("p", "note", {}, "Your cart is empty.");
  const foot = rows.length ? make("div", "foot", {}, make("span", "sum", {}, `Total $${summary.total_price}`), place) : null;
  return make("div", "card", { role: "group", "aria-label": "Your cart" },
    make("div", "head", {}, make("h2", "", {}, "Your cart"), make("span", "", {}, `${kept.pieces} pieces`)), body, foot);
}

function order(data, type) {
  const is_new = type === "shopify-order-confirmation";
  if (is_new) kept.pieces = 0;
  const tick = make("span");
  tick.append(document.importNode(new DOMParser().parseFromString(
    '<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 24 24" aria-hidden="true"><circle cx="12" cy="12" r="9"/><path d="m8 12 3 3 5-6"/></svg>',
    "image/svg+xml").documentElement, true));
  const safe = typeof data.confirmation_link === "string" && /^https:/.test(data.confirmation_link);
  const link = safe ? make("a", "", { href: data.confirmation_link, target: "_blank", rel: "noreferrer noopener" }, "See your order") : null;
  return make("div", "card done", { role: "group", "aria-label": is_new ? "Order placed" : "Order status" }, tick,
    make("h2", "", {}, is_new ? "Your order is placed" : "Your order"),
    make("p", "number", { id: "" }, data.confirmation_number || ""), make("p", "", {}, data.message || ""), link);
}

// --- What is done ---------------------------------------------------------------------------------------------

function click(tool, parameters, words) {
  turn({ kind: "user", text: words }, null, { tool, parameters });
}

function send(text) {
  const said = text.trim();
  if (said) turn({ kind: "user", text: said }, said, null);
}

at("form").onsubmit = (event) => {
  event.preventDefault();
  send(at("text").value);
  at("text").value = "";
};
at("cancel").onclick = () => { stop(); at("text").focus(); };
at("cart").onclick = () => click("get_cart_summary", {}, "Show my cart");
at("anew").onclick = async () => {
  await stop();
  kept = begun();
  keep();
  show();
  at("text").focus();
};
at("hints").onclick = (event) => { if (event.target.tagName === "BUTTON") send(event.target.textContent); };

// Speech, where the browser has it.
let speaks = false;
const Recognition = window.SpeechRecognition || window.webkitSpeechRecognition;
function say(text) {
  if (speaks) window.speechSynthesis.speak(new SpeechSynthesisUtterance(text));
}
if ("speechSynthesis" in window) {
  at("speak").hidden = false;
  at("speak").onclick = () => {
    speaks = !speaks;
    if (!speaks) window.speechSynthesis.cancel();
    at("speak").setAttribute("aria-pressed", String(speaks));
  };
}
if (Recognition) {
  const ear = new Recognition();
  let listens = false;
  const set = (on) => { listens = on; at("listen").setAttribute("aria-pressed", String(on)); };
  ear.lang = navigator.language;
  ear.onresult = (event) => send(event.results[event.results.length - 1][0].transcript);
  ear.onend = ear.onerror = () => set(false);
  at("listen").hidden = false;
  at("listen").onclick = () => {
    if (listens) return ear.stop();
    window.speechSynthesis?.cancel();
    set(true);
    return ear.start();
  };
}

// After a reload in the middle of a turn.
show();
if (kept.task) {
  const own = { id: kept.task, abort: new AbortController(), stopped: false };
  running = own;
  show();
  recover(own.id).then(() => { if (running === own) finished(); });
}
