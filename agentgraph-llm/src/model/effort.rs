//! How long a model thinks.

/// How long a model thinks before it answers. A provider that has no such level takes the next one.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum Effort {
    /// As short as the model can.
    Minimal,
    /// Short.
    Low,
    /// Medium.
    Medium,
    /// Long.
    High,
    /// The provider's own word for a level.
    Other(String),
}

impl Effort {
    /// The level as one word.
    ///
    /// ```
    /// assert_eq!(agentgraph_llm::Effort::Medium.as_str(), "medium");
    /// ```
    pub fn as_str(&self) -> &str {
        match self {
            Effort::Minimal => "minimal",
            Effort::Low => "low",
            Effort::Medium => "medium",
            Effort::High => "high",
            Effort::Other(word) => word,
        }
    }
}
