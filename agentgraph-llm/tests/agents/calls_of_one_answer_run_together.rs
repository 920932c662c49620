//! The calls of one answer: all at once, answered in their order, and none cuts another.

use std::sync::Arc;
use std::time::Duration;

use agentgraph::prelude::*;
use agentgraph_llm::prelude::*;
use agentgraph_llm::{Code, MessageChannels, StateType, StopReason, ToolNode, conversation};
use serde::{Deserialize, Serialize};
use serde_json::json;
use tokio::sync::Barrier;

use crate::support::{Log, Number, calls, echo, results};

#[derive(State, Serialize, Deserialize, Clone, Debug, Default)]
struct Chat {
    #[reduce(by_id)]
    messages: Vec<Message>,
}

impl MessageChannels for Chat {
    fn messages(&self) -> &[Message] {
        &self.messages
    }

    fn add_messages(messages: Vec<Message>) -> ChatUpdate {
        Chat::update().messages(messages)
    }
}

/// Runs the calls of one answer, in one node or with a task for each.
async fn run(tools: Vec<Arc<dyn Tool>>, answer: Reply, by_dispatch: bool) -> Result<Chat> {
    let response = ScriptedModel::new([answer]).chat(ChatRequest::user("go")).await?;
    let graph = StateGraph::new().node("tools", ToolNode::new(tools)?);
    let graph = if by_dispatch {
        graph.branch(START, |chat: &Chat| ToolNode::dispatch("tools", &chat.messages), ["tools"])
    } else {
        graph.edge(START, "tools")
    };
    graph
        .compile()?
        .invoke(Chat::update().messages([response.message]))
        .await?
        .into_finished()
        .map_err(Into::into)
}

#[tokio::test(start_paused = true)]
async fn results_are_in_the_order_of_the_calls_whatever_ends_first() {
    let late = FnTool::new("late", "", async |number: Number| {
        tokio::time::sleep(Duration::from_secs(10 - number.n)).await;
        Ok::<_, ToolError>(number.n.to_string())
    });
    for by_dispatch in [false, true] {
        let chat = run(vec![Arc::new(late.clone())], calls("late", [1, 2, 3]), by_dispatch).await.unwrap();
        assert_eq!(results(&chat.messages), ["call-1: 1", "call-2: 2", "call-3: 3"]);
        let sent = conversation::complete(&chat.messages);
        assert_eq!(sent.len(), 2, "all results are in one message");
        assert_eq!(results(&sent), results(&chat.messages));
    }
}

#[tokio::test]
async fn the_calls_run_at_the_same_time() {
    for by_dispatch in [false, true] {
        let barrier = Arc::new(Barrier::new(3));
        let meet = FnTool::new("meet", "", move |number: Number| {
            let barrier = Arc::clone(&barrier);
            async move {
                barrier.wait().await;
                Ok::<_, ToolError>(number.n.to_string())
            }
        });
        let chat = run(vec![Arc::new(meet)], calls("meet", [1, 2, 3]), by_dispatch).await.unwrap();
        assert_eq!(results(&chat.messages).len(), 3);
    }
}

