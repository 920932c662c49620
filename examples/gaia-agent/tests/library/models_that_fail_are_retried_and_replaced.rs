//! Models that fail: waits before retries, the fallback, a temperature that is refused, and what is left if
//! all fail.

use std::collections::VecDeque;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use agentgraph::MemorySaver;
use agentgraph_llm::{ChatModel, ChatRequest, Code, Error, Message, Reply, Role, ScriptedModel};
use gaia_agent::agent::{AnswerKind, GaiaAgentBuilder, Task};
use gaia_agent::cache::AnswerCache;
use gaia_agent::settings::Settings;
use serde_json::json;

use crate::support::{Scene, TestClock};

fn busy() -> Error {
    Error::new(Code::RateLimited, "too many requests")
}

fn failing(name: &'static str) -> ScriptedModel {
    ScriptedModel::from_fn(|_| busy().into()).named(name)
}

fn with_clock(builder: GaiaAgentBuilder) -> (GaiaAgentBuilder, Arc<TestClock>) {
    let clock = Arc::new(TestClock::default());
    (builder.clock(clock.clone()), clock)
}

fn seconds(waits: &[Duration]) -> Vec<f64> {
    waits.iter().map(Duration::as_secs_f64).collect()
}

#[tokio::test]
async fn a_rate_limit_is_waited_for_twice_as_long_each_time_up_to_five_times() {
    let scene = Scene::new().await;
    let replies = (0..5).map(|_| busy().into()).chain([Reply::text("FINAL ANSWER: 7")]);
    let model = ScriptedModel::new(replies);
    let (builder, clock) = with_clock(scene.builder(model.clone()));
    let solution = builder.build().unwrap().solve("t", &Task::ask("What?")).await.unwrap();
    assert_eq!(
        (solution.answer.as_str(), solution.kind, model.requests().len()),
        ("7", AnswerKind::Final, 6)
    );
    assert_eq!(seconds(&clock.waits()), [1.0, 2.0, 4.0, 8.0, 16.0]);
}

#[tokio::test]
async fn a_wait_that_the_provider_asks_for_is_kept() {
    let scene = Scene::new().await;
    let asked = || busy().with_retry_after(Duration::from_secs(7)).into();
    let model = ScriptedModel::new([asked(), asked(), Reply::text("FINAL ANSWER: 7")]);
    let (builder, clock) = with_clock(scene.builder(model));
    builder.build().unwrap().solve("t", &Task::ask("What?")).await.unwrap();
    assert_eq!(seconds(&clock.waits()), [7.0, 7.0]);
}

#[tokio::test]
async fn errors_that_no_retry_helps_are_not_retried() {
    let scene = Scene::new().await;
    let model = ScriptedModel::from_fn(|_| Error::new(Code::Auth, "the key was refused").into());
    let (builder, clock) = with_clock(scene.builder(model.clone()));
    let solution = builder.build().unwrap().solve("t", &Task::ask("What?")).await.unwrap();
    assert_eq!((model.requests().len(), clock.waits().len()), (1, 0));
    assert_eq!((solution.kind, solution.is_done), (AnswerKind::Unknown, false));
    assert!(solution.error.unwrap().contains("E_LLM_AUTH"));
}

#[tokio::test]
async fn the_fallback_answers_after_the_first_model_was_retried() {
    let scene = Scene::new().await;
    let (first, spare) = (failing("large"), ScriptedModel::new(["FINAL ANSWER: 7"]).named("small"));
    let (builder, clock) = with_clock(scene.builder(first.clone()).fallback(Arc::new(spare.clone())));
    let cache = AnswerCache::new(scene.folder.file("agent_cache.json"));
    let solution =
        builder.cache(cache.clone()).build().unwrap().solve("t", &Task::ask("What?")).await.unwrap();
    assert_eq!((solution.answer.as_str(), solution.kind, solution.is_done), ("7", AnswerKind::Final, true));
    assert_eq!(solution.answered_by.as_deref(), Some("scripted/small"));
    assert_eq!((first.requests().len(), spare.requests().len(), clock.waits().len()), (6, 1, 5));
    let offered: Vec<_> = spare.requests()[0].tools.iter().map(|tool| tool.name.clone()).collect();
    assert!(offered.contains(&"wikipedia".to_owned()), "the fallback has the tools, too");
    // The next run asks the first model again.
    assert_eq!(cache.entries().unwrap(), []);
}

