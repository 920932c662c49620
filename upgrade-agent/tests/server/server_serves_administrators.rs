//! Routes of administrators: preview users, settings, accounts, audit logs.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]

use crate::recording;
use crate::stage;

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, SystemTime};

use recording::{Ids, recording};
use serde_json::{Value, json};
use stage::{SITE, Stage, TARGET, plain};
use upgrade_agent::client::{ExperimentState, UpgradeClient};
use upgrade_agent::server::EmbeddedServer;

const UNKNOWN_ID: &str = "00000000-0000-4000-8000-000000000000";

impl Stage {
    async fn status(&self, method: &str, path: &str, body: &Value) -> u16 {
        self.raw(method, path, body).await.status
    }
}

#[tokio::test]
async fn only_preview_users_see_an_experiment_before_its_start() {
    let stage = Stage::new().await;
    let made = stage.client.create(&plain("soon")).await.unwrap();
    stage.moved(&made, ExperimentState::Preview).await;
    let user = stage.ok("POST", "/api/previewusers", &json!({ "id": "pv" })).await;
    assert_eq!(user["versionNumber"], 1);
    for student in ["pv", "ada"] {
        stage.student(student).await;
    }
    assert!(stage.code("pv").await.is_some());
    assert_eq!(stage.code("ada").await, None);
    stage.moved(&made, ExperimentState::Enrolling).await;
    stage.visit("pv").await;
    assert_eq!(stage.client.enrollment(&made.id).await.unwrap().users, 0);
    assert_eq!(stage.ok("DELETE", "/api/previewusers/pv", &Value::Null).await[0]["id"], "pv");
    assert_eq!(stage.ok("DELETE", "/api/previewusers/pv", &Value::Null).await, json!([]));
    stage.visit("pv").await;
    assert_eq!(stage.client.enrollment(&made.id).await.unwrap().users, 1);
}

#[tokio::test]
async fn a_condition_chosen_for_a_preview_user_is_stored_and_has_no_effect() {
    let stage = Stage::new().await;
    let made = stage.running(&plain("chosen")).await;
    for n in 0..12 {
        let student = format!("pv-{n}");
        stage.ok("POST", "/api/previewusers", &json!({ "id": student })).await;
        stage.student(&student).await;
        let drawn = stage.code(&student).await.unwrap();
        let body = json!({ "id": student, "assignments": [
            { "experiment": { "id": made.id }, "experimentCondition": { "id": made.conditions[0].id } },
        ]});
        let assigned = stage.ok("POST", "/api/previewusers/assign", &body).await;
        assert_eq!(assigned["assignments"][0]["experimentCondition"]["conditionCode"], "control");
        assert_eq!(stage.code(&student).await, Some(drawn));
    }
    let page = stage.ok("POST", "/api/previewusers/paginated", &json!({ "skip": 10, "take": 5 })).await;
    assert_eq!((&page["total"], page["nodes"].as_array().unwrap().len()), (&json!(12), 2));
    let path = "/api/previewusers/pv-0";
    assert_eq!(stage.ok("GET", path, &Value::Null).await["assignments"][0]["experiment"]["name"], "chosen");
    stage.ok("POST", "/api/previewusers/assign", &json!({ "id": "pv-0", "assignments": [] })).await;
    assert!(stage.ok("GET", path, &Value::Null).await.get("assignments").is_none());
    let unknown = json!({ "id": "nobody", "assignments": [
        { "experiment": { "id": made.id }, "experimentCondition": { "id": made.conditions[0].id } },
    ]});
    assert_eq!(stage.status("POST", "/api/previewusers/assign", &unknown).await, 500);
}

