//! `/stratification`: the strata of students, by the factors of uploaded tables, and the number of students
//! of a stratum in each condition.

use std::collections::BTreeMap;

use serde_json::{Value, json};

use super::draw::ConditionCounts;
use crate::core::{ApiRequest, Core};
use crate::wire::csv::quoted;
use crate::wire::fault::Fault;
use crate::wire::row::{row, with};
use crate::wire::shape::{each, has};
use crate::wire::words::AssignmentAlgorithm;
use crate::world::World;
use crate::world::model::{Experiment, Stamp, StratificationFactor, Stratum, User};
use crate::world::table::{key, parts};

/// The participants of a student's stratum, counted per decision point.
pub(crate) fn present<'w>(world: &'w World, experiment: &Experiment, user: &User) -> ConditionCounts<'w> {
    let mut present = ConditionCounts::new();
    let factor = experiment.stratification_factor.as_deref();
    let is_stratified = experiment.columns.assignment_algorithm == AssignmentAlgorithm::Stratified;
    let Some(factor) = factor.filter(|_| is_stratified) else { return present };
    let own = world.strata.get(&key(&[factor, &user.id])).map(|stratum| &stratum.value);
    let Some(own) = own else { return present };
    for (_, row) in world.enrolled.under(&[&experiment.columns.id]) {
        let stratum = world.strata.get(&key(&[factor, &row.user_id]));
        if let (Some(condition), true) = (&row.condition_id, stratum.is_some_and(|s| s.value == *own)) {
            *present.entry(condition).or_default() += 1;
        }
    }
    present
}

/// The factor in a body, which must be known.
pub(crate) fn wanted(world: &World, body: &Value) -> Result<Option<String>, Fault> {
    let name = body["stratificationFactor"]["stratificationFactorName"].as_str();
    match name {
        Some(name) if !world.stratification_factors.contains(&key(&[name])) => Err(Fault::database(
            "insert or update on table \"experiment\" violates foreign key constraint \
             \"FK_335189d91114f3a71ff18be6243\"",
        )),
        name => Ok(name.map(str::to_owned)),
    }
}

/// A factor as experiments show it.
pub(crate) fn shown(world: &World, name: Option<&str>) -> Value {
    let factor = name.and_then(|name| Some((name, world.stratification_factors.get(&key(&[name]))?)));
    factor.map_or(Value::Null, |(name, factor)| shown_factor(name, factor))
}

fn shown_factor(name: &str, factor: &StratificationFactor) -> Value {
    with(row(&factor.stamp), [("stratificationFactorName", json!(name))])
}

/// `GET /stratification`: the factors that have students. As in the original, a student counts once for each
/// experiment that uses the factor, and the experiments are missing in the response.
pub(crate) fn all(core: &mut Core, _: &ApiRequest) -> Result<Value, Fault> {
    let world = &core.world;
    let mut counts: BTreeMap<String, BTreeMap<&str, usize>> = BTreeMap::new();
    for (at, stratum) in world.strata.entries() {
        let factor = parts(at).into_iter().next().unwrap_or_default();
        let uses = |e: &&Experiment| e.stratification_factor.as_deref() == Some(factor.as_str());
        let times = world.experiments.values().filter(uses).count().max(1);
        *counts.entry(factor).or_default().entry(&stratum.value).or_default() += times;
    }
    let shown = counts
        .into_iter()
        .map(|(factor, values)| json!({ "factor": factor, "factorValue": values, "experimentIds": {} }));
    Ok(shown.collect())
}

/// `GET /stratification/download/:factor`: a table of students and their values.
pub(crate) fn download(core: &mut Core, asked: &ApiRequest) -> Result<Value, Fault> {
    let factor = &asked.id;
    if !core.world.stratification_factors.contains(&key(&[factor])) {
        return Err(Fault::no_table());
    }
    let mut rows = vec![format!("uuid,{}", quoted(factor))];
    let students = core.world.strata.under(&[factor]);
    rows.extend(students.map(|(at, stratum)| {
        let user = parts(at).into_iter().nth(1).unwrap_or_default();
        format!("{},{}", quoted(&user), quoted(&stratum.value))
    }));
    if rows.len() == 1 {
        rows.push(",".into());
    }
    Ok(json!(rows.join("\r\n")))
}

