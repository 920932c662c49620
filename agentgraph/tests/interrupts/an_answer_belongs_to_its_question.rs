//! An answer is delivered only to the question that it was given to: in every kind of graph, whatever the
//! task asks when it runs again, and wherever the run was stopped.

use std::future::IntoFuture;
use std::sync::{Arc, Mutex};

use agentgraph::checkpoint::TaskId;
use agentgraph::checkpoint::{Catalog, Checkpointer, PendingWrite, Place, PutWrites, WaitingQuery};
use agentgraph::host::{Host, TaskCall, TaskReply};
use agentgraph::prelude::*;
use agentgraph::run::InterruptKey;
use agentgraph::{BoxError, Code, Durability, EventKind, Failure, Interrupt, InterruptId, Memory, View};
use futures_util::StreamExt;
use serde_json::{Value, json};

use crate::common::clock::Clock;
use crate::common::poll::{at_most, pending_for};
use crate::common::saver::NotingSaver;
use crate::common::words::{Words, WordsUpdate, text};

/// The outside world: the payee that a task would pay next, and the payees that were paid.
#[derive(Clone)]
struct World {
    next: Arc<Mutex<&'static str>>,
    paid: Arc<Mutex<Vec<&'static str>>>,
}

impl World {
    fn new() -> Self {
        World { next: Arc::new(Mutex::new("the baker")), paid: Arc::default() }
    }

    fn set_next(&self, name: &'static str) {
        *self.next.lock().unwrap() = name;
    }

    fn paid(&self) -> Vec<&'static str> {
        self.paid.lock().unwrap().clone()
    }

    async fn pay(self, ctx: Ctx) -> Result<WordsUpdate> {
        let name = *self.next.lock().unwrap();
        pending_for(1).await;
        if ctx.interrupt::<bool>(format!("Pay {name}?"))? {
            self.paid.lock().unwrap().push(name);
        }
        Ok(Words::update().seen([name]))
    }

    /// Returns a graph of one node, which pays.
    fn graph(&self) -> StateGraph<Words> {
        let world = self.clone();
        StateGraph::new().node("pay", move |ctx: Ctx| world.clone().pay(ctx)).edge(START, "pay")
    }
}

/// A host that runs each task by a graph of its own. The call and the reply pass through JSON text.
struct JsonHost(CompiledGraph<Words>);

#[async_trait::async_trait]
impl Host for JsonHost {
    async fn run(&self, call: TaskCall) -> Result<TaskReply, BoxError> {
        let call: TaskCall = serde_json::from_str(&serde_json::to_string(&call)?)?;
        let reply = self.0.run_task(call).await?;
        Ok(serde_json::from_str(&serde_json::to_string(&reply)?)?)
    }
}

pub(crate) const KINDS: [&str; 7] = ["plain", "eager", "per call", "per thread", "handler", "host", "deep"];

/// Returns a graph of the given kind around the graph of `build`, which is under test.
pub(crate) fn graph_of(kind: &str, build: impl Fn() -> StateGraph<Words>) -> CompiledGraph<Words> {
    let within = |graph: StateGraph<Words>, memory| {
        let child = graph.compile().unwrap().memory(memory);
        StateGraph::<Words>::new().node("child", child).edge(START, "child")
    };
    match kind {
        "plain" => build().compile().unwrap(),
        "eager" => build().eager().compile().unwrap(),
        "per call" => within(build(), Memory::PerCall).compile().unwrap(),
        "per thread" => within(build(), Memory::PerThread).compile().unwrap(),
        "deep" => within(within(build().eager(), Memory::PerCall), Memory::PerThread).compile().unwrap(),
        "host" => build().compile().unwrap().host(JsonHost(build().compile().unwrap())),
        _ => panic!("{kind}"),
    }
}

fn paying_graph(kind: &str, world: &World) -> CompiledGraph<Words> {
    if kind != "handler" {
        return graph_of(kind, || world.graph());
    }
    let world = world.clone();
    let handles = move |ctx: Ctx, _: Failure| world.clone().pay(ctx);
    let fails = || async { Err::<(), BoxError>("broken".into()) };
    let graph = StateGraph::new().node("fails", fails.on_error("pay")).node("pay", handles);
    graph.edge(START, "fails").compile().unwrap()
}

pub(crate) fn id(interrupts: &[Interrupt]) -> InterruptId {
    assert_eq!(interrupts.len(), 1, "{interrupts:?}");
    interrupts[0].id.unwrap()
}

pub(crate) async fn stored_interrupts(graph: &CompiledGraph<Words>) -> Vec<Interrupt> {
    graph.state("t").await.unwrap().unwrap().interrupts
}

/// Returns the open interrupts of an outcome. Asserts that `state` and `waiting` return the same ones.
pub(crate) async fn open_interrupts(
    graph: &CompiledGraph<Words>,
    outcome: &Outcome<Words>,
) -> Vec<Interrupt> {
    let open = outcome.interrupts().to_vec();
    assert_eq!(stored_interrupts(graph).await, open);
    let waiting = graph.waiting().await.unwrap();
    let mut waiting: Vec<_> = waiting.into_iter().flat_map(|one| one.interrupts).collect();
    waiting.sort_by_key(|one| open.iter().position(|other| other == one));
    assert_eq!(waiting, open);
    open
}

