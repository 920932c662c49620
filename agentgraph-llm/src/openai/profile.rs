//! What a server that speaks Chat Completions does in its own way.

use std::borrow::Cow;

use super::PROVIDER;

/// What a server that speaks Chat Completions does in its own way. Take the one next to your server and
/// change its fields.
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
    /// The server's address, if none is set.
    pub base_url: Cow<'static, str>,
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
    /// The field of an assistant message in which the server takes its thinking back; `None` to leave it out.
    pub thinking_field: Option<Cow<'static, str>>,
    /// The path below the base URL by which the server counts the tokens of a request; `None` to estimate.
    pub count_path: Option<Cow<'static, str>>,
    /// Whether the server makes answers follow a JSON Schema.
    pub structured_output: bool,
    /// Whether a strict schema has to be in OpenAI's subset: every field required, no others allowed.
    pub strict_subset: bool,
}

impl Profile {
    /// OpenAI itself.
    pub fn openai() -> Self {
        Profile {
            provider: PROVIDER.into(),
            base_url: "https://api.openai.com/v1".into(),
            requires_key: true,
            max_tokens_field: "max_completion_tokens".into(),
            system_role: "developer".into(),
            takes_stream_options: true,
            ends_without_done: false,
            further_ends: Vec::new(),
            done_is_an_end: false,
            names_forced_tool: true,
            requires_object_arguments: false,
            thinking_field: None,
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

    /// Ollama: it ignores `tool_choice`, and takes thinking back as `reasoning`.
    pub fn ollama() -> Self {
        Profile {
            names_forced_tool: false,
            thinking_field: Some("reasoning".into()),
            ..Profile::compatible("ollama", "http://localhost:11434/v1")
        }
    }

    /// The `llama-server` of llama.cpp: a forced tool has no name, and tokens are counted.
    pub fn llama_cpp() -> Self {
        Profile {
            names_forced_tool: false,
            count_path: Some("chat/completions/input_tokens".into()),
            ..Profile::compatible("llama_cpp", "http://localhost:8080/v1")
        }
    }

    /// vLLM.
    pub fn vllm() -> Self {
        Profile::compatible("vllm", "http://localhost:8000/v1")
    }
}

impl Default for Profile {
    fn default() -> Self {
        Profile::openai()
    }
}
