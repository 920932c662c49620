//! The engine against a plain sequential model of it, on random graphs.
//!
//! A graph is data (`reference_model/shape.rs`), and so is what is done to a thread of it (`script.rs`). The
//! model (`model.rs`) works out every outcome, state, frontier, event and checkpoint; the engine must come to
//! the same in each durability, awaited or streamed, in memory or in a file, and with graphs in the place of
//! nodes. Threads whose calls are dropped or killed half-way must come to the history of one that was not.
//!
//! `PROPTEST_CASES` sets the number of graphs.
//!
//! Faults that were put into the engine by hand, one by one, and after how many graphs of the usual seed
//! which test failed first. `all`: every_outcome..; `kill`: a_thread_that_is_killed..; `exit`:
//! a_call_that_stores_at_its_end..; `file`: a_file_keeps..; `nest`: the two with graphs in graphs.
//!
//! | fault | graphs |
//! |---|---|
//! | a join does not begin anew after it fired | 91 all |
//! | a router sees the state without its own node's update | 1 all, kill, exit |
//! | one attempt too many | 12 all, 14 kill |
//! | dispatches run in the reverse order | 1 all, 6 kill |
//! | a deferred node does not wait for dispatches | 11 exit, 17 all, kill |
//! | the second request of a task gets the first answer | 1 all, kill, exit |
//! | an ephemeral channel outlives a superstep that does not write it | 2 all, 3 kill |
//! | siblings of a failure are not stored | 9 all, 15 exit, 48 kill |
//! | a handled failure is not stored | 2 exit, 14 all |
//! | the arrivals of a superstep come to a join one by one, and dispatches of routes before those of the command | 47 all |
//! | a join fires one moment after its time | 15 exit, 46 kill, 47 all |
//! | n of m waits for one more | 2 all, kill |
//! | any fires again for each source | 3 all, 6 kill |
//! | a timed join waits for ever when nothing else can run | 1 all, kill, exit |
//! | run channels are not reset | 2 exit, 4 kill, 9 all |
//! | `goto` adds to the edges | 1 all, kill, exit |
//! | an overwrite does not win | 14 all, 48 kill |
//! | one superstep too many | 2 all, 8 exit |
//! | the node for the limit takes the frontier's place | 8 all |
//! | a budget is used up one superstep late | 8 all |
//! | a call that stores at its end loses what its tasks left | 1 exit, 4 all |
//! | an edit drops what finished siblings did | 3 all |
//! | a handler's way on is that of the failed node | 2 exit, 3 all, 14 kill |
//! | a half-full join is not restored | 1 all, kill, exit |
//! | a join that is stuck is not told | 1 all, kill, exit |
//! | `proceed` stops at the same static interrupt for ever | 2 all, 50 kill |
//! | a task that waits does not say so in the stream | 1 all |
//! | a finished task runs again on a resume | 1 all, kill, exit |
//! | deferred nodes that wait are not stored | 1 all, kill, exit |
//! | the time of a join is not stored | 3 all, 23 exit, 26 kill |
//! | a graceful stop is not heard | 3 all, exit |
//! | a full record does not end what it leaves out | 11 all, 61 exit |
//! | an answer is run with and not stored | 1 all, kill, exit |
//! | updates of handlers merge last | 11 exit, 12 all, 14 kill |
//! | a call that hands over does not wait for its queue | 4 kill, 2 nest |
//! | the sum of a graph's updates goes back beyond its call | 16 nest |
//! | failures of a graph that stores at its end are looked for under other ids | 6 nest |
//! | a graph in a node begins anew when it is called again | 2 nest |
//! | a graph with a memory for the thread forgets | 5 nest |
//! | ephemeral writes of a graph's earlier supersteps are in its sum | 5 nest |
//!
//! Seen not to be caught here: a task that finishes beside running ones and is stored only when all have
//! ended, which is in `dropped_at_every_poll_the_thread_proceeds.rs`; what tasks left on a checkpoint that a
//! fork leaves, which no id finds there. What the model found in the engine and was mended is in
//! `what_ends_a_call_leaves_the_run_where_it_was.rs`.
#![cfg(feature = "sqlite")]
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]

mod common;
mod reference_model;
mod sqlite_folder;

use std::future::Future;

