//! What applications report of students, and what experiments ask of that.

use serde::{Deserialize, Serialize};
use serde_json::Value;

use super::Stamp;

/// What an experiment asks of a metric.
#[derive(Clone, Debug, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub(crate) struct Query {
    #[serde(flatten)]
    pub(crate) stamp: Stamp,
    pub(crate) id: String,
    pub(crate) name: String,
    /// The operation, and for words what they are compared with.
    pub(crate) query: Value,
    /// The key of the metric; none if it was not known.
    pub(crate) metric: Option<String>,
    pub(crate) repeated_measure: String,
    pub(crate) order: u64,
}

/// Something that applications log. Its key is that of its row.
#[derive(Clone, Debug, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub(crate) struct Metric {
    #[serde(flatten)]
    pub(crate) stamp: Stamp,
    /// Counts metrics in the order of their making.
    pub(crate) sequence: u64,
    #[serde(rename = "type")]
    pub(crate) kind: String,
    pub(crate) allowed_data: Option<Vec<Value>>,
    pub(crate) context: Vec<String>,
}

/// What an application logged of a student.
#[derive(Clone, Debug, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub(crate) struct Log {
    #[serde(flatten)]
    pub(crate) stamp: Stamp,
    pub(crate) id: u64,
    pub(crate) user_id: String,
    /// What tells values of the same metric apart.
    pub(crate) uniquifier: String,
    pub(crate) time_stamp: String,
    pub(crate) data: Value,
    /// The keys of the metrics in the data.
    pub(crate) metrics: Vec<String>,
}
