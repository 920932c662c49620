//! The settings of an [`AnthropicModel`].

use reqwest::header::{HeaderMap, HeaderValue};

use super::encode::DEFAULT_MAX_TOKENS;
use super::{AnthropicModel, DIALECT};
use crate::error::Result;
use crate::http::{self, Authentication, Connection, Wire, config, connection_settings, default_settings};
use crate::model::Defaults;

const DEFAULT_BASE_URL: &str = "https://api.anthropic.com";
const VERSION: &str = "2026-10-21";

/// The settings of an [`AnthropicModel`]. Key and model are required, everything else has a default. One
/// field per setting.
///
/// ```
/// use agentgraph_llm::AnthropicModel;
/// use agentgraph_llm::anthropic::DEFAULT_MODEL;
/// use std::time::Duration;
///
/// let model = AnthropicModel::builder()
///     .api_key("sk-not-a-real-key")
///     .model(DEFAULT_MODEL)
///     .timeout(Duration::from_secs(60))
///     .max_tokens(1_000)
///     .build()?;
/// assert!(!format!("{model:?}").contains("not-a-real-key"));
/// # Ok::<(), agentgraph_llm::Error>(())
/// ```
#[derive(Clone, Debug)]
#[must_use]
pub struct AnthropicModelBuilder {
    model: Option<String>,
    version: String,
    betas: Vec<String>,
    defaults: Defaults,
    /// The path that is added to an address without a version.
    path: &'static str,
    connection: Connection,
}

impl Default for AnthropicModelBuilder {
    fn default() -> Self {
        AnthropicModelBuilder {
            model: None,
            version: VERSION.to_owned(),
            betas: Vec::new(),
            defaults: Defaults { max_tokens: Some(DEFAULT_MAX_TOKENS), ..Defaults::default() },
            path: "v1",
            connection: Connection::new(DEFAULT_BASE_URL, Authentication::Bearer),
        }
    }
}

connection_settings!(AnthropicModelBuilder, default_url = "https://api.anthropic.com");
default_settings!(AnthropicModelBuilder, otherwise = ": 4096 if not set");

impl AnthropicModelBuilder {
    pub(super) fn from_vars(var: impl Fn(&str) -> Option<String>) -> Result<Self> {
        let variable = |name| http::variable(&var, name);
        let key = variable("ANTHROPIC_API_KEY").or_else(|| variable("ANTHROPIC_AUTH_TOKEN"));
        let Some(key) = key else {
            return Err(config(
                "neither ANTHROPIC_API_KEY nor ANTHROPIC_AUTH_TOKEN is set: set one, or use `AnthropicModel::builder()`",
            ));
        };
        let builder = AnthropicModelBuilder::default().api_key(key);
        Ok(match variable("ANTHROPIC_BASE_URL") {
            Some(url) => builder.base_url(url),
            None => builder,
        })
    }

    /// Sets the version of the API, the header `anthropic-version`: `2026-10-21` if not set.
    ///
    /// A server of before October 2026 wants the older version, and the key in another header:
    ///
    /// ```
    /// use agentgraph_llm::{AnthropicModel, Authentication};
    ///
    /// let gateway = AnthropicModel::builder().api_key("sk-not-a-real-key").model("m").base_url("https://gateway.internal");
    /// let older = gateway.api_version("2023-06-01").authentication(Authentication::header("x-api-key"));
    /// assert!(older.build().is_ok());
    /// ```
    pub fn api_version(mut self, version: impl Into<String>) -> Self {
        self.version = version.into();
        self
    }

    /// Sets version and path to those of Amazon Bedrock, whose endpoint in the form of Anthropic takes a
    /// key of Bedrock. The address is that of a region. Not tried live.
    ///
    /// ```
    /// use agentgraph_llm::AnthropicModel;
    ///
    /// let region = AnthropicModel::builder().bedrock().base_url("https://bedrock-runtime.us-east-1.amazonaws.com");
    /// let model = region.api_key("not-a-real-key").model("anthropic.claude-...").build()?;
    /// assert!(format!("{model:?}").contains("amazonaws.com/anthropic/v1"));
    /// # Ok::<(), agentgraph_llm::Error>(())
    /// ```
    pub fn bedrock(mut self) -> Self {
        self.path = "anthropic/v1";
        self.api_version("2023-06-01")
    }

