//! What applications report of students, and what experiments ask of that.

use serde::{Deserialize, Serialize};
use serde_json::Value;

use super::Stamp;

/// What an experiment asks of a metric.
#[derive(Clone, Debug, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub(in crate::server) struct Query {
    #[serde(flatten)]
    pub(in crate::server) stamp: Stamp,
    pub(in crate::server) id: String,
    pub(in crate::server) name: String,
    /// The operation, and for words what they are compared with.
    pub(in crate::server) query: Value,
    /// The key of the metric; none if it was not known.
    pub(in crate::server) metric: Option<String>,
    pub(in crate::server) repeated_measure: String,
    pub(in crate::server) order: u64,
}

/// Something that applications log. Its key is that of its row.
#[derive(Clone, Debug, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub(in crate::server) struct Metric {
    #[serde(flatten)]
    pub(in crate::server) stamp: Stamp,
    /// Counts metrics in the order of their making.
    pub(in crate::server) sequence: u64,
    #[serde(rename = "type")]
    pub(in crate::server) kind: String,
    pub(in crate::server) allowed_data: Option<Vec<Value>>,
    pub(in crate::server) context: Vec<String>,
}

/// What an application logged of a student.
#[derive(Clone, Debug, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub(in crate::server) struct Log {
    #[serde(flatten)]
    pub(in crate::server) stamp: Stamp,
    pub(in crate::server) id: u64,
    pub(in crate::server) user_id: String,
    /// What tells values of the same metric apart.
    pub(in crate::server) uniquifier: String,
    pub(in crate::server) time_stamp: String,
    pub(in crate::server) data: Value,
    /// The keys of the metrics in the data.
    pub(in crate::server) metrics: Vec<String>,
}
