//! For every behaviour of a server, the client reports the kind of the error, retries only what is safe to
//! retry, and keeps its token secret.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]

use crate::recording;
use crate::scripted;

use std::time::Duration;

use proptest::prelude::*;
use scripted::{Says, Scripted};
use secrecy::SecretString;
use serde_json::{Value, json};
use upgrade_agent::client::{
    ClientError, Dialect, ErrorKind, ExperimentPatch, ExperimentState, Mark, Members, NewExperiment, NewUser,
    PageQuery, PostRule, UpgradeClient, UpgradeClientBuilder,
};

const ID: &str = "d6a003ca-be46-417b-9c13-8dac554f511c";
const SECRET: &str = "hunter2-and-more";

fn healthy() -> Says {
    Says::Json(200, json!({ "name": "UpGrade", "version": "6.5.0", "description": "" }))
}

async fn script(answers: impl IntoIterator<Item = Says>) -> Scripted {
    Scripted::new(std::iter::once(healthy()).chain(answers).collect()).await
}

fn builder(url: &str) -> UpgradeClientBuilder {
    UpgradeClient::builder(url).retry_pause(Duration::ZERO)
}

fn client(server: &Scripted) -> UpgradeClient {
    builder(server.url()).retries(0).build().unwrap()
}

async fn names_fail(answer: Says) -> ClientError {
    let server = script([answer]).await;
    client(&server).experiment_names().await.unwrap_err()
}

#[tokio::test]
async fn authors_are_read_from_all_pages_of_the_audit_log() {
    let entry = |id: &str, user: Value| json!({ "type": "experimentCreated", "data": { "experimentId": id }, "user": user });
    let ada = json!({ "firstName": "Ada", "lastName": "Byron", "email": "ada@example.org", "role": "admin" });
    let server = script([
        Says::Json(200, json!({ "total": 501, "nodes": [entry("1", ada), entry("2", Value::Null)] })),
        Says::Json(200, json!({ "total": 501, "nodes": [entry("3", json!({ "email": "bob@example.org", "lastName": "" }))] })),
    ])
    .await;
    let authors = client(&server).authors().await.unwrap();
    let told: Vec<String> = authors.into_iter().map(|(id, name)| format!("{id}: {name}")).collect();
    assert_eq!(told, ["1: Ada Byron ada@example.org", "3: bob@example.org"]);
    let asked: Vec<Value> = server.heard().into_iter().skip(1).map(|heard| heard.body).collect();
    assert_eq!(asked[0], json!({ "skip": 0, "take": 500, "filter": "experimentCreated" }));
    assert_eq!(asked[1]["skip"], 500);
}

