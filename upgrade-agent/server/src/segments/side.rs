//! The two kinds of lists of experiments and flags: inclusion and exclusion.

use crate::world::model::{Experiment, ListTie};

#[derive(Clone, Copy)]
pub(crate) enum Side {
    Inclusion,
    Exclusion,
}

impl Side {
    pub(crate) fn word(self) -> &'static str {
        match self {
            Self::Inclusion => "inclusion",
            Self::Exclusion => "exclusion",
        }
    }

    /// The word for the lists in messages about files.
    pub(crate) fn verb(self) -> &'static str {
        match self {
            Self::Inclusion => "Include",
            Self::Exclusion => "Exclude",
        }
    }

    /// The lists of an experiment on this side.
    pub(crate) fn of(self, experiment: &Experiment) -> &[ListTie] {
        match self {
            Self::Inclusion => &experiment.inclusion,
            Self::Exclusion => &experiment.exclusion,
        }
    }

    pub(crate) fn of_mut(self, experiment: &mut Experiment) -> &mut Vec<ListTie> {
        match self {
            Self::Inclusion => &mut experiment.inclusion,
            Self::Exclusion => &mut experiment.exclusion,
        }
    }
}

/// A side as a type, for tables of routes.
pub(crate) trait OneSide {
    const SIDE: Side;
}

pub(crate) struct Inclusion;

pub(crate) struct Exclusion;

impl OneSide for Inclusion {
    const SIDE: Side = Side::Inclusion;
}

impl OneSide for Exclusion {
    const SIDE: Side = Side::Exclusion;
}
