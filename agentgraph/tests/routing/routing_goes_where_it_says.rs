//! Routing: the run goes where commands and routers send it. An unknown target is an error, never a silent
//! end.

use agentgraph::node::IntoGoto;
use agentgraph::prelude::*;
use agentgraph::{Code, Goto};

use crate::common::words::{Words, WordsUpdate, said, says, text, words_of};

/// Returns a graph with the nodes `a` to `d`. The given node is `a`; the others write their names.
fn four<M>(a: impl IntoNode<Words, M>) -> StateGraph<Words> {
    StateGraph::new()
        .node("a", a)
        .node("b", says("b"))
        .node("c", says("c"))
        .node("d", says("d"))
        .edge(START, "a")
}

#[tokio::test]
async fn goto_replaces_edges_joins_and_routes() {
    async fn a() -> Command<Words> {
        said("a").goto("d")
    }
    let graph = four(a).edge("a", "b").edge(["a", "d"], "c").branch("a", |_: &Words| "b", ["b"]);
    let outcome = graph.compile().unwrap().invoke(Words::update()).await.unwrap();
    assert_eq!(text(outcome.output()), "a d");
}

#[tokio::test]
async fn also_goto_adds_to_edges_joins_and_routes() {
    async fn a() -> Command<Words> {
        said("a").also_goto("d")
    }
    let graph = four(a).edge("a", "b").branch("a", |_: &Words| "c", ["c"]).edge(["a", "d"], END);
    assert_eq!(words_of(&graph.compile().unwrap()).await, "a b c d");
}

#[tokio::test]
async fn goto_and_also_goto_together_go_to_both_and_not_along_the_edges() {
    async fn a() -> Command<Words> {
        said("a").also_goto("d").goto("c")
    }
    assert_eq!(words_of(&four(a).edge("a", "b").compile().unwrap()).await, "a c d");
}

#[tokio::test]
async fn a_command_without_targets_follows_the_edges_and_one_with_an_empty_list_does_not() {
    async fn plain() -> Command<Words> {
        said("a")
    }
    async fn nowhere() -> Command<Words> {
        said("a").goto(Vec::<Goto>::new())
    }
    assert_eq!(words_of(&four(plain).edge("a", "b").compile().unwrap()).await, "a b");
    assert_eq!(words_of(&four(nowhere).edge("a", "b").compile().unwrap()).await, "a");
}

#[tokio::test]
async fn end_ends_its_own_branch_only() {
    async fn a() -> Command<Words> {
        said("a").goto(END)
    }
    let graph = four(a).edge("a", "b").edge(START, "c").edge("c", "d");
    assert_eq!(words_of(&graph.compile().unwrap()).await, "a c d");
}

#[tokio::test]
async fn a_router_sees_its_own_nodes_update_and_not_its_siblings() {
    let own = |words: &Words| {
        assert_eq!(words.seen, ["input", "a"]);
        "c"
    };
    let graph = four(says("a")).edge(START, "b").branch("a", own, ["c"]).compile().unwrap();
    let outcome = graph.invoke(Words::update().seen(["input"])).await.unwrap();
    assert_eq!(text(outcome.output()), "input a b c");
}

#[tokio::test]
async fn a_router_on_start_sees_the_input() {
    let by_input = |words: &Words| if words.seen.is_empty() { "b" } else { "c" };
    let graph = four(says("a")).branch(START, by_input, ["b", "c"]).compile().unwrap();
    assert_eq!(words_of(&graph).await, "a b");
    let outcome = graph.invoke(Words::update().seen(["x"])).await.unwrap();
    assert_eq!(text(outcome.output()), "x a c");
}

#[tokio::test]
async fn an_edge_and_a_router_to_one_node_run_it_once() {
    let graph = four(says("a")).edge("a", "b").branch("a", |_: &Words| "b", ["b"]).compile().unwrap();
    assert_eq!(words_of(&graph).await, "a b");
}

#[derive(Route)]
enum After {
    B,
    #[route("c")]
    See,
    D(String),
    #[route(end)]
    Over,
}

