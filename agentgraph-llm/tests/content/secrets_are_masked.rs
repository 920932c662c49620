//! Keys and secrets are in no captured content.

use agentgraph_llm::ContentCapture;
use agentgraph_llm::prelude::*;
use serde_json::json;

use crate::spans::Spans;
use crate::wires::server::{Reply as Bytes, Server};
use crate::wires::wire::{Settings, WIRES, text};

/// A key that looks like no key.
const KEY: &str = "the key of the house";

#[tokio::test]
async fn the_key_of_the_connection_is_masked_in_what_is_asked_and_answered() {
    for wire in WIRES {
        let spans = Spans::listen(Some(ContentCapture::new())).await;
        let server = Server::start([Bytes::stream(text(*wire, &format!("It is {KEY} !")).concat())]).await;
        let settings = Settings { key: Some(KEY.to_owned()), ..Settings::of(&server) };
        let request = ChatRequest::user(format!("Is it {KEY}?")).with_system(format!("Never say {KEY}."));
        wire.model(&settings).unwrap().chat(request).await.unwrap();
        let seen = spans.text();
        assert!(!seen.contains(KEY), "{}: {seen}", wire.name());
        for masked in ["Is it [masked]?", "It is [masked] !", "Never say [masked]."] {
            assert!(seen.contains(masked), "{}: no {masked} in {seen}", wire.name());
        }
    }
}

#[derive(serde::Deserialize, schemars::JsonSchema)]
struct Anything {}

/// A conversation that says a word wherever it can.
async fn say_everywhere(word: &str) {
    let told = word.to_owned();
    let output = json!({"found": [told], "inside": json!({"quoted": told}).to_string(), told.as_str(): 1});
    let find = FnTool::new("find", "Finds it.", move |_: Anything| {
        let output = output.clone();
        async move { Ok::<_, ToolError>(output) }
    });
    let call = Reply::tool_call("find", json!({"for": word, word: [{"deep": format!("<{word}>")}]}));
    let model = ScriptedModel::new([call, Reply::text(format!("It is {word}."))]);
    let request = ChatRequest::user(format!("{word}?")).with_system(format!("Never say ({word})."));
    ToolLoop::new(&model).tool(find).run(request).await.unwrap();
}

#[tokio::test]
async fn named_secrets_are_masked_everywhere() {
    for secret in ["hunter2", "with \"quotes\" and \\", "две 🦀"] {
        let spans = Spans::listen(Some(ContentCapture::new().mask("hunt").mask(secret).mask(""))).await;
        say_everywhere(secret).await;
        let seen = spans.text();
        let debug = format!("{secret:?}");
        for form in [secret, debug.trim_matches('"'), &debug.trim_matches('"').replace('\\', "\\\\")] {
            assert!(!seen.contains(form), "{form} in {seen}");
        }
        assert_eq!(spans.json("gen_ai.tool.call.result")[0]["found"], json!(["[masked]"]));
        assert_eq!(spans.json("gen_ai.tool.call.arguments")[0]["for"], "[masked]", "the longer secret first");
    }
}

#[tokio::test]
async fn keys_of_known_services_are_masked_without_being_named() {
    for key in ["sk-ant-api03-0123456789abcdef", "AIzaSyA0123456789abcdef", "ghp_0123456789abcdef0123"] {
        let spans = Spans::listen(Some(ContentCapture::new())).await;
        say_everywhere(key).await;
        assert!(!spans.text().contains(key), "{}", spans.text());
    }
}
