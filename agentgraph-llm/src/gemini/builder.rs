//! The settings of a [`GeminiModel`].

use reqwest::header::HeaderMap;

use super::{DIALECT, GeminiModel};
use crate::error::{Code, Error, Result};
use crate::http::{self, Authentication, Connection, Wire, connection_settings};

const DEFAULT_BASE_URL: &str = "https://generativelanguage.googleapis.com";

/// The settings of a [`GeminiModel`]. Key and model are required, everything else has a default. One field
/// per setting.
///
/// ```
/// use agentgraph_llm::GeminiModel;
/// use std::time::Duration;
///
/// let model = GeminiModel::builder()
///     .api_key("not-a-real-key")
///     .model("gemini-test")
///     .timeout(Duration::from_secs(60))
///     .max_tokens(1_000)
///     .build()?;
/// assert!(!format!("{model:?}").contains("not-a-real-key"));
/// # Ok::<(), agentgraph_llm::Error>(())
/// ```
#[derive(Clone, Debug)]
#[must_use]
pub struct GeminiModelBuilder {
    model: Option<String>,
    temperature: Option<f32>,
    max_tokens: Option<u32>,
    connection: Connection,
}

impl Default for GeminiModelBuilder {
    fn default() -> Self {
        GeminiModelBuilder { model: None, temperature: None, max_tokens: None, connection: connection() }
    }
}

connection_settings!(GeminiModelBuilder, default_url = "https://generativelanguage.googleapis.com");

impl GeminiModelBuilder {
    pub(super) fn from_vars(var: impl Fn(&str) -> Option<String>) -> Result<Self> {
        let connection = connection_from(var, "GeminiModel::builder()")?;
        Ok(GeminiModelBuilder { connection, ..GeminiModelBuilder::default() })
    }

    /// Sets the model's name, such as `gemini-...`. Required.
    pub fn model(mut self, model: impl Into<String>) -> Self {
        self.model = Some(model.into());
        self
    }

    /// Sets the temperature of requests that have none.
    pub fn temperature(mut self, temperature: f32) -> Self {
        self.temperature = Some(temperature);
        self
    }

    /// Sets the limit of output tokens of requests that have none: the model's own if not set.
    pub fn max_tokens(mut self, tokens: u32) -> Self {
        self.max_tokens = Some(tokens);
        self
    }

    /// Builds the model. Nothing is sent.
    ///
    /// # Errors
    /// `E_LLM_CONFIG` if key or model are missing or a setting is invalid.
    pub fn build(self) -> Result<GeminiModel> {
        let model = name(self.model)?;
        if self.temperature.is_some_and(|temperature| !temperature.is_finite() || temperature < 0.0) {
            return Err(config(
                "the temperature is not a number from 0 up: set one with `.temperature(..)`, or none",
            ));
        }
        let ids = self.connection.ids.clone();
        let endpoint = self.connection.endpoint(wire())?;
        Ok(GeminiModel { model, temperature: self.temperature, max_tokens: self.max_tokens, ids, endpoint })
    }
}

pub(super) fn connection() -> Connection {
    Connection::new(DEFAULT_BASE_URL, Authentication::header("x-goog-api-key"))
}

pub(super) fn connection_from(var: impl Fn(&str) -> Option<String>, otherwise: &str) -> Result<Connection> {
    let variable = |name| http::variable(&var, name);
    let Some(key) = variable("GOOGLE_API_KEY").or_else(|| variable("GEMINI_API_KEY")) else {
        let message =
            format!("neither GOOGLE_API_KEY nor GEMINI_API_KEY is set: set one, or use `{otherwise}`");
        return Err(config(message));
    };
    let mut connection = connection();
    connection.key = Some(http::KeySource::Fixed(key.into()));
    if let Some(url) = variable("GOOGLE_GEMINI_BASE_URL") {
        connection.base_url = url;
    }
    Ok(connection)
}

pub(super) fn wire() -> Wire {
    Wire {
        version: "v1beta",
        missing_key: Some("no API key: set one with `.api_key(..)` or GEMINI_API_KEY"),
        headers: HeaderMap::new(),
        dialect: DIALECT,
    }
}

pub(super) fn name(model: Option<String>) -> Result<String> {
    let model = model.map(|model| model.trim().to_owned()).filter(|model| !model.is_empty());
    model.ok_or_else(|| config("no model: set one with `.model(\"gemini-...\")`"))
}

pub(super) fn config(message: impl Into<String>) -> Error {
    Error::new(Code::Config, message)
}

#[cfg(test)]
mod tests {
    use secrecy::ExposeSecret;

    use super::*;
    use crate::http::KeySource;

    fn from(vars: &'static [(&'static str, &'static str)]) -> Result<GeminiModelBuilder> {
        GeminiModelBuilder::from_vars(|name| {
            vars.iter().find(|(known, _)| *known == name).map(|(_, value)| (*value).to_owned())
        })
    }

    #[test]
    fn the_environment_has_key_and_address() {
        assert_eq!(from(&[("GEMINI_API_KEY", " ")]).unwrap_err().code(), Code::Config);
        let key = |vars| match from(vars).unwrap().connection.key {
            Some(KeySource::Fixed(key)) => key.expose_secret().to_owned(),
            _ => String::new(),
        };
        assert_eq!(key(&[("GEMINI_API_KEY", "b")]), "b");
        assert_eq!(key(&[("GEMINI_API_KEY", "b"), ("GOOGLE_API_KEY", "a")]), "a");
        let local = from(&[("GEMINI_API_KEY", "k"), ("GOOGLE_GEMINI_BASE_URL", "http://localhost:1")]);
        assert_eq!(local.unwrap().connection.base_url, "http://localhost:1");
    }

    #[test]
    fn a_model_needs_a_name_a_key_and_a_finite_temperature() {
        let builder = GeminiModel::builder;
        assert!(builder().api_key("k").build().unwrap_err().message().contains(".model("));
        assert!(builder().model("m").build().unwrap_err().message().contains("GEMINI_API_KEY"));
        assert!(builder().model("m").api_key("k").temperature(f32::NAN).build().is_err());
    }
}
