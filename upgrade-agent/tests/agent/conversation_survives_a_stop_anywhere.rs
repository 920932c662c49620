//! The next turn ends a turn that was stopped at any point, and an approved action takes effect once.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]

use crate::common;

use std::future::{Future, poll_fn};
use std::pin::Pin;
use std::sync::Arc;
use std::task::Poll;

use agentgraph::{MemorySaver, SqliteSaver};
use agentgraph_llm::Reply;
use common::proxy::Fault;
use common::script::{Script, request, wants};
use common::{World, key};
use serde_json::{Value, json};
use upgrade_agent::agent::{AgentError, Turn};
use upgrade_agent::client::ExperimentState;

fn create() -> Value {
    json!({ "name": "Foo", "context": "assign-prog", "filter_mode": "includeAll",
        "decision_points": [{ "site": "workspace", "target": "analyzing_step_functions" }],
        "conditions": [{ "code": "control" }, { "code": "variant" }],
        "post_experiment_rule": { "rule": "assign", "condition_code": "control" } })
}

/// Polls a turn at most `times` times, then drops it. Returns whether it ended.
async fn poll_times(
    mut turn: Pin<Box<dyn Future<Output = Result<Turn, AgentError>> + '_>>,
    times: usize,
) -> bool {
    let mut left = times;
    poll_fn(|cx| {
        if left == 0 {
            return Poll::Ready(false);
        }
        left -= 1;
        turn.as_mut().poll(cx).map(|ended| ended.is_ok())
    })
    .await
}

fn hello(script: &Script) {
    script.add([wants("greeting", 1.0), Reply::text("Hello!")]);
}

#[tokio::test]
async fn a_yes_stopped_at_any_poll_creates_one_experiment_or_is_lost_completely() {
    let mut heard = 0;
    let mut unheard = 0;
    for times in 0.. {
        let world = World::new().await;
        let script = Script::new();
        let saver = Arc::new(MemorySaver::new());
        let agent = world.agent_over(&script, Arc::clone(&saver)).await;
        script.add(request("create_experiment", create()));
        agent.turn("t", "Create Foo").await.unwrap();
        let ended = poll_times(Box::pin(agent.turn("t", "yes")), times).await;
        drop(agent);
        world.proxy.settles().await;

        let again = world.agent_over(&script, saver).await;
        hello(&script);
        let turn = again.turn("t", "hello").await.unwrap();
        let all = world.behind().experiments().await.unwrap();
        let effects: Vec<usize> = all.iter().map(|one| one.conditions.len()).collect();
        match turn.recovered {
            Some(reply) => {
                heard += 1;
                assert!(reply.starts_with("Experiment 'Foo' was created"), "{reply}");
                assert_eq!(effects, [2], "stopped after {times} polls");
                assert_eq!(all[0].id, key(1).to_string());
                assert_eq!(all[0].post_rule.condition_code.as_deref(), Some("control"));
            }
            None if ended => {
                assert_eq!(effects, [2]);
                break;
            }
            None => {
                unheard += 1;
                assert!(effects.is_empty(), "stopped after {times} polls");
            }
        }
    }
    assert!(heard >= 5 && unheard >= 1, "{heard} heard, {unheard} unheard");
}

/// Stops a turn while it waits for the response to `line`, and ends it with another agent over the same
/// file.
async fn stopped_at(line: &str, fault: Fault, action: &str, params: Value, yes: &str) -> (World, Turn) {
    let world = World::new().await;
    let script = Script::new();
    world.experiment("Foo", ExperimentState::Inactive).await;
    world.behind().init_user(&upgrade_agent::client::NewUser::new("ada")).await.unwrap();
    let folder = std::env::temp_dir().join(format!("upgrade-agent-{}", uuid::Uuid::new_v4()));
    let saver = Arc::new(SqliteSaver::open(folder.join("threads.db")).await.unwrap());
    let agent = world.agent_over(&script, Arc::clone(&saver)).await;
    script.add(request(action, params));
    agent.turn("t", "please").await.unwrap();
    world.proxy.fail(line, fault, 1);
    tokio::select! {
        biased;
        () = world.proxy.hangs() => {}
        turn = agent.turn("t", yes) => panic!("the turn ended: {turn:?}"),
    }
    drop(agent);
    world.proxy.settles().await;
    let again = world.agent_over(&script, saver).await;
    let turn = again.recover("t").await.unwrap().unwrap();
    assert!(again.recover("t").await.unwrap().is_none());
    assert_eq!(again.conversation("t").await.unwrap().unwrap().approved, None);
    std::fs::remove_dir_all(folder).unwrap();
    (world, turn)
}

