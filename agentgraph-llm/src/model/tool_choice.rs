//! Whether the model may or must call tools.

/// Whether the model may or must call tools, and how many at once.
///
/// ```
/// use agentgraph_llm::{ToolChoice, ToolMode};
///
/// let choice = ToolChoice::tool("search").one_at_a_time();
/// assert_eq!(choice.mode, ToolMode::Tool("search".to_owned()));
/// assert_eq!(choice.parallel, Some(false));
/// assert_eq!(ToolChoice::default(), ToolChoice::auto());
/// ```
#[derive(Clone, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct ToolChoice {
    /// Whether the model may or must call tools.
    pub mode: ToolMode,
    /// Whether one message may have several calls; `None` for the provider's default.
    pub parallel: Option<bool>,
}

/// Whether the model may or must call tools.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub enum ToolMode {
    /// The model decides.
    #[default]
    Auto,
    /// The model must call any tool.
    Any,
    /// The model must call this tool.
    Tool(String),
    /// The model must not call tools.
    None,
}

impl ToolChoice {
    /// The model decides.
    pub fn auto() -> Self {
        ToolMode::Auto.into()
    }

    /// The model must call any tool.
    pub fn any() -> Self {
        ToolMode::Any.into()
    }

    /// The model must call this tool.
    pub fn tool(name: impl Into<String>) -> Self {
        ToolMode::Tool(name.into()).into()
    }

    /// The model must not call tools.
    pub fn none() -> Self {
        ToolMode::None.into()
    }

    /// A message has one call at most.
    pub fn one_at_a_time(mut self) -> Self {
        self.parallel = Some(false);
        self
    }

    /// Whether the model must call a tool.
    pub fn is_forced(&self) -> bool {
        matches!(self.mode, ToolMode::Any | ToolMode::Tool(_))
    }
}

impl From<ToolMode> for ToolChoice {
    fn from(mode: ToolMode) -> Self {
        ToolChoice { mode, parallel: None }
    }
}
