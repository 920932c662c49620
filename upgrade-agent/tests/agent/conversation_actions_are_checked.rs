//! Parameters become an action only if they are valid, and an action is proposed only if it makes sense on
//! this server.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]

use serde_json::{Value, json};
use upgrade_agent::actions::{ActionKind, DecodeError, Facts, check, decode, is_usual, required, warnings};
use upgrade_agent::client::{
    Context, ContextMetadata, Experiment, ExperimentName, ExperimentState, UpgradeClient,
};
use upgrade_agent::server::EmbeddedServer;

const ID: &str = "eeee0000-0000-4000-8000-000000000001";

fn contexts() -> ContextMetadata {
    let words = |words: &[&str]| words.iter().map(|&word| word.to_owned()).collect();
    let context = Context {
        conditions: words(&["control", "variant"]),
        group_types: words(&["classId", "schoolId"]),
        sites: words(&["workspace"]),
        targets: words(&["steps"]),
    };
    ContextMetadata { contexts: [("assign-prog".to_owned(), context)].into() }
}

fn create(changes: Value) -> Value {
    let mut whole = json!({ "name": "Foo", "context": "assign-prog",
        "decision_points": [{ "site": "workspace", "target": "steps" }],
        "conditions": [{ "code": "control", "weight": 50 }, { "code": "variant", "weight": 50 }] });
    whole.as_object_mut().unwrap().extend(changes.as_object().unwrap().clone());
    whole
}

/// Returns the mistakes of a create; none if it is valid.
fn judged(changes: Value) -> Vec<String> {
    let params = create(changes);
    let names = [ExperimentName { id: ID.into(), name: "Taken".into() }];
    let contexts = contexts();
    let facts = Facts { contexts: Some(&contexts), names: &names, ..Facts::default() };
    match decode(ActionKind::CreateExperiment, params.as_object().unwrap()) {
        Ok(action) => check(&action, &facts),
        Err(DecodeError::Missing(names)) => names.iter().map(|name| format!("missing {name}")).collect(),
        Err(DecodeError::Invalid(problems)) => problems,
    }
}

#[test]
fn the_parameters_of_a_create_are_listed_in_the_order_of_the_questions() {
    assert_eq!(required(ActionKind::CreateExperiment), ["name", "context", "decision_points", "conditions"]);
    let empty = serde_json::Map::new();
    let missing = decode(ActionKind::CreateExperiment, &empty).unwrap_err();
    assert_eq!(missing.to_string(), "still needed: name, context, decision_points, conditions");
}

