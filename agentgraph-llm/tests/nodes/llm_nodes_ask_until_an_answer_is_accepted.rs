//! Nodes of a dependency graph that call a model: their requests, checks and tries, the undone effects of
//! refused answers, and the usage.
//!
//! A fake model named `A` answers `A1`, `A2`, ...; a conversation is shown as `s:S,u:A,a:A1,u:..`.
//!
//! Deliberate faults that these tests detect:
//! - tries: one too few or too many, a refusal by the model tried again, a cut answer accepted, edits of a
//!   refused try kept, changes of the database made at once, a fallback not marked as one;
//! - feedback: accumulated or dropped against the setting, without a reason, or with it at the wrong try;
//! - requests: dependencies in the wrong order, names in place of prompts, shorthands ignored;
//! - usage: tokens not spent, runs or totals not counted;
//! - checks and values: a length that is only a lower bound, types not read, the input of the pass not read.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use agentgraph::CompiledDependencyGraph;
use agentgraph::edit::EditError;
use agentgraph::prelude::*;
use agentgraph_llm::prelude::*;
use agentgraph_llm::{
    Answer, CheckedAnswer, Code, Composition, Database, Exchange, Feedback, JsonCheck, JsonKind, LlmNode,
    Meter, Refusal, RefusedAnswers, StopReason, Template,
};
use futures_util::StreamExt;
use proptest::prelude::*;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::json;

type Graph = DependencyGraph<Answer>;

/// Returns a model that answers `<name>1`, `<name>2`, ...
fn fake(name: &'static str) -> ScriptedModel {
    let count = AtomicUsize::new(0);
    ScriptedModel::from_fn(move |_| {
        Reply::text(format!("{name}{}", count.fetch_add(1, Ordering::Relaxed) + 1))
            .with_usage(Usage::new(10, 1))
    })
}

/// Returns a node with the fake model of this name and the name as its prompt, and the model.
fn node(name: &'static str) -> (LlmNode, ScriptedModel) {
    let model = fake(name);
    (LlmNode::new(model.clone(), name).system("S"), model)
}

fn show(request: &ChatRequest) -> String {
    let system = request.system.iter().map(|text| format!("s:{text}"));
    let messages = request.messages.iter().map(|message| {
        let role = match message.role {
            Role::System => "s",
            Role::User => "u",
            Role::Assistant => "a",
            _ => "?",
        };
        format!("{role}:{}", message.text())
    });
    system.chain(messages).collect::<Vec<_>>().join(",")
}

fn asked(model: &ScriptedModel) -> Vec<String> {
    model.requests().iter().map(show).collect()
}

async fn run(graph: &CompiledDependencyGraph<Answer>) -> Vec<String> {
    let outputs = graph.invoke(()).max_concurrency(1).await.unwrap().into_finished().unwrap();
    outputs.iter().map(|(name, answer)| format!("{name}={}", answer.text)).collect()
}

fn refuse(
    reason: &'static str,
) -> impl Fn(&mut CheckedAnswer<Answer>) -> Result<(), Refusal> + Send + Sync + 'static {
    move |_| Err(Refusal::again(reason))
}

/// Refuses the first `count` answers.
fn refuse_first(
    count: usize,
) -> impl Fn(&mut CheckedAnswer<Answer>) -> Result<(), Refusal> + Send + Sync + 'static {
    move |after| if after.attempt() <= count { Err(Refusal::again("please fix")) } else { Ok(()) }
}

fn cause<'a, T: std::error::Error + 'static>(error: &'a (dyn std::error::Error + 'static)) -> Option<&'a T> {
    error.downcast_ref().or_else(|| cause(error.source()?))
}

#[tokio::test]
async fn dependencies_are_questions_and_answers_in_the_order_of_edges() {
    let ((a, _), (b, _), (c, _), (d, model)) = (node("A"), node("B"), node("C"), node("D"));
    let graph = Graph::new().node("D", d).node("C", c).node("B", b).node("A", a);
    let graph = graph.edge("A", "B").edge("A", "C").edge("B", "D").edge("C", "D").compile().unwrap();
    assert_eq!(run(&graph).await, ["A=A1", "B=B1", "C=C1", "D=D1"]);
    assert_eq!(asked(&model), ["s:S,u:B,a:B1,u:C,a:C1,u:D"]);

    let ((a, _), (b, _), (c, model)) = (node("A"), node("B"), node("C"));
    let graph = Graph::new().node("A", a).node("B", b).node("C", c);
    let graph = graph.edge("B", "C").edge("A", "C").compile().unwrap();
    assert_eq!(run(&graph).await, ["A=A1", "B=B1", "C=C1"]);
    assert_eq!(asked(&model), ["s:S,u:B,a:B1,u:A,a:A1,u:C"], "in the order of the edges, not of the runs");
}

