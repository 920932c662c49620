//! A call that a person has to allow does not run before, runs once after, and runs as the person said. The
//! model is not asked again for the answer.

use std::sync::{Arc, Mutex};

use agentgraph::MemorySaver;
use agentgraph_llm::agent::CompiledAgent;
use agentgraph_llm::middleware::{AskMode, HumanInTheLoop, Question, ToolPolicy, Verdict, VerdictKind};
use agentgraph_llm::prelude::*;
use proptest::prelude::*;
use serde_json::json;

use crate::support::block_on;

#[derive(serde::Deserialize, schemars::JsonSchema)]
struct Number {
    n: u64,
}

/// What ran, in any order.
type Ran = Arc<Mutex<Vec<u64>>>;

fn tool(name: &str, ran: &Ran) -> FnTool {
    let ran = Arc::clone(ran);
    FnTool::new(name, "Does it.", move |number: Number| {
        ran.lock().unwrap().push(number.n);
        async move { Ok::<_, ToolError>(format!("did {}", number.n)) }
    })
}

/// An agent whose tool `ask` needs a person and whose tool `free` does not.
fn agent(model: &ScriptedModel, ran: &Ran, human: HumanInTheLoop, saver: &Arc<MemorySaver>) -> CompiledAgent {
    let agent = Agent::new(model.clone()).tool(tool("ask", ran)).tool(tool("free", ran)).middleware(human);
    agent.compile().unwrap().checkpointer(Arc::clone(saver))
}

fn human() -> HumanInTheLoop {
    HumanInTheLoop::new().tool("ask", ToolPolicy::new())
}

fn model(tools: &[&str]) -> ScriptedModel {
    let calls = tools.iter().enumerate();
    let calls = calls.fold(Reply::empty(), |reply, (n, tool)| reply.and_tool_call(*tool, json!({ "n": n })));
    ScriptedModel::new([calls, Reply::text("done")])
}

fn results(messages: &[Message]) -> Vec<(String, bool)> {
    let results = messages.iter().flat_map(Message::results);
    results.map(|result| (result.as_text(), result.is_error)).collect()
}

fn verdict() -> impl Strategy<Value = Verdict> {
    prop_oneof![
        Just(Verdict::Approve),
        (100_u64..200).prop_map(|n| Verdict::edit(json!({ "n": n }))),
        Just(Verdict::reject("too dear")),
        Just(Verdict::respond("I did it myself")),
    ]
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(40))]

    /// For any calls and verdicts, with another process after the question.
    #[test]
    fn each_call_gets_what_was_decided_in_its_place(plan in prop::collection::vec(prop::option::of(verdict()), 1..6)) {
        let tools: Vec<_> = plan.iter().map(|verdict| if verdict.is_some() { "ask" } else { "free" }).collect();
        let (model, ran, saver) = (model(&tools), Ran::default(), Arc::new(MemorySaver::new()));
        let verdicts: Vec<_> = plan.iter().flatten().cloned().collect();
        let state = block_on(async {
            let asked = agent(&model, &ran, human(), &saver).invoke("go").thread("t").await.unwrap();
            if !verdicts.is_empty() {
                assert_eq!(asked.interrupts().len(), 1, "one question for all");
                let question: Question = serde_json::from_value(asked.interrupts()[0].value.clone()).unwrap();
                assert_eq!(question.calls.len(), verdicts.len());
                assert!(ran.lock().unwrap().is_empty(), "nothing runs before");
                let other = agent(&model, &ran, human(), &saver);
                return other.resume(question.answer(verdicts)).thread("t").await.unwrap().into_finished().unwrap().state;
            }
            asked.into_finished().unwrap().state
        });
        prop_assert_eq!(model.requests().len(), 2, "the first answer was paid once");

        let mut expected = Vec::new();
        let mut expected_results = Vec::new();
        for (n, verdict) in plan.iter().enumerate() {
            let n = n as u64;
            match verdict {
                None | Some(Verdict::Approve) => {
                    expected.push(n);
                    expected_results.push((format!("did {n}"), false));
                }
                Some(Verdict::Edit { input, .. }) => {
                    let n = input["n"].as_u64().unwrap();
                    expected.push(n);
                    let note = format!("A person changed this call before it ran, to `ask` with {{\"n\":{n}}}.");
                    expected_results.push((format!("{note}did {n}"), false));
                }
                Some(Verdict::Respond { text }) => expected_results.push((text.clone(), false)),
                Some(_) => {
                    let text = "A person rejected this call; it did not run. The reason: too dear";
                    expected_results.push((text.into(), true));
                }
            }
        }
        let mut ran = ran.lock().unwrap().clone();
        ran.sort_unstable();
        expected.sort_unstable();
        prop_assert_eq!(ran, expected);
        prop_assert_eq!(results(&model.requests()[1].messages), expected_results.clone(), "in the order of the calls");
        prop_assert_eq!(results(&state.messages), expected_results, "in the state, too");
    }
}

