//! Further routes of students' applications: those of older applications, aliases, logged metrics and
//! queries over them.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]

use crate::recording;
use crate::stage;

use std::collections::HashMap;

use recording::{Answered, http, send};
use serde_json::{Value, json};
use stage::{SITE, Stage, TARGET, plain};

/// A stage with known students and calls of their applications.
struct Class {
    stage: Stage,
    http: reqwest::Client,
}

impl Class {
    async fn of(students: &[&str]) -> Self {
        let class = Self { stage: Stage::new().await, http: http() };
        for student in students {
            assert_eq!(class.says("POST", "init", student, json!({})).await.status, 200);
        }
        class
    }

    async fn send(&self, method: &str, path: &str, student: Option<&str>, body: &Value) -> Answered {
        let header = student.map(|student| ("User-Id".to_owned(), student.to_owned()));
        let headers: HashMap<_, _> = header.into_iter().collect();
        send(&self.http, self.stage.server.url(), method, path, &headers, body).await
    }

    /// Makes a call of a newer application for a student.
    async fn says(&self, method: &str, call: &str, student: &str, body: Value) -> Answered {
        self.send(method, &format!("/api/v6/{call}"), Some(student), &body).await
    }

    /// Makes a call of an older application.
    async fn said(&self, method: &str, call: &str, body: Value) -> Answered {
        self.send(method, &format!("/api/v5/{call}"), None, &body).await
    }

    async fn ask(&self, method: &str, path: &str, body: Value) -> Answered {
        self.send(method, &format!("/api/{path}"), None, &body).await
    }

    /// Starts an experiment with these queries over metrics.
    async fn asking(&self, unit: &str, queries: Value) -> Value {
        let mut body = recording::recording("v65/create_simple").request;
        body["queries"] = queries;
        body["assignmentUnit"] = json!(unit);
        if unit == "within-subjects" {
            body["conditionOrder"] = json!("ordered round robin");
        }
        let made = self.ask("POST", "experiments", body).await;
        assert_eq!(made.status, 200, "{}", made.body);
        let moved = json!({ "experimentId": made.body["id"], "state": "running" });
        assert_eq!(self.ask("POST", "experiments/state", moved).await.status, 200);
        made.body
    }

    async fn visit(&self, student: &str, made: &Value, condition: Option<&str>, uniquifier: Option<&str>) {
        let point = &made["partitions"][0];
        let data = json!({
            "site": point["site"],
            "target": point["target"],
            "assignedCondition": { "conditionCode": condition, "experimentId": made["id"] },
        });
        let mut body = json!({ "data": data });
        if let Some(uniquifier) = uniquifier {
            body["uniquifier"] = json!(uniquifier);
        }
        let marked = self.says("POST", "mark", student, body).await;
        assert_eq!(marked.status, 200, "{}", marked.body);
    }

    async fn code(&self, student: &str) -> String {
        let told = self.says("POST", "assign", student, json!({ "context": "assign-prog" })).await.body;
        told[0]["assignedCondition"][0]["conditionCode"].as_str().unwrap().to_owned()
    }
}

fn query(id: &str, metric: &str, operation: Value, measure: &str) -> Value {
    json!({
        "id": id,
        "name": format!("{metric} {measure}"),
        "query": operation,
        "metric": { "key": metric },
        "repeatedMeasure": measure,
    })
}

fn logged(time: &str, attributes: Value) -> Value {
    json!({ "timestamp": time, "metrics": { "attributes": attributes } })
}

const EARLY: &str = "2026-11-21T00:00:00.000Z";
const LATE: &str = "2026-11-21T01:00:00.000Z";

/// Returns status, text and type of an error response.
fn why(answer: &Answered) -> (u16, &str, &str) {
    let word = |field: &str| answer.body[field].as_str().unwrap_or_default();
    (answer.status, word("message"), word("type"))
}

const WRONG: &str = "Parameter not in the correct format";
const BODY: &str = "Invalid body, check 'errors' property for more info.";

