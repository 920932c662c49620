//! Lists of experiments, segments, lists of segments and the global lists: the responses, and their effect on
//! students.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]

use crate::recording;
use crate::stage;

use proptest::prelude::*;
use serde_json::{Value, json};
use stage::{Stage, plain};
use upgrade_agent::client::{NewExperiment, NewUser};

const UNKNOWN_ID: &str = "00000000-0000-4000-8000-000000000000";

fn list(id: Option<&str>, users: &[&str], groups: &[(&str, &str)], subs: &[&str]) -> Value {
    let groups = groups.iter().map(|(kind, id)| json!({ "type": kind, "groupId": id }));
    let mut list = json!({
        "name": "a list",
        "description": "",
        "context": "assign-prog",
        "type": "private",
        "listType": "Individual",
        "userIds": users,
        "groups": groups.collect::<Vec<_>>(),
        "subSegmentIds": subs,
    });
    if let Some(id) = id {
        list["id"] = json!(id);
    }
    list
}

fn public(name: &str, users: &[&str], groups: &[(&str, &str)], subs: &[&str]) -> Value {
    let mut segment = list(None, users, groups, subs);
    segment["name"] = json!(name);
    segment["type"] = json!("public");
    segment.as_object_mut().unwrap().remove("listType");
    segment
}

fn keys(value: &Value) -> Vec<&str> {
    value.as_object().unwrap().keys().map(String::as_str).collect()
}

fn none_in(name: &str) -> NewExperiment {
    let mut new = plain(name);
    new.filter_mode = upgrade_agent::client::FilterMode::ExcludeAll;
    new
}

impl Stage {
    async fn segment(&self, body: &Value) -> String {
        self.ok("POST", "/api/segments", body).await["id"].as_str().unwrap().to_owned()
    }

    /// Makes a bad call; returns status, name, message and type of its response.
    async fn refused(&self, method: &str, path: &str, body: &Value) -> (u16, Value, Value, Value) {
        let answer = self.raw(method, path, body).await;
        let part = |field: &str| answer.body.get(field).cloned().unwrap_or_default();
        (answer.status, part("name"), part("message"), part("type"))
    }

    async fn is_in(&self, student: &str) -> bool {
        self.student(student).await;
        !self.codes(student).await.is_empty()
    }
}

#[tokio::test]
async fn a_list_is_added_changed_and_removed_one_by_one() {
    let stage = Stage::new().await;
    let made = stage.running(&none_in("lists")).await;
    let body = json!({ "experimentId": made.id, "list": list(None, &[" ada\t", "ada"], &[], &[]) });
    let added = stage.ok("POST", "/api/experiments/inclusionList", &body).await;
    let parts =
        ["createdAt", "experiment", "experimentId", "segment", "segmentId", "updatedAt", "versionNumber"];
    assert_eq!(keys(&added), parts);
    assert_eq!(added["experiment"]["state"], "enrolling");
    let members = added["segment"]["individualForSegment"].as_array().unwrap();
    assert_eq!(members.len(), 1);
    assert_eq!(members[0]["userId"], "ada");
    assert!(stage.is_in("ada").await && !stage.is_in("bob").await);

    let id = added["segmentId"].as_str().unwrap();
    let path = format!("/api/experiments/inclusionList/{id}");
    let body = json!({ "experimentId": made.id, "list": list(Some(id), &["bob"], &[], &[]) });
    let changed = stage.ok("PUT", &path, &body).await;
    assert_eq!(keys(&changed), parts);
    assert!(!stage.is_in("ada").await && stage.is_in("bob").await);

    let gone = stage.ok("DELETE", &path, &Value::Null).await;
    assert_eq!(gone["id"], id);
    assert!(gone.get("individualForSegment").is_none());
    assert!(!stage.is_in("bob").await);
    assert_eq!(stage.single(&made.id).await["experimentSegmentInclusion"], json!([]));
    let again = stage.refused("DELETE", &path, &Value::Null).await;
    let message = format!("Segment with ID {id} not found for inclusion");
    assert_eq!(again, (500, json!("Error"), json!(message), Value::Null));
}

