//! What workers see, and what comes back from them.

use agentgraph::prelude::*;
use agentgraph_llm::agent::Worker;
use agentgraph_llm::middleware::{HumanInTheLoop, ToolPolicy};
use agentgraph_llm::prelude::*;
use futures_util::StreamExt;
use serde_json::json;

use crate::teams::support::{agent, ask, assert_sendable, seen, short, task, texts};

fn add() -> FnTool {
    FnTool::new("add", "Adds.", async |_: crate::teams::support::Nothing| Ok::<_, ToolError>("5"))
}

#[tokio::test]
async fn a_worker_sees_its_task_alone_and_its_answer_is_the_result() {
    let maths = ScriptedModel::new([Reply::tool_call("add", json!({})), Reply::text("it is 5")]);
    let worker = agent("maths", &maths).tool(add()).system("Be exact.").compile().unwrap();
    let model = ScriptedModel::new([task("maths", "2 + 3"), Reply::text("five")]);
    let lead = supervisor(agent("lead", &model), [worker]).unwrap();
    let answer = lead.invoke("what is 2 + 3?").await.unwrap().into_finished().unwrap();
    assert_eq!(answer.text(), "five");
    assert_eq!(seen(&maths), ["user: 2 + 3", "assistant: [call-1 add]", "user: call-1=5"]);
    assert_eq!(maths.requests()[0].system.as_deref(), Some("Be exact."));
    let offered = &model.requests()[0].tools[0];
    assert_eq!((offered.name.as_str(), offered.description.as_str()), ("maths", "Knows maths."));
    let expected = ["user: what is 2 + 3?", "assistant: [call-1 maths]", "user: call-1=it is 5"];
    assert_eq!(seen(&model), expected);
    let kept: Vec<_> = answer.state.messages.iter().map(short).collect();
    assert_eq!(kept[3..], ["assistant: five"]);
}

#[tokio::test]
async fn workers_of_one_answer_run_side_by_side_beside_tools() {
    let (maths, poet) = (texts(["5", "7"]), texts(["Oh!"]));
    let workers = [agent("maths", &maths).compile().unwrap(), agent("poet", &poet).compile().unwrap()];
    let first = task("maths", "2 + 3")
        .and_tool_call("add", json!({}))
        .and_tool_call("poet", json!({ "task": "a verse" }))
        .and_tool_call("maths", json!({ "task": "3 + 4" }));
    let model = ScriptedModel::new([first, Reply::text("done")]);
    let lead = supervisor(agent("lead", &model).tool(add()), workers).unwrap();
    lead.invoke("go").await.unwrap().into_finished().unwrap();
    assert_sendable(&model);
    let expected = ["call-1=5", "call-2=5", "call-3=Oh!", "call-4=7"].join(" ");
    assert_eq!(seen(&model)[2], format!("user: {expected}"));
}

#[tokio::test]
async fn a_worker_begins_anew_with_each_call() {
    let maths = texts(["5", "9"]);
    let worker = agent("maths", &maths).compile().unwrap();
    let model = ScriptedModel::new([task("maths", "2 + 3"), task("maths", "and 4?"), Reply::text("9")]);
    let lead = supervisor(agent("lead", &model), [worker]).unwrap().checkpointer(MemorySaver::new());
    lead.invoke("go").thread("t").await.unwrap().into_finished().unwrap();
    assert_eq!(seen(&maths), ["user: and 4?"]);
}

#[tokio::test]
async fn wrong_calls_are_read_by_the_supervisor() {
    let maths = texts(["5"]);
    let worker = agent("maths", &maths).compile().unwrap();
    let first = Reply::tool_call("maths", json!({}))
        .and_raw_tool_call("maths", "{\"task\": ")
        .and_tool_call("painter", json!({ "task": "a tree" }));
    let model = ScriptedModel::new([first, Reply::text("sorry")]);
    let lead = supervisor(agent("lead", &model), [worker]).unwrap();
    lead.invoke("go").await.unwrap().into_finished().unwrap();
    let results = &seen(&model)[2];
    // In the words of serde, or of the check against the schema.
    let misses = ["missing field `task`", "\"task\" is a required property"];
    let misses = misses.iter().any(|why| results.contains(&format!("call-1!invalid arguments: {why}")));
    assert!(misses, "{results}");
    assert!(results.contains("call-2!invalid arguments: they are not JSON"), "{results}");
    assert!(results.contains("call-3!there is no tool `painter`; there are `maths`"), "{results}");
    assert_eq!(maths.requests().len(), 0);
}

#[tokio::test]
async fn a_worker_that_is_not_done_is_a_failed_call() {
    let maths = ScriptedModel::from_fn(|_| Reply::tool_call("add", json!({})).and_text("let me see"));
    let worker = agent("maths", &maths).tool(add()).max_rounds(2).compile().unwrap();
    let model = ScriptedModel::new([task("maths", "2 + 3"), Reply::text("I do not know")]);
    let lead = supervisor(agent("lead", &model), [worker]).unwrap();
    lead.invoke("go").await.unwrap().into_finished().unwrap();
    let why = "call-1!the worker reached its limit of answers before it was done. Its last words: let me see";
    assert_eq!(seen(&model)[2], format!("user: {why}"));
}