#[tokio::test]
async fn each_response_has_its_kind_of_error() {
    let html = |status| Says::Text(status, "text/html", "<!DOCTYPE html><pre>Cannot GET</pre>".into());
    let recorded = |name: &str| {
        let recorded = recording::recording(&format!("v65/{name}"));
        match recorded.response {
            Value::String(page) => Says::Text(recorded.status, "text/html", page),
            json => Says::Json(recorded.status, json),
        }
    };
    let bytes = |body: &[u8]| {
        let head = format!("HTTP/1.1 200 OK\r\ncontent-length: {}\r\n\r\n", body.len());
        Says::Raw([head.as_bytes(), body].concat())
    };
    let cases = [
        (recorded("auth_admin_no_token"), ErrorKind::Auth, "Authorization is required"),
        (recorded("auth_admin_bad_token"), ErrorKind::Auth, ""),
        (recorded("create_empty_body"), ErrorKind::BadRequest, "Invalid body"),
        (recorded("delete_again"), ErrorKind::NotFound, "Experiment not found."),
        (recorded("update_unknown_id"), ErrorKind::Server, "Cannot read properties"),
        (Says::Json(500, json!({})), ErrorKind::Server, "the server does not say why"),
        (Says::Nothing(500), ErrorKind::Server, "the server does not say why"),
        (Says::Nothing(404), ErrorKind::NotFound, "the server does not say why"),
        (html(404), ErrorKind::Protocol, "the server has no such route: Cannot GET"),
        (recorded("v4_init"), ErrorKind::Protocol, "the server has no such route: Cannot POST /api/v4/init"),
        (
            recorded("client_auth_no_token"),
            ErrorKind::Auth,
            "Token is not present in request header from client",
        ),
        (recorded("client_auth_malformed"), ErrorKind::Auth, "jwt malformed (User ID not found)"),
        (recorded("create_bad_json"), ErrorKind::BadRequest, "Expected property name"),
        (Says::Json(403, json!({ "message": "forbidden", "type": "x" })), ErrorKind::Auth, "forbidden"),
        (Says::Json(429, json!({})), ErrorKind::Server, "the server does not say why"),
        (
            Says::Json(400, json!({ "message": 7, "errors": "x" })),
            ErrorKind::BadRequest,
            "the server does not",
        ),
        (
            Says::Json(500, json!({ "message": " ", "type": "Query Failed" })),
            ErrorKind::Server,
            "Query Failed",
        ),
        (Says::Json(500, json!("text")), ErrorKind::Server, "the server does not say why"),
        (Says::Json(200, json!(null)), ErrorKind::Protocol, "the answer does not have"),
        (
            Says::Text(200, "application/json", "[{\"id\": \"a".into()),
            ErrorKind::Protocol,
            "the answer breaks off",
        ),
        (Says::Text(500, "application/json", "{\"mess".into()), ErrorKind::Server, "the answer breaks off"),
        (
            Says::Text(200, "application/json", "[".repeat(5000)),
            ErrorKind::Protocol,
            "the answer is not JSON",
        ),
        (
            Says::Text(503, "text/html", "<title> Down </title>".into()),
            ErrorKind::Server,
            "the answer is not JSON: Down",
        ),
        (bytes(b"[\"\xff\xfe\"]"), ErrorKind::Protocol, "the answer is not JSON"),
        (Says::Raw(b"SSH-2.0-OpenSSH_9\r\n".to_vec()), ErrorKind::Connect, ""),
        (Says::Raw(b"HTTP/1.1 200 OK\r\ncontent-length: 50\r\n\r\n[]".to_vec()), ErrorKind::Connect, ""),
        (
            Says::Raw(b"HTTP/1.1 200 OK\r\ncontent-length: 9999999999\r\n\r\n[".to_vec()),
            ErrorKind::Protocol,
            "the answer is too large",
        ),
        (html(200), ErrorKind::Protocol, "the answer is not JSON"),
        (html(502), ErrorKind::Server, "the answer is not JSON"),
        (Says::Json(409, json!({ "message": "taken" })), ErrorKind::Conflict, "taken"),
        (Says::Json(302, Value::Null), ErrorKind::Protocol, "the server sends elsewhere"),
        (Says::Json(200, json!({ "no": "list" })), ErrorKind::Protocol, "the answer does not have"),
        (Says::Nothing(204), ErrorKind::Protocol, "the answer does not have"),
        (Says::HangsUp, ErrorKind::Connect, ""),
    ];
    for (answer, kind, message) in cases {
        let failure = names_fail(answer).await;
        assert_eq!(failure.kind(), kind, "{failure}");
        assert!(failure.message().starts_with(message), "{failure}");
        assert!(failure.to_string().starts_with(failure.code()), "{failure}");
        assert_eq!(failure.call(), "GET /experiments/names");
    }
}

#[tokio::test]
async fn a_delete_with_an_empty_response_has_deleted() {
    let server = script([Says::Nothing(204)]).await;
    assert_eq!(client(&server).delete(ID).await.unwrap().name, None);
}

#[tokio::test]
async fn an_address_without_a_server_is_recognized() {
    // Held without listening, so that no other test gets the port.
    let closed = tokio::net::TcpSocket::new_v4().unwrap();
    closed.bind("127.0.0.1:0".parse().unwrap()).unwrap();
    let url = format!("http://{}/api", closed.local_addr().unwrap());
    let failure = builder(&url).build().unwrap().connect().await.unwrap_err();
    assert_eq!(failure.code(), "E_UPGRADE_CONNECT", "{failure}");
    assert!(!failure.may_have_acted());
}

