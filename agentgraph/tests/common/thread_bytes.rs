//! A thread as one string of bytes, for a fuzzer: the number of its graph, then its stored parts. Every
//! string is a thread; missing bytes make a part shorter.

use std::sync::Arc;

use agentgraph::checkpoint::TaskId;
use agentgraph::checkpoint::{PendingWrite, Place, Put, PutWrites, RowKind};
use agentgraph::{CheckpointId, Checkpointer, MemorySaver};

use super::tape::{Tape, unhex};

#[derive(Clone, Debug, Default, PartialEq)]
pub struct ThreadBytes {
    pub graph: u8,
    pub parts: Vec<Part>,
}

#[derive(Clone, Debug, PartialEq)]
pub enum Part {
    /// A record of format 1 with consistent lengths.
    Record { kind: Kind, header: Vec<u8>, operations: Vec<u8> },
    /// Any bytes in the place of a record.
    Raw { kind: Kind, bytes: Vec<u8> },
    /// A pending write.
    Write { task: [u8; 16], slot: u32, bytes: Vec<u8> },
}

/// The kind of row that a record is stored in.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Kind {
    Full,
    Delta,
    /// A segment beside the record before it.
    Segment,
}

const KINDS: [Kind; 3] = [Kind::Full, Kind::Delta, Kind::Segment];

impl ThreadBytes {
    pub fn of(graph: usize, tape: &Tape) -> Self {
        let mut parts = Vec::new();
        for commit in &tape.commits {
            parts.push(record(
                if commit.kind == 0 { Kind::Full } else { Kind::Delta },
                &unhex(&commit.record),
            ));
            parts.extend(commit.segment.iter().map(|segment| record(Kind::Segment, &unhex(segment))));
        }
        parts.extend(tape.writes.iter().map(|write| {
            let task: TaskId = write.task.parse().unwrap();
            Part::Write { task: task.to_u128().to_be_bytes(), slot: write.slot, bytes: unhex(&write.bytes) }
        }));
        ThreadBytes { graph: graph as u8, parts }
    }

    pub fn read(bytes: &[u8]) -> Self {
        let rest = &mut &bytes[..];
        let graph = take(rest, 1).first().copied().unwrap_or(0);
        let mut parts = Vec::new();
        while let [tag, ..] = take(rest, 1) {
            let kind = KINDS[usize::from(tag % 3)];
            parts.push(match tag % 8 {
                0..3 => Part::Record { kind, header: sized(rest), operations: sized(rest) },
                3..6 => Part::Raw { kind, bytes: sized(rest) },
                _ => Part::Write {
                    task: array(take(rest, 16)),
                    slot: u32::from_be_bytes(array(take(rest, 4))),
                    bytes: sized(rest),
                },
            });
        }
        ThreadBytes { graph, parts }
    }

    pub fn write(&self) -> Vec<u8> {
        let mut bytes = vec![self.graph];
        for part in &self.parts {
            match part {
                Part::Record { kind, header, operations } => {
                    bytes.push(*kind as u8);
                    put_sized(&mut bytes, header);
                    put_sized(&mut bytes, operations);
                }
                Part::Raw { kind, bytes: raw } => {
                    bytes.push(3 + *kind as u8);
                    put_sized(&mut bytes, raw);
                }
                Part::Write { task, slot, bytes: written } => {
                    bytes.push(6);
                    bytes.extend(task);
                    bytes.extend(slot.to_be_bytes());
                    put_sized(&mut bytes, written);
                }
            }
        }
        bytes
    }

    /// Stores the thread as `t` in a new saver.
    pub async fn play(&self) -> Arc<MemorySaver> {
        let saver = Arc::new(MemorySaver::new());
        let place = Place::root("t");
        let mut step = 0;
        let mut writes = Vec::new();
        let mut parts = self.parts.iter().peekable();
        while let Some(part) = parts.next() {
            let (kind, bytes) = match part {
                Part::Write { task, slot, bytes } => {
                    let task = TaskId::from_u128(u128::from_be_bytes(*task));
                    writes.push(PendingWrite { task, slot: *slot, bytes: bytes.clone() });
                    continue;
                }
                part => part.record(),
            };
            let segment = parts.next_if(|part| part.record().0 == Kind::Segment).map(|part| part.record().1);
            let put = Put {
                segment: segment.as_deref(),
                ..Put::new(
                    place,
                    CheckpointId::new(0, step),
                    if kind == Kind::Full { RowKind::Full } else { RowKind::Delta },
                    &bytes,
                )
            };
            saver.put(put).await.unwrap();
            step += 1;
        }
        saver
            .put_writes(PutWrites::new(place, CheckpointId::new(0, step.saturating_sub(1)), &writes))
            .await
            .unwrap();
        saver
    }
}

impl Part {
    /// Returns the kind of row and the bytes of a part that is a record.
    fn record(&self) -> (Kind, Vec<u8>) {
        match self {
            Part::Record { kind, header, operations } => {
                let length = (header.len() as u32).to_be_bytes();
                (*kind, [&[1][..], &length, header, operations].concat())
            }
            Part::Raw { kind, bytes } => (*kind, bytes.clone()),
            Part::Write { .. } => (Kind::Full, Vec::new()),
        }
    }
}

fn record(kind: Kind, bytes: &[u8]) -> Part {
    if bytes[0] != 1 {
        return Part::Raw { kind, bytes: bytes.to_vec() };
    }
    let header = u32::from_be_bytes(array(&bytes[1..5])) as usize;
    Part::Record { kind, header: bytes[5..5 + header].to_vec(), operations: bytes[5 + header..].to_vec() }
}

fn take<'a>(rest: &mut &'a [u8], count: usize) -> &'a [u8] {
    let (taken, after) = rest.split_at(count.min(rest.len()));
    *rest = after;
    taken
}

fn sized(rest: &mut &[u8]) -> Vec<u8> {
    let length = u16::from_be_bytes(array(take(rest, 2)));
    take(rest, length.into()).to_vec()
}

/// Appends the length and the content, cut off after 65,535 bytes.
fn put_sized(bytes: &mut Vec<u8>, content: &[u8]) {
    let length = content.len().min(u16::MAX.into());
    bytes.extend((length as u16).to_be_bytes());
    bytes.extend(&content[..length]);
}

/// Returns the bytes as an array, padded with zeroes.
fn array<const N: usize>(bytes: &[u8]) -> [u8; N] {
    let mut array = [0; N];
    array[..bytes.len()].copy_from_slice(bytes);
    array
}
