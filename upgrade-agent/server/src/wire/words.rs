//! The words of UpGrade on which rules depend. They are stored and sent unchanged; an unknown word is kept.

use serde::{Deserialize, Deserializer, Serialize, Serializer};

use super::dialect::Dialect;

/// Declares the words of a property. The first word of a variant is written, and all of them are read.
macro_rules! words {
    ($(#[$about:meta])* $name:ident { $($variant:ident = $word:literal $(| $also:literal)*,)+ }) => {
        $(#[$about])*
        #[derive(Clone, Debug, PartialEq, Eq)]
        pub(crate) enum $name {
            $($variant,)+
            Unknown(String),
        }

        impl $name {
            pub(crate) fn as_str(&self) -> &str {
                match self {
                    $(Self::$variant => $word,)+
                    Self::Unknown(word) => word,
                }
            }
        }

        impl From<&str> for $name {
            fn from(word: &str) -> Self {
                match word {
                    $($word $(| $also)* => Self::$variant,)+
                    other => Self::Unknown(other.to_owned()),
                }
            }
        }

        impl Serialize for $name {
            fn serialize<S: Serializer>(&self, to: S) -> Result<S::Ok, S::Error> {
                to.serialize_str(self.as_str())
            }
        }

        impl<'de> Deserialize<'de> for $name {
            fn deserialize<D: Deserializer<'de>>(from: D) -> Result<Self, D::Error> {
                String::deserialize(from).map(|word| Self::from(word.as_str()))
            }
        }
    };
}

words! {
    /// The state of an experiment. Bodies may use some words of 6.3, which are not stored.
    ExperimentState {
        Inactive = "inactive",
        Draft = "draft",
        Preview = "preview",
        Scheduled = "scheduled",
        Enrolling = "enrolling" | "running",
        EnrollmentComplete = "enrollmentComplete" | "paused",
        Cancelled = "cancelled" | "completed",
        Archived = "archived",
    }
}

words! {
    /// Whose earlier condition a student keeps.
    ConsistencyRule {
        Individual = "individual",
        Experiment = "experiment",
        Group = "group",
    }
}

words! {
    /// Who is assigned to a condition.
    AssignmentUnit {
        Individual = "individual",
        Group = "group",
        WithinSubjects = "within-subjects",
    }
}

words! {
    /// What students get once enrolment is complete.
    PostExperimentRule {
        Continue = "continue",
        Revert = "revert",
        Assign = "assign",
    }
}

words! {
    /// How a condition is drawn.
    AssignmentAlgorithm {
        Random = "random",
        Stratified = "stratified random sampling",
        TsConfigurable = "ts_configurable",
    }
}

words! {
    /// Whether students that no list names take part.
    FilterMode {
        IncludeAll = "includeAll",
        ExcludeAll = "excludeAll",
    }
}

words! {
    /// The design of an experiment.
    ExperimentType {
        Simple = "Simple",
        Factorial = "Factorial",
    }
}

/// The word of a state in responses: from 6.3 on some differ from the stored ones.
pub(crate) fn outward(dialect: Dialect, state: &ExperimentState) -> &str {
    match state {
        stored if dialect == Dialect::V62 => stored.as_str(),
        ExperimentState::Enrolling => "running",
        ExperimentState::EnrollmentComplete => "paused",
        ExperimentState::Cancelled => "completed",
        other => other.as_str(),
    }
}
