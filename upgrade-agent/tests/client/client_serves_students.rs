//! The calls of a student's application: by the routes of the server's version, for every possible id of a
//! student, and with complete responses.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]

use crate::recording;
use crate::scripted;

use std::collections::BTreeMap;
use std::time::Duration;

use scripted::{Says, Scripted};
use serde_json::{Value, json};
use upgrade_agent::client::{
    ErrorKind, ExperimentState, ExperimentType, Mark, MarkStatus, NewExperiment, NewUser, UpgradeClient,
};
use upgrade_agent::server::EmbeddedServer;

const SITE: &str = "SelectSection";
const TARGET: &str = "absolute_value_plot_equality";

fn healthy(version: &str) -> Says {
    Says::Json(200, json!({ "name": "UpGrade", "version": version, "description": "" }))
}

fn recorded(name: &str) -> Says {
    let recorded = recording::recording(&format!("v65/{name}"));
    Says::Json(recorded.status, recorded.response)
}

fn no_route() -> Says {
    Says::Text(404, "text/html", "<html><pre>Cannot POST /api/v6/init</pre></html>".into())
}

async fn script(version: &str, answers: impl IntoIterator<Item = Says>) -> (Scripted, UpgradeClient) {
    let server = Scripted::new(std::iter::once(healthy(version)).chain(answers).collect()).await;
    let client = UpgradeClient::builder(server.url()).retries(0).build().unwrap();
    (server, client)
}

fn alice() -> NewUser {
    NewUser::new("v5user").in_group("classId", "c1")
}

fn mark() -> Mark {
    Mark {
        condition_code: Some("control".into()),
        experiment_id: Some("01a86126-dd44-4d39-8f9a-408677f6f090".into()),
        status: Some(MarkStatus::Applied),
        ..Mark::new(SITE, TARGET)
    }
}

#[tokio::test]
async fn a_server_before_6_0_is_called_by_the_recorded_old_routes() {
    let names = ["v5_init", "v5_assign_unknown_user", "v5_mark"];
    let (server, client) = script("5.2.1", names.map(recorded)).await;
    let user = client.init_user(&alice()).await.unwrap();
    assert_eq!((user.id.as_str(), user.working_group["classId"].as_str()), ("v5user", "c1"));
    let unknown = client.assign("nobody", "assign-prog").await.unwrap_err();
    assert_eq!(
        (unknown.kind(), unknown.message()),
        (ErrorKind::NotFound, "Experiment User not found: nobody")
    );
    assert_eq!(client.mark("v5user", &mark()).await.unwrap().condition.as_deref(), Some("control"));
    for (name, heard) in names.iter().zip(&server.heard()[1..]) {
        let recorded = recording::recording(&format!("v65/{name}"));
        assert_eq!(heard.line, format!("{} {}", recorded.method, recorded.path));
        assert!(!heard.head.contains("user-id"), "{}", heard.head);
        for (field, value) in
            recorded.request.as_object().unwrap().iter().filter(|(field, _)| *field != "value")
        {
            assert_eq!(&heard.body[field], value, "{name}: {field}");
        }
    }
}

#[tokio::test]
async fn groups_and_aliases_are_set_by_old_and_new_routes() {
    let answers = || ["v6_groupmembership", "v6_workinggroup", "v6_useraliases"].map(recorded);
    for (version, path) in [("6.5.0", "v6"), ("5.0.0", "v5")] {
        let (server, client) = script(version, answers()).await;
        let groups = BTreeMap::from([("classId".to_owned(), vec!["c9".to_owned()])]);
        assert_eq!(client.set_groups("alice", &groups).await.unwrap().groups, groups);
        let working = BTreeMap::from([("classId".to_owned(), "c9".to_owned())]);
        assert_eq!(client.set_working_group("alice", &working).await.unwrap().working_group, working);
        assert_eq!(client.set_aliases("alice", &["alice-2"]).await.unwrap(), ["alice-2"]);
        let heard = server.heard();
        let mut bodies = [
            json!({ "group": { "classId": ["c9"] } }),
            json!({ "workingGroup": { "classId": "c9" } }),
            json!({ "aliases": ["alice-2"] }),
        ];
        if path == "v5" {
            for (body, field) in bodies.iter_mut().zip(["id", "id", "userId"]) {
                body[field] = json!("alice");
            }
        }
        let routes = ["groupmembership", "workinggroup", "useraliases"];
        for ((route, body), heard) in routes.iter().zip(&bodies).zip(&heard[1..]) {
            assert_eq!(heard.line, format!("PATCH /api/{path}/{route}"));
            assert_eq!(heard.body, *body);
            assert_eq!(heard.head.contains("user-id: alice\r\n"), path == "v6");
        }
    }
}

