//! The two kinds of lists that experiments and flags have: who takes part, and who does not.

#[derive(Clone, Copy)]
pub(super) enum Side {
    Inclusion,
    Exclusion,
}

impl Side {
    pub(super) fn word(self) -> &'static str {
        match self {
            Self::Inclusion => "inclusion",
            Self::Exclusion => "exclusion",
        }
    }

    /// What the lists do, as messages about files have it.
    pub(super) fn verb(self) -> &'static str {
        match self {
            Self::Inclusion => "Include",
            Self::Exclusion => "Exclude",
        }
    }
}

/// A side as a type, by which a table of routes says whose lists an answer is about.
pub(super) trait OneSide {
    const SIDE: Side;
}

pub(super) struct Inclusion;

pub(super) struct Exclusion;

impl OneSide for Inclusion {
    const SIDE: Side = Side::Inclusion;
}

impl OneSide for Exclusion {
    const SIDE: Side = Side::Exclusion;
}
