//! The embedded server as UpGrade 6.2.0: recordings of the real one, error responses from its source, and the
//! client of this crate.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]

use crate::recording;

use std::collections::HashMap;

use recording::{Answered, Ids, Recording, http, recording, send};
use reqwest::Client;
use serde_json::{Value, json};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;
use upgrade_agent::client::{
    Dialect, ErrorKind, ExperimentPatch, ExperimentState, FilterMode, Mark, NewExperiment, NewUser, PostRule,
    UpgradeClient,
};
use upgrade_agent::server::{EmbeddedServer, ServerHandle};

const SITE: &str = "SelectSection";
const TARGET: &str = "absolute_value_plot_equality";
const UNUSED_ID: &str = "00000000-0000-4000-8000-000000000000";

struct Stage {
    server: ServerHandle,
    http: Client,
    ids: Ids,
}

impl Stage {
    /// Starts a server that keeps connections open, because the client pool of a stage does not expect
    /// closed ones.
    async fn new() -> Self {
        let server = EmbeddedServer::builder().dialect(Dialect::V62).lasting_connections().start().await;
        Self { server: server.unwrap(), http: http(), ids: Ids::default() }
    }

    async fn call(&self, method: &str, path: &str, user: Option<&str>, body: &Value) -> Answered {
        let headers: HashMap<_, _> =
            user.map(|user| ("User-Id".to_owned(), user.to_owned())).into_iter().collect();
        send(&self.http, self.server.url(), method, path, &headers, body).await
    }

    async fn is(&mut self, name: &str) {
        let Recording { method, path, headers, request, status, content_type, response } =
            recording(&format!("v62/{name}"));
        let path = self.ids.text(&path);
        let request = self.ids.value(&request);
        let answer = send(&self.http, self.server.url(), &method, &path, &headers, &request).await;
        assert_eq!((answer.status, &answer.content_type), (status, &content_type), "{name}: {}", answer.body);
        if let Err(why) = self.ids.compare(&response, &answer.body) {
            panic!("{name}: {why}");
        }
    }
}

/// Returns the body of a recorded create, to be changed.
fn body() -> Value {
    recording("v62/create").request
}

#[tokio::test]
async fn the_life_of_an_experiment_is_answered_as_recorded() {
    let mut stage = Stage::new().await;
    let names = [
        "health",
        "create",
        "create_duplicate_id",
        "single",
        "state_enrolling",
        "state_running",
        "state_enrollmentComplete",
        "state_paused",
        "state_cancelled",
        "state_completed",
        "state_archived",
        "state_draft",
    ];
    for name in names {
        stage.is(name).await;
    }
}

#[tokio::test]
async fn a_round_trip_and_later_requests_are_answered_as_recorded() {
    let mut stage = Stage::new().await;
    let recorded = recording("v62/update_roundtrip");
    // The recorded experiment was created by two calls and moved through the states of its log.
    for part in [[0, 2], [1, 3]] {
        let mut body = recorded.request.clone();
        body["state"] = json!("inactive");
        body["conditions"] = part.iter().map(|&at| recorded.request["conditions"][at].clone()).collect();
        body["partitions"] = json!([recorded.request["partitions"][part[0]]]);
        for list in ["experimentSegmentInclusion", "experimentSegmentExclusion"] {
            body[list]["segment"].as_object_mut().unwrap().remove("id");
        }
        assert_eq!(stage.call("POST", "/api/experiments", None, &body).await.status, 200);
    }
    let mut logs = recorded.request["stateTimeLogs"].as_array().unwrap().clone();
    logs.sort_by_key(|log| log["timeLog"].to_string());
    for log in logs {
        let body = json!({ "experimentId": recorded.request["id"], "state": log["toState"] });
        assert_eq!(stage.call("POST", "/api/experiments/state", None, &body).await.status, 200);
    }
    stage.is("update_roundtrip").await;
    // The order of two conditions with the same place was random; the recording has this one.
    let mut turned = recorded.request.clone();
    turned["conditions"].as_array_mut().unwrap().swap(0, 1);
    assert_eq!(stage.call("PUT", &recorded.path, None, &turned).await.status, 200);
    for name in ["v6_init", "v6_assign", "v6_mark"] {
        stage.is(name).await;
    }
    for name in ["enrollment_detail", "v6_assign_unknown_context", "v6_assign_unknown_user"] {
        stage.is(name).await;
    }
    assert_eq!(stage.call("DELETE", &recorded.path, None, &Value::Null).await.status, 200);
    stage.is("delete_again").await;
}

