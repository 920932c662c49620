//! An agent in another graph, its stream, and its server tools.

use agentgraph::prelude::*;
use agentgraph_llm::ToolSpec;
use agentgraph_llm::prelude::*;
use futures_util::StreamExt;
use serde::{Deserialize, Serialize};
use serde_json::json;

use crate::support::{Log, Number, calls, echo};

#[derive(State, Serialize, Deserialize, Clone, Debug, Default)]
struct Report {
    topics: Vec<String>,
    #[reduce(append)]
    parts: Vec<String>,
}

#[tokio::test]
async fn an_agent_over_another_state_is_embedded() {
    let log = Log::default();
    let model = ScriptedModel::from_fn(|request| match request.messages.len() {
        1 => calls("echo", [1]),
        _ => Reply::text(format!("about {}", request.messages[0].text())),
    });
    let writer = Agent::new(model).tool(echo("echo", &log)).compile().unwrap();
    let writer = writer.into_graph().embed(
        |Input(topic): Input<String>| agentgraph_llm::agent::AgentStateUpdate::from(topic),
        |state: AgentState| Report::update().parts([AgentAnswer::<String>::from(state).text()]),
    );
    let split = async |report: Snapshot<Report>| {
        Command::<Report>::to(
            report.topics.iter().map(|topic| Dispatch::new("write", topic.clone())).collect::<Vec<_>>(),
        )
    };
    let graph =
        StateGraph::new().node("split", split.targets(["write"])).node("write", writer).edge(START, "split");
    let graph = graph.compile().unwrap().checkpointer(MemorySaver::new());
    let topics = vec!["tea".to_owned(), "rain".to_owned()];
    let report =
        graph.invoke(Report::update().topics(topics)).thread("t").await.unwrap().into_finished().unwrap();
    assert_eq!(report.parts, ["about tea", "about rain"]);
    assert_eq!(log.len(), 2);
}

#[tokio::test]
async fn a_question_of_a_tool_of_an_agent_inside_a_graph_reaches_the_caller() {
    let ask = FnTool::with_call("ask", "", async |_: Number, call: ToolCall| {
        let name: String = call.ctx()?.interrupt_as(call.id(), "who?")?;
        Ok::<_, ToolError>(name)
    });
    let model = ScriptedModel::new([calls("ask", [1]), Reply::text("hello Ada")]);
    let agent = Agent::new(model).tool(ask).compile().unwrap();
    let graph = StateGraph::new().node("agent", agent).edge(START, "agent").compile().unwrap();
    let graph = graph.checkpointer(MemorySaver::new());
    let asked = graph.invoke("hi").thread("t").await.unwrap();
    assert_eq!(asked.interrupts()[0].value, "who?");
    let state = graph.resume("Ada").thread("t").await.unwrap().into_finished().unwrap();
    assert_eq!(state.messages.last().unwrap().text(), "hello Ada");
}

#[tokio::test]
async fn the_model_is_heard_piece_by_piece_under_its_node() {
    let log = Log::default();
    let model = ScriptedModel::new([calls("echo", [1]).and_text("one moment"), Reply::text("it is one")]);
    let agent = Agent::new(model).tool(echo("echo", &log)).compile().unwrap();
    let mut events = agent.invoke("go").views([View::Messages]).stream();
    let mut texts = Vec::new();
    while let Some(event) = events.next().await {
        texts.extend(event.text().map(str::to_owned));
    }
    assert_eq!(texts, ["one ", "moment", "it ", "is ", "one"]);
}

#[tokio::test]
async fn server_tools_are_offered_and_never_run_here() {
    let log = Log::default();
    let search = ToolSpec::server("web_search", json!({"type": "web_search", "name": "web_search"}));
    let used = Block::Unknown(
        json!({"type": "server_tool_use", "id": "s-1", "name": "web_search", "input": {}}).into(),
    );
    let model = ScriptedModel::new([Reply::block(used).and_text("found")]);
    let agent = Agent::new(model.clone()).tool(echo("echo", &log)).server_tool(search).compile().unwrap();
    let answer = agent.invoke("go").await.unwrap().into_finished().unwrap();
    assert_eq!((answer.text(), answer.rounds()), ("found".to_owned(), 1));
    assert!(model.requests()[0].tools.iter().any(|tool| tool.raw.is_some()));
}
