//! The offline model as conversation analyzer: one tool call with the class of the message.

use serde_json::{Value, json};

use super::facts::Facts;
use super::intent::{Meaning, Request, understand};
use super::slots;
use super::text::Text;

pub(super) const TOOL: &str = "analyze_user_request";

/// The arguments of the call.
pub(super) fn analysis(facts: &Facts) -> Value {
    let text = Text::read(&facts.message);
    let meaning = in_situation(understand(&text), &text, facts);
    json!({
        "intent": intent(&meaning.ask),
        "confidence": meaning.confidence,
        "user_request_summary": summary(&meaning.ask, facts),
        "reasoning": format!("read as: {}", reading(&meaning.ask)),
    })
}

/// Decides from the situation what the words alone leave open.
fn in_situation(meaning: Meaning, text: &Text, facts: &Facts) -> Meaning {
    let sure = |ask| Meaning { ask, confidence: 0.85 };
    match &meaning.ask {
        Request::StatusOf if slots::ordinals::place(text).is_some() => sure(Request::StatusOf),
        // After a list of several experiments, none of them is "that experiment".
        Request::StatusOf
            if meaning.confidence < 0.7
                && !facts.situation_field("that_experiment").is_null()
                && !reads_out_several(&facts.before) =>
        {
            sure(Request::StatusOf)
        }
        Request::Unclear if may_change_a_draft(text) && !facts.situation_field("dropped").is_null() => {
            sure(Request::Do(super::intent::Operation::Update))
        }
        _ => meaning,
    }
}

/// Whether a reply was a list of experiments.
fn reads_out_several(reply: &str) -> bool {
    let listed = |line: &str| line.starts_with("- ") && line.contains(" in ") && line.ends_with(')');
    reply.lines().filter(|line| listed(line)).count() > 1
}

/// "70/30 instead", "call it Bar", "use 300 students": a parameter of the question that was just open.
fn may_change_a_draft(text: &Text) -> bool {
    slots::has_weights(text)
        || text.has(&["instead", "rather", "actually", "but"])
        || text.has_phrase("call|name it")
        || slots::students::count(text).is_some()
        || slots::filter_mode(text).is_some()
}

fn intent(ask: &Request) -> &'static str {
    match ask {
        Request::Greeting | Request::Thanks | Request::Farewell => "greeting",
        Request::Abilities | Request::Explain(_) | Request::Report | Request::Undo => "direct_answer",
        Request::Yes => "confirm_reply",
        Request::No | Request::Refused => "cancel",
        Request::Unclear | Request::OtherLanguage => "unclear",
        Request::HowTo(_)
        | Request::Schema(_)
        | Request::Contexts
        | Request::OfContext(_)
        | Request::Experiments
        | Request::Details
        | Request::StatusOf
        | Request::Enrollment
        | Request::Health
        | Request::Beyond
        | Request::Do(_) => "needs_info",
    }
}

fn reading(ask: &Request) -> String {
    match ask {
        Request::Explain(terms) => {
            format!("explain {}", terms.iter().map(|term| term.title()).collect::<Vec<_>>().join(", "))
        }
        Request::HowTo(action) => format!("how is {} done", action.name()),
        Request::Schema(action) => format!("what does {} need", action.name()),
        Request::Do(action) => format!("do {}", action.name()),
        Request::OfContext(part) => format!("{part:?} of a context").to_lowercase(),
        other => format!("{other:?}").to_lowercase(),
    }
}

/// The request in the person's own words, with "that experiment" spelled out.
fn summary(ask: &Request, facts: &Facts) -> String {
    let last = facts.situation_field("that_experiment").get("name").and_then(Value::as_str);
    let about = last.filter(|_| slots::refers_back(&Text::read(&facts.message)));
    let about = about.map_or_else(String::new, |name| format!(" (about experiment '{name}')"));
    format!("{}{about}: {}", reading(ask), facts.message.trim())
}
