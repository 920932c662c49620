//! A turn starts with only the stored fields of its thread, and threads share nothing.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]

use crate::common;

use std::sync::Arc;

use agentgraph::MemorySaver;
use agentgraph_llm::{ChatModel, ChatRequest, ChatStream, Message, ModelInfo, Reply, ScriptedModel};
use common::World;
use common::proxy::Fault;
use common::script::{Script, acts, request, wants};
use futures_util::future::{join, join_all};
use serde_json::json;
use tokio::sync::{Notify, Semaphore};
use upgrade_agent::agent::{AgentError, UpgradeAgent};
use upgrade_agent::client::{ExperimentState, UpgradeClient};
use upgrade_agent::state::{ErrorClass, Pending, ResponseKind};

#[tokio::test]
async fn fields_of_a_turn_are_reset_and_fields_of_the_thread_stay() {
    let world = World::new().await;
    let script = Script::new();
    let id = world.experiment("Foo", ExperimentState::Inactive).await;
    let agent = world.agent(&script).await;
    world.proxy.fail("GET /experiments/single", Fault::Status(500), 1);
    let gathers = Reply::tool_call("get_experiment_details", json!({ "experiment_id": id }))
        .and_tool_call("get_experiment_names", json!({}))
        .and_tool_call("get_all_experiments", json!({}))
        .and_tool_call("get_context_metadata", json!({}))
        .and_tool_call("get_core_terms", json!({}));
    script.add([wants("needs_info", 0.95), gathers, Reply::text("done")]);
    agent.turn("t", "first").await.unwrap();
    let first = agent.conversation("t").await.unwrap().unwrap();
    assert_eq!(first.errors.len(), 1);
    let gathered: Vec<&str> = first.gathered_info.keys().map(String::as_str).collect();
    assert_eq!(gathered, ["all_experiments", "context_metadata", "core_terms", "experiment_names"]);
    assert!(first.preset.is_some() && first.analysis.is_some());

    script.add([wants("greeting", 1.0), Reply::text("Hello!")]);
    agent.turn("t", "second").await.unwrap();
    let second = agent.conversation("t").await.unwrap().unwrap();
    assert_eq!(second.user_input, "second");
    assert_eq!(second.path, ["conversation_analyzer", "response_generator"]);
    assert_eq!(second.reply.as_deref(), Some("Hello!"));
    assert_eq!(second.kind, ResponseKind::Answer);
    assert!(second.errors.is_empty() && second.gathered_info.is_empty() && second.notes.is_empty());
    assert!(second.preset.is_none() && second.proposal.is_none() && second.dropped.is_none());
    assert!(second.suggested.is_empty());
    assert_eq!((second.turns, second.history.len()), (2, 4));
    assert_eq!(second.context_metadata.as_ref().map(|cached| cached.age(second.turns)), Some(1));

    script.add(request("update_experiment_status", json!({ "experiment_id": id, "status": "enrolling" })));
    agent.turn("t", "third").await.unwrap();
    agent.turn("t", "yes").await.unwrap();
    script.add([wants("greeting", 1.0), Reply::text("Hello!")]);
    agent.turn("t", "fifth").await.unwrap();
    let last = agent.conversation("t").await.unwrap().unwrap();
    assert_eq!((last.execution_log.len(), last.executed().count()), (1, 0));
    assert_eq!(last.execution_log[0].timestamp, "2027-01-15T08:00:00.000Z");
    assert_eq!(last.last_experiment.unwrap().name, "Foo");
    assert!(last.approved.is_none() && last.pending == Pending::Nothing);
    assert!(second.experiment_names.is_some() && second.experiments.is_some());
    assert!(
        last.experiment_names.is_none() && last.experiments.is_none(),
        "the change invalidates the fetched data"
    );
    assert!(last.context_metadata.is_some());
}

#[tokio::test]
async fn that_experiment_is_forgotten_once_it_is_deleted() {
    let world = World::new().await;
    let script = Script::new();
    let id = world.experiment("Foo", ExperimentState::Inactive).await;
    let agent = world.agent(&script).await;
    script.add(request("delete_experiment", json!({ "experiment_id": id })));
    agent.turn("t", "delete Foo").await.unwrap();
    assert_eq!(agent.conversation("t").await.unwrap().unwrap().last_experiment.unwrap().name, "Foo");
    agent.turn("t", "DELETE").await.unwrap();
    assert!(agent.conversation("t").await.unwrap().unwrap().last_experiment.is_none());
}

#[tokio::test]
async fn two_turns_at_once_on_one_thread_wait_for_each_other() {
    let world = World::new().await;
    let script = Script::new();
    let agent = world.agent(&script).await;
    script.add([wants("greeting", 1.0), Reply::text("one"), wants("greeting", 1.0), Reply::text("two")]);
    let clone = agent.clone();
    let (one, two) = join(agent.turn("t", "first"), clone.turn("t", "second")).await;
    assert_eq!((one.unwrap().reply.as_str(), two.unwrap().reply.as_str()), ("one", "two"));
    let said: Vec<String> =
        agent.conversation("t").await.unwrap().unwrap().history.iter().map(Message::text).collect();
    assert_eq!(said, ["first", "one", "second", "two"]);
}