#[tokio::test]
async fn older_and_newer_applications_share_students() {
    let class = Class::of(&["ada"]).await;
    class.stage.running(&plain("both")).await;
    let newer = class.says("POST", "assign", "ada", json!({ "context": "assign-prog" })).await;
    let older = class.said("POST", "assign", json!({ "userId": "ada", "context": "assign-prog" })).await;
    assert_eq!((newer.status, older.status), (200, 200));
    assert_eq!(newer.body, older.body);
    let data = json!({ "site": SITE, "target": TARGET });
    let older = class.said("POST", "mark", json!({ "userId": "ada", "data": data })).await;
    let newer = class.says("POST", "mark", "ada", json!({ "data": data })).await;
    assert_eq!(newer.body["id"], older.body["id"], "the first visit is the one that is kept");
    let moved = json!({ "id": "ada", "workingGroup": { "classId": "c1" } });
    assert_eq!(class.said("PATCH", "workinggroup", moved.clone()).await.body, moved);
    let grouped = json!({ "id": "ada", "group": { "classId": ["c1", "c2"] } });
    assert_eq!(class.said("PATCH", "groupmembership", grouped.clone()).await.body, grouped);
    let again = class.says("POST", "init", "ada", json!({})).await.body;
    assert_eq!((&again["group"], &again["workingGroup"]), (&grouped["group"], &moved["workingGroup"]));
}

#[tokio::test]
async fn an_older_application_gets_validation_errors_before_unknown_students() {
    let class = Class::of(&[]).await;
    for (method, call, who, rest) in [
        ("POST", "assign", "userId", json!({ "context": "assign-prog" })),
        ("POST", "mark", "userId", json!({ "data": { "site": SITE, "target": TARGET } })),
        ("POST", "log", "userId", json!({ "value": [logged(EARLY, json!({}))] })),
        ("POST", "featureflag", "userId", json!({ "context": "assign-prog" })),
        ("PATCH", "useraliases", "userId", json!({ "aliases": ["eve"] })),
        ("PATCH", "groupmembership", "id", json!({ "group": { "classId": ["c1"] } })),
        ("PATCH", "workinggroup", "id", json!({ "workingGroup": { "classId": "c1" } })),
    ] {
        let nameless = class.said(method, call, rest.clone()).await;
        assert_eq!(why(&nameless), (400, BODY, WRONG), "{call}");
        let mut named = rest;
        named[who] = json!("nobody");
        let unknown = class.said(method, call, named).await;
        assert_eq!(why(&unknown), (404, "Experiment User not found: nobody", "Query Failed"), "{call}");
    }
    assert_eq!(class.said("POST", "init", json!({})).await.status, 400);
}

#[tokio::test]
async fn each_alias_names_the_same_student() {
    let class = Class::of(&["ada", "bob"]).await;
    class.stage.running(&plain("names")).await;
    let named = class.says("PATCH", "useraliases", "ada", json!({ "aliases": ["eve", "eve-2"] })).await;
    assert_eq!((named.status, named.body), (200, json!({ "userId": "ada", "aliases": ["eve", "eve-2"] })));
    assert_eq!(class.code("eve").await, class.code("ada").await);
    let more =
        class.said("PATCH", "useraliases", json!({ "userId": "ada", "aliases": ["eve-3", "eve"] })).await;
    assert_eq!(more.body["aliases"], json!(["eve", "eve-3"]), "those he had come first");
    let known = class.says("POST", "init", "eve", json!({ "group": { "classId": ["c9"] } })).await;
    assert_eq!(known.body["id"], "ada");

    let taken = class.says("PATCH", "useraliases", "bob", json!({ "aliases": ["eve"] })).await;
    let text = taken.body["message"].as_str().unwrap();
    assert_eq!((taken.status, taken.body["type"].as_str()), (500, Some("Query Failed")));
    assert!(text.starts_with("Users already associated with other users"), "{text}");
    let root = class.says("PATCH", "useraliases", "bob", json!({ "aliases": ["ada"] })).await;
    let text = root.body["message"].as_str().unwrap();
    assert!(text.contains("are root user and should not be converted to an alias of bob"), "{text}");
    let bad = class.says("PATCH", "useraliases", "bob", json!({ "aliases": "eve" })).await;
    assert_eq!(why(&bad), (400, BODY, WRONG));
}