#[tokio::test]
async fn an_answer_for_other_calls_runs_nothing_and_the_right_one_still_can() {
    let (model, ran, saver) = (model(&["ask", "ask"]), Ran::default(), Arc::new(MemorySaver::new()));
    let agent = agent(&model, &ran, human(), &saver);
    let asked = agent.invoke("go").thread("t").await.unwrap();
    let question: Question = serde_json::from_value(asked.interrupts()[0].value.clone()).unwrap();
    let right = question.answer([Verdict::Approve, Verdict::Approve]);

    let mut swapped = right.clone();
    swapped.decisions.swap(0, 1);
    let mut short = right.clone();
    short.decisions.pop();
    for wrong in [swapped, short] {
        assert_eq!(question.check(&wrong).unwrap_err().code().as_str(), "E_LLM_ANSWER_MISMATCH");
        let again = agent.resume(wrong).thread("t").await.unwrap();
        let asked: Question = serde_json::from_value(again.interrupts()[0].value.clone()).unwrap();
        assert!(asked.problem.as_ref().unwrap().starts_with("E_LLM_ANSWER_MISMATCH: "), "{asked:?}");
        assert_eq!(asked.calls, question.calls);
        assert!(ran.lock().unwrap().is_empty());
    }
    agent.resume(right).thread("t").await.unwrap().into_finished().unwrap();
    assert_eq!(ran.lock().unwrap().len(), 2);
    assert_eq!(model.requests().len(), 2);
}

#[tokio::test]
async fn questions_may_be_asked_apart() {
    let (model, ran, saver) = (model(&["ask", "free", "ask"]), Ran::default(), Arc::new(MemorySaver::new()));
    let agent = agent(&model, &ran, human().mode(AskMode::PerCall), &saver);
    let asked = agent.invoke("go").thread("t").await.unwrap();
    let open: Vec<_> = asked.interrupts().to_vec();
    assert_eq!(open.iter().map(|open| open.key.clone().unwrap()).collect::<Vec<_>>(), ["call-1", "call-3"]);
    // Crossed answers: each question refuses the other's.
    let questions: Vec<Question> =
        open.iter().map(|open| serde_json::from_value(open.value.clone()).unwrap()).collect();
    let crossed = [(0, 1), (1, 0)]
        .map(|(at, other)| (open[at].id.unwrap(), questions[other].answer([Verdict::Approve])));
    let asked = agent.resume_many(crossed).thread("t").await.unwrap();
    let open: Vec<_> = asked.interrupts().to_vec();
    assert!(open.len() == 2 && ran.lock().unwrap().is_empty());
    let verdicts = [Verdict::reject("no"), Verdict::Approve];
    let answers = open.iter().zip(verdicts).map(|(open, verdict)| {
        let question: Question = serde_json::from_value(open.value.clone()).unwrap();
        (open.id.unwrap(), question.answer([verdict]))
    });
    agent.resume_many(answers).thread("t").await.unwrap().into_finished().unwrap();
    let mut ran = ran.lock().unwrap().clone();
    ran.sort_unstable();
    assert_eq!(ran, [1, 2]);
}

#[tokio::test]
async fn a_policy_chooses_calls_describes_them_and_limits_verdicts() {
    let policy = ToolPolicy::new()
        .when(|call| call.input.text() != r#"{"n":0}"#)
        .describe(|call| format!("It would do {}.", call.input.text()))
        .allow([VerdictKind::Approve, VerdictKind::Reject]);
    let (model, ran, saver) = (model(&["ask", "ask"]), Ran::default(), Arc::new(MemorySaver::new()));
    let agent = agent(&model, &ran, HumanInTheLoop::new().tool("ask", policy), &saver);
    let asked = agent.invoke("go").thread("t").await.unwrap();
    assert_eq!(
        asked.interrupts()[0].value,
        json!({"calls": [{
            "call": "call-2",
            "tool": "ask",
            "input": {"n": 1},
            "description": "It would do {\"n\":1}.",
            "allowed": ["approve", "reject"],
        }]})
    );
    let answer = json!({"decisions": [{"call": "call-2", "verdict": "approve"}]});
    agent.resume(answer).thread("t").await.unwrap().into_finished().unwrap();
    assert_eq!(ran.lock().unwrap().len(), 2);
}

#[tokio::test]
async fn calls_that_cannot_run_are_not_asked_for() {
    let model = ScriptedModel::new([Reply::raw_tool_call("ask", "{\"n\":"), Reply::text("done")]);
    let agent = agent(&model, &Ran::default(), human(), &Arc::new(MemorySaver::new()));
    agent.invoke("go").thread("t").await.unwrap().into_finished().unwrap();
}
