//! The invariants of the tool loop, each against a scripted model.

use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};

use agentgraph_llm::StopReason;
use agentgraph_llm::prelude::*;
use agentgraph_llm::{Code, Error, MessageIds, Result, Usage};
use schemars::JsonSchema;
use serde::Deserialize;
use serde_json::json;
use tokio::sync::Barrier;

#[derive(Deserialize, JsonSchema)]
struct Text {
    text: String,
}

#[derive(Deserialize, JsonSchema)]
struct Nothing {}

/// Returns a tool that returns its text and counts its calls.
fn echo(count: &Arc<AtomicUsize>) -> FnTool {
    let count = Arc::clone(count);
    FnTool::new("echo", "Gives back its text.", move |input: Text| {
        count.fetch_add(1, Ordering::SeqCst);
        async move { Ok::<_, ToolError>(input.text) }
    })
}

/// Returns each message as one line.
fn show(messages: &[Message]) -> Vec<String> {
    let block = |block: &Block| match block {
        Block::Text(text) => text.text.clone(),
        Block::ToolUse(call) => format!("{}={}{}", call.id, call.name, call.input.text()),
        Block::ToolResult(result) => {
            format!(
                "{}{}{}",
                result.tool_use_id,
                if result.is_error { " failed: " } else { ": " },
                result.as_text()
            )
        }
        other => format!("{other:?}"),
    };
    let line = |message: &Message| message.content.iter().map(block).collect::<Vec<_>>().join(" | ");
    messages.iter().map(|message| format!("{:?}: {}", message.role, line(message))).collect()
}

/// Runs the script with `echo`, asserts that each call has a result, and returns the number of runs of
/// `echo`.
async fn run(script: impl IntoIterator<Item = Reply>, max_rounds: usize) -> (ToolLoopOutcome, usize) {
    let count = Arc::new(AtomicUsize::new(0));
    let model = ScriptedModel::new(script);
    let tools = ToolLoop::new(&model).tool(echo(&count)).max_rounds(max_rounds);
    let outcome = tools.run(ChatRequest::user("go")).await.unwrap();
    let asked: Vec<_> = outcome.messages.iter().flat_map(Message::tool_uses).map(|call| &call.id).collect();
    let answered: Vec<_> =
        outcome.messages.iter().flat_map(Message::results).map(|got| &got.tool_use_id).collect();
    assert_eq!(asked, answered);
    assert_eq!(model.requests().len(), outcome.rounds);
    (outcome, count.load(Ordering::SeqCst))
}

#[tokio::test]
async fn the_model_gets_the_results_of_all_its_calls_in_one_message() {
    let script = [
        Reply::text("Let me see.")
            .and_tool_call("echo", json!({"text": "a"}))
            .and_tool_call("echo", json!({"text": "b"}))
            .with_usage(Usage::new(10, 1)),
        Reply::text("Done.").with_usage(Usage::new(20, 2)),
    ];
    let (outcome, calls) = run(script, 9).await;
    let expected = [
        r#"Assistant: Let me see. | call-1=echo{"text":"a"} | call-2=echo{"text":"b"}"#,
        "User: call-1: a | call-2: b",
        "Assistant: Done.",
    ];
    assert_eq!(show(&outcome.messages), expected);
    assert_eq!((outcome.ended, outcome.rounds, calls), (LoopEnd::Finished, 2, 2));
    assert_eq!((outcome.usage, outcome.text().as_str()), (Usage::new(30, 3), "Done."));
}

#[tokio::test]
async fn the_model_gets_the_whole_conversation_and_the_tools() {
    let model = ScriptedModel::new([Reply::tool_call("echo", json!({"text": "a"})), Reply::text("Done.")]);
    let tool = echo(&Arc::default());
    let spec = tool.spec();
    let request = ChatRequest::user("go").with_system("Be brief.");
    let outcome = ToolLoop::new(&model).tool(tool).run(request.clone()).await.unwrap();
    let requests = model.requests();
    assert!(requests.iter().all(|asked| asked.tools == [spec.clone()] && asked.system == request.system));
    assert_eq!(requests[0].messages, request.messages);
    assert_eq!(requests[1].messages, [&request.messages[..], &outcome.messages[..2]].concat());
}

