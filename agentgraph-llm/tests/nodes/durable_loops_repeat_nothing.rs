//! A durable tool loop asks its model and runs its tools once, however its node comes to run again.

use std::sync::atomic::{AtomicU32, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use agentgraph::prelude::*;
use agentgraph::{BoxError, Code};
use agentgraph_llm::prelude::*;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::json;

#[derive(State, Serialize, Deserialize, Clone, Debug, Default)]
struct Chat {
    answer: String,
}

#[derive(Deserialize, JsonSchema)]
struct NoInput {}

/// The effects of tools, in the order in which they happened.
type Log = Arc<Mutex<Vec<&'static str>>>;

fn log_of(log: &Log) -> Vec<&'static str> {
    log.lock().unwrap().clone()
}

/// A script for one run of the loop: two tools at once, then an answer. A second request for the first reply
/// would find the script at its end.
fn script() -> Arc<ScriptedModel> {
    let calls = Reply::tool_call("pay", json!({})).and_tool_call("mail", json!({}));
    Arc::new(ScriptedModel::new([calls, Reply::text("done")]))
}

/// A graph of one node whose loop has the tool `pay`, which takes effect, and a second tool.
fn graph<F, Fut>(model: &Arc<ScriptedModel>, log: &Log, mail: F) -> CompiledGraph<Chat>
where
    F: Fn(Ctx) -> Fut + Clone + Send + Sync + 'static,
    Fut: Future<Output = Result<String, ToolError>> + Send + 'static,
{
    let model = Arc::clone(model);
    let log = Arc::clone(log);
    let node = move |ctx: Ctx| {
        let model = Arc::clone(&model);
        let log = Arc::clone(&log);
        let mail = mail.clone();
        async move {
            let pay = FnTool::new("pay", "Pays.", move |_: NoInput| {
                log.lock().unwrap().push("pay");
                async { Ok::<_, ToolError>("paid") }
            });
            let own = ctx.clone();
            let mail = FnTool::new("mail", "Sends a mail.", move |_: NoInput| mail(own.clone()));
            let tools = ToolLoop::new(&*model).durable(&ctx, "answer").tool(pay).tool(mail);
            let outcome = tools.run(ChatRequest::user("pay, then mail")).await?;
            Ok::<_, BoxError>(Chat::update().answer(outcome.text()))
        }
    };
    let node = node.retry(RetryPolicy::attempts(3).initial(Duration::ZERO));
    StateGraph::new()
        .node("answer", node)
        .edge(START, "answer")
        .compile()
        .unwrap()
        .checkpointer(MemorySaver::new())
}

#[tokio::test]
async fn after_an_interrupt_in_a_tool() {
    let model = script();
    let log = Log::default();
    let mails = Arc::clone(&log);
    let graph = graph(&model, &log, move |ctx| {
        let mails = Arc::clone(&mails);
        async move {
            let approved: bool = ctx.interrupt_as("mail", "send it?")?;
            mails.lock().unwrap().push("mail");
            Ok(format!("approved: {approved}"))
        }
    });
    let asked = graph.invoke(Chat::update()).thread("t").await.unwrap();
    assert_eq!((asked.interrupts().len(), log_of(&log)), (1, vec!["pay"]));
    let chat = graph.resume(true).thread("t").await.unwrap().into_finished().unwrap();
    assert_eq!((&*chat.answer, log_of(&log)), ("done", vec!["pay", "mail"]));
    assert_eq!(model.requests().len(), 2);
}

#[tokio::test]
async fn after_a_retry_of_the_node() {
    let model = script();
    let log = Log::default();
    let mails = Arc::clone(&log);
    let failures = Arc::new(AtomicU32::new(0));
    let graph = graph(&model, &log, move |_| {
        let mails = Arc::clone(&mails);
        let failures = Arc::clone(&failures);
        async move {
            if failures.fetch_add(1, Ordering::SeqCst) == 0 {
                return Err(ToolError::fatal("the mail server is away"));
            }
            mails.lock().unwrap().push("mail");
            Ok("sent".to_owned())
        }
    });
    let chat = graph.invoke(Chat::update()).thread("t").await.unwrap().into_finished().unwrap();
    assert_eq!((&*chat.answer, log_of(&log)), ("done", vec!["pay", "mail"]));
    assert_eq!(model.requests().len(), 2);
}

/// The run is dropped in the middle of the second tool, as a killed process leaves it. The paused clock moves
/// when nothing else can.
#[tokio::test(start_paused = true)]
async fn after_a_kill_in_a_tool() {
    let model = script();
    let log = Log::default();
    let mails = Arc::clone(&log);
    let calls = Arc::new(AtomicU32::new(0));
    let graph = graph(&model, &log, move |_| {
        let mails = Arc::clone(&mails);
        let calls = Arc::clone(&calls);
        async move {
            if calls.fetch_add(1, Ordering::SeqCst) == 0 {
                std::future::pending::<()>().await;
            }
            mails.lock().unwrap().push("mail");
            Ok("sent".to_owned())
        }
    });
    let call = graph.invoke(Chat::update()).thread("t").into_future();
    assert!(tokio::time::timeout(Duration::from_secs(1), call).await.is_err());
    let chat = graph.proceed().thread("t").await.unwrap().into_finished().unwrap();
    assert_eq!((&*chat.answer, log_of(&log)), ("done", vec!["pay", "mail"]));
    assert_eq!(model.requests().len(), 2);
}

/// Two loops of one name in a row are told apart by their place; what a step stored in another type is an
/// error.
#[tokio::test]
async fn a_stored_result_of_another_type_is_an_error() {
    let model = Arc::new(ScriptedModel::new([Reply::text("one")]));
    let node = move |ctx: Ctx| {
        let model = Arc::clone(&model);
        async move {
            let _: u32 = ctx.once("answer: model", async { Ok(7) }).await?;
            let again = ctx.clone();
            if ctx.attempt() == 1 {
                return Err(BoxError::from("again"));
            }
            let outcome = ToolLoop::new(&*model).durable(&again, "answer").run(ChatRequest::user("hi")).await;
            outcome?;
            Ok(Chat::update())
        }
    };
    let graph = StateGraph::new()
        .node("a", node.retry(RetryPolicy::attempts(2).initial(Duration::ZERO)))
        .edge(START, "a")
        .compile()
        .unwrap();
    // The loop's step is the second call of that name, so it is not mistaken for the first.
    graph.invoke(Chat::update()).await.unwrap().into_finished().unwrap();

    let node = |ctx: Ctx| async move {
        let model = ScriptedModel::new([Reply::text("one")]);
        match ctx.attempt() {
            1 => {
                let _: u32 = ctx.once("answer: model", async { Ok(7) }).await?;
                Err(BoxError::from("again"))
            }
            _ => {
                ToolLoop::new(&model).durable(&ctx, "answer").run(ChatRequest::user("hi")).await?;
                Ok(Chat::update())
            }
        }
    };
    let graph = StateGraph::new()
        .node("a", node.retry(RetryPolicy::attempts(2).initial(Duration::ZERO)))
        .edge(START, "a")
        .compile()
        .unwrap();
    let error = graph.invoke(Chat::update()).await.unwrap_err();
    assert_eq!(error.code(), Code::Once);
    assert!(error.to_string().contains("E_LLM_DURABLE_STEP"), "{error}");
}