#[tokio::test]
async fn a_server_that_is_not_upgrade_is_recognized() {
    for answer in [
        Says::Json(200, json!({ "status": "ok" })),
        Says::Json(200, json!({ "version": "latest" })),
        Says::Json(200, json!([])),
        Says::Text(200, "text/html", "<h1>Welcome</h1>".into()),
    ] {
        let server = Scripted::new(vec![answer]).await;
        let failure = client(&server).connect().await.unwrap_err();
        assert_eq!(failure.code(), "E_UPGRADE_PROTOCOL", "{failure}");
    }
}

/// The health call is the first. If it fails, the server may be the wrong one, so the error contains the URL.
#[tokio::test]
async fn an_error_of_the_first_call_names_the_url_and_the_remedy() {
    let cases = [
        (Says::Nothing(404), "E_UPGRADE_PROTOCOL", "ends in /api"),
        (Says::Json(404, json!({ "message": "no such page" })), "E_UPGRADE_PROTOCOL", "ends in /api"),
        (Says::Nothing(400), "E_UPGRADE_PROTOCOL", "ends in /api"),
        (Says::Waits, "E_UPGRADE_TIMEOUT", "allow it more time (--timeout)"),
    ];
    for (answer, code, advice) in cases {
        let server = Scripted::new(vec![answer]).await;
        let client = builder(server.url()).retries(0).timeout(Duration::from_millis(200)).build().unwrap();
        let failure = client.connect().await.unwrap_err();
        let told = failure.to_string();
        assert_eq!(failure.code(), code, "{told}");
        assert!(told.contains(server.url()) && told.contains(advice), "{told}");
        assert!(!told.contains("the server may have acted"), "{told}");
    }
}

#[test]
fn an_address_without_a_scheme_is_shown_with_one() {
    let cases = [
        ("localhost:3030", "such as http://localhost:3030/api;"),
        ("127.0.0.1:3030/api", "such as http://127.0.0.1:3030/api;"),
        ("upgrade.example.org", "such as https://upgrade.example.org/api;"),
        ("ada:hunter2@example.org/api", "http:// or https://;"),
        ("example.org/api?token=hunter2", "http:// or https://;"),
        ("", "http:// or https://;"),
    ];
    for (url, told) in cases {
        let failure = UpgradeClient::builder(url).build().unwrap_err();
        assert_eq!(failure.code(), "E_UPGRADE_CONFIG");
        let shown = failure.to_string();
        assert!(shown.contains(told) && !shown.contains("hunter2"), "{url}: {shown}");
    }
}

#[tokio::test]
async fn a_missing_response_is_a_timeout() {
    let server = script([Says::Waits]).await;
    let client = client(&server);
    client.connect().await.unwrap();
    // From here on, time advances automatically when nothing else can run.
    tokio::time::pause();
    let failure = client.experiment_names().await.unwrap_err();
    assert_eq!(failure.kind(), ErrorKind::Timeout, "{failure}");
    assert!(failure.may_have_acted());
}

#[tokio::test]
async fn reads_are_retried_until_they_succeed_or_the_retries_are_used_up() {
    let busy = || Says::Json(503, json!({}));
    let server = script([busy(), Says::HangsUp, Says::Json(200, json!([]))]).await;
    let patient = builder(server.url()).retries(2).build().unwrap();
    assert_eq!(patient.experiment_names().await.unwrap(), []);
    assert_eq!(server.lines().len(), 4);

    let server = script([busy(), busy(), busy(), busy()]).await;
    let patient = builder(server.url()).retries(2).build().unwrap();
    assert_eq!(patient.experiment_names().await.unwrap_err().status(), Some(503));
    assert_eq!(server.lines().len(), 4, "one call for health, three for names");
}

#[tokio::test]
async fn a_mistake_is_not_retried() {
    let server = script([Says::Json(500, json!({})), Says::Json(200, json!([]))]).await;
    let patient = builder(server.url()).retries(5).build().unwrap();
    assert_eq!(patient.experiment_names().await.unwrap_err().kind(), ErrorKind::Server);
    assert_eq!(server.lines().len(), 2);
}