#[tokio::test]
async fn a_forced_call_is_forced_in_the_first_round_only() {
    let any = ToolChoice::any();
    let one = ToolChoice::tool("echo");
    for (choice, later) in
        [(any, ToolChoice::auto()), (one, ToolChoice::auto()), (ToolChoice::none(), ToolChoice::none())]
    {
        let model =
            ScriptedModel::new([Reply::tool_call("echo", json!({"text": "a"})), Reply::text("Done.")]);
        let request = ChatRequest::user("go").with_tool_choice(choice.clone());
        ToolLoop::new(&model).tool(echo(&Arc::default())).run(request).await.unwrap();
        let asked: Vec<_> = model.requests().into_iter().map(|request| request.tool_choice).collect();
        assert_eq!(asked, [choice, later]);
    }
}

#[tokio::test]
async fn calls_run_at_the_same_time_and_results_are_in_the_order_of_the_calls() {
    let barrier = Arc::new(Barrier::new(3));
    let order = Arc::new(Mutex::new(Vec::new()));
    let seen = Arc::clone(&order);
    let meet =
        FnTool::new("meet", "Waits for the others; the last call returns first.", move |input: Text| {
            let barrier = Arc::clone(&barrier);
            let order = Arc::clone(&seen);
            async move {
                barrier.wait().await;
                let turn = input.text.parse::<usize>()?;
                while order.lock().unwrap().len() < turn {
                    tokio::task::yield_now().await;
                }
                order.lock().unwrap().push(turn);
                Ok::<_, ToolError>(input.text)
            }
        });
    let calls = ["2", "1", "0"];
    let script =
        calls.iter().fold(Reply::empty(), |reply, text| reply.and_tool_call("meet", json!({"text": text})));
    let model = ScriptedModel::new([script, Reply::text("Done.")]);
    let outcome = ToolLoop::new(&model).tool(meet).run(ChatRequest::user("go")).await.unwrap();
    assert_eq!(*order.lock().unwrap(), [0, 1, 2]);
    assert_eq!(show(&outcome.messages[1..2]), ["User: call-1: 2 | call-2: 1 | call-3: 0"]);
}

#[tokio::test]
async fn at_most_the_allowed_calls_run_at_the_same_time_and_each_gets_its_turn() {
    for (allowed, most) in [(Some(3), 3), (Some(1), 1), (Some(0), 1), (None, 16)] {
        let running = Arc::new(AtomicUsize::new(0));
        let peak = Arc::new(AtomicUsize::new(0));
        let now = Arc::clone(&running);
        let seen = Arc::clone(&peak);
        let busy = FnTool::new("busy", "Is busy for some turns.", move |input: Text| {
            let now = Arc::clone(&now);
            let seen = Arc::clone(&seen);
            async move {
                seen.fetch_max(now.fetch_add(1, Ordering::SeqCst) + 1, Ordering::SeqCst);
                for _ in 0..5 {
                    tokio::task::yield_now().await;
                }
                now.fetch_sub(1, Ordering::SeqCst);
                Ok::<_, ToolError>(input.text)
            }
        });
        let numbers: Vec<String> = (1..=40).map(|n| n.to_string()).collect();
        let script = numbers
            .iter()
            .fold(Reply::empty(), |reply, text| reply.and_tool_call("busy", json!({"text": text})));
        let model = ScriptedModel::new([script, Reply::text("Done.")]);
        let tools = ToolLoop::new(&model).tool(busy);
        let tools = match allowed {
            Some(calls) => tools.max_concurrency(calls),
            None => tools,
        };
        let outcome = tools.run(ChatRequest::user("go")).await.unwrap();
        assert_eq!(peak.load(Ordering::SeqCst), most);
        let results: Vec<String> = outcome.messages[1].results().map(|result| result.as_text()).collect();
        assert_eq!(results, numbers);
    }
}

