// A run as a test to paste: a program of `TestGraph` with its input, its faults and its answers.

import { get } from "./api.js";
import { button, copy, h, put } from "./dom.js";

const INTERRUPT = /^[0-9a-f]{32}$/;

export function testCase(screen) {
  const element = h("div", { class: "test-case" }, h("p", { class: "empty" }, "Writing …"));
  written(screen).then((text) => put(element,
    h("p", {}, "The run as a test: put it into a module beside your graph, with ", h("code", {}, "agentgraph"), " with the feature ", h("code", {}, "testing"), ", tokio and serde_json."),
    button("Copy", () => copy(text), { class: "primary" }), h("pre", { class: "long", tabindex: 0 }, text)),
  (error) => put(element, h("p", { class: "problem" }, error.message)));
  return element;
}

async function written(screen) {
  const { id, thread, run, trace, graph, aborts } = screen;
  if (!run) throw new Error("The thread has no run yet.");
  const runs = thread.runs.slice(thread.runs.indexOf(run));
  let input = null;
  const answers = [];
  for (const one of runs) {
    const { kwargs } = await get(`threads/${id}/runs/${one.run_id}`, aborts.signal);
    answers.unshift(...answersOf(kwargs.command?.resume));
    input = kwargs.input;
    if (input) break;
  }
  const known = await screen.schema();
  const faults = faultsOf(trace);
  const failed = trace.tasks.findLast((task) => task.status === "failed" && !task.ns);
  return program({ graph, state: known?.title ?? "State", schema: known, input: input ?? {}, faults, answers, error: run.error, failed });
}

function answersOf(resume) {
  if (resume === undefined || resume === null) return [];
  const keys = typeof resume === "object" ? Object.keys(resume) : [];
  return keys.length && keys.every((key) => INTERRUPT.test(key.replaceAll("-", ""))) ? Object.values(resume) : [resume];
}

/** The attempts that failed, by node: repeated messages are one fault. */
function faultsOf(trace) {
  const faults = [];
  for (const task of trace.tasks) {
    const path = [...task.ns.split("|").filter(Boolean).map((level) => level.split(":")[0]), task.node].join("/");
    // The failure of a subgraph is that of a node inside it.
    if (trace.tasks.some((inner) => inner.ns.split("|").at(-1)?.startsWith(`${task.node}:`) && inner.ns.length > task.ns.length)) continue;
    for (const { error } of task.attempts.filter((attempt) => attempt.error)) {
      const last = faults.at(-1);
      if (last?.path === path && last.message === error.message) last.calls++;
      else faults.push({ path, message: error.message, calls: 1 });
    }
  }
  return faults;
}

function program({ graph, state, schema, input, faults, answers, error, failed }) {
  const name = `${identifier(graph)}_${error ? "fails_as_it_did" : "ends_as_it_did"}`;
  const setters = Object.entries(input).map(([field, value]) => `.${identifier(field)}(${rust(value, schema?.properties?.[field])})`);
  const usesJson = [...setters, ...answers.map((answer) => `json!(${JSON.stringify(answer)})`)].some((text) => text.includes("json!"));
  const lines = [
    `//! A run of the graph ${rust(graph)}${error ? ` that failed${failed ? ` in ${rust(failed.node)}` : ""}` : ""}.`,
    "", "use agentgraph::prelude::*;", "use agentgraph::testing::TestGraph;", ...(usesJson ? ["use serde_json::json;"] : []),
    "", `use super::{${state}, ${identifier(graph)}}; // the state, and the function that builds the graph`,
    "", "#[tokio::test]", `async fn ${name}() -> Result<()> {`, `    let test = TestGraph::of(${identifier(graph)}());`,
    ...faults.map(({ path, calls, message }) => `    let test = test.fail(${rust(path)}, ${calls}, || ${rust(message)});`),
    ...answers.map((answer) => `    let test = test.answer(json!(${JSON.stringify(answer)}));`),
    `    let trace = test.trace(${state}::update()${setters.join("")}).await;`,
    ...(error ? ["    let error = trace.outcome().unwrap_err();", ...(failed ? [`    assert_eq!(error.node(), Some(${rust(failed.node)}));`] : []),
      `    assert!(error.to_string().contains(${rust(String(error.message).split("\n")[0])}), "{error}");`]
      : ["    assert!(trace.outcome().is_ok());"]),
    "    Ok(())", "}", "",
  ];
  return lines.join("\n");
}

/** A name as Rust writes it. */
const identifier = (name) => name.replace(/[^A-Za-z0-9_]+/g, "_").replace(/^(?=\d)/, "_") || "graph";

/** A value as a Rust expression: literals where they have the type of the field, JSON for all others. */
function rust(value, schema) {
  const type = [schema?.type ?? []].flat();
  const isPlain = !schema || type.length === 1;
  if (Array.isArray(value) && value.length && value.every((one) => one?.type === "human" && typeof one.content === "string")) {
    return `vec![${value.map((one) => `agentgraph_llm::Message::user(${rust(one.content)})`).join(", ")}]`;
  }
  if (typeof value === "string" && isPlain) {
    return `"${[...value].map((one) => /["\\]/.test(one) ? `\\${one}` : one === "\n" ? "\\n" : one < " " ? `\\u{${one.codePointAt(0).toString(16)}}` : one).join("")}"`;
  }
  if (typeof value === "number" && isPlain && type[0] !== "array") return type[0] === "number" && Number.isInteger(value) ? `${value}.0` : String(value);
  if (typeof value === "boolean" && isPlain) return String(value);
  if (Array.isArray(value) && value.length && value.every((one) => typeof one === "string")) return `vec![${value.map((one) => `${rust(one)}.to_owned()`).join(", ")}]`;
  return `serde_json::from_value(json!(${JSON.stringify(value)}))?`;
}
