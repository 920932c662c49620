//! Requests recorded from UpGrade 6.5.0 are sent to the embedded server, and its responses must match the
//! recorded ones. Scenes are data: a name is a recording to send and compare, the other words prepare data.

use std::collections::HashMap;

use crate::recording::{Answered, Ids, Recording, fixture, http, recording, send};
use reqwest::Client;
use serde_json::{Value, json};
use upgrade_simulator::{EmbeddedServer, ServerHandle};

/// One step of a scene.
#[derive(Clone, Copy)]
enum Step {
    /// Send this recording and compare the response.
    Is(&'static str),
    /// Create an experiment with this id from the body of the recording `like`.
    Given { like: &'static str, id: &'static str },
    /// Move an experiment to a state.
    Moved(&'static str, &'static str),
    /// Put an experiment on the schedule.
    Scheduled(&'static str, &'static str),
    /// Make students known.
    Known(&'static [&'static str]),
}
use Step::{Given, Is, Known, Moved, Scheduled};

struct Stage {
    server: ServerHandle,
    http: Client,
    ids: Ids,
}

impl Stage {
    async fn new() -> Self {
        let server = EmbeddedServer::builder().in_memory().start().await.unwrap();
        Self { server, http: http(), ids: Ids::default() }
    }

    async fn post(&self, path: &str, user: Option<&str>, body: Value) -> Answered {
        let headers = user.map(|user| ("User-Id".to_owned(), user.to_owned()));
        let headers: HashMap<_, _> = headers.into_iter().collect();
        send(&self.http, self.server.url(), "POST", path, &headers, &body).await
    }

    async fn call(&self, method: &str, path: &str) -> Answered {
        send(&self.http, self.server.url(), method, path, &HashMap::new(), &Value::Null).await
    }

    async fn play(&mut self, scene: &str, step: Step) {
        match step {
            Is(name) => self.compare(scene, name).await,
            Given { like, id } => self.given(like, id).await,
            Moved(id, state) => {
                let body = json!({ "experimentId": id, "state": state });
                assert_eq!(self.post("/api/experiments/state", None, body).await.status, 200);
            }
            Scheduled(id, date) => {
                let body = json!({ "experimentId": id, "state": "scheduled", "scheduleDate": date });
                assert_eq!(self.post("/api/experiments/state", None, body).await.status, 200);
            }
            Known(users) => {
                for user in users {
                    assert_eq!(self.post("/api/v6/init", Some(user), json!({})).await.status, 200);
                }
            }
        }
    }

    async fn compare(&mut self, scene: &str, name: &str) {
        let Recording { method, path, headers, request, status, content_type, mut response } =
            recording(&format!("v65/{name}"));
        let path = self.ids.text(&path);
        let request = self.ids.value(&request);
        let url = self.server.url();
        let mut answer = send(&self.http, url, &method, &path, &headers, &request).await;
        assert_eq!(answer.status, status, "{scene}, {name}: {}", answer.body);
        assert_eq!(answer.content_type, content_type, "{scene}, {name}");
        if let Some(echo) = response.as_object_mut().and_then(|body| body.remove("request")) {
            // The echo is the sent request, with its ids.
            let ours = answer.body.as_object_mut().and_then(|body| body.remove("request"));
            assert_eq!(ours, Some(self.ids.value(&echo)), "{scene}, {name}");
        }
        if response["name"] == "SyntaxError" {
            // The words of the original's JavaScript engine, which no client reads.
            for body in [&mut response, &mut answer.body] {
                assert!(
                    body.as_object_mut()
                        .and_then(|body| body.remove("message"))
                        .is_some_and(|text| text.is_string())
                );
            }
        }
        if let Err(why) = self.ids.compare(&response, &answer.body) {
            panic!("{scene}, {name}: {why}");
        }
    }

