//! What the model says about its understanding: what it read, what it did not, and what it cannot do.

use crate::grammar::{FORMS, Group};
use crate::reading::{Clause, Reading};
use crate::token::LONGEST;
use crate::wire;

/// Why nothing of a message is done; none if it was understood whole.
pub(crate) fn not_understood(reading: &Reading, message: &str, near: &[&str]) -> Option<String> {
    if let Some(length) = reading.too_long {
        return Some(format!(
            "Your message has {length} characters, and I read messages of at most {LONGEST}. Nothing was started."
        ));
    }
    if !reading.left.is_empty() {
        let left: Vec<String> = reading.left.iter().map(|part| format!("'{}'", quoted(part))).collect();
        let understood = match reading.clauses.as_slice() {
            [] => String::new(),
            clauses => format!(" I understood: {}.", numbered(clauses)),
        };
        return Some(format!(
            "I did not understand {}.{understood} I started nothing. Near it I understand: {}.",
            left.join(" and "),
            examples(near)
        ));
    }
    if let Some(other) = reading.others.first() {
        return Some(format!(
            "'{}' can mean two things: {}, or {}. Which one? Put names in quotes.",
            quoted(message),
            numbered(&reading.clauses),
            numbered(other)
        ));
    }
    // "Start it and never stop it": only the person knows what is wanted.
    let contradicts = reading.clauses.len() > 1
        && reading.clauses.iter().any(|clause| matches!(clause.act(), "refuse" | "insist"));
    contradicts.then(|| {
        format!(
            "You say several things at once: {}. I started nothing; say one of them alone.",
            numbered(&reading.clauses)
        )
    })
}

/// The answer to a text that answers nothing.
pub(crate) fn no_answer(message: &str) -> String {
    format!("I did not understand '{}' here.", quoted(message))
}

/// The examples, in quotes.
pub(crate) fn examples(near: &[&str]) -> String {
    near.iter().map(|example| format!("\"{example}\"")).collect::<Vec<_>>().join(", ")
}

fn numbered(clauses: &[Clause]) -> String {
    match clauses {
        [one] => described(one),
        several => {
            let each =
                several.iter().enumerate().map(|(at, clause)| format!("{}) {}", at + 1, described(clause)));
            each.collect::<Vec<_>>().join("; ")
        }
    }
}

/// A clause in the person's words, with its act.
fn described(clause: &Clause) -> String {
    format!("\"{}\" ({})", quoted(&clause.source), clause.act().replace('_', " "))
}

/// A quoted part on one line. A very long one shows its beginning and end.
fn quoted(part: &str) -> String {
    const SHOWN: usize = 300;
    let line = wire::on_one_line(part);
    let length = line.chars().count();
    if length <= 2 * SHOWN {
        return line;
    }
    let start: String = line.chars().take(SHOWN).collect();
    let end: String = line.chars().skip(length - SHOWN).collect();
    format!("{start} ... ({} more characters) ... {end}", length - 2 * SHOWN)
}

/// What the agent does not do, or UpGrade does not tell.
pub(crate) fn beyond(topic: &str) -> &'static str {
    match topic {
        "segments" => {
            "segments are handled on UpGrade's own screen; I can include and exclude students and groups."
        }
        "flags" => "feature flags are handled on UpGrade's own screen.",
        "metrics" => "metrics, queries and their results are handled on UpGrade's own screen.",
        "files" => {
            "files are imported and exported on UpGrade's own screen; paste an experiment's JSON to create it."
        }
        "payloads" => "payloads are changed on UpGrade's own screen.",
        "schedules" => {
            "I change a status at once; UpGrade's own screen can schedule a start and end enrolment on a date."
        }
        "previews" => "previews and the users for them are handled on UpGrade's own screen.",
        "server" => "the server itself is not mine to run; I change experiments on it.",
        "students" => "UpGrade cannot take a student back; I can exclude one from an experiment.",
        "contexts" => {
            "contexts come with the application that uses UpGrade; I create experiments in them and cannot make, rename or delete them."
        }
        "conversations" => {
            "conversations are deleted with `/delete NAME` in the chat, or `upgrade-agent threads delete NAME`."
        }
        "designs" => "I create simple experiments only; other designs are made on UpGrade's own screen.",
        "p_value" => {
            "UpGrade does not say whether conditions differ in their outcome; it counts who is enrolled where. I can test whether the split follows the weights."
        }
        "reason" => "UpGrade does not record why something was done, and does not tell me by whom.",
        _ => "I cannot do that.",
    }
}

/// The tool that describes the parameters of an action.
pub(crate) fn schema_tool(action: &str) -> &'static str {
    match action {
        "create_experiment" => "get_create_experiment_schema",
        "update_experiment" => "get_update_experiment_schema",
        "delete_experiment" => "get_delete_experiment_schema",
        "init_experiment_user" => "get_init_experiment_user_schema",
        "get_decision_point_assignments" => "get_get_decision_point_assignments_schema",
        "mark_decision_point" => "get_mark_decision_point_schema",
        "visit_decision_point" => "get_visit_decision_point_schema",
        "test_condition_balance" => "get_test_condition_balance_schema",
        "simulate_user_journey" => "get_simulate_user_journey_schema",
        _ => "get_update_experiment_status_schema",
    }
}

/// The forms with their examples, under their headings.
pub(crate) fn help() -> String {
    let section = |group: Group| {
        let forms = FORMS.iter().filter(|form| form.group == group && form.asked.is_empty());
        let lines: Vec<String> = forms.map(|form| format!("- {}", form.example)).collect();
        format!("{}:\n{}", group.title(), lines.join("\n"))
    };
    let sections: Vec<String> = Group::ALL.into_iter().map(section).collect();
    format!("{ABILITIES}\n\n{}", sections.join("\n\n"))
}

/// The table of forms in Markdown, for the guide.
pub(crate) fn table() -> String {
    let mut lines = vec!["| you say | it is read as |".to_owned(), "|---|---|".to_owned()];
    for group in Group::ALL {
        lines.push(format!("| **{}** | |", group.title()));
        for form in FORMS.iter().filter(|form| form.group == group) {
            let asked = if form.asked.is_empty() {
                String::new()
            } else {
                format!(", to the question for `{}`", form.asked)
            };
            lines.push(format!(
                "| {} | {}{asked} |",
                form.example.replace('|', "\\|"),
                form.act.replace('_', " ")
            ));
        }
    }
    lines.join("\n")
}

const ABILITIES: &str = "I am the offline model: I work without a network or language model, by a grammar, so I understand plain \
    requests about UpGrade in forms like those below, in English. I accept a message only if I understand all of it; otherwise I \
    quote the rest and start nothing. Names with keywords in them need quotes. Whatever changes something is asked back first: \
    create, update, start, stop and delete experiments, test the balance of conditions, a visit, a journey of simulated students. \
    With ANTHROPIC_API_KEY set, a language model answers instead.";

/// The start of the answer to a message without a sense.
pub(crate) const UNCLEAR: &str =
    "I am the offline model and know plain requests about UpGrade only, in English.";
