//! Laws for every state and every update of every reducer: `peek` leaves no trace, an update survives
//! its own encoding, and a recorded merge gives the same state as a plain one.

use std::borrow::Cow;
use std::collections::{BTreeMap, BTreeSet, HashMap};

use agentgraph::checkpoint::delta::DeltaWriter;
use agentgraph::reduce::{Reducer, StoredReducer};
use agentgraph::state::StoredState;
use agentgraph::{Keyed, State};
use proptest::collection::{btree_map, vec};
use proptest::prelude::*;
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

/// A reducer that adds up and wraps around.
struct Sum;

impl Reducer<u64> for Sum {
    type Write = u32;
    const KIND: &'static str = "sum";
    fn reduce(value: &mut u64, write: u32) {
        *value = value.wrapping_add(u64::from(write));
    }
    fn combine(write: &mut u32, later: u32) {
        *write = write.wrapping_add(later);
    }
}

impl StoredReducer<u64> for Sum {}

/// Reduces so that the order of the writes matters.
fn shift(value: &mut u32, write: u8) {
    *value = value.wrapping_mul(31).wrapping_add(u32::from(write));
}

/// One field for each reducer, so that each law is checked for all of them.
#[derive(State, Serialize, Deserialize, Clone, Debug, Default, PartialEq)]
struct All {
    once: String,
    #[reduce(last)]
    last: Option<u32>,
    #[reduce(append)]
    append: Vec<String>,
    #[reduce(merge)]
    merge: BTreeMap<String, u8>,
    #[reduce(merge)]
    hashed: HashMap<u8, String>,
    #[reduce(by_id)]
    by_id: Vec<Message>,
    #[reduce(with = shift, write = u8)]
    with: u32,
    #[reduce(with = BTreeSet::extend, write = Vec<u8>)]
    extended: BTreeSet<u8>,
    #[reduce(reducer = Sum)]
    own: u64,
    #[channel(untracked)]
    #[serde(skip)]
    untracked: u16,
    #[reduce(sum)]
    sum: i64,
    #[reduce(min)]
    min: Option<u8>,
    #[reduce(max)]
    max: String,
}

fn word() -> impl Strategy<Value = String> {
    // Few words, so that keys collide.
    "[a-d]{0,2}"
}

fn message() -> impl Strategy<Value = Message> {
    (word(), word()).prop_map(|(id, text)| Message { id, text })
}

/// Generates messages with distinct keys, as a keyed list requires.
fn messages() -> impl Strategy<Value = Vec<Message>> {
    btree_map(word(), word(), 0..5)
        .prop_map(|texts| texts.into_iter().map(|(id, text)| Message { id, text }).collect::<Vec<_>>())
        .prop_shuffle()
}

fn state() -> impl Strategy<Value = All> {
    (
        (word(), any::<Option<u32>>(), vec(word(), 0..4), btree_map(word(), any::<u8>(), 0..4)),
        (prop::collection::hash_map(0..4u8, word(), 0..4), messages(), any::<u32>()),
        (prop::collection::btree_set(any::<u8>(), 0..4), any::<u64>(), any::<u16>()),
        (-9..9_i64, any::<Option<u8>>(), word()),
    )
        .prop_map(
            |((once, last, append, merge), (hashed, by_id, with), (extended, own, untracked), rest)| {
                let (sum, min, max) = rest;
                All {
                    once,
                    last,
                    append,
                    merge,
                    hashed,
                    by_id,
                    with,
                    extended,
                    own,
                    untracked,
                    sum,
                    min,
                    max,
                }
            },
        )
}

