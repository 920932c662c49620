//! An update changes an experiment's lists as little as needed: from 6.3 on with calls about single
//! lists, up to 6.2 within the experiment's body.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]

use crate::recording;
use crate::scripted;

use std::collections::HashMap;

use proptest::prelude::*;
use scripted::{Says, Scripted};
use serde_json::{Value, json};
use upgrade_agent::client::{
    Dialect, ErrorKind, Experiment, ExperimentPatch, FilterMode, GroupMember, Members, NewExperiment,
    UpgradeClient,
};
use upgrade_agent::server::{EmbeddedServer, ServerHandle};

const SITE: &str = "SelectSection";
const TARGET: &str = "absolute_value_plot_equality";
const ID: &str = "d6a003ca-be46-417b-9c13-8dac554f511c";

async fn start() -> (ServerHandle, UpgradeClient) {
    let server = EmbeddedServer::builder().in_memory().start().await.unwrap();
    let client = UpgradeClient::builder(server.url()).build().unwrap();
    (server, client)
}

fn hints() -> NewExperiment {
    NewExperiment::new("Math hints", "assign-prog")
        .point(SITE, TARGET)
        .condition("control", 50.0)
        .condition("variant", 50.0)
}

fn members(users: &[&str], groups: &[(&str, &str)]) -> Members {
    let group = |&(kind, id): &(&str, &str)| GroupMember { group_type: kind.into(), group_id: id.into() };
    Members {
        users: users.iter().map(|user| (*user).into()).collect(),
        groups: groups.iter().map(group).collect(),
    }
}

fn includes(members: Members) -> ExperimentPatch {
    ExperimentPatch { inclusion: Some(members), ..Default::default() }
}

fn sorted(mut members: Members) -> Members {
    members.users.sort();
    members.groups.sort_by(|a, b| (&a.group_type, &a.group_id).cmp(&(&b.group_type, &b.group_id)));
    members
}

/// Returns the lists as the server stores them: kind, users, groups.
async fn lists(server: &ServerHandle, id: &str, field: &str) -> Vec<(String, Vec<String>, Vec<String>)> {
    let path = format!("/api/experiments/single/{id}");
    let none = HashMap::new();
    let answer =
        recording::send(&recording::http(), server.url(), "GET", &path, &none, &Value::Null).await.body;
    let texts = |list: &Value, field: &str, key: &str| -> Vec<String> {
        list[field].as_array().unwrap().iter().map(|entry| entry[key].as_str().unwrap().into()).collect()
    };
    let list = |entry: &Value| {
        let list = &entry["segment"];
        let kind = list["listType"].as_str().unwrap_or("").to_owned();
        (kind, texts(list, "individualForSegment", "userId"), texts(list, "groupForSegment", "groupId"))
    };
    let mut lists: Vec<_> = answer[field].as_array().unwrap().iter().map(list).collect();
    lists.sort();
    lists
}

#[tokio::test]
async fn lists_equal_the_given_ones_whatever_they_were() {
    let (_server, client) = start().await;
    let made = client.create(&hints()).await.unwrap();
    let steps = [
        (members(&["ada", "bob"], &[]), members(&[], &[])),
        (members(&["bob", "cyd"], &[("classId", "c1"), ("schoolId", "s1")]), members(&["eve"], &[])),
        (members(&[], &[("classId", "c1"), ("classId", "c2")]), members(&["eve"], &[("classId", "c9")])),
        (members(&["bob", "bob"], &[]), members(&[], &[])),
        (members(&[], &[]), members(&[], &[])),
    ];
    for (inclusion, exclusion) in steps {
        let patch = ExperimentPatch {
            inclusion: Some(inclusion.clone()),
            exclusion: Some(exclusion.clone()),
            ..Default::default()
        };
        let updated = client.update(&made.id, &patch).await.unwrap();
        assert_eq!(updated, client.experiment(&made.id).await.unwrap());
        let mut once = inclusion;
        once.users.dedup();
        assert_eq!(sorted(updated.inclusion), once);
        assert_eq!(sorted(updated.exclusion), exclusion);
    }
}

