//! A question of the GAIA agent: its loop, the client of its model, and its store; and a thousand questions,
//! fifty at once.

use std::rc::Rc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex};
use std::time::{Instant, SystemTime};

use agentgraph::{CancellationToken, SqliteSaver};
use agentgraph_benches::{Case, Entrant, Figure, Folder, on, one_thread};
use agentgraph_llm::prelude::*;
use agentgraph_llm::{ChatResponse, Origin, Result as LlmResult, StopReason, ToolUse};
use async_trait::async_trait;
use futures_util::{StreamExt, stream};
use gaia_agent::GaiaAgent;
use gaia_agent::agent::{AnswerKind, GaiaAgentBuilder, Task};
use gaia_agent::cache::AnswerCache;
use gaia_agent::log::{Log, Secrets};
use gaia_agent::question::Question;
use gaia_agent::run::{FileSource, Plan, Run, Runner};
use serde_json::{Value, json};

use crate::gaia_wire::{over_http, replayed};

pub(super) const ROUNDS: u64 = 20;
/// Of each of many questions.
const FEW: u64 = 3;
const QUESTIONS: u64 = 1_000;
const AT_ONCE: usize = 50;

pub(crate) fn cases() -> Vec<Case> {
    vec![
        Case::new("gaia/round", "round", ROUNDS, rounds).on_two_threads(),
        Case::new("gaia/wire", "round", ROUNDS, wire).on_two_threads(),
        Case::new("gaia/questions", "question", QUESTIONS, questions).on_two_threads().with_figures(elapsed),
    ]
}

/// Calls the calculator in every round but the last.
pub(super) struct Calculating {
    pub(super) rounds: u64,
    /// The first request, for the loop by hand.
    first: Mutex<Option<ChatRequest>>,
}

impl Calculating {
    pub(super) fn new(rounds: u64) -> Self {
        Calculating { rounds, first: Mutex::default() }
    }
}

/// The number of a round, from the length of its conversation: instructions, the question, and two messages
/// for each round before.
fn round(request: &ChatRequest) -> u64 {
    request.messages.len() as u64 / 2
}

#[async_trait]
impl ChatModel for Calculating {
    fn info(&self) -> ModelInfo {
        ModelInfo::new("bench", "calculating")
    }

    async fn stream(&self, request: ChatRequest) -> LlmResult<ChatStream> {
        let round = round(&request);
        let (block, stop): (Block, _) = if round == self.rounds {
            (Block::text("FINAL ANSWER: 42"), StopReason::EndTurn)
        } else {
            let input = json!({ "expression": format!("6 * {round}") });
            (ToolUse::new(format!("call-{round}"), "calculator", input).into(), StopReason::ToolUse)
        };
        if round == 1 {
            *self.first.lock().expect("no panic") = Some(request);
        }
        let message = Message::new(Role::Assistant, [block]).with_origin(Origin::from(&self.info()));
        let response = ChatResponse::new(message, stop);
        Ok(ChatStream::new(stream::iter([Ok(ChatEvent::Finished(response))])))
    }
}

pub(super) fn task(number: u64) -> Task {
    let question = Question {
        task_id: format!("q-{number}"),
        question: format!("What is six times seven? This is question {number}."),
        ..Question::default()
    };
    Task { question, ..Task::ask("") }
}

/// The first request of the agent: instructions, question, and the tools that are offered.
pub(super) async fn first_request() -> ChatRequest {
    let folder = Folder::create();
    let model = Arc::new(Calculating::new(1));
    let agent = builder(Arc::clone(&model), &folder).build().expect("the agent is right");
    agent.solve("first", &task(0)).await.expect("it is solved");
    model.first.lock().expect("no panic").take().expect("the model was asked")
}

/// The loop as one writes it: nothing is stored, no answer is cleaned, and only the calculator is known.
pub(super) async fn by_hand(model: &impl ChatModel, first: &ChatRequest) -> u64 {
    let mut request = first.clone();
    for round in 1.. {
        let answer = model.chat(request.clone()).await.expect("the model answers").message;
        let mut results = Vec::new();
        for call in answer.tool_uses() {
            let input: Value = serde_json::from_str(call.input.text()).expect("the arguments are JSON");
            let factors = input["expression"].as_str().expect("a text").split('*');
            let product: u64 =
                factors.map(|factor| factor.trim().parse::<u64>().expect("a number")).product();
            results.push(ToolResult::new(&call.id, [Block::text(product.to_string())]));
        }
        request.messages.push(answer);
        if results.is_empty() {
            return round;
        }
        request.messages.push(Message::tool_results(results));
    }
    unreachable!("the model ends")
}

pub(super) fn builder(model: impl ChatModel + 'static, folder: &Folder) -> GaiaAgentBuilder {
    GaiaAgent::builder(model).folder(folder.file(""))
}

/// An agent with its threads and its log in files.
async fn stored(model: impl ChatModel + 'static, folder: &Folder) -> GaiaAgentBuilder {
    let saver = SqliteSaver::open(folder.file("threads.db")).await.expect("a file");
    builder(model, folder).checkpointer(saver).log(log(folder))
}

fn log(folder: &Folder) -> Log {
    Log::create(&folder.file(""), SystemTime::now(), Secrets::default()).expect("a file")
}

async fn solve(agent: &GaiaAgent, number: u64) {
    let solution = agent.solve(&format!("thread-{number}"), &task(number)).await.expect("it is solved");
    assert_eq!((solution.answer.as_str(), solution.figures.rounds), ("42", ROUNDS));
}