#[test]
fn a_create_is_checked_against_its_context_and_for_consistency() {
    let cases = [
        (json!({}), ""),
        (json!({ "name": " " }), "missing name"),
        (json!({ "conditions": [] }), "missing conditions"),
        (json!({ "name": null }), "missing name"),
        (json!({ "nme": "Foo" }), "`create_experiment` has no parameter `nme`; did you mean `name`?"),
        (json!({ "approved": true }), "`create_experiment` has no parameter `approved`; it has"),
        (json!({ "conditions": "both" }), "the parameter `conditions` of `create_experiment` does not fit"),
        (
            json!({ "tags": [1] }),
            "the parameter `tags` of `create_experiment` does not fit: invalid type: integer",
        ),
        (json!({ "conditions": [{ "code": "control", "wait": 1 }] }), "unknown field `wait`"),
        (json!({ "name": "Taken" }), "there is an experiment 'Taken' already"),
        (
            json!({ "context": "assign_prog" }),
            "this server has no context `assign_prog`: did you mean `assign-prog`?",
        ),
        (json!({ "context": "ASSIGN-PROG" }), "did you mean `assign-prog`? Upper and lower case differ"),
        (json!({ "context": "other" }), "this server has no context `other`: it has assign-prog"),
        (json!({ "decision_points": [{ "site": "steps", "target": "workspace" }] }), "has no site `steps`"),
        (json!({ "decision_points": [{ "site": "workspace", "target": "Steps" }] }), "did you mean `steps`?"),
        (
            json!({ "decision_points": [{ "site": "workspace", "target": "steps" },
            { "site": "workspace", "target": "steps" }] }),
            "the decision point `workspace / steps` is there twice",
        ),
        (json!({ "conditions": [{ "code": "control" }, { "code": "variant" }] }), ""),
        (json!({ "conditions": [{ "code": "control", "weight": 100 }, { "code": "variant" }] }), ""),
        (
            json!({ "conditions": [{ "code": "control", "weight": 99.9 }] }),
            "the weights must sum to 100, and they sum to 99.9",
        ),
        (
            json!({ "conditions": [{ "code": "control", "weight": -10 }, { "code": "variant", "weight": 110 }] }),
            "a weight is a percentage, and -10 is none",
        ),
        (
            json!({ "conditions": [{ "code": "control", "weight": 50 }, { "code": "control", "weight": 50 }] }),
            "the condition `control` is there twice",
        ),
        (json!({ "conditions": [{ "code": "default" }] }), "UpGrade keeps the code `default` for itself"),
        (
            json!({ "conditions": [{ "code": "controll" }] }),
            "has no condition `controll`: did you mean `control`?",
        ),
        (
            json!({ "conditions": [{ "code": "control", "weight": 50 }, { "code": "variant" }] }),
            "they sum to 50; variant has none: give all weights, or none for equal ones",
        ),
        (
            json!({ "conditions": [{ "code": "control", "weight": 33.3 }, { "code": "variant", "weight": 66.6 }] }),
            "they sum to 99.9",
        ),
        (json!({ "conditions": [{ "code": " " }] }), "a condition needs a code"),
        (json!({ "conditions": [{ "code": "Default" }] }), "UpGrade keeps the code `default` for itself"),
        (json!({ "tags": ["a", " "] }), "a tag must not be empty"),
        (json!({ "tags": ["a", "b", "a"] }), "the tag `a` is there twice"),
        (json!({ "inclusion_users": ["ada", ""] }), "it must not be empty"),
        (
            json!({ "inclusion_users": ["ada", "ada"] }),
            "the student of the inclusion list `ada` is there twice",
        ),
        (json!({ "exclusion_users": ["a\nb"] }), "`a b` on the exclusion list is no id of a student"),
        (
            json!({ "exclusion_groups": [{ "type": "classId", "group_id": "" }] }),
            "a group on the exclusion list has no group_id",
        ),
        (json!({ "assignment_unit": "group" }), "the assignment unit group needs a group_type"),
        (json!({ "assignment_unit": "group", "group_type": "classId", "consistency_rule": "group" }), ""),
        (json!({ "assignment_unit": "group", "group_type": "classid" }), "did you mean `classId`?"),
        (json!({ "group_type": "classId" }), "a group type goes with the assignment unit group only"),
        (
            json!({ "consistency_rule": "group" }),
            "the consistency rule group goes with the assignment unit group only",
        ),
        (json!({ "consistency_rule": "experiment" }), "`experiment` is no consistency rule"),
        (json!({ "assignment_unit": "within-subjects" }), "`within-subjects` is no assignment unit"),
        (
            json!({ "filter_mode": "includeall" }),
            "`includeall` is no filter mode; did you mean `includeAll`?",
        ),
        (json!({ "post_experiment_rule": { "rule": "assign", "condition_code": "variant" } }), ""),
        (
            json!({ "post_experiment_rule": { "rule": "assign", "condition_code": "third" } }),
            "which is none of the conditions",
        ),
        (
            json!({ "post_experiment_rule": { "rule": "continue", "condition_code": "variant" } }),
            "takes no condition",
        ),
        (json!({ "post_experiment_rule": { "rule": "revert" } }), "`revert` is no post-experiment rule"),
        (
            json!({ "inclusion_groups": [{ "type": "teamId", "group_id": "1" }] }),
            "has no group type `teamId`",
        ),
    ];
    for (changes, expected) in cases {
        let told = judged(changes.clone()).join("; ");
        match expected {
            "" => assert_eq!(told, "", "{changes}"),
            _ => assert!(told.contains(expected), "{changes}: {told}"),
        }
    }
}