    /// Creates an experiment like a recorded one. If it has the id of that one, the ids of their parts are
    /// bound in order.
    async fn given(&mut self, like: &str, id: &str) {
        let recorded = recording(&format!("v65/{like}"));
        let source = if recorded.request.is_null() { recorded.response } else { recorded.request };
        let mut body = source.clone();
        body["id"] = json!(id);
        body["state"] = json!("inactive");
        let created = self.post("/api/experiments", None, body).await;
        assert_eq!(created.status, 200, "{like}: {}", created.body);
        assert!(self.ids.bind(id, id));
        if source["id"] != id {
            return;
        }
        for field in ["conditions", "partitions"] {
            let pairs = source[field].as_array().unwrap().iter();
            for (old, new) in pairs.zip(created.body[field].as_array().unwrap()) {
                let old = old["id"].as_str().unwrap();
                let new = new["id"].as_str().unwrap();
                assert!(self.ids.bind(old, new));
            }
        }
    }
}

async fn play(scene: &str, steps: &[Step]) {
    let mut stage = Stage::new().await;
    for step in steps {
        stage.play(scene, *step).await;
    }
    stage.server.shutdown().await;
}

/// Calls without preparation, each on its own server.
const ALONE: &[&str] = &[
    "health",
    "health_slash",
    "context_metadata",
    "no_such_route",
    "create_simple",
    "create_assign_rule",
    "create_bad_json",
    "create_bad_state",
    "create_duplicate_name",
    "create_empty_body",
    "create_factorial",
    "create_group",
    "create_group_bad_type",
    "create_group_without_type",
    "create_individual_with_group",
    "create_missing_name",
    "create_no_conditions",
    "create_no_partitions",
    "create_old_segment_object",
    "create_state_enrolling",
    "create_unknown_site",
    "create_weights_80",
    "create_weights_negative",
    "create_with_payloads",
    "create_wrong_context",
    "agent_builder_create",
    "agent_builder_create_lists_fixed",
    "delete_again",
    "delete_bad_id",
    "enrollment_detail_unknown",
    "paginated_bad",
    "auth_login",
    "auth_users",
    "segments_list",
    "stratification_list",
    "validation",
    "state_bad_value",
    "update_bad_id",
    "update_unknown_id",
    "update_wrong_context",
    "metrics_list",
    "v1_init",
    "v4_init",
    "v5_assign_unknown_user",
    "v5_init",
    "v6_assign_no_user_header",
    "v6_assign_unknown_user",
    "v6_init",
    "v6_init_bad_group",
    "v6_init_empty",
    "v6_init_extra_field",
    "v6_init_wg_not_in_group",
];

#[tokio::test]
async fn single_calls_are_answered_as_recorded() {
    for name in ALONE {
        play("alone", &[Is(name)]).await;
    }
}

const STATES: &str = "e50cb251-803c-4e7f-b5a2-fd98796e6a67";
const HINTS: &str = "9efaa3d5-1a7d-4241-8bc2-f47309aef46f";
const MORE_HINTS: &str = "7842ceef-3901-4e29-80eb-5ee9c38b8ef1";
const RULE: &str = "6c10af0a-15fa-4297-b2b2-ad4a24a7417f";
const WEIGHTS: &str = "c0f06a31-4f1d-4b80-bf77-a139894ad6ce";
const VISITED: &str = "01a86126-dd44-4d39-8f9a-408677f6f090";
const MERGED: &str = "e9a3ee0a-1864-43e9-83b8-dbffabb16ce0";
const PAYLOAD: &str = "38972d41-5bec-4651-9a98-9e86dc7c07c9";

#[tokio::test]
async fn global_lists_are_returned_as_recorded() {
    play("global lists", &[Is("segments_global"), Is("segments_global_update")]).await;
}

#[tokio::test]
async fn the_life_of_an_experiment_is_answered_as_recorded() {
    play(
        "states",
        &[
            Given { like: "single_after_start", id: STATES },
            Is("state_start"),
            Is("single_after_start"),
            Is("state_same"),
            Is("state_stop"),
            Is("state_cancel"),
            Is("state_bad_value"),
            Is("update_partial"),
            Is("update_wrong_context"),
            Scheduled(STATES, "2027-01-01T00:00:00.000Z"),
            Moved(STATES, "scheduled"),
            Is("update_rename_roundtrip"),
            Is("delete"),
            Is("delete_again"),
        ],
    )
    .await;
}

