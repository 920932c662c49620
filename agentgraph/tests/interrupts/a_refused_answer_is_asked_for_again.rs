//! An answer that its node refuses is void, and its question is asked again under a new id with the reason:
//! in every kind of graph, whatever the node or a layer makes of the error, and wherever the run is stopped.

use std::future::IntoFuture;
use std::sync::atomic::{AtomicUsize, Ordering::SeqCst};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use agentgraph::host::{Host, TaskCall, TaskReply};
use agentgraph::node::CallContext;
use agentgraph::prelude::*;
use agentgraph::{BoxError, Code, Durability, EventKind, View};
use futures_util::StreamExt;
use serde_json::{Value, json};

use crate::an_answer_belongs_to_its_question::{KINDS, graph_of, id, open_interrupts, stored_interrupts};
use crate::common::clock::Clock;
use crate::common::poll::{at_most, pending_for};
use crate::common::saver::NotingSaver;
use crate::common::words::{Words, WordsUpdate, text};

/// What a node does with the error of a refusal.
#[derive(Clone, Copy, Debug)]
enum Ending {
    Returns,
    /// Returns another error, which its retry policy would retry.
    Maps,
    /// Drops the error, and returns an update with the answer.
    Hides,
}

/// A graph of one node, which asks who approves and refuses everyone but Grace.
fn approval(ending: Ending, runs: &Arc<AtomicUsize>) -> StateGraph<Words> {
    let runs = Arc::clone(runs);
    let approve = move |ctx: Ctx| {
        let runs = Arc::clone(&runs);
        async move {
            runs.fetch_add(1, SeqCst);
            let by: String = ctx.interrupt("who approves?")?;
            pending_for(1).await;
            if by != "grace" {
                let refused = ctx.refuse(format!("{by} may not approve"));
                match ending {
                    Ending::Returns => return Err(refused.into()),
                    Ending::Maps => return Err(BoxError::from("try again")),
                    Ending::Hides => {}
                }
            }
            Ok(Words::update().seen([by]))
        }
    };
    let approve = approve.retry(RetryPolicy::attempts(3)).timeout(Duration::from_secs(60));
    StateGraph::new().node("approve", approve).edge(START, "approve")
}

#[tokio::test]
async fn a_refused_answer_is_void_and_its_question_is_open_under_a_new_id() {
    for kind in KINDS.into_iter().filter(|kind| *kind != "handler") {
        for durability in [Durability::Sync, Durability::Async, Durability::Exit] {
            for ending in [Ending::Returns, Ending::Maps, Ending::Hides] {
                let case = format!("{kind}, {durability:?}, {ending:?}");
                let runs = Arc::new(AtomicUsize::new(0));
                let graph = graph_of(kind, || approval(ending, &runs));
                let graph = graph.checkpointer(MemorySaver::new());
                let mut asked =
                    graph.invoke(Words::update()).thread("t").durability(durability).await.unwrap();
                for (times, by) in (1..).zip(["ada", "bob"]) {
                    let before = id(asked.interrupts());
                    asked = graph.resume(by).thread("t").durability(durability).await.unwrap();
                    let open = open_interrupts(&graph, &asked).await;
                    assert_eq!(open[0].value, "who approves?", "{case}");
                    assert_ne!(id(&open), before, "{case}");
                    let replaced = open[0].replaces.as_ref().unwrap();
                    assert_eq!((replaced.id, replaced.times), (before, times), "{case}");
                    assert_eq!(replaced.reason.as_deref(), Some(&*format!("{by} may not approve")), "{case}");
                    assert_eq!(runs.load(SeqCst), times as usize + 1, "{case}: no further attempt");
                    let report = graph.report("t").await.unwrap().unwrap().to_string();
                    assert!(report.contains(&format!("{by} may not approve")), "{case}: {report}");
                    let late = graph.resume_many([(before, "grace")]).thread("t").await.unwrap_err();
                    assert_eq!(late.code(), Code::UnknownInterrupt, "{case}");
                }
                let done = graph.resume("grace").thread("t").durability(durability).await.unwrap();
                assert_eq!(text(done.output()), "grace", "{case}");
            }
        }
    }
}

