//! What is played, computed and counted is told as it is: groups as groups, what stays on the server, what was left out.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]

mod common;

use common::World;
use common::script::{Script, request};
use serde_json::{Value, json};
use upgrade_agent::agent::Turn;
use upgrade_agent::client::{ExperimentState, NewExperiment};

const SITE: &str = "SelectSection";
const TARGET: &str = "absolute_value_plot_equality";

/// An experiment that the tests change to their need.
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

/// What comes of an action, with a yes where one is asked for.
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
async fn students_with_groups_of_their_own_are_as_many_draws() {
    for mode in ["offline", "live"] {
        let world = given(experiment("Foo").per_group("classId"), ExperimentState::Enrolling).await;
        // Groups of another kind are nothing to the draw.
        let params = test(json!({ "mode": mode, "group": { "schoolId": ["s1"] } }));
        let turn = done(&world, "test_condition_balance", params).await;
        let report = turn.balance.unwrap_or_else(|| panic!("{mode}: {}", turn.reply));
        assert_eq!((report.users, report.groups, report.left_out), (20, Some(20), 0), "{mode}");
        assert!(report.conditions.iter().all(|one| one.observed > 2), "{mode}: {report:?}");
    }
}

#[tokio::test]
async fn a_group_without_a_working_group_is_not_drawn_for() {
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
