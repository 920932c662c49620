// The calls of agent-chat-ui: the classic `useStream` with its options, its list of threads, its look at the server.
import assert from "node:assert/strict";
import { pageOf, url } from "./hooks.mjs";
import { Client } from "@langchain/langgraph-sdk";
import { useStream } from "@langchain/langgraph-sdk/react";

assert.ok((await fetch(`${url}/info`, { headers: { "X-Api-Key": "any" } })).ok);
const client = new Client({ apiUrl: url, apiKey: "any" });
const threadsOf = (metadata) => client.threads.search({ metadata, limit: 100 });
assert.deepEqual(await threadsOf({ graph_id: "chat" }), []);

const chat = (assistantId, more = {}) =>
  pageOf(useStream, { apiKey: "any", assistantId, followsThread: true, fetchStateHistory: true, onCustomEvent: () => {}, ...more });
const sends = { streamMode: ["values"], streamSubgraphs: true, streamResumable: true };
const human = (text) => ({ id: crypto.randomUUID(), type: "human", content: [{ type: "text", text }] });
const text = ({ content }) => (typeof content === "string" ? content : content.map((block) => block.text).join(""));
const texts = (stream) => stream.messages.map(text);
const submit = (page, message, more = {}) =>
  page.stream.submit(
    { messages: [message], context: undefined },
    { ...sends, optimisticValues: (prev) => ({ ...prev, messages: [...(prev.messages ?? []), message] }), ...more },
  );

const page = chat("chat");
await page.until("is there", () => true);
const first = submit(page, human("hello"));
await page.until("what was typed, before its answer", (stream) => texts(stream)[0] === "hello");
await first;
await page.until("an answer", (stream) => !stream.isLoading && texts(stream).length === 2 && stream.history.length > 0);
await submit(page, human("again"));
await page.until("a second answer", (stream) => !stream.isLoading && texts(stream).length === 4);
assert.deepEqual(texts(page.stream), ["hello", "you said hello", "again", "you said again"]);

// Its list shows the first message of each thread.
const [listed] = await threadsOf({ graph_id: "chat" });
assert.equal(text(listed.values.messages[0]), "hello");
const [{ assistant_id }] = await client.assistants.search({ graphId: "chat" });
assert.equal((await threadsOf({ assistant_id }))[0].thread_id, listed.thread_id);

const before = (message) => page.stream.getMessagesMetadata(message).firstSeenState.parent_checkpoint;
await page.until("the history", (stream) => stream.messages.every((message) => stream.getMessagesMetadata(message)?.firstSeenState));
// The last answer is made again.
const old = page.stream.messages[3];
await page.stream.submit(undefined, { ...sends, checkpoint: before(old) });
await page.until("another answer", (stream) => !stream.isLoading && stream.messages.length === 4 && stream.messages[3].id !== old.id);
// The switch beside it offers both.
const branches = (page, at) => page.stream.getMessagesMetadata(page.stream.messages[at])?.branchOptions ?? [];
await page.until("both last answers", () => branches(page, 3).length === 2);
page.stream.setBranch(branches(page, 3)[0]);
await page.until("the old answer", (stream) => stream.messages[3].id === old.id);
page.stream.setBranch(branches(page, 3)[1]);
await page.until("the new answer", (stream) => stream.messages[3].id !== old.id);
// The first message is edited: it begins a branch without the others.
await page.until("the history", (stream) => stream.messages.every((message) => stream.getMessagesMetadata(message)?.firstSeenState));
await submit(page, { type: "human", content: "edited" }, { checkpoint: before(page.stream.messages[0]) });
await page.until("the branch", (stream) => !stream.isLoading && stream.messages.length === 2);
assert.deepEqual(texts(page.stream), ["edited", "you said edited"]);
page.close();

// A thread of the list is opened. Its whole history is a tree: two first messages, and two last answers below the old one.
const reopened = chat("chat", { threadId: listed.thread_id, fetchStateHistory: { limit: 100 } });
await reopened.until("the thread", (stream) => texts(stream).length === 2);
await reopened.until("both first messages", () => branches(reopened, 0).length === 2);
reopened.stream.setBranch(branches(reopened, 0)[0]);
await reopened.until("the old branch", (stream) => texts(stream)[0] === "hello" && stream.messages.length === 4);
await reopened.until("both last answers", () => branches(reopened, 3).length === 2);
reopened.close();

const agent = chat("agent");
await agent.until("is there", () => true);
await submit(agent, human("add"));
await agent.until("the answer", (stream) => !stream.isLoading && texts(stream).at(-1) === "it is 3");
assert.deepEqual(agent.stream.messages[1].tool_calls.map((call) => call.name), ["add", "add"]);
agent.close();

const ask = chat("nested");
await ask.until("is there", () => true);
const decided = { command: { resume: { decisions: [{ type: "approve" }] } } };
await ask.stream.submit({}, sends);
await ask.until("a question", (stream) => !stream.isLoading && stream.interrupt !== undefined);
assert.deepEqual(ask.stream.interrupt.value, { question: "go on?" });
// "Mark as resolved" leaves the question open, as on LangGraph's server.
await ask.stream.submit({}, { command: { goto: "__end__" } });
await ask.until("the question", (stream) => !stream.isLoading && stream.interrupt !== undefined);
await ask.stream.submit({}, decided);
await ask.until("the end", (stream) => !stream.isLoading && stream.values.done === true);
assert.deepEqual(ask.stream.values.answers, [decided.command.resume]);
ask.close();

const customs = [];
const slow = chat("inside", { onCustomEvent: (event, { mutate }) => (customs.push(event), mutate((prev) => prev)) });
await slow.until("is there", () => true);
const submitted = slow.stream.submit({ text: "a", wait_ms: 3600000 }, sends);
await slow.until("it is under way", () => customs.length === 1);
assert.deepEqual(customs, [{ at: "first" }]);
await slow.stream.stop();
await submitted;
await slow.until("the stop", (stream) => !stream.isLoading);
slow.close();

const failing = chat("steps");
await failing.until("is there", () => true);
await failing.stream.submit({ text: "a", fails: "ValueError" }, sends);
await failing.until("the failure", (stream) => /boom!/.test(stream.error?.message));
failing.close();

console.log("served");
process.exit(0);
