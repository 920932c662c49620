//! The report of a simulation is true: it counts groups as groups, and states the effects on the server
//! and the omissions.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]

use crate::common;

use common::World;
use common::script::{Script, request};
use serde_json::{Value, json};
use upgrade_agent::actions::{ActionKind, Facts, Warning, check, decode, warnings};
use upgrade_agent::agent::Turn;
use upgrade_agent::balance::Verdict;
use upgrade_agent::client::{
    AssignmentAlgorithm, AssignmentUnit, Experiment, ExperimentState, FilterMode, GroupMember, NewExperiment,
    NewUser,
};
use upgrade_agent::state::LogStatus;

const SITE: &str = "SelectSection";
const TARGET: &str = "absolute_value_plot_equality";

/// Returns an experiment that the tests adapt.
fn experiment(name: &str) -> NewExperiment {
    let new = NewExperiment::new(name, "assign-prog").id(common::id(1)).point(SITE, TARGET);
    new.condition("control", 50.0).condition("variant", 50.0).include_all()
}

async fn given(new: NewExperiment, state: ExperimentState) -> World {
    let world = World::new().await;
    world.behind().create(&new).await.unwrap();
    if state != ExperimentState::Inactive {
        world.behind().set_state(&common::id(1), &state).await.unwrap();
    }
    world
}

/// Runs an action, with a yes if one is needed, and returns the last turn.
async fn done(world: &World, action: &str, params: Value) -> Turn {
    let script = Script::new();
    let agent = world.agent(&script).await;
    script.add(request(action, params));
    let turn = agent.turn("t", "please").await.unwrap();
    match turn.pending {
        Some(_) => agent.turn("t", "yes").await.unwrap(),
        None => turn,
    }
}

fn test(changes: Value) -> Value {
    let mut whole = json!({ "experiment_id": common::id(1), "num_users": 20 });
    whole.as_object_mut().unwrap().extend(changes.as_object().unwrap().clone());
    whole
}

#[tokio::test]
async fn students_of_one_group_are_one_draw() {
    for mode in ["offline", "live"] {
        let world = given(experiment("Foo").per_group("classId"), ExperimentState::Enrolling).await;
        let params = test(json!({ "mode": mode, "working_group": { "classId": "c1" } }));
        let turn = done(&world, "test_condition_balance", params).await;
        let report = turn.balance.unwrap_or_else(|| panic!("{mode}: {}", turn.reply));
        assert_eq!((report.users, report.groups, report.left_out), (20, Some(1), 0), "{mode}");
        let observed: u64 = report.conditions.iter().map(|one| one.observed).sum();
        assert_eq!(observed, 1, "{mode}");
        assert!(turn.reply.contains("each draws once: 1 group of 20 students"), "{}", turn.reply);
        assert!(turn.reply.contains("These are too few groups"), "{}", turn.reply);
    }
}

#[tokio::test]
async fn students_with_their_own_groups_are_as_many_draws() {
    for mode in ["offline", "live"] {
        let world = given(experiment("Foo").per_group("classId"), ExperimentState::Enrolling).await;
        // Groups of another kind do not affect the draw.
        let params = test(json!({ "mode": mode, "group": { "schoolId": ["s1"] } }));
        let turn = done(&world, "test_condition_balance", params).await;
        let report = turn.balance.unwrap_or_else(|| panic!("{mode}: {}", turn.reply));
        assert_eq!((report.users, report.groups, report.left_out), (20, Some(20), 0), "{mode}");
        assert!(report.conditions.iter().all(|one| one.observed > 2), "{mode}: {report:?}");
    }
}

#[tokio::test]
async fn students_without_a_working_group_are_not_drawn_for() {
    for (mode, working, told) in [
        (
            "offline",
            json!(null),
            "a student without a working group of that type is left out: give working_group",
        ),
        (
            "live",
            json!(null),
            "a student without a working group of that type is left out: give working_group",
        ),
        ("offline", json!({ "classId": "c2" }), "the working group c2 is none of the groups"),
    ] {
        let world = given(experiment("Foo").per_group("classId"), ExperimentState::Enrolling).await;
        let params = json!({ "mode": mode, "group": { "classId": ["c1"] }, "working_group": working });
        let turn = done(&world, "test_condition_balance", test(params)).await;
        assert!(turn.reply.contains(told), "{mode}: {}", turn.reply);
        assert!(turn.balance.is_none());
    }
}

/// Proposes an action, and returns the turn with the question or the result.
async fn asked(world: &World, action: &str, params: Value) -> Turn {
    let script = Script::new();
    script.add(request(action, params));
    world.agent(&script).await.turn("t", "please").await.unwrap()
}

fn visit(user: &str) -> Value {
    json!({ "user_id": user, "context": "assign-prog", "site": SITE, "target": TARGET })
}