#[tokio::test]
async fn outputs_of_nodes_without_a_model_are_turns_too() {
    let model = fake("B");
    let graph = DependencyGraph::<String>::new()
        .node("count", || "3".to_owned())
        .node("B", LlmNode::new(model.clone(), "B"))
        .edge("count", "B")
        .compile()
        .unwrap();
    assert_eq!(graph.invoke(()).await.unwrap().into_finished().unwrap()["B"], "B1");
    assert_eq!(asked(&model), ["u:count,a:3,u:B"], "the question of a node without a prompt is its name");

    let model = fake("B");
    let graph = Graph::new()
        .node("count", || Answer::new("How many?", "3"))
        .node("B", LlmNode::new(model.clone(), "B"))
        .edge("count", "B")
        .compile()
        .unwrap();
    run(&graph).await;
    assert_eq!(asked(&model), ["u:How many?,a:3,u:B"]);
}

#[tokio::test]
async fn a_refused_answer_goes_back_with_the_reason() {
    let ((a, model), (b, behind)) = (node("A"), node("B"));
    let graph =
        Graph::new().node("A", a.after(refuse_first(1))).node("B", b).edge("A", "B").compile().unwrap();
    let outputs = graph.invoke(()).await.unwrap().into_finished().unwrap();
    assert_eq!(asked(&model), ["s:S,u:A", "s:S,u:A,a:A1,u:please fix"]);
    assert_eq!(asked(&behind), ["s:S,u:A,a:A2,u:B"]);
    let reasons: Vec<_> = outputs["A"].tries.iter().map(|attempt| attempt.refused.as_deref()).collect();
    assert_eq!(reasons, [Some("please fix"), None]);
    assert_eq!((outputs["A"].text.as_str(), outputs["A"].fell_back), ("A2", false));
}

#[tokio::test]
async fn feedback_is_the_last_answer_or_all_of_them() {
    let (a, model) = node("A");
    run(&Graph::new().node("A", a.after(refuse_first(2))).compile().unwrap()).await;
    assert_eq!(asked(&model)[2], "s:S,u:A,a:A2,u:please fix");
    let (a, model) = node("A");
    let a = a.feedback(Feedback::Accumulating).after(refuse_first(2));
    run(&Graph::new().node("A", a).compile().unwrap()).await;
    assert_eq!(asked(&model)[2], "s:S,u:A,a:A1,u:please fix,a:A2,u:please fix");
}

#[tokio::test]
async fn a_node_whose_answers_are_all_refused_fails_or_uses_its_fallback() {
    let ((a, model), (b, behind)) = (node("A"), node("B"));
    let meter = Meter::new();
    let graph = Graph::new().node("A", a.meter(&meter).after(refuse("no"))).node("B", b).edge("A", "B");
    let error = graph.compile().unwrap().invoke(()).await.unwrap_err();
    assert_eq!((asked(&model).len(), asked(&behind).len()), (3, 0));
    let rejected: &agentgraph_llm::Error = cause(&error).unwrap();
    assert_eq!(rejected.code(), Code::AnswerRejected);
    assert!(rejected.message().contains("node `A` refused all 3 answers"), "{rejected}");
    let refused: &RefusedAnswers = cause(&error).unwrap();
    assert_eq!(
        (refused.reasons.as_slice(), refused.usage),
        (&["no"; 3].map(String::from)[..], Usage::new(30, 3))
    );
    assert_eq!(meter.total().answers, 3, "the usage of a failed node is counted");

    let ((a, model), (b, behind)) = (node("A"), node("B"));
    let a = a.after(refuse("no")).otherwise("N/A");
    let graph = Graph::new().node("A", a).node("B", b).edge("A", "B").compile().unwrap();
    let outputs = graph.invoke(()).await.unwrap().into_finished().unwrap();
    assert_eq!(asked(&model).len(), 3);
    assert_eq!(asked(&behind), ["s:S,u:A,a:N/A,u:B"]);
    assert!(outputs["A"].fell_back && outputs["A"].tries.iter().all(|attempt| attempt.refused.is_some()));
    assert_eq!(outputs["A"].usage(), Usage::new(30, 3));
}

#[tokio::test]
async fn a_node_makes_the_set_number_of_tries_and_at_least_one() {
    for (tries, calls) in [(0, 1), (1, 1), (2, 2), (5, 5)] {
        let (a, model) = node("A");
        let a = a.tries(tries).after(refuse("no")).otherwise("");
        run(&Graph::new().node("A", a).compile().unwrap()).await;
        assert_eq!(asked(&model).len(), calls, "{tries}");
    }
}

#[tokio::test]
async fn a_refused_try_leaves_no_edits_text_or_changes() {
    let ((a, _), (b, behind)) = (node("A"), node("B"));
    let db = Database::new(json!({"n": 0}));
    let a = a.db(db.clone()).after(|after| {
        let number = after.attempt();
        after.set_text(format!("replaced {number}"));
        after.change_db(move |db| db["n"] = (db["n"].as_u64().unwrap() + 10 + number as u64).into());
        assert_eq!(after.db(|db| db["n"].clone()), 0);
        // Each try can add the same name, because the edits of refused tries are undone.
        after.edits().add_fn("T", LlmNode::new(fake("T"), format!("T of {number}")))?;
        after.edits().add_edge("A", "T")?;
        after.edits().add_edge("T", "B")?;
        if number < 3 { Err(Refusal::again("fix")) } else { Ok(()) }
    });
    let graph = Graph::new().node("A", a).node("B", b).edge("A", "B").compile().unwrap();
    assert_eq!(run(&graph).await, ["A=replaced 3", "T=T1", "B=B1"]);
    assert_eq!(asked(&behind), ["s:S,u:A,a:replaced 3,u:T of 3,a:T1,u:B"]);
    assert_eq!(db.read(|db| db["n"].clone()), 13);
}