#[tokio::test]
async fn an_answer_is_not_delivered_to_another_question() {
    for kind in KINDS {
        for durability in [Durability::Sync, Durability::Async, Durability::Exit] {
            let world = World::new();
            let graph = paying_graph(kind, &world).checkpointer(MemorySaver::new());
            let baker = graph.invoke(Words::update()).thread("t").durability(durability).await.unwrap();
            let baker = open_interrupts(&graph, &baker).await;
            assert_eq!((&baker[0].value, &baker[0].replaces), (&json!("Pay the baker?"), &None), "{kind}");

            world.set_next("mallory");
            let mallory = graph.resume(true).thread("t").durability(durability).await.unwrap();
            assert_eq!(world.paid(), [] as [&str; 0], "{kind}");
            let mallory = open_interrupts(&graph, &mallory).await;
            assert_eq!(mallory[0].value, "Pay mallory?");
            assert_ne!(id(&mallory), id(&baker), "{kind}");
            let replaced = mallory[0].replaces.clone().unwrap();
            assert_eq!((replaced.id, replaced.times), (id(&baker), 1), "{kind}");
            assert_eq!(replaced.value, "Pay the baker?");

            let late =
                graph.resume_many([(id(&baker), true)]).thread("t").durability(durability).await.unwrap_err();
            assert_eq!(late.code(), Code::UnknownInterrupt, "{kind}");
            assert_eq!(stored_interrupts(&graph).await, mallory, "{kind}");

            // The task asks for the baker again. The voided answer is not used.
            world.set_next("the baker");
            let again =
                graph.resume_many([(id(&mallory), true)]).thread("t").durability(durability).await.unwrap();
            let again = open_interrupts(&graph, &again).await;
            assert_eq!((&again[0].value, world.paid().len()), (&json!("Pay the baker?"), 0), "{kind}");
            let replaced = again[0].replaces.clone().unwrap();
            assert_eq!((replaced.id, replaced.times), (id(&mallory), 2), "{kind}");
            assert!(![id(&baker), id(&mallory)].contains(&id(&again)), "{kind}");

            let done = graph.resume(true).thread("t").durability(durability).await.unwrap();
            assert_eq!(text(done.output()), "the baker", "{kind}");
            assert_eq!(world.paid(), ["the baker"], "{kind}");
        }
    }
}

#[tokio::test]
async fn an_answer_is_not_delivered_to_another_question_in_a_pass() {
    for durability in [Durability::Sync, Durability::Async, Durability::Exit] {
        let world = World::new();
        let pays = world.clone();
        let pay = move |ctx: Ctx| {
            let world = pays.clone();
            async move { Ok::<_, BoxError>(text_of(world.pay(ctx).await?)) }
        };
        let graph = DependencyGraph::<String>::new()
            .node("order", || "an order".to_owned())
            .node("pay", pay)
            .node("end", |deps: Deps<String>| deps[0].clone())
            .edge("order", "pay")
            .edge("pay", "end");
        let saver = Arc::new(MemorySaver::new());
        let graph = graph.compile().unwrap().checkpointer(Arc::clone(&saver));
        let baker = id(graph.invoke(()).thread("t").durability(durability).await.unwrap().interrupts());
        world.set_next("mallory");
        let outcome = graph.resume(true).thread("t").durability(durability).await.unwrap();
        let mallory = outcome.interrupts().to_vec();
        assert_eq!((&mallory[0].value, world.paid().len()), (&json!("Pay mallory?"), 0));
        assert_eq!(mallory[0].replaces.as_ref().unwrap().id, baker);
        assert_eq!(graph.state("t").await.unwrap().unwrap().interrupts, mallory);
        let waiting = saver.waiting(WaitingQuery::default()).await.unwrap();
        assert_eq!((waiting.len(), waiting[0].request.slot), (1, 3));
        let late = graph.resume_many([(baker, true)]).thread("t").durability(durability).await.unwrap_err();
        assert_eq!(late.code(), Code::UnknownInterrupt);
        let done =
            graph.resume_many([(id(&mallory), true)]).thread("t").durability(durability).await.unwrap();
        assert_eq!(done.into_finished().unwrap().get("end").unwrap(), "mallory");
        assert_eq!(world.paid(), ["mallory"]);
    }
}

fn text_of(update: WordsUpdate) -> String {
    let mut words = Words::default();
    agentgraph::State::apply(&mut words, &Default::default(), update).unwrap();
    text(&words)
}

#[tokio::test]
async fn a_new_question_and_the_answers_that_it_voids_are_one_write() {
    let world = World::new();
    let saver = NotingSaver::memory();
    let graph = world.graph().compile().unwrap().checkpointer(saver.clone());
    graph.invoke(Words::update()).thread("t").await.unwrap();
    world.set_next("mallory");
    let before = saver.writes_by_call().len();
    graph.resume(true).thread("t").await.unwrap();
    let calls = saver.writes_by_call().split_off(before);
    let slots: Vec<Vec<u32>> =
        calls.iter().map(|call| call.iter().map(|write| write.slot).collect()).collect();
    assert_eq!(slots, [vec![2], vec![2, 3]], "first the answer; then its void and the new question");
}

#[tokio::test]
async fn the_stream_says_which_answer_was_voided_and_why() {
    for kind in KINDS {
        let world = World::new();
        let graph = paying_graph(kind, &world).checkpointer(MemorySaver::new());
        let baker = id(graph.invoke(Words::update()).thread("t").await.unwrap().interrupts());
        world.set_next("mallory");
        let mut events = graph.resume(true).thread("t").subgraphs().views([View::Tasks]).stream();
        let mut voided = Vec::new();
        let mut ended = None;
        while let Some(event) = events.next().await {
            match event.kind {
                EventKind::AnswerVoided { node, question, asks } => {
                    assert_eq!(
                        event.task.unwrap().id.to_string(),
                        baker.to_string().split_once('-').unwrap().0
                    );
                    voided.push((node, question, asks));
                }
                EventKind::Ended(outcome) => ended = Some(outcome.unwrap()),
                _ => {}
            }
        }
        let [(node, question, asks)] = &voided[..] else { panic!("{kind}: {voided:?}") };
        assert_eq!((&**node, question.id, asks), ("pay", baker, &json!("Pay mallory?")), "{kind}");
        assert_eq!(ended.unwrap().interrupts()[0].replaces.as_ref(), Some(question), "{kind}");
    }
}

/// The questions that a node asks in each of its executions. The last list is used for all later executions.
#[derive(Clone)]
struct Script(Arc<Mutex<std::collections::VecDeque<Vec<Value>>>>);

impl Script {
    fn new<const N: usize>(runs: [&[&str]; N]) -> Self {
        let runs = runs.iter().map(|asks| asks.iter().map(|text| json!(text)).collect());
        Script(Arc::new(Mutex::new(runs.collect())))
    }

    /// Returns a graph of one node, which asks its questions in order and writes each with its answer.
    fn graph(&self) -> StateGraph<Words> {
        let script = self.clone();
        let node = move |ctx: Ctx| {
            let mut runs = script.0.lock().unwrap();
            let asks = if runs.len() > 1 { runs.pop_front() } else { runs.front().cloned() };
            drop(runs);
            async move {
                let mut seen = Vec::new();
                for value in asks.unwrap() {
                    let answer: String = ctx.interrupt(&value)?;
                    seen.push(format!("{}={answer}", value.as_str().unwrap()));
                }
                Ok::<_, BoxError>(Words::update().seen(seen))
            }
        };
        StateGraph::new().node("asks", node).edge(START, "asks")
    }
}

