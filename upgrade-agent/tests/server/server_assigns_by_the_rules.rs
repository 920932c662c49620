//! Rules of assignment and updates that no single recording shows.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]

use crate::recording;
use crate::stage;

use std::collections::BTreeSet;

use serde_json::{Value, json};
use stage::{SITE, Stage, TARGET, class, plain};
use upgrade_agent::client::{ExperimentPatch, ExperimentState, FilterMode, Mark, NewExperiment, NewUser};

#[tokio::test]
async fn lists_and_filter_decide_which_students_take_part() {
    // The filter mode, the members of the inclusion and of the exclusion list, and whether the student is
    // assigned.
    let cases = [
        (FilterMode::IncludeAll, "", "", true),
        (FilterMode::IncludeAll, "", "user", false),
        (FilterMode::IncludeAll, "user", "user", false),
        (FilterMode::IncludeAll, "", "group", false),
        (FilterMode::IncludeAll, "user", "group", true),
        (FilterMode::IncludeAll, "group", "group", false),
        (FilterMode::ExcludeAll, "", "", false),
        (FilterMode::ExcludeAll, "user", "", true),
        (FilterMode::ExcludeAll, "group", "", true),
        (FilterMode::ExcludeAll, "group", "group", false),
        (FilterMode::ExcludeAll, "user", "group", true),
        (FilterMode::ExcludeAll, "user", "user", false),
        (FilterMode::ExcludeAll, "group", "user", false),
    ];
    for (filter, included, excluded, taken) in cases {
        let stage = Stage::new().await;
        let mut new = plain("lists");
        for (word, list) in [(included, &mut new.inclusion), (excluded, &mut new.exclusion)] {
            match word {
                "user" => list.users.push("ada".into()),
                "group" => list.groups.push(class("c2")),
                _ => {}
            }
        }
        new.filter_mode = filter.clone();
        stage.running(&new).await;
        // Membership counts, not the working group.
        let ada = NewUser {
            id: "ada".into(),
            groups: Some([("classId".into(), vec!["c1".into(), "c2".into()])].into()),
            working_group: Some([("classId".into(), "c1".into())].into()),
        };
        stage.client.init_user(&ada).await.unwrap();
        let is_taken = stage.code("ada").await.is_some();
        assert_eq!(is_taken, taken, "{filter}, included {included:?}, excluded {excluded:?}");
    }
}

#[tokio::test]
async fn an_exclusion_stays_after_its_reason_is_removed() {
    let stage = Stage::new().await;
    let mut new = plain("sticky");
    new.filter_mode = FilterMode::ExcludeAll;
    let made = stage.running(&new).await;
    stage.student("ada").await;
    stage.student("bob").await;
    stage.visit("ada").await;
    let everybody = ExperimentPatch { filter_mode: Some(FilterMode::IncludeAll), ..Default::default() };
    stage.client.update(&made.id, &everybody).await.unwrap();
    assert_eq!(stage.code("ada").await, None);
    assert!(stage.code("bob").await.is_some());
}

#[tokio::test]
async fn a_student_gets_one_of_the_experiments_that_share_a_point_and_keeps_it() {
    let stage = Stage::new().await;
    let mut bridge = plain("bridge");
    bridge = bridge.point("SelectSection", "analyzing_step_functions");
    let far = NewExperiment { decision_points: vec![], ..plain("far") };
    let far = far.point("SelectSection", "analyzing_step_functions");
    let apart = NewExperiment { decision_points: vec![], ..plain("apart") };
    let apart = apart.point("elsewhere", "");
    let mut ids = Vec::new();
    for new in [plain("near"), bridge, far] {
        ids.push(stage.running(&new).await.id);
    }
    let apart = stage.running(&apart).await.id;
    let mut chosen = BTreeSet::new();
    for student in (0..30).map(|n| format!("student-{n}")) {
        stage.student(&student).await;
        let codes = stage.codes(&student).await;
        assert!(codes.contains_key(&apart), "an experiment at another point is in another pool");
        let of_pool: Vec<_> = ids.iter().filter(|id| codes.contains_key(*id)).collect();
        assert_eq!(of_pool.len(), 1);
        chosen.extend(of_pool);
    }
    assert_eq!(chosen.len(), 3, "all three experiments get students");

    // An enrolled student stays enrolled, although the pool shrinks and grows.
    let first = &ids[0];
    let student = "student-0";
    let before = stage.codes(student).await;
    for id in ids.iter().filter(|id| !before.contains_key(*id)) {
        stage.client.set_state(id, &ExperimentState::Cancelled).await.unwrap();
    }
    let at = stage.client.assign(student, "assign-prog").await.unwrap();
    for point in &at {
        stage.client.mark(student, &Mark::of(point)).await.unwrap();
    }
    for id in &ids {
        stage.client.set_state(id, &ExperimentState::Enrolling).await.unwrap();
    }
    assert_eq!(stage.codes(student).await, before, "{first}");
}

