//! The runtimes on which entrants run.

use std::future::Future;
use std::rc::Rc;

use tokio::runtime::{Builder, Runtime};

/// One thread: this one.
pub(crate) fn one_thread() -> Rc<Runtime> {
    Rc::new(Builder::new_current_thread().enable_all().build().expect("a runtime"))
}

/// Two worker threads, and this one waits.
pub(crate) fn two_threads() -> Rc<Runtime> {
    Rc::new(Builder::new_multi_thread().worker_threads(2).enable_all().build().expect("a runtime"))
}

/// Turns an async function into the body of an entrant. All runs of a repetition are in one `block_on`, whose
/// own cost would otherwise be most of a short run, for the floor as for the engine.
pub(crate) fn on<W, F>(runtime: &Rc<Runtime>, mut work: W) -> impl FnMut(u64) + use<W, F>
where
    W: FnMut() -> F + 'static,
    F: Future<Output = ()> + 'static,
{
    let runtime = Rc::clone(runtime);
    move |times| {
        runtime.block_on(async {
            for _ in 0..times {
                work().await;
            }
        });
    }
}