#[tokio::test]
async fn a_node_of_a_pass_refuses_an_answer() {
    async fn approve(ctx: Ctx) -> Result<String> {
        let by: String = ctx.interrupt("who approves?")?;
        if by != "grace" { Err(ctx.refuse(format!("not {by}")).into()) } else { Ok(by) }
    }
    for durability in [Durability::Sync, Durability::Async, Durability::Exit] {
        let graph =
            DependencyGraph::<String>::new().node("approve", approve).node("beside", || "b".to_owned());
        let graph = graph.compile().unwrap().checkpointer(MemorySaver::new());
        let first = id(graph.invoke(()).thread("t").durability(durability).await.unwrap().interrupts());
        let asked = graph.resume("ada").thread("t").durability(durability).await.unwrap();
        let replaced = asked.interrupts()[0].replaces.clone().unwrap();
        assert_eq!((replaced.id, replaced.reason.as_deref()), (first, Some("not ada")));
        assert_eq!(graph.state("t").await.unwrap().unwrap().interrupts, asked.interrupts());
        let late = graph.resume_many([(first, "grace")]).thread("t").await.unwrap_err();
        assert_eq!(late.code(), Code::UnknownInterrupt);
        let waits = graph.proceed().thread("t").durability(durability).await.unwrap();
        let waits = waits.into_finished().unwrap_err().to_string();
        assert!(waits.contains("refused the last answer (not ada)"), "{waits}");
        let done = graph.resume("grace").thread("t").durability(durability).await.unwrap();
        assert_eq!(done.into_finished().unwrap().get("approve").unwrap(), "grace");
    }
}

#[tokio::test]
async fn the_answer_of_one_caller_does_not_count_for_the_next() {
    struct Who {
        name: &'static str,
        may: bool,
    }
    async fn approve(ctx: Ctx, who: CallContext<Who>) -> Result<WordsUpdate> {
        let yes: bool = ctx.interrupt("approve?")?;
        if !who.may {
            return Err(ctx.refuse("this user may not approve").into());
        }
        Ok(Words::update().seen([format!("{} said {yes}", who.name)]))
    }
    let (ada, grace) = (|| Who { name: "ada", may: false }, || Who { name: "grace", may: true });
    let graph = StateGraph::new().node("approve", approve).edge(START, "approve").compile().unwrap();
    let graph = graph.checkpointer(MemorySaver::new());
    graph.invoke(Words::update()).thread("t").context(ada()).await.unwrap();
    graph.resume(true).thread("t").context(ada()).await.unwrap();
    let asked = graph.proceed().thread("t").context(grace()).await.unwrap();
    assert_eq!(asked.interrupts().len(), 1, "ada's answer is void");
    let done = graph.resume(false).thread("t").context(grace()).await.unwrap();
    assert_eq!(text(done.output()), "grace said false");
}

#[tokio::test]
async fn a_refusal_and_the_new_question_are_one_write() {
    let saver = NotingSaver::memory();
    let graph = approval(Ending::Returns, &Arc::default()).compile().unwrap().checkpointer(saver.clone());
    graph.invoke(Words::update()).thread("t").await.unwrap();
    let before = saver.writes_by_call().len();
    graph.resume("ada").thread("t").await.unwrap();
    let calls = saver.writes_by_call().split_off(before);
    let slots: Vec<Vec<u32>> =
        calls.iter().map(|call| call.iter().map(|write| write.slot).collect()).collect();
    assert_eq!(slots, [vec![2], vec![2, 3]], "first the answer; then its void and the new question");
}

/// Resumes with an answer that is refused, stops that call, and continues the run. Returns whether the call
/// ended.
async fn stopped(kind: &str, durability: Durability, polls: u32, writes: Option<u32>) -> bool {
    let case = format!("{kind}, {durability:?}, {polls} polls, {writes:?} writes");
    let saver = NotingSaver::memory();
    let runs = Arc::default();
    let graph = graph_of(kind, || approval(Ending::Hides, &runs)).checkpointer(saver.clone());
    graph.invoke(Words::update()).thread("t").durability(durability).await.unwrap();
    if let Some(others) = writes {
        saver.fail_writes_after(others);
    }
    let call = graph.resume("ada").thread("t").durability(durability).into_future();
    let ended = at_most(Box::pin(call), polls).await;
    saver.fail_writes(0);

    let answered = match &stored_interrupts(&graph).await[..] {
        // The answer is stored.
        [] => true,
        [open] => open.replaces.is_some(),
        open => panic!("{case}: {open:?}"),
    };
    let call = if answered { graph.proceed() } else { graph.resume("ada") };
    let asked = call.thread("t").durability(durability).await.unwrap();
    let [open] = asked.interrupts() else { panic!("{case}: {asked:?}") };
    let reason = open.replaces.as_ref().and_then(|replaced| replaced.reason.as_deref());
    assert_eq!(reason, Some("ada may not approve"), "{case}");
    let done = graph.resume("grace").thread("t").durability(durability).await.unwrap();
    assert_eq!(text(done.output()), "grace", "{case}");
    matches!(ended, Some(Ok(_)))
}

