//! The client against recordings of UpGrade 6.2.0 on a scripted server, and against the embedded server in
//! that version.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]

use crate::recording;
use crate::scripted;

use scripted::{Says, Scripted};
use serde_json::json;
use upgrade_agent::client::{
    Dialect, ErrorKind, ExperimentPatch, ExperimentState, FilterMode, Mark, Members, NewCondition,
    NewExperiment, NewUser, PageQuery, PostRule, UpgradeClient,
};
use upgrade_agent::server::EmbeddedServer;

const ID: &str = "d6a003ca-be46-417b-9c13-8dac554f511c";
const SITE: &str = "SelectSection";
const TARGET: &str = "absolute_value_plot_equality";

/// Starts a server with the recorded responses, after the health response that every client needs first.
async fn script(names: &[&str]) -> (Scripted, UpgradeClient) {
    let answer = |name: &&str| {
        let recorded = recording::recording(&format!("v62/{name}"));
        Says::Json(recorded.status, recorded.response)
    };
    let answers = [&"health"].into_iter().chain(names).map(answer).collect();
    let server = Scripted::new(answers).await;
    let client = UpgradeClient::builder(server.url()).build().unwrap();
    (server, client)
}

fn hints() -> NewExperiment {
    NewExperiment::new("Math Hints", "assign-prog")
        .point(SITE, TARGET)
        .condition("control", 50.0)
        .condition("variant", 50.0)
        .include_all()
}

#[tokio::test]
async fn the_version_sets_the_old_dialect() {
    let (_server, client) = script(&[]).await;
    assert_eq!(client.dialect().await.unwrap(), Dialect::V62);
}

#[tokio::test]
async fn a_create_sends_the_recorded_body() {
    let (server, client) = script(&["create", "single"]).await;
    client.create(&hints()).await.unwrap();
    let mut sent = server.heard()[1].body.clone();
    let mut recorded = recording::recording("v62/create").request;
    for body in [&mut sent, &mut recorded] {
        for field in ["conditions", "partitions"] {
            for entry in body[field].as_array_mut().unwrap() {
                assert!(entry.as_object_mut().unwrap().remove("id").is_some());
            }
        }
    }
    recording::Ids::default().compare(&recorded, &sent).unwrap();
}

#[tokio::test]
async fn the_rule_assign_is_sent_with_the_create() {
    let (server, client) = script(&["create_assign_rule", "single"]).await;
    client.create(&hints().post_rule(PostRule::assign("variant"))).await.unwrap();
    let sent = &server.heard()[1].body;
    assert_eq!(sent["revertTo"], sent["conditions"][1]["id"]);
    let lines = server.lines();
    assert!(!lines.iter().any(|line| line.starts_with("PUT")), "{lines:?}");
}

#[tokio::test]
async fn an_experiment_is_read_with_its_segment_objects() {
    let (_server, client) = script(&["single"]).await;
    let read = client.experiment(ID).await.unwrap();
    assert_eq!((read.id.as_str(), read.name.as_str()), (ID, "dupid"));
    assert_eq!((read.conditions.len(), read.decision_points.len()), (4, 2));
    assert!(read.inclusion.is_empty(), "the group of everybody is not returned as a group");
    assert!(read.exclusion.is_empty());
    assert_eq!(read.filter_mode, FilterMode::IncludeAll);
}

#[tokio::test]
async fn states_are_sent_and_read_by_their_old_names() {
    for (name, state) in [
        ("enrolling", ExperimentState::Enrolling),
        ("enrollmentComplete", ExperimentState::EnrollmentComplete),
        ("cancelled", ExperimentState::Cancelled),
        ("archived", ExperimentState::Archived),
        ("draft", ExperimentState::Draft),
    ] {
        let recorded = format!("state_{name}");
        let (server, client) = script(&["single", &recorded]).await;
        let moved = client.set_state(ID, &state).await.unwrap();
        assert_eq!((&moved.state, moved.conditions.len()), (&state, 4));
        assert_eq!(server.heard()[2].body, json!({ "experimentId": ID, "state": name }));
    }
}

