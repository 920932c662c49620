//! An experiment's lists: routes that add, change and remove single lists.

use serde_json::{Value, json};

use crate::accounts::audit;
use crate::core::{ApiRequest, Core};
use crate::segments::side::{OneSide, Side};
use crate::segments::{self, segment};
use crate::wire::fault::Fault;
use crate::wire::row::{row, with};
use crate::world::World;
use crate::world::model::{Experiment, ListTie, Stamp};
use crate::world::table::key;

/// `POST /experiments/inclusionList` and `exclusionList`.
pub(crate) fn add_asked<S: OneSide>(core: &mut Core, asked: &ApiRequest) -> Result<Value, Fault> {
    let side = S::SIDE;
    let input = private(&asked.body["list"]);
    let failed = format!("Error in creating private segment for experiment {} list", side.word());
    segment::check(&core.world, &input).map_err(|why| why.within(&failed))?;
    let id = experiment_id(&core.world, &asked.body["experimentId"], side)?;
    add(core, &id, &input, side).ok_or_else(|| Fault::internal("lost list"))
}

/// A list is private unless the body says otherwise.
fn private(list: &Value) -> Value {
    let mut input = json!({ "type": "private" });
    if let (Some(input), Some(fields)) = (input.as_object_mut(), list.as_object()) {
        input.extend(fields.clone());
    }
    input
}

/// The experiment of a body. The original takes the first experiment if the body names none.
fn experiment_id(world: &World, named: &Value, side: Side) -> Result<String, Fault> {
    let found = match named.as_str() {
        Some(id) => {
            let id = uuid::Uuid::try_parse(id).map_err(|_| {
                Fault::unguarded_query(format!("invalid input syntax for type uuid: \"{id}\""))
            })?;
            world.experiments.get(&key(&[&id.to_string()]))
        }
        None => world.experiments_in_order().first().copied(),
    };
    found.map(|experiment| experiment.columns.id.clone()).ok_or_else(|| {
        let table = format!("experiment_segment_{}", side.word());
        let failed = format!("Error in adding segment for experiment {} list", side.word());
        Fault::database(segment::null_in("experimentId", &table)).within(&failed)
    })
}

/// Stores a checked list and ties it to an existing experiment.
pub(super) fn add(core: &mut Core, experiment: &str, input: &Value, side: Side) -> Option<Value> {
    let segment_id = segment::write(core, input);
    let tie = ListTie { stamp: Stamp::new(&core.now()), segment_id };
    let owner = core.world.experiments.get_mut(&key(&[experiment]))?;
    let ties = side.of_mut(owner);
    if ties.iter().all(|other| other.segment_id != tie.segment_id) {
        ties.push(tie.clone());
    }
    note(core, experiment, &tie.segment_id, side, "created");
    shown(&core.world, experiment, &tie)
}

fn note(core: &mut Core, experiment: &str, list: &str, side: Side, deed: &str) {
    let owner = core.world.experiments.get(&key(&[experiment])).map(|owner| owner.columns.clone());
    let name = core.world.segment(list).map(|segment| segment.name.clone());
    if let (Some(columns), Some(name)) = (owner, name) {
        audit::listed(core, &columns, (list, &name), side.word(), deed);
    }
}

/// A tie with its experiment and segment; the experiment has its stored names.
fn shown(world: &World, experiment: &str, tie: &ListTie) -> Option<Value> {
    let owner = world.experiments.get(&key(&[experiment]))?;
    let segment = segments::view::whole(world, world.segment(&tie.segment_id)?);
    let columns = row(&owner.columns);
    Some(with(segments::view::tie(tie, experiment), [("experiment", columns), ("segment", segment)]))
}

/// `PUT /experiments/inclusionList/:id` and `exclusionList/:id`.
pub(crate) fn change<S: OneSide>(core: &mut Core, asked: &ApiRequest) -> Result<Value, Fault> {
    let side = S::SIDE;
    let list = &asked.body["list"];
    if list.is_null() {
        let nothing = if asked.body.get("list").is_some() { "null" } else { "undefined" };
        return Err(Fault::reads_nothing(nothing, "id"));
    }
    if list["id"].as_str() != Some(asked.id.as_str()) {
        let named = list["id"].as_str().unwrap_or("undefined");
        return Err(Fault::thrown(format!(
            "Parameter not in the correct format: The id in the URL ({}) does not match the list id in the \
             request body ({named}).",
            asked.id
        )));
    }
    let (experiment, tie) = tied(&core.world, &asked.body["experimentId"], &asked.id, side)?;
    let failed = format!("Error in updating private segment for experiment {} list", side.word());
    segment::check(&core.world, list).map_err(|why| why.within(&failed))?;
    segment::write(core, list);
    note(core, &experiment, &tie.segment_id, side, "updated");
    shown(&core.world, &experiment, &tie).ok_or_else(|| Fault::internal("lost list"))
}

/// The experiment with the list, and the tie. A body without an experiment matches any.
fn tied(world: &World, named: &Value, list: &str, side: Side) -> Result<(String, ListTie), Fault> {
    for id in [named.as_str(), Some(list)].into_iter().flatten() {
        if uuid::Uuid::try_parse(id).is_err() {
            return Err(Fault::unguarded_query(format!("invalid input syntax for type uuid: \"{id}\"")));
        }
    }
    let is_meant = |e: &&&Experiment| named.as_str().is_none_or(|id| id.eq_ignore_ascii_case(&e.columns.id));
    let all = world.experiments_in_order();
    let found = all.iter().filter(is_meant).find_map(|experiment| {
        let tie = side.of(experiment).iter().find(|tie| tie.segment_id.eq_ignore_ascii_case(list))?;
        Some((experiment.columns.id.clone(), tie.clone()))
    });
    // The original returns the list twice.
    found.ok_or_else(|| {
        let side = side.word();
        Fault::thrown(format!("No existing {side} record found for experiment {list} and segment {list}"))
    })
}

/// `DELETE /experiments/inclusionList/:id` and `exclusionList/:id`.
pub(crate) fn remove<S: OneSide>(core: &mut Core, asked: &ApiRequest) -> Result<Value, Fault> {
    let side = S::SIDE;
    let id = asked.id.to_lowercase();
    if uuid::Uuid::try_parse(&id).is_err() {
        return Err(Fault::database(format!("invalid input syntax for type uuid: \"{}\"", asked.id)));
    }
    let is_tied = |e: &Experiment| side.of(e).iter().any(|tie| tie.segment_id == id);
    let owners: Vec<String> =
        core.world.experiments.values().filter(|e| is_tied(e)).map(|e| e.columns.id.clone()).collect();
    if owners.is_empty() {
        return Err(Fault::thrown(format!("Segment with ID {} not found for {}", asked.id, side.word())));
    }
    owners.iter().for_each(|owner| note(core, owner, &id, side, "deleted"));
    let gone = segment::remove_with_lists(&mut core.world, &id);
    Ok(gone.map_or(Value::Null, |segment| segments::view::columns(&segment)))
}