#[tokio::test]
async fn values_that_cannot_be_stored_are_refused_with_the_error_of_the_database() {
    let class = Class::of(&["ada"]).await;
    let point = json!({ "site": SITE, "target": "a\0b" });
    let groups = json!({ "classId": ["a\0b"] });
    let told =
        json!({ "context": "assign-prog", "groupsForSession": groups, "includeStoredUserGroups": true });
    let working = json!({ "workingGroup": { "classId": "a\0b" } });
    let value = json!([logged(EARLY, json!({ "totalTimeSeconds": "a\0b" }))]);
    let calls = [
        ("POST", "init", json!({ "group": groups })),
        ("PATCH", "groupmembership", json!({ "group": groups })),
        ("PATCH", "workinggroup", working),
        ("PATCH", "useraliases", json!({ "aliases": ["free", "a\0b"] })),
        ("POST", "assign", json!({ "context": "assign-prog", "more": "a\0b" })),
        ("POST", "featureflag", told),
        ("POST", "mark", json!({ "data": point })),
        ("POST", "log", json!({ "value": value })),
        ("POST", "bloblog", json!({ "value": value })),
    ];
    let refused = "invalid byte sequence for encoding \"UTF8\": 0x00";
    for (method, call, body) in calls {
        let mut older = body.clone();
        older["id"] = json!("ada");
        older["userId"] = json!("ada");
        let said = class.said(method, call, older).await;
        // The route `bloblog` wraps every error.
        assert_eq!(said.status, if call == "bloblog" { 404 } else { 500 }, "v5 {call}: {}", said.body);
        assert!(said.body["message"].as_str().unwrap().contains("invalid byte sequence"), "v5 {call}");
        if call != "bloblog" {
            assert_eq!(said.body["message"], refused, "v5 {call}");
            let says = class.says(method, call, "ada", body).await;
            assert_eq!((says.status, &says.body["message"]), (500, &json!(refused)), "{call}: {}", says.body);
        }
    }
    let many = json!({ "context": "assign-prog", "site": SITE, "target": "a\0b", "userIds": ["ada"] });
    assert_eq!(class.ask("POST", "batch-assign", many).await.status, 500);
    assert_eq!(
        class.says("POST", "init", "free", json!({})).await.body["id"],
        "free",
        "the id was not stored"
    );
}

#[tokio::test]
async fn many_aliases_are_returned_once_each_and_many_groups_are_accepted() {
    const MANY: usize = 200_000;
    let class = Class::of(&["ada"]).await;
    let numbers = || (0..MANY).map(|n| format!("n{n}"));
    let twice: Vec<String> = numbers().chain(["n0".to_owned()]).collect();
    let named = class.says("PATCH", "useraliases", "ada", json!({ "aliases": twice })).await;
    assert_eq!((named.status, &named.body["aliases"]), (200, &numbers().collect()));
    let told = json!({
        "context": "assign-prog", "groupsForSession": { "classId": twice }, "includeStoredUserGroups": true,
    });
    assert_eq!(class.says("POST", "featureflag", "ada", told).await.status, 200);
}

#[tokio::test]
async fn flags_are_requested_with_stored_or_given_groups() {
    let class = Class::of(&["ada"]).await;
    let ask = |student, body| class.says("POST", "featureflag", student, body);
    let told = json!({ "context": "assign-prog", "groupsForSession": {}, "includeStoredUserGroups": false });
    let half = json!({ "context": "assign-prog", "groupsForSession": {} });
    assert_eq!(ask("ada", json!({ "context": "assign-prog" })).await.body, json!([]));
    assert_eq!(ask("nobody", json!({ "context": "assign-prog" })).await.status, 404);
    let unknown = ask("nobody", told).await;
    assert_eq!((unknown.status, unknown.body), (200, json!([])));
    assert_eq!(why(&ask("ada", half).await), (400, BODY, WRONG));
}

#[tokio::test]
async fn rewards_have_no_effect() {
    let class = Class::of(&["ada"]).await;
    let reward = json!({ "rewardValue": "SUCCESS", "experimentId": "any" });
    let refused = class.says("POST", "reward", "ada", reward).await;
    let text = "Failed to send reward: mooclet is not currently enabled on backend.";
    assert_eq!(why(&refused), (400, text, WRONG));
    let bad =
        class.says("POST", "reward", "ada", json!({ "rewardValue": "MAYBE", "experimentId": "any" })).await;
    assert_eq!(why(&bad), (400, BODY, WRONG));
    let unknown = class.says("POST", "reward", "nobody", json!({})).await;
    assert_eq!(why(&unknown).0, 404);
}

const SUM: &str = "11111111-1111-4111-8111-111111111111";
const MEAN: &str = "22222222-2222-4222-8222-222222222222";
const FIRST: &str = "33333333-3333-4333-8333-333333333333";