#[tokio::test]
async fn an_update_sends_back_the_segments_that_it_read() {
    let (server, client) = script(&["single", "update_roundtrip"]).await;
    let patch = ExperimentPatch { name: Some("dupid".into()), ..Default::default() };
    let updated = client.update(ID, &patch).await.unwrap();
    assert_eq!(updated.state, ExperimentState::Enrolling);
    let read = recording::recording("v62/single").response;
    assert_eq!(server.heard()[2].line, format!("PUT /api/experiments/{ID}"));
    assert_eq!(server.heard()[2].body, read, "nothing else was changed");
}

#[tokio::test]
async fn a_change_of_the_filter_adds_or_removes_the_group_of_everybody() {
    let everybody = json!([{ "type": "All", "groupId": "All" }]);
    for (filter, groups) in [(FilterMode::ExcludeAll, json!([])), (FilterMode::IncludeAll, everybody)] {
        let (server, client) = script(&["single", "update_roundtrip"]).await;
        let patch = ExperimentPatch { filter_mode: Some(filter.clone()), ..Default::default() };
        client.update(ID, &patch).await.unwrap();
        let sent = &server.heard()[2].body;
        assert_eq!(sent["filterMode"], json!(filter));
        let sent = &sent["experimentSegmentInclusion"]["segment"]["groupForSegment"];
        assert_eq!(*sent, groups);
    }
}

#[tokio::test]
async fn students_are_served() {
    let (server, client) = script(&["v6_init", "v6_assign", "v6_mark"]).await;
    let alice = client.init_user(&NewUser::new("alice").in_group("classId", "c1")).await.unwrap();
    assert_eq!((alice.id.as_str(), alice.working_group["classId"].as_str()), ("alice", "c1"));
    let assigned = client.assign("alice", "assign-prog").await.unwrap();
    assert_eq!(assigned.len(), 2);
    assert_eq!(assigned[0].conditions[0].condition_code.as_deref(), Some("control"));
    let marked = client.mark("alice", &Mark::of(&assigned[0])).await.unwrap();
    assert_eq!(marked.condition.as_deref(), Some("control"));
    for heard in &server.heard()[1..] {
        assert!(heard.head.contains("user-id: alice\r\n"), "{}", heard.head);
    }
}

#[tokio::test]
async fn enrolments_are_counted() {
    let (_server, client) = script(&["single", "enrollment_detail"]).await;
    let detail = client.enrollment(ID).await.unwrap();
    assert_eq!((detail.users, detail.conditions.len()), (1, 4));
    assert_eq!(detail.conditions[0].decision_points[0].users, 1);
}

#[tokio::test]
async fn each_form_of_the_servers_errors_is_understood() {
    let (_server, client) = script(&["create_empty_arrays_omitted"]).await;
    let failure = client.create(&hints()).await.unwrap_err();
    assert_eq!(failure.kind(), ErrorKind::BadRequest);
    let told = "experimentSegmentInclusion should not be empty; \
                experimentSegmentExclusion should not be empty";
    assert_eq!(failure.message(), told);

    let (_server, client) = script(&["create_wrong_context"]).await;
    let failure = client.create(&hints()).await.unwrap_err();
    assert_eq!(failure.message(), "The app context \"nope\" is not defined in CONTEXT_METADATA.");

    let (_server, client) = script(&["delete_again", "single_unknown"]).await;
    for failure in [client.delete(ID).await.unwrap_err(), client.experiment(ID).await.unwrap_err()] {
        assert_eq!(failure.kind(), ErrorKind::NotFound, "{failure}");
        assert!(failure.message().starts_with("Experiment not found"));
    }

    let (_server, client) = script(&["v6_assign_unknown_user", "v6_assign_unknown_context"]).await;
    let failure = client.assign("ghost", "assign-prog").await.unwrap_err();
    assert_eq!((failure.kind(), failure.message()), (ErrorKind::NotFound, "Experiment user not defined"));
    let failure = client.assign("alice", "nope").await.unwrap_err();
    assert_eq!((failure.kind(), failure.message()), (ErrorKind::BadRequest, "Invalid app context"));

    let (_server, client) = script(&["single", "state_running"]).await;
    let failure = client.set_state(ID, &ExperimentState::Enrolling).await.unwrap_err();
    assert!(failure.message().starts_with("state must be one of"), "{failure}");
}

