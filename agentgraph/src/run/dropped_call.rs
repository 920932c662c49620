//! [`DroppedCall`]: the warning about a call that was built and never run, such as
//! `let _run = graph.invoke(..);`. `#[must_use]` does not find it, since the value is used.
//!
//! Only debug builds have it; in a release build the type is empty and has no destructor.

#[cfg(debug_assertions)]
use std::panic::Location;

/// Warns when it is dropped before [`ran`](DroppedCall::ran) was called.
pub(super) struct DroppedCall {
    /// Where the call was built; `None` once it runs.
    #[cfg(debug_assertions)]
    built: Option<&'static Location<'static>>,
}

impl DroppedCall {
    #[cfg_attr(debug_assertions, track_caller)]
    pub(super) fn new() -> Self {
        DroppedCall {
            #[cfg(debug_assertions)]
            built: Some(Location::caller()),
        }
    }

    /// The call is awaited or streamed.
    #[inline]
    #[allow(unused_mut)]
    pub(super) fn ran(mut self) {
        #[cfg(debug_assertions)]
        {
            self.built = None;
        }
    }
}

#[cfg(debug_assertions)]
impl Drop for DroppedCall {
    fn drop(&mut self) {
        // An unwinding panic drops calls that would have run.
        if let Some(place) = self.built.filter(|_| !std::thread::panicking()) {
            warn(place);
        }
    }
}

/// Warns by `tracing`, or on the standard error stream of a program without a subscriber, as beginners write.
#[cfg(debug_assertions)]
fn warn(place: &Location<'_>) {
    const PROBLEM: &str =
        "a call was built and dropped, so nothing ran: `.await` it, or read its `.stream()`";
    let unheard =
        tracing::dispatcher::get_default(|dispatch| dispatch.is::<tracing::subscriber::NoSubscriber>());
    if unheard {
        eprintln!("warning: {PROBLEM} ({place})");
    } else {
        tracing::warn!(target: "agentgraph", built = %place, "{PROBLEM}");
    }
}
