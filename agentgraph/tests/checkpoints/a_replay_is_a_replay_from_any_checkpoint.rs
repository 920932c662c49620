//! `.from(id)` has one meaning for all checkpoints, also for the newest one: a new run on a new branch, which
//! asks everything again and takes nothing that the old run stored beside the checkpoint.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex};

use agentgraph::prelude::*;
use agentgraph::{BoxError, Checkpoint, CheckpointId, Code, Memory, RunBuilder};
use proptest::prelude::*;

use crate::common::words::{Words, WordsUpdate, text};

/// The nodes that ran a durable step or finished, in order.
#[derive(Clone, Default)]
struct Calls(Arc<Mutex<Vec<String>>>);

impl Calls {
    fn note(&self, call: &str) {
        self.0.lock().unwrap().push(call.to_owned());
    }

    fn take(&self) -> Vec<String> {
        std::mem::take(&mut self.0.lock().unwrap())
    }
}

/// A node that does a durable step, asks `questions` questions and writes one word with all answers.
fn asks(calls: &Calls, questions: usize) -> impl Fn(Ctx) -> BoxedNode + Clone + Send + Sync + 'static {
    let calls = calls.clone();
    move |ctx: Ctx| {
        let calls = calls.clone();
        Box::pin(async move {
            let name = ctx.node().to_owned();
            ctx.once("step", async {
                calls.note(&name);
                Ok::<_, BoxError>(())
            })
            .await?;
            let mut word = name.clone();
            for n in 0..questions {
                let answer: String = ctx.interrupt(format!("{name}.{n}"))?;
                word = format!("{word}:{answer}");
            }
            Ok(Words::update().seen([word]))
        })
    }
}

type BoxedNode = std::pin::Pin<Box<dyn Future<Output = Result<WordsUpdate, BoxError>> + Send>>;

/// `first`, then `a` and `b`, which ask twice, beside `quick`.
fn waiting(calls: &Calls, eager: bool) -> CompiledGraph<Words> {
    let graph = if eager { StateGraph::new().eager() } else { StateGraph::new() };
    let mut graph = graph.node("first", asks(calls, 0)).edge(START, "first");
    for (node, questions) in [("a", 2), ("b", 2), ("quick", 0)] {
        graph = graph.node(node, asks(calls, questions)).edge("first", node);
    }
    graph.compile().unwrap().checkpointer(MemorySaver::new())
}

fn asked<O>(outcome: &Outcome<O>) -> Vec<String> {
    let mut asked: Vec<_> =
        outcome.interrupts().iter().map(|one| one.value.as_str().unwrap().to_owned()).collect();
    asked.sort();
    asked
}

/// Answers each open question with itself, and adds the questions to `seen`.
async fn answer_all(
    graph: &CompiledGraph<Words>,
    mut outcome: Outcome<Words>,
    all_at_once: bool,
    seen: &mut Vec<String>,
) -> Words {
    while !outcome.interrupts().is_empty() {
        let at_once = if all_at_once { usize::MAX } else { 1 };
        let answers = outcome.interrupts().iter().take(at_once);
        let answers: Vec<_> =
            answers.map(|one| (one.id.unwrap(), one.value.as_str().unwrap().to_owned())).collect();
        seen.extend(answers.iter().map(|(_, question)| question.clone()));
        outcome = graph.resume_many(answers).thread("t").await.unwrap();
    }
    outcome.into_finished().unwrap()
}

async fn head<S: State>(graph: &CompiledGraph<S>) -> Checkpoint<S> {
    graph.state("t").await.unwrap().unwrap()
}

