//! The stored rows: experiments with their parts, students, enrolments.
//!
//! Rows are stored in this form, and their columns are sent under the same names, so names must not change.

mod administration;
mod experiments;
mod flags;
mod metrics;
mod segments;
mod students;

use serde::{Deserialize, Serialize};

pub(crate) use administration::{Account, AuditEntry, Setting};
pub(crate) use experiments::{
    Columns, Condition, ConditionPayload, Element, Experiment, Factor, Level, Partition, Payload,
    StateTimeLog,
};
pub(crate) use flags::{Flag, FlagColumns, FlagTie};
pub(crate) use metrics::{Log, Metric, Query};
pub(crate) use segments::{ListGroup, ListTie, Segment, SegmentKind};
pub(crate) use students::{
    Exclusion, GroupEnrollment, PreviewAssignment, PreviewUser, RepeatedEnrollment, StratificationFactor,
    Stratum, User, UserEnrollment, Visit,
};

/// The times of creation and change, and the number of changes.
#[derive(Clone, Debug, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub(crate) struct Stamp {
    pub(crate) created_at: String,
    pub(crate) updated_at: String,
    pub(crate) version_number: i64,
}

impl Stamp {
    pub(crate) fn new(now: &str) -> Self {
        Self { created_at: now.to_owned(), updated_at: now.to_owned(), version_number: 1 }
    }

    /// Counts a change.
    pub(crate) fn touch(&mut self, now: &str) {
        now.clone_into(&mut self.updated_at);
        self.version_number += 1;
    }
}