#[tokio::test]
async fn a_stopped_status_change_is_made_once() {
    for fault in [Fault::Hang, Fault::HangAfter] {
        let params = json!({ "experiment_id": common::id(1), "status": "enrolling" });
        let (world, turn) =
            stopped_at("POST /experiments/state", fault, "update_experiment_status", params, "yes").await;
        assert_eq!(turn.path, ["confirmation_handler", "tool_executor", "response_generator"]);
        assert!(turn.reply.contains("is now enrolling"), "{}", turn.reply);
        let changes = world.behind().experiment(&common::id(1)).await.unwrap().state_log;
        assert_eq!(changes.len(), 1, "{changes:?}");
    }
}

#[tokio::test]
async fn a_stopped_delete_succeeds() {
    for fault in [Fault::Hang, Fault::HangAfter] {
        let params = json!({ "experiment_id": common::id(1) });
        let (world, turn) =
            stopped_at("DELETE /experiments", fault, "delete_experiment", params, "DELETE").await;
        assert!(turn.reply.starts_with("Experiment 'Foo' was deleted"), "{}", turn.reply);
        assert!(turn.errors.is_empty());
        assert!(world.experiments().await.is_empty());
    }
}

#[tokio::test]
async fn a_stopped_visit_is_marked_once() {
    for fault in [Fault::Hang, Fault::HangAfter] {
        let params = json!({ "user_id": "ada",
            "decision_point": { "site": "SelectSection", "target": "absolute_value_plot_equality" } });
        let (world, turn) = stopped_at("POST /v6/mark", fault, "mark_decision_point", params, "yes").await;
        assert!(turn.reply.contains("was marked"), "{}", turn.reply);
        let marks: Vec<String> =
            world.proxy.bodies().into_iter().filter(|line| line.starts_with("POST /v6/mark")).collect();
        assert_eq!(marks.len(), 2);
        assert_eq!(marks[0], marks[1]);
        assert!(marks[0].contains(&key(1).to_string()), "{}", marks[0]);
    }
}

#[tokio::test]
async fn an_update_that_is_sent_twice_changes_once() {
    for fault in [Fault::Hang, Fault::HangAfter] {
        let conditions = json!([{ "code": "control", "weight": 20 }, { "code": "variant", "weight": 80 }]);
        let params = json!({ "experiment_id": common::id(1), "conditions": conditions });
        let (world, turn) = stopped_at("PUT /experiments", fault, "update_experiment", params, "yes").await;
        assert_eq!(turn.reply, "Experiment 'Foo' was updated:\n- conditions: control 20%, variant 80%");
        let now = world.behind().experiment(&common::id(1)).await.unwrap();
        let weights: Vec<f64> = now.conditions.iter().map(|condition| condition.weight).collect();
        assert_eq!(weights, [20.0, 80.0]);
    }
}

#[tokio::test]
async fn an_update_of_several_calls_is_completed_after_a_stop_at_any_call() {
    let lists = ["PUT /experiments", "POST /experiments/inclusionList", "POST /experiments/exclusionList"];
    for (line, fault) in lists.into_iter().flat_map(|line| [(line, Fault::Hang), (line, Fault::HangAfter)]) {
        let params = json!({ "experiment_id": common::id(1), "description": "new", "filter_mode": "excludeAll",
            "inclusion_users": ["ada"], "exclusion_users": ["bob"] });
        let (world, turn) = stopped_at(line, fault, "update_experiment", params, "yes").await;
        let told = "Experiment 'Foo' was updated:\n- description: new\n- filter mode: excludeAll\n- included students: ada\n\
            - excluded students: bob";
        assert_eq!(turn.reply, told, "{line}");
        let now = world.behind().experiment(&common::id(1)).await.unwrap();
        assert_eq!((now.description.as_str(), now.filter_mode.to_string().as_str()), ("new", "excludeAll"));
        assert_eq!(
            (now.inclusion.users, now.exclusion.users),
            (vec!["ada".to_owned()], vec!["bob".to_owned()])
        );
    }
}

#[tokio::test]
async fn the_next_message_first_ends_an_unfinished_turn_and_reports_it() {
    let world = World::new().await;
    let script = Script::new();
    let saver = Arc::new(MemorySaver::new());
    let agent = world.agent_over(&script, Arc::clone(&saver)).await;
    script.add(request("init_experiment_user", json!({ "user_id": "ada" })));
    agent.turn("t", "Initialize ada").await.unwrap();
    world.proxy.fail("POST /v6/init", Fault::Hang, 1);
    tokio::select! {
        biased;
        () = world.proxy.hangs() => {}
        turn = agent.turn("t", "yes") => panic!("the turn ended: {turn:?}"),
    }
    hello(&script);
    let turn = agent.turn("t", "are you there?").await.unwrap();
    assert_eq!(turn.recovered.as_deref(), Some("User 'ada' is initialized."));
    assert_eq!(turn.reply, "Hello!");
    let said: Vec<String> = agent
        .conversation("t")
        .await
        .unwrap()
        .unwrap()
        .history
        .iter()
        .map(agentgraph_llm::Message::text)
        .collect();
    assert_eq!(said[2..], ["yes", "User 'ada' is initialized.", "are you there?", "Hello!"]);
}

