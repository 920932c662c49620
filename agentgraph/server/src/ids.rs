//! Ids on the wire, and times.

use std::time::SystemTime;

use agentgraph::{CheckpointId, InterruptId};
use jiff::Timestamp;
use uuid::Uuid;

use crate::error::ApiError;

/// The namespace of the ids that are made of names. Clients compute the id of an assistant with it.
const NAMES: Uuid = Uuid::from_u128(0x6ba7b821_9dad_11d1_80b4_00c04fd430c8);

/// The id of a graph's own assistant.
pub(crate) fn assistant_of(graph: &str) -> String {
    Uuid::new_v5(&NAMES, graph.as_bytes()).to_string()
}

/// An id that sorts by the time of its making.
pub(crate) fn new_id() -> String {
    Uuid::now_v7().to_string()
}

/// The canonical form of an id that a client sent.
pub(crate) fn parse_uuid(what: &str, text: &str) -> Result<String, ApiError> {
    let parsed = Uuid::try_parse(text).map_err(|_| ApiError::invalid(format!("{what} is not a UUID")))?;
    Ok(parsed.to_string())
}

/// The id of a question on the wire: 32 hexadecimal digits.
pub(crate) fn interrupt_id(id: InterruptId) -> String {
    Uuid::new_v5(&NAMES, id.to_string().as_bytes()).simple().to_string()
}

/// Whether a text has the form of a question's id, as clients know it.
pub(crate) fn is_interrupt_id(text: &str) -> bool {
    text.len() == 32 && text.bytes().all(|byte| byte.is_ascii_hexdigit())
}

/// The task that asked, of the text of a question's id.
pub(crate) fn task_of(id: InterruptId) -> String {
    let text = id.to_string();
    dashed(text.split('-').next().unwrap_or_default())
}

/// 32 hexadecimal digits as a UUID; other texts as they are.
pub(crate) fn dashed(digits: &str) -> String {
    Uuid::try_parse(digits).map_or_else(|_| digits.to_owned(), |id| id.to_string())
}

/// A namespace of the engine, with its tasks as UUIDs.
pub(crate) fn wire_namespace(namespace: &str) -> String {
    if namespace.is_empty() {
        return String::new();
    }
    let level = |level: &str| match level.split_once(':') {
        Some((node, task)) => format!("{node}:{}", dashed(task)),
        None => level.to_owned(),
    };
    namespace.split('|').map(level).collect::<Vec<_>>().join("|")
}

/// The namespaces of the subgraphs around a place, the outer ones first, and its own.
pub(crate) fn levels(namespace: &str) -> impl Iterator<Item = &str> {
    let ends = namespace.match_indices('|').map(|(end, _)| end).chain([namespace.len()]);
    ends.map(|end| &namespace[..end]).filter(|level| !level.is_empty())
}

/// The namespace of the engine that [`wire_namespace`] has shown.
pub(crate) fn engine_namespace(namespace: &str) -> String {
    let level = |level: &str| match level.split_once(':') {
        Some((node, task)) => {
            let digits = Uuid::try_parse(task).map_or_else(|_| task.to_owned(), |id| id.simple().to_string());
            format!("{node}:{digits}")
        }
        None => level.to_owned(),
    };
    namespace.split('|').map(level).collect::<Vec<_>>().join("|")
}

/// An id that is made of others, the same on each call.
pub(crate) fn derived(parts: &str) -> String {
    Uuid::new_v5(&NAMES, parts.as_bytes()).to_string()
}

/// A place in the history of a thread: a checkpoint, or the place just before the input that it holds, where
/// LangGraph has a checkpoint of its own and a run can begin with another input.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct WirePlace {
    pub(crate) id: CheckpointId,
    pub(crate) is_before_input: bool,
}

impl WirePlace {
    pub(crate) fn at(id: CheckpointId) -> Self {
        WirePlace { id, is_before_input: false }
    }

    pub(crate) fn before(id: CheckpointId) -> Self {
        WirePlace { id, is_before_input: true }
    }

    /// A version 6 UUID which sorts as the checkpoints of its thread do: the branch, the step, one bit for
    /// the place, and some bits of the thread, so that two threads do not share ids.
    pub(crate) fn wire(self, thread: &str) -> String {
        let (branch, step) = (u128::from(self.id.branch), u128::from(self.id.step));
        let high = (branch << 32) | ((step >> 48) << 16) | (6 << 12) | ((step >> 36) & 0xfff);
        let thread = Uuid::try_parse(thread).map_or(0, |id| id.as_u128() & 0xff_ffff);
        let place = u128::from(!self.is_before_input);
        let low = (2 << 62) | ((step & 0xf_ffff_ffff) << 26) | (place << 24) | thread;
        Uuid::from_u128((high << 64) | low).to_string()
    }

    pub(crate) fn parse(text: &str) -> Result<Self, ApiError> {
        let bits = Uuid::try_parse(text).map_err(|_| ApiError::invalid("checkpoint_id is not a UUID"))?;
        let (high, low) = bits.as_u64_pair();
        let branch = u32::try_from(high >> 32).unwrap_or(u32::MAX);
        let step = ((high >> 16 & 0xffff) << 48) | ((high & 0xfff) << 36) | (low >> 26 & 0xf_ffff_ffff);
        Ok(WirePlace { id: CheckpointId::new(branch, step), is_before_input: low >> 24 & 1 == 0 })
    }
}

/// Microseconds since 1970.
pub(crate) fn now() -> i64 {
    Timestamp::now().as_microsecond()
}

/// A time as RFC 3339 with microseconds.
pub(crate) fn time(micros: i64) -> String {
    match Timestamp::from_microsecond(micros) {
        Ok(at) => format!("{at:.6}").replace('Z', "+00:00"),
        Err(_) => String::new(),
    }
}

/// A time on the wire, in microseconds since 1970.
pub(crate) fn micros(time: &str) -> Option<i64> {
    Some(time.parse::<Timestamp>().ok()?.as_microsecond())
}

pub(crate) fn micros_of(at: SystemTime) -> i64 {
    Timestamp::try_from(at).map(Timestamp::as_microsecond).unwrap_or_default()
}

pub(crate) fn system_time(at: SystemTime) -> String {
    time(micros_of(at))
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        #[test]
        fn places_survive_the_wire_and_keep_their_order(
            mut places in proptest::collection::vec((0..u32::MAX, 0..u64::MAX, any::<bool>()), 2..6)
        ) {
            places.sort_by_key(|(branch, step, is_before)| (*branch, *step, !is_before));
            let wired = places.iter().map(|(branch, step, is_before)| {
                let place = WirePlace { id: CheckpointId::new(*branch, *step), is_before_input: *is_before };
                let wire = place.wire("0190a0a0-0000-7000-8000-00000000beef");
                (WirePlace::parse(&wire).is_ok_and(|parsed| parsed == place), wire)
            });
            let wired: Vec<_> = wired.collect();
            prop_assert!(wired.iter().all(|(survives, _)| *survives));
            prop_assert!(wired.is_sorted_by_key(|(_, wire)| wire));
        }
    }
}
