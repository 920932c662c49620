//! What a run of n durable steps stores grows with n and not faster: each result is stored once, also when
//! tasks run side by side, and when the run goes on in another call. (`once/40000` of the benches counts the
//! instructions.)

use agentgraph::prelude::*;
use agentgraph::{BoxError, DependencyGraph, Dispatch, RunBuilder};

use crate::common::poll::pending_for;
use crate::common::saver::NotingSaver;
use crate::common::words::{Words, WordsUpdate};

/// A node that makes `steps` durable steps, one after the other, and then asks if it is to.
fn works(steps: u32, asks: bool) -> agentgraph::node::Node<Words> {
    let node = move |ctx: Ctx| async move {
        for n in 0..steps {
            let done = ctx
                .once("work", async {
                    pending_for(n % 3).await;
                    Ok(n)
                })
                .await?;
            assert_eq!(done, n);
        }
        if asks {
            let _: bool = ctx.interrupt("go on?")?;
        }
        Ok::<_, BoxError>(WordsUpdate::default())
    };
    node.into_node()
}

/// A task for each of `steps` dispatches, with one durable step that takes its own time.
fn side_by_side(steps: u32) -> StateGraph<Words> {
    let one = |Input(n): Input<u32>, ctx: Ctx| async move {
        ctx.once("work", async {
            pending_for(n % 7).await;
            Ok(n)
        })
        .await?;
        Ok::<_, BoxError>(())
    };
    let send = move || async move {
        Command::<Words>::to((0..steps).map(|n| Dispatch::new("one", n)).collect::<Vec<_>>())
    };
    StateGraph::new().node("send", send.targets(["one"])).node("one", one).edge(START, "send")
}

fn alone(steps: u32, asks: bool) -> StateGraph<Words> {
    StateGraph::new().node("work", works(steps, asks)).edge(START, "work")
}

/// The stored bytes and the writes of a run to its end, with the answer if it asks.
async fn stored(graph: StateGraph<Words>) -> (u64, usize) {
    let saver = NotingSaver::memory();
    let graph = graph.compile().unwrap().checkpointer(saver.clone());
    let call = |run: RunBuilder<Words>| run.thread("t").max_supersteps(10_000);
    let outcome = call(graph.invoke(Words::update())).await.unwrap();
    if let Outcome::Interrupted { .. } = outcome {
        call(graph.resume(true)).await.unwrap().into_finished().unwrap();
    }
    counted(&saver)
}

fn counted(saver: &NotingSaver) -> (u64, usize) {
    let writes = saver.writes();
    let bytes: usize = writes.iter().map(|write| write.bytes.len()).sum();
    (saver.put_bytes() + bytes as u64, writes.len())
}

fn is_linear(what: &str, (few, many): ((u64, usize), (u64, usize))) {
    assert!(few.1 >= 30 && many.1 >= 300, "{what}: every result is stored: {few:?} {many:?}");
    assert!(many.0 <= few.0 * 11 && many.1 <= few.1 * 11, "{what}: {few:?} for 30, {many:?} for 300");
}

#[tokio::test]
async fn ten_times_the_steps_store_ten_times_the_bytes() {
    for eager in [false, true] {
        let discipline = |graph: StateGraph<Words>| if eager { graph.eager() } else { graph };
        let of = |steps| stored(discipline(alone(steps, false)));
        is_linear("one task", (of(30).await, of(300).await));
        let of = |steps| stored(discipline(alone(steps, true)));
        is_linear("in two calls", (of(30).await, of(300).await));
        let of = |steps| {
            let beside = move || async move { pending_for(steps / 2).await };
            stored(discipline(alone(steps, false).node("beside", beside).edge(START, "beside")))
        };
        is_linear("beside another task", (of(30).await, of(300).await));
    }
    let of = |steps| stored(side_by_side(steps));
    is_linear("side by side", (of(30).await, of(300).await));
}

#[tokio::test]
async fn of_a_pass_too() {
    let of = |steps: u32| async move {
        let saver = NotingSaver::memory();
        let graph = (0..steps).fold(DependencyGraph::<u32>::new(), |graph, n| {
            graph.node(format!("n{n}"), move |ctx: Ctx| async move {
                let work = async {
                    pending_for(n % 7).await;
                    Ok(n)
                };
                ctx.once("work", work).await
            })
        });
        let graph = graph.compile().unwrap().checkpointer(saver.clone());
        graph.invoke(()).thread("t").await.unwrap().into_finished().unwrap();
        counted(&saver)
    };
    is_linear("a pass", (of(30).await, of(300).await));
}
