//! Metrics of applications, their logs, and queries over them.

use serde::{Deserialize, Serialize};
use serde_json::Value;

use super::Stamp;

/// A query of an experiment over a metric.
#[derive(Clone, Debug, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub(crate) struct Query {
    #[serde(flatten)]
    pub(crate) stamp: Stamp,
    pub(crate) id: String,
    pub(crate) name: String,
    /// The operation, and the word that it compares with.
    pub(crate) query: Value,
    /// The key of the metric; none if it was unknown.
    pub(crate) metric: Option<String>,
    pub(crate) repeated_measure: String,
    pub(crate) order: u64,
}

/// A metric of an application. Its key is that of its row.
#[derive(Clone, Debug, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub(crate) struct Metric {
    #[serde(flatten)]
    pub(crate) stamp: Stamp,
    /// The number in the order of creation.
    pub(crate) sequence: u64,
    #[serde(rename = "type")]
    pub(crate) kind: String,
    pub(crate) allowed_data: Option<Vec<Value>>,
    pub(crate) context: Vec<String>,
}

/// A log of an application about a student.
#[derive(Clone, Debug, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub(crate) struct Log {
    #[serde(flatten)]
    pub(crate) stamp: Stamp,
    pub(crate) id: u64,
    pub(crate) user_id: String,
    /// Distinguishes values of the same metric.
    pub(crate) uniquifier: String,
    pub(crate) time_stamp: String,
    pub(crate) data: Value,
    /// The keys of the metrics in the data.
    pub(crate) metrics: Vec<String>,
}
