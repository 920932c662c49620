//! Channels: how the writes of one superstep merge, and how long a value lives.

use agentgraph::Code;
use agentgraph::json_state::{JsonChannels, JsonReducer, JsonUpdate};
use agentgraph::prelude::*;
use agentgraph::state::Lifetime;
use serde::{Deserialize, Serialize};
use serde_json::json;

#[derive(State, Serialize, Deserialize, Clone, Debug, Default, PartialEq)]
struct Desk {
    plain: u32,
    #[reduce(append)]
    list: Vec<u32>,
    #[reduce(last)]
    last: String,
    #[reduce(append)]
    #[channel(run)]
    said: Vec<String>,
    #[reduce(last)]
    #[channel(ephemeral)]
    flash: u32,
    #[reduce(last)]
    #[channel(untracked)]
    handle: u32,
}

type Write = fn() -> DeskUpdate;

/// Builds a graph of two nodes that run in parallel.
fn in_parallel(first: Write, second: Write) -> CompiledGraph<Desk> {
    let graph = StateGraph::new()
        .node("first", move || std::future::ready(first()))
        .node("second", move || std::future::ready(second()));
    graph.edge(START, "first").edge(START, "second").compile().unwrap()
}

async fn run_both(first: Write, second: Write) -> Result<Desk, agentgraph::Error> {
    Ok(in_parallel(first, second).invoke(Desk::update()).await?.output().clone())
}

#[tokio::test]
async fn two_writers_of_a_plain_field_are_an_error_that_names_field_nodes_and_remedy() {
    let error = run_both(|| Desk::update().plain(1), || Desk::update().plain(2)).await.unwrap_err();
    assert_eq!(error.code(), Code::ConcurrentUpdate);
    assert_eq!(
        error.to_string(),
        "E_CONCURRENT_UPDATE: nodes `first` and `second` wrote `plain` in the same superstep: give the field a reducer, \
         such as `#[reduce(last)]`, or let the nodes run one after the other"
    );
    assert!(error.state::<Desk>().is_none_or(|desk| *desk == Desk::default()), "never a half-merged state");
}

#[tokio::test]
async fn two_tasks_of_one_node_are_two_writers() {
    async fn split() -> Command<Desk> {
        Command::new().goto([Dispatch::new("work", 1), Dispatch::new("work", 2)])
    }
    async fn work(Input(n): Input<i32>) -> DeskUpdate {
        Desk::update().plain(n as u32)
    }
    let graph =
        StateGraph::new().node("split", split).node("work", work).edge(START, "split").compile().unwrap();
    let error = graph.invoke(Desk::update()).await.unwrap_err();
    assert!(error.to_string().contains("two tasks of node `work` wrote `plain`"), "{error}");
}

#[tokio::test]
async fn sequential_nodes_may_write_a_plain_field() {
    let graph = StateGraph::new()
        .node("a", || async { Desk::update().plain(1) })
        .node("b", |desk: Snapshot<Desk>| async move { Desk::update().plain(desk.plain + 1) });
    let graph = graph.edge(START, "a").edge("a", "b").compile().unwrap();
    assert_eq!(graph.invoke(Desk::update()).await.unwrap().output().plain, 2);
}

#[tokio::test]
async fn an_overwrite_wins_over_other_writes_in_either_order() {
    let overwrite: Write = || Desk::update().overwrite_list(vec![9]).last("over");
    let append: Write = || Desk::update().list([1, 2]);
    for (first, second) in [(overwrite, append), (append, overwrite)] {
        let graph = in_parallel(first, second);
        let outcome = graph.invoke(Desk::update().list([7])).await.unwrap();
        assert_eq!((&outcome.output().list[..], &outcome.output().last[..]), (&[9][..], "over"));
    }
}

#[tokio::test]
async fn two_overwrites_are_an_error() {
    let overwrite: Write = || Desk::update().overwrite_list(vec![9]);
    let error = run_both(overwrite, overwrite).await.unwrap_err();
    assert_eq!(error.code(), Code::ConcurrentUpdate);
    assert!(error.to_string().contains("nodes `first` and `second` overwrote `list`"), "{error}");
}

#[tokio::test]
async fn last_means_last_in_task_order_not_in_time() {
    let graph = StateGraph::new()
        .node("first", || async {
            crate::common::poll::pending_for(4).await;
            Desk::update().last("first").list([1])
        })
        .node("second", || async { Desk::update().last("second").list([2]) });
    let graph = graph.edge(START, "first").edge(START, "second").compile().unwrap();
    let outcome = graph.invoke(Desk::update()).await.unwrap();
    assert_eq!((&outcome.output().last[..], &outcome.output().list[..]), ("second", &[1, 2][..]));
}