#[tokio::test]
async fn assignments_of_preview_users_are_shown_as_recorded() {
    let stage = Stage::new().await;
    let made = stage.client.create(&plain("prev")).await.unwrap();
    stage.ok("POST", "/api/previewusers", &json!({ "id": "pv1" })).await;
    let recorded = recording("v65/previewuser_assign");
    let mut body = recorded.request;
    body["assignments"][0]["experiment"]["id"] = json!(made.id);
    body["assignments"][0]["experimentCondition"]["id"] = json!(made.conditions[0].id);
    let answer = stage.ok(&recorded.method, &recorded.path, &body).await;
    assert_eq!(Ids::default().compare(&recorded.response, &answer), Ok(()));
}

#[tokio::test]
async fn settings_are_kept_and_count_their_changes() {
    let stage = Stage::new().await;
    let first = stage.ok("GET", "/api/setting", &Value::Null).await;
    assert_eq!((&first["id"], &first["toCheckAuth"]), (&json!(1), &json!(false)));
    assert_eq!(first["toFilterMetric"], true, "the original switches it on at each start");
    let same = json!({ "toCheckAuth": false });
    assert_eq!(stage.ok("POST", "/api/setting", &same).await["versionNumber"], 1);
    let other = json!({ "toCheckAuth": false, "toFilterMetric": false });
    let changed = stage.ok("POST", "/api/setting", &other).await;
    assert_eq!((&changed["versionNumber"], &changed["toFilterMetric"]), (&json!(2), &json!(false)));
    assert_eq!(stage.status("POST", "/api/setting", &json!({})).await, 400);
}

#[tokio::test]
async fn a_login_creates_an_account_without_a_role_and_administrators_change_it() {
    let stage = Stage::new().await;
    let login = json!({ "email": "ada@example.com", "firstName": "Ada", "role": "admin" });
    assert_eq!(stage.ok("POST", "/api/login/user", &login).await["role"], "reader");
    let details = json!({ "email": "ada@example.com", "firstName": "Ada", "role": "creator" });
    stage.ok("POST", "/api/users/details", &details).await;
    let one = stage.ok("GET", "/api/users/ada@example.com", &Value::Null).await;
    assert_eq!((&one[0]["role"], &one[0]["firstName"]), (&json!("creator"), &json!("Ada")));
    let search = json!({ "skip": 0, "take": 9, "searchParams": { "key": "role", "string": "CREA" } });
    let page = stage.ok("POST", "/api/users/paginated", &search).await;
    assert_eq!((&page["total"], &page["nodes"][0]["email"]), (&json!(1), &json!("ada@example.com")));
    assert_eq!(stage.status("POST", "/api/login/user", &json!({ "email": "no address" })).await, 400);
    stage.ok("DELETE", "/api/users/ada@example.com", &Value::Null).await;
    assert_eq!(stage.ok("GET", "/api/users/ada@example.com", &Value::Null).await, json!([]));
}

#[tokio::test]
async fn the_audit_log_is_returned_newest_first() {
    let stage = Stage::new().await;
    let made = stage.running(&plain("watched")).await;
    let list = json!({
        "name": "few", "context": "assign-prog", "type": "private",
        "userIds": ["ada"], "groups": [], "subSegmentIds": [],
    });
    let body = json!({ "experimentId": made.id, "list": list });
    stage.ok("POST", "/api/experiments/inclusionList", &body).await;
    stage.client.delete(&made.id).await.unwrap();
    let page = stage.ok("POST", "/api/audit", &json!({ "skip": 0, "take": 9 })).await;
    let kinds: Vec<_> = page["nodes"].as_array().unwrap().iter().map(|deed| &deed["type"]).collect();
    let expected = ["experimentDeleted", "experimentUpdated", "experimentStateChanged", "experimentCreated"];
    assert_eq!(kinds, expected);
    assert_eq!(page["nodes"][1]["data"]["list"]["operation"], "created");
    assert_eq!(page["nodes"][2]["data"]["newState"], "running");
    let moved = json!({ "skip": 0, "take": 9, "filter": "experimentStateChanged" });
    assert_eq!(stage.ok("POST", "/api/audit", &moved).await["total"], 1);
    let other = json!({ "skip": 0, "take": 9, "experimentId": UNKNOWN_ID });
    assert_eq!(stage.ok("POST", "/api/audit", &other).await["total"], 0);
    assert_eq!(
        stage.status("POST", "/api/audit", &json!({ "skip": 0, "take": 9, "filter": "x" })).await,
        400
    );
    let errors = stage.ok("POST", "/api/error", &json!({ "skip": 0, "take": 9 })).await;
    assert_eq!(errors, json!({ "total": 0, "nodes": [], "skip": 0, "take": 9 }));
}