#[tokio::test]
async fn wherever_the_run_is_stopped_a_refused_answer_never_counts() {
    for kind in KINDS.into_iter().filter(|kind| *kind != "handler") {
        for durability in [Durability::Sync, Durability::Async, Durability::Exit] {
            let mut polls = 1;
            while !stopped(kind, durability, polls, None).await {
                polls += 1;
            }
            assert!(polls > 2, "{kind}, {durability:?}: {polls}");
            let mut writes = 0;
            while !stopped(kind, durability, u32::MAX, Some(writes)).await {
                writes += 1;
            }
            assert!(writes > 0, "{kind}, {durability:?}");
        }
    }
}

#[tokio::test]
async fn later_answers_without_a_key_are_void_too_and_other_keys_stay() {
    async fn asks(ctx: Ctx) -> Result<WordsUpdate> {
        let first: String = ctx.interrupt("first?")?;
        let second: String = ctx.interrupt("second?")?;
        if second == "bad" {
            return Err(ctx.refuse("no bad second").into());
        }
        let keyed: String = ctx.interrupt_as("k", "keyed?")?;
        let third: String = ctx.interrupt("third?")?;
        if third == "bad" {
            return Err(ctx.refuse("no bad third").into());
        }
        if keyed == "bad" {
            return Err(ctx.refuse_as("k", "no bad key").into());
        }
        Ok(Words::update().seen([first, second, keyed, third]))
    }
    for kind in KINDS.into_iter().filter(|kind| *kind != "handler") {
        let build = || StateGraph::new().node("asks", asks).edge(START, "asks");
        let graph = graph_of(kind, build).checkpointer(MemorySaver::new());
        let mut outcome = graph.invoke(Words::update()).thread("t").await.unwrap();
        let mut asked = Vec::new();
        for answer in ["1", "bad", "2", "bad", "bad", "3", "k"] {
            let open = open_interrupts(&graph, &outcome).await;
            let reason = open[0].replaces.as_ref().and_then(|old| old.reason.clone()).unwrap_or_default();
            asked.push(format!("{} {reason}", open[0].value.as_str().unwrap()));
            outcome = graph.resume(answer).thread("t").await.unwrap();
        }
        let expected = [
            "first? ",
            "second? ",
            "second? no bad second",
            "keyed? ",
            "third? ",
            "third? no bad third",
            "keyed? no bad key",
        ];
        assert_eq!(asked, expected, "{kind}");
        assert_eq!(text(outcome.output()), "1 2 k 3", "{kind}");
    }
}

/// A node that gets all its answers before it refuses the first one.
#[tokio::test]
async fn the_answers_after_a_refused_one_are_asked_for_again() {
    for kind in KINDS.into_iter().filter(|kind| *kind != "handler") {
        let runs = Arc::new(AtomicUsize::new(0));
        let build = || {
            let runs = Arc::clone(&runs);
            let asks = move |ctx: Ctx| {
                let run = runs.fetch_add(1, SeqCst);
                async move {
                    let first: String = ctx.interrupt("first?")?;
                    // In the third run, which has both answers, the first one is not allowed any more.
                    if run == 2 {
                        return Err(BoxError::from(ctx.refuse("changed")));
                    }
                    let second: String = ctx.interrupt("second?")?;
                    Ok(Words::update().seen([first, second]))
                }
            };
            StateGraph::new().node("asks", asks).edge(START, "asks")
        };
        let graph = graph_of(kind, build).checkpointer(MemorySaver::new());
        let mut outcome = graph.invoke(Words::update()).thread("t").await.unwrap();
        let mut asked = Vec::new();
        for answer in ["1", "2", "3", "4"] {
            let open = open_interrupts(&graph, &outcome).await;
            asked.push(open[0].value.as_str().unwrap().to_owned());
            outcome = graph.resume(answer).thread("t").await.unwrap();
        }
        assert_eq!(asked, ["first?", "second?", "first?", "second?"], "{kind}");
        assert_eq!(text(outcome.output()), "3 4", "{kind}");
    }
}

