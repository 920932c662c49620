//! The parameters of the actions that play students: one visit, a balance test, a journey.

use std::collections::BTreeMap;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::params::is_false;
use crate::client::ExperimentState;

/// The most students of one simulation, unless configured otherwise.
pub(crate) const MOST_STUDENTS: u32 = 1000;

/// The number of students of a simulation, unless the request names one.
pub(crate) const USUAL_STUDENTS: u32 = 100;

/// The most steps of a journey.
pub(crate) const MOST_STEPS: usize = 20;

/// What `visit_decision_point` needs: one student at one place, who is made known, assigned and marked.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct VisitDecisionPoint {
    /// The student's id.
    pub user_id: String,
    /// The application.
    pub context: String,
    /// The place.
    pub site: String,
    /// What is at the place.
    pub target: String,
    /// The student's groups by kind, such as `{"classId": ["c1"]}`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub group: Option<BTreeMap<String, Vec<String>>>,
    /// The group by kind in which the student works now, such as `{"classId": "c1"}`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub working_group: Option<BTreeMap<String, String>>,
}

/// What `test_condition_balance` needs: does the split of an experiment's conditions come out as its weights
/// say?
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct TestConditionBalance {
    /// The experiment's id, a UUID.
    pub experiment_id: String,
    /// How many students to play, from 1 up, at most 1000 unless the agent was given another bound; 100 if
    /// not given.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub num_users: Option<i64>,
    /// `offline` computes the draws from ids and weights and leaves nothing on the server; `live` starts the
    /// experiment if need be, plays the students and restores its status. If not given: offline for an
    /// experiment that is enrolling, since real students are in it, and live otherwise.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub mode: Option<BalanceMode>,
    /// The place; with `target` one of the experiment's decision points. The first one if not given.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub site: Option<String>,
    /// What is at the place.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub target: Option<String>,
    /// Groups that all students are in, by kind. If not given, each student of a group experiment is alone
    /// in a group.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub group: Option<BTreeMap<String, Vec<String>>>,
    /// The group by kind in which all students work.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub working_group: Option<BTreeMap<String, String>>,
    /// What the ids of the students begin with; `sim-` if not given.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub prefix: Option<String>,
}

/// How a balance is tested.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum BalanceMode {
    /// From ids and weights alone.
    Offline,
    /// With students on the server.
    Live,
}

/// What `simulate_user_journey` needs: students who go through some steps, one step after the other.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct SimulateUserJourney {
    /// The application.
    pub context: String,
    /// The students' ids. Without them, `num_users` students with new ids.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub user_ids: Vec<String>,
    /// How many students with new ids, from 1 up, at most 1000 unless the agent was given another bound; one
    /// if not given.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub num_users: Option<i64>,
    /// The experiment's id, a UUID: whose decision points are visited if no steps are given, and whose status
    /// `set_status` changes.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub experiment_id: Option<String>,
    /// The groups that the students are in at first, by kind.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub group: Option<BTreeMap<String, Vec<String>>>,
    /// The group by kind in which the students work at first.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub working_group: Option<BTreeMap<String, String>>,
    /// What the students go through; if not given, a visit at each decision point of the experiment, or at
    /// each where they are assigned something.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub steps: Vec<JourneyStep>,
    /// Change the status by moves that are not usual ones. Only if the user insists.
    #[serde(default, skip_serializing_if = "is_false")]
    pub force: bool,
}

/// A step of a journey. All students have taken it before the next one begins.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(tag = "do", rename_all = "snake_case", deny_unknown_fields)]
pub enum JourneyStep {
    /// Look at what they would get.
    Assign {},
    /// Visit a decision point: get the condition there and mark the visit.
    Visit {
        /// The place.
        site: String,
        /// What is at the place.
        target: String,
    },
    /// Change the groups in which they work.
    SetWorkingGroup {
        /// The group by kind.
        working_group: BTreeMap<String, String>,
    },
    /// Change the experiment's status. It is restored at the end.
    SetStatus {
        /// Where to.
        status: ExperimentState,
    },
}

impl TestConditionBalance {
    /// How many students to play.
    pub(crate) fn students(&self) -> u32 {
        self.num_users.map_or(USUAL_STUDENTS, |number| u32::try_from(number).unwrap_or(0))
    }
}

impl SimulateUserJourney {
    /// How many students go on the journey.
    pub(crate) fn students(&self) -> usize {
        match self.user_ids.len() {
            0 => self.num_users.map_or(1, |number| usize::try_from(number).unwrap_or(0)),
            named => named,
        }
    }
}
