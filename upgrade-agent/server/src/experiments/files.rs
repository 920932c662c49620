//! Experiments as files: validation, import and export. An invalid file is reported and skipped.

use serde_json::{Value, json};

use super::{create, lists, path_id, view};
use crate::accounts::audit;
use crate::core::{ApiRequest, Core};
use crate::segments::side::{OneSide, Side};
use crate::segments::{self, segment};
use crate::wire::body::{entries, text};
use crate::wire::dialect::Dialect;
use crate::wire::fault::Fault;
use crate::wire::fit::{FITS, FITS_HALF, FITS_NOT};
use crate::wire::validate;
use crate::world::model::Experiment;
use crate::world::table::key;

/// `POST /experiments/validation`.
pub(crate) fn validate(core: &mut Core, asked: &ApiRequest) -> Result<Value, Fault> {
    let files = asked.body.as_array().ok_or_else(|| Fault::is_no_function("experimentFiles.map"))?;
    Ok(files.iter().map(|file| judge(core, file)).collect())
}

/// `POST /experiments/import`: valid files become new inactive experiments with new ids.
pub(crate) fn import(core: &mut Core, asked: &ApiRequest) -> Result<Value, Fault> {
    let files = asked.body.as_array().ok_or_else(|| Fault::is_no_function("experimentFiles.map"))?;
    let judged: Vec<Value> = files.iter().map(|file| judge(core, file)).collect();
    let mut bodies = Vec::new();
    for (file, word) in files.iter().zip(&judged) {
        let passes = word["error"].as_str().is_none_or(|why| why.is_empty() || why.starts_with("Warning"));
        if passes {
            bodies.push(renewed(file)?);
        }
    }
    bodies.iter().try_for_each(|body| create::check(core, body))?;
    for body in &bodies {
        create::insert(core, body);
    }
    Ok(json!(judged))
}

/// The new experiment of a file. An experiment with invalid parts fails here, as in the original.
fn renewed(file: &Value) -> Result<Value, Fault> {
    let mut body = completed(&parsed(file).ok_or_else(|| Fault::syntax("Unexpected end of JSON input"))?);
    if let Some(part) = missing_part(&body) {
        return Err(Fault::reads_nothing("undefined", part));
    }
    for field in ["id", "createdAt", "updatedAt", "versionNumber"] {
        body.as_object_mut().map(|fields| fields.remove(field));
    }
    body["state"] = json!("inactive");
    Ok(body)
}

fn parsed(file: &Value) -> Option<Value> {
    let content: Value = serde_json::from_str(file["fileContent"].as_str()?).ok()?;
    content.is_object().then_some(content)
}

/// Older files tie payloads to whole conditions and points, and have no filter mode.
fn completed(experiment: &Value) -> Value {
    let mut body = experiment.clone();
    for payload in body["conditionPayloads"].as_array_mut().into_iter().flatten() {
        for end in ["parentCondition", "decisionPoint"] {
            if payload[end].is_object() {
                payload[end] = payload[end]["id"].clone();
            }
        }
    }
    if body["filterMode"].as_str().is_none_or(str::is_empty) {
        body["filterMode"] = json!("excludeAll");
    }
    body
}

/// The missing part for which the original fails to assign ids, by its error.
fn missing_part(body: &Value) -> Option<&'static str> {
    let is_list = |value: &Value| value.is_array();
    let conditions = entries(body, "conditions");
    if !is_list(&body["factors"])
        || !is_list(&body["conditions"])
        || !conditions.map(|condition| &condition["levelCombinationElements"]).all(is_list)
        || !is_list(&body["partitions"])
        || !is_list(&body["queries"])
    {
        return Some("forEach");
    }
    None
}

/// The verdict on one file.
fn judge(core: &Core, file: &Value) -> Value {
    let say = |error: Value, fit: &str| match file.get("fileName") {
        Some(name) => json!({ "fileName": name, "error": error, "compatibilityType": fit }),
        None => json!({ "error": error, "compatibilityType": fit }),
    };
    let Some(experiment) = parsed(file) else { return say(json!("Invalid JSON"), FITS_NOT) };
    if experiment["context"].is_null() {
        // The original fails here and reports nothing about the file.
        return json!({});
    }
    let complaints = complaints(core, &experiment);
    if experiment.get("moocletPolicyParameters").is_some() {
        let why = "moocletPolicyParameters was provided but mooclets are not enabled on backend.";
        return say(json!(why), FITS_NOT);
    }
    if !complaints.is_empty() || missing_part(&completed(&experiment)).is_some() {
        return say(json!(complaints), FITS_NOT);
    }
    match age(core.world.dialect, &experiment) {
        None => say(Value::Null, FITS),
        Some(age) => {
            let why = format!(
                "Warning: this experiment file is incompatible({age}) with the current version of UpGrade. \
                 Some features may not import or function as intended."
            );
            say(json!(why), FITS_HALF)
        }
    }
}