fn balance(students: u32) -> Value {
    json!({ "experiment_id": common::id(1), "num_users": students })
}

/// Returns the status and the number of enrolled students.
async fn status_and_enrolled(world: &World) -> (ExperimentState, u64) {
    let client = world.behind();
    let detail = client.enrollment(&common::id(1)).await.unwrap();
    (client.experiment(&common::id(1)).await.unwrap().state, detail.users)
}

#[tokio::test]
async fn a_plan_stopped_at_any_poll_restores_the_status_and_simulates_no_student_twice() {
    let mut heard = 0;
    let mut unheard = 0;
    let mut played = std::collections::BTreeSet::new();
    for times in 0.. {
        let world = World::new().await;
        let script = Script::new();
        let saver = Arc::new(MemorySaver::new());
        world.experiment("Foo", ExperimentState::Inactive).await;
        let agent = world.agent_over(&script, Arc::clone(&saver)).await;
        script.add(request("test_condition_balance", balance(2)));
        agent.turn("t", "Test Foo").await.unwrap();
        let ended = poll_times(Box::pin(agent.turn("t", "yes")), times).await;
        drop(agent);
        world.proxy.settles().await;

        let again = world.agent_over(&script, saver).await;
        hello(&script);
        let turn = again.turn("t", "hello").await.unwrap();
        let (status, enrolled) = status_and_enrolled(&world).await;
        assert_eq!(status, ExperimentState::Inactive, "stopped after {times} polls");
        assert!(enrolled <= 2);
        played.insert(enrolled);
        let state = again.conversation("t").await.unwrap().unwrap();
        assert!(state.plan.is_none() && state.approved.is_none(), "stopped after {times} polls");
        match turn.recovered {
            Some(reply) => {
                heard += 1;
                let whole = reply.starts_with("The split of experiment 'Foo'");
                assert!(whole || reply.starts_with("I was stopped"), "{reply}");
                assert_eq!(state.execution_log.len(), 1);
            }
            None if ended => break,
            None => {
                unheard += 1;
                assert_eq!(enrolled, 0, "stopped after {times} polls");
            }
        }
    }
    assert!(heard >= 20 && unheard >= 1, "{heard} heard, {unheard} unheard");
    assert_eq!(
        played.into_iter().collect::<Vec<_>>(),
        [0, 1, 2],
        "some stops are before, between and after the students"
    );
}

#[tokio::test]
async fn a_plan_that_is_cut_off_in_a_request_restores_the_status_in_a_new_process() {
    for (line, fault) in [
        ("POST /experiments/state", Fault::Hang),
        ("POST /experiments/state", Fault::HangAfter),
        ("POST /v6/init", Fault::Hang),
        ("POST /v6/mark", Fault::Hang),
        ("POST /v6/mark", Fault::HangAfter),
    ] {
        let (world, turn) = stopped_at(line, fault, "test_condition_balance", balance(1), "yes").await;
        assert!(turn.reply.starts_with("I was stopped"), "{line}: {}", turn.reply);
        assert_eq!(status_and_enrolled(&world).await.0, ExperimentState::Inactive, "{line}");
    }
}

#[tokio::test]
async fn a_status_changed_by_others_meanwhile_is_kept() {
    let world = World::new().await;
    let script = Script::new();
    let saver = Arc::new(MemorySaver::new());
    let id = world.experiment("Foo", ExperimentState::Inactive).await;
    let agent = world.agent_over(&script, Arc::clone(&saver)).await;
    script.add(request("test_condition_balance", balance(1)));
    agent.turn("t", "Test Foo").await.unwrap();
    world.proxy.fail("POST /v6/mark", Fault::Hang, 1);
    tokio::select! {
        biased;
        () = world.proxy.hangs() => {}
        turn = agent.turn("t", "yes") => panic!("the turn ended: {turn:?}"),
    }
    drop(agent);
    world.proxy.settles().await;
    world.behind().set_state(&id, &ExperimentState::Cancelled).await.unwrap();
    let turn = world.agent_over(&script, saver).await.recover("t").await.unwrap().unwrap();
    assert!(turn.reply.contains("has become cancelled meanwhile, by somebody else"), "{}", turn.reply);
    assert_eq!(status_and_enrolled(&world).await.0, ExperimentState::Cancelled);
}