#[tokio::test]
async fn single_calls_are_answered_as_recorded() {
    for name in
        ["create_assign_rule", "create_empty_arrays_omitted", "create_wrong_context", "single_unknown"]
    {
        Stage::new().await.is(name).await;
    }
}

#[tokio::test]
async fn a_bad_body_is_reported_property_by_property() {
    let stage = Stage::new().await;
    let mut body = body();
    body["name"] = json!(5);
    body["conditions"][1]["assignmentWeight"] = json!("half");
    body["partitions"] = json!("none");
    body["experimentSegmentExclusion"] = json!([]);
    let answer = stage.call("POST", "/api/experiments", None, &body).await;
    let expected = json!({
        "httpCode": 400,
        "name": "BadRequestError",
        "message": "Invalid body, check 'errors' property for more info.",
        "errors": [
            { "property": "name", "children": [], "constraints": { "isString": "name must be a string" } },
            {
                "property": "conditions",
                "children": [{
                    "property": "1",
                    "children": [{
                        "property": "assignmentWeight",
                        "children": [],
                        "constraints": {
                            "isNumber": "assignmentWeight must be a number conforming to the specified constraints",
                        },
                    }],
                }],
            },
            {
                "property": "partitions",
                "children": [],
                "constraints": {
                    "isArray": "partitions must be an array",
                    "nestedValidation": "each value in nested property partitions must be either object or array",
                },
            },
        ],
    });
    assert_eq!(answer.body, expected);
}

#[tokio::test]
async fn errors_are_sent_unchanged() {
    let stage = Stage::new().await;
    let path = format!("/api/experiments/{UNUSED_ID}");
    let unknown = json!({ "experimentId": UNUSED_ID });
    let with = |field: &str, value: Value| {
        let mut body = body();
        body[field] = value;
        body
    };
    let moved = json!({ "experimentId": UNUSED_ID, "state": "draft" });
    let cases = [
        ("PUT", path.as_str(), body(), 500, json!({})),
        ("POST", "/api/experiments/state", moved, 500, json!({})),
        ("POST", "/api/stats/enrollment/detail", unknown, 500, json!({})),
        (
            "POST",
            "/api/experiments",
            with("conditions", json!([])),
            500,
            json!({
                "type": "Query Failed", "className": "ExperimentConditionRepository",
                "functionName": "insertConditions", "parameters": { "conditionDocs": false },
            }),
        ),
        (
            "POST",
            "/api/experiments",
            with("partitions", json!([])),
            500,
            json!({
                "type": "Query Failed", "className": "DecisionPointRepository",
                "functionName": "insertPartitions", "parameters": { "partitionsDocs": false },
            }),
        ),
        (
            "POST",
            "/api/experiments",
            json!("{bad"),
            400,
            json!({
                "expose": true, "statusCode": 400, "status": 400, "body": "{bad",
                "type": "entity.parse.failed",
            }),
        ),
        (
            "POST",
            "/api/v6/assign",
            json!({ "context": "assign-prog" }),
            400,
            json!({ "type": "Missing `User-Id` header", "httpCode": 400 }),
        ),
        (
            "GET",
            "/api/experiments/single/abc",
            Value::Null,
            400,
            json!({
                "httpCode": 400,
                "name": "BadRequestError",
                "message": "Invalid params, check 'errors' property for more info.",
                "errors": [
                    { "property": "id", "children": [], "constraints": { "isUuid": "id must be a UUID" } },
                ],
            }),
        ),
    ];
    for (method, path, body, status, answer) in cases {
        let ours = stage.call(method, path, None, &body).await;
        assert_eq!((ours.status, ours.body), (status, answer), "{method} {path} {body}");
    }
}

