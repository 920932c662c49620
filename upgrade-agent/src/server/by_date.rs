//! `POST /stats/enrollment/date`: who was enrolled when, newest first.

use std::collections::BTreeSet;

use serde_json::{Value, json};

use super::calendar::Day;
use super::core::{Asked, Core};
use super::fault::Fault;
use super::model::Experiment;
use super::shape::{filled, has, number, one_of};
use super::table::key;
use super::world::World;

const RANGES: [&str; 7] = [
    "last_seven_days",
    "last_two_weeks",
    "last_one_month",
    "last_three_months",
    "last_six_months",
    "last_twelve_months",
    "total",
];

/// How the spans of a range are cut: into days, months or years.
#[derive(Clone, Copy)]
enum Cut {
    Days(i64),
    Months(i64),
    Years(i64),
}

impl Cut {
    fn starts(self, today: Day) -> Vec<Day> {
        match self {
            Self::Days(n) => (0..n).map(|back| today.before(back)).collect(),
            Self::Months(n) => (0..n).map(|back| today.first_of_month(back)).collect(),
            Self::Years(n) => (0..n).map(|back| today.first_of_year(back)).collect(),
        }
    }

    /// The first day of the span in which a day lies.
    fn start(self, day: Day) -> Day {
        match self {
            Self::Days(_) => day,
            Self::Months(_) => day.first_of_month(0),
            Self::Years(_) => day.first_of_year(0),
        }
    }
}

pub(crate) fn enrollment(core: &mut Core, asked: &Asked) -> Result<Value, Fault> {
    let body = &asked.body;
    let is_asked = has(body, "experimentId", filled)
        && has(body, "dateEnum", one_of(&RANGES))
        && has(body, "clientOffset", number);
    if !is_asked {
        return Err(Fault::body());
    }
    let id = body["experimentId"].as_str().unwrap_or_default();
    let id = uuid::Uuid::try_parse(id)
        .map_err(|_| Fault::unwatched(format!("invalid input syntax for type uuid: \"{id}\"")))?;
    let experiment = core.world.experiments.get(&key(&[&id.to_string()]));
    let experiment = experiment.ok_or_else(|| Fault::reads_nothing("null", "createdAt"))?;
    let ahead = body["clientOffset"].as_f64().unwrap_or(0.0) as i64;
    let lost = || Fault::internal("lost date");
    let now = core.now();
    let today = Day::of(&now, ahead).ok_or_else(lost)?;
    let year = |time: &str| Day::of(time, 0).map(|day| day.civil().0);
    let born = year(&experiment.columns.stamp.created_at).ok_or_else(lost)?;
    let cut = cut(body["dateEnum"].as_str().unwrap_or_default(), year(&now).ok_or_else(lost)? - born);
    let spans = cut.starts(today).into_iter();
    let span = |start: Day| {
        let is_in = |at: &Option<String>| {
            at.as_deref().and_then(|at| Day::of(at, ahead)).is_some_and(|day| cut.start(day) == start)
        };
        json!({ "date": start.word(), "stats": stats(&core.world, experiment, is_in) })
    };
    Ok(spans.map(span).collect())
}

/// How many of these times fall into which span of a range, newest first, for something made then.
pub(crate) fn counted(now: &str, made: &str, range: &str, ahead: i64, times: &[&str]) -> Option<Value> {
    let year = |time: &str| Day::of(time, 0).map(|day| day.civil().0);
    let cut = cut(range, year(now)? - year(made)?);
    let days: Vec<Day> = times.iter().filter_map(|time| Day::of(time, ahead)).collect();
    let spans = cut.starts(Day::of(now, ahead)?).into_iter();
    let count = |start: Day| days.iter().filter(|day| cut.start(**day) == start).count();
    Some(spans.map(|start| json!({ "date": start.word(), "count": count(start) })).collect())
}

fn cut(range: &str, age: i64) -> Cut {
    match range {
        "last_seven_days" => Cut::Days(7),
        "last_two_weeks" => Cut::Days(14),
        "last_one_month" => Cut::Days(30),
        "last_three_months" => Cut::Months(3),
        "last_six_months" => Cut::Months(6),
        "last_twelve_months" => Cut::Months(12),
        _ => Cut::Years(age + 1),
    }
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

/// `GET /stats/csv`: the original sends the data by mail, which fails where there is none to send it with.
pub(crate) fn csv(core: &mut Core, asked: &Asked) -> Result<Value, Fault> {
    let id = asked.values_of("experimentId").first().map(|id| id.to_lowercase()).unwrap_or_default();
    if asked.values_of("email").is_empty() || id.is_empty() {
        return Err(Fault::queries());
    }
    if !core.world.experiments.contains(&key(&[&id])) {
        return Err(Fault::not_found(format!("Experiment not found for id: {id}")));
    }
    Err(Fault::no_mail())
}
