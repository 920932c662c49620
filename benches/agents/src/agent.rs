//! The loop of an agent: a model that calls a tool in every round, beside the same loop by hand.

use std::rc::Rc;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use agentgraph_benches::{Case, Entrant, on, one_thread};
use agentgraph_llm::prelude::*;
use agentgraph_llm::{ChatResponse, Result as LlmResult, StopReason, ToolUse};
use async_trait::async_trait;
use futures_util::stream;
use serde_json::{Value, json};

const TOOLS: u64 = 20;

pub(crate) fn cases() -> Vec<Case> {
    vec![
        Case::new("agent/100", "round", 100, || entrants(100)),
        Case::new("agent/1000", "round", 1000, || entrants(1000)),
    ]
}

/// Calls one tool after another, and is done after a number of rounds.
struct Caller {
    rounds: u64,
    asked: AtomicU64,
}

impl Caller {
    fn new(rounds: u64) -> Self {
        Caller { rounds, asked: AtomicU64::new(0) }
    }
}

#[async_trait]
impl ChatModel for Caller {
    fn info(&self) -> ModelInfo {
        ModelInfo::new("bench", "caller")
    }

    async fn stream(&self, request: ChatRequest) -> LlmResult<ChatStream> {
        assert_eq!(request.tools.len() as u64, TOOLS);
        let round = self.asked.fetch_add(1, Ordering::Relaxed) + 1;
        let (block, stop): (Block, _) = if round.is_multiple_of(self.rounds) {
            (Block::text("done"), StopReason::EndTurn)
        } else {
            let call = ToolUse::new(format!("call-{round}"), name(round % TOOLS), json!({ "n": round }));
            (call.into(), StopReason::ToolUse)
        };
        let response = ChatResponse::new(Message::new(Role::Assistant, [block]), stop);
        Ok(ChatStream::new(stream::iter([Ok(ChatEvent::Finished(response))])))
    }
}

fn name(tool: u64) -> String {
    format!("tool_{tool}")
}

fn tools() -> Vec<FnTool> {
    let schema = json!({ "type": "object", "properties": { "n": { "type": "integer" } }, "required": ["n"] });
    let spec = |tool| ToolSpec::new(name(tool), "Gives the number back.", schema.clone());
    let call = async |input: Value| Ok::<_, ToolError>(input["n"].to_string());
    (0..TOOLS).map(|tool| FnTool::with_spec(spec(tool), call)).collect()
}

/// The loop as one writes it: nothing is stored, and only what this model does is handled.
async fn by_hand(model: &Caller, tools: &[FnTool]) -> Vec<Message> {
    let specs: Vec<_> = tools.iter().map(Tool::spec).collect();
    let mut messages = vec![Message::user("go")];
    loop {
        let mut request = ChatRequest::new(messages.clone());
        request.tools.clone_from(&specs);
        let answer = model.chat(request).await.expect("the model answers").message;
        let mut results = Vec::new();
        for call in answer.tool_uses() {
            let tool = specs.iter().position(|spec| spec.name == call.name).expect("the tool is there");
            let input = call.input.json().expect("the arguments are JSON");
            let detached = ToolCall::detached(call.id.as_str(), call.name.as_str());
            let output = tools[tool].call(input, &detached).await.expect("the tool works");
            results.push(ToolResult::new(&call.id, output.content));
        }
        messages.push(answer);
        if results.is_empty() {
            return messages;
        }
        messages.push(Message::tool_results(results));
    }
}

fn entrants(rounds: u64) -> Vec<Entrant> {
    let runtime = one_thread();
    let expected = usize::try_from(2 * rounds).expect("a small number");
    let (model, own) = (Rc::new(Caller::new(rounds)), Rc::new(tools()));
    let floor = on(&runtime, move || {
        let (model, own) = (Rc::clone(&model), Rc::clone(&own));
        async move { assert_eq!(by_hand(&model, &own).await.len(), expected) }
    });
    let (model, own) = (Rc::new(Caller::new(rounds)), Rc::new(tools()));
    let tool_loop = on(&runtime, move || {
        let (model, own) = (Rc::clone(&model), Rc::clone(&own));
        async move {
            let all = ToolLoop::new(&*model).tools(own.iter()).max_rounds(expected);
            let outcome = all.run(ChatRequest::user("go")).await.expect("the loop ends");
            assert_eq!(outcome.messages.len() + 1, expected);
        }
    });
    let agent = || Agent::new(Caller::new(rounds)).tools(tools()).max_rounds(rounds);
    let plain = agent().compile().expect("the agent is right");
    let hooked = agent().middleware(Hooked).compile().expect("the agent is right");
    vec![
        Entrant::new("floor: a loop by hand", floor),
        Entrant::new("`ToolLoop`", tool_loop),
        Entrant::new("`Agent`", on(&runtime, run(plain, expected))),
        Entrant::new("`Agent`, a hook before the model", on(&runtime, run(hooked, expected))),
    ]
}

type Run = std::pin::Pin<Box<dyn Future<Output = ()>>>;

fn run(agent: CompiledAgent, expected: usize) -> impl FnMut() -> Run {
    let agent = Arc::new(agent);
    move || {
        let agent = Arc::clone(&agent);
        Box::pin(async move {
            let answer = agent.invoke("go").max_supersteps(10_000).await.expect("the run ends");
            assert_eq!(answer.output().state.messages.len(), expected);
        })
    }
}

/// A middleware that changes nothing.
struct Hooked;

#[async_trait]
impl Middleware for Hooked {
    fn name(&self) -> &str {
        "hooked"
    }

    async fn before_model(&self, _: &mut Turn) -> LlmResult<Jump> {
        Ok(Jump::Next)
    }

    fn hooks(&self) -> agentgraph_llm::Hooks {
        agentgraph_llm::Hooks::NONE.before_model()
    }
}