/// Runs a script to its end. Each answer is the text of the question and the number of the answer in the run.
/// Returns the questions in the order in which they were asked, and the words that the node wrote.
async fn play(kind: &str, script: &Script) -> (Vec<String>, String) {
    let graph = graph_of(kind, || script.graph()).checkpointer(MemorySaver::new());
    let mut outcome = graph.invoke(Words::update()).thread("t").await.unwrap();
    let mut asked = Vec::new();
    let mut ids = std::collections::HashSet::new();
    while let [open] = outcome.interrupts() {
        let text = open.value.as_str().unwrap().to_owned();
        assert!(ids.insert(open.id.unwrap()), "{kind}: an id was given twice");
        let answer = format!("{text}{}", asked.len());
        asked.push(text);
        outcome = graph.resume(answer).thread("t").await.unwrap();
    }
    (asked, text(outcome.output()))
}

#[tokio::test]
async fn a_changed_question_voids_the_later_answers_too() {
    for kind in KINDS.into_iter().filter(|kind| *kind != "handler") {
        // In the third execution the first question changes, so the second one is asked again although it was
        // answered.
        let script = Script::new([&["a"], &["a", "b"], &["x", "b"]]);
        let (asked, seen) = play(kind, &script).await;
        assert_eq!((asked.join(" "), &*seen), ("a b x b".to_owned(), "x=x2 b=b3"), "{kind}");
    }
}

#[tokio::test]
async fn an_earlier_answer_stays_when_a_later_question_changes() {
    let script = Script::new([&["a"], &["a", "b"], &["a", "y"]]);
    let (asked, seen) = play("plain", &script).await;
    assert_eq!((asked.join(" "), &*seen), ("a b y".to_owned(), "a=a0 y=y2"));
}

#[tokio::test]
async fn two_questions_that_swap_places_do_not_swap_answers() {
    let script = Script::new([&["a", "b"], &["a", "b"], &["b", "a"]]);
    let (asked, seen) = play("plain", &script).await;
    assert_eq!((asked.join(" "), &*seen), ("a b b a".to_owned(), "b=b2 a=a3"));
}

#[tokio::test]
async fn an_answer_stays_if_fewer_questions_are_asked_but_not_if_another_one_takes_its_place() {
    let script = Script::new([&["a"], &["a", "b"], &["a"]]);
    assert_eq!(play("plain", &script).await.1, "a=a0", "`b` is not asked any more");
    // `b` voids the answer to `a`, so the third execution asks `a` again.
    for kind in ["plain", "eager", "per call", "host"] {
        let script = Script::new([&["a"], &["b"], &["a"]]);
        let (asked, seen) = play(kind, &script).await;
        assert_eq!((asked.join(" "), &*seen), ("a b a".to_owned(), "a=a2"), "{kind}");
    }
}

#[cfg(feature = "sqlite")]
#[tokio::test]
async fn values_with_equal_json_are_the_same_question() {
    #[derive(serde::Serialize)]
    struct Priced {
        item: &'static str,
        price: f64,
        weight: f32,
        rate: f64,
        count: u64,
    }
    type Ask = fn(&Ctx) -> std::result::Result<String, agentgraph::node::Interrupted>;
    let priced: Ask = |ctx| {
        let price = 0.1 + 0.2;
        let rate = 5e-324;
        ctx.interrupt(Priced { item: "tea", price, weight: 0.1, rate, count: u64::MAX })
    };
    let mapped: Ask = |ctx| {
        let value =
            json!({"count": u64::MAX, "rate": 5e-324, "price": 0.1 + 0.2, "weight": 0.1_f32, "item": "tea"});
        ctx.interrupt(value)
    };
    // JSON has neither NaN nor infinity; both become null.
    let not_a_number: Ask = |ctx| ctx.interrupt([f64::NAN, f64::INFINITY]);
    let hash_map: Ask = |ctx| {
        let map: std::collections::HashMap<_, _> = (0..50).map(|n| (format!("key {n}"), n)).collect();
        ctx.interrupt(map)
    };
    for kind in ["plain", "eager", "per call", "host"] {
        for (first, then) in [(priced, mapped), (not_a_number, not_a_number), (hash_map, hash_map)] {
            let runs = Arc::new(Mutex::new(0));
            let build = || {
                let runs = Arc::clone(&runs);
                let node = move |ctx: Ctx| {
                    let mut runs = runs.lock().unwrap();
                    *runs += 1;
                    let asked = if *runs == 1 { first(&ctx) } else { then(&ctx) };
                    std::future::ready(asked.map(|answer| Words::update().seen([answer])))
                };
                StateGraph::new().node("asks", node).edge(START, "asks")
            };
            let graph = graph_of(kind, build);
            let graph = graph.checkpointer(SqliteSaver::in_memory().unwrap());
            graph.invoke(Words::update()).thread("t").await.unwrap();
            let done = graph.resume("yes").thread("t").await.unwrap();
            assert_eq!(text(done.output()), "yes", "{kind}: {:?}", done.interrupts());
        }
    }
}

#[tokio::test]
async fn a_number_that_changes_in_json_text_is_the_same_question_at_a_host() {
    // serde_json reads some numbers back as different ones. A question must stay the same at a host that
    // sends text.
    let parsed = |number: f64| serde_json::from_str::<f64>(&serde_json::to_string(&number).unwrap()).unwrap();
    let number = (1..100_000).map(|n| f64::from(n) * 1.1e-7 + 3e5).find(|number| parsed(*number) != *number);
    // If serde_json reads all of them back exactly, any number will do.
    let number = number.unwrap_or(0.1);
    let build = || {
        let node = move |ctx: Ctx| {
            let asked = ctx.interrupt::<String>(number);
            std::future::ready(asked.map(|answer| Words::update().seen([answer])))
        };
        StateGraph::new().node("asks", node).edge(START, "asks")
    };
    let graph = graph_of("host", build).checkpointer(MemorySaver::new());
    graph.invoke(Words::update()).thread("t").await.unwrap();
    assert_eq!(text(graph.resume("yes").thread("t").await.unwrap().output()), "yes");
}