async fn analysed(class: &Class, made: &Value, at: usize) -> HashMap<String, (Value, Value)> {
    let id = &made["queries"][at]["id"];
    let told = class.ask("POST", "query/analyse", json!({ "queryIds": [id] })).await;
    assert_eq!(told.status, 200, "{}", told.body);
    assert_eq!(told.body[0]["id"], *id);
    let effect = told.body[0]["mainEffect"].as_array().unwrap().iter();
    let entry = |entry: &Value| {
        let condition = entry["conditionId"].as_str().unwrap().to_owned();
        (condition, (entry["result"].clone(), entry["participantsLogged"].clone()))
    };
    effect.map(entry).collect()
}

fn condition_id(made: &Value, code: &str) -> String {
    let all = made["conditions"].as_array().unwrap();
    let found = all.iter().find(|condition| condition["conditionCode"] == code).unwrap();
    found["id"].as_str().unwrap().to_owned()
}

#[tokio::test]
async fn logs_of_students_are_summed_by_condition() {
    let students = ["s1", "s2", "s3", "s4", "s5", "s6"];
    let class = Class::of(&students).await;
    let sum = json!({ "operationType": "sum" });
    let queries = json!([
        query(SUM, "totalTimeSeconds", sum.clone(), "MOST RECENT"),
        query(MEAN, "totalTimeSeconds", json!({ "operationType": "avg" }), "MEAN"),
        query(FIRST, "nobodyKnowsIt", sum, "EARLIEST"),
    ]);
    let made = class.asking("individual", queries).await;
    assert_eq!(made["queries"].as_array().unwrap().len(), 2, "what asks for an unknown metric is dropped");
    let mut sums: HashMap<String, (u64, u64)> = HashMap::new();
    for (at, student) in students.into_iter().enumerate() {
        class.visit(student, &made, None, None).await;
        let code = class.code(student).await;
        let seconds = 10 * (at as u64 + 1);
        let entry = sums.entry(condition_id(&made, &code)).or_default();
        *entry = (entry.0 + seconds, entry.1 + 1);
        let first = json!({ "value": [logged(EARLY, json!({ "totalTimeSeconds": 1, "unasked": 2 }))] });
        let told = class.says("POST", "log", student, first).await;
        assert_eq!((told.status, told.body.as_array().unwrap().len()), (200, 1));
        assert_eq!(told.body[0]["data"], json!({ "totalTimeSeconds": 1 }), "only what is asked for is kept");
        let later =
            json!({ "userId": student, "value": [logged(LATE, json!({ "totalTimeSeconds": seconds }))] });
        assert_eq!(class.said("POST", "log", later).await.body[0]["data"]["totalTimeSeconds"], seconds);
    }
    let by_sum = analysed(&class, &made, 0).await;
    let by_mean = analysed(&class, &made, 1).await;
    for code in ["control", "variant"] {
        let id = condition_id(&made, code);
        let Some((sum, users)) = sums.get(&id) else {
            assert_eq!(by_sum[&id], (json!("0"), json!(0)));
            continue;
        };
        assert_eq!(by_sum[&id], (json!(sum.to_string()), json!(users.to_string())));
        let mean: f64 = by_mean[&id].0.as_str().unwrap().parse().unwrap();
        assert!((mean - *sum as f64 / *users as f64).abs() < 1e-9, "{mean}");
    }
}

#[tokio::test]
async fn an_older_value_does_not_replace_a_newer_one() {
    let class = Class::of(&["ada"]).await;
    let asks = query(SUM, "totalTimeSeconds", json!({ "operationType": "max" }), "MOST RECENT");
    let made = class.asking("individual", json!([asks])).await;
    class.visit("ada", &made, None, None).await;
    for (time, seconds) in [(LATE, 7), (EARLY, 9)] {
        let body = json!({ "value": [logged(time, json!({ "totalTimeSeconds": seconds }))] });
        assert_eq!(class.says("POST", "log", "ada", body).await.status, 200);
    }
    let id = condition_id(&made, &class.code("ada").await);
    assert_eq!(analysed(&class, &made, 0).await[&id].0, "7");
}

