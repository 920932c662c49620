//! Bodies of requests: each case is a request and the exact body that is sent.

use agentgraph_llm::prelude::*;
use agentgraph_llm::{Effort, Media, OutputSpec, ToolChoice, gemini};
use serde_json::{Value, json};

fn body(request: ChatRequest) -> Value {
    gemini::encode("m", &request).parse().unwrap()
}

fn contents(messages: impl IntoIterator<Item = Message>) -> Value {
    body(ChatRequest::new(messages))["contents"].clone()
}

fn text(role: &str, texts: &[&str]) -> Value {
    json!({"role": role, "parts": texts.iter().map(|text| json!({ "text": text })).collect::<Vec<_>>()})
}

#[test]
fn settings_are_sent_if_they_are_set() {
    assert_eq!(body(ChatRequest::new([])), json!({"contents": []}));
    let request = ChatRequest::user("Hi")
        .with_system("Be brief.")
        .with_max_tokens(7)
        .with_temperature(0.2)
        .with_top_p(0.9)
        .with_stop("END")
        .with_effort(Effort::Low);
    assert_eq!(
        gemini::encode("m", &request).get(),
        concat!(
            r#"{"contents":[{"role":"user","parts":[{"text":"Hi"}]}],"systemInstruction":{"parts":[{"text":"Be brief."}]},"#,
            r#""generationConfig":{"maxOutputTokens":7,"temperature":0.2,"topP":0.9,"stopSequences":["END"],"#,
            r#""thinkingConfig":{"thinkingLevel":"LOW"}}}"#
        )
    );
    let effort = |effort| {
        body(ChatRequest::user("a").with_effort(effort))["generationConfig"]["thinkingConfig"].clone()
    };
    for (level, name) in [(Effort::Minimal, "MINIMAL"), (Effort::Medium, "MEDIUM"), (Effort::High, "HIGH")] {
        assert_eq!(effort(level), json!({ "thinkingLevel": name }));
    }
    assert_eq!(effort(Effort::Other("xhigh".to_owned())), json!({"thinkingLevel": "XHIGH"}));
}

#[test]
fn fields_of_the_caller_replace_ours_and_those_of_the_generation_config_are_added() {
    let request = ChatRequest::user("a")
        .with_max_tokens(7)
        .with_extra("cachedContent", json!("cachedContents/x"))
        .with_extra("generationConfig", json!({"topK": 3, "maxOutputTokens": 9}));
    let body = body(request);
    assert_eq!(body["cachedContent"], "cachedContents/x");
    assert_eq!(body["generationConfig"], json!({"maxOutputTokens": 9, "topK": 3}));
}

#[test]
fn messages_of_one_role_become_one_content_and_blank_texts_are_left_out() {
    assert_eq!(
        contents([
            Message::user("a"),
            Message::system("rule"),
            Message::user("b"),
            Message::assistant("  "),
            Message::assistant("c"),
        ]),
        json!([text("user", &["a", "b"]), text("model", &["c"])])
    );
    let system = body(ChatRequest::new([Message::user("a"), Message::system("two")]).with_system("one"));
    assert_eq!(system["systemInstruction"], json!({"parts": [{"text": "one"}, {"text": "two"}]}));
}

#[test]
fn results_come_in_the_order_of_their_calls_with_the_names_of_their_tools() {
    let calls = Message::new(
        Role::Assistant,
        [ToolUse::new("a", "find", json!({"q": 1})), ToolUse::new("b", "now", json!({}))],
    );
    let results = [
        Message::tool_results([ToolResult::error("b", "no clock")]),
        Message::user("and?"),
        Message::tool_results([ToolResult::text("a", "4")]),
    ];
    let all = contents([calls].into_iter().chain(results));
    assert_eq!(
        all[0]["parts"],
        json!([
            {"functionCall": {"id": "a", "name": "find", "args": {"q": 1}}},
            {"functionCall": {"id": "b", "name": "now", "args": {}}},
        ])
    );
    assert_eq!(
        all[1]["parts"],
        json!([
            {"functionResponse": {"id": "a", "name": "find", "response": {"output": "4"}}},
            {"functionResponse": {"id": "b", "name": "now", "response": {"error": "no clock"}}},
            {"text": "and?"},
        ])
    );
    let orphan = contents([Message::tool_results([ToolResult::text("x", "4")])]);
    assert_eq!(orphan[0]["parts"][0]["functionResponse"]["name"], "x");
}

#[test]
fn results_may_have_media_and_never_show_their_artifact() {
    let mut result =
        ToolResult::new("a", [Block::text("seen"), Block::Image(Media::base64("image/png", "aGk="))]);
    result.artifact = Some(json!({"secret": 1}).into());
    let part = contents([Message::tool_results([result])])[0]["parts"][0]["functionResponse"].clone();
    assert_eq!(part["response"], json!({"output": "seen"}));
    assert_eq!(part["parts"], json!([{"inlineData": {"mimeType": "image/png", "data": "aGk="}}]));
    assert!(!part.to_string().contains("secret"));
}

