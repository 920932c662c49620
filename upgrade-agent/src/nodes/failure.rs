//! Errors in the form in which a turn reports them: a class, and a text for the person.

use agentgraph_llm::Error as ModelError;

use crate::client::{ClientError, ErrorKind};
use crate::state::{ErrorClass, PresetReply, ResponseKind, TurnError};

pub(crate) fn of_model(error: &ModelError, node: &str) -> TurnError {
    let class = if error.is_auth() { ErrorClass::Auth } else { ErrorClass::Api };
    TurnError { class, message: program_words(&error.to_string()), node: node.to_owned() }
}

/// The message of the model's library with the program's options for the methods that it names.
fn program_words(message: &str) -> String {
    const OPTIONS: &[(&str, &str)] = &[
        ("`idle_timeout(..)`", "--model-timeout"),
        ("`timeout(..)`", "--model-timeout"),
        ("`.allow_plain_http()`", "--allow-plain-http"),
        ("`api_key(..)`", "the variable of its key"),
        ("`.api_key(..)` or ", ""),
        ("`.temperature(..)`", "--temperature"),
    ];
    OPTIONS.iter().fold(message.to_owned(), |text, (method, option)| text.replace(method, option))
}

pub(crate) fn of_server(error: &ClientError, node: &str) -> TurnError {
    TurnError { class: class_of(error), message: error.to_string(), node: node.to_owned() }
}

pub(crate) fn class_of(error: &ClientError) -> ErrorClass {
    match error.kind() {
        ErrorKind::Auth => ErrorClass::Auth,
        ErrorKind::NotFound => ErrorClass::NotFound,
        ErrorKind::BadRequest | ErrorKind::Conflict => ErrorClass::Validation,
        ErrorKind::Connect | ErrorKind::Timeout | ErrorKind::Server | ErrorKind::Protocol => ErrorClass::Api,
        _ => ErrorClass::Unknown,
    }
}

/// The reply if no model could read the message.
pub(crate) fn model_preset(error: &TurnError) -> PresetReply {
    let text = format!("The language model did not answer, so I did nothing. {}", error.message);
    PresetReply::new(ResponseKind::Answer, text)
}

/// The reply to a request that cannot be fulfilled.
pub(crate) fn preset(errors: &[TurnError]) -> PresetReply {
    let first = match errors.first().map(|error| error.class) {
        Some(ErrorClass::Auth) => "The UpGrade server does not let me do that. Nothing was changed.",
        Some(ErrorClass::Api) => "The UpGrade server could not be asked. Nothing was changed.",
        Some(ErrorClass::NotFound) => "I could not find that. Nothing was changed.",
        _ => "That cannot be done like this. Nothing was changed.",
    };
    let lines = errors.iter().map(|error| format!("- {}", error.message));
    let text = std::iter::once(first.to_owned()).chain(lines).collect::<Vec<_>>().join("\n");
    PresetReply::new(ResponseKind::Answer, text)
}

#[cfg(test)]
mod tests {
    use agentgraph_llm::Code;

    use super::*;

    #[test]
    fn messages_of_a_model_name_the_options_of_the_program() {
        for (library, program) in [
            ("no answer from x within 60s: set a longer `timeout(..)`", "set a longer --model-timeout"),
            (
                "the stream was silent for 60s: try again, or set a longer `idle_timeout(..)`",
                "set a longer --model-timeout",
            ),
            ("the API key was refused: check ANTHROPIC_API_KEY or `api_key(..)`", "the variable of its key"),
        ] {
            let told = of_model(&ModelError::new(Code::Timeout, library), "node").message;
            assert!(told.ends_with(program) && !told.contains("(..)"), "{told}");
        }
    }
}
