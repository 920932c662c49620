//! What a server that speaks Chat Completions does in its own way.

use std::borrow::Cow;

use super::PROVIDER;

/// What a server that speaks Chat Completions does in its own way. Take the one next to your server and
/// change its fields.
///
/// The servers of the hosts were not tried live: their rows are from their documentation, and their shapes
/// are tests against a server of our own.
///
/// ```
/// use agentgraph_llm::{ChatRequest, openai};
///
/// let mut profile = openai::Profile::vllm();
/// profile.max_tokens_field = "max_completion_tokens".into();
/// let body = openai::chat::encode("qwen", &ChatRequest::user("Hi").with_max_tokens(9), &profile, false);
/// assert!(body.get().contains(r#""max_completion_tokens":9"#));
/// ```
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Profile {
    /// The provider's name in [`ModelInfo`](crate::ModelInfo) and in traces.
    pub provider: Cow<'static, str>,
    /// The server's address, if none is set; empty if it has none of its own.
    pub base_url: Cow<'static, str>,
    /// The path that is added to an address that does not end with a version.
    pub version: Cow<'static, str>,
    /// The header that has the key; `None` for `Authorization: Bearer <key>`.
    pub key_header: Option<Cow<'static, str>>,
    /// Whether requests without a key are refused.
    pub requires_key: bool,
    /// The field for the limit of output tokens: `max_completion_tokens` or `max_tokens`.
    pub max_tokens_field: Cow<'static, str>,
    /// The role of instructions: `developer` or `system`.
    pub system_role: Cow<'static, str>,
    /// Whether the server takes `stream_options.include_usage`. Without it, many report no usage for a
    /// stream.
    pub takes_stream_options: bool,
    /// Whether a stream may end without `[DONE]`. It still needs a `finish_reason`; without one it was cut.
    pub ends_without_done: bool,
    /// Further values of `finish_reason` that are the end of a message: see
    /// [`also_ends_with`](Self::also_ends_with).
    pub further_ends: Vec<Cow<'static, str>>,
    /// Whether `[DONE]` without any `finish_reason` is the end of a message. Most servers also write it after
    /// a failure.
    pub done_is_an_end: bool,
    /// Whether `tool_choice` may name one tool. Without it, that tool is sent alone, and a call is required.
    pub names_forced_tool: bool,
    /// Whether the server refuses a conversation with arguments that are not a JSON object. With it, such
    /// arguments of a call are sent as `{"INVALID_JSON": "..."}`, without it as the model wrote them.
    pub requires_object_arguments: bool,
    /// The number of letters and digits that an id of a call must have. Other ids, such as those of another
    /// provider, are sent as a hash of that length.
    pub call_id_length: Option<usize>,
    /// The field of an assistant message in which the server takes its thinking back; `None` to leave it out.
    pub thinking_field: Option<Cow<'static, str>>,
    /// Whether a message with calls must have that field, even if it is empty.
    pub requires_thinking_with_calls: bool,
    /// The path below the base URL by which the server counts the tokens of a request; `None` to estimate.
    pub count_path: Option<Cow<'static, str>>,
    /// Whether the server makes answers follow a JSON Schema.
    pub structured_output: bool,
    /// Whether a strict schema has to be in OpenAI's subset: every field required, no others allowed.
    pub strict_subset: bool,
}

