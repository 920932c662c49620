//! Feature flags and their lists as files. An invalid file is reported and skipped. Imported flags and
//! inclusion lists are disabled at first.

use serde_json::{Value, json};

use super::lists;
use crate::core::{ApiRequest, Core};
use crate::flags;
use crate::segments::side::Side;
use crate::segments::{self, segment};
use crate::wire::body::{entries, text};
use crate::wire::fault::Fault;
use crate::wire::fit::{FITS, FITS_HALF, FITS_NOT};
use crate::wire::validate;
use crate::world::World;

const SIDES: [(&str, Side); 2] =
    [("featureFlagSegmentInclusion", Side::Inclusion), ("featureFlagSegmentExclusion", Side::Exclusion)];

/// The verdict on a file. The original fails on some files and reports nothing about them.
struct Word<'f> {
    file: &'f Value,
    fit: Option<&'static str>,
}

/// `POST /flags/import/validation`.
pub(crate) fn validate(core: &mut Core, asked: &ApiRequest) -> Result<Value, Fault> {
    validate::flag_files(&asked.body)?;
    let shown = |word: Word<'_>| match word.fit {
        Some(fit) => json!({ "fileName": word.file["fileName"], "compatibilityType": fit }),
        None => json!({}),
    };
    Ok(judge(core, &files(&asked.body)).into_iter().map(shown).collect())
}

/// `POST /flags/import`. If the database rejects one flag, none is created here; the original creates those
/// before it.
/// made those before it.
pub(crate) fn import(core: &mut Core, asked: &ApiRequest) -> Result<Value, Fault> {
    validate::flag_files(&asked.body)?;
    let files = files(&asked.body);
    let words = judge(core, &files);
    let fit = |file: &Value| {
        let told = words.iter().find(|word| word.fit.is_some() && word.file["fileName"] == file["fileName"]);
        told.and_then(|word| word.fit).unwrap_or(FITS_NOT)
    };
    let mut taken = Vec::new();
    for file in files.iter().filter(|file| fit(file) != FITS_NOT) {
        let first = files.iter().find(|other| other["fileName"] == file["fileName"]);
        taken.extend(first.and_then(|first| content(first)).map(|flag| usable(&core.world, flag)));
    }
    let mut descriptions = Vec::new();
    for flag in &taken {
        descriptions.push(flags::described(flag)?);
        lists_of(flag).try_for_each(|(list, side)| lists::check(&core.world, &input(list), side))?;
    }
    let told = files.iter().map(|file| file_result(file, fit(file) != FITS_NOT)).collect();
    for (flag, description) in taken.iter().zip(descriptions) {
        make(core, flag, description);
    }
    Ok(told)
}

/// The verdict on each file.
fn judge<'f>(core: &Core, files: &[&'f Value]) -> Vec<Word<'f>> {
    let mut seen: Vec<Value> = Vec::new();
    let mut words = Vec::new();
    for file in files {
        let fit = match content(file) {
            None => Some(FITS_NOT),
            Some(flag) if seen.contains(&flag["key"]) => Some(FITS_NOT),
            Some(flag) => {
                seen.push(flag["key"].clone());
                fit(core, &flag)
            }
        };
        words.push(Word { file, fit });
    }
    words
}

fn files(body: &Value) -> Vec<&Value> {
    entries(body, "files").collect()
}

/// The content of a file, unless it is null.
fn content(file: &Value) -> Option<Value> {
    let content: Value = serde_json::from_str(file["fileContent"].as_str()?).ok()?;
    let nothing = content.is_null() || content == false || content == json!(0) || content == "";
    (!nothing).then_some(content)
}

/// The compatibility of a flag; none if a list has no members to check.
fn fit(core: &Core, flag: &Value) -> Option<&'static str> {
    if !validate::is_flag_file(flag) {
        return Some(FITS_NOT);
    }
    let context = flag["context"][0].as_str().unwrap_or_default();
    let mut known = core.world.flags.values().map(|known| &known.columns);
    let is_taken = known
        .any(|known| flag["key"] == known.key && known.context.first().is_some_and(|first| first == context));
    if core.contexts.get(context).is_none() || is_taken {
        return Some(FITS_NOT);
    }
    for (field, _) in SIDES {
        for list in flag[field].as_array()? {
            list["segment"]["subSegments"].as_array()?;
        }
    }
    let whole = lists_of(flag).all(|(list, _)| is_known(&core.world, list, context));
    Some(if whole { FITS } else { FITS_HALF })
}

/// The lists of a flag, inclusion lists first.
fn lists_of(flag: &Value) -> impl Iterator<Item = (&Value, Side)> {
    SIDES.into_iter().flat_map(|(field, side)| entries(flag, field).map(move |list| (list, side)))
}

/// Whether all segments of a list belong to this context.
fn is_known(world: &World, list: &Value, context: &str) -> bool {
    entries(&list["segment"], "subSegments").all(|sub| {
        let id = sub["id"].as_str().unwrap_or_default().to_lowercase();
        world.segment(&id).is_some_and(|segment| segment.context == context)
    })
}

/// The disabled flag, without lists whose segments do not exist here.
fn usable(world: &World, mut flag: Value) -> Value {
    let context = flag["context"][0].as_str().unwrap_or_default().to_owned();
    for (field, _) in SIDES {
        if let Some(lists) = flag[field].as_array_mut() {
            lists.retain(|list| is_known(world, list, &context));
        }
    }
    flag["status"] = json!("disabled");
    flag
}

/// A list's segment as the body that creates it.
fn input(list: &Value) -> Value {
    let mut input = segment::unbound(&list["segment"]);
    input["listType"] = list["listType"].clone();
    input["type"] = json!("private");
    input
}

fn make(core: &mut Core, flag: &Value, description: String) {
    let id = flags::insert(core, flag, description).id;
    for (list, side) in lists_of(flag) {
        let enabled = matches!(side, Side::Exclusion) && list["enabled"] == true;
        let list_type = text(list, "listType").unwrap_or_default();
        lists::put(core, &id, &input(list), (enabled, list_type), side);
    }
}

/// `POST /flags/lists/import`.
pub(crate) fn import_lists(core: &mut Core, asked: &ApiRequest) -> Result<Value, Fault> {
    validate::flag_list_files(&asked.body)?;
    let files = entries(&asked.body, "files").cloned().collect::<Vec<_>>();
    let judged = segments::files::judge(core, &files, true);
    let passing = files.iter().filter(|file| segments::files::passes(&judged, file));
    let flag = text(&asked.body, "flagId").unwrap_or_default().to_lowercase();
    let context = flags::find(&core.world, &flag).and_then(|flag| flag.columns.context.first().cloned());
    let side = if asked.body["listType"] == "inclusion" { Side::Inclusion } else { Side::Exclusion };
    let mut inputs = Vec::new();
    for mut input in passing.filter_map(|file| segments::files::input_of(file).ok()) {
        let context = context.as_ref().ok_or_else(|| Fault::reads_nothing("null", "context"))?;
        input["id"] = json!(core.new_id());
        input["context"] = json!(context);
        input["type"] = json!("private");
        lists::check(&core.world, &input, side)?;
        inputs.push(input);
    }
    for input in inputs {
        let list_type = text(&input, "listType").unwrap_or_default();
        lists::put(core, &flag, &input, (false, list_type), side);
    }
    Ok(files.iter().map(|file| file_result(file, segments::files::passes(&judged, file))).collect())
}

fn file_result(file: &Value, passes: bool) -> Value {
    json!({ "fileName": file["fileName"], "error": if passes { Value::Null } else { json!(FITS_NOT) } })
}
