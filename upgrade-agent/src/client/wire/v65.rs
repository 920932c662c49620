//! The parts of a request that only servers from 6.3 on need: arrays of lists, one list per kind of member.

use std::collections::BTreeMap;

use serde_json::{Value, json};
use uuid::Uuid;

use crate::client::draft::NewExperiment;
use crate::client::model::{Members, Raw};

pub(super) fn complete_create(body: &mut Raw, new: &NewExperiment) {
    let lists = |members| lists(members, &new.context);
    body.insert("experimentSegmentInclusion".into(), lists(&new.inclusion));
    body.insert("experimentSegmentExclusion".into(), lists(&new.exclusion));
}

fn lists(members: &Members, context: &str) -> Value {
    let mut lists = Vec::new();
    if !members.users.is_empty() {
        let users = members.users.iter().map(|user| json!({ "userId": user }));
        lists.push(list("individual", context, users.collect(), Vec::new()));
    }
    let mut kinds: BTreeMap<&str, Vec<Value>> = BTreeMap::new();
    for group in &members.groups {
        let entry = json!({ "type": group.group_type, "groupId": group.group_id });
        kinds.entry(&group.group_type).or_default().push(entry);
    }
    lists.extend(kinds.into_iter().map(|(kind, groups)| list(kind, context, Vec::new(), groups)));
    Value::Array(lists)
}

fn list(kind: &str, context: &str, users: Vec<Value>, groups: Vec<Value>) -> Value {
    let id = Uuid::new_v4();
    json!({ "segment": {
        "id": id,
        "name": format!("{id} Segment"),
        "description": "",
        "listType": kind,
        "context": context,
        "type": "private",
        "individualForSegment": users,
        "groupForSegment": groups,
        "subSegments": [],
    } })
}