#[test]
fn decimal_weights_may_add_up_to_100() {
    for weights in [vec![33.3, 33.3, 33.4], vec![0.1; 1000], vec![14.2857142857; 7]] {
        let conditions: Vec<Value> = weights
            .iter()
            .enumerate()
            .map(|(n, weight)| json!({ "code": n.to_string(), "weight": weight }))
            .collect();
        let params = create(json!({ "conditions": conditions }));
        let action = decode(ActionKind::CreateExperiment, params.as_object().unwrap()).unwrap();
        assert_eq!(check(&action, &Facts::default()), Vec::<String>::new(), "{weights:?}");
    }
}

#[test]
fn moves_between_statuses_follow_the_table() {
    use ExperimentState::*;
    let states = [Inactive, Draft, Preview, Scheduled, Enrolling, EnrollmentComplete, Cancelled, Archived];
    let usual = [
        (Inactive, vec![Preview, Scheduled, Enrolling, Cancelled]),
        (Draft, vec![]),
        (Preview, vec![Inactive, Enrolling]),
        (Scheduled, vec![Inactive, Enrolling]),
        (Enrolling, vec![EnrollmentComplete, Cancelled]),
        (EnrollmentComplete, vec![Enrolling, Cancelled]),
        (Cancelled, vec![Archived]),
        (Archived, vec![]),
    ];
    for (from, expected) in usual {
        let allowed: Vec<_> = states.iter().filter(|to| is_usual(&from, to)).cloned().collect();
        assert_eq!(allowed, expected, "from {from}");
    }
    assert!(!is_usual(&Unknown("frozen".into()), &Inactive));
}

/// Returns an experiment as the server returns it.
async fn experiment(state: ExperimentState, points: bool, weights: [f64; 2]) -> Experiment {
    let server = EmbeddedServer::builder().in_memory().start().await.unwrap();
    let client = UpgradeClient::builder(server.url()).build().unwrap();
    let mut new = upgrade_agent::client::NewExperiment::new("Foo", "assign-prog")
        .id(ID)
        .condition("control", weights[0])
        .condition("variant", weights[1]);
    if points {
        new = new.point("workspace", "analyzing_step_functions");
    }
    client.create(&new).await.unwrap();
    client.set_state(ID, &state).await.unwrap();
    client.experiment(ID).await.unwrap()
}

fn told(kind: ActionKind, params: Value, experiment: &Experiment) -> String {
    let action = decode(kind, params.as_object().unwrap()).unwrap();
    let facts = Facts { experiment: Some(experiment), ..Facts::default() };
    check(&action, &facts).join("; ")
}

#[tokio::test]
async fn an_experiment_starts_only_if_it_is_ready_and_is_not_moved_to_its_own_status() {
    let start = |force: bool| json!({ "experiment_id": ID, "status": "running", "force": force });
    let kind = ActionKind::UpdateExperimentStatus;
    let ready = experiment(ExperimentState::Inactive, true, [50.0, 50.0]).await;
    assert_eq!(told(kind, start(false), &ready), "");
    let pointless = experiment(ExperimentState::Inactive, false, [50.0, 50.0]).await;
    assert!(told(kind, start(false), &pointless).contains("has no decision points"));
    let light = experiment(ExperimentState::Inactive, true, [50.0, 20.0]).await;
    assert!(told(kind, start(false), &light).contains("sum to 70, not to 100"));
    assert_eq!(told(kind, start(true), &light), "");
    let running = experiment(ExperimentState::Enrolling, true, [50.0, 50.0]).await;
    assert_eq!(told(kind, start(true), &running), "experiment 'Foo' is enrolling already");
    let archive = json!({ "experiment_id": ID, "status": "archived" });
    assert!(
        told(kind, archive, &running).contains("usually becomes enrollmentComplete, cancelled, not archived")
    );
}