#[tokio::test]
async fn if_all_models_fail_the_best_so_far_is_the_answer_and_the_next_call_goes_on() {
    let scene = Scene::new().await;
    let script: Arc<Mutex<VecDeque<Reply>>> = Arc::default();
    let lines = script.clone();
    let model = ScriptedModel::from_fn(move |_| {
        lines.lock().unwrap().pop_front().unwrap_or_else(|| Error::new(Code::Server, "down").into())
    });
    script.lock().unwrap().push_back(
        Reply::text("I think it is 40.").and_tool_call("calculator", json!({ "expression": "6 * 7" })),
    );
    let mut settings = Settings::default();
    settings.max_retries = 0;
    let builder = scene.builder(model.clone()).settings(&settings).checkpointer(MemorySaver::new());
    let cache = AnswerCache::new(scene.folder.file("agent_cache.json"));
    let agent = builder.cache(cache.clone()).build().unwrap();
    let task = Task::ask("What?");
    let solution = agent.solve("t", &task).await.unwrap();
    assert_eq!(
        (solution.answer.as_str(), solution.kind, solution.is_done),
        ("I think it is 40", AnswerKind::BestText, false)
    );
    assert!(solution.error.unwrap().contains("down"));
    assert_eq!(cache.entries().unwrap(), []);
    assert!(agent.finished("t").await.unwrap().is_none());

    script.lock().unwrap().push_back(Reply::text("FINAL ANSWER: 42"));
    let solution = agent.solve("t", &task).await.unwrap();
    assert_eq!((solution.answer.as_str(), solution.kind, solution.is_done), ("42", AnswerKind::Final, true));
    assert_eq!(
        (solution.figures.rounds, model.requests().len()),
        (2, 3),
        "the first answer is not asked for again"
    );
    assert_eq!(solution.figures.tools["calculator"], 1);
}

#[tokio::test]
async fn a_temperature_that_a_model_refuses_is_left_out() {
    let scene = Scene::new().await;
    let model = ScriptedModel::from_fn(|request| match request.temperature {
        Some(_) => Error::new(
            Code::BadRequest,
            "Unsupported value: 'temperature' does not support 0 with this model",
        )
        .into(),
        None => Reply::text("FINAL ANSWER: 7"),
    });
    let (builder, clock) = with_clock(scene.builder(model.clone()));
    let agent = builder.build().unwrap();
    for thread in ["t", "u"] {
        assert_eq!(agent.solve(thread, &Task::ask("What?")).await.unwrap().answer, "7");
    }
    let sent: Vec<_> = model.requests().iter().map(|request| request.temperature).collect();
    assert_eq!((sent, clock.waits().len()), (vec![Some(0.0), None, None], 0));
}

#[tokio::test]
async fn no_temperature_is_sent_if_none_is_set() {
    let scene = Scene::new().await;
    let mut settings = Settings::default();
    settings.temperature = None;
    let model = ScriptedModel::new(["FINAL ANSWER: 7"]);
    let agent = scene.builder(model.clone()).settings(&settings).build().unwrap();
    agent.solve("t", &Task::ask("What?")).await.unwrap();
    assert_eq!(model.requests()[0].temperature, None);
    assert_eq!(model.info().model, "scripted");
}

/// The model refuses a conversation with more than three long results, as a provider does whose context is
/// full.
#[tokio::test]
async fn a_full_context_is_trimmed_and_never_fails_for_ever() {
    let scene = Scene::new().await;
    scene.folder.write("here/long.txt", "word ".repeat(4_000));
    let read = || Reply::tool_call("read_file", json!({ "path": "long.txt" }));
    let narrow = |longest: usize| {
        ScriptedModel::from_fn(move |request: &ChatRequest| {
            let length: usize =
                request.messages.iter().flat_map(Message::results).map(|result| result.as_text().len()).sum();
            let rounds = request.messages.iter().filter(|message| message.role == Role::Assistant).count();
            match (length > longest, rounds) {
                (true, _) => Reply::error(Error::new(Code::TooLarge, "too long")),
                (false, 0..6) => read(),
                (false, _) => Reply::text("FINAL ANSWER: 7"),
            }
        })
    };
    let agent = scene.builder(narrow(70_000)).checkpointer(MemorySaver::new()).build().unwrap();
    let solution = agent.solve("t", &Task::ask("What?")).await.unwrap();
    assert_eq!((solution.answer.as_str(), solution.kind), ("7", AnswerKind::Final));
    // The thread keeps what the requests left out.
    assert!(crate::support::results(&agent, "t").await.iter().all(|(text, _)| text.len() > 19_000));
    // Not even the last result fits: the question ends, and is not asked again for ever.
    let agent = scene.builder(ScriptedModel::from_fn(|_: &ChatRequest| {
        Reply::error(Error::new(Code::TooLarge, "too long"))
    }));
    let solution = agent.build().unwrap().solve("t", &Task::ask("What?")).await.unwrap();
    assert_eq!((solution.kind, solution.is_done), (AnswerKind::Unknown, true));
}
