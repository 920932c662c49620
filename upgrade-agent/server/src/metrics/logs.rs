//! Logs of applications: values of metrics that a query uses. A value replaces an earlier one with the same
//! uniquifier.

use std::collections::HashMap;

use serde_json::{Map, Value, json};

use super::JOIN;
use crate::core::Core;
use crate::metrics;
use crate::wire::body::{entries, text};
use crate::wire::fault::Fault;
use crate::wire::row::row;
use crate::wire::words::ExperimentState;
use crate::world::World;
use crate::world::model::{Log, Stamp, User};
use crate::world::table::key;

/// The uniquifier of values without one.
const ONLY: &str = "1";

/// Stores the logs of a body for a student, and returns the written rows. The entries of one body do not
/// affect each other.
pub(crate) fn store_logs(core: &mut Core, user: &User, body: &Value) -> Result<Value, Fault> {
    let before: Vec<Log> = core.world.logs.under(&[&user.id]).map(|(_, log)| log.clone()).collect();
    let before = by_metric(&before);
    let mut told = Vec::new();
    for entry in entries(body, "value") {
        let (changed, new) = merged(&before, logged(&core.world, entry));
        for (id, data, time) in changed {
            told.extend(rewrite(core, user, id, data, &time));
        }
        let time = text(entry, "timestamp").unwrap_or_default();
        for values in new {
            told.push(write(core, user, values, &time));
        }
    }
    Ok(json!(told))
}

/// The values of one uniquifier, by metric key.
struct Values {
    uniquifier: String,
    time: String,
    of: Vec<(String, Value)>,
}

/// The values of an entry that a query uses.
fn logged(world: &World, entry: &Value) -> Vec<Values> {
    let time = text(entry, "timestamp").unwrap_or_default();
    let metrics = &entry["metrics"];
    let alone = (ONLY.to_owned(), String::new(), &metrics["attributes"]);
    let grouped = entries(metrics, "groupedMetrics").map(|group| {
        let word = |field: &str| group[field].as_str().unwrap_or_default();
        let above = format!("{}{JOIN}{}{JOIN}", word("groupClass"), word("groupKey"));
        (word("groupUniquifier").to_owned(), above, &group["attributes"])
    });
    let mut logged = Vec::new();
    for (uniquifier, above, attributes) in std::iter::once(alone).chain(grouped) {
        let all = attributes.as_object().into_iter().flatten();
        let of = all.map(|(name, value)| (format!("{above}{name}"), value.clone()));
        let of: Vec<_> = of.filter(|(metric, _)| is_asked_for(world, metric)).collect();
        if !of.is_empty() {
            logged.push(Values { uniquifier, time: time.clone(), of });
        }
    }
    logged
}

/// Inactive and archived experiments have no effect.
fn is_asked_for(world: &World, metric: &str) -> bool {
    let asks = world.experiments.values().filter(|experiment| {
        !matches!(experiment.columns.state, ExperimentState::Inactive | ExperimentState::Archived)
    });
    asks.flat_map(|experiment| &experiment.queries).any(|query| query.metric.as_deref() == Some(metric))
}

/// The rows by uniquifier and metric; of several the first.
type ByMetric<'l> = HashMap<(&'l str, &'l str), &'l Log>;

fn by_metric(logs: &[Log]) -> ByMetric<'_> {
    let mut found = ByMetric::new();
    for log in logs {
        for metric in &log.metrics {
            found.entry((&log.uniquifier, metric)).or_insert(log);
        }
    }
    found
}

/// The values that replace earlier ones, by the ids of the rows, and the new ones. A value older than the
/// stored one is dropped.
fn merged(before: &ByMetric<'_>, logged: Vec<Values>) -> (Vec<(u64, Value, String)>, Vec<Values>) {
    let mut changed: Vec<(u64, Value, String)> = Vec::new();
    let mut places = HashMap::new();
    let mut new = Vec::new();
    for Values { uniquifier, time, of } in logged {
        let mut left = Vec::new();
        for (metric, value) in of {
            let Some(old) = before.get(&(uniquifier.as_str(), metric.as_str())) else {
                left.push((metric, value));
                continue;
            };
            let at = places.get(&old.id).copied().unwrap_or(changed.len());
            let since = changed.get(at).map_or(&old.time_stamp, |(_, _, time)| time);
            if time < *since {
                continue;
            }
            if at == changed.len() {
                places.insert(old.id, at);
                changed.push((old.id, old.data.clone(), time.clone()));
            }
            put(&mut changed[at].1, &metric, value);
        }
        if !left.is_empty() {
            new.push(Values { uniquifier, time, of: left });
        }
    }
    (changed, new)
}

fn put(data: &mut Value, metric: &str, value: Value) {
    let mut place = data;
    for part in metric.split(JOIN) {
        if !place.is_object() {
            *place = Value::Object(Map::new());
        }
        place = &mut place[part];
    }
    *place = value;
}

fn rewrite(core: &mut Core, user: &User, id: u64, data: Value, time: &str) -> Option<Value> {
    let now = core.now();
    let log = core.world.logs.get_mut(&at(&user.id, id))?;
    log.data = data;
    time.clone_into(&mut log.time_stamp);
    log.stamp.touch(&now);
    let mut told = without_stamp(log);
    told.as_object_mut()?.remove("metrics");
    Some(told)
}

fn write(core: &mut Core, user: &User, values: Values, time: &str) -> Value {
    let now = core.now();
    let world = &mut core.world;
    // Logs are never deleted, so the number of rows is the last number.
    let id = world.logs.len() as u64 + 1;
    let mut data = json!({});
    values.of.iter().for_each(|(metric, value)| put(&mut data, metric, value.clone()));
    let log = Log {
        stamp: Stamp::new(&now),
        id,
        user_id: user.id.clone(),
        uniquifier: values.uniquifier,
        time_stamp: time.to_owned(),
        data,
        metrics: values.of.into_iter().map(|(metric, _)| metric).collect(),
    };
    let mut told = without_stamp(&log);
    if let Some(told) = told.as_object_mut() {
        told.remove("userId");
        told.insert("user".into(), json!(user));
        told.insert("metrics".into(), log.metrics.iter().map(|m| metrics::shown(world, m)).collect());
    }
    world.logs.insert(at(&user.id, id), log);
    told
}

fn without_stamp(log: &Log) -> Value {
    let mut told = row(log);
    for column in ["createdAt", "updatedAt", "versionNumber"] {
        told.as_object_mut().map(|columns| columns.remove(column));
    }
    told
}

fn at(user: &str, id: u64) -> String {
    key(&[user, &format!("{id:012}")])
}