#[tokio::test]
async fn the_lists_of_an_experiment_have_no_own_routes() {
    let stage = Stage::new().await;
    let answer = stage.call("POST", "/api/experiments/inclusionList", None, &json!({})).await;
    assert_eq!((answer.status, answer.content_type.as_str()), (404, "text/html; charset=utf-8"));
}

#[tokio::test]
async fn the_ids_of_parts_are_kept_and_cannot_be_used_twice() {
    let stage = Stage::new().await;
    let made = stage.call("POST", "/api/experiments", None, &body()).await.body;
    assert_eq!(made["conditions"][0]["id"], body()["conditions"][0]["id"]);
    let again = stage.call("POST", "/api/experiments", None, &body()).await;
    assert_eq!((again.status, &again.body["functionName"]), (500, &json!("insertConditions")));
    let all = stage.call("GET", "/api/experiments/names", None, &Value::Null).await.body;
    assert_eq!(all.as_array().unwrap().len(), 1, "a refused create stores nothing");
}

#[tokio::test]
async fn an_update_rewrites_the_members_of_the_lists() {
    let stage = Stage::new().await;
    let mut new = body();
    new["id"] = json!(UNUSED_ID);
    stage.call("POST", "/api/experiments", None, &new).await;
    let path = format!("/api/experiments/single/{UNUSED_ID}");
    let mut read = stage.call("GET", &path, None, &Value::Null).await.body;
    let list = read["experimentSegmentExclusion"]["segmentId"].clone();
    read["experimentSegmentExclusion"]["segment"]["individualForSegment"] = json!([{ "userId": "ada" }]);
    let put = stage.call("PUT", &format!("/api/experiments/{UNUSED_ID}"), None, &read).await;
    assert_eq!(put.status, 200, "{}", put.body);
    let read = stage.call("GET", &path, None, &Value::Null).await.body;
    let exclusion = &read["experimentSegmentExclusion"];
    assert_eq!(exclusion["segmentId"], list);
    assert_eq!(exclusion["segment"]["individualForSegment"][0]["userId"], "ada");
    assert_eq!(exclusion["segment"]["name"], json!(format!("{UNUSED_ID} Exclusion Segment")));
    assert_eq!(read["conditionPayloads"], json!([]), "an update adds no payloads");
}

/// Sends two calls on one connection, the second after the response to the first. Returns the first
/// response, and whether the second call got one.
async fn both_on_one_connection(server: &ServerHandle, first: &str) -> (String, bool) {
    let mut stream = TcpStream::connect(server.addr()).await.unwrap();
    let call = |path: &str| format!("GET {path} HTTP/1.1\r\nHost: localhost\r\n\r\n");
    stream.write_all(call(first).as_bytes()).await.unwrap();
    let answer = answer(&mut stream).await.unwrap();
    // A write to a closed connection may still succeed; the read shows it.
    let _ = stream.write_all(call("/api").as_bytes()).await;
    (answer, self::answer(&mut stream).await.is_some())
}

/// Reads one response; `None` if the connection ended.
async fn answer(stream: &mut TcpStream) -> Option<String> {
    let mut text = Vec::new();
    loop {
        let read = stream.read_buf(&mut text).await.unwrap_or(0);
        let so_far = String::from_utf8_lossy(&text).into_owned();
        let (head, body) = so_far.split_once("\r\n\r\n").unwrap_or((&so_far, ""));
        let length =
            head.to_lowercase().lines().find_map(|line| line.strip_prefix("content-length: ")?.parse().ok());
        if length.is_some_and(|length: usize| body.len() >= length) {
            return Some(so_far);
        }
        if read == 0 {
            return None;
        }
    }
}