/// Returns a model that initializes the user whose name is the person's first message.
fn obliging() -> ScriptedModel {
    ScriptedModel::from_fn(|request| {
        let results = request.messages.iter().any(|message| message.results().next().is_some());
        let name = request.messages.first().map(Message::text).unwrap_or_default();
        match request.tools.first().map(|tool| tool.name.as_str()) {
            Some("analyze_user_request") => wants("needs_info", 1.0),
            _ if results => Reply::text("ready"),
            _ => acts("init_experiment_user", json!({ "user_id": name })),
        }
    })
}

#[tokio::test]
async fn conversations_at_once_in_one_process_do_not_mix() {
    let world = World::new().await;
    let agent = UpgradeAgent::builder().model(obliging()).client(world.client().await).build().unwrap();
    let names: Vec<String> = (0..12).map(|n| format!("user-{n}")).collect();
    let conversations = names.iter().map(|name| {
        let agent = agent.clone();
        async move {
            let asked = agent.turn(name, name).await.unwrap();
            assert!(asked.reply.starts_with(&format!("Initialize user '{name}'")), "{}", asked.reply);
            assert_eq!(
                agent.turn(name, "yes").await.unwrap().reply,
                format!("User '{name}' is initialized.")
            );
        }
    });
    join_all(conversations).await;
    for name in &names {
        let state = agent.conversation(name).await.unwrap().unwrap();
        assert_eq!((state.turns, state.history.len(), state.execution_log.len()), (2, 4, 1));
        assert_eq!(state.execution_log[0].summary, format!("User '{name}' is initialized."));
    }
    let sent = world.proxy.heard().into_iter().filter(|line| line == "POST /v6/init").count();
    assert_eq!(sent, names.len());
}

#[tokio::test]
async fn the_same_yes_delivered_twice_at_once_runs_the_action_once() {
    let world = World::new().await;
    let script = Script::new();
    let agent = world.agent(&script).await;
    script.add(request("init_experiment_user", json!({ "user_id": "ada" })));
    agent.turn("t", "initialize ada").await.unwrap();
    script.add([wants("confirm_reply", 1.0)]);
    let (one, two) = join(agent.turn("t", "yes"), agent.turn("t", "yes")).await;
    assert_eq!(one.unwrap().reply, "User 'ada' is initialized.");
    assert_eq!(two.unwrap().kind, ResponseKind::Clarification);
    let sent = world.proxy.heard().into_iter().filter(|line| line == "POST /v6/init").count();
    assert_eq!(sent, 1);
}

/// A model that waits for a permit before it follows its script.
struct Slow {
    asked: Arc<Notify>,
    go: Arc<Semaphore>,
    script: Script,
}

#[async_trait::async_trait]
impl ChatModel for Slow {
    fn info(&self) -> ModelInfo {
        ModelInfo::new("test", "slow")
    }

    async fn stream(&self, request: ChatRequest) -> agentgraph_llm::Result<ChatStream> {
        self.asked.notify_one();
        let _go = self.go.acquire().await;
        self.script.model().stream(request).await
    }
}

#[tokio::test]
async fn an_agent_gets_thread_busy_during_the_turn_of_another_agent() {
    let world = World::new().await;
    let script = Script::new();
    let saver = Arc::new(MemorySaver::new());
    let asked = Arc::new(Notify::new());
    let go = Arc::new(Semaphore::new(0));
    script.add([wants("greeting", 1.0), Reply::text("slow")]);
    let slow = Slow { asked: Arc::clone(&asked), go: Arc::clone(&go), script };
    let slow = UpgradeAgent::builder().model(slow).client(world.client().await);
    let slow = slow.checkpointer(Arc::clone(&saver)).build().unwrap();
    let mut turn = Box::pin(slow.turn("t", "hello"));
    let quick = world.agent_over(&Script::new(), saver).await;
    tokio::select! {
        _ = &mut turn => panic!("the turn ended"),
        () = asked.notified() => {}
    }
    let told = quick.recover("t").await.unwrap_err();
    go.add_permits(1);
    assert_eq!(turn.await.unwrap().reply, "slow");
    assert!(matches!(told, AgentError::Busy(_)));
    assert_eq!(told.code(), "E_THREAD_BUSY");
    assert!(told.to_string().contains("somebody else is using this thread"), "{told}");
}

#[tokio::test]
async fn an_empty_message_is_refused_and_leaves_the_question_open() {
    let world = World::new().await;
    let script = Script::new();
    let agent = world.agent(&script).await;
    script.add(request("init_experiment_user", json!({ "user_id": "ada" })));
    agent.turn("t", "initialize ada").await.unwrap();
    for text in ["", "  ", "\n\t"] {
        assert_eq!(agent.turn("t", text).await.unwrap_err().code(), "E_AGENT_EMPTY");
    }
    assert_eq!(agent.turn("t", "yes").await.unwrap().reply, "User 'ada' is initialized.");
}

