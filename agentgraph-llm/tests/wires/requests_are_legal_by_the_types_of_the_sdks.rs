//! What we send, judged by the types of the providers' own SDKs, with further fields forbidden.
//! `.ci/sdk-types` installs them. A body is read by the type and written again, and has to be the same.

use std::io::Write as _;
use std::process::{Command, Stdio};

use agentgraph::store::Embedder as _;
use agentgraph_llm::openai::{OpenAiEmbedder, Profile, chat, responses};
use agentgraph_llm::prelude::*;
use agentgraph_llm::{
    Effort, GeminiEmbedder, MediaSource, OutputSpec, RedactedThinking, TextBlock, Thinking, ToolInput,
    anthropic, gemini,
};
use serde_json::{Value, json};

use crate::wires::server::{Reply, Server};
use crate::wires::wire::{KEY, WIRES, quoted};

/// The bodies to judge.
#[derive(Default)]
struct Cases(Vec<Value>);

impl Cases {
    fn add(&mut self, kind: &str, name: &str, body: &RawJson) {
        let body: Value = body.parse().unwrap();
        self.0.push(json!({"type": kind, "name": name, "body": body}));
    }

    /// Fails with what the judge found, beside the cases that are known to be refused.
    fn judge(self, known: &[&str]) {
        let script =
            std::env::var("SDK_TYPES").expect("run `.ci/sdk-types`, which sets the path of the judge");
        let mut command = Command::new("python3");
        let mut judge = command.arg(script).stdin(Stdio::piped()).stdout(Stdio::piped()).spawn().unwrap();
        let lines: String = self.0.iter().map(|case| format!("{case}\n")).collect();
        judge.stdin.take().unwrap().write_all(lines.as_bytes()).unwrap();
        let output = judge.wait_with_output().unwrap();
        assert!(output.status.success());
        let said = String::from_utf8(output.stdout).unwrap();
        let (found, count) = said.trim().rsplit_once('\n').unwrap_or(("", said.trim()));
        assert_eq!(count, self.0.len().to_string());
        let found: Vec<Value> = found.lines().map(|line| serde_json::from_str(line).unwrap()).collect();
        for refused in &found {
            assert!(
                known.contains(&refused["name"].as_str().unwrap()),
                "{}",
                refused["problem"].as_str().unwrap()
            );
        }
        for name in known {
            assert!(found.iter().any(|refused| refused["name"] == *name), "`{name}` is legal now");
        }
    }
}

fn find() -> ToolSpec {
    let schema = json!({"type": "object", "properties": {"path": {"type": "string"}, "depth": {"type": "integer"}},
        "required": ["path"]});
    ToolSpec::new("find", "Finds files.", schema)
}

fn now() -> ToolSpec {
    ToolSpec::new("now", "The time.", json!({"type": "object", "properties": {}}))
}

fn verdict() -> OutputSpec {
    OutputSpec::new(
        "verdict",
        json!({"type": "object", "properties": {"is_spam": {"type": "boolean"}},
        "required": ["is_spam"], "additionalProperties": false}),
    )
}

/// Requests that every wire can send.
fn requests() -> Vec<(String, ChatRequest)> {
    let mut requests = vec![
        ("text".to_owned(), ChatRequest::user("Hi")),
        ("system".to_owned(), ChatRequest::user("Hi").with_system("Be brief.")),
        (
            "system messages".to_owned(),
            ChatRequest::new([
                Message::system("One."),
                Message::user("a"),
                Message::assistant("b"),
                Message::system("Two."),
                Message::user("c"),
            ]),
        ),
        (
            "sampling".to_owned(),
            ChatRequest::user("Hi").with_max_tokens(9).with_temperature(0.5).with_top_p(0.25),
        ),
        ("stop".to_owned(), ChatRequest::user("Hi").with_stop("END").with_stop("FIN")),
        ("output".to_owned(), ChatRequest::user("Hi").with_output(verdict())),
        ("lenient output".to_owned(), ChatRequest::user("Hi").with_output(verdict().lenient())),
        ("strict tool".to_owned(), ChatRequest::user("Hi").with_tools([find().strict(), now()])),
        ("images".to_owned(), ChatRequest::new([Message::new(Role::User, images())])),
        ("documents".to_owned(), ChatRequest::new([Message::new(Role::User, documents())])),
        ("calls".to_owned(), talk().with_tools([find(), now()])),
        ("calls and output".to_owned(), talk().with_tools([find(), now()]).with_output(verdict())),
    ];
    for effort in [Effort::Minimal, Effort::Low, Effort::Medium, Effort::High] {
        requests.push((format!("effort {effort:?}"), ChatRequest::user("Hi").with_effort(effort)));
    }
    let choices = [ToolChoice::auto(), ToolChoice::any(), ToolChoice::none(), ToolChoice::tool("now")];
    for choice in choices.iter().cloned().chain(choices.iter().cloned().map(ToolChoice::one_at_a_time)) {
        let name = format!("{choice:?}");
        requests.push((name, ChatRequest::user("Hi").with_tools([find(), now()]).with_tool_choice(choice)));
    }
    requests
}

