// `useStream` of @langchain/react, and the classic one.
import assert from "node:assert/strict";
import { pageOf } from "./hooks.mjs";
import { useStream } from "@langchain/react";
import { useStream as useClassicStream } from "@langchain/langgraph-sdk/react";

const page_of = (options, useHook = useStream) => pageOf(useHook, options);
const texts = (stream) => stream.messages.map((message) => message.text);
// Not their number alone: the hook takes the end of a run at once, and shows pieces of messages a moment later.
const says = (stream, ...expected) => !stream.isLoading && texts(stream).join() === expected.join();

const talking = page_of({ assistantId: "chat", transport: "websocket" });
await talking.until("is there", () => true);
await talking.stream.submit({ messages: [{ type: "human", content: "hello" }] });
await talking.until("an answer", (stream) => says(stream, "hello", "you said hello"));
talking.close();

let threadId;
const chat = page_of({ assistantId: "chat", onThreadId: (id) => (threadId = id) });
await chat.until("is there", () => true);
await chat.stream.submit({ messages: [{ type: "human", content: "hello" }] });
await chat.until("an answer", (stream) => says(stream, "hello", "you said hello"));
await chat.stream.submit({ messages: [{ type: "human", content: "again" }] });
const both = ["hello", "you said hello", "again", "you said again"];
await chat.until("a second answer", (stream) => says(stream, ...both));
chat.close();

// The page is opened again on the thread.
const reopened = page_of({ assistantId: "chat", threadId });
await reopened.until("the history", (stream) => !stream.isThreadLoading && texts(stream).length === 4);
await reopened.stream.submit({ messages: [{ type: "human", content: "third" }] });
await reopened.until("a third answer", (stream) => says(stream, ...both, "third", "you said third"));
reopened.close();

const ask = page_of({ assistantId: "ask" });
await ask.until("is there", () => true);
await ask.stream.submit({});
await ask.until("a question", (stream) => !stream.isLoading && stream.interrupts.length === 1);
assert.deepEqual(ask.stream.interrupt.value, { question: "go on?" });
const asking = ask.stream.threadId;
ask.close();

// Another page answers.
const answering = page_of({ assistantId: "ask", threadId: asking });
await answering.until("the question", (stream) => !stream.isThreadLoading && stream.interrupts.length === 1);
await answering.stream.respond("yes", { interruptId: answering.stream.interrupt.id });
await answering.until("the end", (stream) => stream.values.done === true && stream.interrupts.length === 0);
assert.deepEqual(answering.stream.values.answers, ["yes"]);
answering.close();

const nested = page_of({ assistantId: "nested" });
await nested.until("is there", () => true);
await nested.stream.submit({});
await nested.until("a question inside", (stream) => stream.interrupts.length === 1 && stream.subgraphsByNode.has("child"));
assert.equal(nested.stream.subgraphsByNode.get("child").length, 1);
await nested.stream.respond("yes", { interruptId: nested.stream.interrupt.id });
await nested.until("the end", (stream) => stream.values.done === true);
nested.close();

const agent = page_of({ assistantId: "agent" });
await agent.until("is there", () => true);
await agent.stream.submit({ messages: [{ type: "human", content: "add" }] });
await agent.until("the answer", (stream) => !stream.isLoading && texts(stream).at(-1) === "it is 3");
assert.deepEqual(agent.stream.messages.map((message) => message.type), ["human", "ai", "tool", "tool", "ai"]);
assert.deepEqual(agent.stream.toolCalls.map((call) => call.name), ["add", "add"]);
agent.close();

let created;
const hasCreated = new Promise((resolve) => (created = resolve));
const slow = page_of({ assistantId: "steps", onCreated: created });
await slow.until("is there", () => true);
const submitted = slow.stream.submit({ text: "a", wait_ms: 3600000 });
const { runId } = await hasCreated;
const { client, threadId: busy } = slow.stream;
await slow.stream.stop();
await submitted;
while ((await client.runs.get(busy, runId)).status !== "interrupted");
await slow.until("the stop", (stream) => !stream.isLoading);
slow.close();

const failing = page_of({ assistantId: "steps" });
await failing.until("is there", () => true);
await failing.stream.submit({ text: "a", fails: "ValueError" });
await failing.until("the failure", (stream) => stream.error !== undefined);
assert.match(String(failing.stream.error), /boom!/);
failing.close();

const classic = page_of({ assistantId: "chat", fetchStateHistory: true }, useClassicStream);
await classic.until("is there", () => true);
const said = (stream) => stream.messages.map((message) => message.content);
await classic.stream.submit({ messages: [{ type: "human", content: "hello" }] });
await classic.until("an answer", (stream) => !stream.isLoading && stream.messages.length === 2 && stream.history.length > 0);
assert.deepEqual(said(classic.stream), ["hello", "you said hello"]);
// The answer is made again, from the checkpoint before it.
const [, old] = classic.stream.messages;
const { firstSeenState } = classic.stream.getMessagesMetadata(old);
await classic.stream.submit(undefined, { checkpoint: firstSeenState.parent_checkpoint });
await classic.until("another", (stream) => !stream.isLoading && stream.messages.length === 2 && stream.messages[1].id !== old.id);
assert.deepEqual(said(classic.stream), ["hello", "you said hello"]);
classic.close();

const classicAsk = page_of({ assistantId: "ask" }, useClassicStream);
await classicAsk.until("is there", () => true);
await classicAsk.stream.submit({});
await classicAsk.until("a question", (stream) => !stream.isLoading && stream.interrupt !== undefined);
assert.deepEqual(classicAsk.stream.interrupt.value, { question: "go on?" });
await classicAsk.stream.submit(undefined, { command: { resume: "yes" } });
await classicAsk.until("the end", (stream) => stream.values.done === true);
classicAsk.close();

console.log("served");
process.exit(0);