#[tokio::test]
async fn an_unreachable_server_is_reported_and_ends_the_action() {
    let script = Script::new();
    let port = std::net::TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap().port();
    let client = UpgradeClient::builder(format!("http://127.0.0.1:{port}/api")).retries(0).build().unwrap();
    let agent = UpgradeAgent::builder().model(script.model()).client(client).build().unwrap();
    script.add(request("delete_experiment", json!({ "experiment_id": common::id(1) })));
    let turn = agent.turn("t", "delete it").await.unwrap();
    assert_eq!(turn.errors[0].class, ErrorClass::Api);
    assert!(
        turn.reply.contains("E_UPGRADE_CONNECT") && turn.reply.contains("Nothing was changed"),
        "{}",
        turn.reply
    );
    assert_eq!(turn.pending, None);

    script.add(request("init_experiment_user", json!({ "user_id": "ada" })));
    agent.turn("t", "initialize ada").await.unwrap();
    let turn = agent.turn("t", "yes").await.unwrap();
    assert!(turn.reply.starts_with("I could not initialize user 'ada'"), "{}", turn.reply);
    let state = agent.conversation("t").await.unwrap().unwrap();
    assert!(state.approved.is_none());
    assert_eq!(state.execution_log[0].error.as_ref().unwrap().class, ErrorClass::Api);
}

#[tokio::test]
async fn a_thread_without_messages_has_no_conversation_and_nothing_to_recover() {
    let world = World::new().await;
    let script = Script::new();
    let agent = world.agent(&script).await;
    assert!(agent.conversation("t").await.unwrap().is_none());
    assert!(agent.recover("t").await.unwrap().is_none());
}

#[tokio::test]
async fn settings_out_of_range_are_refused_when_the_agent_is_built() {
    let world = World::new().await;
    let script = Script::new();
    let builder = || async { world.builder(&script).await };
    let refused = [
        UpgradeAgent::builder().build().unwrap_err(),
        UpgradeAgent::builder().model(script.model()).build().unwrap_err(),
        builder().await.confidence(1.1).build().unwrap_err(),
        builder().await.confidence(f64::NAN).build().unwrap_err(),
        builder().await.temperature(-0.1).build().unwrap_err(),
    ];
    assert!(refused.iter().all(|error| error.code() == "E_AGENT_CONFIG"));
    let strict = builder().await.confidence(1.0).build().unwrap();
    script.add([wants("needs_info", 0.99), Reply::text("Which one?")]);
    assert_eq!(strict.turn("t", "start it").await.unwrap().kind, ResponseKind::Clarification);
}

#[tokio::test]
async fn no_temperature_is_sent_unless_one_is_set() {
    let world = World::new().await;
    let script = Script::new();
    script.add([wants("greeting", 1.0), Reply::text("Hello!")]);
    world.builder(&script).await.build().unwrap().turn("t", "hi").await.unwrap();
    assert!(script.asked().iter().all(|request| request.temperature.is_none()));
}

#[tokio::test]
async fn a_model_gets_the_situation_and_last_messages_of_its_thread_only() {
    let world = World::new().await;
    let script = Script::new();
    let agent =
        world.builder(&script).await.history_window(3).temperature(0.5).max_tokens(77).build().unwrap();
    script.add([wants("greeting", 1.0), Reply::text("Hello!")]);
    agent.turn("other", "the other thread's secret").await.unwrap();
    script.add([
        wants("needs_info", 0.9),
        acts("create_experiment", json!({ "name": "Foo" })),
        Reply::text("Noted."),
    ]);
    agent.turn("t", "Create Foo").await.unwrap();
    script.asked();
    script.add([Reply::text("nothing"), Reply::text("A context is an application.")]);
    let turn = agent.turn("t", "What is a context?").await.unwrap();
    assert_eq!(turn.path, ["information_gatherer", "response_generator"]);
    let asked = script.asked();
    let heads: Vec<&str> =
        asked.iter().map(|request| request.system.as_deref().unwrap().lines().next().unwrap()).collect();
    assert_eq!(heads, ["Node: information_gatherer", "Node: response_generator"]);
    for request in &asked {
        let texts: Vec<String> = request.messages.iter().map(Message::text).collect();
        assert_eq!(texts.first().map(String::as_str), Some("Create Foo"));
        assert_eq!(texts.last().map(String::as_str), Some("What is a context?"));
        assert_eq!((request.temperature, request.max_tokens), (Some(0.5), Some(77)));
        let system = request.system.as_deref().unwrap();
        let json = system.split_once("Situation\n```json\n").unwrap().1.strip_suffix("\n```").unwrap();
        let situation: serde_json::Value = serde_json::from_str(json).unwrap();
        assert_eq!(situation["turn"], 2);
        assert_eq!(situation["pending"]["action"], "create_experiment");
        assert_eq!(situation["pending"]["params"], json!({ "name": "Foo" }));
        assert_eq!(situation["pending"]["missing"], json!(["context", "decision_points", "conditions"]));
        assert!(!format!("{request:?}").contains("secret"));
    }
}