#[tokio::test]
async fn writes_are_sent_only_once() {
    let single = || Says::Json(200, json!({ "id": ID, "state": "inactive" }));
    let new = NewExperiment::new("x", "assign-prog");

    let server = script([Says::HangsUp]).await;
    let patient = builder(server.url()).retries(5).build().unwrap();
    let failure = patient.create(&new).await.unwrap_err();
    assert_eq!((failure.kind(), failure.may_have_acted()), (ErrorKind::Connect, true));
    assert_eq!(server.lines(), ["GET /api", "POST /api/experiments"]);

    let server = script([Says::HangsUp, Says::Json(503, json!({})), single(), Says::HangsUp]).await;
    let patient = builder(server.url()).retries(5).build().unwrap();
    assert!(patient.delete(ID).await.is_err());
    assert!(patient.mark("ada", &Mark::new("a", "b")).await.is_err());
    assert!(patient.set_state(ID, &ExperimentState::Enrolling).await.is_err());
    assert_eq!(
        server.lines(),
        [
            "GET /api".to_owned(),
            format!("DELETE /api/experiments/{ID}"),
            "POST /api/v6/mark".to_owned(),
            format!("GET /api/experiments/single/{ID}"),
            "POST /api/experiments/state".to_owned(),
        ]
    );
}

#[tokio::test]
async fn nothing_is_written_if_the_read_before_it_fails() {
    let server = script([Says::Json(404, json!({ "message": "Experiment not found." }))]).await;
    let failure = client(&server).set_state(ID, &ExperimentState::Enrolling).await.unwrap_err();
    assert_eq!(failure.kind(), ErrorKind::NotFound);
    let server = script([Says::Json(503, json!({}))]).await;
    let new = NewExperiment::new("x", "assign-prog").id(ID);
    assert_eq!(client(&server).create(&new).await.unwrap_err().kind(), ErrorKind::Server);
    let lines = server.lines();
    assert!(!lines.iter().any(|line| line.starts_with("POST")), "{lines:?}");
}

#[tokio::test]
async fn the_token_is_sent_and_never_shown() {
    let echo = json!({
        "message": "Authorization is required",
        "request": { "authorization": SECRET },
        "errorCode": 401,
    });
    let server = script([Says::Json(401, echo)]).await;
    let settings = builder(server.url()).token(SecretString::from(SECRET));
    let shown = format!("{settings:?}");
    let client = settings.build().unwrap();
    let failure = client.experiment_names().await.unwrap_err();
    assert!(server.heard()[1].head.contains(&format!("authorization: bearer {SECRET}")));
    for text in [shown, format!("{client:?}"), format!("{failure:?}"), failure.to_string()] {
        assert!(!text.contains(SECRET), "{text}");
    }
}

#[test]
fn invalid_settings_are_refused_without_repeating_them() {
    let url = "http://localhost:3030/api";
    let with_token = |token: &str| UpgradeClient::builder(url).token(SecretString::from(token));
    let refused = [
        UpgradeClient::builder("localhost:3030/api"),
        UpgradeClient::builder("ftp://localhost/api"),
        UpgradeClient::builder(""),
        with_token(" \n"),
        UpgradeClient::builder(format!("http://ada:{SECRET}@localhost/api")),
        with_token(&format!("{SECRET}\n")).token(SecretString::from(format!("{SECRET}\u{7f}"))),
    ];
    for builder in refused {
        assert!(!format!("{builder:?}").contains(SECRET));
        let failure = builder.build().unwrap_err();
        assert_eq!(failure.code(), "E_UPGRADE_CONFIG", "{failure}");
        assert!(!failure.to_string().contains(SECRET), "{failure}");
    }
    assert!(with_token("fine").build().is_ok());
    assert!(UpgradeClient::builder("https://upgrade.example.org/api/").build().is_ok());
}

#[tokio::test]
async fn unusual_responses_are_read_as_far_as_possible() {
    let strange = json!([
        7,
        { "name": "no id" },
        { "id": ID, "name": null, "state": "frozen", "context": "text", "conditions": [1, {}, {
            "id": "c", "assignmentWeight": "33.5", "order": "first",
        }], "partitions": null, "tags": [1, "one"], "experimentSegmentInclusion": [null, 1, {}] },
    ]);
    let server = script([Says::Json(200, strange), Says::Json(200, json!({ "id": "ada" }))]).await;
    let client = client(&server);
    let all = client.experiments().await.unwrap();
    assert_eq!(all.len(), 1);
    assert_eq!(all[0].state, ExperimentState::Unknown("frozen".into()));
    assert_eq!((all[0].conditions.len(), all[0].conditions[0].weight), (1, 33.5));
    assert_eq!(all[0].tags, ["one"]);
    assert!(client.init_user(&NewUser::new("ada")).await.unwrap().groups.is_empty());
}