#[tokio::test]
async fn lists_that_do_not_fit_are_refused_as_in_the_original() {
    let stage = Stage::new().await;
    let made = stage.running(&plain("lists")).await;
    let error = json!("Error");
    let failed = json!("Query Failed");
    let body = json!({ "experimentId": UNKNOWN_ID, "list": list(None, &[], &[], &[]) });
    let missing = stage.refused("POST", "/api/experiments/exclusionList", &body).await;
    let (status, name, message, kind) = missing;
    assert_eq!((status, name, kind), (500, error.clone(), failed.clone()));
    assert!(message.as_str().unwrap().starts_with("Error in adding segment for experiment exclusion list: "));
    let body = json!({ "experimentId": made.id });
    let nothing = stage.refused("POST", "/api/experiments/inclusionList", &body).await;
    let (status, _, message, kind) = nothing;
    assert_eq!((status, kind), (500, failed));
    assert!(message.as_str().unwrap().contains("null value in column \"name\""), "{message}");
    let other = json!({ "experimentId": made.id, "list": list(Some(UNKNOWN_ID), &[], &[], &[]) });
    let (status, _, message, kind) =
        stage.refused("PUT", "/api/experiments/inclusionList/other", &other).await;
    assert_eq!((status, kind), (500, Value::Null));
    assert!(message.as_str().unwrap().contains("does not match the list id"), "{message}");
    let path = format!("/api/experiments/inclusionList/{UNKNOWN_ID}");
    let unknown = stage.refused("PUT", &path, &other).await;
    let message =
        format!("No existing inclusion record found for experiment {UNKNOWN_ID} and segment {UNKNOWN_ID}");
    assert_eq!(unknown, (500, error, json!(message), Value::Null));
    let (status, name, ..) = stage.refused("PUT", &path, &json!({})).await;
    assert_eq!((status, name), (500, json!("TypeError")));
    assert_eq!(stage.ok("GET", "/api/segments", &Value::Null).await["segmentsData"], json!([]));
    let usage = stage.ok("GET", "/api/segments", &Value::Null).await;
    assert_eq!(usage["experimentSegmentInclusionData"], json!([]));
}

#[tokio::test]
async fn lists_without_a_type_show_the_type_of_their_members_or_none() {
    let stage = Stage::new().await;
    let body = recording::recording("v65/agent_builder_create_lists_fixed").request;
    let mut body = body.clone();
    let entry = |users: Value, groups: Value| {
        json!({ "segment": {
            "individualForSegment": users, "groupForSegment": groups, "subSegments": [], "type": "private",
        }})
    };
    let class = json!([{ "type": "classId", "groupId": "c1" }]);
    body["experimentSegmentInclusion"] = json!([
        entry(json!([{ "userId": "ada" }]), json!([])),
        entry(json!([]), class.clone()),
        entry(json!([{ "userId": "ada" }]), class),
        entry(json!([]), json!([])),
    ]);
    let made = stage.ok("POST", "/api/experiments", &body).await;
    let single = stage.single(made["id"].as_str().unwrap()).await;
    let lists = single["experimentSegmentInclusion"].as_array().unwrap();
    let mut types: Vec<_> = lists.iter().map(|l| l["segment"]["listType"].as_str().unwrap()).collect();
    types.sort_unstable();
    assert_eq!(types, ["classId", "individual"]);
    let all = stage.ok("GET", "/api/experiments", &Value::Null).await;
    assert_eq!(all[0]["experimentSegmentInclusion"].as_array().unwrap().len(), 4);
}

#[tokio::test]
async fn segments_are_created_read_updated_and_deleted() {
    let stage = Stage::new().await;
    let inner = stage.segment(&public("inner", &["ada"], &[], &[])).await;
    let body = public("outer", &[], &[("classId", "c1")], &[&inner, UNKNOWN_ID]);
    let made = stage.ok("POST", "/api/segments", &body).await;
    let id = made["id"].as_str().unwrap();
    assert_eq!(made["subSegments"].as_array().unwrap().len(), 1);
    assert_eq!(made["subSegments"][0]["name"], "inner");
    assert_eq!(made["versionNumber"], 1);
    let path = format!("/api/segments/{id}");
    let read = stage.ok("GET", &path, &Value::Null).await;
    assert_eq!(read["experimentSegmentInclusion"], Value::Null);
    assert_eq!(read["groupForSegment"][0]["groupId"], "c1");
    let status = stage.ok("GET", &format!("/api/segments/status/{id}"), &Value::Null).await;
    assert_eq!(status["segment"]["status"], "unused");

    let mut again = public("outer", &["bob"], &[], &[]);
    again["id"] = json!(id);
    assert_eq!(stage.ok("POST", "/api/segments", &again).await["versionNumber"], 1);
    again["name"] = json!("renamed");
    assert_eq!(stage.ok("POST", "/api/segments", &again).await["versionNumber"], 2);

    let taken = stage.refused("POST", "/api/segments", &public("renamed", &[], &[], &[])).await;
    let message = json!("Segment name renamed already exists in context assign-prog");
    assert_eq!(taken, (400, Value::Null, message, json!("Parameter not in the correct format")));
    let mut elsewhere = public("x", &[], &[], &[]);
    elsewhere["context"] = json!("nope");
    let (status, _, message, _) = stage.refused("POST", "/api/segments", &elsewhere).await;
    assert_eq!(
        (status, message),
        (400, json!("The app context \"nope\" is not defined in CONTEXT_METADATA."))
    );
    assert_eq!(stage.refused("POST", "/api/segments", &json!({ "name": "x" })).await.0, 400);

    assert_eq!(stage.ok("DELETE", &path, &Value::Null).await["name"], "renamed");
    let gone = stage.refused("GET", &path, &Value::Null).await;
    assert_eq!(gone, (404, json!("NotFoundException"), json!("Segment not found."), Value::Null));
    assert_eq!(stage.refused("DELETE", &path, &Value::Null).await.2, "Query Failed");
    assert_eq!(stage.refused("GET", "/api/segments/abc", &Value::Null).await.0, 400);
}

