//! Limits of a run and of a thread, truncation, refusal and pauses.

use agentgraph::prelude::*;
use agentgraph_llm::agent::BestAnswer;
use agentgraph_llm::prelude::*;
use agentgraph_llm::{LoopEnd, StopReason, Usage};

use crate::support::{Log, calls, echo, results};

fn endless() -> ScriptedModel {
    ScriptedModel::from_fn(|_| calls("echo", [1]).with_usage(Usage::new(10, 1)))
}

#[tokio::test]
async fn a_run_ends_at_its_limit_and_the_next_run_counts_anew() {
    let log = Log::default();
    let model = endless();
    let agent = Agent::new(model.clone()).tool(echo("echo", &log)).max_rounds(3).compile().unwrap();
    let agent = agent.checkpointer(MemorySaver::new());
    for run in 1..=2 {
        let answer = agent.invoke("go").thread("t").await.unwrap().into_finished().unwrap();
        assert_eq!((answer.end(), answer.rounds(), answer.usage().total()), (LoopEnd::LimitReached, 3, 33));
        assert_eq!(log.len(), 2 * run, "the calls of the last answer are not run");
        let last = results(&answer.state.messages).pop().unwrap();
        assert!(last.contains("not run: the limit of 3 answers was reached"), "{last}");
        assert_eq!(answer.state.thread_record.rounds, 3 * run as u64);
    }
    assert_eq!(model.requests().len(), 6);
}

#[tokio::test]
async fn the_limit_of_a_thread_counts_all_its_runs() {
    let log = Log::default();
    let model = endless();
    let agent = Agent::new(model.clone()).tool(echo("echo", &log)).max_rounds(3).max_thread_rounds(4);
    let agent = agent.compile().unwrap().checkpointer(MemorySaver::new());
    let rounds = async || {
        let answer = agent.invoke("go").thread("t").await.unwrap().into_finished().unwrap();
        assert_eq!(answer.end(), LoopEnd::LimitReached);
        answer.rounds()
    };
    assert_eq!([rounds().await, rounds().await, rounds().await], [3, 1, 0]);
    assert_eq!(model.requests().len(), 4);
}

#[tokio::test]
async fn the_count_of_a_run_survives_its_suspension() {
    let ask = FnTool::with_call("echo", "", async |_: crate::support::Number, call: ToolCall| {
        let yes: bool = call.ctx()?.interrupt("go on?")?;
        Ok::<_, ToolError>(yes.to_string())
    });
    let agent =
        Agent::new(endless()).tool(ask).max_rounds(3).compile().unwrap().checkpointer(MemorySaver::new());
    let mut outcome = agent.invoke("go").thread("t").await.unwrap();
    let mut answers = 0;
    while !outcome.interrupts().is_empty() {
        outcome = agent.resume(true).thread("t").await.unwrap();
        answers += 1;
    }
    assert_eq!((answers, outcome.into_finished().unwrap().rounds()), (2, 3));
}

#[tokio::test]
async fn a_paused_turn_goes_on_and_counts_as_a_round() {
    let paused = || Reply::text("searching").with_stop(StopReason::PauseTurn);
    let model = ScriptedModel::new([paused(), paused(), Reply::text("found")]);
    let agent = Agent::new(model.clone()).compile().unwrap();
    let answer = agent.invoke("go").await.unwrap().into_finished().unwrap();
    assert_eq!((answer.text(), answer.rounds()), ("found".to_owned(), 3));
    assert_eq!(model.requests()[1].messages[1].text(), "searching", "it is sent back unchanged");

    let model = ScriptedModel::from_fn(move |_| paused());
    let agent = Agent::new(model).max_rounds(2).compile().unwrap();
    let answer = agent.invoke("go").await.unwrap().into_finished().unwrap();
    assert_eq!((answer.end(), answer.rounds()), (LoopEnd::LimitReached, 2));
}

#[tokio::test]
async fn calls_of_a_cut_answer_are_answered_and_not_run() {
    let log = Log::default();
    let cut = calls("echo", [1, 2]).with_stop(StopReason::MaxTokens);
    let model = ScriptedModel::new([cut, Reply::text("shorter now")]);
    let agent = Agent::new(model).tool(echo("echo", &log)).compile().unwrap();
    let answer = agent.invoke("go").await.unwrap().into_finished().unwrap();
    assert_eq!((log.len(), answer.text().as_str()), (0, "shorter now"));
    let refused = results(&answer.state.messages);
    assert_eq!(refused.iter().filter(|result| result.contains("not run: the answer reached")).count(), 2);

    let model = ScriptedModel::new([Reply::text("and the").with_stop(StopReason::MaxTokens)]);
    let answer = Agent::new(model).compile().unwrap().invoke("go").await.unwrap().into_finished().unwrap();
    assert_eq!(answer.end(), LoopEnd::Truncated);
}