#[tokio::test]
async fn a_message_of_the_server_is_cut_to_one_line() {
    let long = "line\n\u{1b}[31m".to_owned() + &"x".repeat(5000);
    let failure = names_fail(Says::Json(400, json!({ "message": long }))).await;
    assert!(failure.message().chars().count() < 500);
    assert!(!failure.to_string().contains(['\n', '\u{1b}']));
}

#[tokio::test]
async fn an_endless_response_is_abandoned() {
    let mut endless = b"HTTP/1.1 200 OK\r\n\r\n".to_vec();
    endless.resize(65 * 1024 * 1024, b' ');
    let failure = names_fail(Says::Raw(endless)).await;
    assert_eq!((failure.kind(), failure.message()), (ErrorKind::Protocol, "the answer is too large"));
}

#[tokio::test]
async fn redirects_are_not_followed_with_a_token() {
    let elsewhere = Scripted::new(vec![Says::Json(200, json!([]))]).await;
    let to = format!("location: {}/experiments/names\n", elsewhere.url());
    for status in [301, 302, 303, 307, 308] {
        let server = script([Says::Head(status, to.clone(), json!([]))]).await;
        let client = builder(server.url()).token(SecretString::from(SECRET)).build().unwrap();
        let failure = client.experiment_names().await.unwrap_err();
        assert_eq!(failure.kind(), ErrorKind::Protocol, "{failure}");
        assert!(failure.message().contains("sends elsewhere"), "{failure}");
    }
    assert!(elsewhere.lines().is_empty());
}

#[tokio::test]
async fn up_to_6_2_each_violated_rule_is_reported_in_the_words_of_the_server() {
    let errors = json!([
        { "property": "conditions", "children": [
            { "property": "0", "children": [
                { "property": "assignmentWeight", "constraints": { "isNumber": "assignmentWeight must be a number" } },
                { "property": "order", "constraints": { "isInt": "order must be an integer", "min": "order too small" } },
            ] },
        ] },
        { "property": "tags", "children": [], "constraints": { "isArray": "tags must be an array" } },
        { "property": "odd", "constraints": 7 }, null, "text",
    ]);
    let body =
        json!({ "httpCode": 400, "name": "BadRequestError", "message": "Invalid body", "errors": errors });
    let failure = names_fail(Says::Json(400, body)).await;
    let words =
        "assignmentWeight must be a number; order must be an integer; order too small; tags must be an array";
    assert_eq!(failure.message(), words);
}

#[tokio::test]
async fn a_requested_wait_is_kept_unless_it_is_too_long() {
    let now = std::time::UNIX_EPOCH + Duration::from_secs(784_111_777);
    for (asked, waits) in [
        ("retry-after: 0\n", true),
        ("retry-after: 3600\n", false),
        ("retry-after: Sun, 06 Nov 1994 08:49:27 GMT\n", true),
        ("retry-after: Sun, 06 Nov 1994 09:49:37 GMT\n", false),
        ("retry-after: soon\n", true),
    ] {
        let server = script([Says::Head(503, asked.into(), json!({})), Says::Json(200, json!([]))]).await;
        let patient = builder(server.url()).retries(1).clock(move || now).build().unwrap();
        let answer = patient.experiment_names().await;
        assert_eq!(answer.is_ok(), waits, "{asked}");
        assert_eq!(server.lines().len(), if waits { 3 } else { 2 }, "{asked}");
        if let Err(failure) = answer {
            let told = "the server does not say why (the server asks to wait 3600 seconds)";
            assert_eq!((failure.status(), failure.message()), (Some(503), told));
        }
    }
}

