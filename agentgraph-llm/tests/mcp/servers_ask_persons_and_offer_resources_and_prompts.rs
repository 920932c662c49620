//! Elicitation in both eras of the protocol, resources and prompts.

use agentgraph::prelude::*;
use agentgraph_llm::Role;
use agentgraph_llm::mcp::{Elicitation, ElicitationAnswer, McpClientBuilder, McpProtocol};
use agentgraph_llm::prelude::*;
use serde_json::json;

use crate::call;
use crate::scripted_server::Script;

/// With the handshake: the server asks over the connection, while its tool runs.
fn asks_over_the_connection() -> McpClientBuilder {
    let loop_ = r#"while read -r line; do case "$line" in
*'"method":"tools/call"'*)
    call=$(printf '%s' "$line" | sed 's/.*"id":\([0-9]*\).*/\1/')
    printf '{"jsonrpc":"2.0","id":900,"method":"elicitation/create","params":{"message":"Which seat?","requestedSchema":{"type":"object","properties":{"seat":{"type":"string"}}}}}\n' ;;
*'"action":"accept"'*)
    seat=$(printf '%s' "$line" | sed 's/.*"seat":"\([^"]*\)".*/\1/')
    printf '{"jsonrpc":"2.0","id":%s,"result":{"content":[{"type":"text","text":"seat %s"}]}}\n' "$call" "$seat" ;;
*'"action":"decline"'*)
    printf '{"jsonrpc":"2.0","id":%s,"result":{"content":[{"type":"text","text":"no seat"}]}}\n' "$call" ;;
esac; done"#;
    Script::with_tool("book").run(loop_).client()
}

/// Without it: the result of the call is what the server has to know.
fn asks_in_its_result() -> McpClientBuilder {
    let list = r#"{"jsonrpc":"2.0","id":$id,"result":{"resultType":"complete","ttlMs":0,"cacheScope":"private","tools":[{"name":"book","inputSchema":{"type":"object"}}]}}"#;
    let asks = r#"{"jsonrpc":"2.0","id":$id,"result":{"resultType":"input_required","requestState":"s-1","inputRequests":{"place":{"method":"elicitation/create","params":{"mode":"form","message":"Which seat?","requestedSchema":{"type":"object","properties":{"seat":{"type":"string"}}}}}}}}"#;
    let done = |text: &str| {
        format!(
            r#"{{"jsonrpc":"2.0","id":$id,"result":{{"resultType":"complete","content":[{{"type":"text","text":"{text}"}}]}}}}"#
        )
    };
    let (booked, declined) = (done("seat 12A"), done("no seat"));
    let answers = [
        ("tools/list", list),
        ("tools/call\"'*'\"seat\":\"12A", &*booked),
        ("tools/call\"'*'\"action\":\"decline", &*declined),
        ("tools/call", asks),
    ];
    Script::stateless(&answers).client().protocol(McpProtocol::Stateless)
}

#[tokio::test]
async fn a_question_of_a_server_is_an_interrupt_of_the_run() {
    for server in [asks_over_the_connection, asks_in_its_result] {
        for (answer, result) in [
            (ElicitationAnswer::Accept(json!({"seat": "12A"})), "seat 12A"),
            (ElicitationAnswer::Decline, "no seat"),
        ] {
            let client = server().elicitation().connect().await.unwrap();
            let model = ScriptedModel::new([Reply::tool_call("book", json!({})), Reply::text("Booked.")]);
            let agent = Agent::new(model).tools(client.tools().await.unwrap()).compile().unwrap();
            let agent = agent.checkpointer(MemorySaver::new());

            let asked = agent.invoke("Book a seat.").thread("ada").await.unwrap();
            let [open] = asked.interrupts() else { panic!("{asked:?}") };
            let question: Elicitation = serde_json::from_value(open.value.clone()).unwrap();
            assert_eq!((question.tool.as_str(), question.message.as_str()), ("book", "Which seat?"));
            assert_eq!(question.schema.unwrap()["properties"]["seat"]["type"], "string");

            let answered = agent.resume(answer).thread("ada").finish().await.unwrap();
            let said = answered.state.messages[2].results().next().unwrap().as_text();
            assert_eq!((said.as_str(), answered.text().as_str()), (result, "Booked."));
        }
    }
}

#[tokio::test]
async fn a_server_that_may_not_ask_is_told_so_and_outside_of_a_graph_nobody_is_asked() {
    let client = asks_in_its_result().connect().await.unwrap();
    let error = call(&client.tools().await.unwrap()[0], json!({})).await.unwrap_err();
    assert!(matches!(&error, ToolError::Failed(why) if why.contains("asks a person")), "{error:?}");

    let client = asks_over_the_connection().elicitation().connect().await.unwrap();
    let error = call(&client.tools().await.unwrap()[0], json!({})).await.unwrap_err();
    assert!(matches!(error, ToolError::Fatal(_)) && !error.is_interrupt(), "{error:?}");
}

#[tokio::test]
async fn resources_become_blocks_and_prompts_messages() {
    let server = Script::started()
        .answer(json!({"resources": [{"uri": "file:///a", "name": "a", "mimeType": "text/plain"}]}))
        .answer(json!({"contents": [{"uri": "file:///a", "text": "of a"}, {"uri": "file:///b", "mimeType": "image/png", "blob": "aW1n"}]}))
        .answer(json!({"prompts": [{"name": "greet", "arguments": [{"name": "who", "required": true}]}]}))
        .answer(json!({"messages": [{"role": "user", "content": {"type": "text", "text": "Greet Ada."}},
            {"role": "assistant", "content": {"type": "text", "text": "How?"}}]}))
        .error(-32602, "no such prompt");
    let client = server.hang().client().connect().await.unwrap();
    let resources = client.resources().await.unwrap();
    assert_eq!((resources[0].name.as_str(), resources[0].media_type.as_deref()), ("a", Some("text/plain")));
    let read = client.read_resource(&resources[0].uri).await.unwrap();
    assert_eq!(read, [Block::text("of a"), Block::Image(Media::base64("image/png", "aW1n"))]);
    let prompts = client.prompts().await.unwrap();
    assert_eq!(prompts[0].arguments, [("who".to_owned(), true)]);
    let messages = client.prompt("greet", [("who", "Ada")]).await.unwrap();
    let said: Vec<_> = messages.iter().map(|message| (message.role, message.text())).collect();
    assert_eq!(said, [(Role::User, "Greet Ada.".to_owned()), (Role::Assistant, "How?".to_owned())]);
    let none: [(&str, &str); 0] = [];
    assert!(client.prompt("leave", none).await.unwrap_err().message().contains("no such prompt"));
}