/// A call of one method of the update.
#[derive(Clone, Debug)]
enum Call {
    Once(String),
    Last(Option<u32>),
    OverwriteLast(Option<u32>),
    Append(Vec<String>),
    OverwriteAppend(Vec<String>),
    Merge(Vec<(String, u8)>),
    OverwriteMerge(BTreeMap<String, u8>),
    Hashed(Vec<(u8, String)>),
    ById(Vec<Message>),
    RemoveById(Vec<String>),
    OverwriteById(Vec<Message>),
    With(u8),
    OverwriteWith(u32),
    Extended(Vec<u8>),
    Own(u32),
    OverwriteOwn(u64),
    Untracked(u16),
    Sum(i32),
    OverwriteSum(i32),
    Min(Option<u8>),
    OverwriteMin(Option<u8>),
    Max(String),
    OverwriteMax(String),
}

fn call() -> impl Strategy<Value = Call> {
    prop_oneof![
        word().prop_map(Call::Once),
        any::<Option<u32>>().prop_map(Call::Last),
        any::<Option<u32>>().prop_map(Call::OverwriteLast),
        vec(word(), 0..4).prop_map(Call::Append),
        vec(word(), 0..4).prop_map(Call::OverwriteAppend),
        vec((word(), any::<u8>()), 0..4).prop_map(Call::Merge),
        btree_map(word(), any::<u8>(), 0..4).prop_map(Call::OverwriteMerge),
        vec((0..4u8, word()), 0..4).prop_map(Call::Hashed),
        vec(message(), 0..4).prop_map(Call::ById),
        vec(word(), 0..3).prop_map(Call::RemoveById),
        messages().prop_map(Call::OverwriteById),
        any::<u8>().prop_map(Call::With),
        any::<u32>().prop_map(Call::OverwriteWith),
        vec(any::<u8>(), 0..4).prop_map(Call::Extended),
        any::<u32>().prop_map(Call::Own),
        any::<u64>().prop_map(Call::OverwriteOwn),
        any::<u16>().prop_map(Call::Untracked),
        any::<i32>().prop_map(Call::Sum),
        any::<i32>().prop_map(Call::OverwriteSum),
        any::<Option<u8>>().prop_map(Call::Min),
        any::<Option<u8>>().prop_map(Call::OverwriteMin),
        word().prop_map(Call::Max),
        word().prop_map(Call::OverwriteMax),
    ]
}

fn apply_call(update: AllUpdate, call: Call) -> AllUpdate {
    match call {
        Call::Once(value) => update.once(value),
        Call::Last(value) => update.last(value),
        Call::OverwriteLast(value) => update.overwrite_last(value),
        Call::Append(items) => update.append(items),
        Call::OverwriteAppend(items) => update.overwrite_append(items),
        Call::Merge(entries) => update.merge(entries),
        Call::OverwriteMerge(map) => update.overwrite_merge(map),
        Call::Hashed(entries) => update.hashed(entries),
        Call::ById(items) => update.by_id(items),
        Call::RemoveById(keys) => update.remove_by_id(keys),
        Call::OverwriteById(items) => update.overwrite_by_id(items),
        Call::With(write) => update.with(write),
        Call::OverwriteWith(value) => update.overwrite_with(value),
        Call::Extended(items) => update.extended(items),
        Call::Own(write) => update.own(write),
        Call::OverwriteOwn(value) => update.overwrite_own(value),
        Call::Untracked(value) => update.untracked(value),
        Call::Sum(more) => update.sum(more.into()),
        Call::OverwriteSum(value) => update.overwrite_sum(value.into()),
        Call::Min(value) => update.min(value),
        Call::OverwriteMin(value) => update.overwrite_min(value),
        Call::Max(value) => update.max(value),
        Call::OverwriteMax(value) => update.overwrite_max(value),
    }
}

fn calls() -> impl Strategy<Value = Vec<Call>> {
    vec(call(), 0..12)
}

fn update_of(calls: Vec<Call>) -> AllUpdate {
    calls.into_iter().fold(All::update(), apply_call)
}

fn applied(mut state: All, update: AllUpdate) -> All {
    state.apply(&(), update).unwrap();
    state
}

