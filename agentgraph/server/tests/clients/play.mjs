// The calls of the JavaScript SDK against a server at argv[2].
import assert from "node:assert/strict";
import { Client } from "@langchain/langgraph-sdk";

const client = new Client({ apiUrl: process.argv[2], apiKey: null });
const { thread_id: thread } = await client.threads.create({ metadata: { of: "js" } });
const values = await client.runs.wait(thread, "steps", { input: { text: "a" } });
assert.deepEqual(values.seen, ["first a", "second"]);
assert.equal((await client.threads.getHistory(thread)).length, 4);
const [found] = await client.threads.search({ metadata: { graph_id: "steps" }, limit: 100 });
assert.equal(found.thread_id, thread);

let created;
const parts = [];
const stream = client.runs.stream(thread, "steps", {
  input: { text: "b" },
  streamMode: ["values", "updates", "custom"],
  streamResumable: true,
  onRunCreated: (run) => (created = run),
});
for await (const part of stream) parts.push(part);
assert.equal(created.thread_id, thread);
assert.deepEqual(parts.filter((part) => part.event === "updates").map((part) => Object.keys(part.data)[0]), ["first", "second"]);
const again = [];
for await (const part of client.runs.joinStream(thread, created.run_id, { lastEventId: "-1" })) again.push(part.event);
assert.deepEqual(again, parts.map((part) => part.event));

const { thread_id: asking } = await client.threads.create();
const asked = await client.runs.wait(asking, "ask", { input: {} });
assert.equal(asked.__interrupt__[0].value.question, "go on?");
const state = await client.threads.getState(asking);
assert.deepEqual(state.next, ["ask"]);
const done = await client.runs.wait(asking, "ask", { command: { resume: "yes" } });
assert.deepEqual(done, { answers: ["yes"], done: true });
await client.threads.updateState(asking, { values: { done: false }, asNode: "finish" });
assert.equal((await client.threads.getState(asking)).values.done, false);

const { thread_id: chat } = await client.threads.create();
let text = "";
const input = { messages: [{ type: "human", content: "hello" }] };
for await (const part of client.runs.stream(chat, "chat", { input, streamMode: ["messages-tuple", "values"] })) {
  if (part.event === "messages") text += part.data[0].content;
}
assert.equal(text, "you said hello");

const { thread_id: busy } = await client.threads.create();
const slow = await client.runs.create(busy, "steps", { input: { wait_ms: 3600000 } });
await assert.rejects(client.runs.create(busy, "steps", { input: {}, multitaskStrategy: "reject" }), /409/);
await client.runs.cancel(busy, slow.run_id, true);
assert.equal((await client.runs.get(busy, slow.run_id)).status, "interrupted");
await assert.rejects(client.runs.wait(busy, "steps", { input: { wait_ms: 0, fails: "ValueError" } }), /boom!/);
await client.store.putItem(["users", "ada"], "city", { name: "Rome" });
assert.deepEqual((await client.store.getItem(["users", "ada"], "city")).value, { name: "Rome" });
assert.equal((await client.store.searchItems(["users"])).items.length, 1);
assert.deepEqual((await client.store.listNamespaces({ prefix: ["users"] })).namespaces, [["users", "ada"]]);
await client.store.deleteItem(["users", "ada"], "city");
assert.equal((await client.store.searchItems(["users"])).items.length, 0);
console.log("served");