fn file(name: &str, content: &Value) -> Value {
    json!({ "fileName": name, "fileContent": content.to_string() })
}

#[tokio::test]
async fn an_exported_file_can_be_imported_as_a_new_one() {
    let stage = Stage::new().await;
    let mut new = plain("travels");
    new.exclusion.users = vec!["bob".into()];
    let made = stage.running(&new).await;
    stage.client.create(&plain("stays")).await.unwrap();
    let all = stage.ok("GET", "/api/experiments/export/all", &Value::Null).await;
    assert_eq!(all.as_array().unwrap().len(), 2);
    let one = stage.ok("GET", &format!("/api/experiments/export?ids={}", made.id), &Value::Null).await;
    assert_eq!((one.as_array().unwrap().len(), &one[0]["state"]), (1, &json!("enrolling")));
    let files = json!([file("it.json", &one[0])]);
    let judged = json!([{ "fileName": "it.json", "error": null, "compatibilityType": "compatible" }]);
    assert_eq!(stage.ok("POST", "/api/experiments/validation", &files).await, judged);
    assert_eq!(stage.client.experiments().await.unwrap().len(), 2);
    assert_eq!(stage.ok("POST", "/api/experiments/import", &files).await, judged);
    let experiments = stage.client.experiments().await.unwrap();
    let taken = experiments.iter().find(|e| e.name == "travels" && e.id != made.id).unwrap();
    assert_eq!(taken.state, ExperimentState::Inactive);
    assert_eq!(taken.exclusion.users, ["bob"]);
    assert_ne!(taken.conditions[0].id, made.conditions[0].id);
}

#[tokio::test]
async fn invalid_files_are_reported_and_skipped() {
    let stage = Stage::new().await;
    let made = stage.client.create(&plain("old")).await.unwrap();
    let exported = stage.ok("GET", &format!("/api/experiments/export?ids={}", made.id), &Value::Null).await;
    let with = |field: &str, value: Value| {
        let mut changed = exported[0].clone();
        changed[field] = value;
        changed
    };
    let cases = [
        (
            with("backendVersion", json!("6.2.0")),
            "warning",
            "Warning: this experiment file is incompatible(older)",
        ),
        (
            with("backendVersion", json!("6.10.0")),
            "warning",
            "Warning: this experiment file is incompatible(newer)",
        ),
        (with("context", json!(["nope"])), "incompatible", "The app context \"nope\" is not defined"),
        (with("name", json!(7)), "incompatible", "property name has failed the following constraints"),
    ];
    for (content, fit, why) in cases {
        let judged = stage.ok("POST", "/api/experiments/validation", &json!([file("x", &content)])).await;
        assert_eq!(judged[0]["compatibilityType"], fit);
        assert!(judged[0]["error"].as_str().unwrap().starts_with(why), "{judged}");
    }
    let broken =
        json!([{ "fileName": "x", "fileContent": "{" }, file("y", &with("context", json!(["nope"])))]);
    let judged = stage.ok("POST", "/api/experiments/import", &broken).await;
    assert_eq!(judged[0]["error"], "Invalid JSON");
    assert_eq!(stage.client.experiments().await.unwrap().len(), 1);
    assert_eq!(stage.status("POST", "/api/experiments/import", &json!({})).await, 500);
}