#[tokio::test]
async fn input_goes_through_the_reducers_and_never_replaces_the_state() {
    let graph = in_parallel(Desk::update, Desk::update).checkpointer(MemorySaver::new());
    graph.invoke(Desk::update().list([1]).plain(5)).thread("t").await.unwrap();
    let outcome = graph.invoke(Desk::update().list([2])).thread("t").await.unwrap();
    assert_eq!((&outcome.output().list[..], outcome.output().plain), (&[1, 2][..], 5));
}

#[tokio::test]
async fn a_run_channel_is_reset_with_the_input_of_the_next_run_and_kept_on_a_resume() {
    async fn asks(ctx: Ctx) -> Result<DeskUpdate> {
        let answer: String = ctx.interrupt("?")?;
        Ok(Desk::update().said([answer]))
    }
    let graph = StateGraph::new().node("asks", asks).edge(START, "asks").compile().unwrap();
    let graph = graph.checkpointer(MemorySaver::new());
    for n in 0..2 {
        graph.invoke(Desk::update().said([format!("hello {n}")]).list([n])).thread("t").await.unwrap();
        let outcome = graph.resume("yes").thread("t").await.unwrap();
        assert_eq!(outcome.output().said, [format!("hello {n}"), "yes".into()]);
    }
    let history = graph.history("t").await.unwrap();
    let said: Vec<usize> = history.iter().map(|one| one.values.said.len()).collect();
    assert_eq!(said, [2, 1, 2, 1], "reset and input are one commit");
    assert_eq!(history[0].values.list, [0, 1]);
}

/// Builds a loop of four supersteps. Each notes the flash that it sees; the first two write one.
fn flashing() -> CompiledGraph<Desk> {
    async fn sees(desk: Snapshot<Desk>) -> DeskUpdate {
        let update = Desk::update().list([desk.flash]);
        if desk.list.len() % 4 < 2 { update.flash(10 + desk.list.len() as u32) } else { update }
    }
    let more = |desk: &Desk| if desk.list.len().is_multiple_of(4) { END } else { "sees" };
    StateGraph::new()
        .node("sees", sees)
        .edge(START, "sees")
        .branch("sees", more, ["sees", END])
        .compile()
        .unwrap()
}

#[tokio::test]
async fn an_ephemeral_channel_is_read_in_the_next_superstep_only() {
    let outcome = flashing().invoke(Desk::update().flash(5)).await.unwrap();
    assert_eq!(outcome.output().list, [5, 10, 11, 0]);
}

#[tokio::test]
async fn an_ephemeral_channel_behaves_the_same_if_each_superstep_is_its_own_call() {
    let graph = flashing().checkpointer(MemorySaver::new());
    let mut outcome = graph.invoke(Desk::update().flash(5)).thread("t").max_supersteps(1).await.unwrap();
    while let Outcome::Stopped { .. } = outcome {
        outcome = graph.proceed().thread("t").max_supersteps(1).await.unwrap();
    }
    assert_eq!(outcome.output().list, [5, 10, 11, 0]);
    assert!(
        graph.history("t").await.unwrap().iter().any(|one| one.values.flash == 11),
        "the flash is stored between the calls"
    );
}

#[tokio::test]
async fn an_ephemeral_channel_does_not_reach_the_next_run() {
    let graph = StateGraph::new()
        .node("a", |desk: Snapshot<Desk>| async move { Desk::update().list([desk.flash]).flash(3) })
        .edge(START, "a")
        .compile()
        .unwrap()
        .checkpointer(MemorySaver::new());
    graph.invoke(Desk::update()).thread("t").await.unwrap();
    assert_eq!(graph.invoke(Desk::update()).thread("t").await.unwrap().output().list, [0, 0]);
}

#[tokio::test]
async fn an_untracked_channel_is_read_in_the_run_and_never_stored() {
    let graph = StateGraph::new()
        .node("a", || async { Desk::update().handle(77) })
        .node("b", |desk: Snapshot<Desk>| async move { Desk::update().list([desk.handle]) })
        .edge(START, "a")
        .edge("a", "b")
        .compile()
        .unwrap()
        .checkpointer(MemorySaver::new());
    let outcome = graph.invoke(Desk::update()).thread("t").await.unwrap();
    assert_eq!((outcome.output().handle, &outcome.output().list[..]), (77, &[77][..]));
    assert_eq!(graph.state("t").await.unwrap().unwrap().values.handle, 0);
    let stopped = graph.invoke(Desk::update()).thread("t").max_supersteps(1).await.unwrap();
    assert_eq!(stopped.output().handle, 77);
    assert_eq!(graph.proceed().thread("t").await.unwrap().output().list, [77, 0]);
}