#[derive(serde::Deserialize, schemars::JsonSchema)]
struct Amount {
    #[schemars(range(max = 100))]
    amount: u32,
}

#[derive(serde::Deserialize, schemars::JsonSchema)]
struct SmallAmount {
    #[schemars(range(max = 5))]
    amount: u32,
}

/// Builds graphs whose node asks with the schema of `Amount` in its first execution and with that of
/// `SmallAmount` later. `keyed` is whether the question has a key.
fn graphs_with_two_schemas(keyed: bool) -> impl Fn() -> StateGraph<Words> {
    let runs = Arc::new(Mutex::new(0));
    move || {
        let runs = Arc::clone(&runs);
        let node = move |ctx: Ctx| {
            let mut runs = runs.lock().unwrap();
            *runs += 1;
            let amount = |one: Amount| one.amount;
            let little = |one: SmallAmount| one.amount;
            let amount = match (*runs, keyed) {
                (1, false) => ctx.interrupt_with_schema("how much?").map(amount),
                (1, true) => ctx.interrupt_as_with_schema("key", "how much?").map(amount),
                (_, false) => ctx.interrupt_with_schema("how much?").map(little),
                (_, true) => ctx.interrupt_as_with_schema("key", "how much?").map(little),
            };
            std::future::ready(amount.map(|amount| Words::update().seen([amount.to_string()])))
        };
        StateGraph::new().node("asks", node).edge(START, "asks")
    }
}

#[tokio::test]
async fn a_question_with_another_schema_is_the_same_question() {
    for (kind, keyed) in
        [("plain", false), ("plain", true), ("eager", false), ("per call", true), ("host", true)]
    {
        let graph = graph_of(kind, graphs_with_two_schemas(keyed)).checkpointer(MemorySaver::new());
        graph.invoke(Words::update()).thread("t").await.unwrap();
        let done = graph.resume(json!({ "amount": 4 })).thread("t").await.unwrap();
        assert_eq!(text(done.output()), "4", "{kind}");
    }
}

#[cfg(feature = "validate")]
#[tokio::test]
async fn an_answer_is_validated_again_under_a_changed_schema() {
    for (kind, keyed) in
        [("plain", false), ("plain", true), ("eager", false), ("per call", true), ("host", true)]
    {
        let graph = graph_of(kind, graphs_with_two_schemas(keyed)).checkpointer(MemorySaver::new());
        let first = graph.invoke(Words::update()).thread("t").await.unwrap();
        let error = graph.resume(json!({ "amount": 50 })).thread("t").await.unwrap_err();
        assert_eq!((error.code(), error.node()), (Code::BadAnswer, Some("asks")), "{kind}");
        assert!(error.to_string().contains("at `/amount`, value is greater"), "{kind}: {error}");
        // The question keeps its id and has the new schema.
        let open = stored_interrupts(&graph).await;
        assert_eq!(id(&open), id(first.interrupts()), "{kind}");
        assert_eq!(open[0].schema.as_ref().unwrap()["properties"]["amount"]["maximum"], 5, "{kind}");
        assert_eq!(open[0].replaces, None, "{kind}");
        let error = graph.resume(json!({ "amount": 6 })).thread("t").await.unwrap_err();
        assert!(error.to_string().contains("nothing was stored"), "{kind}: {error}");
        assert_eq!(text(graph.resume(json!({ "amount": 5 })).thread("t").await.unwrap().output()), "5");
    }
}

#[tokio::test]
async fn a_null_answer_survives_a_kill() {
    let world = Arc::new(Mutex::new(0));
    let runs = Arc::clone(&world);
    let node = move |ctx: Ctx| {
        let runs = Arc::clone(&runs);
        async move {
            let answer: Option<String> = ctx.interrupt("a word, if you like?")?;
            *runs.lock().unwrap() += 1;
            pending_for(9).await;
            Ok::<_, BoxError>(Words::update().seen([format!("{answer:?}")]))
        }
    };
    let graph = StateGraph::new().node("asks", node).edge(START, "asks").compile().unwrap();
    let graph = graph.checkpointer(MemorySaver::new());
    graph.invoke(Words::update()).thread("t").await.unwrap();
    assert!(at_most(Box::pin(graph.resume(Value::Null).thread("t").into_future()), 5).await.is_none());
    assert_eq!(*world.lock().unwrap(), 1);
    assert_eq!((stored_interrupts(&graph).await, graph.waiting().await.unwrap()), (vec![], vec![]));
    assert_eq!(text(graph.proceed().thread("t").await.unwrap().output()), "None");
}

/// Builds graphs whose node asks about each item by `ask` and buys the items that are answered with a yes.
fn shop(
    items: &'static [&'static str],
    ask: impl Fn(&Ctx, &'static str) -> std::result::Result<bool, agentgraph::node::Interrupted>
    + Clone
    + Send
    + Sync
    + 'static,
) -> impl Fn() -> StateGraph<Words> {
    move || {
        let ask = ask.clone();
        let node = move |ctx: Ctx| {
            let asked: Vec<_> = items.iter().map(|item| (*item, ask(&ctx, item))).collect();
            async move {
                let mut bought = Vec::new();
                for (item, answer) in asked {
                    bought.extend(answer?.then_some(item));
                }
                Ok::<_, BoxError>(Words::update().seen(bought))
            }
        };
        StateGraph::new().node("shop", node).edge(START, "shop")
    }
}

const ITEMS: &[&str] = &["tea", "milk", "a yacht"];

fn id_of_key(open: &[Interrupt], key: &str) -> InterruptId {
    open.iter().find(|one| one.key.as_deref() == Some(key)).unwrap().id.unwrap()
}