#[tokio::test]
async fn a_deleted_experiment_leaves_only_visits() {
    let stage = Stage::new().await;
    let id = "5b38c553-8c64-4e81-b91c-df3d22e48b7b";
    stage.running(&plain("first").id(id)).await;
    for student in ["ada", "bob"] {
        stage.student(student).await;
        stage.visit(student).await;
    }
    let status = Some(upgrade_agent::client::MarkStatus::NotApplied);
    stage.client.mark("bob", &Mark { status, ..Mark::new(SITE, TARGET) }).await.unwrap();
    stage.client.delete(id).await.unwrap();
    let again = stage.client.mark("ada", &Mark::new(SITE, TARGET)).await.unwrap();
    assert_eq!(again.experiment_id.as_deref(), Some(id), "the first visit is kept");
    stage.client.create(&plain("second").id(id)).await.unwrap();
    let detail = stage.client.enrollment(id).await.unwrap();
    assert_eq!((detail.users, detail.users_excluded), (0, 0));
}

#[tokio::test]
async fn enough_students_pause_an_experiment() {
    let stage = Stage::new().await;
    let made = stage.client.create(&plain("two are enough")).await.unwrap();
    let mut body = stage.single(&made.id).await;
    body["enrollmentCompleteCondition"] = json!({ "userCount": 2, "groupCount": 0 });
    let path = format!("/api/experiments/{}", made.id);
    assert_eq!(stage.raw("PUT", &path, &body).await.status, 200);
    stage.moved(&made, ExperimentState::Enrolling).await;
    for (student, state) in [
        ("ada", ExperimentState::Enrolling),
        ("ada", ExperimentState::Enrolling),
        ("bob", ExperimentState::EnrollmentComplete),
    ] {
        stage.student(student).await;
        stage.visit(student).await;
        assert_eq!(stage.client.experiment(&made.id).await.unwrap().state, state);
    }
    stage.student("eve").await;
    assert_eq!(stage.code("eve").await, None);
    assert!(stage.code("ada").await.is_some());
}

#[tokio::test]
async fn only_running_and_paused_experiments_assign() {
    let stage = Stage::new().await;
    let made = stage.running(&plain("rest")).await;
    stage.student("ada").await;
    stage.visit("ada").await;
    for state in [
        ExperimentState::Inactive,
        ExperimentState::Draft,
        ExperimentState::Preview,
        ExperimentState::Scheduled,
        ExperimentState::Cancelled,
        ExperimentState::Archived,
    ] {
        stage.moved(&made, state.clone()).await;
        assert_eq!(stage.code("ada").await, None, "{state}");
    }
}

#[tokio::test]
async fn after_an_update_a_condition_comes_with_a_payload() {
    let stage = Stage::new().await;
    let made = stage.running(&plain("payload")).await;
    stage.student("ada").await;
    let before = stage.client.assign("ada", "assign-prog").await.unwrap();
    assert_eq!(before[0].conditions[0].payload, None);
    let rename = ExperimentPatch { name: Some("renamed".into()), ..Default::default() };
    stage.client.update(&made.id, &rename).await.unwrap();
    let after = stage.client.assign("ada", "assign-prog").await.unwrap();
    let condition = &after[0].conditions[0];
    let payload = condition.payload.as_ref().unwrap();
    assert_eq!(Some(&payload.value), condition.condition_code.as_ref());
}

