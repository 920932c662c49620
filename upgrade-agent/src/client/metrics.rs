//! Metrics that an application reports for a student.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};
use serde_json::{Value, json};

use super::error::{ClientError, ErrorKind};
use super::experiments::unexpected_answer;
use super::session::UpgradeClient;
use super::student_routes::StudentCall;
use super::wire;

/// The metrics of one moment.
///
/// ```
/// use upgrade_agent::client::{GroupedMetric, MetricLog};
///
/// let log = MetricLog::at("2026-11-21T09:30:00.000Z")
///     .value("totalTimeSeconds", 12.0)
///     .group(GroupedMetric::new("masteryWorkspace", "areas", "visit-1").value("completion", "GRADUATED"));
/// assert_eq!(log.grouped.len(), 1);
/// ```
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct MetricLog {
    /// The time, RFC 3339.
    pub timestamp: String,
    /// Values by the metric's key.
    pub attributes: BTreeMap<String, MetricValue>,
    /// Values that belong to a part of the application.
    pub grouped: Vec<GroupedMetric>,
}

/// The metrics of one part of the application.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct GroupedMetric {
    /// The kind of part, such as `masteryWorkspace`.
    pub class: String,
    /// The part.
    pub key: String,
    /// Distinguishes two visits of the part.
    pub uniquifier: String,
    /// Values by the metric's key.
    pub attributes: BTreeMap<String, MetricValue>,
}

/// A measured value.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(untagged)]
pub enum MetricValue {
    /// A value of a continuous metric.
    Number(f64),
    /// A value of a categorical metric; the server rejects an empty one.
    Text(String),
}

impl From<f64> for MetricValue {
    fn from(number: f64) -> Self {
        Self::Number(number)
    }
}

impl From<&str> for MetricValue {
    fn from(text: &str) -> Self {
        Self::Text(text.to_owned())
    }
}

impl MetricLog {
    /// An empty log with this time (RFC 3339).
    pub fn at(timestamp: impl Into<String>) -> Self {
        Self { timestamp: timestamp.into(), ..Self::default() }
    }

    /// Adds a value.
    pub fn value(mut self, key: impl Into<String>, value: impl Into<MetricValue>) -> Self {
        self.attributes.insert(key.into(), value.into());
        self
    }

    /// Adds the metrics of a part of the application.
    pub fn group(mut self, group: GroupedMetric) -> Self {
        self.grouped.push(group);
        self
    }

    fn body(&self) -> Value {
        let group = |group: &GroupedMetric| {
            json!({
                "groupClass": group.class,
                "groupKey": group.key,
                "groupUniquifier": group.uniquifier,
                "attributes": group.attributes,
            })
        };
        let grouped: Vec<Value> = self.grouped.iter().map(group).collect();
        let metrics = json!({ "attributes": self.attributes, "groupedMetrics": grouped });
        json!({ "timestamp": self.timestamp, "metrics": metrics })
    }

    fn has_odd_number(&self) -> bool {
        let groups = self.grouped.iter().flat_map(|group| group.attributes.values());
        let mut values = self.attributes.values().chain(groups);
        values.any(|value| matches!(value, MetricValue::Number(number) if !number.is_finite()))
    }
}

impl GroupedMetric {
    /// An empty group for this visit of this part.
    pub fn new(class: impl Into<String>, key: impl Into<String>, uniquifier: impl Into<String>) -> Self {
        let class = class.into();
        let key = key.into();
        let uniquifier = uniquifier.into();
        Self { class, key, uniquifier, attributes: BTreeMap::new() }
    }

    /// Adds a value.
    pub fn value(mut self, key: impl Into<String>, value: impl Into<MetricValue>) -> Self {
        self.attributes.insert(key.into(), value.into());
        self
    }
}

/// A report as the server stored it.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct StoredLog {
    /// The record's id.
    pub id: String,
    /// The visit that it belongs to.
    pub uniquifier: Option<String>,
    /// The time, RFC 3339.
    pub timestamp: Option<String>,
    /// The values, nested as on the server.
    pub data: Value,
}

impl UpgradeClient {
    /// Reports metrics for a student, and returns the stored ones. The server stores only the metrics that a
    /// query of an experiment uses, so an empty result is not an error.
    ///
    /// # Errors
    ///
    /// `E_UPGRADE_NOT_FOUND` if the student is unknown, `E_UPGRADE_BAD_REQUEST` if a number is not finite or
    /// the server rejects the report, and those of any call.
    pub async fn log(&self, user_id: &str, metrics: &[MetricLog]) -> Result<Vec<StoredLog>, ClientError> {
        if metrics.iter().any(MetricLog::has_odd_number) {
            let why = "a metric's number must be finite";
            return Err(ClientError::new(ErrorKind::BadRequest, "POST /v6/log", why));
        }
        let value: Vec<Value> = metrics.iter().map(MetricLog::body).collect();
        let call = StudentCall::post("log", user_id, json!({ "value": value }));
        let name = call.name();
        wire::list(&self.student_call(call).await?, wire::stored_log).ok_or_else(|| unexpected_answer(&name))
    }
}