#[tokio::test]
async fn an_error_of_a_worker_ends_the_run_which_can_go_on() {
    let down = agentgraph_llm::Error::new(agentgraph_llm::Code::Billing, "no credit");
    let maths = ScriptedModel::new([Reply::error(down), Reply::text("5")]);
    let worker = agent("maths", &maths).compile().unwrap();
    let model = ScriptedModel::new([task("maths", "2 + 3"), Reply::text("five")]);
    let lead = supervisor(agent("lead", &model), [worker]).unwrap().checkpointer(MemorySaver::new());
    let error = lead.invoke("go").thread("t").await.unwrap_err();
    assert!(error.to_string().contains("no credit"), "{error}");
    let answer = lead.proceed().thread("t").await.unwrap().into_finished().unwrap();
    assert_eq!((answer.text(), model.requests().len()), ("five".to_owned(), 2));
}

#[tokio::test]
async fn questions_of_two_workers_are_answered_together() {
    let script = || ScriptedModel::new([Reply::tool_call("ask", json!({})), Reply::text("asked")]);
    let (left, right) = (script(), script());
    let workers = [("left", &left), ("right", &right)]
        .map(|(name, model)| Worker::from(agent(name, model).tool(ask()).compile().unwrap()));
    let first = task("left", "ask").and_tool_call("right", json!({ "task": "ask" }));
    let model = ScriptedModel::new([first, Reply::text("both")]);
    let lead = supervisor(agent("lead", &model), workers).unwrap().checkpointer(MemorySaver::new());
    let asked = lead.invoke("go").thread("t").await.unwrap();
    let answers: Vec<_> = asked
        .interrupts()
        .iter()
        .enumerate()
        .map(|(at, open)| (open.id.unwrap(), format!("the {at}.")))
        .collect();
    assert_eq!(answers.len(), 2);
    let answer = lead.resume_many(answers).thread("t").await.unwrap().into_finished().unwrap();
    assert_eq!(answer.text(), "both");
    assert_eq!(seen(&left)[2], "user: call-1=the 0.");
    assert_eq!(seen(&right)[2], "user: call-1=the 1.");
    assert_eq!((left.requests().len(), model.requests().len()), (2, 2), "no answer was paid twice");
}

#[tokio::test]
async fn a_person_decides_about_a_task_before_the_worker_gets_it() {
    use agentgraph_llm::middleware::{Answer, Decision, Verdict};
    let maths = texts(["5"]);
    let worker = agent("maths", &maths).compile().unwrap();
    let model = ScriptedModel::new([task("maths", "2 + 3"), Reply::text("five")]);
    let people = HumanInTheLoop::new().tool("maths", ToolPolicy::new());
    let lead = supervisor(agent("lead", &model).middleware(people), [worker]).unwrap();
    let lead = lead.checkpointer(MemorySaver::new());
    let asked = lead.invoke("go").thread("t").await.unwrap();
    assert_eq!((asked.interrupts().len(), maths.requests().len()), (1, 0));
    let yes = Answer { decisions: vec![Decision { call: "call-1".to_owned(), verdict: Verdict::Approve }] };
    let answer = lead.resume(yes).thread("t").await.unwrap().into_finished().unwrap();
    assert_eq!((answer.text(), seen(&maths)), ("five".to_owned(), vec!["user: 2 + 3".to_owned()]));
}

#[tokio::test]
async fn workers_are_heard_under_their_own_namespace_and_drawn() {
    let maths = texts(["it is five"]);
    let worker = agent("maths", &maths).compile().unwrap();
    let model = ScriptedModel::new([task("maths", "2 + 3"), Reply::text("five")]);
    let lead = supervisor(agent("lead", &model), [worker]).unwrap();
    let mut events = lead.invoke("go").views([View::Messages]).subgraphs().stream();
    let mut heard = Vec::new();
    while let Some(event) = events.next().await {
        if let Some(text) = event.text() {
            heard.push((event.namespace.starts_with("maths"), text.to_owned()));
        }
    }
    let of = |inside: bool| {
        heard.iter().filter(|(own, _)| *own == inside).map(|(_, text)| text.as_str()).collect::<String>()
    };
    assert_eq!((of(true), of(false)), ("it is five".to_owned(), "five".to_owned()));
    assert!(lead.graph().mermaid().contains("maths"));
}

#[tokio::test]
async fn a_supervisor_is_the_worker_of_another_one() {
    let maths = texts(["5"]);
    let team = ScriptedModel::new([task("maths", "2 + 3"), Reply::text("the team says 5")]);
    let team = supervisor(agent("team", &team), [agent("maths", &maths).compile().unwrap()]).unwrap();
    let model = ScriptedModel::new([task("team", "2 + 3"), Reply::text("five")]);
    let lead = supervisor(agent("lead", &model), [team]).unwrap();
    let answer = lead.invoke("go").await.unwrap().into_finished().unwrap();
    assert_eq!(answer.text(), "five");
    assert_eq!(seen(&model)[2], "user: call-1=the team says 5");
}

#[tokio::test]
async fn answers_of_a_type_come_back_as_json() {
    #[derive(serde::Deserialize, schemars::JsonSchema)]
    #[allow(dead_code)]
    struct Sum {
        sum: i64,
    }
    let maths = ScriptedModel::new([Reply::tool_call("Sum", json!({ "sum": 5 }))]);
    let worker = agent("maths", &maths).output::<Sum>().compile().unwrap();
    let poet = agent("poet", &texts([])).compile().unwrap();
    let model = ScriptedModel::new([task("maths", "2 + 3"), Reply::text("five")]);
    let lead = supervisor(agent("lead", &model), [Worker::from(worker), poet.into()]).unwrap();
    lead.invoke("go").await.unwrap().into_finished().unwrap();
    assert_eq!(seen(&model)[2], r#"user: call-1={"sum":5}"#);
}