#[tokio::test]
async fn a_list_is_changed_in_place_and_a_kind_of_group_gets_one_list() {
    let (server, client) = start().await;
    let mut new = hints();
    new.inclusion = members(&["ada"], &[("classId", "c1")]);
    let made = client.create(&new).await.unwrap();
    let wanted = members(&["ada", "bob"], &[("classId", "c1"), ("classId", "c2"), ("schoolId", "s1")]);
    client.update(&made.id, &includes(wanted)).await.unwrap();
    let texts = |texts: &[&str]| texts.iter().map(|text| (*text).to_owned()).collect::<Vec<_>>();
    assert_eq!(
        lists(&server, &made.id, "experimentSegmentInclusion").await,
        [
            ("classId".to_owned(), vec![], texts(&["c1", "c2"])),
            ("individual".to_owned(), texts(&["ada", "bob"]), vec![]),
            ("schoolId".to_owned(), vec![], texts(&["s1"])),
        ]
    );
    client.update(&made.id, &includes(members(&["bob"], &[]))).await.unwrap();
    let left = lists(&server, &made.id, "experimentSegmentInclusion").await;
    assert_eq!(left, [("individual".to_owned(), texts(&["bob"]), vec![])], "an empty list is removed");
}

#[tokio::test]
async fn an_update_of_lists_leaves_the_rest_of_the_experiment_unchanged() {
    let (_server, client) = start().await;
    let made = client.create(&hints()).await.unwrap();
    let updated = client.update(&made.id, &includes(members(&["ada"], &[]))).await.unwrap();
    assert_eq!(updated.revision(), made.revision());
    assert!(updated.payloads.is_empty(), "a written experiment would have payloads");

    let mut patch = includes(members(&["bob"], &[]));
    patch.name = Some("Renamed".into());
    let updated = client.update(&made.id, &patch).await.unwrap();
    assert_eq!((updated.name.as_str(), updated.inclusion), ("Renamed", members(&["bob"], &[])));
}

#[tokio::test]
async fn an_update_without_a_difference_is_not_written() {
    let (_server, client) = start().await;
    let mut new = hints();
    new.inclusion = members(&["ada", "bob"], &[("classId", "c1")]);
    let made = client.create(&new).await.unwrap();
    let same = includes(members(&["bob", "ada"], &[("classId", "c1")]));
    for patch in [ExperimentPatch::default(), same] {
        assert_eq!(client.update(&made.id, &patch).await.unwrap(), made);
    }
}

#[tokio::test]
async fn a_new_context_takes_the_new_lists_and_the_wanted_filter() {
    let (_server, client) = start().await;
    let mut new = hints().include_all();
    new.inclusion = members(&["ada"], &[]);
    let made = client.create(&new).await.unwrap();
    let patch = ExperimentPatch {
        context: Some("mathstream".into()),
        filter_mode: Some(FilterMode::IncludeAll),
        exclusion: Some(members(&["eve"], &[])),
        ..Default::default()
    };
    let moved = client.update(&made.id, &patch).await.unwrap();
    assert_eq!(moved.context, ["mathstream"]);
    assert_eq!(moved.filter_mode, FilterMode::IncludeAll);
    assert_eq!((moved.inclusion, moved.exclusion), (Members::default(), members(&["eve"], &[])));
}

/// Creates a segment, and a list of the experiment that contains the segment and a student.
async fn with_segment(server: &ServerHandle, made: &Experiment) -> String {
    let http = recording::http();
    let none = HashMap::new();
    let segment = json!({
        "name": "Pilots", "description": "", "context": "assign-prog", "type": "public",
        "userIds": ["zoe"], "groups": [], "subSegmentIds": [],
    });
    let made_segment = recording::send(&http, server.url(), "POST", "/api/segments", &none, &segment).await;
    let id = made_segment.body["id"].as_str().unwrap().to_owned();
    let list = json!({ "experimentId": made.id, "list": {
        "name": "mixed", "description": "", "context": "assign-prog", "type": "private",
        "listType": "Segment", "userIds": ["ada"], "groups": [], "subSegmentIds": [id],
    } });
    let path = "/api/experiments/inclusionList";
    let added = recording::send(&http, server.url(), "POST", path, &none, &list).await;
    assert_eq!(added.status, 200, "{}", added.body);
    id
}

#[tokio::test]
async fn segments_on_a_list_are_returned_and_kept() {
    let (server, client) = start().await;
    let made = client.create(&hints()).await.unwrap();
    let segment = with_segment(&server, &made).await;
    for wanted in [members(&["bob"], &[]), members(&["ada", "bob"], &[]), members(&[], &[])] {
        let updated = client.update(&made.id, &includes(wanted.clone())).await.unwrap();
        assert_eq!(sorted(updated.inclusion), wanted);
        let told: Vec<_> =
            updated.inclusion_segments.iter().map(|s| (s.id.as_str(), s.name.as_str())).collect();
        assert_eq!(told, [(segment.as_str(), "Pilots")]);
        assert!(updated.exclusion_segments.is_empty());
    }
}

