//! [`Label`]: what a payload is and where it belongs. A sealed payload opens only under its own label.

use std::fmt;

/// What a payload is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Part {
    /// What a caller asks of a thread.
    Request,
    /// What a caller gets.
    Answer,
    /// What a thread asks of its steps.
    Drive,
    /// How an invocation of the steps ended.
    Driven,
    /// A row of the thread.
    Row,
    /// The state that tasks read.
    State,
    /// A task.
    Task,
    /// The end of a task.
    TaskEnd,
}

impl Part {
    const fn name(self) -> &'static str {
        match self {
            Part::Request => "the request",
            Part::Answer => "the answer",
            Part::Drive => "the call of the steps",
            Part::Driven => "the answer of the steps",
            Part::Row => "a row",
            Part::State => "the state for tasks",
            Part::Task => "a task",
            Part::TaskEnd => "the end of a task",
        }
    }
}

/// What a payload is, its graph, its thread, and its key if it is one of several.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Label<'a> {
    pub(crate) part: Part,
    pub(crate) graph: &'a str,
    pub(crate) thread: &'a str,
    pub(crate) key: &'a str,
}

impl<'a> Label<'a> {
    pub(crate) const fn new(part: Part, graph: &'a str, thread: &'a str, key: &'a str) -> Self {
        Label { part, graph, thread, key }
    }

    pub(crate) const fn of_key(self, key: &'a str) -> Self {
        Label { key, ..self }
    }

    /// The bytes to bind an envelope to. Each name is preceded by its length.
    pub(crate) fn bytes(&self) -> Vec<u8> {
        let mut bytes = vec![self.part as u8];
        for name in [self.graph, self.thread, self.key] {
            bytes.extend_from_slice(&(name.len() as u64).to_be_bytes());
            bytes.extend_from_slice(name.as_bytes());
        }
        bytes
    }
}

impl fmt::Display for Label<'_> {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(out, "{} of thread `{}` of graph `{}`", self.part.name(), self.thread, self.graph)
    }
}
