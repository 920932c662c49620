//! Clears old tool results from a conversation. Pure.

use std::collections::HashMap;

use super::ContextEditing;
use crate::json::RawJson;
use crate::message::{Block, Message, ToolInput};
use crate::model::TokenCount;

/// The place of a result that may be cleared.
struct Candidate {
    message: usize,
    block: usize,
    call: String,
}

/// Clears the oldest results until enough is gone. The messages keep their number, blocks and pairs.
pub(super) fn clear_old_results(messages: &mut [Message], rules: &ContextEditing) {
    let names = tool_names(messages);
    let mut candidates = candidates(messages, rules, &names);
    candidates.truncate(candidates.len().saturating_sub(rules.keep));
    let mut cleared = 0;
    for candidate in candidates {
        if rules.clear_at_least > 0 && cleared >= rules.clear_at_least {
            break;
        }
        let before = TokenCount::of_message(&messages[candidate.message]);
        clear_result(&mut messages[candidate.message].content[candidate.block], &rules.placeholder);
        cleared += before.saturating_sub(TokenCount::of_message(&messages[candidate.message]));
        if rules.clear_inputs {
            cleared += clear_input(messages, &candidate.call);
        }
    }
}

/// Results in order, without those of excluded tools and those that were cleared before.
fn candidates(
    messages: &[Message],
    rules: &ContextEditing,
    names: &HashMap<String, String>,
) -> Vec<Candidate> {
    let mut found = Vec::new();
    for (message, content) in messages.iter().map(|message| &message.content).enumerate() {
        for (block, result) in
            content.iter().enumerate().filter_map(|(at, block)| Some((at, block.as_tool_result()?)))
        {
            let is_excluded = names.get(&result.tool_use_id).is_some_and(|name| rules.exclude.contains(name));
            let is_cleared =
                matches!(&result.content[..], [Block::Text(text)] if text.text == rules.placeholder);
            if !is_excluded && !is_cleared {
                found.push(Candidate { message, block, call: result.tool_use_id.clone() });
            }
        }
    }
    found
}

fn tool_names(messages: &[Message]) -> HashMap<String, String> {
    let calls = messages.iter().flat_map(Message::tool_uses);
    calls.map(|call| (call.id.clone(), call.name.clone())).collect()
}

fn clear_result(block: &mut Block, placeholder: &str) {
    if let Block::ToolResult(result) = block {
        result.content = vec![Block::text(placeholder)];
    }
}

fn clear_input(messages: &mut [Message], call: &str) -> u64 {
    let mut cleared = 0;
    for message in messages.iter_mut().filter(|message| message.tool_uses().any(|used| used.id == call)) {
        let before = TokenCount::of_message(message);
        for block in &mut message.content {
            if let Block::ToolUse(used) = block
                && used.id == call
            {
                used.input = ToolInput::Json(RawJson::empty_object());
            }
        }
        cleared += before.saturating_sub(TokenCount::of_message(message));
    }
    cleared
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;
    use serde_json::json;

    use super::*;
    use crate::message::{Role, ToolResult, ToolUse};

    const LONG: &str = "a result that is long enough to be worth its removal from the conversation";

    fn conversation(tools: &[usize]) -> Vec<Message> {
        let mut messages = vec![Message::user("go")];
        for (number, tool) in tools.iter().enumerate() {
            let call = ToolUse::new(format!("c{number}"), format!("t{tool}"), json!({"long": LONG}));
            messages.push(Message::new(Role::Assistant, [call]));
            messages.push(Message::tool_results([ToolResult::text(format!("c{number}"), LONG)]));
        }
        messages
    }

    fn is_cleared(message: &Message) -> bool {
        message.results().any(|result| result.as_text() == "[cleared]")
    }

    proptest! {
        #[test]
        fn all_but_the_last_results_of_the_tools_are_cleared(
            tools in prop::collection::vec(0_usize..3, 0..10),
            keep in 0_usize..5,
            clear_inputs: bool,
        ) {
            let rules = ContextEditing::new().keep(keep).exclude(["t0"]).placeholder("[cleared]");
            let rules = if clear_inputs { rules.clear_inputs() } else { rules };
            let before = conversation(&tools);
            let mut after = before.clone();
            clear_old_results(&mut after, &rules);
            let of_others: Vec<_> = (0..tools.len()).filter(|number| tools[*number] != 0).collect();
            let expected = &of_others[..of_others.len().saturating_sub(keep)];
            for number in 0..tools.len() {
                let wanted = expected.contains(&number);
                prop_assert_eq!(is_cleared(&after[2 * number + 2]), wanted);
                let input = after[2 * number + 1].tool_uses().next().unwrap().input.text().to_owned();
                prop_assert_eq!(input == "{}", wanted && clear_inputs);
            }
            // Twice changes nothing more.
            let mut again = after.clone();
            clear_old_results(&mut again, &rules.clone().keep(keep));
            prop_assert!(after.len() == before.len());
        }

        #[test]
        fn clearing_stops_when_enough_is_gone(count in 1_usize..8, enough in 1_u64..200) {
            let rules = ContextEditing::new().keep(0).clear_at_least(enough).placeholder("[cleared]");
            let before = conversation(&vec![1; count]);
            let mut after = before.clone();
            clear_old_results(&mut after, &rules);
            let tokens = |messages: &[Message]| messages.iter().map(TokenCount::of_message).sum::<u64>();
            let one = tokens(&conversation(&[1])) - {
                let mut one = conversation(&[1]);
                clear_old_results(&mut one, &rules);
                tokens(&one)
            };
            let expected = (enough.div_ceil(one) as usize).min(count);
            prop_assert_eq!(after.iter().filter(|message| is_cleared(message)).count(), expected);
        }
    }
}