#[tokio::test]
async fn calls_that_were_certainly_not_processed_are_retried() {
    let many = || Says::Json(429, json!({}));
    let server = script([many(), many(), Says::Json(200, json!([{ "id": ID }]))]).await;
    let patient = builder(server.url()).retries(2).build().unwrap();
    patient.delete(ID).await.unwrap();
    assert_eq!(server.lines().len(), 4);
    let server = script([many()]).await;
    assert!(!client(&server).delete(ID).await.unwrap_err().may_have_acted());

    let server = script([]).await;
    let pauses = std::sync::Arc::new(std::sync::atomic::AtomicU32::new(0));
    let count = std::sync::Arc::clone(&pauses);
    let counted = move || f64::from(count.fetch_add(1, std::sync::atomic::Ordering::Relaxed));
    let patient = builder(server.url()).retries(3).jitter(counted).build().unwrap();
    patient.connect().await.unwrap();
    drop(server);
    // A call in flight may still reach the server until its task ends.
    let failure = loop {
        match patient.delete(ID).await {
            Err(failure) if !failure.may_have_acted() => break failure,
            _ => tokio::task::yield_now().await,
        }
    };
    assert_eq!(failure.kind(), ErrorKind::Connect);
    assert!(pauses.load(std::sync::atomic::Ordering::Relaxed) >= 3, "each retry draws its own pause");
}

#[tokio::test]
async fn a_call_ends_at_its_deadline_even_if_its_attempts_may_take_longer() {
    let server = script([Says::Waits]).await;
    let long = Duration::from_secs(86_400);
    let client = builder(server.url()).timeout(long).deadline(Duration::from_secs(60)).build().unwrap();
    client.connect().await.unwrap();
    tokio::time::pause();
    let start = tokio::time::Instant::now();
    let failure = client.experiment_names().await.unwrap_err();
    assert_eq!((failure.kind(), failure.message()), (ErrorKind::Timeout, "no answer within 60s"));
    assert!(failure.may_have_acted());
    assert!(start.elapsed() < Duration::from_secs(61));
}

#[tokio::test]
async fn endless_timeouts_are_allowed() {
    let server = script([Says::Json(200, json!([]))]).await;
    let endless = Duration::MAX;
    let client = builder(server.url()).timeout(endless).connect_timeout(endless).deadline(endless);
    assert_eq!(client.retry_pause(endless).build().unwrap().experiment_names().await.unwrap(), []);
}

fn created(rule: &str) -> Value {
    let conditions = json!([{ "id": "c1", "conditionCode": "control", "assignmentWeight": 100, "order": 1 }]);
    json!({ "id": ID, "name": "x", "context": ["assign-prog"], "postExperimentRule": rule, "conditions": conditions })
}

#[tokio::test]
async fn a_create_whose_rule_could_not_be_set_reports_it_and_can_be_completed() {
    let single = || Says::Json(200, created("continue"));
    let assigned = json!({ "postExperimentRule": "assign", "revertTo": "c1" });
    let failing = [
        vec![single(), Says::Json(503, json!({}))],
        vec![single(), Says::HangsUp],
        vec![Says::Json(500, json!({}))],
        vec![Says::Json(404, json!({ "message": "deleted meanwhile" }))],
    ];
    for answers in failing {
        let rest = [single(), Says::Json(200, assigned.clone())];
        let all = std::iter::once(Says::Json(200, created("continue"))).chain(answers).chain(rest);
        let server = script(all).await;
        let client = client(&server);
        let new = NewExperiment::new("x", "assign-prog").condition("control", 100.0);
        let failure = client.create(&new.post_rule(PostRule::assign("control"))).await.unwrap_err();
        assert_eq!(failure.code(), "E_UPGRADE_UNFINISHED");
        assert!(
            failure.message().starts_with("the experiment was created with the rule continue, but"),
            "{failure}"
        );
        assert!(failure.may_have_acted());
        let rest = failure.unfinished().unwrap();
        assert_eq!(rest.experiment_id, ID);
        let finished = client.update(ID, &rest.missing).await.unwrap();
        assert_eq!(finished.post_rule, PostRule::assign("control"));
    }
}

#[tokio::test]
async fn a_created_experiment_is_returned_even_if_it_cannot_be_read_back() {
    let server = script([Says::Json(200, created("continue")), Says::Json(503, json!({}))]).await;
    let mut new = NewExperiment::new("x", "assign-prog").condition("control", 100.0);
    new.inclusion.users = vec!["ada".into()];
    let made = client(&server).create(&new).await.unwrap();
    assert_eq!((made.id.as_str(), made.inclusion), (ID, new.inclusion));
}

