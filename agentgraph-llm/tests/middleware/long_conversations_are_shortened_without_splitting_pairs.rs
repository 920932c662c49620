//! A summary takes the place of the older part of a conversation; what is kept is kept byte for byte.

use std::collections::BTreeSet;
use std::sync::Arc;

use agentgraph_llm::middleware::{Extent, Middleware, Summarization, Turn};
use agentgraph_llm::*;
use proptest::prelude::*;
use serde_json::json;

use crate::support::block_on;

fn signed_call(id: usize) -> Message {
    let mut call = ToolUse::new(format!("c{id}"), "search", json!({"q": id}));
    call.extra.insert("thoughtSignature", json!(format!("s{id}")));
    Message::new(Role::Assistant, [Block::from(Thinking::new("hm", Some(format!("t{id}")))), call.into()])
}

/// A conversation of texts, calls and results.
fn conversation(steps: &[u8]) -> Vec<Message> {
    let mut messages = vec![Message::system("Be brief.")];
    for (number, step) in steps.iter().enumerate() {
        match step % 3 {
            0 => messages.push(Message::user(format!("question {number}"))),
            1 => messages.push(Message::assistant(format!("answer {number}"))),
            _ => {
                let result = ToolResult::text(format!("c{number}"), "found");
                messages.extend([signed_call(number), Message::tool_results([result])]);
            }
        }
    }
    messages
}

fn ids(messages: &[Message], of: impl Fn(&Message) -> Vec<String>) -> BTreeSet<String> {
    messages.iter().flat_map(of).collect()
}

proptest! {
    #[test]
    fn calls_and_results_stay_together(steps in prop::collection::vec(any::<u8>(), 0..12), keep in 0_usize..8) {
        let messages = conversation(&steps);
        let summary = Summarization::new(Arc::new(ScriptedModel::from_fn(|_| "the summary".into())), Extent::Messages(6))
            .keep(Extent::Messages(keep));
        let mut turn = Turn::detached(summary.name(), messages.clone());
        block_on(summary.before_model(&mut turn)).unwrap();
        let after = turn.messages();

        let is_due = messages.len() >= 6;
        let is_summary = |message: &Message| message.text().starts_with("Summary of the conversation so far");
        let summaries = after.iter().filter(|message| is_summary(message)).count();
        prop_assert!(summaries <= usize::from(is_due));
        if summaries == 0 {
            prop_assert_eq!(after, &messages[..]);
            return Ok(());
        }
        let cut = messages.len() - after.iter().rev().take_while(|message| !is_summary(message)).count();
        let task = messages[..cut].iter().find(|message| message.text().starts_with("question"));
        let calls = ids(after, |message| message.tool_uses().map(|call| call.id.clone()).collect());
        let results = ids(after, |message| message.results().map(|result| result.tool_use_id.clone()).collect());
        prop_assert_eq!(calls, results);
        prop_assert_eq!(&after[0], &messages[0], "instructions stay");
        let at = 1 + usize::from(task.is_some());
        prop_assert_eq!(&after[1..at], task.map(std::slice::from_ref).unwrap_or_default(), "the task stays");
        prop_assert!(is_summary(&after[at]));
        let kept = &after[at + 1..];
        prop_assert_eq!(kept, &messages[messages.len() - kept.len()..], "unchanged, with signatures");
        // At least what was asked for, and more only to keep a pair.
        prop_assert!(kept.len() >= keep && kept.len() <= keep + 1);
    }
}

fn model(requests: &ScriptedModel, trigger: Extent) -> Summarization {
    Summarization::new(Arc::new(requests.clone()), trigger)
}

async fn run(summary: &Summarization, messages: Vec<Message>) -> Result<usize> {
    let mut turn = Turn::detached(summary.name(), messages);
    summary.before_model(&mut turn).await?;
    Ok(turn.messages().len())
}

#[tokio::test]
async fn twenty_messages_stay_by_default_and_4000_tokens_of_the_rest_are_seen() {
    let scripted = ScriptedModel::new(["short"]);
    let long: Vec<_> =
        (0..60).map(|number| Message::user(format!("{number:04} {}", "x".repeat(2000)))).collect();
    let kept = run(&model(&scripted, Extent::Tokens(10_000)), long).await.unwrap();
    assert_eq!(kept, 22);
    let seen = scripted.requests()[0].messages[0].text();
    assert!(
        seen.contains("0039 ") && !seen.contains("0025 ") && !seen.contains("0040 "),
        "the end of the older part"
    );
    assert!(seen.len() < 4000 * 4 + 1000);
}

#[tokio::test]
async fn any_trigger_is_enough_and_a_fraction_needs_a_window() {
    let messages =
        || (0..30).map(|number| Message::user(format!("{number} {}", "x".repeat(400)))).collect::<Vec<_>>();
    let scripted = ScriptedModel::from_fn(|_| "short".into());
    let not_due = model(&scripted, Extent::Messages(31)).or_at(Extent::Tokens(1_000_000));
    assert_eq!(run(&not_due, messages()).await.unwrap(), 30);
    assert_eq!(run(&not_due.clone().or_at(Extent::Messages(30)), messages()).await.unwrap(), 22);

    let fraction = model(&scripted, Extent::Fraction(0.5)).keep(Extent::Fraction(0.1));
    assert_eq!(run(&fraction, messages()).await.unwrap_err().code(), Code::Config);
    assert_eq!(run(&fraction.clone().context_window(1_000_000), messages()).await.unwrap(), 30);
    assert!(run(&fraction.context_window(5000), messages()).await.unwrap() < 10);
}

#[tokio::test]
async fn the_task_stays_through_any_number_of_summaries() {
    let scripted = ScriptedModel::from_fn(|_| "short".into());
    let summary = model(&scripted, Extent::Messages(4)).keep(Extent::Messages(2));
    let mut messages = vec![Message::user("The task.")];
    for number in 0..9 {
        messages.push(Message::assistant(format!("answer {number}")));
        let mut turn = Turn::detached(summary.name(), messages);
        summary.before_model(&mut turn).await.unwrap();
        messages = turn.messages().to_vec();
        assert_eq!(messages[0].text(), "The task.");
        assert!(messages.len() <= 4);
    }
    // The task is not part of the summary, and a summary alone is not summarised again.
    assert!(scripted.requests().iter().all(|request| !request.messages[0].text().contains("The task.")));
    let asked = scripted.requests().len();
    run(&summary, [&messages[..2], &messages[messages.len() - 2..]].concat()).await.unwrap();
    assert_eq!(scripted.requests().len(), asked);

    let without = model(&scripted, Extent::Messages(3)).keep(Extent::Messages(1)).keep_task(false);
    assert_eq!(run(&without, ["a", "b", "c"].map(Message::user).to_vec()).await.unwrap(), 2);
}

#[tokio::test]
async fn a_failed_summary_changes_nothing() {
    let scripted = ScriptedModel::new([Reply::error(Error::new(Code::Server, "down"))]);
    let mut turn = Turn::detached("summarization", (0..30).map(|_| Message::user("x")));
    let before = turn.messages().to_vec();
    let error = model(&scripted, Extent::Messages(30)).before_model(&mut turn).await.unwrap_err();
    assert_eq!((error.code(), turn.messages()), (Code::Server, &before[..]));
}