#[tokio::test]
async fn within_subjects_a_value_belongs_to_the_visit_with_its_uniquifier() {
    let class = Class::of(&["ada"]).await;
    let key = "masteryWorkspace@__@calculating_area_various_figures@__@timeSeconds";
    let asks = query(SUM, key, json!({ "operationType": "sum" }), "MEAN");
    let made = class.asking("within-subjects", json!([asks])).await;
    for (uniquifier, condition, seconds) in [("a", "control", 4), ("b", "variant", 9), ("c", "control", 6)] {
        class.visit("ada", &made, Some(condition), Some(uniquifier)).await;
        let group = json!({
            "groupClass": "masteryWorkspace",
            "groupKey": "calculating_area_various_figures",
            "groupUniquifier": uniquifier,
            "attributes": { "timeSeconds": seconds },
        });
        let entry = json!({ "timestamp": EARLY, "metrics": { "groupedMetrics": [group] } });
        let told = class.says("POST", "log", "ada", json!({ "value": [entry] })).await;
        assert_eq!(told.body[0]["uniquifier"], uniquifier, "{}", told.body);
    }
    let told = analysed(&class, &made, 0).await;
    let of = |code| told[&condition_id(&made, code)].0.as_str().unwrap().parse::<f64>().unwrap();
    assert_eq!((of("control"), of("variant")), (5.0, 9.0));
}

#[tokio::test]
async fn a_blob_is_logged_whatever_its_content_type() {
    let class = Class::of(&["ada"]).await;
    let asks = query(SUM, "totalTimeSeconds", json!({ "operationType": "sum" }), "EARLIEST");
    class.asking("individual", json!([asks])).await;
    let url = format!("{}/v5/bloblog", class.stage.server.url());
    let blob = |student: &str| {
        let body = json!({ "userId": student, "value": [logged(EARLY, json!({ "totalTimeSeconds": 3 }))] });
        class.http.post(&url).header("content-type", "text/plain").body(body.to_string()).send()
    };
    let told: Value = blob("ada").await.unwrap().json().await.unwrap();
    assert_eq!(told[0]["data"], json!({ "totalTimeSeconds": 3 }));
    let unknown = blob("nobody").await.unwrap();
    assert_eq!(unknown.status().as_u16(), 404);
    let unknown: Value = unknown.json().await.unwrap();
    assert_eq!(unknown["type"], "Experiment user not defined");
    let inner: Value = serde_json::from_str(unknown["message"].as_str().unwrap()).unwrap();
    assert_eq!(inner["message"], "Experiment User not found: nobody");
}

#[tokio::test]
async fn metrics_are_declared_while_the_filter_is_on_and_shown_as_a_tree() {
    let class = Class::of(&[]).await;
    let quiz = json!({
        "groupClass": "quiz",
        "allowedKeys": ["one", "two"],
        "attributes": [{ "metric": "score", "datatype": "continuous" },
                       { "metric": "grade", "datatype": "categorical", "allowedValues": ["A", "B"] }],
    });
    let body = json!({ "metricUnit": [quiz], "context": ["assign-prog"] });
    let unfiltered = json!({ "toCheckAuth": false, "toFilterMetric": false });
    assert_eq!(class.ask("POST", "setting", unfiltered).await.status, 200);
    let free = class.ask("POST", "metric/save", body.clone()).await;
    assert_eq!(why(&free), (500, "Metrics filter not enabled", "Invalid token"));
    let filtered = json!({ "toCheckAuth": false, "toFilterMetric": true });
    assert_eq!(class.ask("POST", "setting", filtered).await.status, 200);
    let saved = class.ask("POST", "metric/save", body).await;
    assert_eq!(saved.status, 200);
    let names = |node: &Value| -> Vec<String> {
        let children = node["children"].as_array().unwrap().iter();
        children.map(|child| child["key"].as_str().unwrap().to_owned()).collect()
    };
    assert_eq!(
        (saved.body[0]["key"].as_str(), names(&saved.body[0])),
        (Some("quiz"), vec!["one".into(), "two".into()])
    );
    assert_eq!(names(&saved.body[0]["children"][1]), ["score", "grade"]);
    assert_eq!(class.ask("GET", "metric", Value::Null).await.body.as_array().unwrap().len(), 3);
    for (asked, told) in [("elsewhere", "elsewhere"), ("%2525", "%25"), ("%25+f", "%+f")] {
        let other = class.ask("GET", &format!("metric/{asked}"), Value::Null).await;
        let expected = format!("Metrics context not found: {told}");
        assert_eq!(why(&other), (404, expected.as_str(), "Query Failed"));
    }

    let left = class.ask("DELETE", "metric/quiz@__@one", Value::Null).await;
    assert_eq!((left.status, names(&left.body[0])), (200, vec!["two".to_owned()]));
    let gone = class.ask("DELETE", "metric/quiz@__@one", Value::Null).await;
    assert_eq!(why(&gone).0, 404);
    for bad in [json!({}), json!({ "metricUnit": [{ "metric": "" }], "context": ["assign-prog"] })] {
        assert_eq!(why(&class.ask("POST", "metric/save", bad).await), (400, BODY, WRONG));
    }
}

