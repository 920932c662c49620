//! A node that takes an input is reached only by dispatches. `compile()` refuses every other way that it can
//! see; the run refuses the rest.

use agentgraph::graph::ProblemKind;
use agentgraph::json_state::JsonChannels;
use agentgraph::node::{InputError, Requirement};
use agentgraph::prelude::*;
use agentgraph::{Code, DependencyGraph, Subgraph, all};

use crate::common::words::{Words, WordsUpdate, said, says, text, words_of};

async fn work(Input(item): Input<u32>) -> WordsUpdate {
    Words::update().seen([format!("work {item}")])
}

async fn perhaps(item: Option<Input<u32>>) -> WordsUpdate {
    Words::update().seen([item.map_or("nothing".to_owned(), |Input(item)| format!("item {item}"))])
}

#[derive(Route)]
enum Next {
    Work,
    Again(u32),
}

/// Returns the problems of an error, each with its line counted from `from`.
fn problems_with_lines(error: &agentgraph::CompileError, from: u32) -> Vec<String> {
    let line = |problem: &agentgraph::graph::Problem| {
        format!("{} (+{})", problem.kind, problem.place.unwrap().line() - from)
    };
    error.problems().iter().map(line).collect()
}

#[test]
fn every_way_without_an_input_is_reported_with_its_place_and_a_remedy() {
    let from = line!();
    let error = StateGraph::new()
        .node("plan", says("p"))
        .node("other", says("o"))
        .node("work", work)
        .edge(START, "plan")
        .edge(START, "work")
        .edge("plan", "other")
        .edge(["plan", "other"], "work")
        .route("other", |_: &Words| Next::Work)
        .route("plan", |_: &Words| vec![Next::Again(1)])
        .node("again", work)
        .on_limit("work")
        .compile()
        .unwrap_err();
    let remedy = "and `work` takes an `Input<u32>`: dispatch to it (`Dispatch::new`, or a route variant with a payload), or \
                  let it take an `Option<Input<u32>>`";
    // Each call of the builder is one problem. Both routes list both variants.
    let expected =
        [("an `edge`", 6), ("a `join`", 8), ("a `route`", 9), ("a `route`", 10), ("an `on_limit`", 12)];
    let expected =
        expected.map(|(what, at)| format!("{what} leads to `work` without an input, {remedy} (+{at})"));
    assert_eq!(problems_with_lines(&error, from), expected);
}

#[tokio::test]
async fn ways_that_carry_or_may_carry_an_input_compile() {
    let graph = StateGraph::new()
        .node("plan", (|| async { said("plan").also_goto(Dispatch::new("work", 1_u32)) }).targets(["work"]))
        .node("work", work)
        .node("again", work.layer(tower_layer::layer_fn(|inner| inner)))
        .edge(START, "plan")
        .branch("plan", |_: &Words| vec![Dispatch::new("work", 2_u32)], ["work"])
        .route("plan", |_: &Words| Next3::Again(3))
        .compile()
        .unwrap();
    let mut ran = graph.invoke(Words::update()).await.unwrap().into_finished().unwrap().seen;
    ran.sort();
    assert_eq!(ran, ["plan", "work 1", "work 2", "work 3"]);

    #[derive(Route)]
    enum Next3 {
        Again(u32),
    }
}

#[test]
fn layers_and_policies_do_not_hide_the_input_of_a_node() {
    let node = work.layer(tower_layer::layer_fn(|inner| inner)).retry(RetryPolicy::attempts(2)).defer();
    let error = StateGraph::<Words>::new().node("work", node).edge(START, "work").compile().unwrap_err();
    let expected = ProblemKind::NoInput { what: "edge", node: "work".into(), input: "u32" };
    assert_eq!(error.problems()[0].kind, expected);
}

#[tokio::test]
async fn an_optional_input_is_none_where_there_is_none() {
    let graph = StateGraph::new()
        .node("perhaps", perhaps)
        .edge(START, "perhaps")
        .branch(START, |_: &Words| Dispatch::new("perhaps", 7_u32), ["perhaps"])
        .compile()
        .unwrap();
    assert_eq!(words_of(&graph).await, "nothing item 7");
}

#[tokio::test]
async fn an_optional_input_of_another_type_is_an_error() {
    let graph = StateGraph::new()
        .node("perhaps", perhaps)
        .branch(START, |_: &Words| Dispatch::new("perhaps", "seven".to_owned()), ["perhaps"])
        .compile()
        .unwrap();
    let error = graph.invoke(Words::update()).await.unwrap_err();
    assert_eq!((error.code(), error.node()), (Code::BadInput, Some("perhaps")));
}

