//! Reducers of a derived state: effects of writes, overwrites and resets.

use std::borrow::Cow;
use std::collections::{BTreeMap, BTreeSet};

use agentgraph::reduce::{Reducer, StoredReducer};
use agentgraph::state::{Lifetime, WriteKind};
use agentgraph::{Keyed, State};
use serde::{Deserialize, Serialize};

#[derive(Serialize, Deserialize, Clone, Debug, PartialEq)]
struct Message {
    id: String,
    text: String,
}

impl Keyed for Message {
    fn key(&self) -> Cow<'_, str> {
        Cow::Borrowed(&self.id)
    }
}

fn message(id: &str, text: &str) -> Message {
    Message { id: id.to_owned(), text: text.to_owned() }
}

fn keep_max(value: &mut u8, write: u8) {
    *value = (*value).max(write);
}

/// A reducer that adds writes up and takes one write per superstep.
struct Sum;

impl Reducer<u64> for Sum {
    type Write = u32;
    const KIND: &'static str = "sum";
    const EXCLUSIVE: bool = true;
    fn reduce(value: &mut u64, write: u32) {
        *value += u64::from(write);
    }
    fn combine(write: &mut u32, later: u32) {
        *write += later;
    }
}

impl StoredReducer<u64> for Sum {}

#[derive(State, Serialize, Deserialize, Clone, Debug, PartialEq)]
struct Triage {
    question: String,
    #[reduce(last)]
    mood: String,
    #[reduce(append)]
    #[channel(run)]
    notes: Vec<String>,
    #[reduce(merge)]
    prices: BTreeMap<String, u32>,
    #[reduce(by_id)]
    messages: Vec<Message>,
    #[reduce(with = keep_max)]
    #[channel(ephemeral)]
    risk: u8,
    #[reduce(with = BTreeSet::extend, write = Vec<u32>)]
    seen: BTreeSet<u32>,
    #[reduce(reducer = Sum)]
    #[channel(alias = "spent")]
    tokens: u64,
    #[channel(untracked)]
    cache: u8,
}

impl Default for Triage {
    fn default() -> Self {
        Triage {
            question: String::new(),
            mood: "calm".to_owned(),
            notes: vec!["begin".to_owned()],
            prices: BTreeMap::new(),
            messages: Vec::new(),
            risk: 1,
            seen: BTreeSet::new(),
            tokens: 0,
            cache: 9,
        }
    }
}

/// Returns the initial state after these updates, applied in order.
#[track_caller]
fn after(updates: impl IntoIterator<Item = TriageUpdate>) -> Triage {
    let mut state = Triage::initial(&());
    for update in updates {
        state.apply(&(), update).unwrap();
    }
    state
}

#[test]
fn an_empty_update_changes_nothing() {
    assert!(Triage::update().is_empty());
    assert_eq!(after([Triage::update()]), Triage::default());
}

#[test]
fn a_plain_field_takes_the_value() {
    assert_eq!(after([Triage::update().question("one").question("two")]).question, "two");
}

#[test]
fn last_takes_the_last_value() {
    let updates = [Triage::update().mood("angry"), Triage::update().mood("glad")];
    assert_eq!(after(updates).mood, "glad");
}

#[test]
fn append_adds_in_order_within_and_between_updates() {
    let updates =
        [Triage::update().notes(["a", "b"]).notes(["c"]), Triage::update().notes([String::from("d")])];
    assert_eq!(after(updates).notes, ["begin", "a", "b", "c", "d"]);
}

#[test]
fn merge_replaces_entries_with_the_same_key() {
    let updates = [
        Triage::update().prices([("tea", 3), ("milk", 2)]).prices([("tea", 4)]),
        Triage::update().prices(BTreeMap::from([("milk".to_owned(), 5)])),
    ];
    assert_eq!(after(updates).prices, BTreeMap::from([("milk".to_owned(), 5), ("tea".to_owned(), 4)]));
}

#[test]
fn by_id_replaces_in_place_adds_at_the_end_and_removes() {
    let updates = [
        Triage::update().messages([message("1", "a"), message("2", "b"), message("3", "c")]),
        Triage::update().messages([message("2", "B"), message("4", "d")]).remove_messages(["1", "unknown"]),
    ];
    assert_eq!(after(updates).messages, [message("2", "B"), message("3", "c"), message("4", "d")]);
}

#[test]
fn by_id_keeps_the_order_of_upserts_and_removals_within_one_update() {
    let readded = Triage::update()
        .messages([message("1", "a"), message("2", "b")])
        .remove_messages(["1"])
        .messages([message("1", "again")]);
    assert_eq!(after([readded]).messages, [message("2", "b"), message("1", "again")]);
}

