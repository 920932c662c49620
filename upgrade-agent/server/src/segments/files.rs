//! Segments and lists as files.

use serde_json::{Value, json};

use super::{segment, view};
use crate::core::{ApiRequest, Core};
use crate::segments;
use crate::wire::body::{entries, text};
use crate::wire::csv::quoted;
use crate::wire::fault::Fault;
use crate::wire::fit::{FITS, FITS_HALF, FITS_NOT};
use crate::wire::validate;
use crate::world::World;
use crate::world::model::{Segment, SegmentKind};

/// `POST /segments/validation`: the files with a finding.
pub(crate) fn validate(core: &mut Core, asked: &ApiRequest) -> Result<Value, Fault> {
    let judged = judge(core, files(&asked.body)?, false);
    Ok(judged.into_iter().filter(|word| !word["error"].is_null()).collect())
}

/// `POST /segments/import/validation`.
pub(crate) fn validate_all(core: &mut Core, asked: &ApiRequest) -> Result<Value, Fault> {
    Ok(json!(judge(core, files(&asked.body)?, false)))
}

/// `POST /segments/list/import/validation`.
pub(crate) fn validate_lists(core: &mut Core, asked: &ApiRequest) -> Result<Value, Fault> {
    Ok(json!(judge(core, files(&asked.body)?, true)))
}

/// `POST /segments/import`: each file in the shape of a segment becomes one with a new id.
pub(crate) fn import(core: &mut Core, asked: &ApiRequest) -> Result<Value, Fault> {
    let files = files(&asked.body)?;
    let judged = judge(core, files, false);
    for input in well_formed(files) {
        let mut input = input;
        input["id"] = json!(core.new_id());
        segment::write(core, &input);
    }
    Ok(json!(judged))
}

/// `POST /segments/list/import`.
pub(crate) fn import_lists(core: &mut Core, asked: &ApiRequest) -> Result<Value, Fault> {
    let files = files(&asked.body["files"])?;
    let judged = judge(core, files, true);
    let parent = text(&asked.body, "parentSegmentId").unwrap_or_default().to_lowercase();
    let lists = well_formed(files);
    let is_parent = |segment: &Segment| segment.kind != SegmentKind::Private;
    if !lists.is_empty() && !core.world.segment(&parent).is_some_and(is_parent) {
        return Err(Fault::thrown("Parent Segment not found"));
    }
    for list in lists {
        let mut input = list;
        input["id"] = json!(core.new_id());
        input["type"] = json!("private");
        let id = segment::write(core, &input);
        segments::adopt(core, &parent, &id);
    }
    Ok(json!(judged))
}

fn files(body: &Value) -> Result<&Vec<Value>, Fault> {
    body.as_array().ok_or_else(|| Fault::is_no_function("fileData.filter"))
}

fn is_json(file: &Value) -> bool {
    file["fileName"].as_str().is_some_and(|name| name.ends_with(".json") && name != ".json")
}

fn well_formed(files: &[Value]) -> Vec<Value> {
    let inputs = files.iter().filter(|file| is_json(file)).filter_map(|file| input_of(file).ok());
    inputs.filter(|input| complaints(input).is_empty()).collect()
}

/// The finding for each JSON file, those with a wrong shape first.
pub(crate) fn judge(core: &Core, files: &[Value], as_lists: bool) -> Vec<Value> {
    let say = |file: &Value, error: Value, fit: &str| json!({ "fileName": file["fileName"], "error": error, "compatibilityType": fit });
    let mut first = Vec::new();
    let mut then = Vec::new();
    for file in files.iter().filter(|file| is_json(file)) {
        match input_of(file) {
            Err(why) => first.push(say(file, json!(why), FITS_NOT)),
            Ok(input) => match complaints(&input) {
                why if !why.is_empty() => first.push(say(file, json!(why), FITS_NOT)),
                _ => {
                    let (error, fit) = match faults(core, &input, as_lists) {
                        (_, FITS) => (Value::Null, FITS),
                        (why, FITS_HALF) => (json!(format!("warning: {why}")), FITS_HALF),
                        (why, _) => (json!(format!("Invalid Segment data: {why}")), FITS_NOT),
                    };
                    then.push(say(file, error, fit));
                }
            },
        }
    }
    first.extend(then);
    first
}