#[tokio::test]
async fn typed_routes_name_dispatch_and_end() {
    async fn d(Input(word): Input<String>) -> WordsUpdate {
        Words::update().seen([word])
    }
    let after =
        |_: &Words| vec![After::D("one".into()), After::B, After::Over, After::See, After::D("two".into())];
    let graph = StateGraph::new()
        .node("a", says("a"))
        .node("b", says("b"))
        .node("c", says("c"))
        .node("d", d)
        .edge(START, "a")
        .route("a", after)
        .compile()
        .unwrap();
    assert_eq!(words_of(&graph).await, "a b c one two");
}

#[tokio::test]
async fn a_command_takes_a_typed_route_and_a_router_may_return_none() {
    async fn a() -> Command<Words> {
        said("a").goto(After::See)
    }
    assert_eq!(words_of(&four(a).edge("a", "b").compile().unwrap()).await, "a c");
    let none = four(says("a")).route("a", |_: &Words| None::<After>).compile().unwrap();
    assert_eq!(words_of(&none).await, "a");
}

#[tokio::test]
async fn an_unknown_goto_is_an_error_that_names_the_target_the_node_and_the_nearest_name() {
    async fn a() -> Command<Words> {
        said("a").goto("serch")
    }
    let graph = StateGraph::new().node("a", a).node("search", says("s")).edge(START, "a").compile().unwrap();
    let graph = graph.checkpointer(MemorySaver::new());
    let error = graph.invoke(Words::update()).thread("t-9").await.unwrap_err();
    assert_eq!(error.code(), Code::UnknownTarget);
    assert_eq!(
        error.to_string(),
        "E_UNKNOWN_TARGET: node `a`: there is no node `serch` to go to; did you mean `search`? (thread `t-9`)"
    );
    assert_eq!(error.state::<Words>().unwrap(), &Words::default());
}

#[tokio::test]
async fn an_unknown_dispatch_and_start_as_a_target_are_errors() {
    async fn dispatches() -> Command<Words> {
        said("a").goto(Dispatch::new("nobody", 1))
    }
    async fn restarts() -> Command<Words> {
        said("a").goto(START)
    }
    for graph in [four(dispatches), four(restarts)] {
        let error = graph.compile().unwrap().invoke(Words::update()).await.unwrap_err();
        assert_eq!(error.code(), Code::UnknownTarget, "{error}");
    }
}

#[tokio::test]
async fn a_command_may_go_only_to_its_declared_targets() {
    async fn a() -> Command<Words> {
        said("a").goto("d")
    }
    let graph = four(a.targets(["b", "c"])).edge("b", "d").compile().unwrap();
    let error = graph.invoke(Words::update()).await.unwrap_err();
    assert_eq!((error.code(), error.node()), (Code::UnknownTarget, Some("a")));
    let problem =
        "its command went to `d`, which is not among the targets it declared: add it to `.targets([..])`";
    assert_eq!(error.message(), problem);
}

#[tokio::test]
async fn a_branch_may_go_only_to_its_declared_targets() {
    for (target, expected) in [
        ("d", "its branch went to `d`, which is not among the targets it declared: add it to its list"),
        ("nowhere", "there is no node `nowhere` to go to"),
        (END, "its branch went to `__end__`, which is not among the targets it declared: add it to its list"),
    ] {
        let graph = four(says("a")).branch("a", move |_: &Words| target, ["b", "c"]).compile().unwrap();
        let error = graph.invoke(Words::update()).await.unwrap_err();
        assert_eq!(error.code(), Code::UnknownTarget);
        assert_eq!(error.node(), Some("a"));
        assert!(error.to_string().contains(expected), "{error}");
        assert!(
            error.state::<Words>().is_none_or(|words| *words == Words::default()),
            "never a half-merged state"
        );
    }
}

#[tokio::test]
async fn dispatches_run_after_nodes_and_merge_in_the_order_of_their_creation() {
    async fn split() -> Command<Words> {
        let slow_first = [3_u32, 2, 1].map(|polls| Dispatch::new("work", polls).into_goto());
        said("split").goto(slow_first.into_iter().chain(["z".into_goto()]).collect::<Vec<_>>())
    }
    async fn work(Input(polls): Input<u32>) -> WordsUpdate {
        crate::common::poll::pending_for(polls * 3).await;
        Words::update().seen([polls.to_string()])
    }
    let graph = StateGraph::new()
        .node("split", split)
        .node("work", work)
        .node("z", says("z"))
        .node("done", says("done"))
        .edge(START, "split")
        .edge("work", "done")
        .compile()
        .unwrap();
    assert_eq!(words_of(&graph).await, "split z 3 2 1 done");
}

