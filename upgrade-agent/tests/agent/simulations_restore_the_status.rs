//! A plan that changes a status restores exactly what it changed, whatever happens in between.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]

use crate::common;

use common::World;
use common::proxy::Fault;
use std::sync::Arc;

use agentgraph::MemorySaver;
use agentgraph::store::MemoryStore;
use agentgraph_llm::Reply;
use common::script::{Script, request, wants};
use serde_json::{Value, json};
use upgrade_agent::actions::ActionKind;
use upgrade_agent::agent::{Turn, UpgradeAgent};
use upgrade_agent::client::ExperimentState::{
    self, Cancelled, Enrolling, EnrollmentComplete, Inactive, Preview,
};
use upgrade_agent::client::{ExperimentPatch, NewDecisionPoint};

const SITE: &str = "SelectSection";
const TARGET: &str = "absolute_value_plot_equality";

fn balance(students: u32) -> Value {
    json!({ "experiment_id": common::id(1), "num_users": students })
}

fn journey(steps: Value) -> Value {
    json!({ "context": "assign-prog", "experiment_id": common::id(1), "user_ids": ["ann"], "steps": steps })
}

async fn status(world: &World) -> ExperimentState {
    world.behind().experiment(&common::id(1)).await.unwrap().state
}

async fn enrolled(world: &World) -> u64 {
    world.behind().enrollment(&common::id(1)).await.unwrap().users
}

/// Returns the statuses to which the experiment was moved.
async fn moves(world: &World) -> Vec<ExperimentState> {
    let log = world.behind().experiment(&common::id(1)).await.unwrap().state_log;
    log.into_iter().map(|change| change.to).collect()
}

/// Returns a world with the experiment `Foo`, and an agent that asks for a yes to an action.
async fn asked(first: ExperimentState, action: &str, params: Value) -> (World, UpgradeAgent, Script) {
    let world = World::new().await;
    let script = Script::new();
    world.experiment("Foo", first).await;
    let agent = world.agent(&script).await;
    script.add(request(action, params));
    let turn = agent.turn("t", "please").await.unwrap();
    assert!(turn.pending.is_some(), "{}", turn.reply);
    (world, agent, script)
}

/// Says yes, and moves the experiment without the agent while a request is held.
async fn overtaken(
    world: &World,
    agent: &UpgradeAgent,
    (line, hold): (&str, Fault),
    to: ExperimentState,
) -> Turn {
    world.proxy.fail(line, hold, 1);
    let meanwhile = async {
        world.proxy.hangs().await;
        world.behind().set_state(&common::id(1), &to).await.unwrap();
        world.proxy.release();
    };
    let (turn, ()) = tokio::join!(agent.turn("t", "yes"), meanwhile);
    turn.unwrap()
}

#[tokio::test]
async fn a_status_changed_by_others_before_the_first_step_is_kept() {
    let steps = json!([{ "do": "set_status", "status": "enrolling" }, { "do": "assign" }]);
    for other in [Preview, Enrolling, Cancelled] {
        let (world, agent, _) = asked(Inactive, "simulate_user_journey", journey(steps.clone())).await;
        let turn = overtaken(&world, &agent, ("POST /v6/init", Fault::Hold), other.clone()).await;
        let told = format!("'Foo' has become {other} meanwhile, by somebody else: I left it as it is");
        assert!(turn.reply.contains(&told), "{}", turn.reply);
        assert_eq!(moves(&world).await, [other]);
        assert!(!turn.reply.contains("again."), "{}", turn.reply);
    }
}

#[tokio::test]
async fn a_status_changed_by_others_between_two_steps_is_kept() {
    let steps = json!([{ "do": "set_status", "status": "enrolling" }, { "do": "assign" },
        { "do": "set_status", "status": "enrollmentComplete" }]);
    let (world, agent, _) = asked(Inactive, "simulate_user_journey", journey(steps)).await;
    let turn = overtaken(&world, &agent, ("POST /v6/assign", Fault::Hold), Cancelled).await;
    assert!(turn.reply.contains("'Foo' has become cancelled meanwhile, by somebody else"), "{}", turn.reply);
    assert!(turn.reply.contains("3 of 4 steps were done"), "{}", turn.reply);
    assert_eq!(moves(&world).await, [Enrolling, Cancelled]);
}