#[tokio::test]
async fn a_segment_has_its_own_lists_which_are_deleted_with_it() {
    let stage = Stage::new().await;
    let id = stage.segment(&public("with lists", &[], &[], &[])).await;
    let mut body = list(None, &["ada"], &[], &[]);
    body["parentSegmentId"] = json!(id);
    let added = stage.ok("POST", "/api/segments/list", &body).await;
    assert_eq!(added["type"], "private");
    let status = stage.ok("GET", &format!("/api/segments/status/{id}"), &Value::Null).await;
    assert_eq!(status["segment"]["subSegments"][0]["individualForSegment"][0]["userId"], "ada");
    assert_eq!(status["segment"]["tags"], json!([]));
    let list_id = added["id"].as_str().unwrap();
    let alone = stage.refused("GET", &format!("/api/segments/{list_id}"), &Value::Null).await;
    assert_eq!(alone.0, 404);
    let path = format!("/api/segments/list/{list_id}");
    let (status, _, message, _) =
        stage.refused("DELETE", &path, &json!({ "parentSegmentId": UNKNOWN_ID })).await;
    assert_eq!((status, message), (500, json!("Parent Segment  not found")));
    stage.ok("DELETE", &path, &json!({ "parentSegmentId": id })).await;
    let status = stage.ok("GET", &format!("/api/segments/status/{id}"), &Value::Null).await;
    assert_eq!(status["segment"]["subSegments"], json!([]));
}

#[tokio::test]
async fn a_list_of_segments_includes_their_members_at_any_depth() {
    let stage = Stage::new().await;
    let made = stage.running(&none_in("deep")).await;
    let inner = stage.segment(&public("inner", &["ada"], &[], &[])).await;
    let middle = stage.segment(&public("middle", &[], &[], &[&inner])).await;
    let outer = stage.segment(&public("outer", &[], &[("classId", "c1")], &[&middle])).await;
    let mut circle = public("inner", &["ada"], &[], &[&outer]);
    circle["id"] = json!(inner);
    stage.segment(&circle).await;
    let mut of_segments = list(None, &[], &[], &[&outer]);
    of_segments["listType"] = json!("Segment");
    let body = json!({ "experimentId": made.id, "list": of_segments });
    stage.ok("POST", "/api/experiments/inclusionList", &body).await;
    assert!(stage.is_in("ada").await && !stage.is_in("bob").await);
    stage.client.init_user(&NewUser::new("eve").in_group("classId", "c1")).await.unwrap();
    assert!(!stage.codes("eve").await.is_empty());
    let all = stage.ok("GET", "/api/segments", &Value::Null).await;
    let used = |name: &str| {
        let segments = all["segmentsData"].as_array().unwrap();
        segments.iter().find(|s| s["name"] == name).unwrap()["status"].clone()
    };
    assert_eq!(used("outer"), "used");
    assert_eq!(all["experimentSegmentInclusionData"][0]["experiment"]["state"], "running");
    stage.ok("DELETE", &format!("/api/segments/{middle}"), &Value::Null).await;
    assert!(!stage.is_in("ada").await);
}

