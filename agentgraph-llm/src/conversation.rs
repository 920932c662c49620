//! Calls and their results in a conversation: which calls are open, and a conversation that can be sent.
//!
//! A state may hold the results of one answer in several messages, because each call stores its own.
//! Providers want them in one message, right after the answer, in the order of the calls, and none missing.

mod call_ids;
#[cfg(test)]
mod tests;

use std::collections::{BTreeMap, BTreeSet};

use crate::message::{Block, Message, Messages, Role, ToolResult, ToolUse, is_answered, is_results};

pub(crate) use call_ids::{make_calls_distinct, with_distinct_calls};

/// The calls of the last answer that have no result yet, in order. A conversation that went on after the
/// answer has no open calls.
///
/// ```
/// use agentgraph_llm::{Message, Role, ToolResult, ToolUse, conversation};
/// use serde_json::json;
///
/// let call = |id: &str| ToolUse::new(id, "search", json!({}));
/// let answer = Message::new(Role::Assistant, [call("call-1"), call("call-2")]);
/// let result = Message::tool_results([ToolResult::text("call-1", "found")]);
///
/// let messages = [Message::user("find both"), answer, result];
/// let open: Vec<_> = conversation::open_calls(&messages).iter().map(|call| call.id.as_str()).collect();
/// assert_eq!(open, ["call-2"]);
/// ```
pub fn open_calls(messages: &[Message]) -> Vec<&ToolUse> {
    each_open_call(messages).collect()
}

/// The same without a list.
pub(crate) fn each_open_call(messages: &[Message]) -> impl Iterator<Item = &ToolUse> {
    let at = messages.iter().rposition(|message| !is_results(message));
    let (answer, results) = messages.split_at(at.map_or(0, |at| at + 1));
    let answer = answer.last().filter(|message| message.role == Role::Assistant);
    let results = results.iter().flat_map(Message::results);
    // Mostly empty: a hash set would fetch the keys of its hashes.
    let answered: BTreeSet<&str> = results.map(|result| result.tool_use_id.as_str()).collect();
    answer.into_iter().flat_map(Message::tool_uses).filter(move |call| !answered.contains(call.id.as_str()))
}

/// The conversation as a provider accepts it: after each answer with calls comes one message with the results
/// of all of them, in the order of the calls. A call without a result gets an error as its result.
///
/// An [`Agent`](crate::Agent) does this before each request, so a conversation that was cancelled, abandoned
/// or stopped by a limit goes on. The stored conversation is not changed.
///
/// ```
/// use agentgraph_llm::{Message, Role, ToolUse, conversation};
/// use serde_json::json;
///
/// let answer = Message::new(Role::Assistant, [ToolUse::new("call-1", "pay", json!({}))]);
/// let messages = conversation::complete(&[Message::user("pay"), answer, Message::user("never mind")]);
/// let result = messages[2].results().next().unwrap();
/// assert!(result.is_error && result.tool_use_id == "call-1");
/// assert_eq!(messages[3].text(), "never mind");
/// ```
pub fn complete(messages: &[Message]) -> Vec<Message> {
    let mut complete = Vec::with_capacity(messages.len() + 1);
    complete_into(messages, &mut complete);
    complete
}

/// The same, as a clone if all of it can be sent as it is.
pub(crate) fn complete_list(messages: &Messages) -> Messages {
    match messages.sendable() == messages.len() {
        true => messages.clone(),
        false => messages.completed(complete_into),
    }
}

fn complete_into(mut rest: &[Message], complete: &mut Vec<Message>) {
    while let Some((message, after)) = rest.split_first() {
        rest = after;
        complete.push(message.clone());
        if message.role != Role::Assistant || message.tool_uses().next().is_none() {
            continue;
        }
        let end = rest.iter().position(|next| next.role == Role::Assistant).unwrap_or(rest.len());
        let (turn, after) = rest.split_at(end);
        complete_turn(message, turn, complete);
        rest = after;
    }
}

/// Adds the messages after an answer: its results first, then the rest.
fn complete_turn(answer: &Message, turn: &[Message], complete: &mut Vec<Message>) {
    if let Some((first, rest)) = turn.split_first()
        && is_answered(answer, first)
        && rest.iter().all(|message| message.results().next().is_none())
    {
        return complete.extend(turn.iter().cloned());
    }
    let mut results: BTreeMap<&str, &ToolResult> = BTreeMap::new();
    let mut id = None;
    for message in turn {
        for result in message.results() {
            id.get_or_insert(&message.id);
            results.insert(&result.tool_use_id, result);
        }
    }
    let id = id.cloned().unwrap_or_else(|| format!("{}:results", answer.id));
    let all = answer.tool_uses().map(|call| match results.get(call.id.as_str()) {
        Some(result) => (*result).clone(),
        None => unanswered(call),
    });
    complete.push(Message::named(id, Role::User, all));
    let calls: BTreeSet<&str> = answer.tool_uses().map(|call| call.id.as_str()).collect();
    let is_moved = |block: &Block| {
        block.as_tool_result().is_some_and(|result| calls.contains(result.tool_use_id.as_str()))
    };
    for message in turn {
        let moved = message.content.iter().filter(|block| is_moved(block)).count();
        if moved == 0 {
            complete.push(message.clone());
        } else if moved < message.content.len() {
            let mut rest = message.clone();
            rest.content.retain(|block| !is_moved(block));
            rest.id = format!("{}:rest", message.id);
            complete.push(rest);
        }
    }
}

fn unanswered(call: &ToolUse) -> ToolResult {
    ToolResult::error(
        &call.id,
        "no result: the run was stopped before this call ended; it may have taken effect",
    )
}

/// The results of the last answer, from the first one that is out of place on, in the order of the calls;
/// empty if they are in order. Some calls are answered before the others run: those that a person rejects,
/// and those that cannot be run.
pub(crate) fn results_to_move(messages: &[Message]) -> Vec<Message> {
    let Some(at) = messages.iter().rposition(|message| !is_results(message)) else { return Vec::new() };
    let (answer, results) = (&messages[at], &messages[at + 1..]);
    if results.len() < 2 {
        return Vec::new();
    }
    let place = |message: &Message| {
        let first = message.results().next()?;
        answer.tool_uses().position(|call| call.id == first.tool_use_id)
    };
    let mut sorted: Vec<_> = results.iter().collect();
    sorted.sort_by_key(|message| place(message).unwrap_or(usize::MAX));
    let same = sorted.iter().zip(results).take_while(|(sorted, known)| sorted.id == known.id).count();
    sorted.into_iter().skip(same).cloned().collect()
}

/// The last message with the call of this id.
pub(crate) fn answer_with<'a>(messages: &'a [Message], call: &str) -> Option<&'a Message> {
    messages.iter().rev().find(|message| message.tool_uses().any(|known| known.id == call))
}

/// A message with the result of one call. Its id follows from the call, so storing it again changes nothing.
pub(crate) fn result_message(messages: &[Message], result: ToolResult) -> Message {
    let answer = answer_with(messages, &result.tool_use_id).map_or("", |message| message.id.as_str());
    result_of(answer, result)
}

/// The same, of a call in the message with the id `answer`.
pub(crate) fn result_of(answer: &str, result: ToolResult) -> Message {
    let id = [answer, ":", &result.tool_use_id].concat();
    Message::named(id, Role::User, [result])
}