#[tokio::test]
async fn no_student_is_simulated_in_a_status_that_others_set() {
    let (world, agent, _) = asked(Inactive, "test_condition_balance", balance(5)).await;
    let turn = overtaken(&world, &agent, ("POST /experiments/state", Fault::HoldAfter), Preview).await;
    assert!(turn.reply.contains("'Foo' has become preview meanwhile, by somebody else"), "{}", turn.reply);
    assert_eq!((moves(&world).await, enrolled(&world).await), (vec![Enrolling, Preview], 0));
    assert!(!world.proxy.heard().iter().any(|line| line.starts_with("POST /v6/")));
}

#[tokio::test]
async fn a_status_changed_by_others_before_the_end_is_kept() {
    let (world, agent, _) = asked(Inactive, "test_condition_balance", balance(1)).await;
    let turn = overtaken(&world, &agent, ("POST /v6/mark", Fault::Hold), EnrollmentComplete).await;
    let told = "has become enrollmentComplete meanwhile, by somebody else, so I left it as it is";
    assert!(turn.reply.contains(told), "{}", turn.reply);
    assert_eq!(moves(&world).await, [Enrolling, EnrollmentComplete]);
}

#[tokio::test]
async fn a_restore_that_fails_is_retried() {
    for fault in [Fault::Status(500), Fault::HangUp, Fault::HangUpAfter] {
        let (world, agent, _) = asked(Inactive, "test_condition_balance", balance(1)).await;
        // The first such call, the start of the experiment, still succeeds.
        let start = async {
            world.proxy.hangs().await;
            world.proxy.fail("POST /experiments/state", fault.clone(), 2);
            world.proxy.release();
        };
        world.proxy.fail("POST /v6/init", Fault::Hold, 1);
        let (turn, ()) = tokio::join!(agent.turn("t", "yes"), start);
        let turn = turn.unwrap();
        assert!(turn.reply.contains("is inactive again"), "{fault:?}: {}", turn.reply);
        assert_eq!(moves(&world).await, [Enrolling, Inactive], "{fault:?}");
    }
}

#[tokio::test]
async fn a_restore_that_fails_for_good_is_reported() {
    let (world, agent, script) = asked(Inactive, "test_condition_balance", balance(1)).await;
    world.proxy.fail("POST /v6/init", Fault::Hold, 1);
    let start = async {
        world.proxy.hangs().await;
        world.proxy.fail("POST /experiments/state", Fault::Status(500), 9);
        world.proxy.release();
    };
    let (turn, ()) = tokio::join!(agent.turn("t", "yes"), start);
    let turn = turn.unwrap();
    assert!(turn.reply.contains("I could NOT restore the status of experiment 'Foo'"), "{}", turn.reply);
    assert_eq!((status(&world).await, turn.errors.len()), (Enrolling, 1));
    script.add([wants("confirm_reply", 1.0)]);
    let again = agent.turn("t", "yes").await.unwrap();
    assert!(again.pending.is_none(), "{}", again.reply);
}

/// A store and a world whose test of `Foo` in the thread `t` has failed to restore `inactive`. The server
/// refuses the next `refusals` changes of a status.
async fn cut_off(store: &MemoryStore, saver: &Arc<MemorySaver>, refusals: usize) -> (World, Script) {
    let world = World::new().await;
    let script = Script::new();
    world.experiment("Foo", Inactive).await;
    let agent = over(&world, &script, store, saver).await;
    script.add(request("test_condition_balance", balance(1)));
    agent.turn("t", "please").await.unwrap();
    world.proxy.fail("POST /v6/init", Fault::Hold, 1);
    let start = async {
        world.proxy.hangs().await;
        world.proxy.fail("POST /experiments/state", Fault::Status(500), 3 + refusals);
        world.proxy.release();
    };
    let (turn, ()) = tokio::join!(agent.turn("t", "yes"), start);
    assert!(turn.unwrap().reply.contains("I could NOT restore"));
    (world, script)
}