#[tokio::test]
async fn an_update_from_a_stale_copy_is_accepted() {
    let stage = Stage::new().await;
    let made = stage.client.create(&plain("stale")).await.unwrap();
    let mut stale = stage.single(&made.id).await;
    let rename = ExperimentPatch { name: Some("newer".into()), ..Default::default() };
    stage.client.update(&made.id, &rename).await.unwrap();
    stale["description"] = json!("from the past");
    let answer = stage.raw("PUT", &format!("/api/experiments/{}", made.id), &stale).await;
    // The version number is that of the copy, too.
    assert_eq!((answer.status, &answer.body["versionNumber"]), (200, &json!(1)));
    assert_eq!(stage.client.experiment(&made.id).await.unwrap().name, "stale");
}

/// Only a separate change of state excludes earlier visitors.
#[tokio::test]
async fn an_update_excludes_no_early_visitors() {
    for by_update in [true, false] {
        let stage = Stage::new().await;
        stage.student("ada").await;
        stage.client.mark("ada", &Mark::new(SITE, TARGET)).await.unwrap();
        let made = stage.client.create(&plain("early")).await.unwrap();
        let mut body = stage.single(&made.id).await;
        body["partitions"][0]["excludeIfReached"] = json!(true);
        body["state"] = json!(if by_update { "running" } else { "inactive" });
        let path = format!("/api/experiments/{}", made.id);
        assert_eq!(stage.raw("PUT", &path, &body).await.status, 200);
        if !by_update {
            stage.client.set_state(&made.id, &ExperimentState::Enrolling).await.unwrap();
        }
        assert_eq!(stage.code("ada").await.is_some(), by_update);
        // An update of a running experiment does not exclude them either.
        let again = stage.single(&made.id).await;
        assert_eq!(stage.raw("PUT", &path, &again).await.status, 200);
        assert_eq!(stage.code("ada").await.is_some(), by_update);
    }
}

#[tokio::test]
async fn a_change_of_context_drops_the_lists() {
    let stage = Stage::new().await;
    let mut new = plain("moving");
    new.inclusion.users.push("ada".into());
    let made = stage.client.create(&new).await.unwrap();
    let patch = ExperimentPatch { context: Some("mathstream".into()), ..Default::default() };
    let moved = stage.client.update(&made.id, &patch).await.unwrap();
    assert_eq!(moved.context, ["mathstream"]);
    assert!(moved.inclusion.is_empty());
    assert_eq!(moved.filter_mode, FilterMode::ExcludeAll);
}

#[tokio::test]
async fn a_removed_condition_removes_its_enrolments() {
    let stage = Stage::new().await;
    let made = stage.running(&plain("removed")).await;
    for student in (0..30).map(|n| format!("student-{n}")) {
        stage.student(&student).await;
        stage.visit(&student).await;
    }
    let before = stage.client.enrollment(&made.id).await.unwrap();
    let variant = &made.condition("variant").unwrap().id;
    let stay = before.conditions.iter().find(|c| c.id == *variant).unwrap().users;
    assert!((1..30).contains(&stay), "both conditions have students: {before:?}");
    let only_variant = Some(vec![upgrade_agent::client::NewCondition::new("variant", 100.0)]);
    let patch = ExperimentPatch { conditions: only_variant, ..Default::default() };
    stage.client.update(&made.id, &patch).await.unwrap();
    assert_eq!(stage.client.enrollment(&made.id).await.unwrap().users, stay);
}

