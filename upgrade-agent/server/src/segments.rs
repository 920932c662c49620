//! `/segments`: public segments, global lists, and the lists of segments.

pub(crate) mod files;
pub(crate) mod lists;
pub(crate) mod segment;
pub(crate) mod side;
mod usage;
pub(crate) mod view;

use serde_json::{Value, json};

use crate::core::{ApiRequest, Core};
use crate::wire::fault::Fault;
use crate::wire::row::with;
use crate::wire::{paging, validate};
use crate::world::World;
use crate::world::model::{Segment, SegmentKind};
use crate::world::table::key;
use usage::Usage;

/// `GET /segments`: the public ones, with their usage.
pub(crate) fn all(core: &mut Core, _: &ApiRequest) -> Result<Value, Fault> {
    let world = &core.world;
    let public = world.segments_in_order().into_iter().filter(|s| s.kind == SegmentKind::Public);
    Ok(Usage::of(world, &public.collect::<Vec<_>>()).answer)
}

/// `GET /segments/global`: one per context, newest first.
pub(crate) fn global(core: &mut Core, _: &ApiRequest) -> Result<Value, Fault> {
    let world = &core.world;
    let all = world.segments_in_order().into_iter().rev();
    let global = all.filter(|segment| segment.kind == SegmentKind::GlobalExclude);
    let shown =
        global.map(|s| with(view::whole(world, s), [("status", json!(usage::excluded(world.dialect)))]));
    Ok(shown.collect())
}

/// `POST /segments/paginated`.
pub(crate) fn paginated(core: &mut Core, asked: &ApiRequest) -> Result<Value, Fault> {
    let body = &asked.body;
    if !validate::is_segment_page(body) {
        return Err(Fault::body());
    }
    let world = &core.world;
    let mut found = world.segments_in_order();
    found.retain(|segment| segment.kind == SegmentKind::Public && matches(segment, &body["searchParams"]));
    let total = found.len();
    let mut page = paging::cut_to(world.dialect, found, body)?;
    sort(&mut page, &body["sortParams"]);
    Ok(paging::page(total, Usage::of(world, &page).answer, body))
}

/// The original compares ids only with texts in the form of an id, and searches `context` if the key is
/// unknown.
fn matches(segment: &Segment, search: &Value) -> bool {
    let Some(wanted) = search["string"].as_str().map(str::to_lowercase) else { return true };
    let holds = |text: &str| text.to_lowercase().contains(&wanted);
    let tags = segment.tags.as_ref().map(|tags| tags.join(","));
    let tagged = tags.is_some_and(|tags| holds(&tags));
    let is_id = uuid::Uuid::try_parse(&wanted).is_ok();
    match search["key"].as_str() {
        Some("name") => holds(&segment.name),
        Some("tag") => tagged,
        Some("id") => !is_id || segment.id == wanted,
        _ => holds(&segment.name) || holds(&segment.context) || tagged || segment.id == wanted,
    }
}

fn sort(page: &mut [&Segment], by: &Value) {
    let descends = by["sortAs"] == "DESC";
    page.sort_by(|a, b| {
        let (a, b) = if descends { (b, a) } else { (a, b) };
        match by["key"].as_str() {
            Some("name") => paging::by_name(&a.name, &b.name),
            Some(_) => a.stamp.updated_at.cmp(&b.stamp.updated_at),
            None => std::cmp::Ordering::Equal,
        }
    });
}

/// `GET /segments/:id`: lists are not found here.
pub(crate) fn single(core: &mut Core, asked: &ApiRequest) -> Result<Value, Fault> {
    let segment = requested_segment(&core.world, asked)?;
    Ok(untied(view::whole(&core.world, segment)))
}

/// `GET /segments/status/:id`: with its usage; its lists have their members.
pub(crate) fn status(core: &mut Core, asked: &ApiRequest) -> Result<Value, Fault> {
    let world = &core.world;
    let segment = requested_segment(world, asked)?;
    let subs: Vec<&Segment> = segment.sub_segments.iter().filter_map(|id| world.segment(id)).collect();
    let mut usage = Usage::of(world, &[segment]);
    let Some(answer) = usage.answer.as_object_mut() else { return Ok(Value::Null) };
    let mut shown = answer.remove("segmentsData").map_or(Value::Null, |mut all| all[0].take());
    if subs.iter().any(|sub| sub.kind == SegmentKind::Private) {
        shown["subSegments"] = subs.into_iter().map(|sub| untied(view::whole(world, sub))).collect();
    }
    answer.insert("segment".into(), untied(shown));
    Ok(usage.answer)
}

/// A segment with the experiments that have it as a list, which the original returns empty.
fn untied(shown: Value) -> Value {
    with(shown, [("experimentSegmentInclusion", Value::Null), ("experimentSegmentExclusion", Value::Null)])
}

