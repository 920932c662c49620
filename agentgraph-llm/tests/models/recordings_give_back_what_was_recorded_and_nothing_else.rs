//! A recording answers like the model that was recorded, asks nothing, and holds no secret.

use std::path::PathBuf;
use std::time::Duration;

use agentgraph_llm::prelude::*;
use agentgraph_llm::{Code, Error, Recording, Thinking};
use futures_util::StreamExt;
use proptest::prelude::*;
use serde_json::json;

struct Folder(PathBuf);

impl Folder {
    fn new() -> Self {
        static COUNT: std::sync::atomic::AtomicUsize = std::sync::atomic::AtomicUsize::new(0);
        let at = COUNT.fetch_add(1, std::sync::atomic::Ordering::Relaxed);
        let path = std::env::temp_dir().join(format!("agentgraph-recordings-{}-{at}", std::process::id()));
        std::fs::create_dir_all(&path).unwrap();
        Folder(path)
    }

    fn file(&self) -> PathBuf {
        self.0.join("recording.jsonl")
    }
}

impl Drop for Folder {
    fn drop(&mut self) {
        let _ = std::fs::remove_dir_all(&self.0);
    }
}

async fn events(model: &Recording, request: ChatRequest) -> Vec<agentgraph_llm::Result<ChatEvent>> {
    match model.stream(request).await {
        Ok(events) => events.collect().await,
        Err(error) => vec![Err(error)],
    }
}

fn shown(events: &[agentgraph_llm::Result<ChatEvent>]) -> Vec<String> {
    events.iter().map(|event| format!("{event:?}")).collect()
}

#[tokio::test]
async fn streams_and_errors_come_back_as_they_were() {
    let folder = Folder::new();
    let limited = Error::new(Code::RateLimited, "wait")
        .with_status(429)
        .with_request_id("req_1")
        .with_retry_after(Duration::from_secs(7));
    let call = Reply::thinking("Hm, well.", "signed").and_tool_call("add", json!({"a": 2, "b": [3, 4]}));
    let live = ScriptedModel::new([call, Reply::error(limited), Reply::text("one two three")]);
    let recording = Recording::of(live, folder.file()).unwrap();
    let request = || ChatRequest::user("hi").with_temperature(0.5);
    let mut recorded = Vec::new();
    for _ in 0..3 {
        recorded.push(shown(&events(&recording, request()).await));
    }
    let replay = Recording::open(folder.file()).unwrap();
    assert_eq!((replay.info(), replay.remaining()), (recording.info(), 3));
    for expected in recorded {
        assert_eq!(shown(&events(&replay, request()).await), expected);
    }
    let missed = events(&replay, request()).await.remove(0).unwrap_err();
    assert_eq!((missed.code(), replay.remaining()), (Code::Recording, 0));
}

#[tokio::test]
async fn the_ids_of_messages_do_not_matter_and_everything_that_a_model_sees_does() {
    let folder = Folder::new();
    let recording = Recording::of(ScriptedModel::from_fn(|_| Reply::text("x")), folder.file()).unwrap();
    let asked = || ChatRequest::new([Message::user("hi")]).with_system("Be brief.");
    recording.chat(asked()).await.unwrap();
    let tool = agentgraph_llm::ToolSpec::new("t", "", json!({"type": "object"}));
    let thought = Thinking::new("hm", Some("s".to_owned()));
    let others = [
        ChatRequest::user("hi"),
        asked().with_max_tokens(1),
        asked().with_stop("."),
        asked().with_tools([tool]),
        asked().with_tool_choice(ToolChoice::any()),
        asked().with_extra("seed", json!(1)),
        asked().with_effort(agentgraph_llm::Effort::Low),
        asked().with_message(Message::new(Role::Assistant, [thought])),
    ];
    let replay = Recording::open(folder.file()).unwrap();
    for other in others {
        assert_eq!(replay.chat(other).await.unwrap_err().code(), Code::Recording);
    }
    assert_eq!(replay.chat(asked()).await.unwrap().message.text(), "x");
}

#[tokio::test]
async fn a_stream_that_is_dropped_is_not_recorded() {
    let folder = Folder::new();
    let recording = Recording::of(ScriptedModel::from_fn(|_| Reply::text("a b c")), folder.file()).unwrap();
    let mut stream = recording.stream(ChatRequest::user("hi")).await.unwrap();
    stream.next().await.unwrap().unwrap();
    drop(stream);
    assert_eq!(std::fs::read_to_string(folder.file()).unwrap(), "");
}

#[test]
fn a_file_that_is_no_recording_is_an_error_with_its_line() {
    let folder = Folder::new();
    assert_eq!(Recording::open(folder.file()).unwrap_err().code(), Code::Recording);
    for text in ["{}", "not JSON", "[1]", "{\"request\": 1}"] {
        std::fs::write(folder.file(), format!("\n{text}\n")).unwrap();
        let error = Recording::open(folder.file()).unwrap_err();
        assert!(error.message().contains("line 2"), "{error}");
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(64))]

    /// The secret is in the question, in the pieces of the answer, and in arguments, wherever they are cut.
    #[test]
    fn a_secret_is_in_no_recording(secret in "[a-z][a-z\"\\\\ é]{2,10}[a-z]", around in "[A-Z]{0,5}") {
        let runtime = tokio::runtime::Builder::new_current_thread().build().unwrap();
        runtime.block_on(async {
            let folder = Folder::new();
            let text = format!("{around}{secret}{around}");
            let answer = Reply::text(&text).and_tool_call("t", json!({ "key": text }));
            let recording = Recording::of(ScriptedModel::new([answer]), folder.file()).unwrap();
            let recording = recording.mask(secret.clone());
            let request = || {
                let call = agentgraph_llm::ToolUse::new("c", "t", json!({ "key": text }));
                ChatRequest::user(&text).with_message(Message::new(Role::Assistant, [call]))
            };
            recording.chat(request()).await.unwrap();
            let written = std::fs::read_to_string(folder.file()).unwrap();
            let mut form = secret.clone();
            for _ in 0..4 {
                assert!(!written.contains(&form), "{form} in {written}");
                form = serde_json::Value::from(form).to_string().trim_matches('"').to_owned();
            }
            let replay = Recording::open(folder.file()).unwrap().mask(secret.clone());
            let answer = replay.chat(request()).await.unwrap();
            assert_eq!(answer.message.text(), format!("{around}[masked]{around}"));
        });
    }
}