#[tokio::test]
async fn lists_of_experiments_are_returned_as_recorded() {
    play(
        "reading",
        &[
            Given { like: "single", id: HINTS },
            Is("single"),
            Given { like: "create_simple", id: MORE_HINTS },
            Is("names"),
            Is("all_experiments"),
            Is("paginated"),
        ],
    )
    .await;
}

#[tokio::test]
async fn names_are_returned_to_permitted_callers_as_recorded() {
    let mut stage = Stage::new().await;
    let made =
        [(VISITED, "Client exp"), ("820aed1a-5f69-48f4-8ef2-fac4ce690b8a", "Math Hints"), (MERGED, "dup id")];
    for (at, (id, name)) in made.into_iter().enumerate() {
        let mut body = recording("v65/create_simple").request;
        (body["id"], body["name"]) = (json!(id), json!(name));
        assert_eq!(stage.post("/api/experiments", None, body).await.status, 200);
        if at == 0 {
            stage.compare("names", "names_empty").await;
        }
    }
    stage.compare("names", "auth_admin_ok_but_user_not_in_db").await;
}

#[tokio::test]
async fn the_second_change_of_the_setting_is_answered_as_recorded() {
    let mut stage = Stage::new().await;
    let on = json!({ "toCheckAuth": true, "toFilterMetric": true });
    assert_eq!(stage.post("/api/setting", None, on).await.status, 200);
    stage.compare("setting", "setting_check_auth_off").await;
}

#[tokio::test]
async fn the_audit_log_shows_the_last_actions_first_as_recorded() {
    let mut stage = Stage::new().await;
    stage.play("audit", Given { like: "create_simple", id: STATES }).await;
    for _ in 0..1078 {
        assert_eq!(stage.call("GET", &format!("/api/experiments/export?ids={STATES}")).await.status, 200);
    }
    let mut body = recording("v65/create_factorial").request;
    (body["id"], body["name"]) = (json!(FACTORIAL), json!("fact"));
    assert_eq!(stage.post("/api/experiments", None, body).await.status, 200);
    stage.play("audit", Moved(FACTORIAL, "enrolling")).await;
    assert_eq!(stage.call("DELETE", &format!("/api/experiments/{FACTORIAL}")).await.status, 200);
    stage.compare("audit", "audit").await;
}

#[tokio::test]
async fn updates_are_answered_as_recorded() {
    play("rule", &[Given { like: "update_set_assign_rule", id: RULE }, Is("update_set_assign_rule")]).await;
    play(
        "weights",
        &[
            Given { like: "update_weights", id: WEIGHTS },
            Is("update_weights"),
            Moved(WEIGHTS, "enrolling"),
            Is("update_without_condition_payloads"),
        ],
    )
    .await;
}

#[tokio::test]
async fn a_post_of_an_existing_id_merges_as_recorded() {
    play("merge", &[Given { like: "create_simple", id: MERGED }, Is("create_duplicate_id")]).await;
}

#[tokio::test]
async fn the_visits_of_students_are_answered_as_recorded() {
    play(
        "visits",
        &[
            Given { like: "create_simple", id: VISITED },
            Is("v6_init"),
            Is("v6_assign_inactive"),
            Moved(VISITED, "enrolling"),
            Is("v6_assign"),
            Is("v6_assign_other_context"),
            Is("v6_assign_missing_context"),
            Is("v6_assign_unknown_context"),
            Is("v6_assign_unknown_user"),
            Is("v6_mark"),
            Is("v6_mark_again"),
            Is("v6_mark_other_condition_than_assigned"),
            Is("v6_mark_bad_status"),
            Is("v6_mark_unknown_experiment"),
            Is("v6_mark_unknown_site"),
            Is("v6_init_empty"),
            Is("v6_mark_no_condition"),
            Is("v6_mark_assigned_condition_null"),
            Is("v6_mark_null_condition"),
            Is("v6_init_wg_not_in_group"),
            Is("v6_mark_failed_to_apply"),
            Is("v6_assign_after_failed"),
            Is("enrollment_detail"),
            Is("enrollment"),
            Known(&["newcomer"]),
            Moved(VISITED, "enrollmentComplete"),
            Is("v6_assign_complete_enrolled"),
            Is("v6_assign_complete_newcomer"),
            Moved(VISITED, "cancelled"),
            Is("v6_assign_cancelled_enrolled"),
            Moved(VISITED, "enrolling"),
            Is("v6_assign_restarted"),
            Is("v6_log"),
            Is("v6_featureflag"),
            Is("v6_groupmembership"),
            Is("v6_workinggroup"),
            Is("v6_useraliases"),
            Is("v5_init"),
            Is("v5_log"),
            Is("v5_mark"),
        ],
    )
    .await;
}