/// `POST /segments`: creates or updates one.
pub(crate) fn upsert(core: &mut Core, asked: &ApiRequest) -> Result<Value, Fault> {
    let body = &asked.body;
    validate::segment(body)?;
    let context = body["context"].as_str().unwrap_or_default();
    if core.contexts.get(context).is_none() {
        return Err(Fault::unknown_context(context));
    }
    if body["type"] != "private" {
        check_name(&core.world, body)?;
    }
    segment::check(&core.world, body)?;
    let id = segment::write(core, body);
    written(&core.world, &id)
}

/// Public segments of a context have unique names.
fn check_name(world: &World, body: &Value) -> Result<(), Fault> {
    let name = &body["name"];
    let context = &body["context"];
    let is_other =
        |segment: &&Segment| body["id"].as_str().is_none_or(|id| !id.eq_ignore_ascii_case(&segment.id));
    let named = world.segments.values().filter(|segment| segment.kind != SegmentKind::Private);
    let is_taken = named.filter(is_other).any(|segment| *name == segment.name && *context == segment.context);
    if is_taken {
        let word = |value: &Value| value.as_str().unwrap_or_default().to_owned();
        return Err(Fault::segment_name_is_taken(&word(name), &word(context)));
    }
    Ok(())
}

/// `DELETE /segments/:id`: deletes it with its lists, even if it is used.
pub(crate) fn delete(core: &mut Core, asked: &ApiRequest) -> Result<Value, Fault> {
    let id = path_id(&asked.id)?;
    let gone = segment::remove_with_lists(&mut core.world, &id);
    let gone = gone.ok_or_else(|| Fault::thrown("Query Failed"))?;
    Ok(view::columns(&gone))
}

/// `POST /segments/list`: a list for a segment.
pub(crate) fn add_list(core: &mut Core, asked: &ApiRequest) -> Result<Value, Fault> {
    let body = &asked.body;
    validate::segment(body)?;
    if !validate::is_uuid(&body["parentSegmentId"]) {
        return Err(Fault::body());
    }
    let parent = parent(&core.world, body).ok_or_else(|| Fault::thrown("Parent Segment not found"))?;
    let mut input = body.clone();
    input["type"] = json!("private");
    segment::check(&core.world, &input)?;
    let id = segment::write(core, &input);
    adopt(core, &parent, &id);
    written(&core.world, &id)
}

fn parent(world: &World, body: &Value) -> Option<String> {
    let id = body["parentSegmentId"].as_str()?.to_lowercase();
    let parent = world.segment(&id).filter(|segment| segment.kind != SegmentKind::Private)?;
    Some(parent.id.clone())
}

/// Ties a list to its segment. A segment without tags gets an empty list of tags.
pub(crate) fn adopt(core: &mut Core, parent: &str, list: &str) {
    let now = core.now();
    let Some(parent) = core.world.segments.get_mut(&key(&[parent])) else { return };
    if parent.tags.is_none() {
        parent.tags = Some(Vec::new());
        parent.stamp.touch(&now);
    }
    if parent.sub_segments.iter().all(|id| id != list) {
        parent.sub_segments.push(list.to_owned());
    }
}

/// `DELETE /segments/list/:id`: deletes the list; lists in it stay.
pub(crate) fn delete_list(core: &mut Core, asked: &ApiRequest) -> Result<Value, Fault> {
    let id = path_id(&asked.id)?;
    if !validate::is_uuid(&asked.body["parentSegmentId"]) {
        return Err(Fault::body());
    }
    let named = asked.body["parentSegmentId"].as_str().unwrap_or_default();
    // Two spaces, as in the original.
    let parent =
        parent(&core.world, &asked.body).ok_or_else(|| Fault::thrown("Parent Segment  not found"))?;
    let is_in = core.world.segment(&parent).is_some_and(|parent| parent.sub_segments.contains(&id));
    if !is_in {
        return Err(Fault::thrown(format!("List {} not found in parent segment {named}", asked.id)));
    }
    let gone = segment::remove(&mut core.world, &id);
    Ok(gone.map_or(Value::Null, |segment| view::columns(&segment)))
}

fn written(world: &World, id: &str) -> Result<Value, Fault> {
    let segment = world.segment(id).ok_or_else(|| Fault::internal("lost segment"))?;
    Ok(view::whole(world, segment))
}

fn path_id(id: &str) -> Result<String, Fault> {
    validate::path_id(id)
}

fn requested_segment<'w>(world: &'w World, asked: &ApiRequest) -> Result<&'w Segment, Fault> {
    let segment = world.segment(&path_id(&asked.id)?);
    segment.filter(|segment| segment.kind != SegmentKind::Private).ok_or_else(Fault::no_segment)
}

/// Makes sure that every context has its global list.
pub(crate) fn ensure_global_lists(core: &mut Core) {
    let contexts: Vec<String> = core.contexts.names().map(str::to_owned).collect();
    for context in contexts {
        let is_there = |s: &Segment| s.kind == SegmentKind::GlobalExclude && s.context == context;
        if core.world.segments.values().any(is_there) {
            continue;
        }
        let input = json!({
            "name": "Global Exclude",
            "description": "Globally excluded Users, Groups and Segments",
            "context": context,
            "type": "global_exclude",
        });
        segment::write(core, &input);
    }
}
