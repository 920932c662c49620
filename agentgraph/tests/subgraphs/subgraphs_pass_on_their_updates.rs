//! A graph as a node passes on the updates of its own nodes, as one writer, or the result of a function of
//! its final state.

use agentgraph::prelude::*;
use agentgraph::{Code, Durability, JsonState};
use serde::{Deserialize, Serialize};

use crate::common::words::{Words, WordsUpdate, on, says, text, words_of};

fn chain(words: &[&'static str]) -> StateGraph<Words> {
    let mut graph = StateGraph::new();
    let mut before = START;
    for word in words {
        graph = graph.node(*word, says(word)).edge(before, *word);
        before = word;
    }
    graph
}

fn child(words: &[&'static str]) -> CompiledGraph<Words> {
    chain(words).compile().unwrap()
}

#[tokio::test]
async fn a_child_over_the_same_state_passes_on_only_its_own_updates() {
    let graph = StateGraph::new()
        .node("p", says("p"))
        .node("sub", child(&["c1", "c2"]))
        .node("q", says("q"))
        .edge(START, "p")
        .edge("p", "sub")
        .edge("sub", "q")
        .compile()
        .unwrap();
    assert_eq!(words_of(&graph).await, "p c1 c2 q");
    assert_eq!(words_of(&graph.checkpointer(MemorySaver::new())).await, "p c1 c2 q");
}

#[tokio::test]
async fn a_child_reads_the_outer_state() {
    async fn count(words: Snapshot<Words>) -> WordsUpdate {
        Words::update().seen([words.seen.len().to_string()])
    }
    let child = StateGraph::new().node("count", count).edge(START, "count").compile().unwrap();
    let graph = StateGraph::new().node("sub", child).edge(START, "sub").compile().unwrap();
    let input = Words::update().seen(["a", "b"]);
    assert_eq!(text(graph.invoke(input).await.unwrap().output()), "a b 2");
}

#[tokio::test]
async fn parallel_children_merge_in_task_order() {
    let graph = StateGraph::new()
        .node("x", child(&["x1", "x2", "x3"]))
        .node("y", child(&["y1"]))
        .node("z", says("z"))
        .node("j", says("j"))
        .edge(START, "x")
        .edge(START, "y")
        .edge(START, "z")
        .edge(["x", "y", "z"], "j")
        .compile()
        .unwrap();
    assert_eq!(words_of(&graph).await, "x1 x2 x3 y1 z j");
}

#[derive(State, Serialize, Deserialize, Clone, Debug, Default, PartialEq)]
struct Kinds {
    once: u32,
    #[reduce(append)]
    list: Vec<u32>,
    #[reduce(last)]
    last: u32,
    #[reduce(with = add, write = i64)]
    sum: i64,
    #[channel(ephemeral)]
    mood: String,
    #[channel(run)]
    turn: u32,
}

fn add(total: &mut i64, more: i64) {
    *total += more;
}

#[tokio::test]
async fn the_trace_of_a_child_has_the_effect_of_its_updates_in_order() {
    async fn first() -> KindsUpdate {
        Kinds::update().once(1).list([1]).last(1).sum(10).mood("gone")
    }
    async fn second(kinds: Snapshot<Kinds>) -> KindsUpdate {
        assert_eq!((kinds.once, kinds.sum, &*kinds.mood, kinds.turn), (1, 110, "gone", 7));
        Kinds::update().once(2).overwrite_list(vec![5]).last(2).sum(20)
    }
    async fn third() -> KindsUpdate {
        Kinds::update().once(3).list([6, 7]).sum(30).mood("good")
    }
    async fn look(kinds: Snapshot<Kinds>) {
        assert_eq!(kinds.mood, "good");
    }
    let child = StateGraph::new()
        .node("first", first)
        .node("second", second)
        .node("third", third)
        .edge(START, "first")
        .edge("first", "second")
        .edge("second", "third")
        .compile()
        .unwrap();
    let graph = StateGraph::new().node("sub", child).node("look", look).edge(START, "sub");
    let graph = graph.edge("sub", "look").compile().unwrap();
    for (thread, graph) in [(None, graph.clone()), (Some("t"), graph.checkpointer(MemorySaver::new()))] {
        let input = Kinds::update().list([0]).sum(100).turn(7);
        let kinds = on(thread, graph.invoke(input)).await.unwrap().into_finished().unwrap();
        let expected =
            Kinds { once: 3, list: vec![5, 6, 7], last: 2, sum: 160, mood: String::new(), turn: 7 };
        assert_eq!(kinds, expected);
    }
}

#[tokio::test]
async fn an_ephemeral_value_of_an_earlier_superstep_of_a_child_is_not_passed_on() {
    async fn mood() -> KindsUpdate {
        Kinds::update().mood("early")
    }
    async fn nothing() -> KindsUpdate {
        Kinds::update().once(1)
    }
    async fn look(kinds: Snapshot<Kinds>) {
        assert_eq!(kinds.mood, "");
    }
    let child = StateGraph::new().node("mood", mood).node("nothing", nothing).edge(START, "mood");
    let child = child.edge("mood", "nothing").compile().unwrap();
    let graph = StateGraph::new().node("sub", child).node("look", look).edge(START, "sub");
    let graph = graph.edge("sub", "look").compile().unwrap();
    graph.invoke(Kinds::update()).await.unwrap().into_finished().unwrap();
}

#[tokio::test]
async fn a_child_is_one_writer_and_may_clash_with_another() {
    async fn write() -> KindsUpdate {
        Kinds::update().once(1)
    }
    let twice = StateGraph::new().node("a", write).node("b", write).edge(START, "a").edge("a", "b");
    let twice = twice.compile().unwrap();
    let alone = StateGraph::new().node("sub", twice.clone()).edge(START, "sub").compile().unwrap();
    assert_eq!(alone.invoke(Kinds::update()).await.unwrap().output().once, 1);
    let graph = StateGraph::new().node("sub", twice).node("other", write).edge(START, "sub");
    let error = graph.edge(START, "other").compile().unwrap().invoke(Kinds::update()).await.unwrap_err();
    assert_eq!(error.code(), Code::ConcurrentUpdate);
}

#[tokio::test]
async fn routes_after_a_child_see_its_updates() {
    let graph = StateGraph::new()
        .node("sub", child(&["c1", "c2"]))
        .node("many", says("many"))
        .edge(START, "sub")
        .branch("sub", |words: &Words| if words.seen.len() == 2 { "many" } else { END }, ["many", END])
        .compile()
        .unwrap();
    assert_eq!(words_of(&graph).await, "c1 c2 many");
}

#[tokio::test]
async fn each_call_in_a_loop_is_a_new_run() {
    let graph = StateGraph::new()
        .node("sub", child(&["c1", "c2"]))
        .edge(START, "sub")
        .branch("sub", |words: &Words| if words.seen.len() < 6 { "sub" } else { END }, ["sub", END])
        .compile()
        .unwrap();
    let modes = [Durability::Sync, Durability::Async, Durability::Exit];
    for mode in modes {
        let graph = graph.clone().checkpointer(MemorySaver::new());
        let outcome = graph.invoke(Words::update()).thread("t").durability(mode).await.unwrap();
        assert_eq!(text(&outcome.into_finished().unwrap()), "c1 c2 c1 c2 c1 c2", "{mode:?}");
    }
    assert_eq!(words_of(&graph).await, "c1 c2 c1 c2 c1 c2");
}

#[derive(State, Serialize, Deserialize, Clone, Debug, Default, PartialEq)]
struct Square {
    side: u32,
    area: u32,
}

fn square() -> CompiledGraph<Square> {
    async fn compute(square: Snapshot<Square>) -> SquareUpdate {
        Square::update().area(square.side * square.side)
    }
    StateGraph::new().node("compute", compute).edge(START, "compute").compile().unwrap()
}

#[tokio::test]
async fn a_child_over_another_state_has_an_input_and_an_output_function() {
    let sub = square().embed(
        |kinds: Snapshot<Kinds>| Square::update().side(kinds.once),
        |square: Square| Kinds::update().list([square.area]),
    );
    let graph = StateGraph::new().node("square", sub).edge(START, "square").compile().unwrap();
    let kinds = graph.invoke(Kinds::update().once(5)).await.unwrap().into_finished().unwrap();
    assert_eq!(kinds.list, [25]);
}

#[tokio::test]
async fn dispatches_to_a_child_carry_its_inputs_and_merge_in_order() {
    async fn split() -> Command<Kinds> {
        Command::to([3_u32, 1, 2].map(|side| Dispatch::new("square", side)).to_vec())
    }
    let sub = square().embed(
        |Input(side): Input<u32>| Square::update().side(side),
        |square: Square| Kinds::update().list([square.area]),
    );
    let graph = StateGraph::new().node("split", split.targets(["square"])).node("square", sub);
    let graph = graph.edge(START, "split").compile().unwrap();
    for (thread, graph) in [(None, graph.clone()), (Some("t"), graph.checkpointer(MemorySaver::new()))] {
        let outcome = on(thread, graph.invoke(Kinds::update())).await.unwrap();
        assert_eq!(outcome.into_finished().unwrap().list, [9, 1, 4]);
    }
}

#[tokio::test]
async fn a_dispatch_to_a_child_over_the_same_state_is_an_error_with_a_remedy() {
    async fn split() -> Command<Words> {
        Command::to(Dispatch::new("sub", 1))
    }
    let graph = StateGraph::new().node("split", split).node("sub", child(&["c"])).edge(START, "split");
    let error = graph.compile().unwrap().invoke(Words::update()).await.unwrap_err();
    assert!(error.to_string().contains("embed"), "{error}");
    assert_eq!(error.node(), Some("sub"));
}

#[tokio::test]
async fn an_output_function_may_return_a_command_or_fail() {
    let to = |target: &'static str| {
        square().embed(
            || Square::update().side(2),
            move |square: Square| -> Result<Command<Words>> {
                if target == "nowhere" {
                    return Err("no way".into());
                }
                Ok(Command::update(Words::update().seen([square.area.to_string()])).goto(target))
            },
        )
    };
    let graph = |target| {
        let graph = StateGraph::new().node("sub", to(target).targets(["z"])).node("y", says("y"));
        graph.node("z", says("z")).edge(START, "sub").edge("sub", "y").compile().unwrap()
    };
    assert_eq!(words_of(&graph("z")).await, "4 z");
    let error = graph("nowhere").invoke(Words::update()).await.unwrap_err();
    assert!(error.to_string().contains("no way"), "{error}");
}

#[tokio::test]
async fn a_child_over_json_passes_on_its_updates_too() {
    use agentgraph::json_state::{JsonChannels, JsonReducer, JsonUpdate};
    use serde_json::json;
    let schema = JsonChannels::new()
        .channel("n", json!(0), JsonReducer::Once)
        .channel("list", json!([]), JsonReducer::Append)
        .channel("map", json!({}), JsonReducer::Merge);
    async fn first() -> JsonUpdate {
        JsonUpdate::new().set("n", 1).set("list", "a").set("map", json!({"x": 1, "y": 1}))
    }
    async fn second() -> JsonUpdate {
        JsonUpdate::new().set("n", 2).overwrite("list", json!(["b"])).set("map", json!({"x": 2}))
    }
    async fn third() -> JsonUpdate {
        JsonUpdate::new().set("list", "c").set("map", json!({"z": 3}))
    }
    let child = StateGraph::<JsonState>::with_schema(schema.clone())
        .node("first", first)
        .node("second", second)
        .node("third", third)
        .edge(START, "first")
        .edge("first", "second")
        .edge("second", "third")
        .compile()
        .unwrap();
    let graph = StateGraph::with_schema(schema).node("sub", child).edge(START, "sub").compile().unwrap();
    let input = JsonUpdate::new().set("list", "i");
    let state = graph.invoke(input).await.unwrap().into_finished().unwrap();
    assert_eq!(state.to_value(), json!({"n": 2, "list": ["b", "c"], "map": {"x": 2, "y": 1, "z": 3}}));
}

#[tokio::test]
async fn a_child_is_part_of_the_drawing_and_of_the_fingerprint() {
    let around = |child: CompiledGraph<Words>| {
        StateGraph::new().node("sub", child).node("a", says("a")).edge(START, "sub").compile().unwrap()
    };
    let one = around(child(&["c1"]));
    assert!(
        one.mermaid().contains("n0[[\"sub\"]]") && one.mermaid().contains("n1[\"a\"]"),
        "{}",
        one.mermaid()
    );
    assert_eq!(one.fingerprint(), around(child(&["c1"])).fingerprint());
    assert_ne!(one.fingerprint(), around(child(&["c1", "c2"])).fingerprint());
}

#[tokio::test]
async fn a_child_sees_the_thread_the_run_id_and_the_sessions_of_the_outer_run() {
    #[derive(Default, Serialize, Deserialize)]
    struct Cart(Vec<String>);
    async fn inside(ctx: Ctx, cart: Session<Cart>) -> WordsUpdate {
        cart.with(|cart| cart.0.push("tea".into()));
        Words::update().seen([format!("{:?} {}", ctx.thread(), ctx.run())])
    }
    async fn outside(ctx: Ctx, cart: Session<Cart>) -> WordsUpdate {
        assert_eq!(cart.with(|cart| cart.0.join(" ")), "tea");
        Words::update().seen([format!("{:?} {}", ctx.thread(), ctx.run())])
    }
    let child = StateGraph::new().session::<Cart>("inner").node("inside", inside).edge(START, "inside");
    let child = child.compile().unwrap();
    let graph = StateGraph::new()
        .session::<Cart>("outer")
        .node("sub", child)
        .node("outside", outside)
        .edge(START, "sub")
        .edge("sub", "outside")
        .compile()
        .unwrap();
    for (thread, graph) in [(None, graph.clone()), (Some("t"), graph.checkpointer(MemorySaver::new()))] {
        let words = on(thread, graph.invoke(Words::update())).await.unwrap().into_finished().unwrap();
        assert_eq!(words.seen[0], words.seen[1]);
    }
}