proptest! {
    #[test]
    fn a_look_shows_the_merged_state_and_leaves_no_trace(state in state(), calls in calls()) {
        let update = update_of(calls);
        let mut looked_at = state.clone();
        let mut tried = update.clone();
        let seen = looked_at.peek(&(), &mut tried, All::clone).unwrap();

        prop_assert_eq!(&seen, &applied(state.clone(), update.clone()));
        prop_assert_eq!(&looked_at, &state);
        prop_assert_eq!(format!("{tried:?}"), format!("{update:?}"));
        prop_assert_eq!(All::encode_update(&(), &tried).unwrap(), All::encode_update(&(), &update).unwrap());
        prop_assert_eq!(applied(looked_at, tried), applied(state, update));
    }

    #[test]
    fn an_update_survives_its_encoding(state in state(), calls in calls()) {
        let mut update = update_of(calls);
        let bytes = All::encode_update(&(), &update).unwrap();
        let decoded = All::decode_update(&(), &bytes).unwrap();

        prop_assert_eq!(&All::encode_update(&(), &decoded).unwrap(), &bytes);
        // Writes to an untracked channel are never stored.
        All::discard(&(), &mut update, 9);
        prop_assert_eq!(format!("{decoded:?}"), format!("{update:?}"));
        prop_assert_eq!(applied(state.clone(), decoded), applied(state, update));
    }

    #[test]
    fn a_merge_that_is_written_down_is_the_same_merge(state in state(), updates in vec(calls(), 1..4)) {
        let mut delta = DeltaWriter::new(All::channels(&()).len());
        let mut recorded = state.clone();
        let mut plain = state;
        for calls in updates {
            recorded.apply_recorded(&(), update_of(calls.clone()), &mut delta).unwrap();
            plain.apply(&(), update_of(calls)).unwrap();
        }
        prop_assert_eq!(recorded, plain);
    }

    #[test]
    fn writing_in_one_update_is_writing_in_two(state in state(), first in calls(), second in calls()) {
        // Overwrites are left out: an overwrite discards later writes of its own update, but not those of
        // the next update.
        let reduces = |call: &Call| !format!("{call:?}").starts_with("Overwrite");
        let first: Vec<_> = first.into_iter().filter(reduces).collect();
        let second: Vec<_> = second.into_iter().filter(reduces).collect();
        // `own` adds up in 32 bits within one update.
        let narrow = |call: &mut Call| if let Call::Own(write) = call { *write &= 0xffff };
        let mut first = first;
        let mut second = second;
        first.iter_mut().chain(&mut second).for_each(narrow);

        let both: Vec<_> = first.iter().chain(&second).cloned().collect();
        let twice = applied(applied(state.clone(), update_of(first)), update_of(second));
        prop_assert_eq!(applied(state, update_of(both)), twice);
    }

    #[test]
    fn a_channel_comes_back_from_its_value(state in state()) {
        let values = [
            rmp(&state.once), rmp(&state.last), rmp(&state.append), rmp(&state.merge), rmp(&state.hashed),
            rmp(&state.by_id), rmp(&state.with), rmp(&state.extended), rmp(&state.own),
        ];
        let mut restored = All { untracked: state.untracked, ..All::default() };
        for (channel, value) in values.iter().enumerate() {
            restored.restore_channel(&(), channel, value).unwrap();
        }
        // 9 is untracked.
        let values = [rmp(&state.sum), rmp(&state.min), rmp(&state.max)];
        for (channel, value) in (10..).zip(&values) {
            restored.restore_channel(&(), channel, value).unwrap();
        }
        prop_assert_eq!(restored, state);
    }

    #[test]
    fn damaged_updates_are_errors_and_never_panics(calls in calls(), at in any::<prop::sample::Index>(), byte: u8) {
        let mut bytes = All::encode_update(&(), &update_of(calls)).unwrap();
        let at = at.index(bytes.len());
        bytes[at] = byte;
        let _ = All::decode_update(&(), &bytes);
        bytes.truncate(at);
        let _ = All::decode_update(&(), &bytes);
    }
}

fn rmp<T: Serialize>(value: &T) -> Vec<u8> {
    rmp_serde::to_vec_named(value).unwrap()
}
