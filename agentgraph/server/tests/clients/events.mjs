// The second protocol by the JavaScript SDK, against a server at argv[2].
import assert from "node:assert/strict";
import { Client } from "@langchain/langgraph-sdk";

const client = new Client({ apiUrl: process.argv[2], apiKey: null });
const collect = async (items) => {
  const all = [];
  for await (const item of items) all.push(item);
  return all;
};

for (const transport of ["sse", "websocket"]) {
  const open = (assistantId, threadId) => client.threads.stream(threadId, { assistantId, transport });

  const steps = open("steps");
  const { run_id } = await steps.run.start({ input: { text: "a" } });
  assert.equal(typeof run_id, "string");
  assert.deepEqual((await steps.output).seen, ["first a", "second"]);
  await steps.close();

  const chat = open("chat");
  const messages = chat.messages;
  await chat.run.start({ input: { messages: [{ type: "human", content: "hello" }] } });
  const said = [];
  for await (const message of messages) said.push(await message.text);
  assert.deepEqual(said, ["you said hello"]);
  await chat.close();

  const agent = open("agent");
  const toolCalls = agent.toolCalls;
  await agent.run.start({ input: { messages: [{ type: "human", content: "add" }] } });
  // A call is told of at its start and at its end.
  const calls = [...new Map((await collect(toolCalls)).map((call) => [call.callId, call])).values()];
  assert.deepEqual(calls.map((call) => call.name), ["add", "add"]);
  assert.equal(await calls[0].output, "3");
  await assert.rejects(calls[1].output);
  await agent.close();

  const ask = open("ask");
  await ask.run.start({ input: {} });
  await ask.output;
  assert.equal(ask.interrupted, true);
  const { interruptId, namespace, payload } = ask.interrupts[0];
  assert.deepEqual(payload, { question: "go on?" });
  const updates = await ask.subscribe(["updates"]);
  await ask.input.respond({ interrupt_id: interruptId, namespace, response: "yes" });
  const nodes = [];
  for await (const event of updates) nodes.push(event.params.data.node);
  assert.deepEqual(nodes.slice(-2), ["ask", "finish"]);
  await assert.rejects(ask.input.respond({ interrupt_id: interruptId, namespace, response: "no" }), /interrupt/);
  await ask.close();

  // A late reader has the whole log.
  const late = open("ask", ask.threadId);
  const lifecycle = await late.subscribe(["lifecycle"]);
  const statuses = [];
  for await (const event of lifecycle) {
    statuses.push(event.params.data.event);
    if (event.params.data.event === "completed") break;
  }
  assert.deepEqual(statuses, ["running", "interrupted", "running", "completed"]);
  await late.close();

  const nested = open("nested");
  const values = await nested.subscribe({ channels: ["values"], namespaces: [["child"]] });
  await nested.run.start({ input: {} });
  const inside = await collect(values);
  assert.ok(inside.length > 0 && inside.every((event) => event.params.namespace[0].startsWith("child:")));
  await nested.close();
}
console.log("served");