fn images() -> Vec<Block> {
    vec![
        Block::text("Look:"),
        Block::Image(Media::base64("image/png", "aGk=")),
        Block::Image(Media::url("https://a/b.png")),
    ]
}

fn documents() -> Vec<Block> {
    vec![Block::text("Read:"), Block::Document(Media::base64("application/pdf", "aGk="))]
}

/// Parallel calls, one of them broken; a result that failed, one with an image and one that is empty.
fn talk() -> ChatRequest {
    let mut broken = ToolUse::new("call_2", "find", json!({}));
    broken.input = ToolInput::from_text("{\"path");
    let calls = Message::new(
        Role::Assistant,
        [
            Block::text("I look."),
            ToolUse::new("call_1", "find", json!({"path": "/tmp", "depth": 2})).into(),
            broken.into(),
            ToolUse::new("call_3", "now", json!({})).into(),
            ToolUse::new("call_4", "now", json!({})).into(),
        ],
    );
    let mut with_artifact = ToolResult::text("call_1", "/tmp/a");
    with_artifact.artifact = Some(json!({"secret": 1}).into());
    let results = Message::tool_results([
        with_artifact,
        ToolResult::error("call_2", "the arguments are no JSON"),
        ToolResult::new("call_3", [Block::text("a clock"), Block::Image(Media::base64("image/png", "aGk="))]),
        ToolResult::text("call_4", ""),
    ]);
    let blank = Message::new(Role::Assistant, [Block::text(" "), Block::text("Well.")]);
    ChatRequest::new([
        Message::user("Look"),
        calls,
        results,
        Message::user("And?"),
        blank,
        Message::user("Go on"),
    ])
}

fn with_blocks(role: Role, blocks: impl IntoIterator<Item = Block>) -> ChatRequest {
    ChatRequest::new([Message::user("a"), Message::new(role, blocks), Message::user("b")])
}

fn cached(text: &str) -> Block {
    let mut block = TextBlock::new(text);
    block.extra.insert("cache_control", json!({"type": "ephemeral", "ttl": "1h"}));
    block.into()
}

