//! Where a conversation may be cut. Pure.
//!
//! A cut never separates a call from its result: a provider refuses either without the other.

use std::collections::HashMap;

use crate::message::Message;

/// The largest position up to `wanted` at which no call before it has its result after it.
pub(super) fn safe_cut(messages: &[Message], wanted: usize) -> usize {
    let mut asked_at = HashMap::new();
    // For each position with results: the position of the first call they answer.
    let mut needs: Vec<Option<usize>> = Vec::with_capacity(messages.len());
    for (at, message) in messages.iter().enumerate() {
        needs.push(message.results().filter_map(|result| asked_at.get(&result.tool_use_id).copied()).min());
        asked_at.extend(message.tool_uses().map(|call| (call.id.clone(), at)));
    }
    let mut cut = wanted.min(messages.len());
    // Downwards, so that results between an old and a new cut are seen, too.
    for at in (0..messages.len()).rev() {
        match needs[at] {
            Some(call) if at >= cut => cut = cut.min(call),
            _ => {}
        }
    }
    cut
}

/// The position after which at most `tokens` remain; the last message always remains.
pub(super) fn cut_by_tokens(messages: &[Message], tokens: u64, count: impl Fn(&Message) -> u64) -> usize {
    let mut kept = 0_u64;
    let fits = |message: &&Message| {
        kept = kept.saturating_add(count(message));
        kept <= tokens
    };
    let number = messages.iter().rev().take_while(fits).count().max(1);
    messages.len().saturating_sub(number)
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;
    use serde_json::json;

    use super::*;
    use crate::message::{Role, ToolResult, ToolUse};

    /// The rule itself: no call before the cut has its result after it.
    fn is_safe(messages: &[Message], cut: usize) -> bool {
        let asked =
            |id: &str| messages[..cut].iter().any(|message| message.tool_uses().any(|call| call.id == id));
        !messages[cut..].iter().any(|message| message.results().any(|result| asked(&result.tool_use_id)))
    }

    /// Conversations with unanswered calls, results spread over messages, and results far from their calls.
    fn conversation() -> impl Strategy<Value = Vec<Message>> {
        let step = prop_oneof![
            Just((0, 0)),
            (1_usize..4).prop_map(|calls| (1, calls)),
            (1_usize..4).prop_map(|results| (2, results)),
        ];
        prop::collection::vec(step, 0..16).prop_map(|steps| {
            let mut open: Vec<String> = Vec::new();
            let mut number = 0;
            let mut message = |step: (usize, usize)| match step {
                (1, calls) => {
                    let calls = (0..calls).map(|_| {
                        number += 1;
                        open.push(format!("c{number}"));
                        ToolUse::new(format!("c{number}"), "t", json!({}))
                    });
                    Message::new(Role::Assistant, calls)
                }
                (2, results) if !open.is_empty() => {
                    let results = results.min(open.len());
                    Message::tool_results(open.drain(..results).map(|id| ToolResult::text(id, "done")))
                }
                _ => Message::user("hello"),
            };
            steps.into_iter().map(&mut message).collect()
        })
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(2000))]

        #[test]
        fn the_cut_is_the_last_that_splits_no_pair(messages in conversation(), wanted in 0_usize..20) {
            let last = (0..=wanted.min(messages.len())).rev().find(|cut| is_safe(&messages, *cut));
            prop_assert_eq!(Some(safe_cut(&messages, wanted)), last);
        }

        #[test]
        fn the_longest_end_within_the_tokens_is_kept(sizes in prop::collection::vec(0_u64..50, 1..12), limit in 0_u64..200) {
            let messages: Vec<_> = sizes.iter().map(|size| Message::user(size.to_string())).collect();
            let cut = cut_by_tokens(&messages, limit, |message| message.text().parse().unwrap());
            let sum = |from: usize| sizes[from..].iter().sum::<u64>();
            prop_assert!(sum(cut) <= limit || cut == sizes.len() - 1);
            prop_assert!(cut == 0 || sum(cut - 1) > limit);
        }
    }
}