#[tokio::test]
async fn a_warning_explains_a_status_with_an_unexpected_effect() {
    let warned = |status: &str, experiment: &Experiment| {
        let params = json!({ "experiment_id": ID, "status": status });
        let action = decode(ActionKind::UpdateExperimentStatus, params.as_object().unwrap()).unwrap();
        let told = warnings(&action, &Facts { experiment: Some(experiment), ..Facts::default() });
        told.iter().map(ToString::to_string).collect::<Vec<_>>().join("; ")
    };
    let mut experiment = experiment(ExperimentState::Enrolling, true, [50.0, 50.0]).await;
    assert!(warned("enrolling", &experiment).contains("nobody takes part"));
    assert_eq!(warned("enrollmentComplete", &experiment), "");
    experiment.inclusion.users.push("ada".to_owned());
    assert_eq!(warned("enrolling", &experiment), "");
    experiment.post_rule = upgrade_agent::client::PostRule::assign("variant");
    assert!(warned("enrollmentComplete", &experiment).contains("those enrolled get variant"));
    assert_eq!(warned("cancelled", &experiment), "");
}

#[tokio::test]
async fn conditions_of_an_experiment_with_students_change_only_by_force() {
    let params = |force: bool| json!({ "experiment_id": ID, "force": force, "conditions": [{ "code": "control", "weight": 100 }] });
    let kind = ActionKind::UpdateExperiment;
    for state in [ExperimentState::Enrolling, ExperimentState::EnrollmentComplete] {
        let experiment = experiment(state, true, [50.0, 50.0]).await;
        assert!(told(kind, params(false), &experiment).contains("must not change while students are in it"));
        assert_eq!(told(kind, params(true), &experiment), "");
        assert_eq!(told(kind, json!({ "experiment_id": ID, "name": "Bar" }), &experiment), "");
    }
    let inactive = experiment(ExperimentState::Inactive, true, [50.0, 50.0]).await;
    assert_eq!(told(kind, params(false), &inactive), "");
    assert!(told(kind, json!({ "experiment_id": ID }), &inactive).contains("must change something"));
    let rule = json!({ "experiment_id": ID, "post_experiment_rule": { "rule": "assign", "condition_code": "gone" } });
    assert!(told(kind, rule, &inactive).contains("none of the conditions"));
}

#[test]
fn an_id_of_a_student_must_fit_into_a_request() {
    let told = |kind: ActionKind, params: Value| {
        let action = decode(kind, params.as_object().unwrap()).unwrap();
        check(&action, &Facts::default()).join("; ")
    };
    let init = |id: &str| json!({ "user_id": id });
    let long = "x".repeat(256);
    for id in ["a\u{0}b", "a\nb", " ada", "ada\t", &long] {
        let said = told(ActionKind::InitExperimentUser, init(id));
        assert!(said.contains("is no id of a student: it must not"), "{id:?}: {said}");
        let asked = json!({ "user_id": id, "context": "c" });
        assert!(
            told(ActionKind::GetDecisionPointAssignments, asked).contains("is no id of a student"),
            "{id:?}"
        );
        let visit = json!({ "user_id": id, "decision_point": { "site": "s", "target": "" } });
        assert!(told(ActionKind::MarkDecisionPoint, visit).contains("is no id of a student"), "{id:?}");
    }
    for id in ["ada", "ada lovelace", "Zoë", "6f", &"x".repeat(255)] {
        assert_eq!(told(ActionKind::InitExperimentUser, init(id)), "", "{id:?}");
    }
    let groups = [
        (json!({ "user_id": "a", "group": { "": ["c1"] } }), "a group needs its type"),
        (json!({ "user_id": "a", "group": { "classId": ["c1", "c1"] } }), "`c1` is there twice"),
        (
            json!({ "user_id": "a", "group": { "classId": [" "] } }),
            "a group of the type `classId` has no name",
        ),
        (
            json!({ "user_id": "a", "working_group": { "classId": "" } }),
            "the working group of the type `classId`",
        ),
        (json!({ "user_id": "a", "group": { "classId": [] } }), ""),
    ];
    for (params, expected) in groups {
        let said = told(ActionKind::InitExperimentUser, params.clone());
        assert!(
            if expected.is_empty() { said.is_empty() } else { said.contains(expected) },
            "{params}: {said}"
        );
    }
}

