//! Token counts in Gemini's sense, where thoughts are not part of the candidates.

use crate::json::{Object, RawJson};
use crate::model::Usage;

/// The counts of a response, which a stream repeats.
#[derive(Clone, Debug, Default)]
pub(super) struct WireUsage(Object);

impl WireUsage {
    pub(super) fn update(&mut self, counts: Object) {
        self.0.update_counts(counts);
    }

    pub(super) fn raw(&self) -> Option<RawJson> {
        (!self.0.is_empty()).then(|| self.0.to_json())
    }

    pub(super) fn normalised(&self) -> Usage {
        let count = |name| self.0.get_as::<u64>(name).unwrap_or_default();
        let thoughts = count("thoughtsTokenCount");
        // The results of tools that the server ran are a second prompt.
        let input = count("promptTokenCount").saturating_add(count("toolUsePromptTokenCount"));
        let mut usage = Usage::new(input, count("candidatesTokenCount").saturating_add(thoughts));
        usage.input_cached_read = count("cachedContentTokenCount");
        usage.output_reasoning = thoughts;
        usage
    }
}