/// The table of servers. Each row is compatible in the usual degree but for the fields that it names.
macro_rules! servers {
    ($($(#[$doc:meta])* $server:ident: $provider:literal, $base_url:literal, { $($field:ident: $value:expr),* };)*) => {
        impl Profile {
            $($(#[$doc])*
            pub fn $server() -> Self {
                Profile { $($field: $value,)* ..Profile::compatible($provider, $base_url) }
            })*
        }
    };
}

servers! {
    /// Ollama: it ignores `tool_choice`, and takes thinking back as `reasoning`.
    ///
    /// Its compatible wire takes neither `num_ctx` nor `keep_alive`: set `OLLAMA_CONTEXT_LENGTH` and
    /// `OLLAMA_KEEP_ALIVE` for the server, or `PARAMETER num_ctx` in a Modelfile.
    ollama: "ollama", "http://localhost:11434/v1",
        { names_forced_tool: false, thinking_field: Some("reasoning".into()) };
    /// The `llama-server` of llama.cpp: a forced tool has no name, and tokens are counted.
    llama_cpp: "llama_cpp", "http://localhost:8080/v1",
        { names_forced_tool: false, count_path: Some("chat/completions/input_tokens".into()) };
    /// vLLM.
    vllm: "vllm", "http://localhost:8000/v1", {};
    /// Azure OpenAI. The address is that of the resource, such as `https://NAME.openai.azure.com`, or of one
    /// deployment with its `?api-version=..`. The model is the name of the deployment.
    ///
    /// The key is sent as `api-key`. For a token of Entra, set
    /// [`Authentication::Bearer`](crate::Authentication) and a
    /// [source of keys](super::OpenAiBuilder::key_provider):
    ///
    /// ```
    /// use agentgraph_llm::openai::{OpenAiChatModel, Profile};
    /// use agentgraph_llm::{Authentication, SecretString};
    ///
    /// let token = || async { Ok(SecretString::from("a token of the program's credential")) };
    /// let azure = OpenAiChatModel::builder().profile(Profile::azure()).base_url("https://name.openai.azure.com");
    /// let model = azure.authentication(Authentication::Bearer).key_provider(token).model("my-deployment").build()?;
    /// assert!(format!("{model:?}").contains("https://name.openai.azure.com/openai/v1"));
    /// # Ok::<(), agentgraph_llm::Error>(())
    /// ```
    azure: "azure.ai.openai", "", {
        version: "openai/v1".into(), key_header: Some("api-key".into()), requires_key: true,
        max_tokens_field: "max_completion_tokens".into(), system_role: "developer".into(), strict_subset: true,
        thinking_field: None
    };
    /// Amazon Bedrock, by its endpoint in the form of OpenAI and with a key of Bedrock. The address is
    /// that of a region, such as `https://bedrock-runtime.us-east-1.amazonaws.com`. Its Claude models are
    /// those of [`AnthropicModelBuilder::bedrock`](crate::AnthropicModelBuilder::bedrock).
    bedrock: "aws.bedrock", "",
        { version: "openai/v1".into(), requires_key: true, structured_output: false, thinking_field: None };
    /// OpenRouter. What a model can do depends on the model.
    openrouter: "openrouter", "https://openrouter.ai/api/v1",
        { requires_key: true, structured_output: false, thinking_field: Some("reasoning".into()) };
    /// Groq: it refuses thinking that is sent back, and only some of its models follow a schema.
    groq: "groq", "https://api.groq.com/openai/v1",
        { requires_key: true, max_tokens_field: "max_completion_tokens".into(), structured_output: false, thinking_field: None };
    /// Mistral: it refuses fields that it does not know and ids of calls that are not nine letters and
    /// digits.
    mistral: "mistral_ai", "https://api.mistral.ai/v1",
        { requires_key: true, takes_stream_options: false, thinking_field: None, call_id_length: Some(9) };
    /// DeepSeek: it wants its thinking back beside calls, and does not follow schemas.
    deepseek: "deepseek", "https://api.deepseek.com/v1",
        { requires_key: true, structured_output: false, requires_thinking_with_calls: true };
    /// xAI.
    xai: "x_ai", "https://api.x.ai/v1", { requires_key: true };
    /// Together: some of its models end with `eos`, and some follow a schema.
    together: "together", "https://api.together.xyz/v1",
        { requires_key: true, structured_output: false, thinking_field: Some("reasoning".into()), further_ends: vec!["eos".into()] };
}

impl Profile {
    /// OpenAI itself.
    pub fn openai() -> Self {
        Profile {
            provider: PROVIDER.into(),
            base_url: "https://api.openai.com/v1".into(),
            version: "v1".into(),
            key_header: None,
            requires_key: true,
            max_tokens_field: "max_completion_tokens".into(),
            system_role: "developer".into(),
            takes_stream_options: true,
            ends_without_done: false,
            further_ends: Vec::new(),
            done_is_an_end: false,
            names_forced_tool: true,
            requires_object_arguments: false,
            call_id_length: None,
            thinking_field: None,
            requires_thinking_with_calls: false,
            count_path: None,
            structured_output: true,
            strict_subset: true,
        }
    }

    /// A server that is compatible in the usual degree. The base of the others.
    fn compatible(provider: &'static str, base_url: &'static str) -> Self {
        Profile {
            provider: provider.into(),
            base_url: base_url.into(),
            requires_key: false,
            max_tokens_field: "max_tokens".into(),
            system_role: "system".into(),
            ends_without_done: true,
            requires_object_arguments: true,
            thinking_field: Some("reasoning_content".into()),
            strict_subset: false,
            ..Profile::openai()
        }
    }

    /// Takes a further value of `finish_reason` as the end of a message. Without it, a value that is not
    /// known is an error, because the message may be cut.
    ///
    /// ```
    /// use agentgraph_llm::{ChatEvent, openai};
    ///
    /// let mut decoder = openai::chat::StreamDecoder::new(&openai::Profile::vllm().also_ends_with("eos"));
    /// decoder.push(b"data: {\"choices\":[{\"delta\":{\"content\":\"Hi\"},\"finish_reason\":\"eos\"}]}\n\n");
    /// decoder.end();
    /// assert!(matches!(decoder.next_event(), Some(Ok(ChatEvent::TextDelta { .. }))));
    /// assert!(matches!(decoder.next_event(), Some(Ok(ChatEvent::Finished(_)))));
    /// ```
    pub fn also_ends_with(mut self, reason: impl Into<Cow<'static, str>>) -> Self {
        self.further_ends.push(reason.into());
        self
    }
}

impl Default for Profile {
    fn default() -> Self {
        Profile::openai()
    }
}