#[tokio::test]
async fn a_fallback_keeps_nothing_of_the_refused_tries() {
    let ((a, _), (b, behind)) = (node("A"), node("B"));
    let db = Database::new(json!({"n": 0}));
    let a = a.db(db.clone()).otherwise("N/A").after(|after| {
        after.change_db(|db| db["n"] = 1.into());
        after.edits().remove_edge("A", "B")?;
        Err(Refusal::again("no"))
    });
    let graph = Graph::new().node("A", a).node("B", b).edge("A", "B").compile().unwrap();
    assert_eq!(run(&graph).await, ["A=N/A", "B=B1"]);
    assert_eq!((asked(&behind).len(), db.read(|db| db["n"].clone())), (1, 0.into()));
}

#[derive(Debug)]
struct OwnError;

impl std::fmt::Display for OwnError {
    fn fmt(&self, out: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        out.write_str("own error")
    }
}

impl std::error::Error for OwnError {}

#[tokio::test]
async fn any_other_error_ends_the_node_at_once_and_the_next_pass_is_complete() {
    let ((a, model), (b, _)) = (node("A"), node("B"));
    let fails = AtomicUsize::new(1);
    let a = a.after(move |after| {
        after.set_text("overwritten");
        if fails.swap(0, Ordering::Relaxed) == 1 { Err(OwnError.into()) } else { Ok(()) }
    });
    let graph = Graph::new().node("A", a).node("B", b).edge("A", "B").compile().unwrap();
    let mut passes = graph.passes();
    let error = passes.invoke(()).await.unwrap_err();
    assert!(cause::<OwnError>(&error).is_some());
    assert_eq!(asked(&model).len(), 1, "no further try");
    assert!(
        passes.last().is_none_or(|outputs| outputs.last("A").is_none()),
        "the text of the failed try is dropped"
    );
    let outputs = passes.invoke(()).await.unwrap().into_finished().unwrap();
    let texts: Vec<_> = outputs.iter().map(|(name, answer)| format!("{name}={}", answer.text)).collect();
    assert_eq!(texts, ["A=overwritten", "B=B1"]);
}

#[tokio::test]
async fn a_rejected_edit_is_an_error_that_the_code_may_ignore_or_return() {
    for propagates in [false, true] {
        let ((a, model), (b, _)) = (node("A"), node("B"));
        let a = a.after(move |after| {
            let result: Result<(), EditError> = after.edits().add_edge("A", "B");
            if propagates {
                result?;
            }
            Ok(())
        });
        let graph = Graph::new().node("A", a).node("B", b).edge("A", "B").compile().unwrap();
        match graph.invoke(()).await {
            Ok(outcome) => assert!(!propagates && outcome.into_finished().unwrap().get("B").is_some()),
            Err(error) => assert!(propagates && cause::<EditError>(&error).is_some(), "{error}"),
        }
        assert_eq!(asked(&model).len(), 1);
    }
}

#[tokio::test]
async fn errors_of_the_model_are_not_tries_and_a_retry_policy_starts_over() {
    let failing = || {
        let overloaded = || Reply::error(agentgraph_llm::Error::new(Code::Overloaded, "later"));
        ScriptedModel::new(["not yet".into(), overloaded(), "not yet".into(), "done".into()])
    };
    let wants_done = |after: &mut CheckedAnswer<Answer>| match after.text() {
        "done" => Ok(()),
        _ => Err(Refusal::again("Say done.")),
    };
    let model = failing();
    let graph = Graph::new().node("A", LlmNode::new(model.clone(), "A").after(wants_done)).compile().unwrap();
    let error = graph.invoke(()).await.unwrap_err();
    assert!(cause::<agentgraph_llm::Error>(&error).unwrap().is_overloaded());
    assert_eq!(asked(&model).len(), 2);

    let model = failing();
    let node = DependencyNode::of(LlmNode::new(model.clone(), "A").after(wants_done))
        .retry(RetryPolicy::attempts(2).initial(std::time::Duration::ZERO));
    let graph = Graph::new().node("A", node).compile().unwrap();
    let outputs = graph.invoke(()).await.unwrap().into_finished().unwrap();
    assert_eq!(outputs["A"].tries.len(), 2);
    assert_eq!(asked(&model), ["u:A", "u:A,a:not yet,u:Say done.", "u:A", "u:A,a:not yet,u:Say done."]);
}

#[tokio::test]
async fn code_after_an_answer_may_await() {
    let (a, model) = node("A");
    let a = a.after_async(|mut after| async move {
        tokio::task::yield_now().await;
        if after.attempt() == 1 {
            return Err(Refusal::again("once more"));
        }
        after.set_text(format!("{} and {}", after.prompt(), after.text()));
        Ok(after)
    });
    let a = a.after(|after| {
        after.set_text(format!("({})", after.text()));
        Ok(())
    });
    assert_eq!(run(&Graph::new().node("A", a).compile().unwrap()).await, ["A=(A and A2)"]);
    assert_eq!(asked(&model).len(), 2);
}