#[tokio::test]
async fn questions_with_keys_are_open_together_and_answered_in_any_order() {
    for kind in KINDS.into_iter().filter(|kind| *kind != "handler") {
        for one_by_one in [false, true] {
            let shop = shop(ITEMS, |ctx, item| ctx.interrupt_as(item, format!("Buy {item}?")));
            let graph = graph_of(kind, shop).checkpointer(MemorySaver::new());
            let outcome = graph.invoke(Words::update()).thread("t").await.unwrap();
            let all = open_interrupts(&graph, &outcome).await;
            assert_eq!(
                all.iter().map(|one| one.value.clone()).collect::<Vec<_>>(),
                ["Buy tea?", "Buy milk?", "Buy a yacht?"],
                "{kind}"
            );
            let answers = [("a yacht", false), ("tea", true), ("milk", true)];
            let answers = answers.map(|(item, yes)| (id_of_key(&all, item), yes));
            assert_eq!(graph.resume(true).thread("t").await.unwrap_err().code(), Code::AmbiguousAnswer);
            if !one_by_one {
                let done = graph.resume_many(answers).thread("t").await.unwrap();
                assert_eq!(text(done.output()), "tea milk", "{kind}");
                continue;
            }
            for (left, answer) in (0..3).rev().zip(answers) {
                let outcome = graph.resume_many([answer]).thread("t").await.unwrap();
                let still = open_interrupts(&graph, &outcome).await;
                assert_eq!(still.len(), left, "{kind}");
                assert!(still.iter().all(|one| all.contains(one)), "{kind}: {still:?}");
                let again = graph.resume_many([answer]).thread("t").await.unwrap_err();
                let code = if left > 0 { Code::UnknownInterrupt } else { Code::NothingToResume };
                assert_eq!(again.code(), code, "{kind}");
            }
            let done = graph.state("t").await.unwrap().unwrap();
            assert_eq!(text(&done.values), "tea milk", "{kind}");
        }
    }
}

#[tokio::test]
async fn questions_with_keys_are_open_together_in_a_pass() {
    let shop = |ctx: Ctx| async move {
        let ask = |item: &'static str| (item, ctx.interrupt_as::<bool>(item, format!("Buy {item}?")));
        let asked = ITEMS.iter().map(|item| ask(item));
        let mut bought = Vec::new();
        for (item, answer) in asked.collect::<Vec<_>>() {
            bought.extend(answer?.then_some(item));
        }
        Ok::<_, BoxError>(bought.join(" "))
    };
    let graph = DependencyGraph::<String>::new().node("shop", shop).compile().unwrap();
    let graph = graph.checkpointer(MemorySaver::new());
    let all = graph.invoke(()).thread("t").await.unwrap().interrupts().to_vec();
    assert_eq!(graph.state("t").await.unwrap().unwrap().interrupts, all);
    let part = graph.resume_many([(id_of_key(&all, "milk"), true)]).thread("t").await.unwrap();
    assert_eq!(part.interrupts(), [all[0].clone(), all[2].clone()]);
    let rest = [(id_of_key(&all, "a yacht"), false), (id_of_key(&all, "tea"), false)];
    let done = graph.resume_many(rest).thread("t").await.unwrap().into_finished().unwrap();
    assert_eq!(done.get("shop").unwrap(), "milk");
}

#[tokio::test]
async fn a_changed_value_voids_only_the_answer_of_its_key() {
    for kind in ["plain", "eager", "per call", "host"] {
        let runs = Arc::new(Mutex::new(0));
        let node = move || {
            let runs = Arc::clone(&runs);
            let node = move |ctx: Ctx| {
                let mut runs = runs.lock().unwrap();
                *runs += 1;
                let price = if *runs == 1 { 5 } else { 500 };
                let tea = ctx.interrupt_as::<bool>("tea", "Buy tea?");
                let nth = ctx.interrupt::<bool>("go on?");
                let milk = ctx.interrupt_as::<bool>("milk", format!("Buy milk for {price}?"));
                async move {
                    let words = [tea?, nth?, milk?].map(|yes| yes.to_string());
                    Ok::<_, BoxError>(Words::update().seen(words))
                }
            };
            StateGraph::new().node("shop", node).edge(START, "shop")
        };
        let graph = graph_of(kind, node).checkpointer(MemorySaver::new());
        let outcome = graph.invoke(Words::update()).thread("t").await.unwrap();
        let first = open_interrupts(&graph, &outcome).await;
        let answers = first.iter().map(|one| (one.id.unwrap(), true));
        let outcome = graph.resume_many(answers).thread("t").await.unwrap();
        let milk = open_interrupts(&graph, &outcome).await;
        assert_eq!((&*milk[0].key.clone().unwrap(), &milk[0].value), ("milk", &json!("Buy milk for 500?")));
        assert_eq!(milk[0].replaces.as_ref().unwrap().id, id_of_key(&first, "milk"), "{kind}");
        let done = graph.resume_many([(id(&milk), false)]).thread("t").await.unwrap();
        assert_eq!(text(done.output()), "true true false", "{kind}");
    }
}

#[tokio::test]
async fn a_key_for_any_value_keeps_its_answer_when_the_value_changes() {
    for kind in ["plain", "eager", "per call", "host"] {
        let clock = Arc::new(Mutex::new(0));
        let shop = shop(&["tea"], move |ctx, item| {
            let mut clock = clock.lock().unwrap();
            *clock += 1;
            ctx.interrupt_as(InterruptKey::new(item).for_any_value(), format!("it is {clock}: buy {item}?"))
        });
        let graph = graph_of(kind, shop).checkpointer(MemorySaver::new());
        graph.invoke(Words::update()).thread("t").await.unwrap();
        assert_eq!(text(graph.resume(true).thread("t").await.unwrap().output()), "tea", "{kind}");
    }
}

#[tokio::test]
async fn questions_with_keys_do_not_shift_the_positions_of_those_without() {
    // The second execution asks a question with a key before the one without.
    let runs = Arc::new(Mutex::new(0));
    let node = move |ctx: Ctx| {
        let mut runs = runs.lock().unwrap();
        *runs += 1;
        let keyed = (*runs > 1).then(|| ctx.interrupt_as::<String>("key", "keyed?"));
        let plain = ctx.interrupt::<String>("plain?");
        async move {
            let words = [plain?, keyed.transpose()?.unwrap_or_default()];
            Ok::<_, BoxError>(Words::update().seen(words))
        }
    };
    let graph = StateGraph::new().node("asks", node).edge(START, "asks").compile().unwrap();
    let graph = graph.checkpointer(MemorySaver::new());
    graph.invoke(Words::update()).thread("t").await.unwrap();
    let asked = graph.resume("one").thread("t").await.unwrap();
    assert_eq!((&asked.interrupts()[0].value, asked.interrupts().len()), (&json!("keyed?"), 1));
    assert_eq!(text(graph.resume("two").thread("t").await.unwrap().output()), "one two");
}