#[tokio::test]
async fn values_that_the_database_of_the_original_refuses_are_refused() {
    let stage = Stage::new().await;
    let request = recording::recording("v65/create_simple").request;
    let with = |field: &str, value: Value| {
        let mut body = request.clone();
        body[field] = value;
        body
    };
    let mut default = request.clone();
    default["conditions"][0]["conditionCode"] = json!("Default");
    let cases = [
        (with("state", json!("running")), 500, "QueryFailedError"),
        (with("state", json!("paused")), 500, "QueryFailedError"),
        (with("state", json!("completed")), 500, "QueryFailedError"),
        (with("id", json!("abc")), 500, "QueryFailedError"),
        (with("revertTo", json!("control")), 500, "QueryFailedError"),
        (with("name", json!("half\0")), 500, "QueryFailedError"),
        (default, 400, "BadRequestError"),
        (with("context", json!([])), 400, "BadRequestError"),
        (with("context", json!(["Assign-Prog"])), 400, "BadRequestError"),
        (with("assignmentUnit", json!("within-subjects")), 400, "BadRequestError"),
        (with("type", json!("Factorial")), 500, "TypeError"),
        (with("assignmentAlgorithm", json!("ts_configurable")), 400, "BadRequestError"),
        (with("moocletPolicyParameters", json!({})), 400, "BadRequestError"),
        (with("stratificationFactor", json!({ "stratificationFactorName": "x" })), 500, "QueryFailedError"),
    ];
    for (body, status, name) in cases {
        let answer = stage.raw("POST", "/api/experiments", &body).await;
        assert_eq!((answer.status, &answer.body["name"]), (status, &json!(name)), "{}", answer.body);
        assert_eq!(answer.body["request"], body);
    }
    assert_eq!(stage.client.experiments().await.unwrap(), []);
}

#[tokio::test]
async fn dates_are_returned_in_utc() {
    let stage = Stage::new().await;
    let mut body = recording::recording("v65/create_simple").request;
    let id = "5b38c553-8c64-4e81-b91c-df3d22e48b7b";
    body["id"] = json!(id);
    body["startOn"] = json!("2027-01-31T10:00:00+02:00");
    assert_eq!(stage.raw("POST", "/api/experiments", &body).await.status, 200);
    let path = format!("/api/experiments/single/{id}");
    let single = stage.raw("GET", &path, &Value::Null).await.body;
    assert_eq!(single["startOn"], "2027-01-31T08:00:00.000Z");
    let move_on = json!({ "experimentId": id, "state": "scheduled", "scheduleDate": "2027-05-01" });
    let moved = stage.raw("POST", "/api/experiments/state", &move_on).await.body;
    assert_eq!(moved["startOn"], "2027-05-01T00:00:00.000Z");
}

#[tokio::test]
async fn empty_pages_are_allowed_and_negative_ones_refused() {
    let stage = Stage::new().await;
    stage.client.create(&plain("a")).await.unwrap();
    stage.client.create(&plain("b")).await.unwrap();
    let page = async |skip: f64, take: f64| {
        stage.raw("POST", "/api/experiments/paginated", &json!({ "skip": skip, "take": take })).await
    };
    let length = |body: &Value| body["nodes"].as_array().map(Vec::len);
    for (skip, take, found) in [(0.0, 0.0, 0), (1.0, 0.0, 0), (0.0, 1.0, 1), (0.0, 0.6, 1), (9.0, 9.0, 0)] {
        let body = page(skip, take).await.body;
        assert_eq!((length(&body), &body["total"]), (Some(found), &json!(2)), "{skip} {take}");
    }
    for (skip, take, message) in [
        (-1.0, 1.0, "OFFSET must not be negative"),
        (0.0, -1.0, "LIMIT must not be negative"),
        (0.0, 1e30, "bigint out of range"),
    ] {
        let answer = page(skip, take).await;
        assert_eq!((answer.status, &answer.body["message"]), (500, &json!(message)));
    }
}

#[tokio::test]
async fn unknown_ids_fail_as_in_the_original() {
    let stage = Stage::new().await;
    let id = "00000000-0000-4000-8000-000000000000";
    let state = json!({ "experimentId": id, "state": "enrolling" });
    let answer = stage.raw("POST", "/api/experiments/state", &state).await;
    assert_eq!((answer.status, &answer.body["name"]), (500, &json!("TypeError")));
    for path in ["single", "conditions"] {
        let path = format!("/api/experiments/{path}/{id}");
        let answer = stage.raw("GET", &path, &Value::Null).await;
        assert_eq!((answer.status, &answer.body["type"]), (404, &json!("Query Failed")));
        assert_eq!(answer.body["endPoint"], path);
    }
}