#[tokio::test]
async fn a_missing_route_is_tried_once_in_its_other_version() {
    let answers = [no_route(), recorded("v5_init"), recorded("v5_init"), recorded("v5_mark")];
    let (server, client) = script("6.1.0", answers).await;
    client.init_user(&alice()).await.unwrap();
    client.init_user(&alice()).await.unwrap();
    client.mark("v5user", &mark()).await.unwrap();
    let paths = ["/api/v6/init", "/api/v5/init", "/api/v5/init", "/api/v5/mark"];
    assert_eq!(server.lines()[1..], paths.map(|path| format!("POST {path}")));

    let (server, client) = script("5.9.0", [no_route(), recorded("v6_init"), recorded("v6_init")]).await;
    client.init_user(&NewUser::new("alice")).await.unwrap();
    client.init_user(&NewUser::new("alice")).await.unwrap();
    let paths = ["/api/v5/init", "/api/v6/init", "/api/v6/init"];
    assert_eq!(server.lines()[1..], paths.map(|path| format!("POST {path}")));

    let (server, client) = script("6.1.0", [no_route(), no_route(), recorded("v6_init")]).await;
    let failure = client.init_user(&alice()).await.unwrap_err();
    assert_eq!(failure.kind(), ErrorKind::Protocol);
    assert!(failure.message().contains("no such route: Cannot POST /api/v6/init"), "{failure}");
    client.init_user(&alice()).await.unwrap();
    assert_eq!(
        server.lines()[3],
        "POST /api/v6/init",
        "neither route exists, so the client still starts with v6"
    );
}

#[tokio::test]
async fn an_unknown_student_is_not_taken_for_a_missing_route() {
    let (server, client) = script("6.5.0", [recorded("v6_assign_unknown_user")]).await;
    assert_eq!(client.assign("ghost", "assign-prog").await.unwrap_err().kind(), ErrorKind::NotFound);
    assert_eq!(server.lines().len(), 2);
}

#[tokio::test]
async fn an_id_is_sent_in_the_header_as_latin_1_or_in_the_body() {
    for (id, in_header) in [
        ("ada", true),
        ("José", true),
        ("a: b, \"c\"", true),
        ("Нина", false),
        ("学", false),
        (" ada ", false),
    ] {
        let (server, client) = script("6.5.0", [Says::Json(200, json!({ "id": id }))]).await;
        assert_eq!(client.init_user(&NewUser::new(id)).await.unwrap().id, id);
        let heard = &server.heard()[1];
        if in_header {
            assert_eq!(heard.line, "POST /api/v6/init");
            assert!(heard.head.contains(&format!("user-id: {}\r\n", id.to_lowercase())), "{}", heard.head);
            assert!(heard.body.get("id").is_none());
        } else {
            assert_eq!((heard.line.as_str(), &heard.body["id"]), ("POST /api/v5/init", &json!(id)));
            assert!(!heard.head.contains("user-id"));
        }
    }
    let answers = [no_route(), recorded("v6_init"), recorded("v6_init"), no_route()];
    let (server, client) = script("6.5.0", answers).await;
    client.init_user(&NewUser::new("Нина")).await.unwrap();
    client.init_user(&NewUser::new("alice")).await.unwrap();
    assert_eq!(server.heard()[2].line, "POST /api/v6/init");
    let nina: String = "Нина".bytes().map(char::from).collect();
    assert!(server.heard()[2].head.contains(&format!("user-id: {}\r\n", nina.to_lowercase())));
    assert_eq!(server.lines()[3], "POST /api/v6/init", "the next id starts with v6 again");
    assert_eq!(client.init_user(&NewUser::new(" ada")).await.unwrap_err().kind(), ErrorKind::Protocol);
    assert_eq!(server.lines().len(), 5, "an id that would change on the way is not sent");
}

#[tokio::test]
async fn an_id_that_would_add_a_header_is_not_sent() {
    let (server, client) = script("6.5.0", []).await;
    for id in ["", " \t", "a\r\nAuthorization: Bearer x", "a\nb", "a\0b", "a\u{7f}", "a\u{85}b"] {
        let failures = [
            client.init_user(&NewUser::new(id)).await.unwrap_err(),
            client.assign(id, "assign-prog").await.unwrap_err(),
            client.mark(id, &Mark::new(SITE, TARGET)).await.unwrap_err(),
            client.set_aliases(id, &[]).await.unwrap_err(),
        ];
        for failure in failures {
            assert_eq!(failure.kind(), ErrorKind::BadRequest, "{id:?}: {failure}");
        }
    }
    assert!(server.lines().is_empty(), "{:?}", server.lines());
}