#[tokio::test]
async fn an_empty_answer_is_asked_for_once_more() {
    let model = ScriptedModel::new([Reply::text(""), Reply::text("now")]);
    let agent = Agent::new(model.clone()).max_rounds(1).compile().unwrap();
    let answer = agent.invoke("go").await.unwrap().into_finished().unwrap();
    assert_eq!((answer.text().as_str(), answer.rounds(), answer.state.messages.len()), ("now", 1, 2));

    let model = ScriptedModel::new([Reply::text(""), Reply::text(""), Reply::text("never")]);
    let error = Agent::new(model.clone()).compile().unwrap().invoke("go").await.unwrap_err();
    assert!(error.to_string().contains("E_LLM_EMPTY_ANSWER"), "{error}");
    assert_eq!(model.requests().len(), 2);
}

#[tokio::test]
async fn calls_of_a_refusal_are_not_run() {
    let log = Log::default();
    let model = ScriptedModel::new([calls("echo", [1]).with_stop(StopReason::Refusal)]);
    let agent = Agent::new(model).tool(echo("echo", &log)).compile().unwrap();
    let answer = agent.invoke("go").await.unwrap().into_finished().unwrap();
    assert_eq!((answer.end(), log.len()), (LoopEnd::Refused, 0));
    assert_eq!(results(&answer.state.messages), ["call-1: not run: the answer ended in a refusal"]);
}

#[tokio::test]
async fn tokens_count_against_the_budget_of_the_run() {
    let log = Log::default();
    let agent =
        Agent::new(endless()).tool(echo("echo", &log)).compile().unwrap().checkpointer(MemorySaver::new());
    let budget = agentgraph::Budget::new().units("tokens", 25);
    let outcome = agent.invoke("go").thread("t").budget(budget).await.unwrap();
    assert!(
        matches!(outcome, Outcome::Stopped { reason: agentgraph::StopReason::Budget, .. }),
        "{outcome:?}"
    );
}

#[tokio::test]
async fn a_run_that_ends_at_its_limit_has_the_best_answer_so_far() {
    let log = Log::default();
    let ended = async |replies: Vec<Reply>| {
        let rounds = replies.len() as u64;
        let agent = Agent::new(ScriptedModel::new(replies)).tool(echo("echo", &log)).max_rounds(rounds);
        let answer = agent.compile().unwrap().invoke("go").await.unwrap().into_finished().unwrap();
        (answer.end(), answer.best())
    };
    let guess = |n| Reply::text(format!("perhaps {n}")).and_tool_call("echo", serde_json::json!({ "n": n }));
    let wrong = || Reply::tool_call("echo", serde_json::json!({ "n": "x" }));
    let result = |text: &str| BestAnswer::ToolResult { tool: "echo".into(), text: text.into() };
    let cases = [
        (vec![Reply::text("7")], (LoopEnd::Finished, BestAnswer::Final("7".into()))),
        // A text counts more than a later result.
        (
            vec![guess(1), guess(2), calls("echo", [3])],
            (LoopEnd::LimitReached, BestAnswer::Text("perhaps 2".into())),
        ),
        // The calls of the last answer are not run, and errors are no answers.
        (
            vec![calls("echo", [1]), calls("echo", [2]), calls("echo", [3])],
            (LoopEnd::LimitReached, result("2")),
        ),
        (vec![calls("echo", [4]), wrong(), calls("echo", [5])], (LoopEnd::LimitReached, result("4"))),
        (vec![calls("echo", [1])], (LoopEnd::LimitReached, BestAnswer::Nothing)),
        // An answer of blanks, and a cut one, are none.
        (vec![calls("echo", [6]), Reply::text(" ")], (LoopEnd::Finished, result("6"))),
        (
            vec![Reply::text("and the").with_stop(StopReason::MaxTokens)],
            (LoopEnd::Truncated, BestAnswer::Text("and the".into())),
        ),
    ];
    for (replies, expected) in cases {
        let shown = format!("{replies:?}");
        assert_eq!(ended(replies).await, expected, "{shown}");
    }
}

#[tokio::test]
async fn the_best_answer_is_of_the_last_run() {
    let replies = [Reply::text("old"), calls("echo", [1]), calls("echo", [2])];
    let agent = Agent::new(ScriptedModel::new(replies)).tool(echo("echo", &Log::default())).max_rounds(2);
    let agent = agent.compile().unwrap().checkpointer(MemorySaver::new());
    agent.invoke("first").thread("t").await.unwrap();
    let answer = agent.invoke("second").thread("t").await.unwrap().into_finished().unwrap();
    assert_eq!(answer.best(), BestAnswer::ToolResult { tool: "echo".into(), text: "1".into() });
}