#[tokio::test]
async fn a_call_that_cannot_run_or_fails_is_answered_and_the_others_go_on() {
    let log = Log::default();
    let fails =
        FnTool::new("fails", "", async |_: Number| Err::<String, _>(ToolError::failed("no such city")));
    let panics = FnTool::new("panics", "", async |number: Number| {
        assert!(number.n > 100, "secret of the program");
        Ok::<_, ToolError>("large")
    });
    let answer = || {
        Reply::empty()
            .and_tool_call("missing", json!({}))
            .and_tool_call("echo", json!({"n": "one"}))
            .and_raw_tool_call("echo", r#"{"n": "#)
            .and_tool_call("echo", json!([1]))
            .and_tool_call("fails", json!({"n": 1}))
            .and_tool_call("panics", json!({"n": 1}))
            .and_tool_call("echo", json!({"n": 7}))
    };
    for by_dispatch in [false, true] {
        let tools: Vec<Arc<dyn Tool>> =
            vec![Arc::new(echo("echo", &log)), Arc::new(fails.clone()), Arc::new(panics.clone())];
        let chat = run(tools, answer(), by_dispatch).await.unwrap();
        let texts = results(&chat.messages);
        assert_eq!(texts[0], "call-1: there is no tool `missing`; there are `echo`, `fails`, `panics`");
        assert!(texts[1].starts_with("call-2: invalid arguments: "), "{}", texts[1]);
        assert!(texts[2].starts_with("call-3: invalid arguments: they are not JSON"), "{}", texts[2]);
        assert_eq!(texts[3], "call-4: invalid arguments: they must be a JSON object");
        assert_eq!(texts[4], "call-5: no such city");
        assert!(texts[5].contains("panicked") && !texts[5].contains("secret"), "{}", texts[5]);
        assert_eq!(texts[6], "call-7: 7");
        let errors = chat.messages.iter().flat_map(Message::results).filter(|result| result.is_error).count();
        assert_eq!(errors, 6);
    }
    assert_eq!(log.lines(), ["echo 7", "echo 7"]);
}

#[tokio::test]
async fn a_fatal_error_fails_the_node_with_its_type() {
    let fatal = FnTool::new("fatal", "", async |_: Number| {
        Ok::<String, ToolError>(std::fs::read_to_string("/nowhere")?)
    });
    let error = run(vec![Arc::new(fatal)], calls("fatal", [1]), true).await.unwrap_err();
    let mut cause: Option<&(dyn std::error::Error + 'static)> = Some(&*error);
    let mut found = false;
    while let Some(error) = cause {
        found |= error.is::<std::io::Error>();
        cause = error.source();
    }
    assert!(found, "{error:?}");
}

#[tokio::test]
async fn artifacts_reach_the_state_and_no_model() {
    let artful = FnTool::new("artful", "", async |number: Number| {
        Ok::<_, ToolError>(ToolOutput::text("drawn").with_artifact(json!({ "n": number.n })))
    });
    let chat = run(vec![Arc::new(artful)], calls("artful", [4]), true).await.unwrap();
    let result = chat.messages.iter().flat_map(Message::results).next().unwrap();
    assert_eq!(result.artifact.as_ref().unwrap().get(), r#"{"n":4}"#);
    assert_eq!(result.as_text(), "drawn");
}

#[tokio::test]
async fn tools_of_one_name_and_of_another_state_are_refused() {
    let log = Log::default();
    let twice = ToolNode::new([echo("a", &log), echo("a", &log)]).unwrap_err();
    assert_eq!(twice.code(), Code::BadTool);

    let other = echo("a", &log).for_state::<agentgraph_llm::AgentState>();
    assert_eq!(other.state(), Some(StateType::of::<agentgraph_llm::AgentState>()));
    let node = ToolNode::new([other]).unwrap();
    let error = node.check_state::<Chat>().unwrap_err();
    assert!(error.message().contains("AgentState") && error.message().contains("Chat"), "{error}");
}

#[cfg(feature = "validate")]
#[tokio::test]
async fn arguments_are_checked_against_the_bounds_of_the_schema() {
    let schema =
        json!({"type": "object", "properties": {"n": {"type": "integer", "maximum": 5}}, "required": ["n"]});
    let spec = agentgraph_llm::ToolSpec::new("small", "", schema);
    let small = FnTool::with_spec(spec, async |number: Number| Ok::<_, ToolError>(number.n.to_string()));
    let chat = run(vec![Arc::new(small)], calls("small", [5, 6]), true).await.unwrap();
    let texts = results(&chat.messages);
    assert_eq!(texts[0], "call-1: 5");
    assert!(texts[1].contains("invalid arguments: at `/n`") && texts[1].contains("5"), "{}", texts[1]);
}

#[tokio::test]
async fn a_lone_tool_node_runs_no_call_of_a_cut_or_refused_answer() {
    for by_dispatch in [false, true] {
        for (stop, ran) in [
            (StopReason::MaxTokens, 0),
            (StopReason::ContextWindowExceeded, 0),
            (StopReason::Refusal, 0),
            (StopReason::ToolUse, 2),
        ] {
            let log = Log::default();
            let answer = calls("a", [1, 2]).with_stop(stop.clone());
            let chat = run(vec![Arc::new(echo("a", &log))], answer, by_dispatch).await.unwrap();
            let stored: Chat = serde_json::from_value(serde_json::to_value(&chat).unwrap()).unwrap();
            assert_eq!(stored.messages, chat.messages);
            let refused =
                chat.messages.iter().flat_map(Message::results).filter(|result| result.is_error).count();
            assert_eq!((refused, log.lines().len()), (2 - ran, ran), "{stop}");
        }
    }
}