#[tokio::test]
async fn several_answers_may_be_refused_together_and_nothing_after_that_counts() {
    async fn asks(ctx: Ctx) -> Result<WordsUpdate> {
        let answers: Vec<_> = ["a", "b", "c"].map(|key| ctx.interrupt_as::<u32>(key, key)).into();
        let mut sum = Vec::new();
        let mut refused = None;
        for (key, answer) in ["a", "b", "c"].into_iter().zip(answers) {
            let answer = answer?;
            if answer > 9 {
                refused = Some(ctx.refuse_as(key, format!("{key} is too large")));
            }
            sum.push(answer.to_string());
        }
        if refused.is_some() {
            // None of these has an effect: the attempt is over.
            let _ = (ctx.refuse_as("a", "again"), ctx.refuse("last"));
            let _ = ctx.interrupt::<u32>("and now?");
            let _ = ctx.interrupt_as::<String>("b", "b");
            let _ = ctx.interrupt_as::<String>("c", json!([1]));
        }
        Ok(Words::update().seen([sum.join("+")]))
    }
    for kind in KINDS.into_iter().filter(|kind| *kind != "handler") {
        let build = || StateGraph::new().node("asks", asks).edge(START, "asks");
        let graph = graph_of(kind, build).checkpointer(MemorySaver::new());
        let asked = graph.invoke(Words::update()).thread("t").await.unwrap();
        let answers = asked.interrupts().iter().zip([10, 2, 30]).map(|(open, n)| (open.id.unwrap(), n));
        let again = graph.resume_many(answers).thread("t").await.unwrap();
        let open = open_interrupts(&graph, &again).await;
        let shown = open.iter().map(|open| {
            let reason = open.replaces.as_ref().unwrap().reason.clone().unwrap();
            (open.key.clone().unwrap(), reason)
        });
        let shown: Vec<_> = shown.collect();
        let expected = [("a", "a is too large"), ("c", "c is too large")];
        assert_eq!(shown, expected.map(|(key, why)| (key.to_owned(), why.to_owned())), "{kind}");
        // The other question stays open as it is.
        let one = graph.resume_many([(open[1].id.unwrap(), 3)]).thread("t").await.unwrap();
        assert_eq!(open_interrupts(&graph, &one).await, open[..1], "{kind}");
        let done = graph.resume(1).thread("t").await.unwrap();
        assert_eq!(text(done.output()), "1+2+3", "{kind}");
    }
}

#[tokio::test]
async fn a_refusal_without_an_answer_is_an_error_that_says_so() {
    type Act = fn(&Ctx) -> Result<(), BoxError>;
    let acts: [(Act, &str); 4] = [
        (|ctx| Err(ctx.refuse("no").into()), "before it took one"),
        (
            |ctx| {
                let _ = ctx.refuse("no");
                Ok(())
            },
            "before it took one",
        ),
        (|ctx| Err(ctx.refuse_as("nothing", "no").into()), "the key \"nothing\""),
        (
            |ctx| {
                let _ = ctx.interrupt_as::<bool>("open", "open?");
                Err(ctx.refuse_as("open", "no").into())
            },
            "the key \"open\"",
        ),
    ];
    for kind in ["plain", "eager", "host"] {
        for (act, says) in acts {
            let runs = Arc::new(AtomicUsize::new(0));
            let build = || {
                let runs = Arc::clone(&runs);
                let node = move |ctx: Ctx| {
                    runs.fetch_add(1, SeqCst);
                    std::future::ready(act(&ctx).map(|()| Words::update()))
                };
                StateGraph::new().node("acts", node.retry(RetryPolicy::attempts(3))).edge(START, "acts")
            };
            let graph = graph_of(kind, build).checkpointer(MemorySaver::new());
            let error = graph.invoke(Words::update()).thread("t").await.unwrap_err();
            assert_eq!(error.code(), Code::NothingToRefuse, "{kind}");
            assert!(error.to_string().contains(says), "{kind}: {error}");
            assert_eq!(runs.load(SeqCst), 1, "{kind}: no further attempt");
            assert!(stored_interrupts(&graph).await.is_empty(), "{kind}");
        }
    }
}

#[tokio::test]
async fn an_answer_of_an_earlier_attempt_is_not_the_last_one() {
    let tries = Arc::new(AtomicUsize::new(0));
    let node = move |ctx: Ctx| {
        let first = tries.fetch_add(1, SeqCst) < 2;
        async move {
            if first {
                let _: String = ctx.interrupt("name?")?;
                return Err(BoxError::from("try again"));
            }
            Err::<WordsUpdate, _>(ctx.refuse("none was taken").into())
        }
    };
    let node = node.retry(RetryPolicy::attempts(2));
    let graph = StateGraph::new().node("asks", node).edge(START, "asks").compile().unwrap();
    let graph = graph.services(Clock::default()).checkpointer(MemorySaver::new());
    graph.invoke(Words::update()).thread("t").await.unwrap();
    let error = graph.resume("ada").thread("t").await.unwrap_err();
    assert_eq!(error.code(), Code::NothingToRefuse);
}

