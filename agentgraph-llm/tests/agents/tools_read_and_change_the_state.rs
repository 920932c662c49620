//! Injected state and context, commands of tools, and tools whose output is the answer.

use agentgraph::prelude::*;
use agentgraph_llm::agent::{AgentRecord, RecordChange};
use agentgraph_llm::prelude::*;
use agentgraph_llm::{LoopEnd, ToolCall};
use serde::{Deserialize, Serialize};
use serde_json::json;

use crate::support::{Log, Number, calls, echo, results};

#[derive(State, Serialize, Deserialize, Clone, Debug, Default)]
pub struct Shop {
    #[reduce(by_id)]
    messages: Vec<Message>,
    #[reduce(with = AgentRecord::add, write = RecordChange)]
    thread_record: AgentRecord,
    #[channel(run)]
    #[reduce(with = AgentRecord::add, write = RecordChange)]
    run_record: AgentRecord,
    #[reduce(append)]
    basket: Vec<u64>,
}

agentgraph_llm::agent_channels!(Shop);

fn buy() -> FnTool {
    let tool =
        FnTool::with_call("buy", "Puts a thing into the basket.", async |number: Number, call: ToolCall| {
            let shop = call.state::<Shop>().ok_or(ToolError::failed("no shop"))?;
            let node = call.ctx()?.node().to_owned();
            let text = format!("{} in {node} with {} before", call.id(), shop.basket.len());
            Ok::<_, ToolError>(
                ToolOutput::text(text)
                    .with_command(Command::<Shop>::update(Shop::update().basket([number.n]))),
            )
        });
    tool.for_state::<Shop>()
}

fn hello() -> ShopUpdate {
    Shop::update().messages([Message::user("hello")])
}

#[tokio::test]
async fn a_command_is_applied_with_the_result_of_its_call() {
    let model = ScriptedModel::new([calls("buy", [1, 2]), calls("buy", [3]), Reply::text("bought")]);
    let agent = Agent::new(model).state::<Shop>().tool(buy()).compile().unwrap();
    let shop = agent.invoke(hello()).await.unwrap().into_finished().unwrap().state;
    assert_eq!(shop.basket, [1, 2, 3], "in the order of the calls");
    let expected = [
        "call-1: call-1 in tools with 0 before",
        "call-2: call-2 in tools with 0 before",
        "call-3: call-3 in tools with 2 before",
    ];
    assert_eq!(results(&shop.messages), expected);
}

#[tokio::test]
async fn a_model_cannot_forge_what_the_graph_gives() {
    let forged =
        Reply::tool_call("buy", json!({"n": 1, "call": {"id": "other"}, "state": {"basket": [9, 9]}}));
    let model = ScriptedModel::new([forged, Reply::text("bought")]);
    let agent = Agent::new(model.clone()).state::<Shop>().tool(buy()).compile().unwrap();
    let shop = agent.invoke(hello()).await.unwrap().into_finished().unwrap().state;
    assert_eq!(results(&shop.messages), ["call-1: call-1 in tools with 0 before"]);
    let schema = &model.requests()[0].tools[0].input_schema;
    assert_eq!(schema["properties"].as_object().unwrap().keys().collect::<Vec<_>>(), ["n"]);
}

#[test]
fn a_tool_of_another_state_is_refused_when_the_agent_is_compiled() {
    let error = Agent::new(ScriptedModel::new(["hi"])).tool(buy()).compile().unwrap_err();
    assert_eq!(error.code(), agentgraph_llm::Code::BadTool);
}

#[tokio::test]
async fn a_command_of_another_state_fails_with_a_typed_error() {
    #[derive(State, Serialize, Deserialize, Clone, Debug, Default)]
    struct Other {
        n: u64,
    }
    let wrong = FnTool::new("wrong", "", async |number: Number| {
        Ok::<_, ToolError>(
            ToolOutput::text("").with_command(Command::<Other>::update(Other::update().n(number.n))),
        )
    });
    let agent = Agent::new(ScriptedModel::new([calls("wrong", [1])])).tool(wrong).compile().unwrap();
    let error = agent.invoke("go").await.unwrap_err();
    assert!(error.to_string().contains("a command of the state"), "{error}");
}

fn direct(name: &str) -> FnTool {
    FnTool::new(name, "", async |number: Number| {
        Ok::<_, ToolError>(ToolOutput::text(format!("direct {}", number.n)).returned_directly())
    })
}

#[tokio::test]
async fn a_run_ends_when_all_calls_return_directly() {
    let log = Log::default();
    let model = ScriptedModel::new([calls("direct", [1, 2]), Reply::text("not asked")]);
    let agent = Agent::new(model.clone()).tool(direct("direct")).compile().unwrap();
    let answer = agent.invoke("go").await.unwrap().into_finished().unwrap();
    assert_eq!((answer.text(), answer.end()), ("direct 1".to_owned(), LoopEnd::ReturnedDirectly));
    assert_eq!(model.remaining(), 1);

    let both = Reply::tool_call("direct", json!({"n": 1})).and_tool_call("echo", json!({"n": 2}));
    let model = ScriptedModel::new([both, Reply::text("asked")]);
    let agent = Agent::new(model).tool(direct("direct")).tool(echo("echo", &log)).compile().unwrap();
    let answer = agent.invoke("go").await.unwrap().into_finished().unwrap();
    assert_eq!((answer.text(), answer.end()), ("asked".to_owned(), LoopEnd::Finished));
}

#[tokio::test]
async fn a_tool_may_choose_the_next_node() {
    // The command ends the branch of its call: the model is not asked again.
    let stop = FnTool::new("stop", "", async |_: Number| {
        Ok::<_, ToolError>(ToolOutput::text("stopped").with_command(Command::<Shop>::to(END)))
    });
    let model = ScriptedModel::new([calls("stop", [1]), Reply::text("not asked")]);
    let agent = Agent::new(model.clone()).state::<Shop>().tool(stop).compile().unwrap();
    let shop = agent.invoke(hello()).await.unwrap().into_finished().unwrap().state;
    assert_eq!(results(&shop.messages), ["call-1: stopped"]);
    assert_eq!(model.remaining(), 1);
}
