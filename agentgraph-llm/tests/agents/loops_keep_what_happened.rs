//! A tool loop that fails gives back the messages so far, and shares the execution of calls.

use std::time::Duration;

use agentgraph::prelude::*;
use agentgraph_llm::prelude::*;
use agentgraph_llm::{Code, Error};
use serde_json::json;

use crate::support::{Log, Number, calls, echo, results};

#[tokio::test]
async fn a_loop_that_fails_late_has_its_messages_in_the_error() {
    let log = Log::default();
    let busy = Error::new(Code::Overloaded, "busy");
    let model = ScriptedModel::new([calls("echo", [1]), calls("echo", [2]), Reply::error(busy)]);
    let request = ChatRequest::user("go");
    let error = ToolLoop::new(&model).tool(echo("echo", &log)).run(request.clone()).await.unwrap_err();
    assert_eq!(error.code(), Code::Overloaded);
    assert_eq!(results(error.messages()), ["call-1: 1", "call-2: 2"]);

    let mut again = request;
    again.messages.extend(error.messages().iter().cloned());
    let model = ScriptedModel::new(["done"]);
    assert_eq!(ToolLoop::new(&model).run(again).await.unwrap().text(), "done");
    assert!(!format!("{error:?}").contains("call-1"), "the conversation is not in the texts of the error");
}

#[tokio::test]
async fn a_fatal_tool_leaves_a_conversation_that_can_be_sent_again() {
    let log = Log::default();
    let fatal = FnTool::new("fatal", "", async |_: Number| Err::<String, _>(ToolError::fatal("disk full")));
    let model = ScriptedModel::new([calls("fatal", [1]).and_tool_call("echo", json!({"n": 2}))]);
    let run = ToolLoop::new(&model).tool(fatal).tool(echo("echo", &log)).run(ChatRequest::user("go"));
    let error = run.await.unwrap_err();
    assert_eq!(error.code(), Code::ToolFailed);
    assert_eq!(results(error.messages()), ["call-1: the call failed and ended the run", "call-2: 2"]);
}

#[tokio::test]
async fn a_panic_fails_its_call_only() {
    let log = Log::default();
    let panics = FnTool::new("panics", "", async |number: Number| {
        assert!(number.n > 100, "too small");
        Ok::<_, ToolError>("large")
    });
    let model =
        ScriptedModel::new([calls("panics", [1]).and_tool_call("echo", json!({"n": 2})), Reply::text("ok")]);
    let run = ToolLoop::new(&model).tool(panics).tool(echo("echo", &log)).run(ChatRequest::user("go"));
    let texts = results(&run.await.unwrap().messages);
    assert!(texts[0].contains("panicked"), "{texts:?}");
    assert_eq!(texts[1], "call-2: 2");
}

#[tokio::test]
async fn a_command_in_a_loop_is_a_typed_error() {
    #[derive(State, Clone, Debug, Default)]
    #[state(volatile)]
    struct Any {}
    let commands = FnTool::new("commands", "", async |_: Number| {
        Ok::<_, ToolError>(ToolOutput::text("").with_command(Command::<Any>::to(END)))
    });
    let model = ScriptedModel::new([calls("commands", [1])]);
    let error = ToolLoop::new(&model).tool(commands).run(ChatRequest::user("go")).await.unwrap_err();
    assert_eq!(error.cause::<Error>().unwrap().code(), Code::BadTool);
}

#[tokio::test(start_paused = true)]
async fn a_tool_is_limited_in_time_and_size() {
    let slow = FnTool::new("slow", "", async |_: Number| {
        tokio::time::sleep(Duration::from_secs(60)).await;
        Ok::<_, ToolError>("late")
    });
    let large = FnTool::new("large", "", async |_: Number| Ok::<_, ToolError>("é".repeat(100)));
    let answer = calls("slow", [1]).and_tool_call("large", json!({"n": 1}));
    let model = ScriptedModel::new([answer, Reply::text("ok")]);
    let tools =
        ToolLoop::new(&model).tool(slow.timeout(Duration::from_secs(5))).tool(large.max_result_bytes(11));
    let texts = results(&tools.run(ChatRequest::user("go")).await.unwrap().messages);
    assert_eq!(texts[0], "call-1: the tool took longer than 5s and was stopped");
    assert_eq!(
        texts[1],
        "call-2: ééééé[the result was cut: 10 of 200 bytes are shown; ask for less at a time]"
    );
}

#[tokio::test]
async fn a_loop_in_a_node_gives_its_tools_the_context() {
    #[derive(State, Clone, Debug, Default)]
    #[state(volatile)]
    struct Text {
        text: String,
    }
    async fn node(ctx: Ctx) -> Result<TextUpdate> {
        let place = FnTool::with_call("place", "", async |_: Number, call: ToolCall| {
            Ok::<_, ToolError>(call.ctx()?.node().to_owned())
        });
        let model = ScriptedModel::new([calls("place", [1]), Reply::text("ok")]);
        let outcome = ToolLoop::new(&model).ctx(&ctx).tool(place).run(ChatRequest::user("go")).await?;
        Ok(Text::update().text(results(&outcome.messages).concat()))
    }
    let graph = StateGraph::new().node("here", node).edge(START, "here").compile().unwrap();
    assert_eq!(graph.invoke(Text::update()).await.unwrap().output().text, "call-1: here");
}
