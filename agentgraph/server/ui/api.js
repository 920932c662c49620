// Calls of the server that the page came from. The key is kept in the tab: it ends with it.

const root = new URL("..", import.meta.url);
const KEY = "agentgraph.key";
/** Events `unauthorized`, `offline` and `online`. */
export const state = new EventTarget();
let isOnline = true;

export class Refused extends Error {
  constructor(status, detail) {
    super(detail);
    this.status = status;
  }
}

export function setKey(key) {
  sessionStorage.setItem(KEY, key);
}

function tell(online) {
  if (online === isOnline) return;
  isOnline = online;
  state.dispatchEvent(new Event(online ? "online" : "offline"));
}

async function send(method, path, body, signal) {
  const headers = {};
  const key = sessionStorage.getItem(KEY);
  if (key) headers.authorization = `Bearer ${key}`;
  if (body !== undefined) headers["content-type"] = "application/json";
  let answer;
  try {
    answer = await fetch(new URL(path.replace(/^\//, ""), root), {
      method, headers, signal, cache: "no-store", body: body === undefined ? undefined : JSON.stringify(body),
    });
  } catch (error) {
    if (error.name === "AbortError") throw error;
    tell(false);
    throw new Refused(0, "the server does not answer");
  }
  tell(true);
  if (answer.status === 401) state.dispatchEvent(new Event("unauthorized"));
  if (!answer.ok) throw new Refused(answer.status, await detail(answer));
  return answer;
}

async function detail(answer) {
  try {
    const { detail } = await answer.json();
    return typeof detail === "string" ? detail : `status ${answer.status}`;
  } catch {
    return `status ${answer.status}`;
  }
}

export async function get(path, signal) {
  return (await send("GET", path, undefined, signal)).json();
}

export async function post(path, body, signal) {
  const text = await (await send("POST", path, body, signal)).text();
  return text ? JSON.parse(text) : null;
}

/** A page of a search, with the number of all that it found. */
export async function search(method, path, body, signal) {
  const answer = await send(method, path, body, signal);
  return { items: await answer.json(), total: Number(answer.headers.get("x-pagination-total") ?? 0) };
}

export async function remove(path, body) {
  await send("DELETE", path, body);
}

export async function text(path, signal) {
  return (await send("GET", path, undefined, signal)).text();
}

/** Reads server-sent events until the stream ends. */
export async function follow(path, onEvent, signal) {
  const answer = await send("GET", path, undefined, signal);
  const reader = answer.body.pipeThrough(new TextDecoderStream()).getReader();
  let rest = "";
  for (;;) {
    const { value, done } = await reader.read();
    if (done) return;
    const blocks = (rest + value).split("\r\n\r\n");
    rest = blocks.pop();
    for (const block of blocks) {
      const field = (name) => block.split("\r\n").find((line) => line.startsWith(name))?.slice(name.length);
      if (field("data: ") !== undefined) onEvent(field("event: ") ?? "", JSON.parse(field("data: ")));
    }
  }
}

/** Calls `act` at intervals while the page is seen, one call at a time. Returns a function that ends it. */
export function every(ms, act) {
  let timer = 0;
  let ended = false;
  const again = async () => {
    if (!document.hidden) await act().catch(() => {});
    if (!ended) timer = setTimeout(again, ms);
  };
  timer = setTimeout(again, ms);
  return () => { ended = true; clearTimeout(timer); };
}

/** Does `act` for each item, a few at a time. `progress` hears how many are done. Returns the failures. */
export async function each(items, act, progress) {
  const left = [...items];
  const failures = [];
  let done = 0;
  const work = async () => {
    for (let item = left.shift(); item !== undefined; item = left.shift()) {
      try { await act(item); } catch (error) { failures.push({ item, error }); }
      progress(++done);
    }
  };
  await Promise.all(Array.from({ length: 4 }, work));
  return failures;
}

let graphList = null;
/** The graphs of the server, asked for once. */
export async function graphs() {
  graphList ??= get("ui/graphs").catch((error) => { graphList = null; throw error; });
  return graphList;
}

let priceList = null;
/** What a million tokens of input and of output cost, by model. */
export async function prices() {
  priceList ??= get("ui/prices").catch((error) => { priceList = null; throw error; });
  return priceList;
}

export async function graphNamed(name) {
  return (await graphs()).find((graph) => graph.graph_id === name) ?? null;
}

/** Starts a run on a thread. The page draws its trace; the stream is for the messages of models. */
export function startRun(thread, graph, fields) {
  const body = { assistant_id: graph, stream_mode: ["messages-tuple"], stream_subgraphs: true, ...fields };
  return post(`threads/${thread}/runs`, body);
}