#[tokio::test]
async fn the_global_list_of_a_context_is_read() {
    let (server, client) = start().await;
    assert!(client.global_exclusion("assign-prog").await.unwrap().members.is_empty());
    let http = recording::http();
    let none = HashMap::new();
    let all = recording::send(&http, server.url(), "GET", "/api/segments/global", &none, &Value::Null).await;
    let all = all.body.as_array().unwrap().clone();
    let mut list = all.into_iter().find(|list| list["context"] == "assign-prog").unwrap();
    list["userIds"] = json!(["eve"]);
    list["groups"] = json!([{ "type": "classId", "groupId": "banned" }]);
    list["subSegmentIds"] = json!([]);
    let set = recording::send(&http, server.url(), "POST", "/api/segments", &none, &list).await;
    assert_eq!(set.status, 200, "{}", set.body);
    let global = client.global_exclusion("assign-prog").await.unwrap();
    assert_eq!(global.members, members(&["eve"], &[("classId", "banned")]));
    assert!(client.global_exclusion("mathstream").await.unwrap().members.is_empty());
    assert!(client.global_exclusion("nowhere").await.unwrap().members.is_empty());
}

#[tokio::test]
async fn update_unchanged_keeps_an_experiment_that_others_changed() {
    let (_server, client) = start().await;
    let seen = client.create(&hints()).await.unwrap();
    let name = |name: &str| ExperimentPatch { name: Some(name.into()), ..Default::default() };
    let mine = client.update_unchanged(&seen.id, &name("mine"), &seen.revision()).await.unwrap();
    let refused = client.update_unchanged(&seen.id, &name("stale"), &seen.revision()).await.unwrap_err();
    assert_eq!(refused.kind(), ErrorKind::Conflict, "{refused}");
    assert!(!refused.may_have_acted());
    assert_eq!(client.experiment(&seen.id).await.unwrap(), mine);
}

#[tokio::test]
async fn a_change_just_before_the_write_is_detected_afterwards() {
    let at = |number: u64| {
        Says::Json(200, json!({ "id": ID, "name": "x", "versionNumber": number, "updatedAt": "t" }))
    };
    for (written, is_told) in [(8, false), (9, true)] {
        let server = Scripted::new(vec![healthy("6.5.0"), at(7), at(7), at(written)]).await;
        let client = UpgradeClient::builder(server.url()).build().unwrap();
        let seen = client.experiment(ID).await.unwrap().revision();
        let patch = ExperimentPatch { name: Some("mine".into()), ..Default::default() };
        let outcome = client.update_unchanged(ID, &patch, &seen).await;
        assert_eq!(outcome.is_err(), is_told);
        if let Err(failure) = outcome {
            assert_eq!((failure.kind(), failure.may_have_acted()), (ErrorKind::Conflict, true), "{failure}");
        }
    }
}

fn healthy(version: &str) -> Says {
    Says::Json(200, json!({ "name": "UpGrade", "version": version, "description": "" }))
}

fn stored(lists: Value) -> Says {
    Says::Json(
        200,
        json!({ "id": ID, "name": "x", "context": ["assign-prog"], "experimentSegmentInclusion": lists }),
    )
}

fn list(id: &str, kind: &str, users: &[&str]) -> Value {
    let users: Vec<_> = users.iter().map(|user| json!({ "userId": user, "segmentId": id })).collect();
    json!({ "segmentId": id, "segment": {
        "id": id, "name": "named", "listType": kind, "context": "assign-prog", "type": "private",
        "individualForSegment": users, "groupForSegment": [], "subSegments": [],
    } })
}

#[tokio::test]
async fn a_failure_between_the_lists_is_reported_and_the_rest_can_be_completed() {
    let lists = json!([list("l1", "individual", &["ada"])]);
    let server = Scripted::new(vec![
        healthy("6.5.0"),
        stored(lists.clone()),
        Says::Json(200, json!({})),
        Says::Json(503, json!({})),
        stored(lists),
        Says::Json(200, json!({})),
        Says::Json(200, json!({})),
        stored(json!([list("l1", "individual", &["ada", "bob"])])),
    ])
    .await;
    let client = UpgradeClient::builder(server.url()).retries(0).build().unwrap();
    let patch = includes(members(&["ada", "bob"], &[("classId", "c1")]));
    let failure = client.update(ID, &patch).await.unwrap_err();
    assert_eq!((failure.code(), failure.status()), ("E_UPGRADE_UNFINISHED", Some(503)), "{failure}");
    assert!(failure.may_have_acted());
    let unfinished = failure.unfinished().unwrap();
    assert_eq!((unfinished.experiment_id.as_str(), &unfinished.missing), (ID, &patch));
    client.update(&unfinished.experiment_id, &unfinished.missing).await.unwrap();
    let calls = server.lines();
    assert_eq!(calls[2..4], ["POST /api/experiments/inclusionList", "PUT /api/experiments/inclusionList/l1"]);
    let sent = &server.heard()[2].body;
    assert_eq!(sent["experimentId"], ID);
    assert_eq!((&sent["list"]["listType"], &sent["list"]["userIds"]), (&json!("classId"), &json!([])));
    let sent = &server.heard()[3].body["list"];
    assert_eq!((&sent["id"], &sent["name"]), (&json!("l1"), &json!("named")));
    assert_eq!(sent["userIds"], json!(["ada", "bob"]));
}