use agentgraph::policy::Siblings;
use agentgraph::{Durability, View};
use proptest::prelude::*;
use proptest::test_runner::Config;
use reference_model::build::build;
use reference_model::drive::{Manner, act, history, status};
use reference_model::events::Happening;
use reference_model::killed::{End, Life, Store};
use reference_model::model::What;
use reference_model::outside::Outside;
use reference_model::random::{nested_shapes, shapes};
use reference_model::script::{Scene, Script};
use reference_model::shape::{Allowance, Shape};
use reference_model::told::{Came, Seen};
use reference_model::world::{Channel, Write};
use sqlite_folder::Folder;

/// `share`: how many of a hundred cases.
fn config(share: u32) -> Config {
    let mut config = Config::default();
    if std::env::var_os("PROPTEST_MAX_SHRINK_ITERS").is_none() {
        config.max_shrink_iters = 4_000;
    }
    // A stored seed means another graph as soon as there is one more kind of node: what is found becomes a
    // test of its own.
    config.failure_persistence = None;
    if std::env::var_os("PROPTEST_CASES").is_none() {
        config.cases = 200;
    }
    config.cases = (config.cases * share).div_ceil(100);
    config
}

fn run<T>(future: impl Future<Output = T>) -> T {
    tokio::runtime::Builder::new_current_thread().enable_time().build().unwrap().block_on(future)
}

fn same(lived: &[Seen], modelled: &[Seen]) {
    for (step, (lived, modelled)) in lived.iter().zip(modelled).enumerate() {
        assert_eq!(lived, modelled, "checkpoint {step}");
    }
    assert_eq!(lived.len(), modelled.len(), "the number of checkpoints");
}

/// Plays a script and compares everything that can be seen. A store is opened anew for every act.
async fn plays(shape: &Shape, manner: &Manner, script: &Script, store: &Store) {
    let outside = Outside::default();
    for (round, scene) in script.scenes.iter().enumerate() {
        let graph = build(shape, &outside).checkpointer(store.open().await);
        let (told, happened) = act(&graph, &outside, shape, manner, &scene.act).await.await;
        assert_eq!(told, scene.told, "act {round}, {:?}, {manner:?}", scene.act);
        if manner.streamed.is_some() {
            compare_events(&happened, scene, manner.durability != Durability::Exit);
        }
        same(&history(&graph).await, &scene.history);
        let is_clear = !(shape.has_children() && matches!(told.came, Came::Failed(_)));
        if !told.came.is_hopeless() && is_clear {
            assert_eq!(status(&graph).await, scene.status, "act {round}, {:?}", scene.act);
        }
    }
}

/// Without a checkpointer every call is a run of its own.
async fn plays_unkept(shape: &Shape, script: &Script) {
    let outside = Outside::default();
    let graph = build(shape, &outside);
    let Some(scene) = script.scenes.first().filter(|scene| matches!(scene.act.what, What::Invoke(_))) else {
        return;
    };
    let (told, happened) =
        act(&graph, &outside, shape, &Manner::watched(Durability::Sync), &scene.act).await.await;
    assert_eq!(told, scene.told, "without a checkpointer");
    compare_events(&happened, scene, false);
}

fn compare_events(happened: &[Happening], scene: &Scene, with_checkpoints: bool) {
    if matches!(scene.act.what, What::Edit(_)) {
        return;
    }
    let seen = |happened: &[Happening]| {
        let happened = happened.iter();
        let seen = happened.filter(|one| with_checkpoints || !matches!(one, Happening::Checkpoint(..)));
        seen.cloned().collect::<Vec<_>>()
    };
    assert_eq!(seen(happened), seen(&scene.happened), "events of {:?}", scene.act);
}

fn durabilities() -> impl Strategy<Value = Durability> {
    prop::sample::select(vec![Durability::Sync, Durability::Async, Durability::Exit])
}

/// Without what counts calls or attempts: a thread that is cut short has more of them. And without overwrites
/// that are not stored: whether two of them clash depends on whether a call ends between them.
fn uncounted(mut shape: Shape) -> Shape {
    let nothing = Allowance::default();
    for node in &mut shape.nodes {
        node.writes.retain(|write| *write != Write::Overwrite(Channel::Loose));
    }
    Shape { edits: Vec::new(), on_limit: None, budget: nothing, ..shape }
}

fn ends() -> impl Strategy<Value = Vec<End>> {
    let end = prop_oneof![
        1 => Just(End::InTime),
        3 => (1..40_u32).prop_map(End::Dropped),
        3 => (1..40_u32).prop_map(End::Killed),
    ];
    prop::collection::vec(end, 0..7)
}

