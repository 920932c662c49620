//! Wraps of requests and of calls: the first middleware is the outermost.

use std::sync::Arc;

use agentgraph::prelude::*;
use agentgraph_llm::prelude::*;
use agentgraph_llm::{Hooks, ModelRequest, NextModel, NextTool};
use async_trait::async_trait;
use futures_util::StreamExt;
use serde_json::json;

use crate::support::{Log, calls, echo, results};

struct Wraps(&'static str, Log);

#[async_trait]
impl Middleware for Wraps {
    fn name(&self) -> &str {
        self.0
    }

    fn hooks(&self) -> Hooks {
        Hooks::NONE
    }

    fn tools(&self) -> Vec<Arc<dyn Tool>> {
        vec![Arc::new(echo(&format!("tool_of_{}", self.0), &self.1))]
    }

    async fn wrap_model(
        &self,
        mut request: ModelRequest,
        next: NextModel<'_>,
    ) -> agentgraph_llm::Result<ChatStream> {
        assert!(request.ctx().is_some());
        self.1.add(format!("{} asks", self.0));
        request.request.system = Some(request.request.system.unwrap_or_default() + self.0);
        next.run(request).await
    }

    async fn wrap_tool(&self, call: &ToolCall, next: NextTool<'_>) -> Result<ToolOutput, ToolError> {
        self.1.add(format!("{} calls {}", self.0, call.name()));
        let output = next.run(&call.clone().with_input(json!({"n": 9}))).await;
        self.1.add(format!("{} got {}", self.0, output.is_ok()));
        output
    }
}

#[tokio::test]
async fn the_first_middleware_is_the_outermost() {
    let log = Log::default();
    let model =
        ScriptedModel::new([calls("tool_of_b", [1]).and_tool_call("none", json!({})), Reply::text("done")]);
    let agent = Agent::new(model.clone()).system("+").middleware(Wraps("a", log.clone()));
    let agent = agent.middleware(Wraps("b", log.clone())).compile().unwrap();
    let answer = agent.invoke("go").await.unwrap().into_finished().unwrap();
    assert_eq!(model.requests()[0].system.as_deref(), Some("+ab"));
    assert_eq!(results(&answer.state.messages)[0], "call-1: 9", "a wrap may change the arguments");
    let expected = [
        "a asks",
        "b asks",
        "a calls tool_of_b",
        "b calls tool_of_b",
        "tool_of_b 9",
        "b got true",
        "a got true",
    ];
    assert_eq!(log.lines()[..7], expected);
    assert!(log.lines().contains(&"a calls none".to_owned()), "also round calls to unknown tools");
}

/// Asks twice and returns the second answer.
struct Twice;

#[async_trait]
impl Middleware for Twice {
    fn name(&self) -> &str {
        "twice"
    }

    fn hooks(&self) -> Hooks {
        Hooks::NONE.before_model()
    }

    async fn before_model(&self, turn: &mut Turn) -> agentgraph_llm::Result<Jump> {
        let side = ScriptedModel::new(["heard by nobody"]);
        turn.push(Message::user(side.chat(ChatRequest::user("hm")).await?.message.text()));
        Ok(Jump::Next)
    }

    async fn wrap_model(
        &self,
        request: ModelRequest,
        next: NextModel<'_>,
    ) -> agentgraph_llm::Result<ChatStream> {
        let thrown_away = next.clone().run(request.clone()).await?.into_response().await?;
        assert_eq!(thrown_away.message.text(), "first draft");
        next.run(request).await
    }
}

#[tokio::test]
async fn only_the_stream_of_the_outermost_wrap_is_heard() {
    let model = ScriptedModel::new(["first draft", "second one"]);
    let agent = Agent::new(model).middleware(Twice).compile().unwrap();
    let mut events = agent.invoke("go").views([View::Messages]).stream();
    let mut heard = String::new();
    let mut pieces = 0;
    while let Some(event) = events.next().await {
        if let Some(text) = event.text() {
            heard += text;
            pieces += 1;
        }
    }
    assert_eq!((heard.as_str(), pieces), ("second one", 2), "piece by piece");
}