/// Whether a file was not found to be invalid.
pub(crate) fn passes(judged: &[Value], file: &Value) -> bool {
    let word = judged.iter().find(|word| word["fileName"] == file["fileName"]);
    word.is_some_and(|word| word["compatibilityType"] != FITS_NOT)
}

/// A file's segment as the body that creates it.
pub(crate) fn input_of(file: &Value) -> Result<Value, String> {
    let content = file["fileContent"].as_str().unwrap_or("undefined");
    let told = |why: &str| format!("Invalid JSON format: {why}");
    let parsed: Value = serde_json::from_str(content).map_err(|_| told("Unexpected token in JSON"))?;
    if matches!(parsed, Value::Null | Value::Bool(false)) || parsed == json!(0) || parsed == json!("") {
        return Err(told("Empty JSON"));
    }
    let mut shown = parsed.clone();
    if parsed["segment"].is_object() {
        shown = parsed["segment"].clone();
        let list_type = if parsed["listType"].is_string() { &parsed } else { &parsed["segment"] };
        shown["listType"] = list_type["listType"].clone();
    }
    Ok(with_members(shown))
}

/// Members in the form of bodies; the file may have the form of responses.
fn with_members(mut shown: Value) -> Value {
    let lists: Vec<Value> = entries(&shown, "subSegments").cloned().collect();
    let has_lists = lists.iter().any(|list| list["type"] == "private");
    let Some(fields) = shown.as_object_mut() else { return shown };
    if let Some(users) = fields.get("individualForSegment").and_then(Value::as_array) {
        let users: Value = users.iter().map(|user| user["userId"].clone()).collect();
        fields.insert("userIds".into(), users);
    }
    if let Some(groups) = fields.get("groupForSegment").and_then(Value::as_array) {
        let group = |group: &Value| json!({ "type": group["type"], "groupId": group["groupId"] });
        let groups: Value = groups.iter().map(group).collect();
        fields.insert("groups".into(), groups);
    }
    if fields.get("subSegments").is_some_and(Value::is_array) {
        let ids = if has_lists { json!([]) } else { lists.iter().map(|list| list["id"].clone()).collect() };
        fields.insert("subSegmentIds".into(), ids);
    }
    shown
}

fn complaints(input: &Value) -> String {
    let failing = validate::failing_segment_fields(input).into_iter();
    let complaint = |(field, constraint)| {
        format!(
            "An instance of SegmentInputValidator has failed the validation:\n - property {field} has failed \
             the following constraints: {constraint} \n"
        )
    };
    failing.map(complaint).collect::<Vec<_>>().join(", ")
}

/// The finding on a segment of the right shape, and its severity.
fn faults(core: &Core, input: &Value, is_list: bool) -> (String, &'static str) {
    let mut why = String::new();
    let mut fit = FITS;
    let word = |field: &str| input[field].as_str().unwrap_or_default();
    let name = word("name");
    let context = word("context");
    let missing = missing_subs(&core.world, input, context);
    if !missing.is_empty() {
        why += &format!(
            "SubSegment: {missing} not found. Please import subSegment with same context and link in segment."
        );
        fit = FITS_HALF;
    }
    match core.contexts.get(context) {
        None => {
            why += &format!("Context {context} not found. Please enter valid context in segment. ");
            fit = FITS_NOT;
        }
        Some(known) => {
            let kinds = entries(input, "groups").filter_map(|group| group["type"].as_str());
            let strange: Vec<&str> =
                kinds.filter(|kind| known.group_types.iter().all(|known| known != kind)).collect();
            if !strange.is_empty() {
                let strange = strange.join(", ");
                why +=
                    &format!("Group type: {strange} not found. Please enter valid group type in segment. ");
                fit = FITS_NOT;
            }
        }
    }
    if is_list && word("listType").is_empty() {
        why += "List type is required for lists. Please enter valid list type in segment. ";
        fit = FITS_NOT;
    }
    if input["type"] != "private" && is_taken(&core.world, name, context) {
        why +=
            &format!("Invalid Segment Name: {name} is already used by another segment with same context. ");
        fit = FITS_NOT;
    }
    (why, fit)
}

