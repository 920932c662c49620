//! Random calls on a thread: updates of random sizes, new processes, forks, and calls that store at their
//! end. The module also computes the bytes of a full record from the values of the state alone.

#![allow(missing_docs, unreachable_pub, clippy::unwrap_used, clippy::expect_used, clippy::panic)]

use std::collections::{BTreeMap, VecDeque};
use std::sync::{Arc, Mutex};

use agentgraph::checkpoint::delta::{DeltaWriter, EncodeError};
use agentgraph::prelude::*;
use agentgraph::reduce::{Reducer, StoredReducer};
use agentgraph::{CheckpointId, Checkpointer, Durability};
use proptest::prelude::*;
use serde::{Deserialize, Serialize};

use super::Note;

#[derive(State, Serialize, Deserialize, Clone, Debug, Default, PartialEq)]
pub struct Store {
    draft: String,
    page: String,
    #[reduce(append)]
    lines: Vec<String>,
    #[reduce(by_id)]
    notes: Vec<Note>,
    #[reduce(merge)]
    marks: BTreeMap<u16, bool>,
    #[reduce(reducer = Stack, write = Vec<Move>)]
    stack: Vec<String>,
}

#[derive(Clone, Debug, Serialize, Deserialize)]
pub enum Move {
    Push(String),
    /// Removes this many items, or all if there are fewer.
    Pop(usize),
}

/// A reducer that pushes and pops at the end of a list.
struct Stack;

impl Stack {
    fn pop(value: &mut Vec<String>, count: usize) -> Vec<String> {
        value.split_off(value.len().saturating_sub(count))
    }
}

impl Reducer<Vec<String>> for Stack {
    type Write = Vec<Move>;
    const KIND: &'static str = "stack";

    fn reduce(value: &mut Vec<String>, write: Vec<Move>) {
        for step in write {
            match step {
                Move::Push(text) => value.push(text),
                Move::Pop(count) => drop(Self::pop(value, count)),
            }
        }
    }

    fn combine(write: &mut Vec<Move>, later: Vec<Move>) {
        write.extend(later);
    }
}

impl StoredReducer<Vec<String>> for Stack {
    fn reduce_recorded(
        value: &mut Vec<String>,
        write: Vec<Move>,
        delta: &mut DeltaWriter,
    ) -> Result<(), EncodeError> {
        for step in write {
            match step {
                Move::Push(text) => {
                    delta.append(std::slice::from_ref(&text))?;
                    value.push(text);
                }
                Move::Pop(count) => {
                    let gone = Self::pop(value, count);
                    delta.truncate(value.len(), &gone)?;
                }
            }
        }
        Ok(())
    }
}

/// One update.
#[derive(Clone, Debug)]
pub enum Write {
    Draft(usize),
    Page(usize),
    Line(usize),
    Lines(usize),
    Note(u8, usize),
    DropNote(u8),
    Marks(u16),
    Push(usize),
    Pop(usize),
    PopAndPush(usize, usize),
}

impl Write {
    fn update(&self) -> StoreUpdate {
        let text = |length: &usize| "x".repeat(*length);
        match self {
            Write::Draft(length) => Store::update().draft(text(length)),
            Write::Page(length) => Store::update().page(text(length)),
            Write::Line(length) => Store::update().lines([text(length)]),
            Write::Lines(length) => Store::update().overwrite_lines(vec![text(length)]),
            Write::Note(id, length) => {
                Store::update().notes([Note { id: id.to_string(), text: text(length) }])
            }
            Write::DropNote(id) => Store::update().remove_notes([id.to_string()]),
            Write::Marks(count) => Store::update().marks((0..*count).map(|mark| (mark, mark % 2 == 0))),
            Write::Push(length) => Store::update().stack(vec![Move::Push(text(length))]),
            Write::Pop(count) => Store::update().stack(vec![Move::Pop(*count)]),
            Write::PopAndPush(count, length) => {
                Store::update().stack(vec![Move::Pop(*count), Move::Push(text(length))])
            }
        }
    }

    fn field(&self) -> usize {
        match self {
            Write::Draft(_) => 0,
            Write::Page(_) => 1,
            Write::Line(_) | Write::Lines(_) => 2,
            Write::Note(..) | Write::DropNote(_) => 3,
            Write::Marks(_) => 4,
            Write::Push(_) | Write::Pop(_) | Write::PopAndPush(..) => 5,
        }
    }