#[tokio::test]
async fn a_new_version_of_the_server_is_known_after_its_health_response() {
    let health =
        |version: &str| Says::Json(200, json!({ "name": "", "version": version, "description": "" }));
    let server = Scripted::new(vec![health("6.2.0"), health("no version"), health("6.5.0")]).await;
    let client = client(&server);
    assert_eq!(client.dialect().await.unwrap(), Dialect::V62);
    assert_eq!(client.connect().await.unwrap_err().kind(), ErrorKind::Protocol);
    assert_eq!(client.dialect().await.unwrap(), Dialect::V62);
    client.health().await.unwrap();
    assert_eq!(client.dialect().await.unwrap(), Dialect::V65);
}

#[tokio::test]
async fn concurrent_first_calls_ask_for_health_only_once() {
    let server = script((0..5).map(|_| Says::Json(200, json!([])))).await;
    let client = client(&server);
    let calls = (0..5).map(|_| client.experiment_names());
    assert!(futures_util::future::join_all(calls).await.iter().all(Result::is_ok));
    assert_eq!(server.lines().iter().filter(|line| *line == "GET /api").count(), 1);
}

proptest! {
    /// For any bytes in place of a response, the result is an error of one line, or an empty list.
    #[test]
    fn no_answer_is_too_strange(status in 200..600_u16, bytes in prop::collection::vec(any::<u8>(), 0..200)) {
        let body = [format!("HTTP/1.1 {status} X\r\ncontent-length: {}\r\n\r\n", bytes.len()).into_bytes(), bytes].concat();
        tokio::runtime::Runtime::new().unwrap().block_on(async {
            let server = script([Says::Raw(body)]).await;
            match client(&server).experiment_names().await {
                Ok(names) => assert!(names.is_empty()),
                Err(failure) => assert!(!failure.to_string().contains(['\n', '\r', '\0'])),
            }
        });
    }

    #[test]
    fn no_json_is_too_strange(status in 200..600_u16, json in any_json()) {
        tokio::runtime::Runtime::new().unwrap().block_on(async {
            let server = script((0..12).map(|_| Says::Json(status, json.clone()))).await;
            let client = client(&server);
            let _ = client.experiment(ID).await;
            let _ = client.enrollment(ID).await;
            let _ = client.assign("ada", "x").await;
            let _ = client.global_exclusion("x").await;
            let _ = client.context_metadata().await;
            let _ = client.page(&PageQuery::new(5)).await;
            let _ = client.update(ID, &lists()).await;
        });
    }
}

fn lists() -> ExperimentPatch {
    let members = Members { users: vec!["ada".into()], groups: Vec::new() };
    ExperimentPatch { inclusion: Some(members), name: Some("x".into()), ..Default::default() }
}

/// Generates JSON with the known fields and arbitrary values.
fn any_json() -> impl Strategy<Value = Value> {
    let leaf = prop_oneof![
        Just(Value::Null),
        any::<bool>().prop_map(Value::from),
        any::<i64>().prop_map(Value::from),
        "[a-z]{0,3}".prop_map(Value::from),
        Just(Value::from(ID)),
    ];
    let field = prop::sample::select(vec![
        "id",
        "name",
        "context",
        "state",
        "conditions",
        "partitions",
        "conditionPayloads",
        "parentCondition",
        "experimentSegmentInclusion",
        "segment",
        "individualForSegment",
        "groupForSegment",
        "subSegments",
        "message",
        "errors",
        "constraints",
        "nodes",
        "total",
        "revertTo",
        "postExperimentRule",
        "contextMetadata",
    ]);
    leaf.prop_recursive(5, 48, 6, move |inner| {
        prop_oneof![
            prop::collection::vec(inner.clone(), 0..4).prop_map(Value::from),
            prop::collection::vec((field.clone(), inner), 0..8).prop_map(|fields| fields
                .into_iter()
                .map(|(name, value)| (name.to_owned(), value))
                .collect::<Value>()),
        ]
    })
}