#[tokio::test]
async fn the_reason_for_no_condition_includes_the_known_groups() {
    let group = |id: &str| GroupMember { group_type: "classId".to_owned(), group_id: id.to_owned() };
    let mut excluding = experiment("Foo");
    excluding.exclusion.groups.push(group("c1"));
    let world = given(excluding, ExperimentState::Enrolling).await;
    world.behind().init_user(&NewUser::new("ann").in_group("classId", "c1")).await.unwrap();
    let turn = done(&world, "visit_decision_point", visit("ann")).await;
    assert!(turn.reply.contains("excludes this student or a group of his"), "{}", turn.reply);

    let world = given(experiment("Foo").per_group("classId"), ExperimentState::Enrolling).await;
    let mut bob = NewUser::new("bob").in_group("classId", "c1");
    bob.working_group = Some([("classId".to_owned(), "c9".to_owned())].into());
    for (user, told) in [
        (bob, "he works in c9, which is none of his groups of the type classId"),
        (NewUser::new("eve").in_group("schoolId", "s1"), "he works in none of the type classId"),
    ] {
        world.behind().init_user(&user).await.unwrap();
        let turn = done(&world, "visit_decision_point", visit(&user.id)).await;
        assert!(turn.reply.contains(told), "{}", turn.reply);
    }
}

#[tokio::test]
async fn a_journey_needs_distinct_students_and_the_context_of_its_experiment() {
    let world = given(experiment("Foo"), ExperimentState::Enrolling).await;
    let journey = |context: &str, ids: Value| json!({ "context": context, "experiment_id": common::id(1), "user_ids": ids });
    let turn =
        asked(&world, "simulate_user_journey", journey("assign-prog", json!(["ann", "bob", "ann"]))).await;
    assert!(turn.reply.contains("student 'ann' is named twice"), "{}", turn.reply);
    let turn = asked(&world, "simulate_user_journey", journey("mathstream", json!(["ann"]))).await;
    assert!(turn.reply.contains("'Foo' is in the context assign-prog"), "{}", turn.reply);
    let turn = asked(&world, "simulate_user_journey", journey("assign-prog", json!(["ann", "bob"]))).await;
    assert!(turn.pending.is_some(), "{}", turn.reply);
    let named = "Simulate the journey of students 'ann' and 'bob' in context 'assign-prog'?\n1. make the students known";
    assert!(turn.reply.starts_with(named), "{}", turn.reply);
}

#[tokio::test]
async fn a_test_with_real_students_explains_the_offline_split_and_the_effects_of_a_live_one() {
    let world = given(experiment("Foo"), ExperimentState::Enrolling).await;
    let why = "that is why I compute the split first";
    let turn = asked(&world, "test_condition_balance", test(json!({}))).await;
    assert!(turn.reply.contains(why), "{}", turn.reply);
    let turn = asked(&world, "test_condition_balance", test(json!({ "mode": "offline" }))).await;
    assert!(!turn.reply.contains(why), "{}", turn.reply);
    let turn = asked(&world, "test_condition_balance", test(json!({ "mode": "live" }))).await;
    assert!(turn.reply.contains("their enrolments stay on the server"), "{}", turn.reply);
    assert!(
        turn.reply.contains("Note: It is enrolling: the played students are enrolled among the real ones")
    );
    let turn = asked(
        &world,
        "simulate_user_journey",
        json!({ "context": "assign-prog",
        "experiment_id": common::id(1), "user_ids": ["ann"] }),
    )
    .await;
    assert!(turn.reply.contains("enrolled among the real ones"), "{}", turn.reply);
}

#[tokio::test]
async fn a_test_that_starts_an_experiment_warns_like_a_start() {
    let mut new = experiment("Foo");
    new.filter_mode = FilterMode::ExcludeAll;
    new.decision_points[0].exclude_if_reached = true;
    let world = given(new, ExperimentState::Inactive).await;
    for (action, params) in [
        ("test_condition_balance", test(json!({}))),
        (
            "simulate_user_journey",
            json!({ "context": "assign-prog", "experiment_id": common::id(1),
            "user_ids": ["ann"], "steps": [{ "do": "set_status", "status": "enrolling" }] }),
        ),
    ] {
        let turn = asked(&world, action, params).await;
        for told in ["real students who come", "nobody takes part", "Starting it leaves out, for good"] {
            assert!(turn.reply.contains(told), "{action}: {told}: {}", turn.reply);
        }
    }
    let turn = asked(&world, "test_condition_balance", test(json!({ "mode": "offline" }))).await;
    assert!(turn.pending.is_none() && !turn.reply.contains("Note:"), "{}", turn.reply);
}

