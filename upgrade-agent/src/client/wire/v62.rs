//! What only servers up to 6.2 want: one segment object per list, always there.

use serde_json::{Value, json};
use uuid::Uuid;

use crate::client::draft::NewExperiment;
use crate::client::model::{Members, Raw};
use crate::client::words::FilterMode;

const INCLUSION: &str = "experimentSegmentInclusion";
const EXCLUSION: &str = "experimentSegmentExclusion";

/// Adds the segments, and the rule's condition, whose id this dialect keeps.
pub(super) fn complete_create(body: &mut Raw, new: &NewExperiment, rule_id: Option<Uuid>) {
    body.insert(INCLUSION.into(), segment(&new.inclusion, new.filter_mode == FilterMode::IncludeAll));
    body.insert(EXCLUSION.into(), segment(&new.exclusion, false));
    if let Some(id) = rule_id {
        body.insert("revertTo".into(), json!(id));
    }
}

fn segment(members: &Members, with_everybody: bool) -> Value {
    let users = members.users.iter().map(|user| json!({ "userId": user }));
    let groups = members.groups.iter();
    let mut groups: Vec<Value> =
        groups.map(|group| json!({ "type": group.group_type, "groupId": group.group_id })).collect();
    if with_everybody {
        groups.push(everybody());
    }
    json!({ "segment": {
        "individualForSegment": users.collect::<Vec<_>>(),
        "groupForSegment": groups,
        "subSegments": [],
        "type": "private",
    } })
}

/// An update without its segments is refused; a new filter goes with "everybody" on the list.
pub(in crate::client) fn complete_update(whole: &mut Raw, filter: Option<&FilterMode>) {
    for list in [INCLUSION, EXCLUSION] {
        if !whole.get(list).is_some_and(Value::is_object) {
            whole.insert(list.into(), segment(&Members::default(), false));
        }
    }
    let groups = whole.get_mut(INCLUSION).and_then(|list| list.get_mut("segment"));
    let groups = groups.and_then(|segment| segment.get_mut("groupForSegment"));
    if let (Some(filter), Some(Value::Array(groups))) = (filter, groups) {
        groups.retain(|group| group["type"] != "All");
        if *filter == FilterMode::IncludeAll {
            groups.push(everybody());
        }
    }
}

/// "Everybody" is a group of its own in this dialect.
fn everybody() -> Value {
    json!({ "type": "All", "groupId": "All" })
}