async fn over(world: &World, script: &Script, store: &MemoryStore, saver: &Arc<MemorySaver>) -> UpgradeAgent {
    let builder = world.builder(script).await.checkpointer(Arc::clone(saver)).store(store.clone());
    builder.build().unwrap()
}

#[tokio::test]
async fn a_restore_that_failed_is_tried_again_at_each_turn_until_it_is_done() {
    let (store, saver) = Default::default();
    let (world, script) = cut_off(&store, &saver, 1).await;
    // As after a restart of the program: the due restore is read from the thread.
    let agent = over(&world, &script, &store, &saver).await;
    let says = |text: &str| vec![wants("direct_answer", 1.0), Reply::text(text)];
    script.add(says("One."));
    let refused = agent.turn("t", "what is a condition?").await.unwrap();
    assert!(refused.reply.contains("I still could NOT restore its status inactive"), "{}", refused.reply);
    assert!(refused.reply.ends_with("One."), "{}", refused.reply);
    assert_eq!(status(&world).await, Enrolling);

    script.add(says("Two."));
    let done = agent.turn("t", "what is a site?").await.unwrap();
    assert!(done.reply.starts_with("The status of experiment 'Foo' is inactive again"), "{}", done.reply);
    assert_eq!(done.path, ["tool_executor", "conversation_analyzer", "response_generator"]);
    assert_eq!(moves(&world).await, [Enrolling, Inactive]);
    assert_eq!(agent.threads_to_restore().await, Vec::<String>::new());

    script.add(says("Three."));
    let after = agent.turn("t", "what is a target?").await.unwrap();
    assert_eq!((after.reply.as_str(), after.path.len()), ("Three.", 2));
    let log = agent.conversation("t").await.unwrap().unwrap().execution_log;
    assert_eq!(log.last().map(|entry| entry.action.kind()), Some(ActionKind::UpdateExperimentStatus));
}

#[tokio::test]
async fn a_restore_that_failed_is_tried_again_without_a_message() {
    let (store, saver) = Default::default();
    let (world, script) = cut_off(&store, &saver, 1).await;
    let agent = over(&world, &script, &store, &saver).await;
    assert_eq!(agent.threads_to_restore().await, ["t"]);
    let refused = agent.recover("t").await.unwrap().unwrap();
    assert!(refused.reply.contains("I still could NOT restore"), "{}", refused.reply);
    let done = agent.recover("t").await.unwrap().unwrap();
    assert!(done.reply.contains("is inactive again"), "{}", done.reply);
    assert!(agent.recover("t").await.unwrap().is_none());
    assert_eq!(moves(&world).await, [Enrolling, Inactive]);
}

#[tokio::test]
async fn a_restore_without_a_message_leaves_the_open_question_as_it_is() {
    let (store, saver) = Default::default();
    let (world, script) = cut_off(&store, &saver, 1).await;
    let agent = over(&world, &script, &store, &saver).await;
    script.add(request("init_experiment_user", json!({ "user_id": "ada" })));
    let asked = agent.turn("t", "add ada").await.unwrap();
    assert!(asked.reply.contains("I still could NOT restore") && asked.asks_for_a_yes(), "{}", asked.reply);
    let done = agent.recover("t").await.unwrap().unwrap();
    assert!(done.reply.contains("is inactive again") && done.asks_for_a_yes(), "{}", done.reply);
    assert!(done.reply.ends_with("Answer yes or no."), "{}", done.reply);
    assert_eq!(agent.turn("t", "yes").await.unwrap().reply, "User 'ada' is initialized.");
}