#[tokio::test]
async fn a_call_that_cannot_run_is_answered_and_the_loop_continues() {
    // The schema is checked first if the crate does that.
    let [missing, integer] = match cfg!(feature = "validate") {
        true => [r#""text" is a required property"#, r#"at `/text`: 7 is not of type "string""#],
        false => ["missing field `text`", "invalid type: integer `7`"],
    };
    let (missing, integer) =
        (format!("invalid arguments: {missing}"), format!("invalid arguments: {integer}"));
    let cases = [
        (Reply::tool_call("ehco", json!({})), "there is no tool `ehco`; there are `echo`"),
        (Reply::tool_call("echo", json!({"txt": "a"})), &missing),
        (Reply::tool_call("echo", json!({"text": 7})), &integer),
        (Reply::tool_call("echo", json!(["a"])), "invalid arguments: they must be a JSON object"),
        (Reply::raw_tool_call("echo", "{\"text\": \"a"), "invalid arguments: they are not JSON: EOF"),
        (Reply::raw_tool_call("echo", ""), "invalid arguments: they are not JSON: EOF"),
    ];
    for (reply, expected) in cases {
        let (outcome, calls) =
            run([reply.and_tool_call("echo", json!({"text": "b"})), Reply::text("Done.")], 9).await;
        let results = show(&outcome.messages[1..2]).remove(0);
        assert!(results.starts_with(&format!("User: call-1 failed: {expected}")), "{results}");
        assert!(results.ends_with("| call-2: b"), "{results}");
        assert_eq!((calls, outcome.ended), (1, LoopEnd::Finished));
    }
}

#[tokio::test]
async fn the_model_reads_failures_and_a_fatal_one_ends_the_loop_after_all_calls() {
    let ended = Arc::new(AtomicUsize::new(0));
    let count = Arc::clone(&ended);
    let slow = FnTool::new("slow", "Takes its time.", move |_: Nothing| {
        let count = Arc::clone(&count);
        async move {
            tokio::task::yield_now().await;
            count.fetch_add(1, Ordering::SeqCst);
            Ok::<_, ToolError>("slow")
        }
    });
    let told =
        FnTool::new("told", "", async |_: Nothing| Err::<String, _>(ToolError::failed("no such file")));
    let fatal = FnTool::new("fatal", "", async |_: Nothing| {
        std::fs::read_to_string("/nowhere/at/all")?;
        Ok::<_, ToolError>("never")
    });
    let model = ScriptedModel::new([
        Reply::tool_call("told", json!({})).and_tool_call("slow", json!({})),
        Reply::tool_call("fatal", json!({})).and_tool_call("slow", json!({})),
    ]);
    let tools = ToolLoop::new(&model).tool(slow).tool(told).tool(fatal);
    let error = tools.run(ChatRequest::user("go")).await.unwrap_err();
    let results = show(&model.requests()[1].messages[2..]);
    assert_eq!(results, ["User: call-1 failed: no such file | call-2: slow"]);
    assert_eq!(error.code(), Code::ToolFailed);
    assert_eq!(error.cause::<std::io::Error>().unwrap().kind(), std::io::ErrorKind::NotFound);
    assert!(error.message().contains("tool `fatal` failed"), "{error}");
    assert_eq!(ended.load(Ordering::SeqCst), 2, "the sibling of a fatal call runs to its end");
    assert!(error.into_cause().unwrap().is::<std::io::Error>());
}

#[tokio::test]
async fn tools_with_equal_or_invalid_names_are_refused_before_the_model_is_called() {
    let model = ScriptedModel::new(["never"]);
    let named = |name: &str| FnTool::new(name, "", async |_: Nothing| Ok::<_, ToolError>(""));
    let twice = ToolLoop::new(&model).tool(named("a")).tool(named("a")).run(ChatRequest::user("go")).await;
    let offered = ChatRequest::user("go").with_tools([named("a").spec()]);
    let clash = ToolLoop::new(&model).tool(named("a")).run(offered).await;
    let spaced = ToolLoop::new(&model).tool(named("a b")).run(ChatRequest::user("go")).await;
    let number = FnTool::new("n", "", async |_: u8| Ok::<_, ToolError>(""));
    let number = ToolLoop::new(&model).tool(number).run(ChatRequest::user("go")).await;
    for (result, named) in
        [(twice, "two tools are named `a`"), (clash, "`a`"), (spaced, "`a b`"), (number, "struct")]
    {
        let error = result.unwrap_err();
        assert!(error.code() == Code::BadTool && error.message().contains(named), "{error}");
    }
    assert_eq!(model.remaining(), 1);
}

#[tokio::test]
async fn the_limit_is_exact_and_calls_beyond_it_are_answered_but_not_run() {
    let script = || (0..9).map(|_| Reply::tool_call("echo", json!({"text": "again"})));
    for limit in 1..=3 {
        let (outcome, calls) = run(script(), limit).await;
        assert_eq!((outcome.ended, outcome.rounds, calls), (LoopEnd::LimitReached, limit, limit - 1));
        let last = show(&outcome.messages).pop().unwrap();
        assert!(
            last.ends_with(&format!("failed: not run: the limit of {limit} rounds was reached")),
            "{last}"
        );
    }
    let (outcome, _) = run(script(), 0).await;
    assert_eq!(outcome.rounds, 1);
    let (outcome, _) = run(["only text"].map(Reply::from), 1).await;
    assert_eq!(outcome.ended, LoopEnd::Finished);
}

#[tokio::test]
async fn no_call_of_an_answer_cut_by_the_token_limit_is_run() {
    let whole = || Reply::tool_call("echo", json!({"text": "whole"}));
    for stop in [StopReason::MaxTokens, StopReason::ContextWindowExceeded] {
        for (before, expected) in [(Reply::empty(), 1), (whole(), 2)] {
            let cut = before.and_tool_call("echo", json!({"text": "cu"})).with_stop(stop.clone());
            let (outcome, calls) = run([cut, Reply::text("Done.")], 9).await;
            assert_eq!((outcome.ended, calls), (LoopEnd::Finished, 0));
            let results = show(&outcome.messages[1..2]).remove(0);
            let refused = results.matches("failed: not run: the answer reached the token limit").count();
            assert_eq!(refused, expected, "{results}");
        }
        let (_, calls) = run([whole().and_text("and").with_stop(stop), Reply::text("Done.")], 9).await;
        assert_eq!(calls, 0);
    }
}

#[tokio::test]
async fn an_empty_answer_is_asked_for_once_more() {
    let model = ScriptedModel::new([Reply::text(""), Reply::text("Done.")]);
    let outcome = ToolLoop::new(&model).run(ChatRequest::user("go")).await.unwrap();
    assert_eq!((outcome.text().as_str(), outcome.rounds, outcome.messages.len()), ("Done.", 1, 1));
    let model = ScriptedModel::new([Reply::text(""), Reply::text(""), Reply::text("never")]);
    let error = ToolLoop::new(&model).run(ChatRequest::user("go")).await.unwrap_err();
    assert_eq!((error.code(), model.requests().len()), (Code::EmptyAnswer, 2));
    // A refusal and a cut answer may be empty.
    for stop in [StopReason::Refusal, StopReason::MaxTokens] {
        let (outcome, _) = run([Reply::text("").with_stop(stop)], 9).await;
        assert_eq!(outcome.text(), "");
    }
}

#[tokio::test]
async fn a_cut_or_refused_answer_is_reported_as_such() {
    for (stop, expected) in [
        (StopReason::MaxTokens, LoopEnd::Truncated),
        (StopReason::ContextWindowExceeded, LoopEnd::Truncated),
        (StopReason::Refusal, LoopEnd::Refused),
        (StopReason::StopSequence, LoopEnd::Finished),
    ] {
        let (outcome, _) = run([Reply::text("I").with_stop(stop.clone())], 9).await;
        assert_eq!((outcome.ended, outcome.response.stop), (expected, stop));
    }
    let refused = Reply::tool_call("echo", json!({"text": "a"})).with_stop(StopReason::Refusal);
    let (outcome, calls) = run([refused], 9).await;
    assert_eq!((outcome.ended, calls), (LoopEnd::Refused, 0));
}

#[tokio::test]
async fn a_paused_turn_goes_back_unchanged_and_counts_as_a_round() {
    let raw = RawJson::parse_text(r#"{"type": "server_tool_use",  "n": 1.0}"#).unwrap();
    let paused = || Reply::block(Block::Unknown(raw.clone())).with_stop(StopReason::PauseTurn);
    let (outcome, _) = run([paused(), Reply::text("Done.")], 9).await;
    assert_eq!((outcome.ended, outcome.rounds, outcome.messages.len()), (LoopEnd::Finished, 2, 2));
    assert_eq!(outcome.messages[0].content, [Block::Unknown(raw.clone())]);
    let (outcome, _) = run([paused(), paused()], 2).await;
    assert_eq!((outcome.ended, outcome.rounds), (LoopEnd::LimitReached, 2));
}

#[tokio::test]
async fn an_output_returned_directly_ends_the_loop() {
    let tool = FnTool::new("ask", "", async |input: Text| {
        Ok::<_, ToolError>(ToolOutput::text(input.text).returned_directly())
    });
    let call = |text| json!({ "text": text });
    let model = ScriptedModel::new([Reply::tool_call("echo", call("a"))
        .and_tool_call("ask", call("b"))
        .and_tool_call("ask", call("c"))]);
    let tools = ToolLoop::new(&model).tool(echo(&Arc::default())).tool(tool);
    let outcome = tools.run(ChatRequest::user("go")).await.unwrap();
    assert_eq!((outcome.ended, outcome.text().as_str(), outcome.rounds), (LoopEnd::ReturnedDirectly, "b", 1));
    assert_eq!(show(&outcome.messages[1..]), ["User: call-1: a | call-2: b | call-3: c"]);
}

#[tokio::test]
async fn events_are_shown_and_give_the_same_outcome() {
    let script = || [Reply::tool_call("echo", json!({"text": "a b"})), Reply::text("It is done.")];
    let ids = || MessageIds::sequence("m");
    let (plain, shown) =
        (ScriptedModel::new(script()).message_ids(ids()), ScriptedModel::new(script()).message_ids(ids()));
    let seen = Mutex::new(String::new());
    let tool = || echo(&Arc::default());
    let request = ChatRequest::user("go");
    let whole = ToolLoop::new(&plain).message_ids(ids()).tool(tool()).run(request.clone()).await.unwrap();
    let streamed = ToolLoop::new(&shown)
        .message_ids(ids())
        .tool(tool())
        .on_event(async |event| {
            let shown = match event {
                ChatEvent::TextDelta { text, .. } => format!("[{text}]"),
                ChatEvent::ToolUseStarted { name, .. } => format!("<{name}>"),
                ChatEvent::ToolInputDelta { json, .. } => json,
                ChatEvent::Finished(response) => format!(" {} ", response.stop),
                _ => String::new(),
            };
            tokio::task::yield_now().await;
            *seen.lock().unwrap() += &shown;
        })
        .run(request)
        .await
        .unwrap();
    assert_eq!(streamed, whole);
    assert_eq!(*seen.lock().unwrap(), r#"<echo>{"text":"a b"} tool_use [It ][is ][done.] end_turn "#);
}

#[tokio::test]
async fn an_error_of_the_model_is_the_loops_error() {
    let model = ScriptedModel::new([Reply::error(Error::new(Code::Overloaded, "try later"))]);
    assert!(ToolLoop::new(&model).run(ChatRequest::user("go")).await.unwrap_err().is_overloaded());
    let error = ToolLoop::new(&model).run(ChatRequest::user("go on")).await.unwrap_err();
    assert_eq!(error.code(), Code::ScriptExhausted);
    assert!(
        error.message().contains("the script has 1 replies") && error.message().contains("go on"),
        "{error}"
    );
}

#[tokio::test]
async fn the_usage_of_rounds_before_a_failure_is_in_the_error() {
    let call = || Reply::tool_call("echo", json!({"text": "a"})).with_usage(Usage::new(10, 1));
    let script = [call(), call(), Reply::error(Error::new(Code::Overloaded, "later"))];
    let model = ScriptedModel::new(script);
    let tools = ToolLoop::new(&model).tool(echo(&Arc::default()));
    let error = tools.run(ChatRequest::user("go")).await.unwrap_err();
    assert_eq!((error.code(), error.usage()), (Code::Overloaded, Usage::new(20, 2)));

    let fatal = FnTool::new("echo", "Fails.", async |_: Text| {
        Err::<String, _>(ToolError::fatal(Error::new(Code::Overloaded, "").with_usage(Usage::new(500, 0))))
    });
    let model = ScriptedModel::new([call()]);
    let error = ToolLoop::new(&model).tool(fatal).run(ChatRequest::user("go")).await.unwrap_err();
    // The usage of the round is counted; that of the tool's own model is not.
    assert_eq!((error.code(), error.usage()), (Code::ToolFailed, Usage::new(10, 1)));

    let model = ScriptedModel::new([Reply::error(Error::new(Code::Overloaded, "later"))]);
    let error = ToolLoop::new(&model).run(ChatRequest::user("go")).await.unwrap_err();
    assert_eq!(error.usage(), Usage::default());
}

/// A loop can run in a node on any runtime: its future is `Send`, and its tools may be shared or borrowed.
#[tokio::test]
async fn a_loop_can_be_spawned_with_shared_and_borrowed_tools() {
    let shared: Vec<Arc<dyn Tool>> = vec![Arc::new(echo(&Arc::default()))];
    let model: Arc<dyn ChatModel> =
        Arc::new(ScriptedModel::new([Reply::tool_call("echo", json!({"text": "a"})), Reply::text("Done.")]));
    let task = tokio::spawn(async move {
        let outcome: Result<ToolLoopOutcome> =
            ToolLoop::new(&model).tools(&shared).run(ChatRequest::user("go")).await;
        outcome.map(|outcome| outcome.text())
    });
    assert_eq!(task.await.unwrap().unwrap(), "Done.");
}