const FACTORIAL: &str = "81da0fe3-7149-4673-bdcb-80f136f3b1a5";
const WITHIN: &str = "49ca0665-a2e4-4e9b-aa4d-8e3aa0780f19";

#[tokio::test]
async fn a_factorial_design_is_assigned_as_recorded() {
    play(
        "factorial",
        &[
            Given { like: "create_factorial", id: FACTORIAL },
            Known(&["f1"]),
            Moved(FACTORIAL, "enrolling"),
            Is("v6_assign_factorial"),
        ],
    )
    .await;
}

/// Other comparisons ignore the order of rows; here the order of the queue is compared.
#[tokio::test]
async fn a_queue_within_subjects_comes_in_the_recorded_order() {
    let mut body = recording("v65/create_simple").request;
    body["id"] = json!(WITHIN);
    body["assignmentUnit"] = json!("within-subjects");
    body["conditionOrder"] = json!("random round robin");
    body["consistencyRule"] = Value::Null;
    let mut stage = Stage::new().await;
    assert_eq!(stage.post("/api/experiments", None, body).await.status, 200);
    stage.play("within", Moved(WITHIN, "enrolling")).await;
    stage.play("within", Known(&["w1"])).await;
    let assigned = stage.post("/api/v6/assign", Some("w1"), json!({ "context": "assign-prog" })).await.body;
    let codes = |assigned: &Value| -> Vec<String> {
        let queue = assigned[0]["assignedCondition"].as_array().unwrap().iter();
        queue.map(|entry| entry["conditionCode"].as_str().unwrap().to_owned()).collect()
    };
    let recorded = recording("v65/v6_assign_within_random_round_robin").response;
    assert_eq!(codes(&assigned), codes(&recorded));
    assert!(stage.ids.bind(WITHIN, WITHIN));
    stage.ids.compare(&recorded, &assigned).unwrap();
    stage.server.shutdown().await;
}

#[tokio::test]
async fn points_are_returned_once_per_experiment_as_recorded() {
    let given = |id| Given { like: "create_simple", id };
    let ids = [STATES, RULE, WEIGHTS, VISITED].map(given);
    play("points", &ids.into_iter().chain([Is("partitions")]).collect::<Vec<_>>()).await;
}

#[tokio::test]
async fn a_group_is_counted_as_recorded() {
    let id = "397738de-560a-45ea-9caa-f5e57c1750cf";
    let mut stage = Stage::new().await;
    for step in [Given { like: "create_group", id }, Moved(id, "enrolling"), Known(&["loner"])] {
        stage.play("groups", step).await;
    }
    // The pupil tries classes until one draws the second condition.
    let groups =
        |class: &str| json!({ "group": { "classId": [class] }, "workingGroup": { "classId": class } });
    let mut class = 0;
    loop {
        stage.post("/api/v6/init", Some("pupil"), groups(&format!("class-{class}"))).await;
        let assigned = stage.post("/api/v6/assign", Some("pupil"), json!({ "context": "assign-prog" })).await;
        if assigned.body[0]["assignedCondition"][0]["conditionCode"] == "variant" {
            break;
        }
        class += 1;
    }
    let data = json!({ "site": "SelectSection", "target": "absolute_value_plot_equality" });
    for student in ["pupil", "loner"] {
        let marked = stage.post("/api/v6/mark", Some(student), json!({ "data": data })).await;
        assert_eq!(marked.status, 200);
    }
    stage.compare("groups", "enrollment_detail_group").await;
}