#[tokio::test]
async fn a_restore_is_given_up_by_its_owner_and_left_alone_after_a_change_by_others() {
    for gives_up in [true, false] {
        let (store, saver) = Default::default();
        let (world, script) = cut_off(&store, &saver, 0).await;
        let agent = over(&world, &script, &store, &saver).await;
        let turn = if gives_up {
            agent.turn("t", "give up the restore, please").await.unwrap()
        } else {
            world.behind().set_state(&common::id(1), &Cancelled).await.unwrap();
            agent.recover("t").await.unwrap().unwrap()
        };
        let (told, left) = if gives_up {
            ("I leave experiment 'Foo' as it is", Enrolling)
        } else {
            ("has become cancelled meanwhile, so I do not restore inactive any more", Cancelled)
        };
        assert!(turn.reply.contains(told), "{}", turn.reply);
        assert_eq!(status(&world).await, left);
        assert!(agent.recover("t").await.unwrap().is_none());
        assert_eq!(agent.threads_to_restore().await, Vec::<String>::new());
    }
}

#[tokio::test]
async fn other_threads_say_that_a_test_was_cut_off() {
    let (store, saver) = Default::default();
    let (world, script) = cut_off(&store, &saver, 0).await;
    let agent = over(&world, &script, &store, &saver).await;
    let look = |tool: &str| {
        let input =
            if tool == "get_all_experiments" { json!({}) } else { json!({ "experiment_id": common::id(1) }) };
        let calls = [Reply::tool_call(tool, input), Reply::text("done"), Reply::text("It is enrolling.")];
        [wants("needs_info", 1.0)].into_iter().chain(calls)
    };
    let told = "A test of experiment 'Foo' in the conversation t changed its status and has not restored inactive yet";
    for tool in ["get_experiment_details", "get_enrollment_details", "get_all_experiments"] {
        script.add(look(tool));
        let turn = agent.turn("other", "how is Foo?").await.unwrap();
        assert!(turn.reply.starts_with(told), "{tool}: {}", turn.reply);
    }
    script.add(request("update_experiment", json!({ "experiment_id": common::id(1), "name": "Bar" })));
    let asked = agent.turn("other", "rename it").await.unwrap();
    assert!(asked.reply.contains(told) && asked.asks_for_a_yes(), "{}", asked.reply);

    agent.recover("t").await.unwrap();
    script.add(look("get_experiment_details"));
    let after = agent.turn("third", "how is Foo?").await.unwrap();
    assert_eq!(after.reply, "It is enrolling.");
}

#[tokio::test]
async fn a_crowd_that_is_cut_off_reports_its_progress() {
    for fault in [Fault::Status(500), Fault::HangUp, Fault::HangUpAfter] {
        let (world, agent, _) = asked(Inactive, "test_condition_balance", balance(7)).await;
        world.proxy.fail("POST /v6/mark", Fault::Hold, 1);
        let later = async {
            world.proxy.hangs().await;
            world.proxy.fail("POST /v6/mark", fault.clone(), 1);
            world.proxy.release();
        };
        let (turn, ()) = tokio::join!(agent.turn("t", "yes"), later);
        let turn = turn.unwrap();
        assert!(turn.reply.contains("(1 of 7 students were through)"), "{fault:?}: {}", turn.reply);
        assert!(turn.reply.contains("is inactive again"), "{fault:?}: {}", turn.reply);
        assert_eq!(status(&world).await, Inactive);
        assert!(enrolled(&world).await <= 2);
    }
}

#[tokio::test]
async fn any_message_but_a_yes_ends_a_plan_that_waits_for_one() {
    let steps = json!([{ "do": "set_status", "status": "enrollmentComplete" },
        { "do": "set_status", "status": "cancelled" }, { "do": "visit", "site": SITE, "target": TARGET }]);
    for (said, goes_on) in [
        ("yes", true),
        ("no", false),
        ("modify", false),
        ("what is a condition?", false),
        ("delete experiment Foo", false),
        ("yes, but wait", false),
    ] {
        let (world, agent, _) = asked(Enrolling, "simulate_user_journey", journey(steps.clone())).await;
        let waits = agent.turn("t", "yes").await.unwrap();
        assert!(waits.pending.is_some(), "{}", waits.reply);
        assert_eq!(status(&world).await, EnrollmentComplete);
        let turn = agent.turn("t", said).await.unwrap();
        assert_eq!(status(&world).await, Enrolling, "{said}: {}", turn.reply);
        assert!(turn.pending.is_none(), "{said}");
        let went_on = moves(&world).await.contains(&Cancelled);
        assert_eq!(went_on, goes_on, "{said}: {}", turn.reply);
        assert!(turn.reply.contains("is enrolling again"), "{said}: {}", turn.reply);
    }
}

