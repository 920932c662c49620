//! The usage of segments by experiments, flags and lists.

use std::collections::{HashMap, HashSet};

use serde_json::{Value, json};

use super::side::Side;
use super::view;
use crate::wire::dialect::Dialect;
use crate::wire::row::with;
use crate::wire::words::{ExperimentState, outward};
use crate::world::World;
use crate::world::model::{Experiment, Flag, FlagTie, ListTie, Segment, SegmentKind};

/// Whether a segment is used, in the words of the dialect.
fn status(dialect: Dialect, is_used: bool) -> &'static str {
    match (dialect, is_used) {
        (Dialect::V62, true) => "Used",
        (Dialect::V62, false) => "Unused",
        (Dialect::V65, true) => "used",
        (Dialect::V65, false) => "unused",
    }
}

/// The status of a global list.
pub(super) fn excluded(dialect: Dialect) -> &'static str {
    match dialect {
        Dialect::V62 => "Excluded",
        Dialect::V65 => "excluded",
    }
}

/// The segments with their status and all of their usage.
pub(super) struct Usage {
    pub(super) answer: Value,
}

impl Usage {
    pub(super) fn of(world: &World, segments: &[&Segment]) -> Self {
        let parents = parents(world);
        let used = used(world, segments, &parents);
        let shown = segments.iter().map(|s| with_status(world.dialect, s, view::whole(world, s), &used));
        let parents = parents.iter().map(|(parent, lists)| {
            let lists = lists.iter().map(|list| with_columns_of_subs(world, list));
            let shown = with(view::columns(parent), [("subSegments", lists.collect())]);
            with_status(world.dialect, parent, shown, &used)
        });
        let answer = json!({
            "segmentsData": shown.collect::<Vec<_>>(),
            "experimentSegmentInclusionData": ties(world, Side::Inclusion),
            "experimentSegmentExclusionData": ties(world, Side::Exclusion),
            "featureFlagSegmentInclusionData": flag_ties(world, |flag| &flag.inclusion),
            "featureFlagSegmentExclusionData": flag_ties(world, |flag| &flag.exclusion),
            "allParentSegments": parents.collect::<Vec<_>>(),
        });
        Self { answer }
    }
}

fn with_status(dialect: Dialect, segment: &Segment, shown: Value, used: &HashSet<String>) -> Value {
    let status = match segment.kind {
        SegmentKind::GlobalExclude => excluded(dialect),
        _ => self::status(dialect, used.contains(&segment.id)),
    };
    with(shown, [("status", json!(status))])
}

/// The segments with lists of segments, and those lists.
fn parents(world: &World) -> Vec<(&Segment, Vec<&Segment>)> {
    let lists = |segment: &Segment| {
        let lists = segment.sub_segments.iter().filter_map(|id| world.segment(id));
        lists.filter(|list| list.list_type.as_deref() == Some("Segment")).collect::<Vec<_>>()
    };
    let all = world.segments_in_order().into_iter();
    all.map(|segment| (segment, lists(segment))).filter(|(_, lists)| !lists.is_empty()).collect()
}

fn with_columns_of_subs(world: &World, list: &Segment) -> Value {
    let subs = list.sub_segments.iter().filter_map(|id| world.segment(id)).map(view::columns);
    with(view::columns(list), [("subSegments", subs.collect())])
}

/// The ids of segments used by a flag, by an experiment that is not archived, or by a list of segments.
fn used(world: &World, shown: &[&Segment], parents: &[(&Segment, Vec<&Segment>)]) -> HashSet<String> {
    let in_lists = parents.iter().flat_map(|(_, lists)| lists).flat_map(|list| &list.sub_segments);
    let mut used: HashSet<String> = in_lists.cloned().collect();
    let below: HashMap<&str, &[String]> =
        shown.iter().map(|segment| (segment.id.as_str(), segment.sub_segments.as_slice())).collect();
    let live = world.experiments.values().filter(|e| e.columns.state != ExperimentState::Archived);
    let ties = live.flat_map(|experiment| experiment.inclusion.iter().chain(&experiment.exclusion));
    let flag_ties = world.flags.values().flat_map(|flag| flag.inclusion.iter().chain(&flag.exclusion));
    let lists = ties.map(|tie| &tie.segment_id).chain(flag_ties.map(|tie| &tie.segment_id));
    let mut waiting: Vec<&str> = Vec::new();
    for list in lists.filter_map(|id| world.segment(id)) {
        waiting.push(&list.id);
        waiting.extend(list.sub_segments.iter().map(String::as_str));
    }
    while let Some(id) = waiting.pop() {
        if used.insert(id.to_owned()) {
            waiting.extend(below.get(id).into_iter().copied().flatten().map(String::as_str));
        }
    }
    used
}

fn ties(world: &World, side: Side) -> Vec<Value> {
    let of = |experiment| side.of(experiment).iter().filter_map(move |tie| tied(world, experiment, tie));
    world.experiments_in_order().into_iter().flat_map(of).collect()
}

fn flag_ties(world: &World, side: fn(&Flag) -> &Vec<FlagTie>) -> Vec<Value> {
    let tied = |flag: &Flag, tie: &FlagTie| {
        let columns = &flag.columns;
        let flag = json!({ "name": columns.name, "context": columns.context });
        let list = list_with_subs(world, world.segment(&tie.segment_id)?);
        Some(with(view::flag_tie(tie, &columns.id), [("featureFlag", flag), ("segment", list)]))
    };
    let of = |flag| side(flag).iter().filter_map(move |tie| tied(flag, tie));
    world.flags_in_order().into_iter().flat_map(of).collect()
}

fn list_with_subs(world: &World, list: &Segment) -> Value {
    let subs = list.sub_segments.iter().filter_map(|id| world.segment(id)).map(view::columns);
    json!({ "id": list.id, "subSegments": subs.collect::<Vec<_>>() })
}

fn tied(world: &World, experiment: &Experiment, tie: &ListTie) -> Option<Value> {
    let list = world.segment(&tie.segment_id)?;
    let columns = &experiment.columns;
    Some(with(
        view::tie(tie, &columns.id),
        [
            (
                "experiment",
                json!({
                    "name": columns.name,
                    "description": columns.description,
                    "context": columns.context,
                    "state": outward(world.dialect, &columns.state),
                }),
            ),
            ("segment", list_with_subs(world, list)),
        ],
    ))
}
