//! Models by name, for programs whose user chooses one.

use std::fmt;
use std::str::FromStr;
use std::sync::Arc;
use std::time::Duration;

use secrecy::SecretString;

use crate::anthropic::AnthropicModel;
use crate::error::{Code, Error, Result};
use crate::gemini::GeminiModel;
use crate::http::{Authentication, KeyProvider, KeySource, variable};
use crate::model::ChatModel;
use crate::openai::{OpenAiChatModel, OpenAiModel, Profile};

/// The table of providers: word, variables with the key, variables with the address, and the address that
/// is made of other variables.
macro_rules! providers {
    ($($(#[$doc:meta])* $variant:ident = $word:literal, $keys:expr, $urls:expr, $address:literal;)*) => {
        /// A wire and a provider that speaks it.
        #[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
        #[non_exhaustive]
        pub enum Provider {
            $($(#[$doc])* $variant,)*
        }

        impl Provider {
            /// All providers, in the order of declaration.
            pub const ALL: &'static [Provider] = &[$(Provider::$variant,)*];

            const fn row(self) -> Row {
                match self {
                    $(Provider::$variant => Row { word: $word, keys: $keys, urls: $urls, address: $address },)*
                }
            }
        }
    };
}

struct Row {
    word: &'static str,
    keys: &'static [&'static str],
    urls: &'static [&'static str],
    address: &'static str,
}

const BEDROCK_KEYS: &[&str] = &["AWS_BEARER_TOKEN_BEDROCK"];
const BEDROCK_URLS: &[&str] = &["AWS_ENDPOINT_URL_BEDROCK_RUNTIME"];

providers! {
    /// Anthropic's Messages API.
    Anthropic = "anthropic", &["ANTHROPIC_API_KEY", "ANTHROPIC_AUTH_TOKEN"], &["ANTHROPIC_BASE_URL"], "";
    /// OpenAI's Responses API.
    OpenAi = "openai", &["OPENAI_API_KEY"], &["OPENAI_BASE_URL"], "";
    /// OpenAI's Chat Completions API, and servers compatible with it.
    OpenAiChat = "openai-chat", &["OPENAI_API_KEY"], &["OPENAI_BASE_URL"], "";
    /// Google's Gemini API.
    Gemini = "gemini", &["GOOGLE_API_KEY", "GEMINI_API_KEY"], &["GOOGLE_GEMINI_BASE_URL"], "";
    /// Ollama, by Chat Completions.
    Ollama = "ollama", &[], &["OLLAMA_BASE_URL"], "";
    /// The `llama-server` of llama.cpp, by Chat Completions.
    LlamaCpp = "llama-cpp", &[], &["LLAMA_CPP_BASE_URL"], "";
    /// vLLM, by Chat Completions.
    Vllm = "vllm", &[], &["VLLM_BASE_URL"], "";
    /// Azure OpenAI, by Chat Completions. The model is the name of a deployment.
    Azure = "azure", &["AZURE_OPENAI_API_KEY"], &["AZURE_OPENAI_ENDPOINT"], "";
    /// Amazon Bedrock, by Chat Completions.
    Bedrock = "bedrock", BEDROCK_KEYS, BEDROCK_URLS, "https://bedrock-runtime.{AWS_REGION}.amazonaws.com";
    /// Anthropic's models on Amazon Bedrock, by the Messages API.
    BedrockAnthropic = "bedrock-anthropic", BEDROCK_KEYS, BEDROCK_URLS, "https://bedrock-runtime.{AWS_REGION}.amazonaws.com";
    /// Vertex AI of Google's cloud, by the Gemini API, with Google's default credentials.
    Vertex = "vertex", &[], &["GOOGLE_VERTEX_BASE_URL"], "https://{GOOGLE_CLOUD_LOCATION}-aiplatform.googleapis.com/v1/projects/{GOOGLE_CLOUD_PROJECT}/locations/{GOOGLE_CLOUD_LOCATION}/publishers/google";
    /// OpenRouter, by Chat Completions.
    OpenRouter = "openrouter", &["OPENROUTER_API_KEY"], &["OPENROUTER_BASE_URL"], "";
    /// Groq, by Chat Completions.
    Groq = "groq", &["GROQ_API_KEY"], &["GROQ_BASE_URL"], "";
    /// Mistral, by Chat Completions.
    Mistral = "mistral", &["MISTRAL_API_KEY"], &["MISTRAL_BASE_URL"], "";
    /// DeepSeek, by Chat Completions.
    DeepSeek = "deepseek", &["DEEPSEEK_API_KEY"], &["DEEPSEEK_BASE_URL"], "";
    /// xAI, by Chat Completions.
    XAi = "xai", &["XAI_API_KEY"], &["XAI_BASE_URL"], "";
    /// Together, by Chat Completions.
    Together = "together", &["TOGETHER_API_KEY"], &["TOGETHER_BASE_URL"], "";
}

impl Provider {
    /// The word before the colon of a name, such as `openai`.
    pub fn as_str(self) -> &'static str {
        self.row().word
    }

    /// The environment variables that may hold its key, the first that is set counts; none for servers that
    /// need no key.
    pub fn key_variables(self) -> &'static [&'static str] {
        self.row().keys
    }

    /// The environment variables that may hold its address.
    pub fn url_variables(self) -> &'static [&'static str] {
        self.row().urls
    }

    /// Whether the provider refuses requests without a key.
    pub fn requires_key(self) -> bool {
        !self.key_variables().is_empty()
    }

    /// The address that is made of the variables in its braces; `None` if it has none.
    fn address(self, variable: impl Fn(&str) -> Option<String>) -> Result<Option<String>> {
        let mut pieces = self.row().address.split(['{', '}']).enumerate();
        let address = pieces.try_fold(String::new(), |address, (at, piece)| match at % 2 {
            0 => Ok(address + piece),
            _ => variable(piece).map(|value| address + &value).ok_or_else(|| {
                let message = format!("the address of {self} depends on {piece}: set it, or `base_url(..)`");
                Error::new(Code::Config, message)
            }),
        })?;
        // The host of Vertex's global location has no region.
        Ok(Some(address.replace("//global-", "//")).filter(|address| !address.is_empty()))
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
/// let error = "acme:large".parse::<ModelName>().unwrap_err();
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
        let variable = |name: &&str| from_env(name);
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
#[derive(Clone, Debug)]
#[must_use]
pub struct NamedModel {
    name: ModelName,
    key: Option<KeySource>,
    url: Option<String>,
    timeout: Option<Duration>,
    max_retries: Option<u32>,
    allows_plain_http: bool,
}

/// The same settings on the builder of each wire.
macro_rules! build {
    ($settings:ident, $builder:expr) => {{
        let mut builder = $builder.model($settings.name.model);
        if $settings.key.is_some() {
            builder.connection().key = $settings.key;
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
        self.key = Some(KeySource::Fixed(key.into()));
        self
    }

    /// Sets a source of keys, which is asked before each request. For Azure, they are tokens of Entra.
    pub fn key_provider(mut self, provider: impl KeyProvider + 'static) -> Self {
        self.key = Some(KeySource::Provider(Arc::new(provider)));
        self
    }

    /// Sets the server's address. An address that depends on a region or a project is made of
    /// `AWS_REGION`, or of `GOOGLE_CLOUD_PROJECT` and `GOOGLE_CLOUD_LOCATION`, if none is set.
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
    pub fn build(mut self) -> Result<Arc<dyn ChatModel>> {
        let provider = self.name.provider;
        if self.key.is_none() && provider.requires_key() {
            let variables = provider.key_variables().join(" or ");
            let message = format!("`{}` needs a key: set {variables}, or `.api_key(..)`", self.name);
            return Err(Error::new(Code::Config, message));
        }
        if self.url.is_none() {
            self.url = provider.address(from_env)?;
        }
        let compatible = |profile: fn() -> Profile| OpenAiChatModel::builder().profile(profile());
        match provider {
            Provider::Anthropic => build!(self, AnthropicModel::builder()),
            Provider::BedrockAnthropic => build!(self, AnthropicModel::builder().bedrock()),
            Provider::OpenAi => build!(self, OpenAiModel::builder()),
            Provider::Gemini => build!(self, GeminiModel::builder()),
            Provider::Vertex => build!(self, GeminiModel::builder().vertex_at("")),
            Provider::Azure if matches!(self.key, Some(KeySource::Provider(_))) => {
                build!(self, compatible(Profile::azure).authentication(Authentication::Bearer))
            }
            Provider::OpenAiChat => build!(self, compatible(Profile::openai)),
            Provider::Ollama => build!(self, compatible(Profile::ollama)),
            Provider::LlamaCpp => build!(self, compatible(Profile::llama_cpp)),
            Provider::Vllm => build!(self, compatible(Profile::vllm)),
            Provider::Azure => build!(self, compatible(Profile::azure)),
            Provider::Bedrock => build!(self, compatible(Profile::bedrock)),
            Provider::OpenRouter => build!(self, compatible(Profile::openrouter)),
            Provider::Groq => build!(self, compatible(Profile::groq)),
            Provider::Mistral => build!(self, compatible(Profile::mistral)),
            Provider::DeepSeek => build!(self, compatible(Profile::deepseek)),
            Provider::XAi => build!(self, compatible(Profile::xai)),
            Provider::Together => build!(self, compatible(Profile::together)),
        }
    }
}

/// The value of an environment variable, unless it is blank.
fn from_env(name: &str) -> Option<String> {
    variable(|name| std::env::var(name).ok(), name)
}