#[tokio::test]
async fn a_first_list_that_is_refused_is_a_plain_refusal() {
    let refusal = Says::Json(400, json!({ "message": "no such thing" }));
    let server = Scripted::new(vec![healthy("6.5.0"), stored(json!([])), refusal]).await;
    let client = UpgradeClient::builder(server.url()).retries(0).build().unwrap();
    let failure = client.update(ID, &includes(members(&["ada"], &[]))).await.unwrap_err();
    assert_eq!((failure.kind(), failure.message()), (ErrorKind::BadRequest, "no such thing"));
    assert!(failure.unfinished().is_none());
}

#[tokio::test]
async fn up_to_6_2_the_lists_go_with_the_experiment() {
    let mut read = recording::recording("v62/single").response;
    let segment = &mut read["experimentSegmentInclusion"]["segment"];
    segment["individualForSegment"] = json!([{ "userId": "ada", "versionNumber": 7 }, { "userId": "bob" }]);
    segment["subSegments"] = json!([{ "id": "s1", "name": "Pilots" }]);
    let put = recording::recording("v62/update_roundtrip");
    let answers = vec![healthy("6.2.0"), Says::Json(200, read), Says::Json(put.status, put.response)];
    let server = Scripted::new(answers).await;
    let client = UpgradeClient::builder(server.url()).build().unwrap();
    let patch = includes(members(&["cyd", "ada", "cyd"], &[("classId", "c1")]));
    client.update(ID, &patch).await.unwrap();
    assert_eq!(server.lines().len(), 3, "one write");
    let sent = &server.heard()[2].body["experimentSegmentInclusion"]["segment"];
    let users = json!([{ "userId": "ada", "versionNumber": 7 }, { "userId": "cyd" }]);
    assert_eq!(sent["individualForSegment"], users);
    let groups = sent["groupForSegment"].as_array().unwrap();
    let groups: Vec<_> = groups.iter().map(|group| (&group["type"], &group["groupId"])).collect();
    assert_eq!(groups, [(&json!("All"), &json!("All")), (&json!("classId"), &json!("c1"))]);
    assert_eq!(sent["subSegments"], json!([{ "id": "s1", "name": "Pilots" }]));
}

fn some_members() -> impl Strategy<Value = Members> {
    let group = ("[ab]", "[1-4]").prop_map(|(kind, id)| GroupMember { group_type: kind, group_id: id });
    (prop::collection::vec("[a-f]", 0..6), prop::collection::vec(group, 0..6))
        .prop_map(|(users, groups)| Members { users, groups })
}

fn unique(members: Members) -> Members {
    let mut members = sorted(members);
    members.users.dedup();
    members.groups.dedup();
    members
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 24, ..ProptestConfig::default() })]

    /// The model is a set: after the update the lists contain exactly this set, whatever they contained
    /// before.
    #[test]
    fn any_lists_become_any_others(
        first in some_members(), more in prop::collection::vec(some_members(), 1..4), is_old in any::<bool>(),
    ) {
        tokio::runtime::Runtime::new().unwrap().block_on(async {
            let dialect = if is_old { Dialect::V62 } else { Dialect::V65 };
            let server = EmbeddedServer::builder().in_memory().dialect(dialect).start().await.unwrap();
            let client = UpgradeClient::builder(server.url()).build().unwrap();
            let mut new = hints();
            new.exclusion = first;
            let made = client.create(&new).await.unwrap();
            for wanted in more {
                let patch = ExperimentPatch { exclusion: Some(wanted.clone()), ..Default::default() };
                let updated = client.update(&made.id, &patch).await.unwrap();
                assert_eq!(sorted(updated.exclusion), unique(wanted), "{dialect}");
                assert!(updated.inclusion.is_empty());
            }
        });
    }
}
