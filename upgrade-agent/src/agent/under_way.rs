//! [`UnderWay`]: a turn whose caller may leave before its end.

use super::place::Place;
use super::threads::ThreadGuard;

/// A turn that runs. If it is dropped before its end, its run is stopped, and the thread is held until then.
pub(super) struct UnderWay {
    place: Place,
    thread: String,
    /// `None` after the end.
    held: Option<ThreadGuard>,
}

impl UnderWay {
    pub(super) fn new(place: &Place, thread: &str, held: ThreadGuard) -> Self {
        UnderWay { place: place.clone(), thread: thread.to_owned(), held: Some(held) }
    }

    /// The turn has ended, with a reply or with an error.
    pub(super) fn end(mut self) {
        self.held = None;
    }
}

impl Drop for UnderWay {
    fn drop(&mut self) {
        if let Some(held) = self.held.take() {
            self.place.stop(&self.thread, held);
        }
    }
}