#[tokio::test]
async fn a_key_may_be_asked_once_per_attempt() {
    for kind in ["plain", "eager", "host"] {
        let shop = shop(&["tea", "tea"], |ctx, item| ctx.interrupt_as(item, "Buy?"));
        let graph = graph_of(kind, shop).checkpointer(MemorySaver::new());
        let error = graph.invoke(Words::update()).thread("t").await.unwrap_err();
        assert_eq!((error.code(), error.node()), (Code::SameKey, Some("shop")), "{kind}");
        assert!(error.to_string().contains("\"tea\""), "{error}");
        assert_eq!(
            (stored_interrupts(&graph).await, graph.waiting().await.unwrap()),
            (vec![], vec![]),
            "{kind}"
        );
    }
    // The same, where the key has an answer.
    let runs = Arc::new(Mutex::new(0));
    let node = move |ctx: Ctx| {
        let mut runs = runs.lock().unwrap();
        *runs += 1;
        let first = ctx.interrupt_as::<bool>("tea", "Buy?");
        let second = if *runs > 1 { ctx.interrupt_as::<bool>("tea", "Buy?") } else { Ok(true) };
        std::future::ready(first.and(second).map(|_| ()))
    };
    let graph = StateGraph::<Words>::new().node("asks", node).edge(START, "asks").compile().unwrap();
    let graph = graph.checkpointer(MemorySaver::new());
    graph.invoke(Words::update()).thread("t").await.unwrap();
    assert_eq!(graph.resume(true).thread("t").await.unwrap_err().code(), Code::SameKey);
    // A retry is another attempt.
    let tries = Arc::new(Mutex::new(0));
    let node = move |ctx: Ctx| {
        let tries = Arc::clone(&tries);
        async move {
            let answer: String = ctx.interrupt_as("tea", "Buy?")?;
            *tries.lock().unwrap() += 1;
            match *tries.lock().unwrap() {
                1 => Err("try again".into()),
                _ => Ok::<_, BoxError>(Words::update().seen([answer])),
            }
        }
    };
    let node = node.retry(RetryPolicy::attempts(2));
    let graph = StateGraph::new().node("asks", node).edge(START, "asks").compile().unwrap();
    let graph = graph.services(Clock::default()).checkpointer(MemorySaver::new());
    graph.invoke(Words::update()).thread("t").await.unwrap();
    assert_eq!(text(graph.resume("yes").thread("t").await.unwrap().output()), "yes");
}

/// Builds graphs whose node runs two tools in parallel. Each tool asks before it acts. The tool that asks
/// first alternates between executions.
fn graphs_with_tools(
    ask: fn(&Ctx, &str) -> std::result::Result<bool, agentgraph::node::Interrupted>,
) -> impl Fn() -> StateGraph<Words> {
    let runs = Arc::new(Mutex::new(0));
    move || {
        let runs = Arc::clone(&runs);
        let node = move |ctx: Ctx| {
            let mut runs = runs.lock().unwrap();
            *runs += 1;
            let slow = u32::from(*runs % 2 == 1);
            async move {
                let tool = |name: &'static str, polls| {
                    let ctx = ctx.clone();
                    async move {
                        pending_for(polls).await;
                        Ok::<_, BoxError>(ask(&ctx, name)?.then_some(name))
                    }
                };
                let (mail, wipe) = tokio::join!(tool("send mail", slow), tool("wipe disk", 1 - slow));
                Ok::<_, BoxError>(Words::update().seen([mail?, wipe?].into_iter().flatten()))
            }
        };
        StateGraph::new().node("tools", node).edge(START, "tools")
    }
}

#[tokio::test]
async fn approving_one_of_two_parallel_tools_never_approves_the_other() {
    for kind in KINDS.into_iter().filter(|kind| *kind != "handler") {
        // With keys both questions are open together, and each gets its own answer.
        let keyed =
            graphs_with_tools(|ctx, name| ctx.interrupt_as(name.to_owned(), format!("May I {name}?")));
        let graph = graph_of(kind, keyed).checkpointer(MemorySaver::new());
        let outcome = graph.invoke(Words::update()).thread("t").await.unwrap();
        let both = open_interrupts(&graph, &outcome).await;
        let answers = [(id_of_key(&both, "send mail"), true), (id_of_key(&both, "wipe disk"), false)];
        let done = graph.resume_many(answers).thread("t").await.unwrap();
        assert_eq!(text(done.output()), "send mail", "{kind}");

        // Without keys an answer may be voided, but the other tool does not get it.
        let unkeyed = graphs_with_tools(|ctx, name| ctx.interrupt(format!("May I {name}?")));
        let graph = graph_of(kind, unkeyed).checkpointer(MemorySaver::new());
        let mut outcome = graph.invoke(Words::update()).thread("t").await.unwrap();
        for _ in 0..20 {
            let Some(open) = outcome.interrupts().first().cloned() else { break };
            let yes = open.value == "May I send mail?";
            outcome = graph.resume_many([(open.id.unwrap(), yes)]).thread("t").await.unwrap();
        }
        assert!(!text(outcome.output()).contains("wipe"), "{kind}: {outcome:?}");
    }
}

#[tokio::test]
async fn a_voided_answer_does_not_void_the_answers_given_with_it() {
    for kind in ["plain", "eager", "per call", "host"] {
        let world = World::new();
        let build = || {
            let asks = |ctx: Ctx| async move {
                Ok::<_, BoxError>(Words::update().seen([ctx.interrupt::<String>("name?")?]))
            };
            world.graph().node("beside", asks).edge(START, "beside")
        };
        let graph = graph_of(kind, build).checkpointer(MemorySaver::new());
        let outcome = graph.invoke(Words::update()).thread("t").await.unwrap();
        let both = open_interrupts(&graph, &outcome).await;
        world.set_next("mallory");
        let answer = |one: &Interrupt| if one.node == "pay" { json!(true) } else { json!("Ada") };
        let answers = both.iter().map(|one| (one.id.unwrap(), answer(one)));
        let outcome = graph.resume_many(answers).thread("t").await.unwrap();
        let mallory = open_interrupts(&graph, &outcome).await;
        assert_eq!((&mallory[0].value, mallory.len()), (&json!("Pay mallory?"), 1), "{kind}");
        assert_eq!(world.paid(), [] as [&str; 0], "{kind}");
        let done = graph.resume(false).thread("t").await.unwrap();
        let mut words: Vec<_> = done.output().seen.clone();
        words.sort();
        assert_eq!((words.join(" "), world.paid().len()), ("Ada mallory".to_owned(), 0), "{kind}");
    }
}