#[tokio::test]
async fn a_replay_of_the_head_asks_again_and_runs_finished_work_again() {
    for eager in [false, true] {
        let calls = Calls::default();
        let graph = waiting(&calls, eager);
        let first = graph.invoke(Words::update()).thread("t").await.unwrap();
        let answered = first.interrupts().iter().find(|one| one.node == "a").unwrap().id.unwrap();
        graph.resume_many([(answered, "old")]).thread("t").await.unwrap();
        let before = head(&graph).await;
        calls.take();

        let again = graph.proceed().thread("t").from(before.id).await.unwrap();
        assert_eq!(asked(&again), ["a.0", "b.0"], "eager {eager}");
        let mut done = calls.take();
        done.sort();
        // In an eager graph `quick` has merged, so it is before the checkpoint.
        let expected: &[&str] = if eager { &["a", "b"] } else { &["a", "b", "quick"] };
        assert_eq!(done, expected, "eager {eager}");
        let after = head(&graph).await;
        assert_eq!((before.id.branch, after.id.branch), (0, 1));
        assert_ne!(before.run, after.run);
        let kept = graph.history("t").branch(0).await.unwrap();
        assert_eq!(kept[0].id, before.id, "the old branch ends where it ended");

        // The same checkpoint, which is not the newest any more.
        let later = graph.proceed().thread("t").from(before.id).await.unwrap();
        assert_eq!(asked(&later), asked(&again));
        assert_eq!(calls.take().len(), expected.len());
        assert_eq!(head(&graph).await.id.branch, 2);
    }
}

#[tokio::test]
async fn a_call_without_from_continues_the_run() {
    let calls = Calls::default();
    let graph = waiting(&calls, false);
    let first = graph.invoke(Words::update()).thread("t").await.unwrap();
    calls.take();
    let on = graph.proceed().thread("t").await.unwrap();
    assert_eq!((on.run(), calls.take()), (first.run(), Vec::new()));
}

#[tokio::test]
async fn an_answer_with_from_is_refused_for_all_checkpoints_and_stores_nothing() {
    let calls = Calls::default();
    let child = StateGraph::new().node("c", asks(&calls, 1)).edge(START, "c").compile().unwrap();
    let graph = StateGraph::new()
        .node("first", asks(&calls, 0))
        .node("own", asks(&calls, 1))
        .node("sub", child)
        .edge(START, "first")
        .edge("first", "own")
        .edge("first", "sub");
    let graph = graph.compile().unwrap().checkpointer(MemorySaver::new());
    let first = graph.invoke(Words::update()).thread("t").await.unwrap();
    let open = first.interrupts().to_vec();
    for from in graph.history("t").await.unwrap().iter().map(|one| one.id) {
        let by_id = open.iter().map(|one| graph.resume_many([(one.id.unwrap(), "x")]));
        for call in by_id.chain([graph.resume("x")]) {
            let error = call.thread("t").from(from).await.unwrap_err();
            assert_eq!(error.code(), Code::NothingToResume, "{error}");
        }
    }
    let state = head(&graph).await;
    assert_eq!((state.interrupts, state.id.branch), (open, 0));

    // Once the question is on another branch, too.
    let old = state.id;
    graph.proceed().thread("t").from(old).await.unwrap();
    for one in first.interrupts() {
        let late = graph.resume_many([(one.id.unwrap(), "x")]);
        let error = late.thread("t").from(old).await.unwrap_err();
        assert_eq!(error.code(), Code::NothingToResume, "{error}");
    }
}

#[tokio::test]
async fn a_run_can_begin_on_the_head_of_an_unfinished_run() {
    for eager in [false, true] {
        let calls = Calls::default();
        let graph = waiting(&calls, eager);
        graph.invoke(Words::update().seen(["i"])).thread("t").await.unwrap();
        let old = head(&graph).await;
        assert_eq!(
            graph.invoke(Words::update()).thread("t").await.unwrap_err().code(),
            Code::RunUnfinished,
            "without `.from(..)` the run goes on"
        );
        let new = graph.invoke(Words::update().seen(["j"])).thread("t").from(old.id).await.unwrap();
        assert_eq!(asked(&new), ["a.0", "b.0"]);
        let input = graph.history("t").source(agentgraph::checkpoint::Source::Input).await.unwrap();
        assert_eq!((input[0].id.branch, input[0].abandoned), (1, Some(old.run)));
        let words = answer_all(&graph, new, true, &mut Vec::new()).await;
        assert!(text(&words).starts_with(if eager { "i first quick j" } else { "i first j" }), "{words:?}");
        assert_eq!(graph.history("t").branch(0).await.unwrap()[0].id, old.id);
    }
}

#[tokio::test]
async fn an_edit_at_the_head_stays_on_its_branch() {
    let graph = waiting(&Calls::default(), false);
    let first = graph.invoke(Words::update()).thread("t").await.unwrap();
    let at = head(&graph).await.id;
    let edited = graph.update_state("t").at(at).update(Words::update().seen(["edit"])).await.unwrap();
    assert_eq!(edited, CheckpointId::new(0, at.step + 1));
    let state = head(&graph).await;
    assert_eq!(text(&state.values), "first edit quick", "results of siblings stay");
    assert_eq!(state.interrupts.len(), first.interrupts().len());
}

