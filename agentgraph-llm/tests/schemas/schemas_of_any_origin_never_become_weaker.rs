//! Schemas that no Rust type has, as MCP servers send them: whatever a strict schema accepts, the original
//! accepts too, except for the rules that are reported as unenforced.

use agentgraph_llm::schema::SchemaProfile;
use proptest::prelude::*;
use serde_json::{Map, Value, json};

use super::serialised_values_are_accepted_and_mutated_ones_refused::Dialect;

fn leaf() -> impl Strategy<Value = Value> {
    prop_oneof![
        Just(json!({})),
        Just(json!(true)),
        Just(json!({"type": "string", "maxLength": 1})),
        Just(json!({"type": "string", "pattern": "^a"})),
        Just(json!({"type": ["integer", "null"], "minimum": 0})),
        Just(json!({"type": "number", "exclusiveMaximum": 3, "default": 1})),
        Just(json!({"type": "boolean"})),
        Just(json!({"enum": ["a", 1, null]})),
        Just(json!({"const": "a"})),
        Just(json!({"const": true, "type": "boolean"})),
        Just(json!({"$ref": "#/$defs/A"})),
        Just(json!({"$ref": "#/$defs/B", "description": "said"})),
        Just(json!({"$ref": "#"})),
        Just(json!({"$ref": "#/$defs/A", "required": ["a"]})),
    ]
}

fn object(fields: BoxedStrategy<Value>) -> impl Strategy<Value = Value> {
    let rest = prop_oneof![Just(None), Just(Some(json!(false))), Just(Some(json!(true)))];
    let names = prop::sample::subsequence(vec!["a", "b"], 0..=2);
    let properties = prop::collection::btree_map("[ab]", fields, 0..=2);
    let union = prop_oneof![3 => Just(None), 1 => Just(Some("anyOf")), 1 => Just(Some("oneOf"))];
    (properties, names, rest, union).prop_map(|(properties, required, rest, union)| {
        let mut schema = Map::new();
        schema.insert("type".to_owned(), json!("object"));
        schema.insert("properties".to_owned(), json!(properties));
        schema.insert("required".to_owned(), json!(required));
        if let Some(rest) = rest {
            schema.insert("additionalProperties".to_owned(), rest);
        }
        if let Some(union) = union {
            let tagged = |tag: &str| json!({"properties": {"b": {"const": tag}}, "required": ["b"]});
            schema.insert(union.to_owned(), json!([tagged("x"), tagged("y"), {"required": ["a"]}]));
        }
        Value::Object(schema)
    })
}

fn schema() -> BoxedStrategy<Value> {
    leaf()
        .prop_recursive(3, 16, 3, |inner| {
            let several = prop::collection::vec(inner.clone(), 1..=3);
            let bounds = (0_u8..3, 0_u8..3);
            prop_oneof![
                object(inner.clone().boxed()),
                several.clone().prop_map(|all| json!({ "anyOf": all })),
                several.clone().prop_map(|all| json!({ "oneOf": all, "title": "One" })),
                several.clone().prop_map(|all| json!({ "allOf": all })),
                several.prop_map(|all| json!({"type": "array", "prefixItems": all, "minItems": all.len(), "maxItems": all.len()})),
                (inner.clone(), bounds).prop_map(|(items, (min, max))| {
                    json!({"type": "array", "items": items, "minItems": min, "maxItems": max, "uniqueItems": true})
                }),
                (inner.clone(), inner).prop_map(|(one, other)| json!({"type": "object", "properties": {"a": one},
                    "allOf": [{"properties": {"a": other}, "required": ["a"]}]})),
            ]
        })
        .boxed()
}

fn value() -> BoxedStrategy<Value> {
    let leaf = prop_oneof![
        Just(json!(null)),
        Just(json!(true)),
        Just(json!(false)),
        Just(json!(-1)),
        Just(json!(1)),
        Just(json!(4)),
        Just(json!(1.5)),
        Just(json!("a")),
        Just(json!("x")),
        Just(json!("ab")),
    ];
    leaf.prop_recursive(3, 12, 3, |inner| {
        prop_oneof![
            prop::collection::vec(inner.clone(), 0..3).prop_map(|all| json!(all)),
            prop::collection::btree_map("[abc]", inner, 0..3).prop_map(|all| json!(all)),
        ]
    })
    .boxed()
}

proptest! {
    #![proptest_config(ProptestConfig { failure_persistence: None, ..ProptestConfig::with_cases(160) })]

    #[test]
    fn what_a_strict_schema_accepts_the_original_accepts(
        root in schema(),
        (a, b) in (schema(), schema()),
        values in prop::collection::vec(value(), 1..24),
    ) {
        let mut whole = if root.is_object() { root } else { json!({}) };
        whole["$defs"] = json!({"A": a, "B": b});
        // A reference that leads only to itself has no meaning.
        prop_assume!(jsonschema::validator_for(&whole).is_ok());
        for profile in [SchemaProfile::OpenAi, SchemaProfile::Anthropic, SchemaProfile::Gemini] {
            let dialect = Dialect::new(profile, &whole);
            if !dialect.transformed.is_strict || is_endless(&whole) {
                continue;
            }
            for value in &values {
                prop_assert!(
                    !dialect.accepts(value) || dialect.original.is_valid(value),
                    "{profile:?} accepts {value}\n{whole:#}\n{:#}\n{:?}",
                    dialect.transformed.schema, dialect.transformed.unenforced
                );
            }
        }
    }
}

/// Whether a reference may lead to itself without a step into the value.
fn is_endless(schema: &Value) -> bool {
    fn leads(schema: &Value, whole: &Value, seen: &mut Vec<String>) -> bool {
        if let Some(target) = schema.get("$ref").and_then(Value::as_str) {
            if seen.iter().any(|known| known == target) {
                return true;
            }
            seen.push(target.to_owned());
            let found = whole.pointer(target.trim_start_matches('#')).unwrap();
            let leads = leads(found, whole, seen);
            seen.pop();
            if leads {
                return true;
            }
        }
        ["anyOf", "oneOf", "allOf"].iter().any(|keyword| {
            let parts = schema.get(keyword).and_then(Value::as_array);
            parts.is_some_and(|parts| parts.iter().any(|part| leads(part, whole, seen)))
        })
    }
    fn any(schema: &Value, whole: &Value) -> bool {
        leads(schema, whole, &mut Vec::new())
            || match schema {
                Value::Object(fields) => fields.values().any(|value| any(value, whole)),
                Value::Array(items) => items.iter().any(|item| any(item, whole)),
                _ => false,
            }
    }
    any(schema, schema)
}