#[tokio::test]
async fn the_global_list_excludes_students_and_groups_of_its_context() {
    let stage = Stage::new().await;
    stage.running(&plain("everybody")).await;
    let global = stage.ok("GET", "/api/segments/global", &Value::Null).await;
    let ours = global.as_array().unwrap().iter().find(|list| list["context"] == "assign-prog").unwrap();
    let rewrite = |users: &[&str], groups: &[(&str, &str)]| {
        let mut body = list(ours["id"].as_str(), users, groups, &[]);
        body["name"] = json!("Global Exclude");
        body["type"] = json!("global_exclude");
        body
    };
    for (student, class) in [("in", "good"), ("out", "bad")] {
        stage.client.init_user(&NewUser::new(student).in_group("classId", class)).await.unwrap();
    }
    let is_in = async |student: &str| !stage.codes(student).await.is_empty();
    assert!(stage.is_in("alone").await && is_in("out").await);
    stage.ok("POST", "/api/segments", &rewrite(&["in"], &[])).await;
    assert!(!is_in("in").await && is_in("out").await && is_in("alone").await);
    stage.ok("POST", "/api/segments", &rewrite(&[], &[("classId", "bad")])).await;
    assert!(is_in("in").await && !is_in("out").await);
    // If any group is on the list, a student without a working group is excluded, too.
    assert!(!is_in("alone").await);
    stage.visit("alone").await;
    stage.ok("POST", "/api/segments", &rewrite(&[], &[])).await;
    assert!(is_in("alone").await);
    let detail = stage.client.experiments().await.unwrap().remove(0).id;
    assert_eq!(stage.client.enrollment(&detail).await.unwrap().users, 0);
}

#[tokio::test]
async fn segments_are_returned_in_pages() {
    let stage = Stage::new().await;
    for name in ["beta", "alpha", "gamma"] {
        let mut body = public(name, &[], &[], &[]);
        body["tags"] = json!([format!("of {name}")]);
        stage.segment(&body).await;
    }
    let page = |more: Value| {
        let mut body = json!({ "skip": 0, "take": 9, "sortParams": { "key": "name", "sortAs": "ASC" } });
        body.as_object_mut().unwrap().extend(more.as_object().unwrap().clone());
        body
    };
    let search = |key: &str, word: &str| json!({ "searchParams": { "key": key, "string": word } });
    let cases = [
        (json!({}), vec!["alpha", "beta", "gamma"]),
        (search("name", "ET"), vec!["beta"]),
        (search("tag", "of g"), vec!["gamma"]),
        (search("all", "alp"), vec!["alpha"]),
        (search("context", "assign"), vec!["alpha", "beta", "gamma"]),
    ];
    for (more, names) in cases {
        let body = page(more);
        let answer = stage.ok("POST", "/api/segments/paginated", &body).await;
        let told = answer["nodes"]["segmentsData"].as_array().unwrap();
        let told: Vec<_> = told.iter().map(|segment| &segment["name"]).collect();
        assert_eq!(told, names, "{body}");
        assert_eq!(answer["total"], names.len(), "{body}");
    }
    let bad = json!({ "skip": 0, "take": 9, "sortParams": { "key": "context", "sortAs": "ASC" } });
    assert_eq!(stage.refused("POST", "/api/segments/paginated", &bad).await.0, 400);
}

/// A small model of one student's lists: whether they name the student, and whether a group of the student.
#[derive(Clone, Debug)]
struct Named {
    include_all: bool,
    /// Whether the inclusion list and the exclusion list name the student.
    user: [bool; 2],
    group: [bool; 2],
}

impl Named {
    fn is_in(&self) -> bool {
        match (self.user, self.include_all) {
            ([_, true], _) => false,
            ([true, false], _) => true,
            (_, true) => !self.group[1],
            (_, false) => self.group[0] && !self.group[1],
        }
    }
}

fn named() -> impl Strategy<Value = Named> {
    (any::<bool>(), any::<[bool; 2]>(), any::<[bool; 2]>()).prop_map(|(include_all, user, group)| Named {
        include_all,
        user,
        group,
    })
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(32))]

    #[test]
    fn lists_and_filter_together_say_who_is_in(cases in prop::collection::vec(named(), 1..4)) {
        let runtime = tokio::runtime::Runtime::new().unwrap();
        runtime.block_on(async {
            let stage = Stage::new().await;
            for (n, case) in cases.iter().enumerate() {
                let name = format!("case {n}");
                let student = format!("student-{n}");
                let class = format!("class-{n}");
                let new = if case.include_all { plain(&name) } else { none_in(&name) };
                let made = stage.running(&new).await;
                for (side, path) in ["inclusionList", "exclusionList"].into_iter().enumerate() {
                    let users: Vec<&str> = case.user[side].then_some(student.as_str()).into_iter().collect();
                    let groups: Vec<(&str, &str)> =
                        case.group[side].then_some(("classId", class.as_str())).into_iter().collect();
                    let list = list(None, &users, &groups, &[]);
                    let body = json!({ "experimentId": made.id, "list": list });
                    stage.ok("POST", &format!("/api/experiments/{path}"), &body).await;
                }
                stage.client.init_user(&NewUser::new(&student).in_group("classId", &class)).await.unwrap();
                assert_eq!(!stage.codes(&student).await.is_empty(), case.is_in(), "{case:?}");
                stage.client.delete(&made.id).await.unwrap();
            }
        });
    }
}