#[test]
fn arguments_that_are_no_object_are_sent_as_text_in_one() {
    let mut call = ToolUse::new("a", "find", json!({}));
    call.input = agentgraph_llm::ToolInput::from_text(r#"{"q": "Os"#);
    let parts = contents([Message::new(Role::Assistant, [call])])[0]["parts"].clone();
    assert_eq!(parts[0]["functionCall"]["args"], json!({"INVALID_JSON": r#"{"q": "Os"#}));
}

#[test]
fn media_are_inline_or_files_with_fields_of_their_own() {
    let film = Media::url("https://host/film")
        .with_extra("fileData", json!({"mimeType": "video/mp4"}))
        .with_extra("videoMetadata", json!({"fps": 2}));
    let message = Message::new(
        Role::User,
        [
            Block::Image(Media::base64("image/png", "aGk=")),
            Block::Audio(Media::base64("audio/wav", "aGk=")),
            Block::Video(film),
            Block::Document(Media::file("files/abc")),
            Block::Document(Media::file("https://host/files/abc")),
        ],
    );
    assert_eq!(
        contents([message])[0]["parts"],
        json!([
            {"inlineData": {"mimeType": "image/png", "data": "aGk="}},
            {"inlineData": {"mimeType": "audio/wav", "data": "aGk="}},
            {"fileData": {"fileUri": "https://host/film", "mimeType": "video/mp4"}, "videoMetadata": {"fps": 2}},
            {"fileData": {"fileUri": "https://generativelanguage.googleapis.com/v1beta/files/abc"}},
            {"fileData": {"fileUri": "https://host/files/abc"}},
        ])
    );
}

#[test]
fn tools_come_with_their_schema_and_a_choice() {
    let schema = json!({"type": "object", "properties": {"q": {"type": "string"}}, "required": ["q"]});
    let find = ToolSpec::new("find", "Finds.", schema.clone());
    let now = ToolSpec::new("now", "The time.", json!({"type": "object", "properties": {}}));
    let search = ToolSpec::server("search", json!({"googleSearch": {}}));
    let request = |choice: ToolChoice| {
        body(
            ChatRequest::user("a")
                .with_tools([find.clone(), now.clone(), search.clone()])
                .with_tool_choice(choice),
        )
    };
    assert_eq!(
        request(ToolChoice::auto())["tools"],
        json!([
            {"functionDeclarations": [
                {"name": "find", "description": "Finds.", "parametersJsonSchema": schema},
                {"name": "now", "description": "The time."},
            ]},
            {"googleSearch": {}},
        ])
    );
    let config = |choice| request(choice)["toolConfig"]["functionCallingConfig"].clone();
    assert_eq!(config(ToolChoice::auto()), Value::Null);
    assert_eq!(config(ToolChoice::any()), json!({"mode": "ANY"}));
    assert_eq!(config(ToolChoice::none()), json!({"mode": "NONE"}));
    assert_eq!(config(ToolChoice::tool("now")), json!({"mode": "ANY", "allowedFunctionNames": ["now"]}));
    let strict = body(ChatRequest::user("a").with_tools([find.clone().strict()]));
    assert_eq!(strict["toolConfig"]["functionCallingConfig"], json!({"mode": "VALIDATED"}));
    let none = body(ChatRequest::user("a").with_tools([search]).with_tool_choice(ToolChoice::any()));
    assert_eq!(none.get("toolConfig"), None, "there is no function to choose");
}

#[test]
fn the_form_of_an_answer_is_a_transformed_schema() {
    #[derive(schemars::JsonSchema)]
    #[allow(dead_code)]
    struct Verdict {
        is_spam: bool,
        score: Option<u8>,
    }
    let config =
        body(ChatRequest::user("a").with_output(OutputSpec::of::<Verdict>()))["generationConfig"].clone();
    assert_eq!(config["responseMimeType"], "application/json");
    let schema = &config["responseJsonSchema"];
    assert_eq!(schema["properties"]["score"]["type"], json!(["integer", "null"]));
    assert_eq!(schema["properties"]["score"].get("format"), None);
    assert_eq!(schema["required"], json!(["is_spam"]));
    let endless = json!({"type": "object", "properties": {"a": {"$ref": "#/$defs/None"}}});
    let config =
        body(ChatRequest::user("a").with_output(OutputSpec::new("a", endless)))["generationConfig"].clone();
    assert_eq!(config, json!({"responseMimeType": "application/json"}));
}

#[test]
fn counting_sends_the_whole_request() {
    let request = ChatRequest::user("a").with_system("b");
    let count: Value = gemini::encode_count("m", &request).parse().unwrap();
    let mut expected = body(request);
    expected["model"] = json!("models/m");
    assert_eq!(count, json!({ "generateContentRequest": expected }));
}
