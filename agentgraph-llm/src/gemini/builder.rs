//! The settings of a [`GeminiModel`].

use std::sync::Arc;

use reqwest::header::HeaderMap;

use super::{DIALECT, GeminiModel, GoogleCredentials};
use crate::error::Result;
use crate::http::{self, Authentication, Connection, Wire, config, connection_settings, default_settings};
use crate::model::Defaults;

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
    defaults: Defaults,
    is_vertex: bool,
    connection: Connection,
}

impl Default for GeminiModelBuilder {
    fn default() -> Self {
        GeminiModelBuilder {
            model: None,
            defaults: Defaults::default(),
            is_vertex: false,
            connection: connection(),
        }
    }
}

connection_settings!(GeminiModelBuilder, default_url = "https://generativelanguage.googleapis.com");
default_settings!(GeminiModelBuilder, otherwise = ": the model's own if not set");

impl GeminiModelBuilder {
    pub(super) fn from_vars(var: impl Fn(&str) -> Option<String>) -> Result<Self> {
        let connection = connection_from(var, "GeminiModel::builder()")?;
        Ok(GeminiModelBuilder { connection, ..GeminiModelBuilder::default() })
    }

    /// Asks Vertex AI of a project in place of the Gemini API, such as `("my-project", "us-central1")` or
    /// `("my-project", "global")`. Without a key, tokens come from the
    /// [default credentials](GoogleCredentials::find). Not tried live.
    ///
    /// ```
    /// use agentgraph_llm::GeminiModel;
    ///
    /// let model = GeminiModel::builder().vertex("my-project", "europe-west4").api_key("a-token").model("m").build()?;
    /// let address = "https://europe-west4-aiplatform.googleapis.com/v1/projects/my-project/locations/europe-west4";
    /// assert!(format!("{model:?}").contains(address));
    /// # Ok::<(), agentgraph_llm::Error>(())
    /// ```
    pub fn vertex(self, project: &str, location: &str) -> Self {
        let host = match location {
            "global" => String::new(),
            region => format!("{region}-"),
        };
        let path = format!("v1/projects/{project}/locations/{location}/publishers/google");
        self.vertex_at(format!("https://{host}aiplatform.googleapis.com/{path}"))
    }

    /// Asks Vertex AI at an address that ends with `publishers/google`, such as that of a proxy.
    pub fn vertex_at(mut self, url: impl Into<String>) -> Self {
        self.is_vertex = true;
        self.base_url(url)
    }

    /// Builds the model. Nothing is sent.
    ///
    /// # Errors
    /// `E_LLM_CONFIG` if key or model are missing or a setting is invalid.
    pub fn build(mut self) -> Result<GeminiModel> {
        let model = http::named(self.model, "gemini-...")?;
        self.defaults.check()?;
        let ids = self.connection.ids.clone();
        let mut wire = wire();
        if self.is_vertex {
            wire.version = "".into();
            self.connection.own_authentication = Authentication::Bearer;
            if self.connection.key.is_none() {
                let credentials = GoogleCredentials::find()?.clock(Arc::clone(&self.connection.clock));
                self.connection.key = Some(http::KeySource::Provider(Arc::new(credentials)));
            }
        }
        let endpoint = self.connection.endpoint(wire)?;
        Ok(GeminiModel { model, defaults: self.defaults, ids, is_vertex: self.is_vertex, endpoint })
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
        version: "v1beta".into(),
        missing_key: Some("no API key: set one with `.api_key(..)` or GEMINI_API_KEY"),
        headers: HeaderMap::new(),
        dialect: DIALECT,
    }
}

#[cfg(test)]
mod tests {
    use secrecy::ExposeSecret;

    use super::*;
    use crate::error::Code;
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