/// Returns a graph whose node asks a question that contains the text of the state.
fn graph_asking_about_the_state() -> StateGraph<Words> {
    let node = |ctx: Ctx, words: Snapshot<Words>| async move {
        let yes: bool = ctx.interrupt(format!("Send {:?}?", text(&words)))?;
        Ok::<_, BoxError>(Words::update().seen([if yes { "sent" } else { "kept" }]))
    };
    StateGraph::new().node("send", node).edge(START, "send")
}

#[tokio::test]
async fn an_answer_is_void_if_an_edit_of_the_state_changed_its_question() {
    for kind in ["plain", "eager", "host"] {
        let graph = graph_of(kind, graph_asking_about_the_state).checkpointer(MemorySaver::new());
        let first = graph.invoke(Words::update().seen(["draft"])).thread("t").await.unwrap();
        graph.update_state("t").update(Words::update().seen(["of", "mallory"])).await.unwrap();
        let moved = stored_interrupts(&graph).await;
        assert_eq!(graph.waiting().await.unwrap()[0].interrupts, moved, "{kind}");
        assert_eq!(moved[0].value, "Send \"draft\"?", "an edit does not change the stored question");
        assert_ne!(id(&moved), id(first.interrupts()), "{kind}");
        let asked = graph.resume_many([(id(&moved), true)]).thread("t").await.unwrap();
        let again = open_interrupts(&graph, &asked).await;
        assert_eq!(again[0].value, "Send \"draft of mallory\"?", "{kind}");
        assert_eq!(again[0].replaces.as_ref().unwrap().id, id(&moved), "{kind}");
        // An edit that changes nothing keeps the question and the question that it replaces.
        graph.update_state("t").await.unwrap();
        let open = stored_interrupts(&graph).await;
        assert_eq!(
            (&open[0].value, open[0].replaces.as_ref().unwrap().times),
            (&again[0].value, 1),
            "{kind}"
        );
        assert_ne!(id(&open), id(&again), "{kind}");
        let done = graph.resume(true).thread("t").await.unwrap();
        assert_eq!(text(done.output()), "draft of mallory sent", "{kind}");
    }
}

#[tokio::test]
async fn a_copied_thread_has_the_same_questions_under_new_ids() {
    for kind in KINDS {
        let world = World::new();
        let graph = paying_graph(kind, &world).checkpointer(MemorySaver::new());
        graph.invoke(Words::update()).thread("t").await.unwrap();
        world.set_next("mallory");
        let mallory = graph.resume(true).thread("t").await.unwrap().interrupts().to_vec();
        graph.copy_thread("t", "copy").await.unwrap();
        if ["per call", "per thread", "deep"].contains(&kind) {
            // In a copy, a subgraph that had begun starts again without its answers.
            let anew = graph.proceed().thread("copy").await.unwrap().interrupts().to_vec();
            assert_eq!((&anew[0].value, &anew[0].replaces), (&json!("Pay mallory?"), &None), "{kind}");
            assert_eq!((stored_interrupts(&graph).await, world.paid().len()), (mallory, 0), "{kind}");
            continue;
        }
        let copied = graph.state("copy").await.unwrap().unwrap().interrupts;
        assert_eq!(copied.len(), 1, "{kind}");
        let waiting = graph.waiting().await.unwrap();
        let waiting = waiting.iter().map(|one| (&*one.thread, one.interrupts.clone()));
        assert_eq!(waiting.collect::<Vec<_>>(), [("copy", copied.clone()), ("t", mallory.clone())], "{kind}");
        assert_eq!((&copied[0].value, copied.len()), (&json!("Pay mallory?"), 1), "{kind}");
        assert_eq!(copied[0].replaces.as_ref().unwrap().value, "Pay the baker?", "{kind}");
        let foreign = graph.resume_many([(id(&mallory), true)]).thread("copy").await.unwrap_err();
        assert_eq!(foreign.code(), Code::UnknownInterrupt, "{kind}");
        world.set_next("the baker");
        let again = graph.resume_many([(id(&copied), true)]).thread("copy").await.unwrap();
        assert_eq!(
            (&again.interrupts()[0].value, world.paid().len()),
            (&json!("Pay the baker?"), 0),
            "{kind}"
        );
        assert_eq!(again.interrupts()[0].replaces.as_ref().unwrap().times, 2, "{kind}");
        // The original is unchanged.
        assert_eq!(stored_interrupts(&graph).await, mallory, "{kind}");
    }
}

/// The call that answers is dropped after each number of polls. Only the baker is approved, and the task asks
/// only about Mallory from then on, so no payment is made.
#[tokio::test]
async fn a_kill_between_any_two_writes_delivers_no_answer_to_another_question() {
    for kind in KINDS {
        for durability in [Durability::Sync, Durability::Async, Durability::Exit] {
            let mut polls = 1;
            let mut seen_all = false;
            while !seen_all {
                let world = World::new();
                let saver = NotingSaver::memory();
                let graph = paying_graph(kind, &world).checkpointer(saver);
                graph.invoke(Words::update()).thread("t").durability(durability).await.unwrap();
                world.set_next("mallory");
                let run = graph.resume(true).thread("t").durability(durability).into_future();
                seen_all = at_most(Box::pin(run), polls).await.is_some();
                assert_eq!(world.paid(), [] as [&str; 0], "{kind}, {durability:?}, after {polls} polls");
                // One of the two questions is open, or none if the answer is stored and the task has not run.
                let mut open = stored_interrupts(&graph).await;
                for _ in 0..5 {
                    let outcome = match open.first() {
                        None => graph.proceed().thread("t").durability(durability).await.unwrap(),
                        Some(one) => {
                            assert_eq!(open.len(), 1);
                            let answer = [(one.id.unwrap(), one.value == "Pay the baker?")];
                            graph.resume_many(answer).thread("t").durability(durability).await.unwrap()
                        }
                    };
                    open = outcome.interrupts().to_vec();
                    if matches!(outcome, Outcome::Finished { .. }) {
                        break;
                    }
                }
                assert_eq!(world.paid(), [] as [&str; 0], "{kind}, {durability:?}, after {polls} polls");
                let end = graph.state("t").await.unwrap().unwrap();
                assert_eq!((text(&end.values), end.next.len()), ("mallory".to_owned(), 0), "{kind} {polls}");
                polls += 1;
                assert!(polls < 200);
            }
            assert!(polls > 3, "{kind}: hardly any call was dropped");
        }
    }
}

