//! The usage of both wires, which name its counts differently.

use crate::json::{Object, RawJson};
use crate::model::Usage;

/// Reads the counts of either wire; absent ones are 0. Input includes cached tokens, output includes
/// thinking.
pub(super) fn normalised(raw: &RawJson) -> Usage {
    let fields = Object::parse(raw.get()).unwrap_or_default();
    let either = |one: &str, other: &str| count(&fields, one).or_else(|| count(&fields, other)).unwrap_or(0);
    let mut usage =
        Usage::new(either("prompt_tokens", "input_tokens"), either("completion_tokens", "output_tokens"));
    let input = details(&fields, "prompt_tokens_details", "input_tokens_details");
    let output = details(&fields, "completion_tokens_details", "output_tokens_details");
    let cached = count(&input, "cached_tokens").or_else(|| count(&fields, "prompt_cache_hit_tokens"));
    usage.input_cached_read = cached.unwrap_or(0);
    usage.input_cache_write = count(&input, "cache_write_tokens").unwrap_or(0);
    usage.output_reasoning = count(&output, "reasoning_tokens").unwrap_or(0);
    // Some servers, such as xAI's, count thinking beside the output, and only their total has it.
    let with_reasoning = usage.output_total.saturating_add(usage.output_reasoning);
    if count(&fields, "total_tokens") == Some(usage.input_total.saturating_add(with_reasoning)) {
        usage.output_total = with_reasoning;
    }
    usage
}

fn details(fields: &Object, one: &str, other: &str) -> Object {
    fields.get_as(one).or_else(|| fields.get_as(other)).unwrap_or_default()
}

fn count(fields: &Object, name: &str) -> Option<u64> {
    fields.get_as(name)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn usage(text: &str) -> [u64; 5] {
        let usage = normalised(&RawJson::parse_text(text).unwrap());
        let Usage {
            input_total, input_cached_read, input_cache_write, output_total, output_reasoning, ..
        } = usage;
        [input_total, input_cached_read, input_cache_write, output_total, output_reasoning]
    }

    #[test]
    fn both_wires_give_the_same_numbers_for_the_same_call() {
        let chat = r#"{"prompt_tokens":100,"completion_tokens":20,"total_tokens":120,
            "prompt_tokens_details":{"cached_tokens":60,"cache_write_tokens":30},
            "completion_tokens_details":{"reasoning_tokens":5}}"#;
        let responses = r#"{"input_tokens":100,"output_tokens":20,"total_tokens":120,
            "input_tokens_details":{"cached_tokens":60,"cache_write_tokens":30},
            "output_tokens_details":{"reasoning_tokens":5}}"#;
        assert_eq!(usage(chat), [100, 60, 30, 20, 5]);
        assert_eq!(usage(responses), usage(chat));
    }

    #[test]
    fn thinking_beside_the_output_is_part_of_it() {
        let text = r#"{"prompt_tokens":10,"completion_tokens":7,"total_tokens":37,
            "completion_tokens_details":{"reasoning_tokens":20}}"#;
        assert_eq!(usage(text), [10, 0, 0, 27, 20]);
    }

    #[test]
    fn missing_and_null_counts_are_zero() {
        for text in ["{}", "null", r#"{"prompt_tokens":null,"prompt_tokens_details":null}"#] {
            assert_eq!(usage(text), [0; 5], "{text}");
        }
    }
}