/// A refusal counts more than other problems of the attempt: otherwise the next attempt would get the answer.
#[tokio::test]
async fn an_answer_is_refused_although_another_one_has_the_wrong_type() {
    async fn asks(ctx: Ctx) -> Result<WordsUpdate> {
        let (by, amount) =
            (ctx.interrupt_as::<String>("by", "who?"), ctx.interrupt_as::<u32>("amount", "how much?"));
        let by = by?;
        if by != "grace" {
            return Err(ctx.refuse_as("by", "not you").into());
        }
        Ok(Words::update().seen([format!("{by} {}", amount?)]))
    }
    for kind in KINDS.into_iter().filter(|kind| *kind != "handler") {
        let build = || StateGraph::new().node("asks", asks).edge(START, "asks");
        let graph = graph_of(kind, build).checkpointer(MemorySaver::new());
        let asked = graph.invoke(Words::update()).thread("t").await.unwrap();
        let answers = asked.interrupts().iter().zip([json!("ada"), json!("all of it")]);
        let answers = answers.map(|(open, answer)| (open.id.unwrap(), answer));
        let again = graph.resume_many(answers).thread("t").await.unwrap();
        assert_eq!(open_interrupts(&graph, &again).await[0].key.as_deref(), Some("by"), "{kind}");
        // The other problem is found by the next attempt.
        let wrong = graph.resume("grace").thread("t").await.unwrap_err();
        assert_eq!(wrong.code(), Code::BadAnswer, "{kind}");
        let done = graph.resume(7).thread("t").await.unwrap();
        assert_eq!(text(done.output()), "grace 7", "{kind}");
    }
}

#[tokio::test]
async fn the_stream_shows_the_reason() {
    for kind in KINDS.into_iter().filter(|kind| *kind != "handler") {
        let graph = graph_of(kind, || approval(Ending::Returns, &Arc::default()));
        let graph = graph.checkpointer(MemorySaver::new());
        graph.invoke(Words::update()).thread("t").await.unwrap();
        let mut events = graph.resume("ada").thread("t").subgraphs().views([View::Tasks]).stream();
        let mut voided = Vec::new();
        while let Some(event) = events.next().await {
            if let EventKind::AnswerVoided { .. } = &event.kind {
                let json: Value = serde_json::to_value(&event).unwrap();
                voided.push((json["question"]["reason"].clone(), json["asks"].clone()));
            }
        }
        assert_eq!(voided, [(json!("ada may not approve"), json!("who approves?"))], "{kind}");
    }
}

/// A host that gives a reply of another task, as a forger would.
#[derive(Clone, Default)]
struct Forger {
    refusal: Arc<Mutex<Option<Value>>>,
}

#[async_trait::async_trait]
impl Host for Forger {
    async fn run(&self, call: TaskCall) -> Result<TaskReply, BoxError> {
        let graph = approval(Ending::Returns, &Arc::default()).compile()?;
        let mut reply = serde_json::to_value(graph.run_task(call).await?)?;
        let mut refusal = self.refusal.lock().unwrap();
        match &*refusal {
            Some(refusal) => reply["reply"] = refusal.clone(),
            None if reply["reply"].get("RefusesAnswers").is_some() => *refusal = Some(reply["reply"].clone()),
            None => {}
        }
        Ok(serde_json::from_value(reply)?)
    }
}

#[tokio::test]
async fn a_host_cannot_refuse_an_answer_that_was_not_given() {
    let forger = Forger::default();
    let graph = approval(Ending::Returns, &Arc::default()).compile().unwrap().host(forger.clone());
    let graph = graph.checkpointer(MemorySaver::new());
    graph.invoke(Words::update()).thread("t").await.unwrap();
    graph.resume("ada").thread("t").await.unwrap();
    assert!(forger.refusal.lock().unwrap().is_some(), "the refusal was a reply of its own kind");
    let error = graph.invoke(Words::update()).thread("u").await.unwrap_err();
    assert_eq!(error.code(), Code::Host);
    assert!(error.to_string().contains("was not given"), "{error}");

    *forger.refusal.lock().unwrap() = Some(json!({ "OfALaterRelease": [] }));
    let error = graph.invoke(Words::update()).thread("v").await.unwrap_err();
    assert_eq!(error.code(), Code::Host);
    assert!(error.to_string().contains("OfALaterRelease"), "an unknown reply is named: {error}");
}
