//! `POST /query/analyse`: the results of queries over logs, by condition, and in factorial designs also by
//! level.

use std::collections::{BTreeMap, BTreeSet};

use serde_json::{Value, json};

use super::JOIN;
use super::decimal::Decimal;
use crate::core::{ApiRequest, Core};
use crate::wire::body::entries;
use crate::wire::fault::Fault;
use crate::wire::validate;
use crate::wire::words::AssignmentUnit;
use crate::world::World;
use crate::world::model::{Experiment, Log, Query, UserEnrollment};
use crate::world::table::key;

/// Every id has an answer; an unknown id has an empty one.
pub(crate) fn analyse(core: &mut Core, asked: &ApiRequest) -> Result<Value, Fault> {
    validate::analysis(&asked.body)?;
    let ids: Vec<&str> = entries(&asked.body, "queryIds").filter_map(Value::as_str).collect();
    if let Some(id) = ids.iter().find(|id| !validate::is_uuid(&json!(id))) {
        return Err(Fault::unguarded_query(format!("invalid input syntax for type uuid: \"{id}\"")));
    }
    Ok(ids.into_iter().map(|id| answer(&core.world, id)).collect())
}

fn answer(world: &World, id: &str) -> Value {
    let all = world.experiments.values().flat_map(|e| e.queries.iter().map(move |query| (e, query)));
    let Some((experiment, query)) = all.into_iter().find(|(_, query)| query.id == id.to_lowercase()) else {
        return json!({ "id": id, "interactionEffect": null });
    };
    let points = points(world, experiment, query);
    let mut by_condition = effect(&points, query, world, "conditionId", |point| vec![&point.condition]);
    let conditions = experiment.conditions.iter().map(|condition| condition.id.as_str());
    add_missing(&mut by_condition, "conditionId", conditions);
    if !experiment.is_factorial() {
        return json!({ "id": id, "mainEffect": by_condition, "interactionEffect": null });
    }
    let levels = |point: &Point| {
        let own = experiment.elements.iter().filter(|element| element.condition_id == point.condition);
        own.map(|element| element.level_id.as_str()).collect::<BTreeSet<_>>().into_iter().collect()
    };
    let mut by_level = effect(&points, query, world, "levelId", levels);
    let all = experiment.factors.iter().flat_map(|factor| &factor.levels);
    add_missing(&mut by_level, "levelId", all.map(|level| level.id.as_str()));
    json!({ "id": id, "mainEffect": by_level, "interactionEffect": by_condition })
}

/// A student's value in a condition: a text, or a mean of numbers.
struct Point {
    user: String,
    condition: String,
    datum: Datum,
}

#[derive(Clone)]
enum Datum {
    Text(String),
    Mean(Option<Decimal>),
}

/// The value of each enrolment; within subjects, each condition of a student has the value of the visits with
/// that condition.
fn points(world: &World, experiment: &Experiment, query: &Query) -> Vec<Point> {
    let columns = &experiment.columns;
    let within = columns.assignment_unit == AssignmentUnit::WithinSubjects;
    let rows = world.enrolled.under(&[&columns.id]).map(|(_, row)| row);
    if !within {
        let point = |row: &UserEnrollment| {
            let user = row.user_id.clone();
            let condition = row.condition_id.clone()?;
            let datum = datum(&values(world, query, &user, |_| true), query)?;
            Some(Point { user, condition, datum })
        };
        return rows.filter_map(point).collect();
    }
    let mut visits: BTreeMap<(String, String), Vec<(String, String)>> = BTreeMap::new();
    for row in rows {
        for (_, visit) in world.repeated.under(&[&columns.id, &row.user_id, &row.partition_id]) {
            let (Some(condition), Some(uniquifier)) = (&visit.condition_id, &visit.uniquifier) else {
                continue;
            };
            let values = values(world, query, &row.user_id, |log| log.uniquifier == *uniquifier);
            visits.entry((row.user_id.clone(), condition.clone())).or_default().extend(values);
        }
    }
    let point = |((user, condition), mut values): ((String, String), Vec<(String, String)>)| {
        values.sort_by(|a, b| a.0.cmp(&b.0));
        let datum = datum(&values, query)?;
        Some(Point { user, condition, datum })
    };
    visits.into_iter().filter_map(point).collect()
}

/// The logged values of a student for a metric, with their times, oldest first.
fn values(
    world: &World,
    query: &Query,
    user: &str,
    is_meant: impl Fn(&Log) -> bool,
) -> Vec<(String, String)> {
    let metric = query.metric.as_deref().unwrap_or_default();
    let logs = world.logs.under(&[user]).map(|(_, log)| log).filter(|log| is_meant(log));
    let values = logs.filter_map(|log| Some((log.stamp.updated_at.clone(), value(&log.data, metric)?)));
    let mut values: Vec<_> = values.collect();
    values.sort_by(|a, b| a.0.cmp(&b.0));
    values
}

fn value(data: &Value, metric: &str) -> Option<String> {
    let value = metric.split(JOIN).try_fold(data, |place, part| place.get(part))?;
    match value {
        Value::Null => None,
        Value::String(text) => Some(text.clone()),
        // JavaScript does not distinguish 12 from 12.0.
        Value::Number(number) => {
            let whole = number.as_f64().filter(|float| float.fract() == 0.0 && float.abs() < 1e15);
            Some(whole.map_or_else(|| number.to_string(), |whole| format!("{whole}")))
        }
        other => Some(other.to_string()),
    }
}