fn missing_subs(world: &World, input: &Value, context: &str) -> String {
    let is_missing = |id: &&str| world.segment(&id.to_lowercase()).is_none_or(|sub| sub.context != context);
    let ids = entries(input, "subSegmentIds").filter_map(Value::as_str);
    ids.filter(is_missing).collect::<Vec<_>>().join(", ")
}

fn is_taken(world: &World, name: &str, context: &str) -> bool {
    let mut public = world.segments.values().filter(|segment| segment.kind == SegmentKind::Public);
    public.any(|segment| segment.name == name && segment.context == context)
}

/// `GET /segments/export/json?ids=...`.
pub(crate) fn export(core: &mut Core, asked: &ApiRequest) -> Result<Value, Fault> {
    let world = &core.world;
    Ok(asked_for(world, asked)?.into_iter().map(|segment| with_lists(world, segment)).collect())
}

/// With the members of its lists; sub-segments only by name.
fn with_lists(world: &World, segment: &Segment) -> Value {
    let subs: Vec<&Segment> = segment.sub_segments.iter().filter_map(|id| world.segment(id)).collect();
    let has_lists = subs.iter().any(|sub| sub.kind == SegmentKind::Private);
    let shown =
        subs.into_iter().map(|sub| if has_lists { view::whole(world, sub) } else { view::columns(sub) });
    view::with_members(segment, shown.collect())
}

/// `GET /segments/export/csv?ids=...`: a table of members for each, as text.
pub(crate) fn export_csv(core: &mut Core, asked: &ApiRequest) -> Result<Value, Fault> {
    let world = &core.world;
    let table = |segment: &Segment| {
        let users = segment.users.iter().map(|user| ("Individual", user.as_str()));
        let subs = segment.sub_segments.iter().filter_map(|id| world.segment(id));
        let subs = subs.map(|sub| ("Segment", sub.name.as_str()));
        let groups = segment.groups.iter().map(|group| (group.kind.as_str(), group.group_id.as_str()));
        let rows: Vec<String> = users
            .chain(subs)
            .chain(groups)
            .map(|(kind, id)| format!("{},{}", quoted(kind), quoted(id)))
            .collect();
        let content =
            if rows.is_empty() { String::new() } else { format!("Type,UUID\r\n{}", rows.join("\r\n")) };
        json!({ "fileName": segment.name, "fileContent": content })
    };
    Ok(asked_for(world, asked)?.into_iter().map(table).collect())
}

/// An unknown segment is an error if it is the only one, and skipped otherwise.
fn asked_for<'w>(world: &'w World, asked: &ApiRequest) -> Result<Vec<&'w Segment>, Fault> {
    let ids = asked.values_of("ids");
    let found: Vec<&Segment> = ids.iter().filter_map(|id| world.segment(&id.to_lowercase())).collect();
    if found.is_empty() && ids.len() < 2 {
        return Err(Fault::thrown("Query Failed"));
    }
    Ok(found)
}

/// A list as the body that creates it.
pub(crate) fn as_input(list: &Segment) -> Value {
    json!({
        "name": list.name,
        "description": list.description,
        "context": list.context,
        "type": list.kind,
        "userIds": list.users,
        "subSegmentIds": list.sub_segments,
        "groups": list.groups,
        "listType": list.list_type,
    })
}