#[tokio::test]
async fn no_connection_is_used_twice_because_the_server_closes_them_silently() {
    let (server, client) = script(&["single_unknown", "single", "single_unknown", "single"]).await;
    for found in [false, true, false, true] {
        assert_eq!(client.experiment(ID).await.is_ok(), found);
    }
    let connections: Vec<usize> = server.heard().iter().map(|heard| heard.connection).collect();
    assert_eq!(connections, [0, 1, 2, 3, 4]);
}

#[tokio::test]
async fn an_experiment_lives_its_whole_life_on_an_old_server() {
    let server = EmbeddedServer::builder().in_memory().dialect(Dialect::V62).start().await.unwrap();
    let client = UpgradeClient::builder(server.url()).build().unwrap();
    assert_eq!(client.connect().await.unwrap().version, "6.2.0");
    let mut new = hints().id(ID).post_rule(PostRule::assign("variant"));
    new.exclusion.users = vec!["eve".into()];
    let made = client.create(&new).await.unwrap();
    assert_eq!(made.post_rule, PostRule::assign("variant"));
    assert_eq!(made.exclusion.users, ["eve"]);
    assert_eq!(client.create(&new).await.unwrap_err().kind(), ErrorKind::Conflict);

    let patch = ExperimentPatch {
        name: Some("Renamed".into()),
        conditions: Some(vec![NewCondition::new("variant", 30.0), NewCondition::new("control", 70.0)]),
        filter_mode: Some(FilterMode::ExcludeAll),
        inclusion: Some(Members { users: vec!["ada".into()], groups: Vec::new() }),
        ..Default::default()
    };
    let updated = client.update(ID, &patch).await.unwrap();
    assert_eq!(updated.condition("variant").unwrap().id, made.condition("variant").unwrap().id);
    assert_eq!((updated.name.as_str(), updated.filter_mode), ("Renamed", FilterMode::ExcludeAll));
    let lists = (updated.inclusion.users, updated.exclusion.users);
    assert_eq!(lists, (vec!["ada".to_owned()], vec!["eve".to_owned()]));

    let running = client.set_state(ID, &ExperimentState::Enrolling).await.unwrap();
    assert_eq!(running.state, ExperimentState::Enrolling);
    for user in ["ada", "bob", "eve"] {
        client.init_user(&NewUser::new(user)).await.unwrap();
        let assigned = client.assign(user, "assign-prog").await.unwrap();
        assert_eq!(!assigned.is_empty(), user == "ada");
    }
    let assigned = client.assign("ada", "assign-prog").await.unwrap();
    client.mark("ada", &Mark::of(&assigned[0])).await.unwrap();
    assert_eq!(client.enrollment(ID).await.unwrap().users, 1);
    assert_eq!(client.page(&PageQuery::new(5)).await.unwrap().total, 1);
    client.delete(ID).await.unwrap();
    // Each of these responses closes the connection without notice, and the next call must still succeed.
    for _ in 0..3 {
        assert_eq!(client.delete(ID).await.unwrap_err().kind(), ErrorKind::NotFound);
        assert_eq!(client.assign("ghost", "assign-prog").await.unwrap_err().kind(), ErrorKind::NotFound);
        assert_eq!(client.enrollment(ID).await.unwrap_err().kind(), ErrorKind::NotFound);
    }
}