#[test]
fn with_calls_the_function_once_per_write() {
    assert_eq!(after([Triage::update().risk(3).risk(7), Triage::update().risk(5)]).risk, 7);
    let seen = after([Triage::update().seen(vec![3, 1]), Triage::update().seen(vec![3, 2])]).seen;
    assert_eq!(seen, BTreeSet::from([1, 2, 3]));
}

#[test]
fn a_custom_reducer_is_called() {
    assert_eq!(after([Triage::update().tokens(2).tokens(3), Triage::update().tokens(4)]).tokens, 9);
}

#[test]
fn an_overwrite_wins_over_other_writes_of_the_same_update() {
    let update = Triage::update()
        .notes(["before"])
        .overwrite_notes(vec!["only".to_owned()])
        .notes(["after"])
        .overwrite_risk(0)
        .risk(9)
        .overwrite_messages(vec![message("9", "only")])
        .remove_messages(["9"])
        .overwrite_mood("flat")
        .overwrite_prices(BTreeMap::new())
        .overwrite_seen(BTreeSet::from([8]))
        .overwrite_tokens(1);
    let state = after([Triage::update().notes(["old"]).risk(5).tokens(40), update]);
    assert_eq!(state.notes, ["only"]);
    assert_eq!(state.risk, 0);
    assert_eq!(state.messages, [message("9", "only")]);
    assert_eq!(state.mood, "flat");
    assert_eq!(state.seen, BTreeSet::from([8]));
    assert_eq!(state.tokens, 1);
}

#[test]
fn channels_report_what_the_attributes_declare() {
    let channels = Triage::channels(&());
    let described: Vec<_> = channels
        .iter()
        .map(|channel| {
            format!(
                "{} {} {:?}{}{}",
                channel.name,
                channel.reducer,
                channel.lifetime,
                if channel.exclusive { " exclusive" } else { "" },
                channel.aliases.iter().map(|alias| format!(" was {alias}")).collect::<String>(),
            )
        })
        .collect();
    assert_eq!(
        described,
        [
            "question once Thread exclusive",
            "mood last Thread",
            "notes append Run",
            "prices merge Thread",
            "messages by_id Thread",
            "risk with Ephemeral",
            "seen with Thread",
            "tokens sum Thread exclusive was spent",
            "cache once Untracked exclusive",
        ]
    );
}

#[test]
fn writes_lists_channels_in_order_with_the_kind_of_write() {
    let update = Triage::update().cache(1).overwrite_notes(vec![]).question("why?");
    let mut written = Vec::new();
    Triage::writes(&(), &update, &mut |channel, kind| written.push((channel, kind)));
    assert_eq!(written, [(0, WriteKind::Reduce), (2, WriteKind::Overwrite), (8, WriteKind::Reduce)]);
}

#[test]
fn discard_removes_the_writes_of_one_channel() {
    let mut update = Triage::update().question("why?").notes(["a"]);
    Triage::discard(&(), &mut update, 0);
    let state = after([update.clone()]);
    assert_eq!((state.question.as_str(), state.notes.len()), ("", 2));
    Triage::discard(&(), &mut update, 2);
    assert!(update.is_empty());
    Triage::discard(&(), &mut update, 99);
    assert!(update.is_empty());
}

#[test]
fn reset_restores_initial_values_of_one_lifetime_only() {
    let update = || Triage::update().question("why?").notes(["a"]).risk(9).cache(3);
    let changed = |lifetime| {
        let mut state = after([update()]);
        state.reset(&(), lifetime);
        state
    };
    let full = after([update()]);
    assert_eq!(changed(Lifetime::Run), Triage { notes: vec!["begin".into()], ..full.clone() });
    assert_eq!(changed(Lifetime::Ephemeral), Triage { risk: 1, ..full.clone() });
    assert_eq!(changed(Lifetime::Untracked), Triage { cache: 9, ..full.clone() });
    assert_eq!(
        changed(Lifetime::Thread),
        Triage { notes: full.notes, risk: 9, cache: 3, ..Triage::default() }
    );
}

#[test]
fn debug_of_an_update_shows_the_written_values() {
    let update = Triage::update().question("why?").overwrite_notes(vec![]).prices([("tea", 3)]).risk(2);
    let shown = r#"TriageUpdate { question: "why?", notes: overwrite [], prices: merge [("tea", 3)], risk: with [2] }"#;
    assert_eq!(format!("{update:?}"), shown);
    assert_eq!(format!("{:?}", Triage::update()), "TriageUpdate");
}

#[test]
fn an_overwritten_keyed_list_keeps_each_key_once() {
    let mut state = Triage::default();
    let twice = vec![message("x", "1"), message("y", "2"), message("x", "3")];
    state.apply(&(), Triage::update().overwrite_messages(twice)).unwrap();
    assert_eq!(state.messages, [message("x", "3"), message("y", "2")]);
}