/// One value of several: their mean, the newest, or the oldest.
fn datum(values: &[(String, String)], query: &Query) -> Option<Datum> {
    let texts = || values.iter().map(|(_, text)| text);
    match query.repeated_measure.as_str() {
        "MEAN" if values.is_empty() => None,
        "MEAN" => Some(Datum::Mean(sum(texts()).and_then(|sum| sum.over(values.len())))),
        "MOST RECENT" => texts().next_back().cloned().map(Datum::Text),
        _ => texts().next().cloned().map(Datum::Text),
    }
}

fn sum<'t>(mut texts: impl Iterator<Item = &'t String>) -> Option<Decimal> {
    texts.try_fold(Decimal::of(0), |sum, text| sum.plus(Decimal::parse(text)?))
}

/// An entry for every id with points. A query that the database cannot answer fails as a whole.
fn effect<'p>(
    points: &'p [Point],
    query: &Query,
    world: &World,
    field: &str,
    ids: impl Fn(&'p Point) -> Vec<&'p str>,
) -> Vec<Value> {
    let mut sorted: BTreeMap<&str, Vec<&Point>> = BTreeMap::new();
    for point in points {
        ids(point).into_iter().for_each(|id| sorted.entry(id).or_default().push(point));
    }
    let metric = query.metric.as_deref().unwrap_or_default();
    let is_number = world.metrics.get(&key(&[metric])).is_some_and(|metric| metric.kind == "continuous");
    let entry = |(id, points): (&str, Vec<&Point>)| {
        let users: BTreeSet<&str> = points.iter().map(|point| point.user.as_str()).collect();
        let result = if is_number { of_numbers(&points, query)? } else { of_words(&points, query)? };
        Some(json!({ field: id, "result": result, "participantsLogged": users.len().to_string() }))
    };
    let entries: Option<Vec<Value>> = sorted.into_iter().map(entry).collect();
    entries.unwrap_or_else(|| vec![json!("rejected")])
}

fn add_missing<'i>(effect: &mut Vec<Value>, field: &str, ids: impl Iterator<Item = &'i str>) {
    for id in ids {
        if effect.iter().all(|entry| entry[field] != id) {
            effect.push(json!({ field: id, "result": "0", "participantsLogged": 0 }));
        }
    }
}

fn of_words(points: &[&Point], query: &Query) -> Option<Value> {
    let wanted = query.query["compareValue"].as_str().unwrap_or_default();
    let is_equal = query.query["compareFn"] == "=";
    let text = |datum: &Datum| match datum {
        Datum::Text(text) => Some(text.clone()),
        Datum::Mean(mean) => mean.map(|mean| mean.to_string()),
    };
    let texts: Vec<String> = points.iter().map(|point| text(&point.datum)).collect::<Option<_>>()?;
    let count = texts.iter().filter(|text| (*text == wanted) == is_equal).count();
    if query.query["operationType"] == "percentage" {
        let share = Decimal::of(count).over(texts.len())?.times(100)?;
        return Some(json!(share.to_string()));
    }
    Some(json!(count.to_string()))
}

fn of_numbers(points: &[&Point], query: &Query) -> Option<Value> {
    let number = |datum: &Datum| match datum {
        Datum::Text(text) => Decimal::parse(text),
        Datum::Mean(mean) => *mean,
    };
    let mut numbers: Vec<Decimal> = points.iter().map(|point| number(&point.datum)).collect::<Option<_>>()?;
    numbers.sort_by(Decimal::compare);
    let sum = || numbers.iter().try_fold(Decimal::of(0), |sum, number| sum.plus(*number));
    let told = |number: Decimal| json!(number.to_string());
    match query.query["operationType"].as_str()? {
        "sum" => sum().map(told),
        "min" => numbers.first().copied().map(told),
        "max" => numbers.last().copied().map(told),
        "avg" => sum()?.over(numbers.len()).map(told),
        "count" => Some(json!(numbers.len().to_string())),
        "median" => Some(median(&numbers)),
        "mode" => mode(&numbers).map(told),
        "stddev" => Some(deviation(&numbers)),
        _ => None,
    }
}

/// The database computes this one with floating-point numbers.
fn median(numbers: &[Decimal]) -> Value {
    let middle = |at: usize| numbers.get(at).map_or(0.0, |number| number.float());
    let last = numbers.len() - 1;
    let low = middle(last / 2);
    let high = middle(last.div_ceil(2));
    let median = low + (high - low) / 2.0;
    if median.fract() == 0.0 && median.abs() < 1e15 { json!(median as i64) } else { json!(median) }
}

/// The most frequent number; of several the smallest.
fn mode(numbers: &[Decimal]) -> Option<Decimal> {
    let runs = numbers.chunk_by(|one, two| one.compare(two).is_eq());
    runs.rev().max_by_key(|run| run.len()).and_then(|run| run.first().copied())
}

/// The standard deviation of a sample; none for a single value.
fn deviation(numbers: &[Decimal]) -> Value {
    if numbers.len() < 2 {
        return Value::Null;
    }
    let floats: Vec<f64> = numbers.iter().map(|number| number.float()).collect();
    let mean = floats.iter().sum::<f64>() / floats.len() as f64;
    let squares: f64 = floats.iter().map(|float| (float - mean).powi(2)).sum();
    json!(format!("{:.16}", (squares / (floats.len() - 1) as f64).sqrt()))
}