#[test]
#[ignore = "needs the SDKs: run `.ci/sdk-types`"]
fn anthropic_messages() {
    let file = Block::Document(Media::file("file_1").with_extra("title", json!("A")));
    let plain =
        MediaSource::Other(json!({"type": "text", "media_type": "text/plain", "data": "plain"}).into());
    let web = json!({"type": "web_search_20250305", "name": "web_search", "max_uses": 5});
    let more = [
        ("cache", ChatRequest::new([Message::new(Role::User, [cached("a")])])),
        (
            "cached tool",
            ChatRequest::user("a")
                .with_tools([now().with_extra("cache_control", json!({"type": "ephemeral"}))]),
        ),
        ("server tool", ChatRequest::user("a").with_tools([ToolSpec::server("web_search", web)])),
        (
            "thinking",
            with_blocks(
                Role::Assistant,
                [Thinking::new("hm", Some("sig".to_owned())).into(), Block::text("c")],
            ),
        ),
        (
            "redacted thinking",
            with_blocks(Role::Assistant, [RedactedThinking::new("data").into(), Block::text("c")]),
        ),
        ("file", with_blocks(Role::User, [file, Block::Image(Media::file("file_2"))])),
        (
            "documents of text and by address",
            with_blocks(
                Role::User,
                [Block::Document(plain.into()), Block::Document(Media::url("https://a/b.pdf"))],
            ),
        ),
        ("adaptive thinking", ChatRequest::user("a").with_extra("thinking", json!({"type": "adaptive"}))),
        ("effort xhigh", ChatRequest::user("a").with_effort(Effort::Other("xhigh".to_owned()))),
    ];
    let mut cases = Cases::default();
    for (name, request) in
        requests().into_iter().chain(more.map(|(name, request)| (name.to_owned(), request)))
    {
        for stream in [false, true] {
            cases.add("anthropic", &name, &anthropic::encode("m", &request, stream));
        }
        cases.add("anthropic count", &name, &anthropic::encode_count("m", &request));
    }
    // Its newest models have no settings of the sampling.
    cases.judge(&["sampling"]);
}

#[test]
#[ignore = "needs the SDKs: run `.ci/sdk-types`"]
fn openai_chat_completions() {
    let sound = Block::Audio(Media::base64("audio/wav", "aGk="));
    let picture = Media::url("https://a/b.png").with_extra("detail", json!("low"));
    let more = [
        ("sound and file", with_blocks(Role::User, [sound, Block::Document(Media::file("file-1"))])),
        ("detail", with_blocks(Role::User, [Block::text("a"), Block::Image(picture)])),
        (
            "fields",
            ChatRequest::user("a").with_extra("seed", json!(7)).with_extra("prompt_cache_key", json!("k")),
        ),
    ];
    let mut cases = Cases::default();
    for (name, request) in
        requests().into_iter().chain(more.map(|(name, request)| (name.to_owned(), request)))
    {
        for stream in [false, true] {
            cases.add("chat", &name, &chat::encode("m", &request, &Profile::openai(), stream));
        }
    }
    cases.judge(&[]);
}

#[test]
#[ignore = "needs the SDKs: run `.ci/sdk-types`"]
fn openai_responses() {
    let picture = Media::url("https://a/b.png").with_extra("detail", json!("low"));
    let search = ToolSpec::server("web_search", json!({"type": "web_search", "search_context_size": "low"}));
    let more = [
        (
            "files",
            with_blocks(
                Role::User,
                [Block::Document(Media::file("file-1")), Block::Image(Media::file("file-2"))],
            ),
        ),
        ("detail", with_blocks(Role::User, [Block::text("a"), Block::Image(picture)])),
        ("server tool", ChatRequest::user("a").with_tools([search])),
        ("fields", ChatRequest::user("a").with_extra("prompt_cache_key", json!("k"))),
    ];
    let mut cases = Cases::default();
    for (name, request) in
        requests().into_iter().chain(more.map(|(name, request)| (name.to_owned(), request)))
    {
        for stream in [false, true] {
            cases.add("responses", &name, &responses::encode("m", &request, stream));
        }
        cases.add("responses count", &name, &responses::encode_count("m", &request));
    }
    // The API has no stop sequences. A compatible server may.
    cases.judge(&["stop"]);
}

#[test]
#[ignore = "needs the SDKs: run `.ci/sdk-types`"]
fn gemini_generate_content() {
    let film = Media::url("https://host/film").with_extra("videoMetadata", json!({"fps": 2.0}));
    let search = ToolSpec::server("search", json!({"googleSearch": {}}));
    let more = [
        (
            "media",
            with_blocks(
                Role::User,
                [
                    Block::Audio(Media::base64("audio/wav", "aGk=")),
                    Block::Video(film),
                    Block::Document(Media::file("files/abc")),
                ],
            ),
        ),
        ("server tool", ChatRequest::user("a").with_tools([search, now()])),
        (
            "fields",
            ChatRequest::user("a")
                .with_extra("cachedContent", json!("cachedContents/x"))
                .with_extra("generationConfig", json!({"topK": 3.0, "seed": 7})),
        ),
    ];
    let mut cases = Cases::default();
    for (name, request) in
        requests().into_iter().chain(more.map(|(name, request)| (name.to_owned(), request)))
    {
        cases.add("gemini", &name, &gemini::encode("m", &request));
        cases.add("gemini count", &name, &gemini::encode_count("m", &request));
    }
    cases.judge(&[]);
}