    /// Returns an upper bound for the bytes of its delta.
    pub fn max_bytes(&self) -> u64 {
        64 + match self {
            Write::Draft(length) | Write::Page(length) | Write::Line(length) | Write::Lines(length) => {
                *length as u64
            }
            Write::Note(_, length) => 64 + *length as u64,
            Write::DropNote(_) => 64,
            Write::Marks(count) => 16 * u64::from(*count),
            Write::Push(length) | Write::PopAndPush(_, length) => *length as u64,
            Write::Pop(_) => 0,
        }
    }
}

/// A call on the thread.
#[derive(Clone, Debug)]
pub struct Call {
    pub how: How,
    /// Whether a new process makes the call, which has to read the thread first.
    pub anew: bool,
    pub writes: Vec<Write>,
}

#[derive(Clone, Copy, Debug)]
pub enum How {
    Sync,
    Exit,
    /// A fork of an existing checkpoint, which this number chooses.
    Fork(usize),
}

fn size() -> impl Strategy<Value = usize> {
    prop_oneof![6 => 0..60_usize, 3 => 0..5_000_usize, 1 => 0..60_000_usize]
}

fn write() -> impl Strategy<Value = Write> {
    prop_oneof![
        3 => size().prop_map(Write::Draft),
        1 => (4_000..80_000_usize).prop_map(Write::Page),
        3 => size().prop_map(Write::Line),
        1 => size().prop_map(Write::Lines),
        3 => (0..40_u8, size()).prop_map(|(id, length)| Write::Note(id, length)),
        2 => (0..40_u8).prop_map(Write::DropNote),
        1 => (0..3_000_u16).prop_map(Write::Marks),
        2 => size().prop_map(Write::Push),
        1 => (0..6_usize).prop_map(Write::Pop),
        2 => (0..4_usize, size()).prop_map(|(count, length)| Write::PopAndPush(count, length)),
    ]
}

fn call() -> impl Strategy<Value = Call> {
    let how =
        prop_oneof![5 => Just(How::Sync), 1 => Just(How::Exit), 2 => (0..1000_usize).prop_map(How::Fork)];
    let long = (1_000..1_200_usize).prop_map(|steps| vec![Write::Draft(1); steps]);
    let one = prop_oneof![3 => Just(Write::Push(1)), 3 => (0..4_usize).prop_map(Write::Pop),
        1 => (0..4_usize).prop_map(|count| Write::PopAndPush(count, 2))];
    let stacked = proptest::collection::vec(one, 1_000..1_200);
    let writes = prop_oneof![12 => proptest::collection::vec(write(), 1..60), 1 => long, 1 => stacked];
    (how, any::<bool>(), writes).prop_map(|(how, anew, writes)| Call { how, anew, writes })
}

pub fn calls() -> impl Strategy<Value = Vec<Call>> {
    proptest::collection::vec(call(), 1..12)
}

/// Returns calls that keep the state small or nearly small.
pub fn small_calls() -> impl Strategy<Value = Vec<Call>> {
    let size = || prop_oneof![8 => 0..40_usize, 1 => 0..1_500_usize];
    let write = prop_oneof![
        4 => size().prop_map(Write::Draft),
        2 => size().prop_map(Write::Line),
        2 => size().prop_map(Write::Lines),
        2 => (0..6_u8, size()).prop_map(|(id, length)| Write::Note(id, length)),
        2 => (0..6_u8).prop_map(Write::DropNote),
        1 => (0..4_usize, size()).prop_map(|(count, length)| Write::PopAndPush(count, length)),
        1 => (0..6_usize).prop_map(Write::Pop),
    ];
    let how =
        prop_oneof![6 => Just(How::Sync), 1 => Just(How::Exit), 1 => (0..1000_usize).prop_map(How::Fork)];
    // A state near the limit, and many deltas of the least length.
    let most = (2_000..4_000_usize, 200..600_usize).prop_map(|(page, steps)| {
        [vec![Write::Page(page), Write::Lines(0)], vec![Write::Pop(0); steps]].concat()
    });
    let writes = prop_oneof![4 => proptest::collection::vec(write, 1..150), 1 => most];
    let call = (how, any::<bool>(), writes).prop_map(|(how, anew, writes)| Call { how, anew, writes });
    proptest::collection::vec(call, 1..10)
}

/// The expected properties of a checkpoint, computed without the store.
pub struct Known {
    pub id: CheckpointId,
    /// The bytes of a full record of it.
    pub live: Live,
    /// Whether a full record is required here, regardless of its cost.
    pub forced: bool,
    /// An upper bound for the bytes of its update.
    pub max_bytes: u64,
}