/// Returns a node that gives its word to a subgraph that remembers and asks before it writes it down.
fn diary(calls: &Calls, memory: Memory) -> agentgraph::node::Node<Words> {
    let child = StateGraph::new().node("note", asks(calls, 1)).node("end", asks(calls, 1));
    let child = child.edge(START, "note").edge("note", "end").compile().unwrap();
    let sub = child.embed(
        |words: Snapshot<Words>| Words::update().seen(words.seen.last().cloned()),
        |told: Words| Words::update().seen([format!("[{}]", text(&told))]),
    );
    sub.memory(memory).into_node()
}

#[tokio::test]
async fn a_replay_of_the_head_calls_a_waiting_subgraph_from_the_named_memory() {
    for (memory, remembered) in [(Memory::PerThread, "i note:A end:A "), (Memory::PerCall, "")] {
        let calls = Calls::default();
        let graph = StateGraph::new().node("sub", diary(&calls, memory)).edge(START, "sub");
        let graph = graph.compile().unwrap().checkpointer(MemorySaver::new());
        let run = async |call: RunBuilder<Words>, answers: [&str; 2]| {
            let mut outcome = call.thread("t").await.unwrap();
            for answer in answers {
                assert_eq!(outcome.interrupts().len(), 1);
                outcome = graph.resume(answer).thread("t").await.unwrap();
            }
            outcome.into_finished().unwrap().seen.pop().unwrap()
        };
        run(graph.invoke(Words::update().seen(["i"])), ["A", "A"]).await;
        graph.invoke(Words::update().seen(["j"])).thread("t").await.unwrap();
        // The subgraph has taken one answer and waits for the other.
        graph.resume("old").thread("t").await.unwrap();
        let waiting = head(&graph).await;
        assert_eq!(waiting.interrupts[0].node, "end");
        calls.take();
        let word = run(graph.proceed().from(waiting.id), ["B", "C"]).await;
        assert_eq!(word, format!("[{remembered}j note:B end:C]"), "{memory:?}");
        assert_eq!(calls.take(), ["note", "end"]);
    }
}

#[tokio::test]
async fn a_replay_of_the_head_runs_a_pass_again_from_its_beginning() {
    let calls = Calls::default();
    let noted = calls.clone();
    let a = move || noted.note("a");
    async fn ask(ctx: Ctx) -> Result<()> {
        let _: String = ctx.interrupt(format!("{}?", ctx.node()))?;
        Ok(())
    }
    let graph = DependencyGraph::<()>::new().node("a", a).node("ask", ask).node("ask too", ask);
    let graph = graph.edge("a", "ask").edge("a", "ask too").compile().unwrap();
    let graph = graph.checkpointer(MemorySaver::new());
    let first = graph.invoke(()).thread("t").await.unwrap();
    graph.resume_many([(first.interrupts()[0].id.unwrap(), "old")]).thread("t").await.unwrap();
    let at = graph.state("t").await.unwrap().unwrap().id;
    let again = graph.proceed().thread("t").from(at).await.unwrap();
    assert_eq!(asked(&again), ["ask too?", "ask?"]);
    assert_eq!(calls.take(), ["a", "a"]);
    assert_eq!(graph.state("t").await.unwrap().unwrap().id.branch, 1);
}

/// A random acyclic graph: the number of questions of each node, and its successors.
#[derive(Clone, Debug)]
struct Shape {
    questions: Vec<usize>,
    edges: Vec<(usize, usize)>,
    /// The nodes that are subgraphs of one asking node.
    nested: Vec<bool>,
    eager: bool,
    all_at_once: bool,
}

fn shapes() -> impl Strategy<Value = Shape> {
    (2..6_usize).prop_flat_map(|nodes| {
        let edges = prop::collection::vec(any::<bool>(), nodes * nodes);
        let questions = prop::collection::vec(0..3_usize, nodes);
        let nested = prop::collection::vec(prop::bool::weighted(0.25), nodes);
        (questions, edges, nested, any::<bool>(), any::<bool>()).prop_map(
            move |(questions, drawn, nested, eager, all_at_once)| {
                let pairs = (0..nodes).flat_map(|from| (from + 1..nodes).map(move |to| (from, to)));
                let edges = pairs.filter(|(from, to)| drawn[from * nodes + to]).collect();
                Shape { questions, edges, nested, eager, all_at_once }
            },
        )
    })
}