/// Runs a node with this check on these answers. Returns the number of tries, and the reasons of refusals.
async fn checked(check: JsonCheck, answers: [&str; 3]) -> (usize, Vec<String>) {
    let node = LlmNode::new(ScriptedModel::new(answers), "A").json(check).otherwise("N/A");
    let graph = Graph::new().node("A", node).compile().unwrap();
    let outputs = graph.invoke(()).await.unwrap().into_finished().unwrap();
    let reasons = outputs["A"].tries.iter().filter_map(|attempt| attempt.refused.clone()).collect();
    (outputs["A"].tries.len(), reasons)
}

#[tokio::test]
async fn json_is_checked_for_kind_length_and_keys() {
    let check = || JsonCheck::object().required(["answer"]).length(1);
    assert_eq!(checked(check(), [r#"{"answer":"yes"}"#; 3]).await, (1, vec![]));
    let (tries, reasons) = checked(check(), [r#"{"answer":"yes","x":1}"#; 3]).await;
    assert_eq!((tries, &*reasons[0]), (3, "The JSON has 2 entries. It must have exactly 1."));
    let (_, reasons) = checked(check(), [r#"{"x":1}"#, "[1]", "prose"]).await;
    assert_eq!(
        reasons,
        [
            "The key \"answer\" is missing. It must have the key \"answer\".",
            "The JSON is of the kind array. Answer with a JSON object that has the key \"answer\".",
            "There is no JSON in the answer. Answer with a JSON object that has the key \"answer\".",
        ]
    );
    let (_, reasons) =
        checked(check(), [r#"{"answer": "yes",}"#, r#"{"answer": NaN}"#, r#"{"answer": 1e999}"#]).await;
    assert_eq!(
        reasons[0].split(" Answer").next(),
        Some("The JSON breaks off: trailing comma at line 1 column 18.")
    );
    assert_eq!(
        reasons[1].split(" Answer").next(),
        Some("The JSON breaks off: expected value at line 1 column 12.")
    );
    assert!(reasons[2].starts_with("The JSON cannot be read: number out of range"), "{}", reasons[2]);
}

#[test]
fn each_kind_of_json_has_its_own_length_and_arrays_have_keys_in_their_items() {
    let read = |check: JsonCheck, text: &str| check.read(text).map(|json| json.get().to_owned());
    let list = || JsonCheck::array().required(["id", "n"]).length(2);
    assert!(read(list(), r#"[{"id": 1, "n": 2}, {"n": 3, "id": 4, "x": 5}]"#).is_ok());
    let error = read(list(), r#"[{"id": 1, "n": 2}, {"n": 3}]"#).unwrap_err();
    assert_eq!(error, "Item 1 of the array: The key \"id\" is missing. It must have the keys \"id\", \"n\".");
    assert_eq!(
        read(list(), "[1, 2]").unwrap_err(),
        "Item 0 of the array: It is no object. It must have the keys \"id\", \"n\"."
    );
    assert!(read(list(), "[]").unwrap_err().contains("0 entries"));
    assert!(read(JsonCheck::of(JsonKind::String).length(3), "\"é🦀x\"").is_ok());
    assert!(read(JsonCheck::of(JsonKind::String).length(3), "\"ab\"").unwrap_err().contains("2 characters"));
    assert!(read(JsonCheck::of(JsonKind::Number), "42").is_ok());
    assert!(read(JsonCheck::of(JsonKind::Boolean).length(1), "true").unwrap_err().contains("has no length"));
    assert!(read(JsonCheck::object(), "null").unwrap_err().contains("The JSON is of the kind null"));
    assert!(read(JsonCheck::any().required(["a"]), "[]").is_ok());
    assert!(read(JsonCheck::any().required(["a"]), "3").unwrap_err().contains("no object"));
    assert!(read(JsonCheck::any(), "prose").unwrap_err().ends_with("Answer with JSON."));
    let two = read(JsonCheck::object(), r#"[1] {"a": [}"#).unwrap_err();
    assert!(
        two.starts_with("The JSON is of the kind array.") && two.contains("Behind it, JSON breaks off"),
        "{two}"
    );
}

#[derive(Debug, PartialEq, Deserialize, JsonSchema)]
struct Plan {
    steps: Vec<String>,
    #[serde(default)]
    risk: u8,
}

#[tokio::test]
async fn a_typed_answer_is_shown_its_schema_and_read() {
    let model = ScriptedModel::new([
        r#"{"steps": "sail"}"#,
        r#"{"steps": ["sail"], "risk": 300}"#,
        r#"Now: {"steps": ["sail"]}"#,
    ]);
    let node = LlmNode::new(model.clone(), "Plan it.").system("S").typed::<Plan>();
    let graph = Graph::new().node("plan", node).compile().unwrap();
    let outputs = graph.invoke(()).await.unwrap().into_finished().unwrap();
    assert_eq!(outputs["plan"].parse::<Plan>().unwrap(), Plan { steps: vec!["sail".into()], risk: 0 });
    assert_eq!(outputs["plan"].text, r#"Now: {"steps": ["sail"]}"#);
    let system = model.requests()[0].system.clone().unwrap();
    assert!(
        system.starts_with("S\n\nAnswer with JSON of this schema:\n{") && system.contains("\"steps\""),
        "{system}"
    );
    let told = model.requests()[1].messages.last().unwrap().text();
    assert!(told.contains("expected a sequence") && told.contains("\"steps\""), "{told}");
    assert!(model.requests()[2].messages.last().unwrap().text().contains("300"));

    let model = ScriptedModel::new([r#"{"steps": []}"#]);
    let node = LlmNode::new(model.clone(), "Plan it.").json(JsonCheck::typed::<Plan>());
    run(&Graph::new().node("plan", node).compile().unwrap()).await;
    assert_eq!(
        model.requests()[0].system,
        None,
        "the schema is shown only after an answer that does not fit"
    );
}

#[tokio::test]
async fn code_of_a_node_without_a_check_may_read_json_and_refuse_an_answer() {
    let model = ScriptedModel::new(["prose", r#"{"n": "x"}"#, r#"{"n": 3}"#]);
    #[derive(Deserialize)]
    struct Count {
        n: u32,
    }
    let node = LlmNode::new(model.clone(), "A").after(|after| {
        let count: Count = after.parse()?;
        after.set_text(format!("{} of {}", count.n, after.json()?["n"]));
        Ok(())
    });
    assert_eq!(run(&Graph::new().node("A", node).compile().unwrap()).await, ["A=3 of 3"]);
    assert!(
        asked(&model)[1].ends_with("u:There is no JSON in the answer. Answer with JSON."),
        "{:?}",
        asked(&model)
    );
    assert!(asked(&model)[2].contains("u:The JSON does not fit: invalid type"), "{:?}", asked(&model));
}

#[tokio::test]
async fn any_text_is_an_answer() {
    for text in ["ab", "N/A", "None"] {
        let model = ScriptedModel::new([text]);
        let ((b, behind), a) = (node("B"), LlmNode::new(model, "A"));
        let graph = Graph::new().node("A", a).node("B", b).edge("A", "B").compile().unwrap();
        assert_eq!(run(&graph).await, [format!("A={text}"), "B=B1".into()]);
        assert_eq!(asked(&behind), [format!("s:S,u:A,a:{text},u:B")]);
    }
}

#[tokio::test]
async fn cut_answers_are_tried_again_and_refusals_are_not() {
    let cut = || Reply::text(r#"{"a": 1} and"#).with_stop(StopReason::MaxTokens);
    let model = ScriptedModel::new([cut(), Reply::text("short")]);
    assert_eq!(
        run(&Graph::new().node("A", LlmNode::new(model.clone(), "A")).compile().unwrap()).await,
        ["A=short"]
    );
    assert!(asked(&model)[1].contains("be shorter"));
    let node = LlmNode::new(ScriptedModel::new([cut()]), "A").accept_cut();
    assert_eq!(run(&Graph::new().node("A", node).compile().unwrap()).await, [r#"A={"a": 1} and"#]);

    let refusing =
        || ScriptedModel::new([Reply::text("I").with_stop(StopReason::Refusal), Reply::text("never asked")]);
    let model = refusing();
    let error = Graph::new()
        .node("A", LlmNode::new(model.clone(), "A"))
        .compile()
        .unwrap()
        .invoke(())
        .await
        .unwrap_err();
    assert_eq!(cause::<RefusedAnswers>(&error).unwrap().reasons, ["The model refused to answer."]);
    assert_eq!(asked(&model).len(), 1);
    let node = LlmNode::new(refusing(), "A").otherwise("N/A");
    assert_eq!(run(&Graph::new().node("A", node).compile().unwrap()).await, ["A=N/A"]);
}

#[derive(Deserialize, JsonSchema)]
struct Nothing {}

#[tokio::test]
async fn tools_are_called_on_the_way_to_an_answer_and_stay_in_the_feedback() {
    let call = || Reply::tool_call("now", json!({})).with_usage(Usage::new(5, 5));
    let model = ScriptedModel::new([call(), Reply::text("noon"), Reply::text("It is noon.")]);
    let now = FnTool::new("now", "The time.", async |_: Nothing| Ok::<_, ToolError>("12:00"));
    let node = LlmNode::new(model.clone(), "Time?").tool(now).after(refuse_first(1));
    let graph = Graph::new().node("A", node).compile().unwrap();
    let outputs = graph.invoke(()).await.unwrap().into_finished().unwrap();
    assert_eq!((outputs["A"].text.as_str(), outputs["A"].tries[0].usage), ("It is noon.", Usage::new(5, 5)));
    let last = model.requests()[2].clone();
    assert_eq!(last.messages.len(), 5, "prompt, call, result, answer, reason");
    assert_eq!(last.messages[2].results().next().unwrap().as_text(), "12:00");

    let endless = ScriptedModel::from_fn(|_| Reply::tool_call("now", json!({})));
    let now = FnTool::new("now", "The time.", async |_: Nothing| Ok::<_, ToolError>("12:00"));
    let node = LlmNode::new(endless.clone(), "Time?").tool(now).max_rounds(2).otherwise("N/A");
    assert_eq!(run(&Graph::new().node("A", node).compile().unwrap()).await, ["A=N/A"]);
    assert_eq!(asked(&endless).len(), 2);
}

#[tokio::test]
async fn prompts_get_their_values_and_dependents_see_them() {
    let db = Database::new(json!({"goal": {"text": "sail"}, "shorthands": {"B": "The weather"}}));
    let model = |name| LlmNode::new(fake(name), name).db(db.clone());
    let c = fake("C");
    let a = LlmNode::new(fake("A"), Template::parse("Is '$db.goal.text$' worth it?").unwrap()).db(db.clone());
    let c_node = LlmNode::new(c.clone(), Template::parse("C of $db.goal.text$").unwrap()).db(db.clone());
    let c_node = c_node.system(Template::parse("S of $db.goal.text$").unwrap());
    let graph = Graph::new().node("A", a).node("B", model("B")).node("C", c_node);
    let graph = graph.edge("A", "C").edge("B", "C").compile().unwrap();
    run(&graph).await;
    assert_eq!(asked(&c), ["s:S of sail,u:Is 'sail' worth it?,a:A1,s:The weather:\n\nB1,u:C of sail"]);
    db.change(|db| db["goal"]["text"] = "row".into());
    run(&graph).await;
    assert!(
        asked(&c)[1].ends_with("u:C of row"),
        "the next run sees the change of the database: {:?}",
        asked(&c)
    );
}

#[tokio::test]
async fn a_missing_value_fails_the_node_before_the_model_is_asked() {
    let template = || Template::parse("Is $db.goal$ worth it?").unwrap();
    for db in [None, Some(json!({"goal": null})), Some(json!([]))] {
        let model = fake("A");
        let node = LlmNode::new(model.clone(), template());
        let node = match db {
            Some(db) => node.db(db),
            None => node,
        };
        let error = Graph::new().node("A", node).compile().unwrap().invoke(()).await.unwrap_err();
        let missing: &agentgraph_llm::Error = cause(&error).unwrap();
        assert_eq!((missing.code(), asked(&model).len()), (Code::MissingValue, 0), "{missing}");
    }
    let model = fake("A");
    let node = LlmNode::new(model.clone(), template().missing_as("None"));
    run(&Graph::new().node("A", node).compile().unwrap()).await;
    assert_eq!(asked(&model), ["u:Is None worth it?"]);
}

#[tokio::test]
async fn a_plain_text_is_not_a_template() {
    let model = fake("A");
    run(&Graph::new()
        .node("A", LlmNode::new(model.clone(), "What is $db.x$?").db(json!({"x": 1})))
        .compile()
        .unwrap())
    .await;
    assert_eq!(asked(&model), ["u:What is $db.x$?"]);
}

#[derive(Clone, Serialize, Deserialize)]
struct Question {
    text: String,
}

#[tokio::test]
async fn values_come_from_the_input_of_the_pass() {
    let model = fake("A");
    let node = LlmNode::new(model.clone(), Template::parse("Q: $db.text$").unwrap())
        .input_db(|question: &Question| json!({"text": question.text}));
    let graph = DependencyGraph::<Answer, Question>::with_input().node("A", node).compile().unwrap();
    for text in ["one", "two"] {
        graph.invoke(Question { text: text.into() }).await.unwrap().into_finished().unwrap();
    }
    assert_eq!(asked(&model), ["u:Q: one", "u:Q: two"]);
}

#[tokio::test]
async fn each_run_has_its_own_database_which_is_stored_with_it() {
    let model = fake("B");
    let a = LlmNode::new(fake("A"), "A").session_db().after(|after| {
        let text = after.text().to_owned();
        after.change_db(move |db| *db = json!({"said": text}));
        Ok(())
    });
    async fn gate(ctx: Ctx) -> Result<Answer> {
        let go: String = ctx.interrupt("go on?")?;
        Ok(go.into())
    }
    let b = LlmNode::new(model.clone(), Template::parse("B after $db.said$").unwrap()).session_db();
    let graph = Graph::new()
        .session::<Database>("db")
        .node("A", a)
        .node("gate", gate)
        .node("B", b)
        .edge("A", "gate")
        .edge("gate", "B")
        .compile()
        .unwrap()
        .checkpointer(MemorySaver::new());
    for (thread, said) in [("t-1", "A1"), ("t-2", "A2")] {
        graph.invoke(()).thread(thread).await.unwrap();
        graph.resume("yes").thread(thread).await.unwrap().into_finished().unwrap();
        assert_eq!(asked(&model).last().unwrap(), &format!("u:gate,a:yes,u:B after {said}"));
    }
}

#[tokio::test]
async fn a_node_can_compose_its_own_request() {
    let ((a, _), model) = (node("A"), fake("B"));
    let b = LlmNode::new(model.clone(), "B").system("S").compose(|question: &Composition<'_, Answer>| {
        assert_eq!((question.node, question.deps.iter().count()), ("B", 1));
        let notes: Vec<_> =
            question.deps.iter().map(|(name, answer)| format!("{name}: {}", answer.result())).collect();
        Ok(ChatRequest::user(format!("{}\n{}", notes.join("\n"), question.prompt)).with_temperature(0.5))
    });
    run(&Graph::new().node("A", a).node("B", b).edge("A", "B").compile().unwrap()).await;
    assert_eq!(asked(&model), ["u:A: A1\nB"]);
    assert_eq!(model.requests()[0].temperature, Some(0.5));
}

#[tokio::test]
async fn a_skipped_node_asks_nothing_and_keeps_its_last_answer() {
    let ((a, _), (b, skipped), (c, behind)) = (node("A"), node("B"), node("C"));
    let skips = Arc::new(AtomicUsize::new(0));
    let a = a.after({
        let skips = Arc::clone(&skips);
        move |after| if skips.load(Ordering::Relaxed) == 1 { Ok(after.edits().skip(["B"])?) } else { Ok(()) }
    });
    let graph =
        Graph::new().node("A", a).node("B", b).node("C", c).edge("A", "B").edge("B", "C").compile().unwrap();
    let mut passes = graph.passes();
    let mut texts = Vec::new();
    for skip in [0, 1, 0] {
        skips.store(skip, Ordering::Relaxed);
        let outputs = passes.invoke(()).await.unwrap().into_finished().unwrap();
        texts.push(outputs.iter().map(|(_, answer)| answer.text.clone()).collect::<Vec<_>>().join(","));
    }
    assert_eq!(texts, ["A1,B1,C1", "A2,B1,C2", "A3,B2,C3"]);
    assert_eq!((asked(&skipped).len(), asked(&behind)[1].as_str()), (2, "s:S,u:B,a:B1,u:C"));
}

#[tokio::test]
async fn usage_is_counted_by_run_and_node_and_in_total() {
    let ((a, _), (b, _)) = (node("A"), node("B"));
    let meter = Meter::new();
    let a = a.meter(&meter).after(refuse_first(1));
    let graph = Graph::new().node("A", a).node("B", b.meter(&meter)).edge("A", "B").compile().unwrap();
    let mut runs = Vec::new();
    for _ in 0..2 {
        let outcome = graph.invoke(()).await.unwrap();
        assert_eq!(outcome.spent("tokens"), 33);
        runs.push(outcome.run());
    }
    for run in runs {
        assert_eq!((meter.of_run(run).answers, meter.of_run(run).usage), (3, Usage::new(30, 3)));
    }
    assert_eq!(
        (meter.of_node("A").answers, meter.of_node("B").answers, meter.of_node("C").answers),
        (4, 2, 0)
    );
    assert_eq!(meter.total().usage, Usage::new(60, 6));
    assert_eq!(meter.nodes().iter().map(|(name, _)| name.as_str()).collect::<Vec<_>>(), ["A", "B"]);
}

#[tokio::test]
async fn rounds_without_an_answer_are_spent_and_counted() {
    #[derive(Deserialize, JsonSchema)]
    struct Nothing {}

    let call = || Reply::tool_call("look", json!({})).with_usage(Usage::new(10, 1));
    let failure = Reply::error(agentgraph_llm::Error::new(Code::Overloaded, "later"));
    let model =
        ScriptedModel::new([call(), call(), failure, Reply::text("done").with_usage(Usage::new(5, 1))]);
    let look = FnTool::new("look", "Looks.", async |_: Nothing| Ok::<_, ToolError>("nothing"));
    let meter = Meter::new();
    let node = DependencyNode::of(LlmNode::new(model, "A").tool(look).meter(&meter))
        .retry(RetryPolicy::attempts(2).initial(std::time::Duration::ZERO));
    let graph = Graph::new().node("A", node).compile().unwrap();
    let outcome = graph.invoke(()).await.unwrap();
    assert_eq!(outcome.spent("tokens"), 28);
    let used = meter.of_run(outcome.run());
    assert_eq!((used.answers, used.usage), (1, Usage::new(25, 3)));
    assert_eq!((meter.total(), meter.of_node("A")), (used, used));
}

#[tokio::test]
async fn a_node_limits_how_many_of_its_tools_run_at_the_same_time() {
    #[derive(Deserialize, JsonSchema)]
    struct Nothing {}

    for (allowed, most) in [(Some(2), 2), (Some(0), 1), (None, 16)] {
        let running = Arc::new(AtomicUsize::new(0));
        let peak = Arc::new(AtomicUsize::new(0));
        let now = Arc::clone(&running);
        let seen = Arc::clone(&peak);
        let busy = FnTool::new("busy", "Is busy for some turns.", move |_: Nothing| {
            let now = Arc::clone(&now);
            let seen = Arc::clone(&seen);
            async move {
                seen.fetch_max(now.fetch_add(1, Ordering::SeqCst) + 1, Ordering::SeqCst);
                for _ in 0..5 {
                    tokio::task::yield_now().await;
                }
                now.fetch_sub(1, Ordering::SeqCst);
                Ok::<_, ToolError>("done")
            }
        });
        let calls = (0..20).fold(Reply::empty(), |reply, _| reply.and_tool_call("busy", json!({})));
        let node = LlmNode::new(ScriptedModel::new([calls, Reply::text("Done.")]), "A").tool(busy);
        let node = match allowed {
            Some(calls) => node.max_concurrency(calls),
            None => node,
        };
        run(&Graph::new().node("A", node).compile().unwrap()).await;
        assert_eq!(peak.load(Ordering::SeqCst), most);
    }
}

#[tokio::test]
async fn the_models_output_is_streamed_even_if_it_is_refused() {
    let model = ScriptedModel::new(["one two", "three four"]);
    let graph = Graph::new().node("A", LlmNode::new(model, "A").after(refuse_first(1))).compile().unwrap();
    let mut events = graph.invoke(()).views([View::Messages]).stream();
    let mut heard = String::new();
    while let Some(event) = events.next().await {
        if let EventKind::Message { node, piece } = event.kind {
            assert_eq!(node, "A");
            match serde_json::from_value(piece).unwrap() {
                ChatEvent::TextDelta { text, .. } => heard += &format!("[{text}]"),
                ChatEvent::Finished(_) => heard += "!",
                _ => {}
            }
        }
    }
    assert_eq!(heard, "[one ][two]![three ][four]!");
}

#[tokio::test]
async fn a_resumed_run_still_has_its_nodes_from_templates() {
    let (model, (b, behind)) = (fake("T"), node("B"));
    let (a, first) = node("A");
    let a = a.after(|after| {
        after.edits().add_node("T#1", "ask", json!({"prompt": "T of A1"}))?;
        after.edits().add_edge("A", "T#1")?;
        Ok(after.edits().add_edge("T#1", "B")?)
    });
    async fn gate(ctx: Ctx) -> Result<Answer> {
        let word: String = ctx.interrupt("go on?")?;
        Ok(word.into())
    }
    let template = model.clone();
    let graph = Graph::new()
        .template("ask", move |args| {
            let prompt = args["prompt"].as_str().unwrap_or_default().to_owned();
            Ok(DependencyNode::of(LlmNode::new(template.clone(), prompt)))
        })
        .node("A", a)
        .node("gate", gate)
        .node("B", b)
        .edge("A", "gate")
        .edge("gate", "B")
        .compile()
        .unwrap()
        .checkpointer(MemorySaver::new());
    let outcome = graph.invoke(()).thread("t").max_concurrency(1).await.unwrap();
    assert!(matches!(outcome, Outcome::Interrupted { .. }));
    let outputs = graph.resume("yes").thread("t").await.unwrap().into_finished().unwrap();
    assert_eq!(outputs["B"].text, "B1");
    assert_eq!((asked(&first).len(), asked(&model)), (1, vec!["u:A,a:A1,u:T of A1".to_owned()]));
    assert_eq!(asked(&behind), ["s:S,u:gate,a:yes,u:T of A1,a:T1,u:B"]);
}

#[tokio::test]
async fn json_in_a_fenced_block_is_the_answer() {
    let model = ScriptedModel::new(["Like [1]:\n```json\n{\"answer\": \"}\"}\n```\nOr {}."]);
    let node = LlmNode::new(model, "A").json(JsonCheck::object().required(["answer"]));
    let graph = Graph::new().node("A", node).compile().unwrap();
    let outputs = graph.invoke(()).await.unwrap().into_finished().unwrap();
    assert_eq!(outputs["A"].json.as_ref().unwrap().get(), "{\"answer\": \"}\"}");
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 100, failure_persistence: None, ..ProptestConfig::default() })]

    /// For any sequence of refusals, the questions and effects equal those of a second implementation.
    #[test]
    fn any_refusals_give_the_questions_and_traces_of_the_rule(
        refused in prop::collection::vec(any::<bool>(), 6), tries in 1usize..6, accumulates in any::<bool>(),
    ) {
        let runtime = tokio::runtime::Builder::new_current_thread().build().unwrap();
        let ((a, model), db) = (node("A"), Database::new(json!([])));
        let script = refused.clone();
        let a = a.tries(tries).otherwise("N/A").db(db.clone()).after(move |after| {
            let n = after.attempt();
            after.change_db(move |db| db.as_array_mut().unwrap().push(n.into()));
            after.edits().add_fn(format!("T{n}"), || Answer::from("t"))?;
            after.edits().add_edge("A", format!("T{n}"))?;
            if script[n - 1] { Err(Refusal::again(format!("r{n}"))) } else { Ok(()) }
        });
        let a = a.feedback(if accumulates { Feedback::Accumulating } else { Feedback::LastOnly });
        let ran = runtime.block_on(run(&Graph::new().node("A", a).compile().unwrap()));

        let accepted = (1..=tries).find(|n| !refused[n - 1]);
        let mut questions = vec!["s:S,u:A".to_owned()];
        for n in 1..accepted.unwrap_or(tries) {
            let told = format!(",a:A{n},u:r{n}");
            questions.push(if accumulates { questions[n - 1].clone() + &told } else { questions[0].clone() + &told });
        }
        prop_assert_eq!(asked(&model), questions);
        let expected = match accepted {
            Some(n) => vec![format!("A=A{n}"), format!("T{n}=t")],
            None => vec!["A=N/A".to_owned()],
        };
        prop_assert_eq!(ran, expected);
        prop_assert_eq!(db.read(|db| db.clone()), accepted.map_or(json!([]), |n| json!([n])));
    }
}