#[tokio::test]
async fn dispatches_of_a_nodes_command_come_before_those_of_its_routes() {
    #[derive(Route)]
    enum More {
        Work(u32),
    }
    async fn split(ctx: Ctx) -> Command<Words> {
        let base = if ctx.node() == "a" { 0 } else { 10 };
        Command::new().also_goto([1, 2].map(|n| Dispatch::new("work", base + n)).to_vec())
    }
    async fn work(Input(n): Input<u32>) -> WordsUpdate {
        Words::update().seen([n.to_string()])
    }
    let base = || StateGraph::new().node("a", split).node("b", split).node("work", work).edge(START, "a");
    let typed = |graph: StateGraph<Words>| graph.route("a", |_: &Words| More::Work(3));
    let named = |graph: StateGraph<Words>| graph.branch("a", |_: &Words| Dispatch::new("work", 3), ["work"]);
    for graph in [typed(base()), named(base())] {
        assert_eq!(words_of(&graph.compile().unwrap()).await, "1 2 3", "a superstep of one task");
    }
    for graph in [typed(base().edge(START, "b")), named(base().edge(START, "b"))] {
        assert_eq!(words_of(&graph.compile().unwrap()).await, "1 2 3 11 12", "a superstep of several");
    }
    for graph in [typed(base().eager()), named(base().eager())] {
        let graph = graph.compile().unwrap();
        let outcome = graph.invoke(Words::update()).max_concurrency(1).await.unwrap();
        assert_eq!(text(outcome.output()), "1 2 3", "no supersteps");
    }
}

#[tokio::test]
async fn an_empty_list_of_dispatches_ends_the_branch() {
    async fn split() -> Command<Words> {
        said("split").goto(Vec::<Dispatch>::new())
    }
    let graph = StateGraph::new()
        .node("split", split)
        .node("work", says("work"))
        .edge(START, "split")
        .edge("split", "work")
        .compile()
        .unwrap();
    assert_eq!(words_of(&graph).await, "split");
}

#[tokio::test]
async fn an_input_that_cannot_be_stored_is_an_error_that_names_the_dispatching_node_and_its_target() {
    struct Handle;
    impl serde::Serialize for Handle {
        fn serialize<S: serde::Serializer>(&self, _: S) -> std::result::Result<S::Ok, S::Error> {
            Err(serde::ser::Error::custom("it is open"))
        }
    }
    async fn hands_on() -> Command<Words> {
        Command::to(Dispatch::new("work", Handle))
    }
    async fn fails() -> Result<WordsUpdate> {
        Err("no".into())
    }
    let alone = || StateGraph::new().node("a", hands_on).node("work", says("work")).edge(START, "a");
    for graph in [alone(), alone().node("late", fails).edge(START, "late")] {
        let graph = graph.compile().unwrap().checkpointer(MemorySaver::new());
        let error = graph.invoke(Words::update()).thread("t").await.unwrap_err();
        assert_eq!((error.code(), error.node()), (Code::Encode, Some("a")));
        assert!(
            error.to_string().contains("the input of its dispatch to `work` cannot be stored: it is open"),
            "{error}"
        );
    }
}

#[tokio::test]
async fn a_missing_or_mistyped_dispatch_input_is_an_error() {
    async fn work(Input(_): Input<u64>) {}
    async fn bare() -> Command<Words> {
        Command::new().goto("work")
    }
    let reached = StateGraph::<Words>::new().node("bare", bare).node("work", work).edge(START, "bare");
    let error = reached.compile().unwrap().invoke(Words::update()).await.unwrap_err();
    assert_eq!((error.code(), error.node()), (Code::BadInput, Some("work")));
    assert!(error.to_string().contains("`Dispatch::new(node, input)`"), "{error}");

    async fn wrong() -> Command<Words> {
        Command::new().goto(Dispatch::new("work", "text"))
    }
    let graph = StateGraph::<Words>::new().node("wrong", wrong).node("work", work).edge(START, "wrong");
    let error = graph.compile().unwrap().invoke(Words::update()).await.unwrap_err();
    assert_eq!((error.code(), error.node()), (Code::BadInput, Some("work")));
    assert!(error.to_string().contains("invalid type: string \"text\", expected u64"), "{error}");
}