/// Solves one question after another.
pub(super) fn solving(
    agent: GaiaAgent,
    folder: Folder,
) -> impl FnMut() -> std::pin::Pin<Box<dyn Future<Output = ()>>> {
    let shared = Rc::new((agent, folder, AtomicU64::new(0)));
    move || {
        let shared = Rc::clone(&shared);
        Box::pin(async move { solve(&shared.0, shared.2.fetch_add(1, Ordering::Relaxed)).await })
    }
}

fn rounds() -> Vec<Entrant> {
    let runtime = one_thread();
    let first = Rc::new(runtime.block_on(first_request()));
    let floor = on(&runtime, move || {
        let first = Rc::clone(&first);
        async move { assert_eq!(by_hand(&Calculating::new(ROUNDS), &first).await, ROUNDS) }
    });
    let folder = Folder::create();
    let agent = builder(Calculating::new(ROUNDS), &folder).build().expect("the agent is right");
    let plain = on(&runtime, solving(agent, folder));
    let folder = Folder::create();
    let builder = runtime.block_on(stored(Calculating::new(ROUNDS), &folder));
    let kept = on(&runtime, solving(builder.build().expect("the agent is right"), folder));
    vec![
        Entrant::new("floor: a loop by hand, which stores nothing", floor),
        Entrant::new("`GaiaAgent`, nothing stored", plain),
        Entrant::new("`GaiaAgent`, threads and log in files", kept),
    ]
}

fn wire() -> Vec<Entrant> {
    let runtime = one_thread();
    let first = Rc::new(runtime.block_on(first_request()));
    let model = runtime.block_on(over_http());
    let folder = Folder::create();
    let agent = builder(model.client(), &folder).build().expect("the agent is right");
    runtime.block_on(solve(&agent, 0));
    let caller = replayed(&runtime, &model);
    let client = Rc::new(model.client());
    let looped = on(&runtime, move || {
        let (client, first) = (Rc::clone(&client), Rc::clone(&first));
        async move { assert_eq!(by_hand(&*client, &first).await, ROUNDS) }
    });
    let whole = on(&runtime, solving(agent, folder));
    vec![
        Entrant::new("floor: the same requests as bytes", caller),
        Entrant::new("`OpenAiChatModel` in a loop by hand", looped),
        Entrant::new("`GaiaAgent` over it, nothing stored", whole),
    ]
}

fn questions() -> Vec<Entrant> {
    let runtime = one_thread();
    let first = Rc::new(runtime.block_on(first_request()));
    let floor = on(&runtime, move || {
        let first = Rc::clone(&first);
        async move {
            let model = Calculating::new(FEW);
            let all = stream::iter((0..QUESTIONS).map(|_| by_hand(&model, &first)));
            assert_eq!(
                all.buffer_unordered(AT_ONCE).fold(0, async |sum, rounds| sum + rounds).await,
                QUESTIONS * FEW
            );
        }
    });
    let folder = Folder::create();
    let agent = builder(Calculating::new(FEW), &folder).build().expect("the agent is right");
    let plain = on(&runtime, running(agent, folder));
    let folder = Folder::create();
    let builder = runtime.block_on(stored(Calculating::new(FEW), &folder));
    let kept = on(&runtime, running(builder.build().expect("the agent is right"), folder));
    vec![
        Entrant::new("floor: loops by hand, which store nothing", floor),
        Entrant::new("`Runner`, nothing stored", plain),
        Entrant::new("`Runner`, threads and log in files", kept),
    ]
}

/// Works on one run of a thousand questions after another.
fn running(agent: GaiaAgent, folder: Folder) -> impl FnMut() -> std::pin::Pin<Box<dyn Future<Output = ()>>> {
    let shared = Rc::new((agent, folder, AtomicU64::new(0)));
    move || {
        let shared = Rc::clone(&shared);
        Box::pin(async move {
            let run = thousand(shared.2.fetch_add(1, Ordering::Relaxed));
            work(&shared.0, &run, &shared.1, AnswerKind::Final).await;
        })
    }
}

fn thousand(number: u64) -> Run {
    let plan = Plan {
        source: "bench".to_owned(),
        limit: None,
        level: None,
        model: "bench".to_owned(),
        prompts: "a".to_owned(),
        python: false,
        runs: None,
    };
    let questions = (0..QUESTIONS).map(|number| task(number).question).collect();
    Run { id: number.to_string(), began: 0, plan, questions }
}

async fn work(agent: &GaiaAgent, run: &Run, folder: &Folder, kind: AnswerKind) {
    let runner = Runner {
        agent: agent.clone(),
        files: FileSource::Folder(folder.file("")),
        concurrency: AT_ONCE,
        drain: CancellationToken::new(),
        log: Log::off(Secrets::default()),
    };
    let end = runner.run(run, |_| {}).await;
    let right =
        end.solutions.iter().filter(|solution| solution.answer == "42" && solution.kind == kind).count();
    assert_eq!((right as u64, end.errors.len()), (QUESTIONS, 0));
}

/// The elapsed time of a thousand questions with everything in files, and of the same from the cache.
fn elapsed() -> Vec<Figure> {
    let runtime = one_thread();
    let folder = Folder::create();
    runtime.block_on(async {
        let cache = AnswerCache::new(folder.file("agent_cache.json"));
        let agent =
            stored(Calculating::new(FEW), &folder).await.cache(cache).build().expect("the agent is right");
        let mut figures = Vec::new();
        let what = ["threads, log and cache in files", "the same, answers from the cache"];
        for (number, (what, kind)) in
            what.into_iter().zip([AnswerKind::Final, AnswerKind::Cached]).enumerate()
        {
            let began = Instant::now();
            work(&agent, &thousand(number as u64), &folder, kind).await;
            let milliseconds = began.elapsed().as_secs_f64() * 1e3 / QUESTIONS as f64;
            figures.push(Figure::new(what, milliseconds, "ms a question, elapsed"));
        }
        figures
    })
}
