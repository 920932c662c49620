//! Models by name, for programs whose user chooses one.

use std::fmt;
use std::str::FromStr;
use std::sync::Arc;
use std::time::Duration;

use secrecy::SecretString;

use crate::anthropic::AnthropicModel;
use crate::error::{Code, Error, Result};
use crate::gemini::GeminiModel;
use crate::model::ChatModel;
use crate::openai::{OpenAiChatModel, OpenAiModel, Profile};

/// A wire and a provider that speaks it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum Provider {
    /// Anthropic's Messages API.
    Anthropic,
    /// OpenAI's Responses API.
    OpenAi,
    /// OpenAI's Chat Completions API, and servers compatible with it.
    OpenAiChat,
    /// Google's Gemini API.
    Gemini,
    /// Ollama, by Chat Completions.
    Ollama,
    /// The `llama-server` of llama.cpp, by Chat Completions.
    LlamaCpp,
    /// vLLM, by Chat Completions.
    Vllm,
}

impl Provider {
    /// All providers, in the order of declaration.
    pub const ALL: &'static [Provider] = &[
        Provider::Anthropic,
        Provider::OpenAi,
        Provider::OpenAiChat,
        Provider::Gemini,
        Provider::Ollama,
        Provider::LlamaCpp,
        Provider::Vllm,
    ];

    /// The word before the colon of a name, such as `openai`.
    pub fn as_str(self) -> &'static str {
        match self {
            Provider::Anthropic => "anthropic",
            Provider::OpenAi => "openai",
            Provider::OpenAiChat => "openai-chat",
            Provider::Gemini => "gemini",
            Provider::Ollama => "ollama",
            Provider::LlamaCpp => "llama-cpp",
            Provider::Vllm => "vllm",
        }
    }

    /// The environment variables that may hold its key, the first that is set counts; none for servers that
    /// need no key.
    pub fn key_variables(self) -> &'static [&'static str] {
        match self {
            Provider::Anthropic => &["ANTHROPIC_API_KEY", "ANTHROPIC_AUTH_TOKEN"],
            Provider::OpenAi | Provider::OpenAiChat => &["OPENAI_API_KEY"],
            Provider::Gemini => &["GOOGLE_API_KEY", "GEMINI_API_KEY"],
            Provider::Ollama | Provider::LlamaCpp | Provider::Vllm => &[],
        }
    }

    /// The environment variables that may hold its address.
    pub fn url_variables(self) -> &'static [&'static str] {
        match self {
            Provider::Anthropic => &["ANTHROPIC_BASE_URL"],
            Provider::OpenAi | Provider::OpenAiChat => &["OPENAI_BASE_URL"],
            Provider::Gemini => &["GOOGLE_GEMINI_BASE_URL"],
            Provider::Ollama => &["OLLAMA_BASE_URL"],
            Provider::LlamaCpp => &["LLAMA_CPP_BASE_URL"],
            Provider::Vllm => &["VLLM_BASE_URL"],
        }
    }

    /// Whether the provider refuses requests without a key.
    pub fn requires_key(self) -> bool {
        !self.key_variables().is_empty()
    }
}

impl fmt::Display for Provider {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        out.write_str(self.as_str())
    }
}

/// The name of a model with its provider: `anthropic:claude-...`, `openai:gpt-...`, `ollama:qwen3:8b`.
///
/// ```
/// use agentgraph_llm::{ModelName, Provider};
///
/// let name: ModelName = "ollama:qwen3:8b".parse()?;
/// assert_eq!((name.provider, name.model.as_str()), (Provider::Ollama, "qwen3:8b"));
/// assert_eq!(name.to_string(), "ollama:qwen3:8b");
///
/// let error = "mistral:large".parse::<ModelName>().unwrap_err();
/// assert!(error.message().contains("`anthropic:`"));
/// # Ok::<(), agentgraph_llm::Error>(())
/// ```
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub struct ModelName {
    /// The provider.
    pub provider: Provider,
    /// The name by which the provider knows the model.
    pub model: String,
}

impl ModelName {
    /// A model of a provider.
    pub fn new(provider: Provider, model: impl Into<String>) -> Self {
        ModelName { provider, model: model.into() }
    }

    /// The settings of the model, without key and address.
    pub fn settings(&self) -> NamedModel {
        NamedModel {
            name: self.clone(),
            key: None,
            url: None,
            timeout: None,
            max_retries: None,
            allows_plain_http: false,
        }
    }

    /// The settings of the model with the key and the address of the environment.
    ///
    /// ```
    /// use agentgraph_llm::{ChatModel, ModelName};
    ///
    /// let name: ModelName = "llama-cpp:qwen".parse()?;
    /// let model = name.settings_from_env().base_url("http://localhost:9000/v1").build()?;
    /// assert_eq!(model.info().model, "qwen");
    /// # Ok::<(), agentgraph_llm::Error>(())
    /// ```
    pub fn settings_from_env(&self) -> NamedModel {
        let variable = |name: &&str| std::env::var(name).ok().filter(|value| !value.trim().is_empty());
        let mut settings = self.settings();
        if let Some(key) = self.provider.key_variables().iter().find_map(variable) {
            settings = settings.api_key(key);
        }
        if let Some(url) = self.provider.url_variables().iter().find_map(variable) {
            settings = settings.base_url(url);
        }
        settings
    }