fn manners() -> impl Strategy<Value = Manner> {
    let views =
        prop::sample::subsequence(vec![View::Values, View::Updates, View::Custom, View::Tasks], 0..=4);
    let streamed = prop::option::of((1..5_usize, views));
    let siblings = prop::sample::select(vec![Siblings::Drain, Siblings::Cancel]);
    let durability = prop::sample::select(vec![Durability::Sync, Durability::Async]);
    (durability, streamed, prop::option::of(1..4_usize), siblings).prop_map(
        |(durability, streamed, max_concurrency, siblings)| Manner {
            durability,
            streamed,
            max_concurrency,
            siblings,
        },
    )
}

/// Lives the thread in processes that end like this, and compares its history with that of the model.
fn lives(shape: &Shape, store: Store, manner: Manner, ends: &[End]) {
    let script = Script::of(shape, false);
    if script.is_hopeless() || script.is_unclear() {
        return;
    }
    let (last, lived) = Life::new(shape, store, manner).live(ends, script.history());
    if script.is_whole {
        same(&lived, script.history());
        // A call that is cut short behind its last commit comes to nothing, and leaves nothing to go on with.
        if last.is_some() {
            assert_eq!(last.as_ref(), script.scenes.last().map(|scene| &scene.told.came));
        }
    }
}

proptest! {
    #![proptest_config(config(100))]

    #[test]
    fn every_outcome_state_frontier_event_and_checkpoint_is_the_models(
        shape in shapes(),
        durability in durabilities(),
    ) {
        let script = Script::of(&shape, durability == Durability::Exit);
        run(async {
            plays(&shape, &Manner::watched(durability), &script, &Store::memory()).await;
            plays(&shape, &Manner::awaited(durability), &script, &Store::memory()).await;
            plays_unkept(&shape, &script).await;
        });
    }
}

proptest! {
    #![proptest_config(config(60))]

    #[test]
    fn a_thread_that_is_killed_and_goes_on_has_the_history_of_one_that_was_not(
        shape in shapes().prop_map(uncounted),
        manner in manners(),
        ends in ends(),
    ) {
        lives(&shape, Store::memory(), manner, &ends);
    }

    #[test]
    fn a_call_that_stores_at_its_end_has_not_happened_if_it_is_killed(
        mut shape in shapes().prop_map(uncounted),
        ends in ends(),
    ) {
        // Whether the caller was told of a static interrupt is not seen in the thread.
        (shape.before, shape.after) = (Vec::new(), Vec::new());
        let script = Script::of(&shape, true);
        prop_assume!(!script.is_hopeless());
        Life::new(&shape, Store::memory(), Manner::awaited(Durability::Exit)).play(&script.scenes, &ends);
    }
}

proptest! {
    #![proptest_config(config(50))]

    #[test]
    fn graphs_in_graphs_come_to_what_the_model_says(shape in nested_shapes(), durability in durabilities()) {
        let script = Script::of(&shape, durability == Durability::Exit);
        prop_assume!(!script.is_unclear());
        run(async {
            plays(&shape, &Manner::watched(durability), &script, &Store::memory()).await;
            plays(&shape, &Manner::awaited(durability), &script, &Store::memory()).await;
            if !shape.has_memory() {
                plays_unkept(&shape, &script).await;
            }
        });
    }

    #[test]
    fn a_thread_with_graphs_in_graphs_is_killed_and_goes_on(
        shape in nested_shapes(),
        manner in manners(),
        ends in ends(),
    ) {
        lives(&shape, Store::memory(), manner, &ends);
    }
}

proptest! {
    #![proptest_config(config(6))]

    #[test]
    fn a_file_keeps_what_memory_keeps(shape in shapes(), durability in durabilities()) {
        let script = Script::of(&shape, durability == Durability::Exit);
        let folder = Folder::new();
        let store = Store::File(folder.file("threads.db"));
        run(plays(&shape, &Manner::awaited(durability), &script, &store));
    }

    #[test]
    fn a_thread_in_a_file_survives_its_processes(
        shape in shapes().prop_map(uncounted),
        manner in manners(),
        ends in ends(),
    ) {
        let folder = Folder::new();
        lives(&shape, Store::File(folder.file("threads.db")), manner, &ends);
    }
}
