//! [`RowKey`]: the place of a row in a thread, and its text.

use std::fmt::Write;

use agentgraph_checkpoint::{CheckpointId, PendingWrite, RowKind, TaskId};

/// The place of a row. The order is that of namespaces, then of checkpoints; rows come before pending writes.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct RowKey {
    pub(super) namespace: String,
    pub(super) id: CheckpointId,
    pub(super) what: What,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum What {
    Row(RowKind),
    Write(TaskId, u32),
}

impl RowKey {
    pub(super) fn row(namespace: &str, id: CheckpointId, kind: RowKind) -> Self {
        RowKey { namespace: namespace.to_owned(), id, what: What::Row(kind) }
    }

    pub(super) fn write(namespace: &str, id: CheckpointId, write: &PendingWrite) -> Self {
        RowKey { namespace: namespace.to_owned(), id, what: What::Write(write.task, write.slot) }
    }

    pub(super) fn first_of(namespace: &str) -> Self {
        Self::row(namespace, CheckpointId::new(0, 0), RowKind::Full)
    }

    pub(super) fn last_of(namespace: &str) -> Self {
        let what = What::Write(TaskId::from_u128(u128::MAX), u32::MAX);
        RowKey { namespace: namespace.to_owned(), id: CheckpointId::new(u32::MAX, u64::MAX), what }
    }

    /// Whether the row is a full or a delta.
    pub(super) fn is_step(&self) -> bool {
        matches!(self.what, What::Row(RowKind::Full | RowKind::Delta))
    }

    /// The key as ASCII text, in the same order.
    pub(super) fn to_text(&self) -> String {
        // Each commit makes some of them, and the formatter would take longer than all else about a row.
        let mut text = String::with_capacity(self.namespace.len() + 64);
        for byte in self.namespace.bytes() {
            // Writing to a String does not fail.
            let _ = match byte {
                b'0'..=b'9' | b'a'..=b'z' | b'A'..=b'Z' => text.write_char(char::from(byte)),
                _ => write!(text, "_{byte:02x}"),
            };
        }
        let CheckpointId { branch, step, .. } = self.id;
        for (number, digits) in [(u64::from(branch), 8), (step, 16)] {
            text.push('.');
            let digit = |at: u32| char::from_digit((number >> (4 * at) & 0xf) as u32, 16);
            text.extend((0..digits).rev().filter_map(digit));
        }
        text.push('.');
        let _ = match self.what {
            What::Row(kind) => write!(text, "{}", kind.to_number()),
            What::Write(task, slot) => write!(text, "w{task}{slot:08x}"),
        };
        text
    }

    pub(super) fn from_text(text: &str) -> Option<Self> {
        let mut parts = text.split('.');
        let (namespace, branch, step, what) = (parts.next()?, parts.next()?, parts.next()?, parts.next()?);
        if parts.next().is_some() {
            return None;
        }
        let id =
            CheckpointId::new(u32::from_str_radix(branch, 16).ok()?, u64::from_str_radix(step, 16).ok()?);
        let what = match what.strip_prefix('w') {
            None => What::Row(RowKind::from_number(what.parse().ok()?)?),
            Some(write) => {
                let (task, slot) = write.split_at_checked(32)?;
                What::Write(task.parse().ok()?, u32::from_str_radix(slot, 16).ok()?)
            }
        };
        Some(RowKey { namespace: namespace_from(namespace)?, id, what })
    }
}

fn namespace_from(text: &str) -> Option<String> {
    let mut bytes = Vec::new();
    let mut parts = text.split('_');
    bytes.extend_from_slice(parts.next()?.as_bytes());
    for part in parts {
        let (code, rest) = part.split_at_checked(2)?;
        bytes.push(u8::from_str_radix(code, 16).ok()?);
        bytes.extend_from_slice(rest.as_bytes());
    }
    String::from_utf8(bytes).ok()
}
