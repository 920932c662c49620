//! Queries of experiments over metrics.

use serde_json::{Value, json};

use crate::core::Core;
use crate::metrics;
use crate::wire::body::{entries, text};
use crate::wire::row::{row, with};
use crate::world::World;
use crate::world::model::{Columns, Experiment, Query, Stamp};
use crate::world::table::key;

/// The queries of a new experiment, with new ids. Queries over unknown metrics are dropped.
pub(crate) fn made(core: &mut Core, body: &Value, now: &str) -> Vec<Query> {
    let mut queries = Vec::new();
    for (entry, order) in entries(body, "queries").zip(1..) {
        let query = query(&core.world, entry, order, Stamp::new(now));
        if query.metric.is_some() {
            queries.push(Query { id: core.new_id(), ..query });
        }
    }
    queries
}

/// The queries of an updated experiment: they keep their ids and times of creation.
pub(crate) fn rewritten(core: &mut Core, body: &Value, old: &Experiment, now: &str) -> Vec<Query> {
    let mut queries = Vec::new();
    for (entry, order) in entries(body, "queries").zip(1..) {
        let id = text(entry, "id").filter(|id| !id.is_empty()).unwrap_or_else(|| core.new_id());
        let known = old.queries.iter().find(|query| query.id == id);
        let stamp = known.map_or_else(|| Stamp::new(now), |query| query.stamp.clone());
        queries.push(Query { id, ..query(&core.world, entry, order, stamp) });
    }
    queries
}

fn query(world: &World, entry: &Value, order: u64, stamp: Stamp) -> Query {
    let metric = text(&entry["metric"], "key").filter(|metric| world.metrics.contains(&key(&[metric])));
    Query {
        stamp,
        id: String::new(),
        name: text(entry, "name").unwrap_or_default(),
        query: entry["query"].clone(),
        metric,
        repeated_measure: text(entry, "repeatedMeasure").unwrap_or_else(|| "MOST RECENT".into()),
        order,
    }
}

/// The queries with their metrics.
pub(crate) fn shown(world: &World, queries: &[Query]) -> Value {
    queries.iter().map(|query| whole(world, query)).collect()
}

/// In responses of a create: with the experiment's columns.
pub(crate) fn created(world: &World, queries: &[Query], columns: &Columns) -> Value {
    queries.iter().map(|query| with(whole(world, query), [("experiment", row(columns))])).collect()
}

/// In responses of an update: with the experiment's id.
pub(crate) fn updated(world: &World, queries: &[Query], experiment: &str) -> Value {
    queries.iter().map(|query| with(whole(world, query), [("experimentId", json!(experiment))])).collect()
}

fn whole(world: &World, query: &Query) -> Value {
    let metric = query.metric.as_deref().map_or(Value::Null, |metric| metrics::shown(world, metric));
    with(row(query), [("metric", metric)])
}