fn complaints(core: &Core, experiment: &Value) -> String {
    let mut all: Vec<String> = validate::failing_fields(core.world.dialect, experiment)
        .into_iter()
        .map(|(field, constraint)| {
            format!("property {field} has failed the following constraints: {constraint} \n")
        })
        .collect();
    let context = match &experiment["context"] {
        Value::Array(names) => names.first().and_then(Value::as_str).unwrap_or("undefined").to_owned(),
        Value::String(name) => name.chars().take(1).collect(),
        _ => "undefined".to_owned(),
    };
    if core.contexts.get(&context).is_none() {
        all.push(format!("The app context \"{context}\" is not defined in CONTEXT_METADATA."));
    }
    all.join(", ")
}

/// The relation of the file's version to this one, if they differ.
fn age(dialect: Dialect, experiment: &Value) -> Option<&'static str> {
    let parts =
        |version: &str| -> Vec<String> { version.split('.').map(|part| format!("{part:>10}")).collect() };
    let wrote = text(experiment, "backendVersion").filter(|version| !version.is_empty())?;
    match parts(&wrote).join(".").cmp(&parts(dialect.version()).join(".")) {
        std::cmp::Ordering::Equal => None,
        std::cmp::Ordering::Greater => Some("newer"),
        std::cmp::Ordering::Less => Some("older"),
    }
}

/// `GET /experiments/export?ids=...`; all experiments without ids.
pub(crate) fn export(core: &mut Core, asked: &ApiRequest) -> Result<Value, Fault> {
    let ids = asked.values_of("ids");
    if ids.is_empty() {
        return export_all(core, asked);
    }
    if let Some(id) = ids.iter().find(|id| uuid::Uuid::try_parse(id).is_err()) {
        return Err(Fault::unguarded_query(format!("invalid input syntax for type uuid: \"{id}\"")));
    }
    Ok(give_out(core, |experiment| ids.iter().any(|id| id.eq_ignore_ascii_case(&experiment.columns.id))))
}

/// `GET /experiments/export/all`.
pub(crate) fn export_all(core: &mut Core, _: &ApiRequest) -> Result<Value, Fault> {
    Ok(give_out(core, |_| true))
}

fn give_out(core: &mut Core, is_meant: impl Fn(&Experiment) -> bool) -> Value {
    let all = core.world.experiments_in_order().into_iter();
    let meant: Vec<Experiment> = all.filter(|experiment| is_meant(experiment)).cloned().collect();
    meant.iter().for_each(|experiment| audit::exported(core, &experiment.columns));
    meant.iter().map(|experiment| view::exported(&core.world, experiment)).collect()
}

/// `POST /experiments/lists/import`.
pub(crate) fn import_lists(core: &mut Core, asked: &ApiRequest) -> Result<Value, Fault> {
    let files = asked.body["files"].as_array().ok_or_else(|| Fault::reads_nothing("undefined", "filter"))?;
    let judged = segments::files::judge(core, files, true);
    let words: Vec<(Value, bool)> =
        files.iter().map(|file| (file["fileName"].clone(), segments::files::passes(&judged, file))).collect();
    let lists: Vec<Value> = files
        .iter()
        .zip(&words)
        .filter(|(_, (_, passes))| *passes)
        .filter_map(|(file, _)| segments::files::input_of(file).ok())
        .filter(Value::is_object)
        .collect();
    let id = text(&asked.body, "experimentId").unwrap_or_default().to_lowercase();
    let context = core.world.experiments.get(&key(&[&id])).and_then(|e| e.columns.context.first().cloned());
    let side = if asked.body["filterType"] == "inclusion" { Side::Inclusion } else { Side::Exclusion };
    let mut inputs = Vec::with_capacity(lists.len());
    for mut input in lists {
        let context = context.clone().ok_or_else(|| Fault::reads_nothing("null", "context"))?;
        input["id"] = json!(core.new_id());
        input["context"] = json!(context);
        segment::check(&core.world, &input)?;
        inputs.push(input);
    }
    for input in inputs {
        lists::add(core, &id, &input, side);
    }
    let told = words.into_iter().map(|(name, passes)| {
        json!({ "fileName": name, "error": if passes { Value::Null } else { json!(FITS_NOT) } })
    });
    Ok(told.collect())
}

/// `GET /experiments/export/includeLists/:id` and `excludeLists/:id`.
pub(crate) fn export_lists<S: OneSide>(core: &mut Core, asked: &ApiRequest) -> Result<Value, Fault> {
    let side = S::SIDE;
    let id = path_id(asked)
        .map_err(|_| Fault::database(format!("invalid input syntax for type uuid: \"{}\"", asked.id)))?;
    let experiment = core.world.experiments.get(&key(&[&id])).ok_or_else(Fault::nothing_to_delete)?;
    let lists = side.of(experiment).iter().filter_map(|tie| core.world.segment(&tie.segment_id));
    let lists: Vec<Value> = lists.map(segments::files::as_input).collect();
    if lists.is_empty() {
        return Err(Fault::no_lists(side.verb()));
    }
    Ok(json!(lists))
}