    /// Requests a beta feature of the API. May be called several times.
    pub fn beta(mut self, name: impl Into<String>) -> Self {
        self.betas.push(name.into());
        self
    }

    /// Builds the model. Nothing is sent.
    ///
    /// # Errors
    /// `E_LLM_CONFIG` if key or model are missing or a setting is invalid.
    pub fn build(self) -> Result<AnthropicModel> {
        let model = http::named(self.model, "claude-...")?;
        self.defaults.check()?;
        let endpoint = self.connection.endpoint(Wire {
            version: self.path.into(),
            missing_key: Some("no API key: set one with `.api_key(..)` or ANTHROPIC_API_KEY"),
            headers: headers(&self.version, &self.betas)?,
            dialect: DIALECT,
        })?;
        Ok(AnthropicModel { model, defaults: self.defaults, endpoint })
    }
}

fn headers(version: &str, betas: &[String]) -> Result<HeaderMap> {
    let value = |text: &str, what: &str| {
        HeaderValue::from_str(text).map_err(|_| config(format!("{what} cannot be sent: correct it")))
    };
    let mut headers = HeaderMap::new();
    headers.insert("anthropic-version", value(version, "the version of the API")?);
    if !betas.is_empty() {
        headers.insert("anthropic-beta", value(&betas.join(","), "a beta's name")?);
    }
    Ok(headers)
}

#[cfg(test)]
mod tests {
    use secrecy::ExposeSecret;

    use super::*;
    use crate::error::Code;
    use crate::http::KeySource;

    /// The builder of an environment in which these variables are set.
    fn from(vars: &'static [(&'static str, &'static str)]) -> Result<AnthropicModelBuilder> {
        let var =
            |name: &str| vars.iter().find(|(known, _)| *known == name).map(|(_, value)| (*value).to_owned());
        AnthropicModelBuilder::from_vars(var)
    }

    #[test]
    fn blank_environment_variables_count_as_missing() {
        let blank = from(&[("ANTHROPIC_API_KEY", " "), ("ANTHROPIC_AUTH_TOKEN", "")]);
        assert_eq!(blank.unwrap_err().code(), Code::Config);
        let url = |vars| from(vars).unwrap().connection.base_url;
        assert_eq!(url(&[("ANTHROPIC_API_KEY", "k"), ("ANTHROPIC_BASE_URL", " ")]), DEFAULT_BASE_URL);
        let local = "http://localhost:1";
        assert_eq!(url(&[("ANTHROPIC_API_KEY", "k"), ("ANTHROPIC_BASE_URL", "http://localhost:1")]), local);
    }

    #[test]
    fn a_token_takes_the_place_of_a_missing_key() {
        let key = |vars| match from(vars).unwrap().connection.key {
            Some(KeySource::Fixed(key)) => key.expose_secret().to_owned(),
            _ => String::new(),
        };
        assert_eq!(key(&[("ANTHROPIC_AUTH_TOKEN", "token")]), "token");
        assert_eq!(key(&[("ANTHROPIC_AUTH_TOKEN", "token"), ("ANTHROPIC_API_KEY", "key")]), "key");
    }

    #[test]
    fn a_header_can_take_the_place_of_the_key() {
        let model = || AnthropicModel::builder().model("m").header("Authorization", "Basic eA==");
        assert!(model().build().is_ok());
        assert!(model().authentication(Authentication::header("x-api-key")).build().is_err());
    }

    #[test]
    fn a_model_needs_a_name_a_valid_key_and_a_finite_temperature() {
        let builder = AnthropicModel::builder;
        assert!(builder().api_key("k").build().unwrap_err().message().contains(".model("));
        assert!(builder().model("m").build().unwrap_err().message().contains("ANTHROPIC_API_KEY"));
        let error = builder().model("m").api_key("se\ncret").build().unwrap_err();
        assert!(!error.to_string().contains("cret"), "{error}");
        assert!(builder().model("m").api_key(" key\n").build().is_ok());
        assert!(builder().model("m").api_key("k").temperature(f32::NAN).build().is_err());
    }
}
