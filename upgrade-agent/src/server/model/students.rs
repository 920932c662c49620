//! Students, what became of them, and what is known of them beforehand.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

use super::Stamp;

/// A student. Aliases are rows of their own that name the student they stand for.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub(in crate::server) struct User {
    pub(in crate::server) id: String,
    pub(in crate::server) group: Option<BTreeMap<String, Vec<String>>>,
    pub(in crate::server) working_group: Option<BTreeMap<String, String>>,
}

impl User {
    /// The group of this kind in which he works now.
    pub(in crate::server) fn works_in(&self, kind: Option<&str>) -> Option<&str> {
        self.working_group.as_ref()?.get(kind?).map(String::as_str)
    }

    /// Whether he belongs to the group of this kind in which he works.
    pub(in crate::server) fn is_grouped(&self, kind: Option<&str>) -> bool {
        let groups = || self.group.as_ref()?.get(kind?);
        let working = self.works_in(kind);
        working.is_some_and(|at| groups().is_some_and(|all| all.iter().any(|group| group == at)))
    }
}

/// The first visit of a student at a place.
#[derive(Clone, Debug, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub(in crate::server) struct Visit {
    pub(in crate::server) id: String,
    pub(in crate::server) user_id: String,
    pub(in crate::server) condition: Option<String>,
    pub(in crate::server) experiment_id: Option<String>,
}

/// That a student takes part, at one decision point.
#[derive(Clone, Debug, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub(in crate::server) struct UserEnrollment {
    pub(in crate::server) user_id: String,
    pub(in crate::server) partition_id: String,
    /// None within subjects, where every visit has its own.
    pub(in crate::server) condition_id: Option<String>,
    pub(in crate::server) group_id: Option<String>,
    /// Unknown of rows that are older than the column.
    #[serde(default)]
    pub(in crate::server) created_at: Option<String>,
}

/// One of the visits of a student who takes part within subjects.
#[derive(Clone, Debug, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub(in crate::server) struct RepeatedEnrollment {
    /// The condition that the application told, if the experiment has it.
    pub(in crate::server) condition_id: Option<String>,
    pub(in crate::server) uniquifier: Option<String>,
    pub(in crate::server) created_at: String,
}

/// That a group takes part.
#[derive(Clone, Debug, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub(in crate::server) struct GroupEnrollment {
    pub(in crate::server) partition_id: String,
    pub(in crate::server) condition_id: String,
    /// Unknown of rows that are older than the column.
    #[serde(default)]
    pub(in crate::server) created_at: Option<String>,
}

/// Why somebody is left out for good.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub(in crate::server) enum Exclusion {
    /// Was there before the experiment started.
    ReachedPrior,
    /// Came when enrolment was complete.
    ReachedAfter,
    /// Is on a list.
    Listed,
    /// Has a group that is left out.
    GroupLogic,
    /// The application could not show the condition.
    ByClient,
    /// Has no group.
    NoGroup,
    /// Works in a group that he does not belong to.
    InvalidGroup,
}

/// Something by which students are stratified. Its name is its key.
#[derive(Clone, Debug, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub(in crate::server) struct StratificationFactor {
    #[serde(flatten)]
    pub(in crate::server) stamp: Stamp,
}

/// The stratum of a student.
#[derive(Clone, Debug, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub(in crate::server) struct Stratum {
    #[serde(flatten)]
    pub(in crate::server) stamp: Stamp,
    pub(in crate::server) value: String,
}

/// A student who sees experiments before they start.
#[derive(Clone, Debug, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub(in crate::server) struct PreviewUser {
    #[serde(flatten)]
    pub(in crate::server) stamp: Stamp,
    pub(in crate::server) id: String,
    pub(in crate::server) assignments: Vec<PreviewAssignment>,
}

/// A condition that was chosen for a preview user by hand.
#[derive(Clone, Debug, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub(in crate::server) struct PreviewAssignment {
    #[serde(flatten)]
    pub(in crate::server) stamp: Stamp,
    pub(in crate::server) id: String,
    pub(in crate::server) experiment_id: String,
    pub(in crate::server) condition_id: String,
}
