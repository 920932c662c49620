//! [`Listeners`]: the receivers of a call's events and spans, and the sources of requests to stop it.

use std::sync::Arc;

use crate::engine::halt::Halt;
use crate::engine::spans::Spans;
use crate::event::EventQueue;

/// The receivers of a call's events and spans, and the sources of requests to stop it.
pub(crate) struct Listeners {
    /// The stream, if the call has one.
    pub(in crate::engine) events: Option<Arc<EventQueue>>,
    /// The caller's tokens and time limits, if there are any.
    pub(in crate::engine) halt: Option<Box<Halt>>,
    /// The open spans, if a subscriber may listen to them.
    pub(in crate::engine) spans: Option<Box<Spans>>,
}

impl Listeners {
    pub(crate) fn new(events: Option<Arc<EventQueue>>, halt: Option<Box<Halt>>) -> Self {
        Listeners { events, halt, spans: Spans::of_call() }
    }
}