/// Proposes a journey through these statuses for an enrolling experiment, whose point may exclude early
/// visitors.
async fn led_through(statuses: &[&str], force: bool, excludes: bool) -> (World, UpgradeAgent, Turn) {
    let world = World::new().await;
    let script = Script::new();
    let id = world.experiment("Foo", Inactive).await;
    let point = NewDecisionPoint { exclude_if_reached: excludes, ..NewDecisionPoint::new(SITE, TARGET) };
    let patch = ExperimentPatch { decision_points: Some(vec![point]), ..ExperimentPatch::default() };
    world.behind().update(&id, &patch).await.unwrap();
    world.behind().set_state(&id, &Enrolling).await.unwrap();
    let steps: Vec<Value> =
        statuses.iter().map(|status| json!({ "do": "set_status", "status": status })).collect();
    let mut params = journey(json!(steps));
    params["force"] = json!(force);
    let agent = world.agent(&script).await;
    script.add(request("simulate_user_journey", params));
    let turn = agent.turn("t", "please").await.unwrap();
    (world, agent, turn)
}

#[tokio::test]
async fn a_move_that_ends_a_running_experiment_needs_force_and_its_own_yes() {
    for to in ["inactive", "draft", "preview", "scheduled", "archived"] {
        let (world, _, refused) = led_through(&[to], false, false).await;
        assert!(refused.pending.is_none(), "{to}: {}", refused.reply);
        let told = format!(
            "an experiment that is enrolling usually becomes enrollmentComplete, cancelled, not {to}"
        );
        assert!(refused.reply.contains(&told), "{to}: {}", refused.reply);
        assert_eq!(moves(&world).await, [Enrolling]);

        let (world, agent, asked) = led_through(&[to], true, false).await;
        assert!(asked.asks_for_a_yes(), "{to}: {}", asked.reply);
        let again = agent.turn("t", "yes").await.unwrap();
        let own = format!(
            "Change experiment 'Foo' status from 'enrolling' to '{to}', although that is not a usual move?"
        );
        assert!(again.reply.contains(&own), "{to}: {}", again.reply);
        agent.turn("t", "no").await.unwrap();
        assert_eq!(moves(&world).await, [Enrolling], "{to}");
    }
}

#[tokio::test]
async fn each_move_of_a_journey_is_checked_against_the_table() {
    for (statuses, is_asked) in [
        (&["enrollmentComplete", "enrolling", "enrollmentComplete", "cancelled", "archived"][..], true),
        (&["enrollmentComplete", "inactive"], false),
        (&["cancelled", "enrolling"], false),
    ] {
        let (_, _, turn) = led_through(statuses, false, false).await;
        assert_eq!(turn.asks_for_a_yes(), is_asked, "{statuses:?}: {}", turn.reply);
    }
}

#[tokio::test]
async fn a_plan_that_would_exclude_enrolled_students_by_a_restart_is_refused() {
    for statuses in
        [&["cancelled"][..], &["enrollmentComplete", "cancelled"], &["inactive"], &["preview", "enrolling"]]
    {
        for force in [false, true] {
            let (world, _, turn) = led_through(statuses, force, true).await;
            assert!(
                turn.reply.contains("UpGrade would shut them out for good"),
                "{statuses:?}: {}",
                turn.reply
            );
            assert!(turn.pending.is_none());
            assert_eq!(moves(&world).await, [Enrolling]);
        }
    }
    let (world, agent, turn) = led_through(&["enrollmentComplete"], false, true).await;
    assert!(turn.asks_for_a_yes(), "{}", turn.reply);
    agent.turn("t", "yes").await.unwrap();
    assert_eq!(moves(&world).await, [Enrolling, EnrollmentComplete, Enrolling]);
}