#[tokio::test]
async fn a_batch_creates_all_experiments_or_none() {
    let stage = Stage::new().await;
    let body = recording("v65/create_simple").request;
    let made = stage.ok("POST", "/api/experiments/batch", &json!([body, body])).await;
    assert_eq!(made.as_array().unwrap().len(), 2);
    let mut bad = body.clone();
    bad["name"] = json!("");
    assert_eq!(stage.status("POST", "/api/experiments/batch", &json!([body, bad])).await, 400);
    assert_eq!(stage.client.experiments().await.unwrap().len(), 2);
}

#[tokio::test]
async fn segments_are_exported_and_imported_as_files() {
    let stage = Stage::new().await;
    let segment = json!({
        "name": "seg", "description": "", "context": "assign-prog", "type": "public",
        "userIds": ["ada", "o, \"b\""], "groups": [{ "type": "classId", "groupId": "c1" }], "subSegmentIds": [],
    });
    let id = stage.ok("POST", "/api/segments", &segment).await["id"].as_str().unwrap().to_owned();
    let exported = stage.ok("GET", &format!("/api/segments/export/json?ids={id}"), &Value::Null).await;
    let csv = stage.ok("GET", &format!("/api/segments/export/csv?ids={id}"), &Value::Null).await;
    let table = "Type,UUID\r\nIndividual,ada\r\nIndividual,\"o, \"\"b\"\"\"\r\nclassId,c1";
    assert_eq!(csv, json!([{ "fileName": "seg", "fileContent": table }]));
    let same = json!([file("seg.json", &exported[0])]);
    let judged = stage.ok("POST", "/api/segments/validation", &same).await;
    assert!(judged[0]["error"].as_str().unwrap().contains("is already used by another segment"), "{judged}");
    let mut other = exported[0].clone();
    other["name"] = json!("copy");
    let files = json!([file("copy.json", &other), file("ignored.txt", &other)]);
    assert_eq!(stage.ok("POST", "/api/segments/validation", &files).await, json!([]));
    assert_eq!(stage.ok("POST", "/api/segments/import", &files).await[0]["compatibilityType"], "compatible");
    let all = stage.ok("GET", "/api/segments", &Value::Null).await;
    assert_eq!(all["segmentsData"].as_array().unwrap().len(), 2);
    let copy = all["segmentsData"].as_array().unwrap().iter().find(|s| s["name"] == "copy").unwrap();
    assert_ne!(copy["id"], json!(id));
    assert_eq!(copy["individualForSegment"].as_array().unwrap().len(), 2);
    assert_eq!(
        stage.status("GET", &format!("/api/segments/export/json?ids={UNKNOWN_ID}"), &Value::Null).await,
        500
    );
}

#[tokio::test]
async fn lists_of_experiments_are_exported_and_imported_as_files() {
    let stage = Stage::new().await;
    let made = stage.client.create(&plain("lists")).await.unwrap();
    let path = format!("/api/experiments/export/includeLists/{}", made.id);
    let none = stage.raw("GET", &path, &Value::Null).await;
    assert_eq!((none.status, &none.body["message"]), (404, &json!("Include lists not found.")));
    let list = json!({
        "name": "few", "description": "", "context": "assign-prog", "type": "private", "listType": "Individual",
        "userIds": ["ada"], "groups": [], "subSegmentIds": [],
    });
    let body = json!({
        "experimentId": made.id, "filterType": "inclusion",
        "files": [file("few.json", &list), { "fileName": "bad.json", "fileContent": "{" }],
    });
    let told = stage.ok("POST", "/api/experiments/lists/import", &body).await;
    let expected = json!([{ "fileName": "few.json", "error": null }, { "fileName": "bad.json", "error": "incompatible" }]);
    assert_eq!(told, expected);
    assert_eq!(stage.ok("GET", &path, &Value::Null).await, json!([list]));
}