fn schema() -> JsonChannels {
    JsonChannels::new()
        .channel("n", json!(0), JsonReducer::Once)
        .channel("log", json!([]), JsonReducer::Append)
        .channel("by_name", json!({}), JsonReducer::Merge)
        .with_lifetime("said", json!(null), JsonReducer::Last, Lifetime::Run)
}

#[tokio::test]
async fn a_json_state_runs_stops_and_resumes_like_any_other() {
    async fn count(state: Snapshot<JsonState>) -> JsonUpdate {
        let n = state["n"].as_u64().unwrap();
        JsonUpdate::new()
            .set("n", n + 1)
            .set("log", format!("saw {n}"))
            .set("by_name", json!({ format!("k{}", n % 2): n }))
    }
    async fn ask(ctx: Ctx) -> Result<JsonUpdate> {
        let answer: serde_json::Value = ctx.interrupt("more?")?;
        Ok(JsonUpdate::new().set("said", answer))
    }
    let graph = StateGraph::with_schema(schema()).node("count", count).node("ask", ask).edge(START, "count");
    let graph = graph.edge("count", "ask").branch(
        "ask",
        |state: &JsonState| if state["said"] == json!("yes") { "count" } else { END },
        ["count", END],
    );
    let graph = graph.compile().unwrap().checkpointer(MemorySaver::new());
    graph.invoke(JsonUpdate::new().set("n", 4)).thread("t").await.unwrap();
    graph.resume("yes").thread("t").await.unwrap();
    let outcome = graph.resume(json!({ "no": 1 })).thread("t").await.unwrap();
    let expected = json!({
        "n": 6, "log": ["saw 4", "saw 5"], "by_name": { "k0": 4, "k1": 5 }, "said": { "no": 1 },
    });
    assert_eq!(outcome.output().to_value(), expected);
    assert_eq!(graph.state("t").await.unwrap().unwrap().values.to_value(), expected);
    let next = graph.invoke(JsonUpdate::new()).thread("t").max_supersteps(0).await.unwrap();
    assert_eq!(next.output()["said"], json!(null), "the next run resets a run channel");
}

#[tokio::test]
async fn an_unknown_key_of_a_json_state_is_an_error_that_names_it_and_the_node() {
    let graph = |key: &'static str| {
        let node = move || std::future::ready(JsonUpdate::new().set(key, 1));
        StateGraph::with_schema(schema()).node("a", node).edge(START, "a").compile().unwrap()
    };
    for (key, near) in [("lag", "; did you mean `log`?"), ("whatever", "")] {
        let error = graph(key).invoke(JsonUpdate::new()).await.unwrap_err();
        assert_eq!((error.code(), error.node()), (Code::UnknownChannel, Some("a")));
        assert!(error.to_string().contains(&format!("there is no channel `{key}`{near}")), "{error}");
    }
    let error = graph("n").invoke(JsonUpdate::new().set("m", 1)).await.unwrap_err();
    assert_eq!(error.code(), Code::UnknownChannel, "{error}");
    let error = graph("by_name").invoke(JsonUpdate::new()).await.unwrap_err();
    assert_eq!(error.code(), Code::BadValue, "{error}");
}

#[tokio::test]
async fn two_writers_of_a_single_writer_json_key_are_an_error() {
    let node = || std::future::ready(JsonUpdate::new().set("n", 1));
    let graph =
        StateGraph::with_schema(schema()).node("a", node).node("b", node).edge(START, "a").edge(START, "b");
    let error = graph.compile().unwrap().invoke(JsonUpdate::new()).await.unwrap_err();
    assert!(error.to_string().contains("nodes `a` and `b` wrote `n`"), "{error}");
    assert!(error.message().contains("give the key another reducer, such as `JsonReducer::Last`"), "{error}");
}

#[tokio::test]
async fn a_kept_snapshot_does_not_see_later_steps() {
    let (give, mut take) = tokio::sync::mpsc::unbounded_channel();
    let keeps = move |desk: Snapshot<Desk>| {
        give.send(desk.clone()).unwrap();
        std::future::ready(Desk::update().list([1]))
    };
    let graph = StateGraph::new().node("keeps", keeps).edge(START, "keeps").compile().unwrap();
    let outcome = graph.invoke(Desk::update()).await.unwrap();
    assert_eq!(outcome.output().list, [1]);
    assert!(take.recv().await.unwrap().list.is_empty());
}

#[tokio::test]
async fn changes_to_an_owned_state_are_discarded() {
    async fn owns(mut desk: Desk) -> DeskUpdate {
        desk.list.push(99);
        Desk::update().plain(desk.list.len() as u32)
    }
    let graph = StateGraph::new().node("owns", owns).edge(START, "owns").compile().unwrap();
    let outcome = graph.invoke(Desk::update()).await.unwrap();
    assert_eq!((outcome.output().plain, outcome.output().list.len()), (1, 0));
}