impl Shape {
    fn build(&self, calls: &Calls) -> CompiledGraph<Words> {
        let mut graph = if self.eager { StateGraph::new().eager() } else { StateGraph::new() };
        for (at, questions) in self.questions.iter().enumerate() {
            let node = asks(calls, *questions);
            graph = if self.nested[at] {
                let name = format!("n{at}");
                let inner = StateGraph::new().node(name.clone(), node).edge(START, name.clone());
                graph.node(name, inner.compile().unwrap())
            } else {
                graph.node(format!("n{at}"), node)
            };
            if self.edges.iter().all(|(_, to)| *to != at) {
                graph = graph.edge(START, format!("n{at}"));
            }
        }
        for (from, to) in &self.edges {
            graph = graph.edge(format!("n{from}"), format!("n{to}"));
        }
        graph.compile().unwrap().checkpointer(MemorySaver::new())
    }

    /// Runs until `calls` calls have been made. Returns whether the run has finished.
    async fn run(&self, graph: &CompiledGraph<Words>, calls: usize) -> bool {
        let mut outcome = graph.invoke(Words::update().seen(["input"])).thread("t").await.unwrap();
        for _ in 1..calls {
            if outcome.interrupts().is_empty() {
                break;
            }
            let at_once = if self.all_at_once { usize::MAX } else { 1 };
            let answers = outcome.interrupts().iter().take(at_once);
            let answers: Vec<_> =
                answers.map(|one| (one.id.unwrap(), one.value.as_str().unwrap().to_owned())).collect();
            outcome = graph.resume_many(answers).thread("t").await.unwrap();
        }
        outcome.interrupts().is_empty()
    }
}

fn counted(words: &[String]) -> BTreeMap<String, usize> {
    let mut counted = BTreeMap::new();
    words.iter().for_each(|word| *counted.entry(word.clone()).or_default() += 1);
    counted
}

/// The words of the end that a checkpoint does not have. Eager runs merge in the order of completion.
fn missing(end: &[String], before: &[String]) -> Vec<String> {
    let mut had = counted(before);
    let is_new = |word: &&String| match had.get_mut(*word) {
        Some(left) if *left > 0 => {
            *left -= 1;
            false
        }
        _ => true,
    };
    end.iter().filter(is_new).cloned().collect()
}

/// The questions of these words: each contains its answers, which are equal to the questions.
fn questions(words: &[String]) -> BTreeMap<String, usize> {
    let asked: Vec<String> =
        words.iter().flat_map(|word| word.split(':').skip(1).map(str::to_owned)).collect();
    counted(&asked)
}

/// Compares replays with the first run, which is the model: the same questions, durable steps and end.
async fn check(shape: Shape) {
    let calls = Calls::default();
    let model = shape.build(&calls);
    assert!(shape.run(&model, usize::MAX).await);
    let end = head(&model).await.values.seen;
    for stop in 1.. {
        let graph = shape.build(&calls);
        let finished = shape.run(&graph, stop).await;
        for from in graph.history("t").await.unwrap().into_iter().filter(|one| !one.next.is_empty()) {
            calls.take();
            let expected = missing(&end, &from.values.seen);
            let replay = graph.proceed().thread("t").from(from.id).await.unwrap();
            assert_ne!(replay.checkpoint().unwrap().branch, from.id.branch);
            let mut seen = Vec::new();
            let words = answer_all(&graph, replay, shape.all_at_once, &mut seen).await;
            if shape.eager {
                assert_eq!(counted(&words.seen), counted(&end));
            } else {
                assert_eq!(words.seen, end);
            }
            assert_eq!(counted(&seen), questions(&expected));
            let steps: Vec<String> =
                expected.iter().map(|word| word.split(':').next().unwrap().to_owned()).collect();
            assert_eq!(counted(&calls.take()), counted(&steps));
        }
        if finished {
            break;
        }
    }
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 24, ..ProptestConfig::default() })]

    #[test]
    fn a_replay_from_every_checkpoint_asks_and_ends_as_the_run_did(shape in shapes()) {
        tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap().block_on(check(shape));
    }
}