#[tokio::test]
async fn a_computed_split_is_in_the_log() {
    let world = given(experiment("Foo"), ExperimentState::Enrolling).await;
    let script = Script::new();
    let agent = world.agent(&script).await;
    script.add(request("test_condition_balance", test(json!({}))));
    let turn = agent.turn("t", "please").await.unwrap();
    let log = agent.conversation("t").await.unwrap().unwrap().execution_log;
    assert_eq!((log.len(), &log[0].summary), (1, &turn.reply));
    assert_eq!((log[0].turn, log[0].status), (1, LogStatus::Success));
    assert_eq!(log[0].action.params()["mode"], "offline");
    assert_eq!(log[0].result["users"], 20);
    assert_eq!(log[0].experiment.as_ref().unwrap().name, "Foo");
}

#[tokio::test]
async fn an_adaptive_draw_is_reported_as_not_following_the_weights() {
    let world = given(experiment("Foo"), ExperimentState::Enrolling).await;
    let mut adaptive = world.behind().experiment(&common::id(1)).await.unwrap();
    adaptive.assignment_algorithm = AssignmentAlgorithm::TsConfigurable;
    let facts = Facts { experiment: Some(&adaptive), ..Facts::default() };
    let of = |mode: &str| {
        decode(ActionKind::TestConditionBalance, test(json!({ "mode": mode })).as_object().unwrap()).unwrap()
    };
    assert!(warnings(&of("live"), &facts).contains(&Warning::SplitAdapts));
    assert!(check(&of("live"), &facts).is_empty());
    assert!(warnings(&of("offline"), &facts).is_empty());
    assert!(check(&of("offline"), &facts)[0].contains("its split cannot be computed"));
}

#[tokio::test]
async fn the_number_of_students_has_the_limit_of_the_agent() {
    let world = given(experiment("Foo"), ExperimentState::Enrolling).await;
    let journey = |more: Value| {
        let mut whole = json!({ "context": "assign-prog" });
        whole.as_object_mut().unwrap().extend(more.as_object().unwrap().clone());
        ("simulate_user_journey", whole)
    };
    for (most, (action, params), told) in [
        (3, ("test_condition_balance", test(json!({}))), "num_users is 20, and it must be from 1 to 3"),
        (3, journey(json!({ "num_users": 4 })), "num_users is 4, and it must be from 1 to 3"),
        (3, journey(json!({ "user_ids": ["a", "b", "c", "d"] })), "at most 3 students"),
        (0, journey(json!({ "num_users": 2 })), "it must be from 1 to 1"),
        (1000, ("test_condition_balance", test(json!({ "num_users": 1001 }))), "it must be from 1 to 1000"),
        (2000, ("test_condition_balance", test(json!({ "num_users": 2001 }))), "it must be from 1 to 2000"),
        (
            2000,
            ("test_condition_balance", test(json!({ "num_users": 2000 }))),
            "The split of experiment 'Foo'",
        ),
    ] {
        let script = Script::new();
        script.add(request(action, params));
        let agent = world.builder(&script).await.max_students(most).build().unwrap();
        let turn = agent.turn("t", "please").await.unwrap();
        assert!(turn.reply.contains(told), "{most}: {}", turn.reply);
    }
}

#[tokio::test]
async fn expected_numbers_follow_the_draw_for_weights_of_any_sum() {
    for (weights, expected) in [
        ([100.0, 0.0], [20.0, 0.0]),
        ([0.0, 100.0], [0.0, 20.0]),
        ([0.0, 0.0], [20.0, 0.0]),
        ([10.0, 20.0], [16.0, 4.0]),
        ([80.0, 70.0], [16.0, 4.0]),
    ] {
        for mode in ["offline", "live"] {
            let new = NewExperiment::new("Foo", "assign-prog").id(common::id(1)).point(SITE, TARGET);
            let new = new.condition("control", weights[0]).condition("variant", weights[1]).include_all();
            let world = given(new, ExperimentState::Enrolling).await;
            let turn = done(&world, "test_condition_balance", test(json!({ "mode": mode }))).await;
            let report = turn.balance.unwrap_or_else(|| panic!("{weights:?}: {}", turn.reply));
            let told: Vec<f64> = report.conditions.iter().map(|one| one.expected).collect();
            assert_eq!(told, expected, "{mode} {weights:?}");
            assert!(
                report.p_value.is_none_or(|p| (0.001..=1.0).contains(&p)),
                "{mode} {weights:?}: {report:?}"
            );
            assert_ne!(report.verdict, Verdict::Unbalanced, "{mode} {weights:?}");
            assert_eq!(report.users, 20);
        }
    }
}

