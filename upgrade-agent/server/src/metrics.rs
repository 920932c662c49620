//! `/metric`: the metrics of applications. A metric in a group has a key of several parts, and all are
//! returned as a tree.

pub(crate) mod analysis;
mod decimal;
pub(crate) mod logs;
pub(crate) mod queries;

use std::collections::HashSet;

use serde_json::{Value, json};

use crate::accounts::settings;
use crate::core::{ApiRequest, Core};
use crate::wire::body::{entries, text};
use crate::wire::fault::Fault;
use crate::wire::row::{row, with};
use crate::wire::validate;
use crate::world::World;
use crate::world::model::{Metric, Stamp};
use crate::world::table::{key, parts};

/// The separator of the parts of a key.
pub(crate) const JOIN: &str = "@__@";

/// The limit of parts of a key. Logged values and the tree are as deep as a key, and JSON is not written or
/// read at any depth.
const PARTS: usize = 50;

/// The limit of metrics and groups of one declaration: groups multiply keys by attributes at each level.
const UNITS: usize = 10_000;

/// The metrics that exist at the start, if their context does.
const FIRST: [(&str, &str); 2] = [
    ("assign-prog", "totalTimeSeconds"),
    ("assign-prog", "masteryWorkspace@__@calculating_area_various_figures@__@timeSeconds"),
];

/// `GET /metric`.
pub(crate) fn all(core: &mut Core, _: &ApiRequest) -> Result<Value, Fault> {
    Ok(tree(&in_order(&core.world, |_, _| true)))
}

/// `GET /metric/:context`.
pub(crate) fn of_context(core: &mut Core, asked: &ApiRequest) -> Result<Value, Fault> {
    let context = &asked.id;
    let metrics = in_order(&core.world, |_, metric| metric.context.contains(context));
    if metrics.is_empty() {
        return Err(Fault::not_found(format!("Metrics context not found: {context}")));
    }
    Ok(tree(&metrics))
}

/// `POST /metric/save`: allowed only while metrics are filtered.
pub(crate) fn save(core: &mut Core, asked: &ApiRequest) -> Result<Value, Fault> {
    validate::metrics(&asked.body)?;
    if !settings::setting(&core.world).is_some_and(|setting| setting.to_filter_metric) {
        return Err(Fault::metrics_are_free());
    }
    let mut leaves = Vec::new();
    let mut left = UNITS + 1;
    entries(&asked.body, "metricUnit").for_each(|unit| unfold(unit, "", &mut left, &mut leaves));
    let contexts: Vec<String> =
        entries(&asked.body, "context").filter_map(Value::as_str).map(str::to_owned).collect();
    if left == 0 {
        return Err(Fault::internal("too many metrics in one declaration"));
    }
    leaves.iter().try_for_each(|(key, _)| check_key(key))?;
    let keys: HashSet<String> = leaves.iter().map(|(key, _)| key.clone()).collect();
    for (key, unit) in leaves {
        declare(core, &key, unit, &contexts);
    }
    Ok(tree(&in_order(&core.world, |key, _| keys.contains(key))))
}

/// `DELETE /metric/:key`: deletes the metric, all below it, and the queries over them.
pub(crate) fn delete(core: &mut Core, asked: &ApiRequest) -> Result<Value, Fault> {
    let gone = &asked.id;
    let doomed = in_order(&core.world, |key, _| is_below(key, gone));
    let doomed: Vec<String> = doomed.iter().map(|(key, _)| key.clone()).collect();
    if doomed.is_empty() {
        return Err(Fault::not_found(format!("Metric key not found: {gone}")));
    }
    for metric in &doomed {
        core.world.metrics.remove(&key(&[metric]));
    }
    let asks = |metric: &Option<String>| metric.as_ref().is_some_and(|metric| doomed.contains(metric));
    let asking = core.world.experiments.values().filter(|e| e.queries.iter().any(|q| asks(&q.metric)));
    let asking: Vec<String> = asking.map(|experiment| key(&[&experiment.columns.id])).collect();
    for at in asking {
        if let Some(experiment) = core.world.experiments.get_mut(&at) {
            experiment.queries.retain(|query| !asks(&query.metric));
        }
    }
    let root = gone.split(JOIN).next().unwrap_or_default();
    Ok(tree(&in_order(&core.world, |key, _| is_below(key, root))))
}