#[tokio::test]
async fn a_goto_or_a_branch_without_input_fails_the_run_and_names_the_node() {
    let goes = || async { said("plan").goto("work") };
    let by_command =
        StateGraph::new().node("plan", goes.targets(["work"])).node("work", work).edge(START, "plan");
    let by_branch = StateGraph::new().node("work", work).branch(START, |_: &Words| "work", ["work"]);
    for graph in [by_command, by_branch, by_edit()] {
        let error = graph.compile().unwrap().invoke(Words::update()).await.unwrap_err();
        assert_eq!((error.code(), error.node()), (Code::BadInput, Some("work")));
        assert!(error.to_string().contains("an `Input<u32>` and was not reached by a dispatch"), "{error}");
    }
}

/// Returns a graph in which a node adds an edge to `work` during the run.
fn by_edit() -> StateGraph<Words> {
    async fn adds(ctx: Ctx) -> Result<WordsUpdate> {
        ctx.edits().add_edge("plan", "work")?;
        Ok(Words::update().seen(["plan"]))
    }
    StateGraph::new().node("plan", adds).node("work", work).edge(START, "plan").branch(
        "plan",
        |_: &Words| Vec::<Dispatch>::new(),
        ["work"],
    )
}

/// An extractor that declares no requirement.
struct Silent(Option<u32>);

impl FromTask<Words> for Silent {
    type Error = InputError;
    fn from_task(task: &Task<'_, Words>) -> Result<Self, InputError> {
        Ok(Silent(Input::<u32>::from_task(task).ok().map(|Input(item)| item)))
    }
}

/// An extractor that declares its requirement.
struct Declares(u32);

impl FromTask<Words> for Declares {
    type Error = InputError;
    fn from_task(task: &Task<'_, Words>) -> Result<Self, InputError> {
        Input::from_task(task).map(|Input(item)| Declares(item))
    }
    fn requirement() -> Option<Requirement> {
        Some(Requirement::input::<u32>())
    }
}

#[tokio::test]
async fn a_custom_extractor_is_checked_only_if_it_declares_its_requirement() {
    async fn silent(Silent(item): Silent) -> WordsUpdate {
        Words::update().seen([format!("{item:?}")])
    }
    async fn declares(Declares(item): Declares) -> WordsUpdate {
        Words::update().seen([item.to_string()])
    }
    let graph = StateGraph::new().node("silent", silent).edge(START, "silent").compile().unwrap();
    assert_eq!(words_of(&graph).await, "None");
    let error = StateGraph::<Words>::new().node("declares", declares).edge(START, "declares").compile();
    assert!(error.unwrap_err().to_string().contains("`declares` takes an `Input<u32>`"));
}

#[tokio::test]
async fn the_input_of_an_embedded_subgraph_is_checked_too() {
    let child = StateGraph::new().node("leaf", says("leaf")).edge(START, "leaf").compile().unwrap();
    let embedded = |child: &CompiledGraph<Words>| -> Subgraph<Words, Words> {
        let input = |Input(item): Input<u32>| Words::update().seen([format!("child {item}")]);
        child.clone().embed(input, |words: Words| Words::update().seen([text(&words)]))
    };
    let error = StateGraph::new().node("sub", embedded(&child)).edge(START, "sub").compile().unwrap_err();
    assert_eq!(
        error.problems()[0].kind,
        ProblemKind::NoInput { what: "edge", node: "sub".into(), input: "u32" }
    );
    let graph = StateGraph::new()
        .node("sub", embedded(&child))
        .branch(START, |_: &Words| Dispatch::new("sub", 5_u32), ["sub"])
        .compile()
        .unwrap();
    assert_eq!(words_of(&graph).await, "child 5 leaf");
}

#[test]
fn graphs_over_json_and_joins_with_policies_are_checked_too() {
    async fn takes(_: Input<String>) {}
    let graph = StateGraph::<agentgraph::JsonState>::with_schema(JsonChannels::new())
        .node("a", || async {})
        .node("b", || async {})
        .node("takes", takes)
        .edge(START, "a")
        .edge(START, "b")
        .edge(all(["a", "b"]).timeout(std::time::Duration::from_secs(1)), "takes");
    let error = graph.compile().unwrap_err();
    let kinds: Vec<_> = error.problems().iter().map(|problem| problem.kind.clone()).collect();
    assert!(matches!(&kinds[..], [ProblemKind::NoInput { what: "join", .. }]), "{error}");
}

#[test]
fn no_node_of_a_dependency_graph_can_take_an_input() {
    async fn ask(Input(item): Input<u32>) -> Result<u32> {
        Ok(item)
    }
    let from = line!();
    let error = DependencyGraph::<u32>::new().node("ask", ask).compile().unwrap_err();
    let problem = "node `ask` takes an `Input<u32>`, and no node of a dependency graph gets one: let it take `Deps` or the \
                   input of the pass";
    assert_eq!(problems_with_lines(&error, from), [format!("{problem} (+1)")]);
}