/// `DELETE /stratification/:factor`: an unknown factor is not an error.
pub(crate) fn delete(core: &mut Core, asked: &ApiRequest) -> Result<Value, Fault> {
    let name = &asked.id;
    let world = &mut core.world;
    let Some(gone) = world.stratification_factors.get(&key(&[name])).cloned() else {
        return Ok(json!([]));
    };
    let uses = |e: &&Experiment| e.stratification_factor.as_ref() == Some(name);
    if world.experiments.values().any(|e| uses(&e)) {
        return Err(Fault::database(
            "update or delete on table \"stratification_factor\" violates foreign key constraint \
             \"FK_335189d91114f3a71ff18be6243\" on table \"experiment\"",
        ));
    }
    world.stratification_factors.remove(&key(&[name]));
    world.strata.remove_under(&[name], |_| true);
    Ok(json!([shown_factor(name, &gone)]))
}

/// `POST /stratification`: tables with a student in the first column and a factor in each other one.
pub(crate) fn upload(core: &mut Core, asked: &ApiRequest) -> Result<Value, Fault> {
    if !has(&asked.body, "files", each(|file| !file.is_null() && *file != "")) {
        return Err(Fault::body());
    }
    let files = asked.body["files"].as_array().into_iter().flatten();
    let tables: Vec<&str> = files
        .map(|file| file["file"].as_str().ok_or_else(|| Fault::reads_nothing("undefined", "replace")))
        .collect::<Result<_, _>>()?;
    let tables: Vec<Vec<Cell>> = tables.into_iter().map(cells).collect::<Result<_, _>>()?;
    Ok(tables.into_iter().map(|cells| store_cells(core, cells)).collect())
}

/// The value of one factor for one student; none removes the old value.
struct Cell {
    user: String,
    factor: String,
    value: Option<String>,
}

/// Quotes are removed, so no field can contain a comma.
fn cells(table: &str) -> Result<Vec<Cell>, Fault> {
    let table = table.replace('"', "");
    let mut rows = table.split('\n').map(|row| row.split(',').collect::<Vec<_>>());
    let factors = rows.next().unwrap_or_default();
    let mut cells = Vec::new();
    for row in rows.filter(|row| row.first().is_some_and(|user| !user.is_empty())) {
        for (at, factor) in factors.iter().enumerate().skip(1) {
            let value = row.get(at).ok_or_else(|| Fault::reads_nothing("undefined", "trim"))?.trim();
            let value = Some(value).filter(|value| !value.is_empty()).map(str::to_owned);
            cells.push(Cell { user: row[0].to_owned(), factor: factor.trim().to_owned(), value });
        }
    }
    Ok(cells)
}

/// Removes the old values of all factors of the table for its students, and creates unknown students.
fn store_cells(core: &mut Core, cells: Vec<Cell>) -> Value {
    let now = core.now();
    let world = &mut core.world;
    for user in cells.iter().map(|cell| &cell.user) {
        for factor in cells.iter().map(|cell| &cell.factor) {
            world.strata.remove(&key(&[factor, user]));
        }
    }
    let mut saved: BTreeMap<String, Value> = BTreeMap::new();
    for Cell { user, factor, value } in cells {
        let Some(value) = value else { continue };
        if !world.users.contains(&user) {
            world.users.insert(user.clone(), User { id: user.clone(), ..User::default() });
        }
        let stamp = Stamp::new(&now);
        let new = StratificationFactor { stamp: stamp.clone() };
        world.stratification_factors.insert_first(key(&[&factor]), new);
        let at = key(&[&factor, &user]);
        let row = with(
            row(&stamp),
            [
                ("user", json!({ "id": user })),
                ("stratificationFactor", shown(world, Some(&factor))),
                ("stratificationFactorValue", json!(value)),
            ],
        );
        world.strata.insert(at.clone(), Stratum { stamp, value });
        saved.insert(at, row);
    }
    saved.into_values().collect()
}