#[tokio::test]
async fn a_visit_of_an_experiment_needs_one_of_its_points_and_conditions() {
    let experiment = experiment(ExperimentState::Enrolling, true, [50.0, 50.0]).await;
    let visit = |target: &str, code: Value| {
        json!({ "user_id": "ada", "decision_point": { "site": "workspace", "target": target },
            "assigned_condition": { "experiment_id": ID, "condition_code": code } })
    };
    let kind = ActionKind::MarkDecisionPoint;
    assert_eq!(told(kind, visit("analyzing_step_functions", json!("control")), &experiment), "");
    assert_eq!(told(kind, visit("analyzing_step_functions", Value::Null), &experiment), "");
    let said = told(kind, visit("analyzing_step_function", json!("contrl")), &experiment);
    assert!(said.contains("has no condition `contrl`: did you mean `control`?"), "{said}");
    assert!(said.contains("did you mean `workspace / analyzing_step_functions`?"), "{said}");
}

#[tokio::test]
async fn an_update_is_checked_together_with_the_remaining_parts() {
    let kind = ActionKind::UpdateExperiment;
    let change = |changes: Value| {
        let mut whole = json!({ "experiment_id": ID });
        whole.as_object_mut().unwrap().extend(changes.as_object().unwrap().clone());
        whole
    };
    let mut old = experiment(ExperimentState::Inactive, true, [50.0, 50.0]).await;
    let only = json!({ "conditions": [{ "code": "control", "weight": 100 }] });
    assert_eq!(told(kind, change(only.clone()), &old), "");
    old.post_rule = upgrade_agent::client::PostRule::assign("variant");
    assert!(told(kind, change(only.clone()), &old).contains("assigns `variant`, which this update removes"));
    let with_rule =
        json!({ "conditions": only["conditions"], "post_experiment_rule": { "rule": "continue" } });
    assert_eq!(told(kind, change(with_rule), &old), "");

    old.assignment_unit = "group".into();
    old.group_type = Some("classId".into());
    old.consistency_rule = Some("group".into());
    let single = json!({ "assignment_unit": "individual" });
    assert!(
        told(kind, change(single), &old)
            .contains("the consistency rule group goes with the assignment unit group")
    );
    let both = json!({ "assignment_unit": "individual", "consistency_rule": "individual" });
    assert_eq!(told(kind, change(both), &old), "");

    old.design = "Factorial".into();
    assert!(told(kind, change(only), &old).contains("is factorial"));
    assert_eq!(told(kind, change(json!({ "name": "Bar" })), &old), "");
    old.assignment_unit = "within-subjects".into();
    assert!(
        told(kind, change(json!({ "consistency_rule": "individual" })), &old).contains("is within-subjects")
    );
}

#[tokio::test]
async fn remaining_parts_must_be_known_in_the_new_context() {
    let contexts = contexts();
    let mut old = experiment(ExperimentState::Inactive, true, [50.0, 50.0]).await;
    old.context = vec!["elsewhere".into()];
    let params = json!({ "experiment_id": ID, "context": "assign-prog" });
    let facts = Facts { experiment: Some(&old), contexts: Some(&contexts), ..Facts::default() };
    let action = decode(ActionKind::UpdateExperiment, params.as_object().unwrap()).unwrap();
    let said = check(&action, &facts).join("; ");
    assert!(
        said.contains("does not know the decision points of experiment 'Foo': give the decision_points"),
        "{said}"
    );
    assert!(!said.contains("does not know the conditions"), "{said}");
    old.conditions[0].code = "third".into();
    old.group_type = Some("teamId".into());
    let facts = Facts { experiment: Some(&old), contexts: Some(&contexts), ..Facts::default() };
    let said = check(&action, &facts).join("; ");
    assert!(said.contains("does not know the conditions of experiment 'Foo'"), "{said}");
    assert!(said.contains("has no group type `teamId`"), "{said}");
}