/// Makes the calls and returns all checkpoints.
pub async fn play(calls: &[Call], saver: &(impl Checkpointer + Clone)) -> Vec<Known> {
    let queue: Arc<Mutex<VecDeque<StoreUpdate>>> = Arc::default();
    let process = || {
        let queue = Arc::clone(&queue);
        let step = move || std::future::ready(queue.lock().unwrap().pop_front());
        let graph = StateGraph::new().node("step", step).edge(START, "step").edge("step", "step");
        graph.compile().unwrap().checkpointer(saver.clone())
    };
    let mut graph = process();
    let start = graph.invoke(Store::update()).thread("t").max_supersteps(0).await.unwrap();
    let mut state = start.output().clone();
    let mut live = Live::of(&state);
    let mut known = vec![Known { id: start.checkpoint().unwrap(), live, forced: true, max_bytes: 0 }];
    for call in calls {
        if call.anew {
            graph = process();
        }
        queue.lock().unwrap().extend(call.writes.iter().map(Write::update));
        let run = graph.proceed().thread("t").max_supersteps(call.writes.len() as u64);
        let run = match call.how {
            How::Sync => run,
            How::Exit => run.durability(Durability::Exit),
            How::Fork(which) => {
                let from = known[which % known.len()].id;
                state = graph.state_at("t", from).await.unwrap().unwrap().values;
                live = Live::of(&state);
                run.from(from)
            }
        };
        let last = run.await.unwrap().checkpoint().unwrap();
        let exits = matches!(call.how, How::Exit);
        let first = last.step - if exits { 0 } else { call.writes.len() as u64 - 1 };
        let id = |step| CheckpointId::new(last.branch, step);
        if matches!(call.how, How::Fork(_)) {
            // The branch begins with a copy of the forked checkpoint.
            known.push(Known { id: id(first - 1), live, forced: true, max_bytes: 0 });
        }
        for (at, write) in call.writes.iter().enumerate() {
            state.apply(&(), write.update()).unwrap();
            live.measure(&state, write.field());
            if !exits || at + 1 == call.writes.len() {
                let id = if exits { id(first) } else { id(first + at as u64) };
                known.push(Known { id, live, forced: exits, max_bytes: write.max_bytes() });
            }
        }
    }
    assert_eq!(graph.state("t").await.unwrap().unwrap().values, state);
    known
}

/// The bytes of the operations in a full record, by field. An operation is a value as MessagePack, after its
/// field number and its length.
#[derive(Clone, Copy, Debug, Default)]
pub struct Live(pub [u64; 6]);

impl Live {
    fn of(store: &Store) -> Self {
        let mut live = Live::default();
        (0..6).for_each(|field| live.measure(store, field));
        live
    }

    fn measure(&mut self, store: &Store, field: usize) {
        let framed = 1 + 1 + 5;
        let note = |note: &Note| framed + 1 + note.id.len() as u64 + packed(note);
        let mark = |(key, value): (&u16, &bool)| framed + 5 + packed(key) + packed(value);
        self.0[field] = match field {
            0 => framed + packed(&store.draft),
            1 => framed + packed(&store.page),
            2 => framed + packed(&store.lines),
            3 => 2 + store.notes.iter().map(note).sum::<u64>(),
            4 => 2 + store.marks.iter().map(mark).sum::<u64>(),
            _ => framed + packed(&store.stack),
        };
    }

    pub fn total(self) -> u64 {
        self.0.iter().sum()
    }
}

/// Returns the fields that the operations of a record refer to, and the fields that they set as a whole.
pub fn referred_and_set(mut operations: &[u8]) -> [Vec<usize>; 2] {
    fn number(from: &mut &[u8]) -> u64 {
        rmp::decode::read_int(from).unwrap()
    }
    fn bin(from: &mut &[u8]) {
        let length = rmp::decode::read_bin_len(from).unwrap();
        *from = &from[length as usize..];
    }
    fn text(from: &mut &[u8]) {
        *from = rmp::decode::read_str_from_slice(*from).unwrap().1;
    }
    let [mut referred, mut set] = [Vec::new(), Vec::new()];
    let from = &mut operations;
    while !from.is_empty() {
        let field = number(from) as usize;
        match number(from) {
            0 => {
                bin(from);
                set.push(field);
            }
            1 => {
                number(from);
                bin(from);
            }
            2 => {
                bin(from);
                bin(from);
            }
            3 => {
                text(from);
                bin(from);
            }
            4 => text(from),
            5 => drop(number(from)),
            6 => {
                number(from);
                number(from);
                referred.push(field);
            }
            _ => {}
        }
    }
    [referred, set]
}

fn packed<T: Serialize>(value: &T) -> u64 {
    rmp_serde::to_vec_named(value).unwrap().len() as u64
}