#[tokio::test]
async fn an_impossible_live_test_is_refused_and_changes_nothing() {
    use ExperimentState::{Archived, Cancelled, Inactive, Preview};
    for (state, asks) in [(Cancelled, false), (Archived, false), (Preview, true), (Inactive, true)] {
        let world = given(experiment("Foo"), state.clone()).await;
        let turn = asked(&world, "test_condition_balance", test(json!({ "mode": "live" }))).await;
        assert_eq!(turn.pending.is_some(), asks, "{state}: {}", turn.reply);
        assert_eq!(turn.reply.contains("would have to start it again"), !asks, "{state}: {}", turn.reply);
        let turn = asked(&world, "test_condition_balance", test(json!({ "mode": "offline" }))).await;
        assert_eq!(turn.balance.map(|report| report.users), Some(20), "{state}: {}", turn.reply);
        assert_eq!(world.behind().experiment(&common::id(1)).await.unwrap().state, state);
    }
}

#[tokio::test]
async fn an_experiment_without_a_split_is_not_tested() {
    let world = given(experiment("Foo"), ExperimentState::Enrolling).await;
    let made = world.behind().experiment(&common::id(1)).await.unwrap();
    for (changed, told) in [
        (
            Experiment { assignment_unit: AssignmentUnit::WithinSubjects, ..made.clone() },
            "is within-subjects",
        ),
        (Experiment { conditions: Vec::new(), ..made.clone() }, "no conditions, so there is no split"),
        (Experiment { decision_points: Vec::new(), ..made.clone() }, "no student can come to it"),
        (
            Experiment { decision_points: Vec::new(), state: ExperimentState::Inactive, ..made.clone() },
            "cannot start",
        ),
    ] {
        let facts = Facts { experiment: Some(&changed), ..Facts::default() };
        let params = test(json!({ "mode": "live" }));
        let action = decode(ActionKind::TestConditionBalance, params.as_object().unwrap()).unwrap();
        let found = check(&action, &facts);
        assert!(found.len() == 1 && found[0].contains(told), "{found:?}");
    }
}

#[tokio::test]
async fn a_crowd_that_is_completely_excluded_is_reported() {
    let mut excluding = experiment("Foo").per_group("classId");
    excluding.exclusion.groups.push(GroupMember { group_type: "classId".into(), group_id: "c1".into() });
    let world = given(excluding, ExperimentState::Inactive).await;
    let params = test(json!({ "mode": "live", "working_group": { "classId": "c1" } }));
    let turn = done(&world, "test_condition_balance", params).await;
    let report = turn.balance.as_ref().unwrap();
    assert_eq!((report.users, report.left_out, report.verdict), (0, 20, Verdict::NothingToCompare));
    assert!(turn.reply.contains("Nobody got a condition") && turn.reply.contains("is inactive again"));
    assert_eq!(world.behind().enrollment(&common::id(1)).await.unwrap().users, 0);
}

#[tokio::test]
async fn a_journey_of_many_students_is_summarized_and_keeps_the_log_short() {
    let world = given(experiment("Foo"), ExperimentState::Enrolling).await;
    let script = Script::new();
    let agent = world.builder(&script).await.client(world.behind()).students_at_once(8).build().unwrap();
    let visit = json!({ "do": "visit", "site": SITE, "target": TARGET });
    let elsewhere = json!({ "do": "assign" });
    let steps: Vec<Value> = (0..10).flat_map(|_| [elsewhere.clone(), visit.clone()]).collect();
    script.add(request(
        "simulate_user_journey",
        json!({ "context": "assign-prog", "experiment_id": common::id(1), "num_users": 100, "steps": steps }),
    ));
    agent.turn("t", "please").await.unwrap();
    let turn = agent.turn("t", "yes").await.unwrap();
    assert!(turn.reply.contains("of them would get control at SelectSection"), "{}", turn.reply);
    assert!(turn.reply.contains("of them got variant at SelectSection"), "{}", turn.reply);
    assert!(turn.reply.lines().count() < 30, "{}", turn.reply);
    let entry = agent.conversation("t").await.unwrap().unwrap().execution_log.pop().unwrap();
    assert_eq!(entry.result["steps"][1]["tally"].as_array().unwrap().len(), 2);
    assert!(entry.result.to_string().len() < 10_000);
}

#[tokio::test]
async fn a_thousand_simulated_students_are_all_enrolled() {
    let world = given(experiment("Foo"), ExperimentState::Inactive).await;
    let script = Script::new();
    let agent = world.builder(&script).await.client(world.behind()).students_at_once(16).build().unwrap();
    script.add(request("test_condition_balance", test(json!({ "num_users": 1000 }))));
    agent.turn("t", "please").await.unwrap();
    let turn = agent.turn("t", "yes").await.unwrap();
    assert_eq!(turn.balance.as_ref().unwrap().users, 1000, "{}", turn.reply);
    assert_eq!(turn.balance.unwrap().verdict, Verdict::Balanced);
    assert_eq!(world.behind().enrollment(&common::id(1)).await.unwrap().users, 1000);
}