#[tokio::test]
async fn unit_and_context_of_an_experiment_with_students_change_only_by_force() {
    let running = experiment(ExperimentState::Enrolling, true, [50.0, 50.0]).await;
    let kind = ActionKind::UpdateExperiment;
    let cases = [
        (
            json!({ "assignment_unit": "group", "group_type": "classId" }),
            "its assignment unit must not change",
        ),
        (json!({ "context": "mathstream" }), "its context must not change"),
        (json!({ "context": "assign-prog", "assignment_unit": "individual" }), ""),
    ];
    for (changes, expected) in cases {
        let mut params = json!({ "experiment_id": ID });
        params.as_object_mut().unwrap().extend(changes.as_object().unwrap().clone());
        let said = told(kind, params.clone(), &running);
        assert!(
            if expected.is_empty() { said.is_empty() } else { said.contains(expected) },
            "{params}: {said}"
        );
        params["force"] = json!(true);
        assert_eq!(told(kind, params, &running), "");
    }
}

#[tokio::test]
async fn an_invalid_weight_keeps_an_experiment_from_starting() {
    let bad = experiment(ExperimentState::Inactive, true, [-10.0, 110.0]).await;
    let kind = ActionKind::UpdateExperimentStatus;
    for status in ["enrolling", "scheduled"] {
        let said = told(kind, json!({ "experiment_id": ID, "status": status }), &bad);
        assert!(said.contains("has the weight -10, so it cannot start"), "{said}");
    }
    assert_eq!(told(kind, json!({ "experiment_id": ID, "status": "preview" }), &bad), "");
}

/// Servers up to 6.2 fill no payloads and keep the lists.
#[tokio::test]
async fn no_warning_is_given_for_effects_that_an_old_server_lacks() {
    use upgrade_agent::actions::Warning;
    use upgrade_agent::client::Dialect;
    let old = experiment(ExperimentState::Inactive, true, [50.0, 50.0]).await;
    let params = json!({ "experiment_id": ID, "context": "mathstream", "name": "Bar" });
    let action = decode(ActionKind::UpdateExperiment, params.as_object().unwrap()).unwrap();
    let told = |dialect| {
        let facts = Facts { experiment: Some(&old), dialect: Some(dialect), ..Facts::default() };
        warnings(&action, &facts)
    };
    assert_eq!(told(Dialect::V62), []);
    let newer = told(Dialect::V65);
    assert!(
        matches!(newer.as_slice(), [Warning::ListsDropped { .. }, Warning::DefaultPayloads { pairs: 2 }]),
        "{newer:?}"
    );
}

#[test]
fn invalid_parameters_are_reported_in_a_bounded_sentence() {
    let huge = "x".repeat(1_000_000);
    for params in [json!({ "conditions": huge }), json!({ huge.clone(): 1 })] {
        let why = decode(ActionKind::CreateExperiment, params.as_object().unwrap()).unwrap_err().to_string();
        assert!(why.contains("`create_experiment`") && why.len() < 1_000, "{} bytes", why.len());
    }
}

#[test]
fn an_action_read_back_from_its_own_parameters_is_the_same() {
    let params = create(
        json!({ "tags": ["a"], "post_experiment_rule": { "rule": "assign", "condition_code": "control" } }),
    );
    let action = decode(ActionKind::CreateExperiment, params.as_object().unwrap()).unwrap();
    assert_eq!(decode(action.kind(), &action.params()).unwrap(), action);
    assert!(warnings(&action, &Facts::default())[0].to_string().contains("nobody takes part"));
}
