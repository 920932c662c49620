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

/// "Everybody" is a group of its own in this dialect.
fn segment(members: &Members, everybody: bool) -> Value {
    let users = members.users.iter().map(|user| json!({ "userId": user }));
    let groups = members.groups.iter();
    let mut groups: Vec<Value> =
        groups.map(|group| json!({ "type": group.group_type, "groupId": group.group_id })).collect();
    if everybody {
        groups.push(json!({ "type": "All", "groupId": "All" }));
    }
    json!({ "segment": {
        "individualForSegment": users.collect::<Vec<_>>(),
        "groupForSegment": groups,
        "subSegments": [],
        "type": "private",
    } })
}

/// An update without its segments is refused.
pub(in crate::client) fn complete_update(whole: &mut Raw) {
    for list in [INCLUSION, EXCLUSION] {
        if !whole.get(list).is_some_and(Value::is_object) {
            whole.insert(list.into(), segment(&Members::default(), false));
        }
    }
}
