//! What the connections of both wires and of the embedder have in common.

use std::borrow::Cow;

use reqwest::header::HeaderMap;

use super::failure;
use crate::error::Result;
use crate::http::{
    Authentication, Connection, Dialect, KeySource, LimitHeaders, QuotaHeaders, Wire, config, variable,
};

pub(super) const BASE_URL: &str = "https://api.openai.com/v1";

const DIALECT: Dialect = Dialect {
    refusal: failure::from_status,
    request_id: "x-request-id",
    limits: Some(LimitHeaders {
        requests: QuotaHeaders {
            limit: "x-ratelimit-limit-requests",
            remaining: "x-ratelimit-remaining-requests",
            reset: "x-ratelimit-reset-requests",
        },
        tokens: QuotaHeaders {
            limit: "x-ratelimit-limit-tokens",
            remaining: "x-ratelimit-remaining-tokens",
            reset: "x-ratelimit-reset-tokens",
        },
    }),
};

pub(super) fn connection() -> Connection {
    Connection::new(BASE_URL, Authentication::Bearer)
}

/// A connection with the settings of the environment.
pub(super) fn from_vars(var: impl Fn(&str) -> Option<String>) -> Result<Connection> {
    let Some(key) = variable(&var, "OPENAI_API_KEY") else {
        return Err(config("OPENAI_API_KEY is not set: set it to an API key, or use a `builder()`"));
    };
    let mut connection = connection();
    connection.key = Some(KeySource::Fixed(key.into()));
    if let Some(url) = variable(&var, "OPENAI_BASE_URL") {
        connection.base_url = url;
    }
    for (name, header) in [("OPENAI_ORG_ID", "OpenAI-Organization"), ("OPENAI_PROJECT_ID", "OpenAI-Project")]
    {
        if let Some(value) = variable(&var, name) {
            connection.headers.push((header.to_owned(), value));
        }
    }
    Ok(connection)
}

/// The wire's own part of a connection.
pub(super) fn wire(requires_key: bool, version: Cow<'static, str>) -> Wire {
    Wire {
        version,
        missing_key: requires_key.then_some(
            "no API key: set one with `.api_key(..)` or OPENAI_API_KEY, or the profile of a server",
        ),
        headers: HeaderMap::new(),
        dialect: DIALECT,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::error::Code;

    #[test]
    fn the_environment_gives_key_address_and_project() {
        let vars = |name: &str| match name {
            "OPENAI_API_KEY" => Some("k".to_owned()),
            "OPENAI_BASE_URL" => Some("http://localhost:1".to_owned()),
            "OPENAI_ORG_ID" => Some(" ".to_owned()),
            "OPENAI_PROJECT_ID" => Some("p".to_owned()),
            _ => None,
        };
        let connection = from_vars(vars).unwrap();
        assert_eq!(connection.base_url, "http://localhost:1");
        assert_eq!(connection.headers, [("OpenAI-Project".to_owned(), "p".to_owned())]);
        assert_eq!(from_vars(|_| None).unwrap_err().code(), Code::Config);
    }
}