#[tokio::test]
async fn an_error_response_ends_the_connection_without_notice() {
    let server = EmbeddedServer::builder().dialect(Dialect::V62).start().await.unwrap();
    let (bad, goes_on) = both_on_one_connection(&server, "/api/experiments/single/abc").await;
    assert!(bad.starts_with("HTTP/1.1 400 "), "{bad}");
    assert!(!bad.to_lowercase().contains("connection:"), "{bad}");
    assert!(!goes_on);
    for (path, begins) in [("/api/experiments/names", "HTTP/1.1 200 "), ("/api/nowhere", "HTTP/1.1 404 ")] {
        let (good, goes_on) = both_on_one_connection(&server, path).await;
        assert!(good.starts_with(begins) && goes_on, "{good}");
    }
    let lasting =
        EmbeddedServer::builder().dialect(Dialect::V62).lasting_connections().start().await.unwrap();
    assert!(both_on_one_connection(&lasting, "/api/experiments/single/abc").await.1);
    let newer = EmbeddedServer::builder().start().await.unwrap();
    assert!(both_on_one_connection(&newer, "/api/experiments/single/abc").await.1);
}

async fn client() -> (ServerHandle, UpgradeClient) {
    let server = EmbeddedServer::builder().dialect(Dialect::V62).seed(2).start().await.unwrap();
    let client = UpgradeClient::builder(server.url()).build().unwrap();
    (server, client)
}

fn hints() -> NewExperiment {
    NewExperiment::new("Math hints", "assign-prog")
        .point(SITE, TARGET)
        .condition("control", 50.0)
        .condition("variant", 50.0)
        .include_all()
}

#[tokio::test]
async fn our_client_takes_an_experiment_through_its_life() {
    let (_server, client) = client().await;
    assert_eq!(client.dialect().await.unwrap(), Dialect::V62);
    let made = client.create(&hints().post_rule(PostRule::assign("variant"))).await.unwrap();
    assert_eq!(made.post_rule, PostRule::assign("variant"));
    assert_eq!(made.filter_mode, FilterMode::IncludeAll);
    let running = client.set_state(&made.id, &ExperimentState::Enrolling).await.unwrap();
    assert_eq!(running.state, ExperimentState::Enrolling);
    client.init_user(&NewUser::new("ada")).await.unwrap();
    let assigned = client.assign("ada", "assign-prog").await.unwrap();
    assert_eq!(assigned[0].conditions[0].experiment_id.as_deref(), Some(made.id.as_str()));
    client.mark("ada", &Mark::new(SITE, TARGET)).await.unwrap();
    assert_eq!(client.enrollment(&made.id).await.unwrap().users, 1);
    let patch = ExperimentPatch { name: Some("Hints".into()), ..ExperimentPatch::default() };
    let named = client.update(&made.id, &patch).await.unwrap();
    assert_eq!((named.name.as_str(), named.conditions.len()), ("Hints", 2));
    assert_eq!(named.conditions[0].id, made.conditions[0].id);
    let paused = client.set_state(&made.id, &ExperimentState::EnrollmentComplete).await.unwrap();
    assert_eq!(paused.state, ExperimentState::EnrollmentComplete);
    assert_eq!(client.experiments().await.unwrap().len(), 1);
    assert_eq!(client.experiment_names().await.unwrap().len(), 1);
    client.delete(&made.id).await.unwrap();
    assert_eq!(client.experiments().await.unwrap(), []);
}

#[tokio::test]
async fn our_client_continues_after_every_error_response() {
    let (_server, client) = client().await;
    let made = client.create(&hints()).await.unwrap();
    for _ in 0..3 {
        let gone = client.experiment(UNUSED_ID).await.unwrap_err();
        assert_eq!(gone.kind(), ErrorKind::NotFound);
        let unknown = client.assign("ghost", "assign-prog").await.unwrap_err();
        assert_eq!(unknown.kind(), ErrorKind::NotFound);
        let unmoved = client.set_state(UNUSED_ID, &ExperimentState::Enrolling).await.unwrap_err();
        assert_eq!(unmoved.kind(), ErrorKind::NotFound);
        let undeleted = client.delete(UNUSED_ID).await.unwrap_err();
        assert_eq!(undeleted.kind(), ErrorKind::NotFound);
        let refused = client.create(&NewExperiment { context: "nope".into(), ..hints() }).await.unwrap_err();
        assert_eq!(refused.kind(), ErrorKind::BadRequest, "{refused}");
        assert_eq!(client.experiment(&made.id).await.unwrap().name, "Math hints");
    }
}
