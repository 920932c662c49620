//! Input and output can be narrowed by type. A run reports its stuck joins.

use agentgraph::prelude::*;
use agentgraph::run::Narrow;
use agentgraph::{Code, CompiledGraph, EventKind, Outcome, View, any};
use futures_util::StreamExt;
use serde::{Deserialize, Serialize};

#[derive(State, Serialize, Deserialize, Clone, Debug, Default, PartialEq)]
struct Triage {
    question: String,
    draft: String,
    answer: String,
}

struct Question(&'static str);

impl From<Question> for TriageUpdate {
    fn from(Question(text): Question) -> Self {
        Triage::update().question(text)
    }
}

#[derive(Debug, PartialEq)]
struct Answer(String);

impl From<Triage> for Answer {
    fn from(state: Triage) -> Self {
        Answer(state.answer)
    }
}

async fn draft(state: Snapshot<Triage>) -> TriageUpdate {
    Triage::update().draft(format!("{}?", state.question))
}

async fn answer(ctx: Ctx, state: Snapshot<Triage>) -> Result<TriageUpdate> {
    let by: String = ctx.interrupt("who answers?")?;
    Ok(Triage::update().answer(format!("{} says {by}", state.draft)))
}

fn asking() -> (CompiledGraph<Triage>, Narrow<Triage, Question, Answer>) {
    let graph = StateGraph::new().node("draft", draft).node("answer", answer);
    let graph = graph.edge(START, "draft").edge("draft", "answer").compile().unwrap();
    let graph = graph.checkpointer(MemorySaver::new());
    let narrow = graph.narrow();
    (graph, narrow)
}

#[tokio::test]
async fn a_narrowed_graph_uses_its_input_and_output_types_in_every_call() {
    let (graph, narrow) = asking();
    let asked = narrow.invoke(Question("tea")).thread("t").max_supersteps(1).await.unwrap();
    assert!(
        matches!(asked, Outcome::Stopped { output: Answer(ref text), .. } if text.is_empty()),
        "{asked:?}"
    );
    let asked = narrow.proceed().thread("t").await.unwrap();
    let id = asked.interrupts()[0].id.unwrap();
    assert!(asked.checkpoint().is_some());
    let refused = narrow.clone().resume(1).thread("t").await.unwrap_err();
    assert_eq!(refused.code(), Code::BadAnswer);
    let answered = narrow.resume_many([(id, "Ada")]).thread("t").await.unwrap();
    assert_eq!(answered.into_finished().unwrap(), Answer("tea? says Ada".into()));
    let whole = graph.state("t").await.unwrap().unwrap().values;
    assert_eq!(whole.question, "tea");
}

#[tokio::test]
async fn a_narrowed_call_streams_the_whole_state() {
    let (graph, _) = asking();
    let call = graph.invoke(Question("tea")).output::<Answer>().thread("t").views([View::Values]);
    let events: Vec<_> = call.stream().collect().await;
    let last = events.iter().rev().find_map(|event| match &event.kind {
        EventKind::Values(state) => Some(state.draft.clone()),
        _ => None,
    });
    assert_eq!(last.as_deref(), Some("tea?"));
}

#[tokio::test]
async fn mapping_an_outcome_changes_only_its_output() {
    let (graph, _) = asking();
    let waits = graph.invoke(Question("tea")).thread("t").await.unwrap();
    let run = waits.run();
    let checkpoint = waits.checkpoint();
    let count = waits.interrupts().len();
    let mapped = waits.map(|state| state.draft.len());
    assert_eq!((mapped.run(), mapped.checkpoint(), mapped.interrupts().len()), (run, checkpoint, count));
    assert_eq!(*mapped.output(), 4);
}

async fn nothing() {}

/// Returns a graph that ends with a half-full join into `c`.
fn with_stuck_join(strict: bool) -> StateGraph<Triage> {
    let graph = StateGraph::new().node("a", draft).node("b", nothing).node("c", nothing);
    let graph = graph.branch(START, |_: &Triage| "a", ["a", "b"]).edge(["a", "b"], "c");
    if strict { graph.fail_on_stuck_joins() } else { graph }
}

#[tokio::test]
async fn a_stuck_join_is_reported_or_optionally_an_error() {
    let lenient = with_stuck_join(false).compile().unwrap().invoke(Question("tea")).await.unwrap();
    let Outcome::Finished { stuck, .. } = lenient else { panic!("{lenient:?}") };
    assert_eq!((&*stuck[0].to, &*stuck[0].arrived[0], &*stuck[0].missing[0]), ("c", "a", "b"));
    let strict = with_stuck_join(true).compile().unwrap().checkpointer(MemorySaver::new());
    let error = strict.invoke(Question("tea")).thread("t").await.unwrap_err();
    assert_eq!((error.code(), error.thread()), (Code::StuckJoin, Some("t")));
    assert!(error.to_string().contains("join into `c` still waits for `b` after `a`"), "{error}");
    assert_eq!(error.state::<Triage>().unwrap().draft, "tea?");
    assert_eq!(strict.state("t").await.unwrap().unwrap().values.draft, "tea?");
}

#[tokio::test]
async fn a_join_that_fired_or_has_no_arrivals_is_not_stuck() {
    let graph = StateGraph::new().node("a", nothing).node("b", nothing).node("c", nothing);
    let graph = graph.branch(START, |_: &Triage| "a", ["a", "b"]).edge(any(["a", "b"]), "c");
    graph
        .fail_on_stuck_joins()
        .compile()
        .unwrap()
        .invoke(Question("tea"))
        .await
        .unwrap()
        .into_finished()
        .unwrap();
    let graph = StateGraph::new().node("a", nothing).node("b", nothing).node("c", nothing).node("d", nothing);
    let graph = graph.branch(START, |_: &Triage| "d", ["a", "b", "d"]).edge(["a", "b"], "c");
    graph
        .fail_on_stuck_joins()
        .compile()
        .unwrap()
        .invoke(Question("tea"))
        .await
        .unwrap()
        .into_finished()
        .unwrap();
}
