//! What each node tells the model: its duty in a few sentences, and the situation as facts.
//!
//! The conversation itself travels as messages; everything the agent knows beside it is in the fenced JSON, so that a
//! model needs no memory of its own.

mod situation;

use agentgraph_llm::{ChatRequest, Message, Role};

use crate::agent::Settings;
use crate::nodes::{CONVERSATION_ANALYZER, INFORMATION_GATHERER, RESPONSE_GENERATOR};
use crate::state::ConversationState;
use situation::Situation;

const ANALYZER: &str = "\
You read the last message of a conversation with an assistant for UpGrade, a platform for A/B tests in education, and \
classify it with the tool analyze_user_request, once. You answer nothing yourself.

Intents: greeting (hello, thanks, goodbye); direct_answer (general knowledge, or what was done in this conversation; \
nothing has to be fetched); needs_info (anything about this server, its contexts, experiments, students, terms and \
parameters, and every wish to create, change, start, stop, delete, initialize, assign or mark); unclear (you cannot tell \
what is meant, or of what); confirm_reply (a bare yes or no although nothing is asked); cancel (stop what is under way).

Confidence: 0.9 and more if only one reading is possible, 0.7 to 0.9 if one is much likelier, less if the person should be \
asked. In the summary, replace words like \"that experiment\" by what they stand for (see that_experiment).";

const GATHERER: &str = "\
You collect what is needed for the request, with tools. You do not talk to the person: another node does, from what you \
collect.

For a question: call the tools that fetch or explain what is asked, then stop. For an action: find ids by name with \
get_experiment_names, look at the parameters with the schema tool if you are not sure of them, give what the person said \
with set_action_params or update_action_params, and call set_action_needed. Parameters that the person must still give go \
to set_missing_params; never make values up. If the request cannot be done, call add_error with what is wrong.

pending in the situation is an action that waits for parameters: the message probably brings them; add them with \
update_action_params. dropped is an action whose confirmation the person did not answer: if the message only changes \
something in it, call update_action_params with the change and nothing else; if it asks for something new, begin with \
set_action_needed. Nothing is executed by you: the person is asked first.

\"Stop\" an experiment means the status enrollmentComplete, \"start\" means enrolling, \"cancel\" or \"end\" an experiment \
means cancelled.";

const RESPONDER: &str = "\
You write the reply to the person: friendly, short, in plain words, in the person's language. Use the tools to read what \
was gathered, the execution log and the errors; say nothing about this server that you did not read there. If reply_kind \
is clarification, ask one question that settles what is meant. What was done is only what the execution log says: never \
claim that something was created, changed or deleted otherwise. You cannot change anything yourself, and you do not ask \
for a confirmation: when an action is complete the person is asked automatically.";

/// The request for the analyzer.
pub(crate) fn analyzer(state: &ConversationState, settings: &Settings) -> ChatRequest {
    request(CONVERSATION_ANALYZER, ANALYZER, state, settings)
}

/// The request for the gatherer.
pub(crate) fn gatherer(state: &ConversationState, settings: &Settings) -> ChatRequest {
    request(INFORMATION_GATHERER, GATHERER, state, settings)
}

/// The request for the responder.
pub(crate) fn responder(state: &ConversationState, settings: &Settings) -> ChatRequest {
    request(RESPONSE_GENERATOR, RESPONDER, state, settings)
}

fn request(node: &str, duty: &str, state: &ConversationState, settings: &Settings) -> ChatRequest {
    let facts = serde_json::to_string_pretty(&Situation::of(state)).unwrap_or_default();
    let system = format!("Node: {node}\n\n{duty}\n\nSituation\n```json\n{facts}\n```");
    let messages = recent(&state.history, settings.history_window);
    settings.tuned(ChatRequest::new(messages.iter().cloned()).with_system(system))
}

/// The last messages, at most so many. Providers want the person to speak first.
pub(crate) fn recent(history: &[Message], window: usize) -> &[Message] {
    let last = &history[history.len().saturating_sub(window)..];
    let first = last.iter().position(|message| message.role == Role::User).unwrap_or(last.len());
    &last[first..]
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_window_ends_with_the_last_message_and_begins_with_the_person() {
        let history: Vec<Message> = (0..6)
            .map(|n| {
                if n % 2 == 0 { Message::user(format!("u{n}")) } else { Message::assistant(format!("a{n}")) }
            })
            .chain([Message::user("now")])
            .collect();
        let texts = |window| recent(&history, window).iter().map(Message::text).collect::<Vec<_>>();
        assert_eq!(texts(1), ["now"]);
        assert_eq!(texts(2), ["now"]);
        assert_eq!(texts(3), ["u4", "a5", "now"]);
        assert_eq!(texts(100).len(), 7);
        assert!(recent(&[], 5).is_empty());
    }
}
