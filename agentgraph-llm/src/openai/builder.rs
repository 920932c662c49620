//! The settings of both models.

use std::marker::PhantomData;
use std::sync::Arc;

use super::connection::{self, BASE_URL};
use super::{OpenAiChatModel, OpenAiModel, Profile};
use crate::error::Result;
use crate::http::{self, Authentication, Connection, Endpoint, connection_settings, default_settings};
use crate::model::{Capabilities, Defaults};

/// The settings of an [`OpenAiChatModel`] or an [`OpenAiModel`]. The model is required, and the key if the
/// profile says so.
///
/// ```
/// use agentgraph_llm::openai::{OpenAiChatModel, OpenAiModel, Profile};
///
/// let model = OpenAiChatModel::builder().api_key("sk-not-a-real-key").model("m").build()?;
/// assert!(!format!("{model:?}").contains("not-a-real-key"));
///
/// let local = OpenAiChatModel::builder().profile(Profile::llama_cpp()).model("m").build()?;
/// assert!(format!("{local:?}").contains("http://localhost:8080/v1"));
///
/// assert!(OpenAiModel::builder().model("m").build().is_err());              // no key
/// # Ok::<(), agentgraph_llm::Error>(())
/// ```
#[derive(Clone, Debug)]
#[must_use]
pub struct OpenAiBuilder<M> {
    model: Option<String>,
    profile: Profile,
    defaults: Defaults,
    max_input_tokens: Option<u64>,
    connection: Connection,
    of: PhantomData<fn() -> M>,
}

/// The settings of an [`OpenAiModel`].
pub type OpenAiModelBuilder = OpenAiBuilder<OpenAiModel>;

/// The settings of an [`OpenAiChatModel`].
pub type OpenAiChatModelBuilder = OpenAiBuilder<OpenAiChatModel>;

/// What both models are made of.
pub(super) struct Parts {
    pub(super) model: String,
    pub(super) profile: Profile,
    pub(super) defaults: Defaults,
    pub(super) capabilities: Capabilities,
    pub(super) endpoint: Arc<Endpoint>,
}

connection_settings!(OpenAiBuilder<M>, default_url = "https://api.openai.com/v1");
default_settings!(OpenAiBuilder<M>, otherwise = "");

impl<M> OpenAiBuilder<M> {
    pub(super) fn new(connection: Connection) -> Self {
        OpenAiBuilder {
            model: None,
            profile: Profile::openai(),
            defaults: Defaults::default(),
            max_input_tokens: None,
            connection,
            of: PhantomData,
        }
    }

    /// Sets what the server does in its own way: how it takes the key, and its address, unless one is set.
    /// The other fields are about Chat Completions only.
    pub fn profile(mut self, profile: Profile) -> Self {
        self.profile = profile;
        self
    }

    /// Builds a model without a key too, for a server that needs none.
    pub fn without_key(mut self) -> Self {
        self.profile.requires_key = false;
        self
    }

    /// Sets the size of the model's context window, for [`Capabilities`](crate::Capabilities).
    pub fn max_input_tokens(mut self, tokens: u64) -> Self {
        self.max_input_tokens = Some(tokens);
        self
    }

    fn parts(mut self) -> Result<Parts> {
        let model = http::named(self.model, "...")?;
        self.defaults.check()?;
        let profile = self.profile;
        if self.connection.base_url == BASE_URL {
            self.connection.base_url = profile.base_url.clone().into_owned();
        }
        if let Some(header) = &profile.key_header {
            self.connection.own_authentication = Authentication::Header(header.clone());
        }
        let wire = connection::wire(profile.requires_key, profile.version.clone());
        let endpoint = self.connection.endpoint(wire)?;
        let mut capabilities = Capabilities::new();
        capabilities.structured_output = profile.structured_output;
        capabilities.token_count = profile.count_path.is_some();
        capabilities.max_input_tokens = self.max_input_tokens;
        Ok(Parts { model, profile, defaults: self.defaults, capabilities, endpoint })
    }
}

impl OpenAiBuilder<OpenAiChatModel> {
    /// Builds the model. Nothing is sent.
    ///
    /// # Errors
    /// `E_LLM_CONFIG` if the model or the key is missing or a setting is invalid.
    pub fn build(self) -> Result<OpenAiChatModel> {
        Ok(OpenAiChatModel::of(self.parts()?))
    }
}

impl OpenAiBuilder<OpenAiModel> {
    /// Builds the model. Nothing is sent.
    ///
    /// # Errors
    /// `E_LLM_CONFIG` if the model or the key is missing or a setting is invalid.
    pub fn build(self) -> Result<OpenAiModel> {
        Ok(OpenAiModel::of(self.parts()?))
    }
}
