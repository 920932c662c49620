//! UpGrade's closed vocabularies as open enums. An unknown word is kept, so data of a newer server can be
//! read and written back without loss.

use std::borrow::Cow;
use std::fmt;
use std::str::FromStr;

use schemars::{JsonSchema, Schema, SchemaGenerator, json_schema};
use serde::{Deserialize, Deserializer, Serialize, Serializer};

/// Declares an enum over words of the server. The first word of a variant is written, and all of them are
/// read.
macro_rules! words {
    (
        $(#[$about:meta])*
        $name:ident { $( $(#[$doc:meta])* $variant:ident = $word:literal $(| $also:literal)* , )+ }
    ) => {
        $(#[$about])*
        #[derive(Clone, Debug, PartialEq, Eq, Hash)]
        #[non_exhaustive]
        pub enum $name {
            $( $(#[$doc])* $variant, )+
            /// A word that this crate does not know, as the server spelt it.
            Unknown(String),
        }

        impl $name {
            /// The words that are written, without [`Self::Unknown`].
            pub const WORDS: &'static [&'static str] = &[$($word),+];

            /// The word as it is shown and written.
            pub fn as_str(&self) -> &str {
                match self {
                    $( Self::$variant => $word, )+
                    Self::Unknown(word) => word,
                }
            }
        }

        impl From<&str> for $name {
            fn from(word: &str) -> Self {
                match word {
                    $( $word $(| $also)* => Self::$variant, )+
                    other => Self::Unknown(other.to_owned()),
                }
            }
        }

        impl FromStr for $name {
            type Err = std::convert::Infallible;

            fn from_str(word: &str) -> Result<Self, Self::Err> {
                Ok(Self::from(word))
            }
        }

        impl fmt::Display for $name {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.pad(self.as_str())
            }
        }

        impl Serialize for $name {
            fn serialize<S: Serializer>(&self, to: S) -> Result<S::Ok, S::Error> {
                to.serialize_str(self.as_str())
            }
        }

        impl<'de> Deserialize<'de> for $name {
            fn deserialize<D: Deserializer<'de>>(from: D) -> Result<Self, D::Error> {
                let word = Cow::<'de, str>::deserialize(from)?;
                Ok(Self::from(word.as_ref()))
            }
        }

        impl JsonSchema for $name {
            fn schema_name() -> Cow<'static, str> {
                stringify!($name).into()
            }

            fn json_schema(_: &mut SchemaGenerator) -> Schema {
                json_schema!({ "type": "string", "enum": Self::WORDS })
            }
        }
    };
}

words! {
    /// Where an experiment is in its life.
    ///
    /// Reads both vocabularies: servers from 6.3 on answer `running`, `paused` and `completed`
    /// where older ones (and every server's own storage) say `enrolling`, `enrollmentComplete`
    /// and `cancelled`. The latter are the words shown.
    ///
    /// ```
    /// use upgrade_agent::client::ExperimentState;
    ///
    /// assert_eq!(ExperimentState::from("running"), ExperimentState::Enrolling);
    /// assert_eq!(ExperimentState::Enrolling.to_string(), "enrolling");
    /// assert_eq!(ExperimentState::from("frozen").to_string(), "frozen");
    /// ```
    ExperimentState {
        /// Set up, assigns nobody.
        Inactive = "inactive",
        /// Still being written.
        Draft = "draft",
        /// Assigns preview users only.
        Preview = "preview",
        /// Starts at a date.
        Scheduled = "scheduled",
        /// Assigns and enrols; UpGrade's screen says "running".
        Enrolling = "enrolling" | "running",
        /// Enrols nobody new, the post-experiment rule holds; UpGrade's screen says "paused".
        EnrollmentComplete = "enrollmentComplete" | "paused",
        /// Over, assigns nobody; UpGrade's screen says "completed".
        Cancelled = "cancelled" | "completed",
        /// Over and put away.
        Archived = "archived",
    }
}

words! {
    /// Whose earlier condition a student keeps.
    ConsistencyRule {
        /// The student's own.
        Individual = "individual",
        /// The experiment's: only enrolments count, exclusions do not.
        Experiment = "experiment",
        /// The group's.
        Group = "group",
    }
}

words! {
    /// Who is assigned to a condition.
    AssignmentUnit {
        /// Each student.
        Individual = "individual",
        /// Each group, such as a class.
        Group = "group",
        /// Each visit of a student.
        WithinSubjects = "within-subjects",
    }
}

words! {
    /// What students get once enrolment is complete.
    PostExperimentRule {
        /// What they had.
        Continue = "continue",
        /// The default; servers from 6.0 on have no use for it.
        Revert = "revert",
        /// One chosen condition.
        Assign = "assign",
    }
}

words! {
    /// How a condition is drawn.
    AssignmentAlgorithm {
        /// By the weights.
        Random = "random",
        /// By the weights, corrected by a stratification factor.
        Stratified = "stratified random sampling",
        /// By a bandit that learns from rewards.
        TsConfigurable = "ts_configurable",
    }
}

words! {
    /// Whether students that no list names take part.
    FilterMode {
        /// Everybody.
        IncludeAll = "includeAll",
        /// Nobody.
        ExcludeAll = "excludeAll",
    }
}

words! {
    /// The design of an experiment.
    ExperimentType {
        /// Conditions are listed.
        Simple = "Simple",
        /// Conditions are combinations of factors' levels.
        Factorial = "Factorial",
    }
}

words! {
    /// What became of an assigned condition at a decision point.
    MarkStatus {
        /// The student saw it.
        Applied = "condition applied",
        /// It could not be shown; the student is excluded.
        NotApplied = "condition not applied",
        /// There was none to show.
        NoneAssigned = "no condition assigned",
    }
}

words! {
    /// Where to look for an experiment.
    SearchKey {
        /// Anywhere.
        All = "all",
        /// In its name.
        Name = "name",
        /// Its state.
        Status = "status",
        /// In its tags.
        Tag = "tag",
        /// In its context.
        Context = "context",
        /// Its id.
        Id = "id",
    }
}

words! {
    /// What to sort experiments by.
    SortKey {
        /// The name.
        Name = "name",
        /// The state.
        State = "state",
        /// The last change.
        UpdatedAt = "updatedAt",
        /// The rule for the time after enrolment.
        PostExperimentRule = "postExperimentRule",
    }
}

words! {
    /// Which end comes first.
    SortDirection {
        /// The smallest.
        Ascending = "ASC",
        /// The largest.
        Descending = "DESC",
    }
}