    /// The model with the key and the address of the environment.
    ///
    /// # Errors
    /// `E_LLM_CONFIG` if the provider needs a key and the environment has none, or a setting is invalid.
    pub fn from_env(&self) -> Result<Arc<dyn ChatModel>> {
        self.settings_from_env().build()
    }
}

impl FromStr for ModelName {
    type Err = Error;

    fn from_str(text: &str) -> Result<Self> {
        let parts = text.split_once(':').filter(|(_, model)| !model.trim().is_empty());
        let known = parts.and_then(|(word, model)| {
            let provider = Provider::ALL.iter().copied().find(|provider| provider.as_str() == word.trim())?;
            Some(ModelName::new(provider, model.trim()))
        });
        known.ok_or_else(|| {
            let words: Vec<_> = Provider::ALL.iter().map(|provider| format!("`{provider}:`")).collect();
            let message = format!("`{text}` names no model: write {} and the model's name", words.join(", "));
            Error::new(Code::Config, message)
        })
    }
}

impl fmt::Display for ModelName {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(out, "{}:{}", self.provider, self.model)
    }
}

/// The settings of a model that is known by name. A program with a fixed provider uses that provider's own
/// builder, which has more of them.
#[derive(Clone)]
#[must_use]
pub struct NamedModel {
    name: ModelName,
    key: Option<SecretString>,
    url: Option<String>,
    timeout: Option<Duration>,
    max_retries: Option<u32>,
    allows_plain_http: bool,
}

/// The same settings on the builder of each wire.
macro_rules! build {
    ($settings:ident, $builder:expr) => {{
        let mut builder = $builder.model($settings.name.model);
        if let Some(key) = $settings.key {
            builder = builder.api_key(key);
        }
        if let Some(url) = $settings.url {
            builder = builder.base_url(url);
        }
        if let Some(timeout) = $settings.timeout {
            builder = builder.timeout(timeout).idle_timeout(timeout);
        }
        if let Some(retries) = $settings.max_retries {
            builder = builder.max_retries(retries);
        }
        if $settings.allows_plain_http {
            builder = builder.allow_plain_http();
        }
        Ok(Arc::new(builder.build()?))
    }};
}

impl NamedModel {
    /// Sets the key.
    pub fn api_key(mut self, key: impl Into<SecretString>) -> Self {
        self.key = Some(key.into());
        self
    }

    /// Sets the server's address.
    pub fn base_url(mut self, url: impl Into<String>) -> Self {
        self.url = Some(url.into());
        self
    }

    /// Limits the wait for an answer to begin, and the silence within it.
    pub fn timeout(mut self, timeout: Duration) -> Self {
        self.timeout = Some(timeout);
        self
    }

    /// Sets the number of retries of a failed call, 2 if not set. An agent with
    /// [`ModelRetry`](crate::middleware::ModelRetry) sets 0 here, so that its own count is the whole count.
    pub fn max_retries(mut self, retries: u32) -> Self {
        self.max_retries = Some(retries);
        self
    }

    /// Allows an unencrypted address of another machine. Anyone on the network path can then read the key and
    /// the conversations.
    pub fn allow_plain_http(mut self) -> Self {
        self.allows_plain_http = true;
        self
    }

    /// Builds the model. Nothing is sent.
    ///
    /// ```
    /// use agentgraph_llm::{ChatModel, ModelName};
    ///
    /// let name: ModelName = "gemini:gemini-flash".parse()?;
    /// let model = name.settings().api_key("not-a-real-key").build()?;
    /// assert_eq!(model.info().to_string(), "gcp.gemini/gemini-flash");
    /// # Ok::<(), agentgraph_llm::Error>(())
    /// ```
    ///
    /// # Errors
    /// `E_LLM_CONFIG` if the provider needs a key and has none, or a setting is invalid.
    pub fn build(self) -> Result<Arc<dyn ChatModel>> {
        let compatible = |profile| OpenAiChatModel::builder().profile(profile);
        match self.name.provider {
            Provider::Anthropic => build!(self, AnthropicModel::builder()),
            Provider::OpenAi => build!(self, OpenAiModel::builder()),
            Provider::OpenAiChat => build!(self, compatible(Profile::openai())),
            Provider::Gemini => build!(self, GeminiModel::builder()),
            Provider::Ollama => build!(self, compatible(Profile::ollama())),
            Provider::LlamaCpp => build!(self, compatible(Profile::llama_cpp())),
            Provider::Vllm => build!(self, compatible(Profile::vllm())),
        }
    }
}

impl fmt::Debug for NamedModel {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        out.debug_struct("NamedModel").field("name", &self.name).finish_non_exhaustive()
    }
}
