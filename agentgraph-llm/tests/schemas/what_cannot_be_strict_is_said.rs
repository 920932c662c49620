//! A schema that a dialect cannot enforce is sent as it is, and the report says why.

use std::collections::BTreeMap;

use agentgraph_llm::schema::{SchemaProfile, transform, transform_arguments};
use schemars::{JsonSchema, schema_for};
use serde_json::{Value, json};

use super::types::{External, Tree};

fn obstacles(schema: Value, profile: SchemaProfile) -> Vec<String> {
    transform(&schema, profile).obstacles.iter().map(ToString::to_string).collect()
}

fn open_ai(schema: Value) -> Vec<String> {
    obstacles(schema, SchemaProfile::OpenAi)
}

#[test]
fn maps_values_of_any_type_and_tuples_are_obstacles() {
    let map = schema_for!(BTreeMap<String, u8>).to_value();
    assert_eq!(open_ai(map.clone()), ["at the root: an object with free keys"]);
    assert_eq!(obstacles(map.clone(), SchemaProfile::Anthropic), ["at the root: an object with free keys"]);
    assert_eq!(obstacles(map, SchemaProfile::Gemini), [""; 0]);
    assert_eq!(open_ai(schema_for!(Vec<Value>).to_value()), ["at /items: a value of any type"]);
    assert_eq!(
        open_ai(schema_for!((u8, String)).to_value()),
        ["at the root: a tuple with elements of different types"]
    );
}

#[test]
fn the_schema_is_then_sent_unchanged() {
    let map = json!({"type": "object", "additionalProperties": {"type": "integer", "minimum": 3}});
    let transformed = transform(&map, SchemaProfile::OpenAi);
    assert!(!transformed.is_strict && transformed.unenforced.is_empty());
    assert_eq!(transformed.schema, map);
}

#[test]
fn a_property_that_may_be_absent_but_not_null_is_an_obstacle_for_open_ai_only() {
    let schema = json!({"type": "object", "properties": {"filter": {"type": "string"}}});
    assert_eq!(
        open_ai(schema.clone()),
        ["at /properties/filter: a property that may be absent: make it nullable, or give it a default"]
    );
    assert_eq!(obstacles(schema, SchemaProfile::Anthropic), [""; 0]);
    let with_default =
        json!({"type": "object", "properties": {"filter": {"type": "string", "default": "all"}}});
    let transformed = transform(&with_default, SchemaProfile::OpenAi);
    assert_eq!(transformed.schema["required"], json!(["filter"]));
    assert_eq!(transformed.schema["properties"]["filter"]["description"], "(default: all)");
}

#[test]
fn recursion_is_strict_for_open_ai_an_obstacle_for_anthropic_and_optional_for_gemini() {
    let tree = schema_for!(Tree).to_value();
    assert_eq!(open_ai(tree.clone()), [""; 0]);
    assert_eq!(
        obstacles(tree.clone(), SchemaProfile::Anthropic),
        ["at the root: a type that contains itself"]
    );
    let gemini = transform(&tree, SchemaProfile::Gemini);
    assert_eq!(gemini.schema["required"], json!(["label"]));
    assert_eq!(gemini.unenforced[0].keyword, "required");
    let endless = json!({"$ref": "#/$defs/List", "$defs": {"List": {"type": "array", "items": {"$ref": "#/$defs/List"}}}});
    assert_eq!(obstacles(endless, SchemaProfile::Gemini), ["at /$defs/List: a type that contains itself"]);
}

#[test]
fn keywords_with_schemas_of_their_own_are_obstacles() {
    for keyword in ["not", "if", "patternProperties", "propertyNames", "contains", "dependentSchemas"] {
        let schema = json!({"type": "object", "properties": {}, keyword: {}});
        for profile in [SchemaProfile::OpenAi, SchemaProfile::Anthropic] {
            assert_eq!(obstacles(schema.clone(), profile), [format!("at the root: the keyword `{keyword}`")]);
        }
        let gemini = transform(&schema, SchemaProfile::Gemini);
        assert_eq!((gemini.is_strict, gemini.unenforced[0].keyword.as_str()), (true, keyword));
    }
}

#[test]
fn rules_that_contradict_each_other_are_obstacles() {
    for parts in [
        json!([{"enum": ["a"]}, {"enum": ["b"]}]),
        json!([{"type": "string"}, {"type": "object", "properties": {}}]),
        json!([{"type": "string", "pattern": "a"}, {"type": "string", "pattern": "b"}]),
    ] {
        assert_eq!(
            open_ai(json!({ "allOf": parts })),
            ["at the root: rules that cannot be written as one schema"]
        );
    }
}

#[test]
fn broken_and_endless_references_are_obstacles_and_end() {
    let at = |schema: Value| open_ai(schema).join("; ");
    assert_eq!(
        at(json!({"type": "object", "properties": {"a": {"$ref": "#/$defs/None"}}, "required": ["a"]})),
        "at /$defs/None: a `$ref` to `#/$defs/None`, which is not there"
    );
    assert!(at(json!({"$ref": "https://example.com/schema"})).contains("which is not there"));
    assert!(at(json!({"$ref": "#"})).contains("which is not there"));
    assert!(!at(json!({"$ref": "#/$defs/A", "$defs": {"A": {"$ref": "#/$defs/A"}}})).is_empty());
    assert!(
        !at(json!({"allOf": [{"$ref": "#/$defs/A"}], "$defs": {"A": {"allOf": [{"$ref": "#/$defs/A"}]}}}))
            .is_empty()
    );
}

#[test]
fn references_that_multiply_end() {
    let mut definitions = serde_json::Map::new();
    for level in 0..60 {
        let next = json!({"$ref": format!("#/$defs/L{}", level + 1), "description": "inlined"});
        let fields = json!({"type": "object", "properties": {"a": next, "b": next}, "required": ["a", "b"]});
        definitions.insert(format!("L{level}"), fields);
    }
    definitions.insert("L60".to_owned(), json!({"type": "string"}));
    let found = open_ai(json!({"$ref": "#/$defs/L0", "$defs": definitions}));
    assert!(found[0].contains("too many nested references"), "{found:?}");
}

#[test]
fn arguments_of_tools_are_never_wrapped() {
    let union = schema_for!(External).to_value();
    for profile in
        [SchemaProfile::OpenAi, SchemaProfile::Anthropic, SchemaProfile::Gemini, SchemaProfile::Plain]
    {
        let transformed = transform_arguments(&union, profile);
        assert!(!transformed.wraps_value && !transformed.is_strict);
        assert!(transformed.schema["oneOf"].is_array());
        assert_eq!(
            transformed.obstacles.last().unwrap().to_string(),
            "at the root: arguments that are not one object"
        );
    }
    #[derive(JsonSchema)]
    struct Town {
        #[allow(dead_code)]
        city: String,
    }
    let town = transform_arguments(&schema_for!(Town).to_value(), SchemaProfile::Anthropic);
    assert!(town.is_strict && town.obstacles.is_empty());
}
