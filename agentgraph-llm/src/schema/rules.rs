//! The keywords that each profile accepts.

use super::SchemaProfile;

/// What becomes of a keyword.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Rule {
    /// It is sent.
    Keep,
    /// It is told in the description, because the provider refuses or ignores it.
    Describe,
    /// It does not change which values are valid, and is left out.
    Drop,
    /// It changes which values are valid in a way that no description replaces.
    Obstacle,
}

/// Keywords that do not change which values are valid.
pub(super) fn is_annotation(keyword: &str) -> bool {
    matches!(
        keyword,
        "title"
            | "description"
            | "default"
            | "examples"
            | "deprecated"
            | "readOnly"
            | "writeOnly"
            | "$comment"
            | "$schema"
            | "$id"
            | "$anchor"
            | "$defs"
            | "definitions"
            | "contentEncoding"
            | "contentMediaType"
    )
}

/// The rule of a keyword whose value is not a schema and needs no further thought.
pub(super) fn rule(profile: SchemaProfile, keyword: &str) -> Rule {
    let (is_open_ai, is_gemini) = (profile == SchemaProfile::OpenAi, profile == SchemaProfile::Gemini);
    match keyword {
        "title" | "description" => Rule::Keep,
        "default" | "examples" => Rule::Describe,
        "minimum" | "maximum" | "minItems" | "maxItems" => keep_if(is_open_ai || is_gemini),
        "exclusiveMinimum" | "exclusiveMaximum" | "multipleOf" | "pattern" => keep_if(is_open_ai),
        "minLength" | "maxLength" | "uniqueItems" | "minProperties" | "maxProperties" | "minContains"
        | "maxContains" => Rule::Describe,
        "not"
        | "if"
        | "then"
        | "else"
        | "dependentRequired"
        | "dependentSchemas"
        | "patternProperties"
        | "propertyNames"
        | "contains"
        | "unevaluatedItems"
        | "unevaluatedProperties"
        | "$dynamicRef"
            if is_gemini =>
        {
            Rule::Describe
        }
        "not"
        | "if"
        | "then"
        | "else"
        | "dependentRequired"
        | "dependentSchemas"
        | "patternProperties"
        | "propertyNames"
        | "contains"
        | "unevaluatedItems"
        | "unevaluatedProperties"
        | "$dynamicRef" => Rule::Obstacle,
        _ => Rule::Drop,
    }
}

fn keep_if(accepted: bool) -> Rule {
    if accepted { Rule::Keep } else { Rule::Describe }
}

/// The rule of a value of `format`.
pub(super) fn format_rule(profile: SchemaProfile, format: &str) -> Rule {
    match format {
        "date-time" | "time" | "date" => Rule::Keep,
        "duration" | "email" | "hostname" | "ipv4" | "ipv6" | "uuid" if profile != SchemaProfile::Gemini => {
            Rule::Keep
        }
        "uri" if profile == SchemaProfile::Anthropic => Rule::Keep,
        // Names of Rust types: the bounds that they stand for have keywords of their own.
        "int" | "int8" | "int16" | "int32" | "int64" | "int128" | "uint" | "uint8" | "uint16" | "uint32"
        | "uint64" | "uint128" | "float" | "double" => Rule::Drop,
        _ => Rule::Describe,
    }
}