#[tokio::test]
async fn a_payload_comes_with_its_condition_as_recorded() {
    let mut stage = Stage::new().await;
    let mut body = recording("v65/create_with_payloads").request;
    body["id"] = json!(PAYLOAD);
    for (at, code) in ["control", "variant"].into_iter().enumerate() {
        let value = format!("{{\"a\":\"{code}\"}}");
        body["conditionPayloads"][at]["payload"] = json!({ "type": "json", "value": value });
    }
    assert_eq!(stage.post("/api/experiments", None, body).await.status, 200);
    for step in [Known(&["p1"]), Moved(PAYLOAD, "enrolling"), Is("v6_assign_payload")] {
        stage.play("payload", step).await;
    }
}

#[tokio::test]
async fn an_experiment_without_conditions_assigns_nothing_as_recorded() {
    let id = "31755379-432d-491a-8f76-dbbb5307c008";
    play(
        "no conditions",
        &[
            Given { like: "create_no_conditions", id },
            Known(&["z1"]),
            Moved(id, "enrolling"),
            Is("v6_assign_no_conditions"),
        ],
    )
    .await;
}

#[tokio::test]
async fn a_group_experiment_skips_students_without_a_group_as_recorded() {
    let id = "ea52a020-c176-4c27-abbf-e568e3c43cca";
    play(
        "no group",
        &[
            Given { like: "create_group", id },
            Known(&["nog"]),
            Moved(id, "enrolling"),
            Is("v6_assign_group_missing"),
        ],
    )
    .await;
}

#[tokio::test]
async fn a_student_on_no_list_is_stored_as_recorded() {
    let id = "1b89f5a2-9fcd-4fb1-893c-8b53792134af";
    let mut stage = Stage::new().await;
    let mut body = recording("v65/create_simple").request;
    body["id"] = json!(id);
    body["filterMode"] = json!("excludeAll");
    assert_eq!(stage.post("/api/experiments", None, body).await.status, 200);
    for step in [Known(&["l-none"]), Moved(id, "enrolling"), Is("v6_mark_excluded_user")] {
        stage.play("lists", step).await;
    }
    let detail = json!({ "experimentId": id });
    let detail = stage.post("/api/stats/enrollment/detail", None, detail).await.body;
    assert_eq!((&detail["users"], &detail["usersExcluded"]), (&json!(0), &json!(1)));
}

#[tokio::test]
async fn lists_of_a_new_experiment_are_returned_as_recorded() {
    let recorded = recording("v65/single_with_segments");
    let mut stage = Stage::new().await;
    let created = stage.post("/api/experiments", None, recorded.response.clone()).await;
    assert_eq!(created.status, 200, "{}", created.body);
    stage.compare("segments", "single_with_segments").await;
}

#[tokio::test]
async fn each_of_the_121_moves_between_states_is_allowed_and_named_as_recorded() {
    let matrix = fixture("transition_matrix");
    let mut stage = Stage::new().await;
    stage.play("matrix", Given { like: "create_simple", id: STATES }).await;
    assert_eq!(matrix.as_object().unwrap().len(), 121);
    for (pair, recorded) in matrix.as_object().unwrap() {
        let (from, to) = pair.split_once("->").unwrap();
        let moved = |state| json!({ "experimentId": STATES, "state": state });
        stage.post("/api/experiments/state", None, moved(from)).await;
        let answer = stage.post("/api/experiments/state", None, moved(to)).await;
        let path = format!("/api/experiments/single/{STATES}");
        let read = stage.call("GET", &path).await;
        let ours = json!([answer.status, answer.body["state"], read.body["state"]]);
        assert_eq!(ours, *recorded, "{pair}");
    }
}