#[tokio::test]
async fn version_and_conditions_have_their_own_routes() {
    let stage = Stage::new().await;
    let made = stage.client.create(&plain("routes")).await.unwrap();
    for path in ["/api/version", "/api/version/"] {
        let answer = stage.raw("GET", path, &Value::Null).await;
        assert_eq!((answer.status, answer.body), (200, json!("6.5.0")));
    }
    let path = format!("/api/experiments/conditions/{}", made.id);
    let answer = stage.raw("GET", &path, &Value::Null).await.body;
    let codes: Vec<_> = answer.as_array().unwrap().iter().map(|c| &c["conditionCode"]).collect();
    assert_eq!(codes, ["control", "variant"]);
    let both = json!({ "experimentIds": [made.id, "00000000-0000-4000-8000-000000000000"] });
    let answer = stage.raw("POST", "/api/stats/enrollment", &both).await.body;
    let row = |id: &str| json!({ "id": id, "users": 0, "groups": 0 });
    assert_eq!(answer, json!([row(&made.id), row("00000000-0000-4000-8000-000000000000")]));
}

#[tokio::test]
async fn a_name_beyond_ascii_is_the_same_student_each_time() {
    let stage = Stage::new().await;
    let made = stage.running(&plain("names")).await;
    let student = "Ada Łukasiewicz 中";
    stage.student(student).await;
    let code = stage.code(student).await;
    stage.visit(student).await;
    assert_eq!(stage.code(student).await, code);
    assert_eq!(stage.client.enrollment(&made.id).await.unwrap().users, 1);
}

#[tokio::test]
async fn pages_are_searched_sorted_and_limited() {
    let stage = Stage::new().await;
    let mut by_id = Vec::new();
    for name in ["beta", "alpha", "gamma"] {
        by_id.push((stage.client.create(&plain(name)).await.unwrap().id, name));
    }
    by_id.sort();
    let newest_first = |page: &[(String, &'static str)]| -> Vec<&str> {
        let is_on = |name: &&str| page.iter().any(|(_, other)| other == name);
        ["gamma", "alpha", "beta"].into_iter().filter(is_on).collect()
    };
    let cases = [
        // Ids decide which experiments are on a page; only the page is sorted.
        (json!({ "skip": 0, "take": 2 }), newest_first(&by_id[..2])),
        (json!({ "skip": 2, "take": 2 }), newest_first(&by_id[2..])),
        (
            json!({ "skip": 0, "take": 9, "sortParams": { "key": "name", "sortAs": "ASC" } }),
            vec!["alpha", "beta", "gamma"],
        ),
        (json!({ "skip": 0, "take": 9, "searchParams": { "key": "name", "string": "ET" } }), vec!["beta"]),
        (
            json!({ "skip": 0, "take": 9, "searchParams": { "key": "all", "string": "workspace" } }),
            vec!["gamma", "alpha", "beta"],
        ),
        (json!({ "skip": 0, "take": 9, "searchParams": { "key": "status", "string": "inact" } }), vec![]),
        (
            json!({ "skip": 0, "take": 9, "searchParams": { "key": "status", "string": "Inactive" } }),
            vec!["gamma", "alpha", "beta"],
        ),
        (
            json!({ "skip": 0, "take": 9, "searchParams": { "key": "id", "string": by_id[0].0 } }),
            vec![by_id[0].1],
        ),
    ];
    for (body, names) in cases {
        let answer = stage.raw("POST", "/api/experiments/paginated", &body).await.body;
        let told: Vec<_> = answer["nodes"].as_array().unwrap().iter().map(|n| &n["name"]).collect();
        assert_eq!(told, names, "{body}");
        let found = if body["searchParams"].is_null() { 3 } else { names.len() };
        assert_eq!(answer["total"], found, "{body}");
    }
}

#[tokio::test]
async fn concurrent_students_are_all_counted() {
    let stage = Stage::new().await;
    let made = stage.running(&plain("crowd")).await;
    let students = (0..60).map(|n| {
        let client = stage.client.clone();
        tokio::spawn(async move {
            let student = format!("student-{n}");
            client.init_user(&NewUser::new(&student)).await.unwrap();
            let assigned = client.assign(&student, "assign-prog").await.unwrap();
            client.mark(&student, &Mark::of(&assigned[0])).await.unwrap();
        })
    });
    for student in students.collect::<Vec<_>>() {
        student.await.unwrap();
    }
    assert_eq!(stage.client.enrollment(&made.id).await.unwrap().users, 60);
}