/// Returns a key of that many parts.
fn deep(parts: usize) -> String {
    vec!["p"; parts].join("@__@")
}

#[tokio::test]
async fn keys_with_too_many_parts_are_refused() {
    let class = Class::of(&["ada"]).await;
    let filtered = json!({ "toCheckAuth": false, "toFilterMetric": true });
    assert_eq!(class.ask("POST", "setting", filtered).await.status, 200);
    for (parts, status) in [(200_000, 500), (51, 500), (50, 200)] {
        let unit = json!({ "metric": deep(parts), "datatype": "continuous" });
        let body = json!({ "metricUnit": [unit], "context": ["assign-prog"] });
        assert_eq!(class.ask("POST", "metric/save", body).await.status, status, "{parts}");
    }
    let asks = query(SUM, &deep(50), json!({ "operationType": "sum" }), "EARLIEST");
    class.asking("individual", json!([asks])).await;
    let entry = logged(EARLY, json!({ deep(50): 3 }));
    assert_eq!(class.says("POST", "log", "ada", json!({ "value": [entry] })).await.status, 200);
    assert_eq!(class.ask("GET", "metric", Value::Null).await.status, 200);
}

#[tokio::test]
async fn a_declaration_of_too_many_metrics_is_refused() {
    let class = Class::of(&[]).await;
    let filtered = json!({ "toCheckAuth": false, "toFilterMetric": true });
    assert_eq!(class.ask("POST", "setting", filtered).await.status, 200);
    let names: Vec<String> = (0..100).map(|n| n.to_string()).collect();
    let metric = json!({ "metric": "score", "datatype": "continuous" });
    let nothing = json!({ "groupClass": "quiz", "allowedKeys": names, "attributes": [] });
    for mut unit in [metric, nothing] {
        for _ in 0..10 {
            unit = json!({ "groupClass": "quiz", "allowedKeys": names, "attributes": [unit] });
        }
        let body = json!({ "metricUnit": [unit], "context": ["assign-prog"] });
        assert_eq!(class.ask("POST", "metric/save", body).await.status, 500);
    }
    assert_eq!(class.ask("GET", "metric", Value::Null).await.body.as_array().unwrap().len(), 2);
}

#[tokio::test]
async fn unknown_and_invalid_queries_are_answered_like_the_database() {
    let class = Class::of(&[]).await;
    let unknown = class.ask("POST", "query/analyse", json!({ "queryIds": [SUM] })).await;
    assert_eq!((unknown.status, unknown.body), (200, json!([{ "id": SUM, "interactionEffect": null }])));
    let none = class.ask("POST", "query/analyse", json!({ "queryIds": ["x"] })).await;
    assert_eq!(why(&none).0, 500);
    assert_eq!(why(&class.ask("POST", "query/analyse", json!({})).await), (400, BODY, WRONG));
}

#[tokio::test]
async fn scheduler_and_demo_mode_are_unavailable() {
    let class = Class::of(&["ada"]).await;
    let start = class.ask("POST", "scheduledJobs/start", json!({ "id": "any" })).await;
    assert_eq!(why(&start), (500, "Token is not present in request header", ""));
    let headers = HashMap::from([("Authorization".to_owned(), "Bearer x".to_owned())]);
    let url = class.stage.server.url();
    let forged =
        send(&class.http, url, "POST", "/api/scheduledJobs/end", &headers, &json!({ "id": "any" })).await;
    assert_eq!(why(&forged), (500, "jwt malformed", ""));
    let kept = class.said("DELETE", "clearDB", Value::Null).await;
    assert_eq!((kept.status, kept.body), (200, json!("DEMO mode is disabled. You cannot clear DB.")));
    assert_eq!(class.says("DELETE", "clearDB", "ada", Value::Null).await.status, 200);
    assert_eq!(class.says("DELETE", "clearDB", "nobody", Value::Null).await.status, 404);
}
