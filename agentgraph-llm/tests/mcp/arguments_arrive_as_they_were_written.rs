use agentgraph_llm::mcp::{McpClient, McpServer};
use agentgraph_llm::prelude::*;
use serde_json::json;

use crate::served;

/// A tool that gives back the text of its arguments.
struct Echo;

#[async_trait::async_trait]
impl Tool for Echo {
    fn spec(&self) -> ToolSpec {
        ToolSpec::new("echo", "", json!({"type": "object"}))
    }

    async fn call(&self, input: &RawJson, _: &ToolCall) -> Result<ToolOutput, ToolError> {
        Ok(ToolOutput::text(input.get()))
    }
}

#[tokio::test]
async fn what_cannot_arrive_as_it_was_is_refused() {
    let client =
        McpClient::http(served(McpServer::new("echo", "1").tool(Echo)).await).connect().await.unwrap();
    let echo = client.tools().await.unwrap().remove(0);
    let call = async |text: &str| {
        let input = RawJson::parse_text(text).unwrap();
        echo.call(&input, &ToolCall::detached("1", "echo")).await
    };
    for text in [
        "{}",
        r#"{"z":1,"a":[18446744073709551615,-9223372036854775808,0.1,-0.0,1e300]}"#,
        r#"{"text":"\u0000\ud83e\udd80 \"quoted\"","deep":{"a":null,"b":{"a":true}}}"#,
    ] {
        let there = call(text).await.unwrap();
        let there: serde_json::Value = serde_json::from_str(there.content[0].as_text().unwrap()).unwrap();
        assert_eq!(there, serde_json::from_str::<serde_json::Value>(text).unwrap());
    }
    for (text, why) in [
        (r#"{"a":1,"a":1}"#, "`a` is given twice"),
        (r#"{"a":[{"b":{"c":1,"d":2,"c":3}}]}"#, "`c` is given twice"),
        (r#"{"a":18446744073709551616}"#, "18446744073709551616 would arrive as 1.8446744073709552e"),
        (r#"{"a":[0.1000000000000000055511151231257827]}"#, "would arrive as 0.1"),
        (r#"{"a":1e400}"#, "number out of range"),
        ("[1]", "expected a map"),
    ] {
        let refused = call(text).await;
        assert!(
            matches!(&refused, Err(ToolError::InvalidArguments(said)) if said.contains(why)),
            "{text}: {refused:?}"
        );
    }
}
