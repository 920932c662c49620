//! `POST /stats/enrollment/date`: the enrolments by date, newest first.

use std::collections::BTreeSet;

use serde_json::{Value, json};

use crate::core::{ApiRequest, Core};
use crate::wire::calendar::Day;
use crate::wire::fault::Fault;
use crate::wire::shape::{filled, has, number, one_of};
use crate::wire::spans::{RANGES, SpanUnit};
use crate::world::World;
use crate::world::model::Experiment;
use crate::world::table::key;

pub(crate) fn enrollment(core: &mut Core, asked: &ApiRequest) -> Result<Value, Fault> {
    let body = &asked.body;
    let is_asked = has(body, "experimentId", filled)
        && has(body, "dateEnum", one_of(&RANGES))
        && has(body, "clientOffset", number);
    if !is_asked {
        return Err(Fault::body());
    }
    let id = body["experimentId"].as_str().unwrap_or_default();
    let id = uuid::Uuid::try_parse(id)
        .map_err(|_| Fault::unguarded_query(format!("invalid input syntax for type uuid: \"{id}\"")))?;
    let experiment = core.world.experiments.get(&key(&[&id.to_string()]));
    let experiment = experiment.ok_or_else(|| Fault::reads_nothing("null", "createdAt"))?;
    let ahead = body["clientOffset"].as_f64().unwrap_or(0.0) as i64;
    let lost = || Fault::internal("lost date");
    let now = core.now();
    let today = Day::of(&now, ahead).ok_or_else(lost)?;
    let year = |time: &str| Day::of(time, 0).map(Day::year);
    let born = year(&experiment.columns.stamp.created_at).ok_or_else(lost)?;
    let cut =
        SpanUnit::of(body["dateEnum"].as_str().unwrap_or_default(), year(&now).ok_or_else(lost)? - born);
    let spans = cut.starts(today).into_iter();
    let span = |start: Day| {
        let is_in = |at: &Option<String>| {
            at.as_deref().and_then(|at| Day::of(at, ahead)).is_some_and(|day| cut.start(day) == start)
        };
        json!({ "date": start.word(), "stats": stats(&core.world, experiment, is_in) })
    };
    Ok(spans.map(span).collect())
}

fn stats(world: &World, experiment: &Experiment, is_in: impl Fn(&Option<String>) -> bool) -> Value {
    let id = &experiment.columns.id;
    let users = |condition: &str, point: &str| {
        let rows = world.enrolled.under(&[id]).map(|(_, row)| row);
        let rows =
            rows.filter(|row| row.condition_id.as_deref() == Some(condition) && row.partition_id == point);
        rows.filter(|row| is_in(&row.created_at))
            .map(|row| row.user_id.as_str())
            .collect::<BTreeSet<_>>()
            .len()
    };
    let groups = |condition: &str, point: &str| {
        let rows = world.enrolled_groups.under(&[id]).map(|(_, row)| row);
        let rows = rows.filter(|row| row.condition_id == condition && row.partition_id == point);
        rows.filter(|row| is_in(&row.created_at)).count()
    };
    let conditions = experiment.conditions.iter().map(|condition| {
        let points = experiment.partitions.iter().map(|point| {
            json!({
                "id": point.id,
                "users": users(&condition.id, &point.id),
                "groups": groups(&condition.id, &point.id),
            })
        });
        json!({ "id": condition.id, "partitions": points.collect::<Vec<_>>() })
    });
    json!({ "id": id, "conditions": conditions.collect::<Vec<_>>() })
}
