//! Calls that were left without a result are answered before the next request.

use agentgraph::prelude::*;
use agentgraph_llm::prelude::*;
use agentgraph_llm::{ToolUse, conversation};
use proptest::prelude::*;
use serde_json::json;

use crate::support::{Log, Number, calls, echo, results};

#[tokio::test]
async fn a_cancelled_call_is_answered_as_an_error_in_the_next_run() {
    let log = Log::default();
    let stop = CancellationToken::new();
    let token = stop.clone();
    let hang = FnTool::new("hang", "", move |_: Number| {
        let token = token.clone();
        async move {
            token.cancel();
            std::future::pending::<Result<String, ToolError>>().await
        }
    });
    let first = calls("echo", [1]).and_tool_call("hang", json!({"n": 2}));
    let model = ScriptedModel::new([first, Reply::text("never mind")]);
    let agent = Agent::new(model.clone()).tool(echo("echo", &log)).tool(hang).compile().unwrap();
    let agent = agent.checkpointer(MemorySaver::new());
    let outcome = agent.invoke("go").thread("t").cancel(stop).await.unwrap();
    assert!(matches!(outcome, Outcome::Stopped { .. }), "{outcome:?}");

    let answer = agent.invoke("forget it").thread("t").abandon().await.unwrap().into_finished().unwrap();
    assert_eq!(answer.text(), "never mind");
    let sent = &model.requests()[1].messages;
    let roles: Vec<_> = sent.iter().map(|message| message.role).collect();
    assert_eq!(roles, [Role::User, Role::Assistant, Role::User, Role::User]);
    let answered: Vec<_> =
        sent[2].results().map(|result| (result.tool_use_id.as_str(), result.is_error)).collect();
    assert_eq!(answered.len(), 2);
    assert_eq!(answered[1], ("call-2", true));
    assert_eq!(sent[3].text(), "forget it");
}

/// A conversation of answers with calls, of which some have results somewhere before the next answer.
fn conversations() -> impl Strategy<Value = Vec<Message>> {
    let turn = (0usize..4, prop::collection::vec((0usize..4, 0..3), 0..5));
    prop::collection::vec(turn, 0..4).prop_map(|turns| {
        let mut messages = vec![Message::user("go")];
        for (at, (calls, after)) in turns.into_iter().enumerate() {
            let call = |n: usize| ToolUse::new(format!("{at}-{n}"), "tool", json!({}));
            let blocks: Vec<Block> = match calls {
                0 => vec![Block::text("done")],
                _ => (0..calls).map(|n| call(n).into()).collect(),
            };
            messages.push(Message::new(Role::Assistant, blocks));
            let result = |n| ToolResult::text(format!("{at}-{n}"), format!("result {at}-{n}"));
            for (n, kind) in after {
                messages.push(match kind {
                    1 if n < calls => Message::tool_results([result(n)]),
                    2 if calls > 0 => Message::tool_results((0..calls).map(result)),
                    _ => Message::user(format!("text {n}")),
                });
            }
        }
        messages
    })
}

proptest! {
    #[test]
    fn each_answer_is_followed_by_one_result_for_each_of_its_calls(messages in conversations()) {
        let complete = conversation::complete(&messages);
        for (at, message) in complete.iter().enumerate() {
            let asked: Vec<_> = message.tool_uses().map(|call| call.id.clone()).collect();
            if asked.is_empty() {
                continue;
            }
            let given: Vec<_> = complete[at + 1].results().map(|result| result.tool_use_id.clone()).collect();
            prop_assert_eq!(asked, given);
        }
        let given: Vec<_> = complete.iter().flat_map(Message::results).map(|result| &result.tool_use_id).collect();
        let distinct: std::collections::BTreeSet<_> = given.iter().collect();
        prop_assert_eq!(distinct.len(), given.len(), "no call has two results");
        // Texts stay, in their order, and so do results that were there.
        let texts = |messages: &[Message]| messages.iter().map(Message::text).filter(|text| !text.is_empty()).collect::<Vec<_>>();
        prop_assert_eq!(texts(&complete), texts(&messages));
        let sent = results(&complete);
        prop_assert!(results(&messages).iter().all(|result| sent.contains(result)));
        // A result of nothing at the front, which is left as it is, makes every turn be looked at one by one.
        // Without it, those at the beginning that need no change are passed over.
        let stray = Message::tool_results([ToolResult::text("stray", "")]);
        let after: Vec<_> = std::iter::once(stray).chain(messages.iter().cloned()).collect();
        prop_assert_eq!(&conversation::complete(&after)[1..], &complete[..]);
        // Doing it again changes nothing.
        prop_assert_eq!(conversation::complete(&complete), complete);
    }
}
