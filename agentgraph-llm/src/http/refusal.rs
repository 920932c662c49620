//! The errors of providers as errors of this crate: what their statuses mean, and what to do.

use crate::error::{Code, Error};
use crate::json::{Object, WireValue};

/// A longer message of a provider is cut.
const MAX_MESSAGE: usize = 500;

/// The object of a body, or the first one of an array, as gateways write it.
pub(crate) fn fields(body: &[u8]) -> Option<Object> {
    let text = std::str::from_utf8(body).ok()?;
    Object::parse(text).ok().or_else(|| {
        let items: Vec<WireValue> = serde_json::from_str(text).ok()?;
        Object::parse(items.first()?.0.get()).ok()
    })
}

/// Whether a message has one of these phrases, in any case.
pub(crate) fn says(message: &str, phrases: &[&str]) -> bool {
    let message = message.to_lowercase();
    phrases.iter().any(|phrase| message.contains(phrase))
}

/// A message of a provider, cut.
pub(crate) fn cut(message: String) -> String {
    message.chars().take(MAX_MESSAGE).collect()
}

/// The code of a status that says no more than HTTP does.
pub(crate) fn code_of_status(status: u16) -> Code {
    match status {
        401 => Code::Auth,
        402 => Code::Billing,
        403 => Code::Permission,
        404 => Code::NotFound,
        408 | 499 | 504 => Code::Timeout,
        409 => Code::Conflict,
        413 => Code::TooLarge,
        429 => Code::RateLimited,
        // The server lacks what is asked for, and will lack it the next time.
        501 => Code::BadRequest,
        503 | 529 => Code::Overloaded,
        500.. => Code::Server,
        _ => Code::BadRequest,
    }
}

/// An error with advice and what the provider says. `key` is the variable that has the API key.
pub(crate) fn error<'a>(code: Code, key: &str, said: impl IntoIterator<Item = &'a str>) -> Error {
    let said: Vec<_> = said.into_iter().filter(|part| !part.is_empty()).collect();
    let said = match said.is_empty() {
        true => String::new(),
        false => format!("; the server says: {}", said.join(": ")),
    };
    let advice = match code {
        Code::Auth => {
            return Error::new(code, format!("the API key was refused: check {key} or `api_key(..)`{said}"));
        }
        Code::Permission => "the API key may not do this: ask its owner for access, or use another model",
        Code::Billing => {
            "the account has no credit or quota left, or reached its spend limit: settle that in the console"
        }
        Code::NotFound => {
            "the server does not know the model or the path: check the model name and the base URL"
        }
        Code::TooLarge => "the request is too large: send fewer or shorter messages",
        Code::RateLimited => "too many requests: wait, or ask for a higher limit",
        Code::Overloaded => "the provider is overloaded: try again later",
        Code::Timeout => "the provider ran out of time: try again, or ask for less",
        Code::Conflict => "the request collided with another one: try again",
        Code::Server => "the provider failed: try again later",
        _ => "the request was refused: it has to be changed",
    };
    Error::new(code, format!("{advice}{said}"))
}