#[tokio::test]
#[ignore = "needs the SDKs: run `.ci/sdk-types`"]
async fn vectors() {
    let server = Server::start([Reply::json(400, "", "{}"), Reply::json(400, "", "{}")]).await;
    let texts = ["a".to_owned(), "b".to_owned()];
    let openai = OpenAiEmbedder::builder().api_key(KEY).model("m").shortened_to(3).base_url(&server.url);
    openai.build().unwrap().embed(&texts).await.unwrap_err();
    let google = GeminiEmbedder::builder().api_key(KEY).model("m").dimensions(3).base_url(&server.url);
    google.build().unwrap().embed(&texts).await.unwrap_err();
    let mut cases = Cases::default();
    for (kind, request) in ["openai vectors", "gemini vectors"].into_iter().zip(server.requests()) {
        cases.add(kind, "two texts", &RawJson::parse_text(request.body).unwrap());
    }
    cases.judge(&[]);
}

/// An answer, legal by the type of answers, goes back in a request that is legal by the type of requests.
#[test]
#[ignore = "needs the SDKs: run `.ci/sdk-types`"]
fn answers_go_back() {
    let mut cases = Cases::default();
    let again = |message: Message| {
        let results: Vec<_> = message.tool_uses().map(|call| ToolResult::text(&call.id, "ok")).collect();
        ChatRequest::new([Message::user("a"), message, Message::tool_results(results)]).with_tools([find()])
    };

    let usage = json!({"input_tokens": 3, "output_tokens": 2});
    let citation = json!({"type": "char_location", "cited_text": "a", "document_index": 0, "document_title": null,
        "start_char_index": 0, "end_char_index": 1, "file_id": null});
    let found = json!({"type": "web_search_result", "encrypted_content": "e", "page_age": null, "title": "t", "url": "https://a"});
    let message = json!({"id": "msg_1", "type": "message", "role": "assistant", "model": "m", "stop_reason": "tool_use",
        "stop_sequence": null, "usage": usage, "content": [
            {"type": "thinking", "thinking": "hm", "signature": "s"},
            {"type": "redacted_thinking", "data": "d"},
            {"type": "text", "text": "so", "citations": [citation]},
            {"type": "server_tool_use", "id": "srvtoolu_1", "name": "web_search", "input": {"query": "q"}, "caller": {"type": "direct"}},
            {"type": "web_search_tool_result", "tool_use_id": "srvtoolu_1", "content": [found], "caller": {"type": "direct"}},
            {"type": "tool_use", "id": "toolu_1", "name": "find", "input": {"path": "/"}, "caller": {"type": "direct"}}]});
    let answer = anthropic::decode(message.to_string().as_bytes()).unwrap();
    assert_eq!((answer.message.content.len(), answer.message.tool_uses().count()), (6, 1));
    cases.add("anthropic answer", "all blocks", &message.into());
    cases.add("anthropic", "answer", &anthropic::encode("m", &again(answer.message), false));

    let url = json!({"type": "url_citation", "url_citation": {"start_index": 0, "end_index": 1, "title": "t", "url": "https://a"}});
    let completion = json!({"id": "chatcmpl-1", "object": "chat.completion", "created": 1, "model": "m",
        "service_tier": "default", "usage": {"prompt_tokens": 3, "completion_tokens": 2, "total_tokens": 5},
        "choices": [{"index": 0, "finish_reason": "tool_calls", "logprobs": null, "message": {"role": "assistant",
            "content": "so", "refusal": null, "annotations": [url], "tool_calls": [
                {"id": "call_1", "type": "function", "function": {"name": "find", "arguments": "{\"path\":\"/\"}"}},
                {"id": "call_2", "type": "custom", "custom": {"name": "sql", "input": "select 1"}}]}}]});
    let answer = chat::decode(completion.to_string().as_bytes()).unwrap();
    assert_eq!((answer.message.text().as_str(), answer.message.tool_uses().count()), ("so", 1));
    cases.add("chat answer", "all parts", &completion.into());
    cases.add("chat", "answer", &chat::encode("m", &again(answer.message), &Profile::openai(), false));

    let output = json!([
        {"type": "reasoning", "id": "rs_1", "summary": [{"type": "summary_text", "text": "Hm."}], "encrypted_content": "gAAA"},
        {"type": "web_search_call", "id": "ws_1", "status": "completed", "action": {"type": "search", "query": "q"}},
        {"type": "message", "id": "msg_1", "role": "assistant", "status": "completed", "content": [
            {"type": "output_text", "text": "so", "annotations": [
                {"type": "url_citation", "start_index": 0, "end_index": 1, "title": "t", "url": "https://a"}]},
            {"type": "refusal", "refusal": "no"}]},
        {"type": "function_call", "id": "fc_1", "call_id": "call_1", "name": "find", "arguments": "{}", "status": "completed"},
        {"type": "custom_tool_call", "id": "ct_1", "call_id": "call_2", "name": "sql", "input": "select 1"}]);
    let response = json!({"id": "resp_1", "object": "response", "created_at": 1.0, "model": "m", "status": "completed",
        "error": null, "incomplete_details": null, "instructions": null, "metadata": {}, "output": output,
        "parallel_tool_calls": true, "temperature": 1.0, "top_p": 1.0, "tool_choice": "auto", "tools": []});
    let answer = responses::decode(response.to_string().as_bytes()).unwrap();
    assert_eq!(answer.message.tool_uses().count(), 1);
    cases.add("responses answer", "all items", &response.into());
    cases.add("responses", "answer", &responses::encode("m", &again(answer.message), false));

    let content = json!({"role": "model", "parts": [
        {"text": "hm", "thought": true, "thoughtSignature": "c2ln"},
        {"text": "so"},
        {"executableCode": {"code": "1", "language": "PYTHON", "id": "e1"}},
        {"codeExecutionResult": {"outcome": "OUTCOME_OK", "output": "1", "id": "e1"}},
        {"inlineData": {"mimeType": "image/png", "data": "aGk="}},
        {"functionCall": {"id": "f1", "name": "find", "args": {"path": "/"}}, "thoughtSignature": "c2ln"}]});
    let generated = json!({"candidates": [{"content": content, "finishReason": "STOP", "index": 0}], "modelVersion": "m",
        "responseId": "r", "usageMetadata": {"promptTokenCount": 3, "candidatesTokenCount": 2, "totalTokenCount": 5}});
    let answer = gemini::decode(generated.to_string().as_bytes()).unwrap();
    assert_eq!((answer.message.content.len(), answer.message.tool_uses().count()), (6, 1));
    cases.add("gemini answer", "all parts", &generated.into());
    let sent = gemini::encode("m", &again(answer.message));
    assert_eq!(sent.parse::<Value>().unwrap()["contents"][1], content);
    cases.add("gemini", "answer", &sent);
    cases.judge(&[]);
}

/// The streams of the table of behaviours are what the SDKs expect, too.
#[test]
#[ignore = "needs the SDKs: run `.ci/sdk-types`"]
fn streams_of_the_table_are_legal() {
    let mut cases = Cases::default();
    for (wire, kind) in WIRES.iter().zip(["anthropic", "chat", "responses", "gemini"]) {
        let text = wire.text(&quoted(["a", "b"]));
        let call = wire.call(&quoted(["{\"path\"", ":\"/\"}"]));
        for event in text.iter().chain(&call) {
            let data = event.lines().find_map(|line| line.strip_prefix("data: ")).unwrap();
            if data != "[DONE]" {
                cases.add(&format!("{kind} event"), wire.name(), &RawJson::parse_text(data).unwrap());
            }
        }
        cases.add(&format!("{kind} answer"), wire.name(), &RawJson::parse_text(wire.whole("a")).unwrap());
    }
    cases.judge(&[]);
}