#[tokio::test]
async fn if_one_file_of_lists_cannot_be_stored_none_is() {
    let stage = Stage::new().await;
    let made = stage.client.create(&plain("lists")).await.unwrap();
    let list = |student: &str| {
        json!({
            "name": "few", "description": "", "context": "assign-prog", "type": "private",
            "listType": "Individual", "userIds": [student], "groups": [], "subSegmentIds": [],
        })
    };
    let body = json!({
        "experimentId": made.id, "filterType": "inclusion",
        "files": [file("good.json", &list("ada")), file("bad.json", &list("e\0e"))],
    });
    assert_eq!(stage.status("POST", "/api/experiments/lists/import", &body).await, 500);
    stage.student("ada").await;
    assert_eq!(stage.client.experiment(&made.id).await.unwrap(), made);
    let deeds = stage.ok("POST", "/api/audit", &json!({ "skip": 0, "take": 9 })).await;
    assert_eq!(deeds["total"], 1, "{deeds}");
}

#[tokio::test]
async fn full_groups_are_counted_if_an_experiment_ends_by_them() {
    let stage = Stage::new().await;
    let made = stage.client.create(&plain("alone").per_group("classId")).await.unwrap();
    let path = |id: &str| format!("/api/experiments/getGroupAssignmentStatus/{id}");
    assert_eq!(stage.status("GET", &path(&made.id), &Value::Null).await, 204);
    let mut body = recording("v65/create_group").request;
    body["enrollmentCompleteCondition"] = json!({ "userCount": 1, "groupCount": 2 });
    let ending = stage.ok("POST", "/api/experiments", &body).await;
    assert_eq!(stage.ok("GET", &path(ending["id"].as_str().unwrap()), &Value::Null).await, json!(0));
    assert_eq!(stage.status("GET", &path(UNKNOWN_ID), &Value::Null).await, 404);
}

#[tokio::test]
async fn enrolments_are_counted_by_day_month_and_year() {
    let day = Arc::new(AtomicU64::new(0));
    let clock = day.clone();
    // 2026-01-30 at noon, plus some days.
    let noon = SystemTime::UNIX_EPOCH + Duration::from_secs(1_769_774_400);
    let now = move || noon + Duration::from_secs(86_400 * clock.load(Ordering::SeqCst));
    let server = EmbeddedServer::builder().clock(now).seed(5).start().await.unwrap();
    let client = UpgradeClient::builder(server.url()).build().unwrap();
    let stage = Stage { server, client };
    let made = stage.running(&plain("dated")).await;
    for (at, student) in [(0, "ada"), (2, "bob"), (2, "eve")] {
        day.store(at, Ordering::SeqCst);
        stage.student(student).await;
        stage.visit(student).await;
    }
    let counts = async |range: &str, offset: i64| {
        let body = json!({ "experimentId": made.id, "dateEnum": range, "clientOffset": offset });
        let spans = stage.ok("POST", "/api/stats/enrollment/date", &body).await;
        let users = |span: &Value| -> u64 {
            let conditions = span["stats"]["conditions"].as_array().unwrap().iter();
            conditions.map(|c| c["partitions"][0]["users"].as_u64().unwrap()).sum()
        };
        let spans = spans.as_array().unwrap().clone();
        spans.iter().map(|span| (span["date"].as_str().unwrap().to_owned(), users(span))).collect::<Vec<_>>()
    };
    let days = counts("last_seven_days", 0).await;
    assert_eq!(days.len(), 7);
    let expected = [("Sun Feb 01 2026", 2), ("Sat Jan 31 2026", 0), ("Fri Jan 30 2026", 1)];
    assert_eq!(days[..3], expected.map(|(day, users)| (day.to_owned(), users)));
    let ahead = counts("last_seven_days", 13 * 60).await;
    assert_eq!(ahead[0], ("Mon Feb 02 2026".to_owned(), 2));
    let months = counts("last_three_months", 0).await;
    let expected = [("Sun Feb 01 2026", 2), ("Thu Jan 01 2026", 1), ("Mon Dec 01 2025", 0)];
    assert_eq!(months, expected.map(|(day, users)| (day.to_owned(), users)));
    assert_eq!(counts("total", 0).await, [("Thu Jan 01 2026".to_owned(), 3)]);
    let body = json!({ "experimentId": UNKNOWN_ID, "dateEnum": "total", "clientOffset": 0 });
    assert_eq!(stage.status("POST", "/api/stats/enrollment/date", &body).await, 500);
    assert_eq!(stage.status("POST", "/api/stats/enrollment/date", &json!({})).await, 400);
    let csv = |id: &str| format!("/api/stats/csv?experimentId={id}&email=ada@example.com");
    let unsent = stage.raw("GET", &csv(&made.id), &Value::Null).await;
    assert_eq!((unsent.status, &unsent.body["type"]), (500, &json!("Email send error")));
    assert_eq!(stage.status("GET", &csv(UNKNOWN_ID), &Value::Null).await, 404);
}