#[tokio::test]
async fn every_level_of_a_factorial_condition_is_read() {
    let (_server, client) = script("6.5.0", [recorded("v6_assign_factorial")]).await;
    let assigned = client.assign("f1", "assign-prog").await.unwrap();
    assert_eq!(assigned[0].experiment_type, ExperimentType::Factorial);
    let current = assigned[0].current().unwrap();
    assert_eq!(current.condition_code.as_deref(), Some("Color=blue; Size=small"));
    let levels: Vec<_> = assigned[0].factors[0]
        .iter()
        .map(|(factor, level)| {
            (factor.as_str(), level.level.as_str(), level.payload.as_ref().unwrap().value.as_str())
        })
        .collect();
    assert_eq!(levels, [("Color", "blue", "blue-p"), ("Size", "small", "small-p")]);
}

#[tokio::test]
async fn a_queue_within_subjects_is_read_completely_and_its_first_condition_is_current() {
    let recording = recording::recording("v65/v6_assign_within_random_round_robin").response;
    let (_server, client) = script("6.5.0", [recorded("v6_assign_within_random_round_robin")]).await;
    let assigned = client.assign("w1", "assign-prog").await.unwrap();
    let codes = |queue: &Value| -> Vec<Option<String>> {
        let queue = queue["assignedCondition"].as_array().unwrap().iter();
        queue.map(|entry| entry["conditionCode"].as_str().map(str::to_owned)).collect()
    };
    for (read, told) in assigned.iter().zip(recording.as_array().unwrap()) {
        let read_codes: Vec<_> =
            read.conditions.iter().map(|condition| condition.condition_code.clone()).collect();
        assert_eq!(read_codes, codes(told));
        assert!(read_codes.len() > 1);
        assert_eq!(read.current(), read.conditions.first());
        assert_eq!(Mark::of(read).condition_code, read_codes[0]);
    }
}

#[tokio::test]
async fn old_answers_with_one_condition_read_like_new_ones() {
    let old = json!([{
        "site": SITE, "target": TARGET, "experimentType": "Factorial",
        "assignedCondition": { "id": "c", "conditionCode": "x", "experimentId": "e", "payload": { "type": "csv", "value": "1,2" } },
        "assignedFactor": { "Color": { "level": "blue", "payload": null } },
    }, { "target": "no site" }, 7]);
    let (_server, client) = script("5.0.0", [Says::Json(200, old)]).await;
    let assigned = client.assign("ada", "assign-prog").await.unwrap();
    assert_eq!((assigned.len(), assigned[0].conditions.len()), (1, 1));
    assert_eq!(assigned[0].current().unwrap().payload.as_ref().unwrap().kind, "csv");
    assert_eq!(assigned[0].factors[0]["Color"].level, "blue");
}

#[tokio::test]
async fn only_idempotent_calls_for_a_student_are_retried() {
    let busy = || Says::Json(503, json!({}));
    for (name, repeats) in [("init", true), ("assign", true), ("aliases", true), ("mark", false)] {
        let server = Scripted::new(vec![healthy("6.5.0"), busy(), busy()]).await;
        let client =
            UpgradeClient::builder(server.url()).retries(1).retry_pause(Duration::ZERO).build().unwrap();
        let failed = match name {
            "init" => client.init_user(&NewUser::new("ada")).await.is_err(),
            "assign" => client.assign("ada", "x").await.is_err(),
            "aliases" => client.set_aliases("ada", &[]).await.is_err(),
            _ => client.mark("ada", &Mark::new(SITE, TARGET)).await.is_err(),
        };
        assert!(failed);
        assert_eq!(server.lines().len(), if repeats { 3 } else { 2 }, "{name}");
    }
}

#[tokio::test]
async fn the_embedded_server_knows_the_student_by_any_latin_id() {
    let server = EmbeddedServer::builder().in_memory().start().await.unwrap();
    let client = UpgradeClient::builder(server.url()).build().unwrap();
    let new = NewExperiment::new("Math hints", "assign-prog").point(SITE, TARGET).condition("control", 100.0);
    let made = client.create(&new.include_all()).await.unwrap();
    client.set_state(&made.id, &ExperimentState::Enrolling).await.unwrap();
    for id in ["José", "a b", "a/../b", "O'Neil; DROP TABLE", "x".repeat(400).as_str()] {
        assert_eq!(client.init_user(&NewUser::new(id).in_group("classId", "c1")).await.unwrap().id, id);
        let assigned = client.assign(id, "assign-prog").await.unwrap();
        assert_eq!(client.mark(id, &Mark::of(&assigned[0])).await.unwrap().user_id, id);
    }
    assert_eq!(client.enrollment(&made.id).await.unwrap().users, 5);
}
