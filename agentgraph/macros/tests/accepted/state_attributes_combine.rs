//! Every attribute, type aliases, raw names, `Self`, visibility, lints and shadowed names of the prelude.

#![deny(warnings, missing_docs, unreachable_pub)]
#![allow(dead_code)]

use std::borrow::Cow;
use std::collections::{BTreeMap, BTreeSet, HashMap};

use agentgraph::reduce::{Reducer, StoredReducer};
use agentgraph::state::StoredState;
use agentgraph::{Keyed, State};
use serde::{Deserialize, Serialize};

/// These types shadow names of the prelude, which derived code must not use.
#[derive(Clone, Copy)]
pub struct Result;
#[derive(Clone, Copy)]
struct Option;
#[derive(Clone, Copy)]
struct Vec2;

type Notes = std::vec::Vec<String>;
type Prices = BTreeMap<String, u32>;

#[derive(Serialize, Deserialize, Clone)]
struct Message {
    id: String,
}

impl Keyed for Message {
    fn key(&self) -> Cow<'_, str> {
        Cow::Borrowed(&self.id)
    }
}

struct Sum;
impl Reducer<u64> for Sum {
    type Write = u32;
    const KIND: &'static str = "sum";
    fn reduce(value: &mut u64, write: u32) {
        *value += u64::from(write);
    }
    fn combine(write: &mut u32, later: u32) {
        *write += later;
    }
}
impl StoredReducer<u64> for Sum {}

/// A public state with private fields of private types.
#[derive(State, Serialize, Deserialize, Clone, Default)]
pub struct Everything {
    r#type: String,
    #[reduce(append)]
    notes: Notes,
    #[reduce(merge)]
    prices: Prices,
    #[reduce(merge)]
    #[channel(run)]
    more_prices: HashMap<String, u32>,
    #[reduce(by_id)]
    messages: Vec<Message>,
    #[reduce(with = BTreeSet::extend, write = Vec<String>)]
    seen: BTreeSet<String>,
    #[reduce(reducer = Sum)]
    tokens: u64,
    #[reduce(last)]
    #[channel(ephemeral, secret, alias = "mood")]
    #[channel(alias = "temper")]
    temperature: f32,
    #[serde(skip)]
    #[channel(untracked)]
    cache: std::sync::Arc<std::sync::Mutex<Vec<u8>>>,
    inner: std::vec::Vec<Self>,
}

#[derive(State, Serialize, Deserialize, Clone, Default)]
struct Nothing {}

#[derive(State, Clone, Default)]
#[state(volatile)]
struct Volatile {
    socket: std::option::Option<std::sync::Arc<std::net::TcpStream>>,
}

mod inner {
    use agentgraph::State;
    use serde::{Deserialize, Serialize};

    #[derive(State, Serialize, Deserialize, Clone, Default)]
    pub(super) struct Narrow {
        pub(super) count: u32,
    }
}

fn stored<S: StoredState>() {}

#[test]
fn every_attribute_combines() {
    stored::<Everything>();
    stored::<Nothing>();
    let update = Everything::update()
        .r#type("kind")
        .notes([String::from("a")])
        .overwrite_notes(vec![])
        .prices([(String::from("tea"), 3)])
        .more_prices([("tea", 3)])
        .messages([Message { id: "1".into() }])
        .remove_messages(["1"])
        .seen(vec!["a".into()])
        .tokens(3)
        .temperature(0.5)
        .cache(Default::default())
        .inner(vec![]);
    assert!(!update.is_empty());
    assert!(Nothing::update().is_empty());
    assert!(Volatile::update().is_empty());
    assert!(!inner::Narrow::update().count(1).is_empty());
}