fn is_below(key: &str, root: &str) -> bool {
    key.strip_prefix(root).is_some_and(|rest| rest.is_empty() || rest.starts_with(JOIN))
}

/// The values that the original's database rejects; its limit is higher.
fn check_key(key: &str) -> Result<(), Fault> {
    if key.split(JOIN).count() > PARTS { Err(Fault::database("stack depth limit exceeded")) } else { Ok(()) }
}

/// Makes sure that the first metrics exist.
pub(crate) fn ensure_first_metrics(core: &mut Core) {
    for (context, metric) in FIRST {
        if core.contexts.get(context).is_some() && !core.world.metrics.contains(&key(&[metric])) {
            declare(core, metric, &json!({ "datatype": "continuous" }), &[context.to_owned()]);
        }
    }
}

fn declare(core: &mut Core, metric: &str, unit: &Value, contexts: &[String]) {
    let now = core.now();
    let at = key(&[metric]);
    let old = core.world.metrics.get(&key(&[metric]));
    let next = core.world.metrics.values().map(|metric| metric.sequence + 1).max().unwrap_or(0);
    let mut stamp = old.map_or_else(|| Stamp::new(&now), |old| old.stamp.clone());
    if old.is_some() {
        stamp.touch(&now);
    }
    let new = Metric {
        stamp,
        sequence: old.map_or(next, |old| old.sequence),
        kind: text(unit, "datatype").unwrap_or_else(|| "continuous".into()),
        allowed_data: unit["allowedValues"].as_array().cloned(),
        context: contexts.to_vec(),
    };
    core.world.metrics.insert(at, new);
}

/// The metrics of a declaration with their keys: every attribute under every key of a group. Stops when the
/// limit is used up.
fn unfold<'u>(unit: &'u Value, above: &str, left: &mut usize, leaves: &mut Vec<(String, &'u Value)>) {
    let under = |name: &str| if above.is_empty() { name.to_owned() } else { format!("{above}{JOIN}{name}") };
    *left = left.saturating_sub(1);
    if let Some(metric) = unit["metric"].as_str().filter(|_| *left > 0) {
        return leaves.push((under(metric), unit));
    }
    let group = under(unit["groupClass"].as_str().unwrap_or_default());
    for name in entries(unit, "allowedKeys").filter_map(Value::as_str) {
        for attribute in entries(unit, "attributes") {
            if *left == 0 {
                return;
            }
            unfold(attribute, &format!("{group}{JOIN}{name}"), left, leaves);
        }
    }
}

/// The metrics with their keys, in the order of their creation.
fn in_order(world: &World, is_meant: impl Fn(&str, &Metric) -> bool) -> Vec<(String, &Metric)> {
    let all = world.metrics.entries().map(|(at, metric)| (parts(at).concat(), metric));
    let mut meant: Vec<_> = all.filter(|(key, metric)| is_meant(key, metric)).collect();
    meant.sort_by_key(|(_, metric)| metric.sequence);
    meant
}

/// A group has the type and context of its first metric.
fn tree(metrics: &[(String, &Metric)]) -> Value {
    let mut roots = Vec::new();
    for (key, metric) in metrics {
        let mut nodes: &mut Vec<Value> = &mut roots;
        for name in key.split(JOIN) {
            let at = nodes.iter().position(|node| node["key"] == name).unwrap_or(nodes.len());
            if at == nodes.len() {
                nodes.push(json!({
                    "key": name,
                    "children": [],
                    "metadata": { "type": metric.kind },
                    "allowedData": metric.allowed_data,
                    "context": metric.context,
                }));
            }
            let Value::Array(children) = &mut nodes[at]["children"] else { break };
            nodes = children;
        }
    }
    json!(roots)
}

/// A metric in the form of queries; none if it is unknown.
pub(crate) fn shown(world: &World, metric: &str) -> Value {
    let found = world.metrics.get(&key(&[metric]));
    let mut shown = found.map_or(Value::Null, |found| with(row(found), [("key", json!(metric))]));
    if let Some(columns) = shown.as_object_mut() {
        columns.remove("sequence");
    }
    shown
}
