//! The runtimes on which entrants run.

use std::future::Future;
use std::rc::Rc;

use tokio::runtime::{Builder, Runtime};

/// Returns a runtime on the current thread.
pub fn one_thread() -> Rc<Runtime> {
    Rc::new(Builder::new_current_thread().enable_all().build().expect("a runtime"))
}

/// Returns a runtime with two worker threads, for which the current thread waits.
pub(crate) fn two_threads() -> Rc<Runtime> {
    Rc::new(Builder::new_multi_thread().worker_threads(2).enable_all().build().expect("a runtime"))
}

/// Turns an async function into the body of an entrant. All runs of a repetition share one `block_on`,
/// whose own cost would otherwise dominate a short run.
pub fn on<W, F>(runtime: &Rc<Runtime>, mut work: W) -> impl FnMut(u64) + use<W, F>
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
