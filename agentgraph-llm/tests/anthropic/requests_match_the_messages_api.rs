//! Bodies of requests: each case is a request and the exact bytes that are sent.

use agentgraph_llm::*;
use serde_json::json;

fn body(request: ChatRequest) -> String {
    anthropic::encode("m", &request, false).get().to_owned()
}

/// Returns the list of messages as it is sent.
fn turns(messages: impl IntoIterator<Item = Message>) -> String {
    let body = body(ChatRequest::new(messages));
    let (_, turns) = body.split_once("\"messages\":").unwrap();
    turns.strip_suffix('}').unwrap().to_owned()
}

fn text(text: &str) -> String {
    format!(r#"{{"type":"text","text":"{text}"}}"#)
}

#[test]
fn settings_are_sent_if_they_are_set() {
    assert_eq!(body(ChatRequest::new([])), r#"{"model":"m","max_tokens":4096,"messages":[]}"#);
    let request = ChatRequest::new([])
        .with_system("Be brief.")
        .with_max_tokens(7)
        .with_temperature(0.2)
        .with_stop("END")
        .with_stop("\n\n");
    assert_eq!(
        anthropic::encode("m", &request, true).get(),
        r#"{"model":"m","max_tokens":7,"system":"Be brief.","messages":[],"temperature":0.2,"stop_sequences":["END","\n\n"],"stream":true}"#
    );
}

#[test]
fn fields_of_the_caller_come_last_replace_ours_and_keep_their_text() {
    let request = ChatRequest::new([])
        .with_max_tokens(7)
        .with_extra(
            "thinking",
            RawJson::parse_text(r#"{"type": "enabled", "budget_tokens": 1024.0}"#).unwrap(),
        )
        .with_extra("max_tokens", json!(9));
    assert_eq!(
        body(request),
        r#"{"model":"m","max_tokens":9,"messages":[],"thinking":{"type": "enabled", "budget_tokens": 1024.0}}"#
    );
}

#[test]
fn tools_come_with_their_schema_and_a_choice_other_than_auto() {
    let tool = ToolSpec::new("now", "The time.", json!({"type": "object"}));
    let tools = r#""tools":[{"name":"now","description":"The time.","input_schema":{"type":"object"}}]"#;
    let cases = [
        (ToolChoice::auto(), String::new()),
        (ToolChoice::any(), r#","tool_choice":{"type":"any"}"#.to_owned()),
        (ToolChoice::tool("now"), r#","tool_choice":{"type":"tool","name":"now"}"#.to_owned()),
        (ToolChoice::none(), r#","tool_choice":{"type":"none"}"#.to_owned()),
    ];
    for (choice, expected) in cases {
        let request = ChatRequest::new([]).with_tools([tool.clone()]).with_tool_choice(choice.clone());
        assert_eq!(
            body(request),
            format!(r#"{{"model":"m","max_tokens":4096,"messages":[],{tools}{expected}}}"#)
        );
        assert!(
            !body(ChatRequest::new([]).with_tool_choice(choice)).contains("tool_choice"),
            "no choice without tools"
        );
    }
}

#[test]
fn system_messages_join_the_system_prompt_from_any_position() {
    let request = ChatRequest::new([Message::user("a"), Message::system("two")]).with_system("one");
    assert_eq!(
        body(request),
        format!(
            r#"{{"model":"m","max_tokens":4096,"system":[{},{}],"messages":[{{"role":"user","content":[{}]}}]}}"#,
            text("one"),
            text("two"),
            text("a")
        )
    );
    let alone = ChatRequest::new([Message::system("two")]);
    assert!(body(alone).contains(r#""system":"two","#));
    let blank = ChatRequest::new([Message::system(" ")]).with_system("");
    assert!(!body(blank).contains("system"));
}

#[test]
fn turns_of_one_role_become_one_with_results_before_text() {
    let written = turns([
        Message::user("a"),
        Message::assistant("b"),
        Message::assistant("c"),
        Message::user("look"),
        Message::tool_results([ToolResult::text("1", "x")]),
        Message::tool_results([ToolResult::text("2", "y")]),
    ]);
    let result =
        |id, said| format!(r#"{{"type":"tool_result","tool_use_id":"{id}","content":[{}]}}"#, text(said));
    let expected = format!(
        r#"[{{"role":"user","content":[{}]}},{{"role":"assistant","content":[{},{}]}},{{"role":"user","content":[{},{},{}]}}]"#,
        text("a"),
        text("b"),
        text("c"),
        result("1", "x"),
        result("2", "y"),
        text("look")
    );
    assert_eq!(written, expected);
}

#[test]
fn content_that_the_api_refuses_is_left_out() {
    assert_eq!(turns([Message::user(" \n"), Message::assistant("")]), "[]");
    let empty = ToolResult::text("1", "");
    assert_eq!(
        turns([Message::tool_results([empty])]),
        r#"[{"role":"user","content":[{"type":"tool_result","tool_use_id":"1"}]}]"#
    );
}

#[test]
fn every_kind_of_block_is_written_with_its_further_fields() {
    let mut cached = TextBlock::new("x");
    cached.extra.insert("cache_control", json!({"type": "ephemeral"}));
    let mut cut = ToolUse::new("c", "t", json!({}));
    cut.input = ToolInput::from_text("{\"a");
    let unknown = r#"{"type": "server_tool_use",  "id": "s", "n": 1.0}"#;
    let cases: Vec<(Block, &str)> = vec![
        (cached.into(), r#"{"type":"text","text":"x","cache_control":{"type":"ephemeral"}}"#),
        (
            ToolUse::new("c", "t", RawJson::parse_text(r#"{"b": 1.0, "a": 2}"#).unwrap()).into(),
            r#"{"type":"tool_use","id":"c","name":"t","input":{"b": 1.0, "a": 2}}"#,
        ),
        (cut.into(), r#"{"type":"tool_use","id":"c","name":"t","input":{"INVALID_JSON":"{\"a"}}"#),
        (
            ToolUse::new("c", "t", json!([1])).into(),
            r#"{"type":"tool_use","id":"c","name":"t","input":{"INVALID_JSON":"[1]"}}"#,
        ),
        (
            Thinking::new("t", Some("s".into())).into(),
            r#"{"type":"thinking","thinking":"t","signature":"s"}"#,
        ),
        (Thinking::new("t", None).into(), r#"{"type":"thinking","thinking":"t"}"#),
        (RedactedThinking::new("d").into(), r#"{"type":"redacted_thinking","data":"d"}"#),
        (
            Block::Image(Media::base64("image/png", "AA==")),
            r#"{"type":"image","source":{"type":"base64","media_type":"image/png","data":"AA=="}}"#,
        ),
        (
            Block::Image(Media::url("https://a/b")),
            r#"{"type":"image","source":{"type":"url","url":"https://a/b"}}"#,
        ),
        (Block::Unknown(RawJson::parse_text(unknown).unwrap()), unknown),
        (
            ToolResult::error("c", "no").into(),
            r#"{"type":"tool_result","tool_use_id":"c","content":[{"type":"text","text":"no"}],"is_error":true}"#,
        ),
    ];
    for (block, expected) in cases {
        assert_eq!(
            turns([Message::new(Role::Assistant, [block])]),
            format!(r#"[{{"role":"assistant","content":[{expected}]}}]"#)
        );
    }
}

#[test]
fn tools_have_all_their_fields_and_server_tools_are_raw() {
    let raw = r#"{"type": "web_search_20250305",  "name": "web_search", "max_uses": 5.0}"#;
    let closed = json!({"type": "object", "properties": {}, "required": [], "additionalProperties": false});
    let closed_text = closed.to_string();
    let tools = [
        ToolSpec::new("a", "A.", closed).strict(),
        ToolSpec::new("b", "B.", json!({"type": "object"}))
            .with_extra("cache_control", json!({"type": "ephemeral"}))
            .with_extra("defer_loading", json!(true)),
        ToolSpec::server("web_search", RawJson::parse_text(raw).unwrap()),
    ];
    let written = body(ChatRequest::new([]).with_tools(tools));
    let expected = [
        &format!(r#"{{"name":"a","description":"A.","input_schema":{closed_text},"strict":true}}"#),
        r#"{"name":"b","description":"B.","input_schema":{"type":"object"},"cache_control":{"type":"ephemeral"},"defer_loading":true}"#,
        raw,
    ];
    assert!(written.ends_with(&format!(r#""tools":[{}]}}"#, expected.join(","))), "{written}");
}

#[test]
fn one_call_at_a_time_is_a_part_of_the_choice() {
    let tool = ToolSpec::new("now", "The time.", json!({"type": "object"}));
    for (choice, expected) in [
        (ToolChoice::auto(), r#"{"type":"auto","disable_parallel_tool_use":true}"#),
        (ToolChoice::any(), r#"{"type":"any","disable_parallel_tool_use":true}"#),
        (ToolChoice::tool("now"), r#"{"type":"tool","name":"now","disable_parallel_tool_use":true}"#),
        (ToolChoice::none(), r#"{"type":"none"}"#),
    ] {
        let request =
            ChatRequest::new([]).with_tools([tool.clone()]).with_tool_choice(choice.one_at_a_time());
        let written = body(request);
        assert!(written.ends_with(&format!(r#""tool_choice":{expected}}}"#)), "{written}");
    }
}

#[test]
fn the_form_of_the_answer_and_the_effort_are_the_output_config() {
    let schema = json!({"type": "object", "properties": {"a": {"type": "string"}}, "required": ["a"],
        "additionalProperties": false});
    let format = format!(r#""format":{{"type":"json_schema","schema":{schema}}}"#);
    let output = OutputSpec::new("answer", schema);
    for (request, expected) in [
        (ChatRequest::new([]).with_output(output.clone()), format!("{{{format}}}")),
        (ChatRequest::new([]).with_effort(Effort::Minimal), r#"{"effort":"low"}"#.to_owned()),
        (ChatRequest::new([]).with_effort(Effort::High), r#"{"effort":"high"}"#.to_owned()),
        (
            ChatRequest::new([]).with_effort(Effort::Other("xhigh".to_owned())).with_output(output),
            format!(r#"{{{format},"effort":"xhigh"}}"#),
        ),
    ] {
        let written = body(request);
        assert!(written.ends_with(&format!(r#""output_config":{expected}}}"#)), "{written}");
    }
}

#[test]
fn a_schema_that_the_api_cannot_enforce_is_an_instruction() {
    let map = json!({"type": "object", "additionalProperties": {"type": "string"}});
    let closed = json!({"type": "object", "properties": {}, "additionalProperties": false});
    for output in [OutputSpec::new("answer", map.clone()), OutputSpec::new("answer", closed).lenient()] {
        let schema = serde_json::to_string(&output.schema.to_string()).unwrap();
        let written = body(ChatRequest::new([]).with_system("Be brief.").with_output(output));
        assert!(written.contains(r#""system":[{"type":"text","text":"Be brief."},"#), "{written}");
        assert!(
            written.contains(schema.trim_matches('"')) && !written.contains("output_config"),
            "{written}"
        );
    }
    let tool = ToolSpec::new("t", "T.", map).strict();
    let written = body(ChatRequest::new([]).with_tools([tool]));
    assert!(written.ends_with(r#""strict":false}]}"#), "{written}");
}

#[test]
fn schemas_are_rewritten_for_the_api() {
    let schema =
        json!({"type": "object", "properties": {"n": {"type": "integer", "minimum": 1}}, "required": ["n"]});
    let sent = schema::transform(&schema, schema::SchemaProfile::Anthropic);
    assert!(sent.is_strict && sent.schema["additionalProperties"] == json!(false));
    let written = body(ChatRequest::new([]).with_output(OutputSpec::new("answer", schema.clone())));
    assert!(written.contains(&format!(r#""schema":{}"#, sent.schema)), "{written}");
    let written = body(ChatRequest::new([]).with_tools([ToolSpec::new("t", "T.", schema.clone()).strict()]));
    assert!(written.contains(&format!(r#""input_schema":{},"strict":true"#, sent.schema)), "{written}");
    let written = body(ChatRequest::new([]).with_tools([ToolSpec::new("t", "T.", schema.clone())]));
    assert!(written.contains(&format!(r#""input_schema":{schema}}}"#)), "{written}");
}

#[test]
fn sampling_is_sent_only_if_it_is_set() {
    let plain = body(ChatRequest::user("hi"));
    for name in ["temperature", "top_p", "top_k"] {
        assert!(!plain.contains(name), "{plain}");
    }
    let written = body(ChatRequest::new([]).with_temperature(0.1).with_top_p(0.9));
    assert!(written.ends_with(r#""temperature":0.1,"top_p":0.9}"#), "{written}");
}

#[test]
fn media_are_written_with_each_kind_of_source() {
    let text = r#"{"type":"text","media_type":"text/plain","data":"plain"}"#;
    let raw = MediaSource::Other(RawJson::parse_text(text).unwrap());
    let document = Media::file("file_1")
        .with_extra("title", json!("Report"))
        .with_extra("citations", json!({"enabled": true}));
    for (block, expected) in [
        (
            Block::Document(Media::base64("application/pdf", "AA==")),
            r#"{"type":"document","source":{"type":"base64","media_type":"application/pdf","data":"AA=="}}"#.to_owned(),
        ),
        (
            Block::Document(Media::url("https://a/b")),
            r#"{"type":"document","source":{"type":"url","url":"https://a/b"}}"#.to_owned(),
        ),
        (
            Block::Document(document),
            r#"{"type":"document","source":{"type":"file","file_id":"file_1"},"title":"Report","citations":{"enabled":true}}"#.to_owned(),
        ),
        (Block::Document(raw.into()), format!(r#"{{"type":"document","source":{text}}}"#)),
        (
            Block::Image(Media::file("file_2")),
            r#"{"type":"image","source":{"type":"file","file_id":"file_2"}}"#.to_owned(),
        ),
    ] {
        assert_eq!(turns([Message::new(Role::User, [block])]), format!(r#"[{{"role":"user","content":[{expected}]}}]"#));
    }
}

#[test]
fn a_message_of_another_model_loses_what_only_its_author_understands() {
    let mut said = TextBlock::new("Yes.");
    said.extra.insert("citations", json!([1]));
    let thought = Thinking::new("Hm.", Some("signed".to_owned()));
    let unknown = Block::Unknown(RawJson::parse_text(r#"{"type":"server_tool_use"}"#).unwrap());
    let message = Message::new(Role::Assistant, [thought.into(), unknown, Block::from(said)]);
    let own = turns([message.clone().with_origin(Origin::new("anthropic", "m"))]);
    assert!(own.contains("signed") && own.contains("server_tool_use") && own.contains("citations"), "{own}");
    for origin in [Origin::new("anthropic", "another"), Origin::new("openai", "m")] {
        let written = turns([message.clone().with_origin(origin)]);
        assert_eq!(written, r#"[{"role":"assistant","content":[{"type":"text","text":"Yes."}]}]"#);
    }
}

#[test]
fn counting_leaves_out_what_has_no_influence_on_the_number() {
    let request = ChatRequest::user("hi")
        .with_max_tokens(7)
        .with_temperature(0.5)
        .with_top_p(0.5)
        .with_stop("END")
        .with_effort(Effort::Low)
        .with_extra("metadata", json!({"user_id": "u"}))
        .with_extra("top_k", json!(4))
        .with_extra("thinking", json!({"type": "adaptive"}));
    let written = anthropic::encode_count("m", &request);
    let turns = r#"[{"role":"user","content":[{"type":"text","text":"hi"}]}]"#;
    let expected = format!(
        r#"{{"model":"m","messages":{turns},"output_config":{{"effort":"low"}},"thinking":{{"type":"adaptive"}}}}"#
    );
    assert_eq!(written.get(), expected);
}

/// The output of a model is sent back unchanged: every block that is unknown or has further fields keeps
/// its text.
#[test]
fn an_assistant_turn_goes_back_unchanged() {
    let blocks = [
        r#"{"type":"thinking","thinking":"hm","signature":"EqQB+/="}"#,
        r#"{"type":"redacted_thinking","data":"EmwK"}"#,
        r#"{"type":"text","text":"as \"said\"","citations":[{"type":"new_kind","start": 1.0}]}"#,
        r#"{"type":"server_tool_use","id":"s1","name":"web_search","input":{"q": "x"}}"#,
        r#"{"type":"web_search_tool_result","tool_use_id":"s1","content":[{"encrypted_content":"Eo8"}]}"#,
        r#"{"type":"tool_use","id":"t1","name":"add","input":{"b":1e400,"a":1.0},"caller":{"type":"direct"}}"#,
    ];
    let content = blocks.join(",");
    let answer =
        format!(r#"{{"type":"message","role":"assistant","content":[{content}],"stop_reason":"tool_use"}}"#);
    let response = anthropic::decode(answer.as_bytes()).unwrap();
    assert_eq!(turns([response.message]), format!(r#"[{{"role":"assistant","content":[{content}]}}]"#));
}

#[test]
fn an_answer_without_anything_to_send_parts_no_messages_of_the_user() {
    let silent =
        agentgraph_llm::Message::new(agentgraph_llm::Role::Assistant, Vec::<agentgraph_llm::Block>::new());
    let request = agentgraph_llm::ChatRequest::new([
        agentgraph_llm::Message::user("one"),
        silent,
        agentgraph_llm::Message::user("two"),
    ]);
    let body: serde_json::Value = agentgraph_llm::anthropic::encode("m", &request, false).parse().unwrap();
    let content = serde_json::json!([{"type": "text", "text": "one"}, {"type": "text", "text": "two"}]);
    assert_eq!(body["messages"], serde_json::json!([{"role": "user", "content": content}]));
}
