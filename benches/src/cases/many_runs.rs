//! A thousand short runs at once.

use std::future::Future;
use std::rc::Rc;
use std::sync::Arc;

use tokio::runtime::Runtime;

use crate::bare::Chain;
use crate::case::{Case, Entrant};
use crate::cases::chain::{add_one, chain};
use crate::runtime::{one_thread, two_threads};
use crate::states::Counter;

const RUNS: usize = 1000;
const NODES: usize = 10;

pub(crate) fn cases() -> Vec<Case> {
    let steps = (RUNS * NODES) as u64;
    vec![
        Case::new("runs/one_thread", "step", steps, || entrants(&one_thread())),
        Case::new("runs/two_threads", "step", steps, || entrants(&two_threads()))
            .on_two_threads()
            .by_wall_clock(),
    ]
}

/// Returns the body of an entrant in which every run is a task of the runtime.
fn spawned<W, F>(runtime: &Rc<Runtime>, run: W) -> impl FnMut(u64) + use<W, F>
where
    W: Fn() -> F + 'static,
    F: Future<Output = u64> + Send + 'static,
{
    let runtime = Rc::clone(runtime);
    move |times| {
        runtime.block_on(async {
            for _ in 0..times {
                let tasks: Vec<_> = (0..RUNS).map(|_| tokio::spawn(run())).collect();
                for task in tasks {
                    assert_eq!(task.await.expect("no run panics"), NODES as u64);
                }
            }
        });
    }
}

fn entrants(runtime: &Rc<Runtime>) -> Vec<Entrant> {
    let bare = Arc::new(Chain::new(NODES));
    let graph = chain(NODES, || add_one);
    let floor = spawned(runtime, move || {
        let bare = Arc::clone(&bare);
        async move { bare.run(Counter::begun()).await.count }
    });
    let engine = spawned(runtime, move || {
        let run = graph.invoke(Counter::input());
        async move { run.await.expect("the run ends").output().count }
    });
    vec![
        Entrant::new("floor: a task for each loop by name", floor),
        Entrant::new("engine, a task for each run", engine).within(1.5),
    ]
}
