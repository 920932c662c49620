// What is below the hooks of all frameworks, `StreamController` of the JavaScript SDK, against a server at argv[2].
import assert from "node:assert/strict";
import { Client } from "@langchain/langgraph-sdk";
import { StreamController } from "@langchain/langgraph-sdk/stream";

const client = new Client({ apiUrl: process.argv[2], apiKey: null });

function page_of(assistantId, threadId, transport = "sse") {
  const created = [];
  const options = { assistantId, client, threadId: threadId ?? null, transport, onCreated: ({ runId }) => created.push(runId) };
  const controller = new StreamController(options);
  const release = controller.activate();
  const shown = () => controller.rootStore.getSnapshot();
  return {
    controller,
    created,
    shown,
    until(what, holds) {
      return new Promise((resolve, reject) => {
        const late = setTimeout(() => {
          const { values, messages, interrupts, isLoading, error } = shown();
          reject(new Error(`${what}: ${JSON.stringify({ values, messages, interrupts, isLoading, error: String(error) })}`));
        }, 30_000);
        const check = () => {
          if (!holds(shown())) return;
          leave();
          clearTimeout(late);
          resolve();
        };
        const leave = controller.rootStore.subscribe(check);
        check();
      });
    },
    close: () => release(),
  };
}

const texts = (shown) => shown.messages.map((message) => message.text);
// Not their number alone: the controller takes the end of a run at once, and shows pieces of messages a moment later.
const says = (shown, expected) => !shown.isLoading && texts(shown).join() === expected.join();
const say = (content) => ({ messages: [{ type: "human", content }] });

for (const transport of ["sse", "websocket"]) {
  const first = page_of("chat", null, transport);
  await first.controller.submit(say("one"));
  await first.until("one answer", (shown) => says(shown, ["one", "you said one"]));
  await first.controller.submit(say("two"));
  const two = ["one", "you said one", "two", "you said two"];
  await first.until("two answers", (shown) => says(shown, two));
  assert.equal(new Set(first.created).size, 2);
  const threadId = first.shown().threadId;
  first.close();

  // The log of the thread is replayed to a page that has read the state: nothing is there twice, no old end ends the new run.
  const second = page_of("chat", threadId, transport);
  await second.controller.hydrate(threadId);
  await second.until("the history", (shown) => texts(shown).join() === two.join());
  await second.controller.submit(say("three"));
  await second.until("three answers", (shown) => says(shown, [...two, "three", "you said three"]));
  second.close();

  const asking = page_of("ask", null, transport);
  await asking.controller.submit({});
  await asking.until("a question", (shown) => !shown.isLoading && shown.interrupts.length === 1);
  const asked = asking.shown().interrupts[0];
  const asks = asking.shown().threadId;
  asking.close();

  // A page that answers an old question and gets a new one: the old one does not come back.
  const answering = page_of("ask", asks, transport);
  await answering.controller.hydrate(asks);
  assert.deepEqual(answering.shown().interrupts.map((one) => one.id), [asked.id]);
  await answering.controller.respond("yes", { interruptId: asked.id, strictResume: true });
  await answering.until("the end", (shown) => shown.values.done === true && shown.interrupts.length === 0);
  await answering.controller.submit({});
  await answering.until("a new question", (shown) => !shown.isLoading && shown.interrupts.length === 1);
  const again = answering.shown().interrupts[0];
  assert.notEqual(again.id, asked.id);
  await assert.rejects(answering.controller.respond("no", { interruptId: asked.id }), /interrupt/);
  await answering.controller.respond("really", { interruptId: again.id });
  await answering.until("the second end", (shown) => shown.values.answers.length === 2 && shown.interrupts.length === 0);
  assert.deepEqual(answering.shown().values.answers, ["yes", "really"]);
  answering.close();

  const slow = page_of("steps", null, transport);
  const submitted = slow.controller.submit({ text: "a", wait_ms: 3600000 });
  while (slow.created.length === 0) await new Promise(setImmediate);
  await slow.controller.stop();
  await submitted;
  const { threadId: busy } = slow.shown();
  while ((await client.runs.get(busy, slow.created[0])).status !== "interrupted");
  await slow.until("the stop", (shown) => !shown.isLoading);
  slow.close();
}
console.log("served");
process.exit(0);