#[tokio::test]
async fn a_store_that_fails_delivers_no_answer_to_another_question() {
    for kind in KINDS {
        for skip in 0..4 {
            let world = World::new();
            let saver = NotingSaver::memory();
            let graph = paying_graph(kind, &world).checkpointer(saver.clone());
            graph.invoke(Words::update()).thread("t").await.unwrap();
            world.set_next("mallory");
            // Depending on `skip`, the write of the answer fails, or that of the new question, or neither.
            saver.fail_writes_after(skip);
            let ended = graph.resume(true).thread("t").await;
            if let Err(error) = &ended {
                assert_eq!(error.code(), Code::Store, "{kind}");
            }
            saver.fail_writes(0);
            let open = match stored_interrupts(&graph).await {
                open if open.is_empty() => graph.proceed().thread("t").await.unwrap().interrupts().to_vec(),
                open => open,
            };
            if open[0].value == "Pay the baker?" {
                graph.resume(true).thread("t").await.unwrap();
            }
            assert_eq!(
                id(&stored_interrupts(&graph).await).to_string().split_once('-').unwrap().1,
                "1",
                "{kind}"
            );
            graph.resume(false).thread("t").await.unwrap();
            assert_eq!(world.paid(), [] as [&str; 0], "{kind}, after {skip}");
        }
    }
}

/// Returns a request in the format that preceded keys and places, with the node and the value only, and its
/// answer.
fn old_request(task: TaskId, n: u32, value: &str) -> [PendingWrite; 2] {
    let bytes = |value: &Value| rmp_serde::to_vec_named(value).unwrap();
    let asked = json!({ "node": "asks", "value": value });
    [
        PendingWrite { task, slot: 1 + 2 * n, bytes: bytes(&asked) },
        PendingWrite { task, slot: 2 + 2 * n, bytes: bytes(&json!(format!("old {value}"))) },
    ]
}

/// Runs a script to its first question, then stores `writes` as pending writes of the task.
async fn stored(script: &Script, writes: impl Fn(TaskId) -> Vec<PendingWrite>) -> CompiledGraph<Words> {
    let saver = Arc::new(MemorySaver::new());
    let graph = script.graph().compile().unwrap().checkpointer(Arc::clone(&saver));
    let asked = graph.invoke(Words::update()).thread("t").await.unwrap();
    let task = id(asked.interrupts()).to_string().split_once('-').unwrap().0.parse().unwrap();
    let put = writes(task);
    saver.put_writes(PutWrites::new(Place::root("t"), asked.checkpoint().unwrap(), &put)).await.unwrap();
    graph
}

#[tokio::test]
async fn records_without_keys_stay_positional_and_their_values_are_compared() {
    let old = |task| [old_request(task, 0, "a"), old_request(task, 1, "b")].concat();
    let script = Script::new([&["a"], &["a", "b", "c"]]);
    let graph = stored(&script, old).await;
    let asked = graph.proceed().thread("t").await.unwrap();
    assert_eq!(asked.interrupts()[0].value, "c");
    assert_eq!(text(graph.resume("new").thread("t").await.unwrap().output()), "a=old a b=old b c=new");

    let script = Script::new([&["a"], &["a", "x"]]);
    let graph = stored(&script, old).await;
    let asked = graph.proceed().thread("t").await.unwrap();
    assert_eq!(asked.interrupts()[0].replaces.as_ref().unwrap().value, "b");
    assert_eq!(text(graph.resume("new").thread("t").await.unwrap().output()), "a=old a x=new");
}

#[tokio::test]
async fn question_numbers_that_leave_no_free_slot_are_an_error() {
    let last = (PendingWrite::KEPT - 2) / 2 - 1;
    let script = Script::new([&["a"], &["a", "b"]]);
    for (n, node) in [(last, Some("asks")), (last + 1, None)] {
        let full = |task| [old_request(task, 0, "a"), old_request(task, n, "z")].concat();
        let graph = stored(&script, full).await;
        let error = graph.proceed().thread("t").await.unwrap_err();
        assert_eq!((error.code(), error.node()), (Code::CorruptCheckpoint, node), "{error}");
    }
    let almost = |task| [old_request(task, 0, "a"), old_request(task, last - 1, "z")].concat();
    let graph = stored(&script, almost).await;
    let asked = graph.proceed().thread("t").await.unwrap();
    assert_eq!(graph.waiting().await.unwrap()[0].interrupts, asked.interrupts());
}

#[tokio::test]
async fn a_damaged_reply_of_a_host_is_an_error() {
    struct DamagingHost(CompiledGraph<Words>, &'static str);
    #[async_trait::async_trait]
    impl Host for DamagingHost {
        async fn run(&self, call: TaskCall) -> Result<TaskReply, BoxError> {
            let reply = serde_json::to_value(self.0.run_task(call).await?)?;
            assert!(reply["reply"].get("Waits").is_some(), "{reply}");
            Ok(serde_json::from_str(self.1)?)
        }
    }
    let nothing = "{\"reply\":{\"Waits\":[144]}}";
    let refused = "{\"reply\":{\"Refused\":{\"n\":4294967295,\"problem\":\"?\",\"schema\":null}}}";
    for (reply, code) in
        [("{\"reply\":{\"Waits\":[193]}}", Code::Host), (nothing, Code::Host), (refused, Code::Host)]
    {
        let world = World::new();
        let far = world.graph().compile().unwrap();
        let graph =
            world.graph().compile().unwrap().host(DamagingHost(far, reply)).checkpointer(MemorySaver::new());
        let error = graph.invoke(Words::update()).thread("t").await.unwrap_err();
        assert_eq!(error.code(), code, "{reply}: {error}");
    }
}
