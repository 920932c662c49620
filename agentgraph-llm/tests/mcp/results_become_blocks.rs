use agentgraph_llm::prelude::*;
use serde_json::{Value, json};

use crate::call;
use crate::scripted_server::Script;

async fn output(result: Value) -> Result<ToolOutput, ToolError> {
    let client = Script::with_tool("look").answer(result).hang().client().connect().await.unwrap();
    let tools = client.tools().await.unwrap();
    call(&tools[0], json!({})).await
}

#[tokio::test]
async fn each_kind_of_content_has_its_block() {
    let content = json!([
        {"type": "text", "text": "a\nb", "annotations": {"audience": ["user"]}},
        {"type": "image", "data": "aW1n", "mimeType": "image/png"},
        {"type": "audio", "data": "d2F2", "mimeType": "audio/wav"},
        {"type": "resource", "resource": {"uri": "file:///a", "text": "of a file"}},
        {"type": "resource", "resource": {"uri": "file:///b", "mimeType": "image/gif", "blob": "Z2lm"}},
        {"type": "resource", "resource": {"uri": "file:///c", "mimeType": "application/pdf", "blob": "cGRm"}},
        {"type": "resource", "resource": {"uri": "file:///d", "mimeType": "video/mp4", "blob": "bXA0"}},
        {"type": "resource", "resource": {"uri": "file:///e", "blob": "Ynl0ZXM="}},
    ]);
    let output = output(json!({"content": content})).await.unwrap();
    assert_eq!(
        output.content,
        [
            Block::text("a\nb"),
            Block::Image(Media::base64("image/png", "aW1n")),
            Block::Audio(Media::base64("audio/wav", "d2F2")),
            Block::text("of a file"),
            Block::Image(Media::base64("image/gif", "Z2lm")),
            Block::Document(Media::base64("application/pdf", "cGRm")),
            Block::Video(Media::base64("video/mp4", "bXA0")),
            Block::Document(Media::base64("application/octet-stream", "Ynl0ZXM=")),
        ]
    );
    assert_eq!(output.artifact, None);
}

#[tokio::test]
async fn a_link_is_shown_with_its_fields() {
    let link = json!({"type": "resource_link", "uri": "https://example.com/a", "name": "a", "mimeType": "text/html"});
    let output = output(json!({"content": [link]})).await.unwrap();
    let shown: Value = serde_json::from_str(output.content[0].as_text().unwrap()).unwrap();
    assert_eq!(shown, link);
}

#[tokio::test]
async fn content_of_an_unknown_kind_is_shown_with_its_fields() {
    let hologram = json!({"type": "hologram", "depth": 3});
    let output = output(json!({"content": [{"type": "text", "text": "see"}, hologram]})).await.unwrap();
    assert_eq!(output.content[0], Block::text("see"));
    let shown: Value = serde_json::from_str(output.content[1].as_text().unwrap()).unwrap();
    assert_eq!(shown, hologram);
}

#[tokio::test]
async fn progress_and_logs_of_a_call_change_nothing() {
    let noise = [
        json!({"jsonrpc": "2.0", "method": "notifications/progress", "params": {"progressToken": 0, "progress": 1, "total": 2}}),
        json!({"jsonrpc": "2.0", "method": "notifications/message", "params": {"level": "info", "data": "half"}}),
        json!({"jsonrpc": "2.0", "method": "notifications/of/tomorrow", "params": {"x": 1}}),
    ];
    let server = noise.iter().fold(Script::with_tool("look"), Script::send);
    let server = server.answer(json!({"content": [{"type": "text", "text": "whole"}]})).hang();
    let client = server.client().connect().await.unwrap();
    let done = call(&client.tools().await.unwrap()[0], json!({})).await.unwrap();
    assert_eq!(done.content, [Block::text("whole")]);
}

#[tokio::test]
async fn structured_content_is_the_artifact() {
    let result =
        json!({"content": [{"type": "text", "text": "5 degrees"}], "structuredContent": {"degrees": 5}});
    let with_text = output(result).await.unwrap();
    assert_eq!(with_text.content, [Block::text("5 degrees")]);
    assert_eq!(with_text.artifact, Some(json!({"degrees": 5})));

    let alone = output(json!({"content": [], "structuredContent": {"degrees": 5}})).await.unwrap();
    assert_eq!(alone.content, [Block::text(r#"{"degrees":5}"#)]);
    assert_eq!(alone.artifact, Some(json!({"degrees": 5})));
}

#[tokio::test]
async fn an_error_result_is_a_failed_call() {
    let content = json!([{"type": "text", "text": "no such town"}, {"type": "image", "data": "", "mimeType": "image/png"}]);
    let failed = output(json!({"content": content, "isError": true})).await;
    assert!(
        matches!(&failed, Err(ToolError::Failed(why)) if why == "no such town\n[an image]"),
        "{failed:?}"
    );
}

#[tokio::test]
async fn protocol_errors_are_for_the_model() {
    let wrong =
        Script::with_tool("look").error(-32602, "`city` is missing").error(-32603, "out of paper").hang();
    let client = wrong.client().connect().await.unwrap();
    let tool = &client.tools().await.unwrap()[0];
    let refused = call(tool, json!({})).await;
    assert!(
        matches!(&refused, Err(ToolError::InvalidArguments(why)) if why == "`city` is missing"),
        "{refused:?}"
    );
    let failed = call(tool, json!({})).await;
    assert!(matches!(&failed, Err(ToolError::Failed(why)) if why == "out of paper"), "{failed:?}");
}

#[tokio::test]
async fn an_error_without_text_says_what_it_has() {
    for (result, why) in [
        (json!({"content": [], "structuredContent": {"code": 5}, "isError": true}), r#"{"code":5}"#),
        (json!({"content": [{"type": "hologram", "depth": 3}], "isError": true}), "hologram"),
        (json!({"content": [], "isError": true}), "did not say why"),
    ] {
        let failed = output(result).await;
        assert!(matches!(&failed, Err(ToolError::Failed(said)) if said.contains(why)), "{why}: {failed:?}");
    }
}
