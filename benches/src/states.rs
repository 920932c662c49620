//! The states that the cases run on. The floors use the same structs, as plain data.

use std::borrow::Cow;

use agentgraph::{Keyed, State};
use serde::{Deserialize, Serialize};

/// The state of a small agent: a number, a short text, a list.
#[derive(State, Serialize, Deserialize, Clone, Debug, Default)]
pub(crate) struct Counter {
    pub(crate) count: u64,
    pub(crate) text: String,
    #[reduce(append)]
    pub(crate) items: Vec<u64>,
}

/// 32 bytes.
pub(crate) const TEXT: &str = "thirty-two bytes of a small text";

impl Counter {
    /// Returns the state at the start of a run, with the input applied.
    pub(crate) fn begun() -> Self {
        Counter { text: TEXT.to_owned(), ..Counter::default() }
    }

    /// Returns the input of a run.
    pub(crate) fn input() -> CounterUpdate {
        Counter::update().text(TEXT)
    }
}

/// A state of twenty channels, of which one is written.
#[derive(State, Serialize, Deserialize, Clone, Debug, Default)]
pub(crate) struct Wide {
    pub(crate) count: u64,
    pub(crate) a01: String,
    pub(crate) a02: String,
    pub(crate) a03: String,
    pub(crate) a04: String,
    pub(crate) a05: String,
    pub(crate) a06: u64,
    pub(crate) a07: u64,
    pub(crate) a08: u64,
    pub(crate) a09: u64,
    pub(crate) a10: u64,
    #[reduce(append)]
    pub(crate) a11: Vec<u64>,
    #[reduce(append)]
    pub(crate) a12: Vec<u64>,
    #[reduce(append)]
    pub(crate) a13: Vec<String>,
    #[reduce(append)]
    pub(crate) a14: Vec<String>,
    #[reduce(last)]
    pub(crate) a15: String,
    #[reduce(last)]
    pub(crate) a16: String,
    #[reduce(last)]
    pub(crate) a17: Option<u64>,
    #[reduce(last)]
    pub(crate) a18: Option<u64>,
    #[reduce(last)]
    pub(crate) a19: bool,
}

/// The state that parallel branches write.
#[derive(State, Serialize, Deserialize, Clone, Debug, Default)]
pub(crate) struct Fan {
    #[reduce(append)]
    pub(crate) items: Vec<u64>,
    #[reduce(with = add)]
    pub(crate) sum: u64,
    pub(crate) joined: u64,
}

fn add(value: &mut u64, more: u64) {
    *value += more;
}

/// A growing log, and a text that does not change.
#[derive(State, Serialize, Deserialize, Clone, Debug, Default)]
pub(crate) struct Log {
    pub(crate) count: u64,
    pub(crate) fixed: String,
    #[reduce(append)]
    pub(crate) lines: Vec<String>,
    #[reduce(by_id)]
    pub(crate) messages: Vec<Message>,
}

/// A chat message.
#[derive(Serialize, Deserialize, Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Message {
    pub(crate) id: String,
    pub(crate) role: String,
    pub(crate) text: String,
}

impl Keyed for Message {
    fn key(&self) -> Cow<'_, str> {
        Cow::Borrowed(&self.id)
    }
}