#[tokio::test]
async fn changes_of_administrators_survive_a_restart() {
    let dir = std::env::temp_dir().join(format!("upgrade-administrators-{}", uuid::Uuid::new_v4()));
    let open = async || {
        let server = EmbeddedServer::builder().data_file(dir.join("server.db")).start().await.unwrap();
        let client = UpgradeClient::builder(server.url()).build().unwrap();
        Stage { server, client }
    };
    let told = async |stage: &Stage| {
        let mut all = Vec::new();
        for path in ["segments", "segments/global", "previewusers/pv", "setting", "users/ada@example.com"] {
            all.push(stage.ok("GET", &format!("/api/{path}"), &Value::Null).await);
        }
        all.push(stage.ok("POST", "/api/audit", &json!({ "skip": 0, "take": 99 })).await);
        all.push(stage.ok("GET", "/api/experiments", &Value::Null).await);
        all
    };
    let stage = open().await;
    let mut new = plain("kept");
    new.exclusion.users = vec!["bob".into()];
    let made = stage.client.create(&new).await.unwrap();
    let segment = json!({
        "name": "seg", "context": "assign-prog", "type": "public",
        "userIds": ["ada"], "groups": [], "subSegmentIds": [],
    });
    stage.ok("POST", "/api/segments", &segment).await;
    stage.ok("POST", "/api/previewusers", &json!({ "id": "pv" })).await;
    let body = json!({ "id": "pv", "assignments": [
        { "experiment": { "id": made.id }, "experimentCondition": { "id": made.conditions[0].id } },
    ]});
    stage.ok("POST", "/api/previewusers/assign", &body).await;
    stage.ok("POST", "/api/setting", &json!({ "toCheckAuth": false, "toFilterMetric": true })).await;
    stage.ok("POST", "/api/login/user", &json!({ "email": "ada@example.com" })).await;
    let before = told(&stage).await;
    stage.server.shutdown().await;
    let stage = open().await;
    assert_eq!(told(&stage).await, before);
    stage.server.shutdown().await;
    std::fs::remove_dir_all(&dir).unwrap();
}

#[tokio::test]
async fn a_batch_assignment_equals_the_single_assignments() {
    let stage = Stage::new().await;
    let made = stage.running(&plain("crowd")).await;
    let ids: Vec<String> = (0..20).map(|n| format!("student-{n}")).collect();
    for id in &ids {
        stage.student(id).await;
    }
    let asked: Vec<&str> = ids.iter().map(String::as_str).chain(["nobody"]).collect();
    let mut body = json!({ "context": "assign-prog", "site": SITE, "target": TARGET, "userIds": asked });
    let all = stage.ok("POST", "/api/batch-assign", &body).await;
    assert_eq!(all["nobody"], "NOT_FOUND");
    for id in &ids {
        let condition = &all[id]["assignedCondition"][0];
        assert_eq!(condition["conditionCode"].as_str(), stage.code(id).await.as_deref());
        assert_eq!(condition["experimentId"], json!(made.id));
    }
    body["target"] = json!("elsewhere");
    assert_eq!(stage.ok("POST", "/api/batch-assign", &body).await["student-0"], Value::Null);
    assert_eq!(stage.client.enrollment(&made.id).await.unwrap().users, 0);
    assert_eq!(stage.status("POST", "/api/batch-assign", &json!({})).await, 400);
}
