//! The key of a row beside its checkpoint: [`Place`] and [`RowKind`].

/// The place of checkpoints: the thread, and the namespace of a subgraph in it (empty for the root graph).
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Place<'a> {
    /// The thread.
    pub thread: &'a str,
    /// The namespace.
    pub namespace: &'a str,
}

impl<'a> Place<'a> {
    /// The root graph of a thread.
    pub const fn root(thread: &'a str) -> Self {
        Place { thread, namespace: "" }
    }
}

/// The content of a row.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
#[non_exhaustive]
pub enum RowKind {
    /// Every channel.
    Full,
    /// The changes of one superstep.
    Delta,
    /// The folded changes of the steps up to its own, since the last segment or full. Stored beside the
    /// delta of that step.
    Segment,
}

impl RowKind {
    /// The number a store keeps for the kind.
    pub const fn to_number(self) -> u8 {
        match self {
            RowKind::Full => 0,
            RowKind::Delta => 1,
            RowKind::Segment => 2,
        }
    }

    /// The kind with this number.
    pub const fn from_number(number: u8) -> Option<Self> {
        match number {
            0 => Some(RowKind::Full),
            1 => Some(RowKind::Delta),
            2 => Some(RowKind::Segment),
            _ => None,
        }
    }
}
