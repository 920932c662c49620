//! The rewritten forms, keyword by keyword.

use agentgraph_llm::schema::{SchemaProfile, transform};
use schemars::schema_for;
use serde_json::{Value, json};

use super::types;

const STRICT: [SchemaProfile; 3] = [SchemaProfile::OpenAi, SchemaProfile::Anthropic, SchemaProfile::Gemini];

/// The transformed schema of a property.
fn property(schema: Value, profile: SchemaProfile) -> Value {
    let whole = json!({"type": "object", "properties": {"it": schema}, "required": ["it"]});
    let transformed = transform(&whole, profile);
    assert!(transformed.is_strict, "{:?}", transformed.obstacles);
    transformed.schema["properties"]["it"].clone()
}

fn keywords(schema: &Value, found: &mut Vec<String>) {
    match schema {
        Value::Object(fields) => {
            for (keyword, value) in fields {
                match (keyword.as_str(), value) {
                    ("properties" | "$defs", Value::Object(named)) => {
                        named.values().for_each(|schema| keywords(schema, found));
                    }
                    (_, value) => keywords(value, found),
                }
                found.push(keyword.clone());
            }
        }
        Value::Array(items) => items.iter().for_each(|item| keywords(item, found)),
        _ => {}
    }
}

#[test]
fn only_keywords_of_the_dialect_are_sent() {
    let common = [
        "type",
        "title",
        "description",
        "enum",
        "items",
        "properties",
        "required",
        "additionalProperties",
        "anyOf",
        "$ref",
        "$defs",
        "minItems",
        "format",
    ];
    let open_ai = [
        "const",
        "pattern",
        "minimum",
        "maximum",
        "exclusiveMinimum",
        "exclusiveMaximum",
        "multipleOf",
        "maxItems",
    ];
    let gemini = ["prefixItems", "minimum", "maximum", "maxItems"];
    for profile in STRICT {
        let own: &[&str] = match profile {
            SchemaProfile::OpenAi => &open_ai,
            SchemaProfile::Gemini => &gemini,
            _ => &["const"],
        };
        for schema in [schema_for!(types::All), schema_for!(types::Commented), schema_for!(types::Tree)] {
            let transformed = transform(&schema.to_value(), profile);
            if !transformed.is_strict {
                continue;
            }
            let mut found = Vec::new();
            keywords(&transformed.schema, &mut found);
            for keyword in found {
                assert!(common.contains(&&*keyword) || own.contains(&&*keyword), "{profile:?}: {keyword}");
            }
        }
    }
}

#[test]
fn strict_dialects_close_every_object_and_open_ai_requires_every_property() {
    fn objects(schema: &Value, see: &mut dyn FnMut(&Value)) {
        match schema {
            Value::Object(fields) => {
                if fields.get("type").is_some_and(|kind| kind == "object" || kind[0] == "object") {
                    see(schema);
                }
                fields.values().for_each(|value| objects(value, see));
            }
            Value::Array(items) => items.iter().for_each(|item| objects(item, see)),
            _ => {}
        }
    }
    let all = transform(&schema_for!(types::All).to_value(), SchemaProfile::OpenAi);
    let mut count = 0;
    objects(&all.schema, &mut |object| {
        count += 1;
        assert_eq!(object["additionalProperties"], json!(false), "{object:#}");
        let properties = object["properties"].as_object().unwrap();
        assert_eq!(properties.len(), object["required"].as_array().unwrap().len(), "{object:#}");
    });
    assert!(count > 10);
    let external = transform(&schema_for!(types::External).to_value(), SchemaProfile::Gemini);
    assert!(external.wraps_value);
}

#[test]
fn bounds_are_kept_or_told() {
    let byte = || json!({"type": "integer", "format": "uint8", "minimum": 0, "maximum": 255});
    assert_eq!(
        property(byte(), SchemaProfile::OpenAi),
        json!({"type": "integer", "minimum": 0, "maximum": 255})
    );
    assert_eq!(
        property(byte(), SchemaProfile::Gemini),
        json!({"type": "integer", "minimum": 0, "maximum": 255})
    );
    assert_eq!(
        property(byte(), SchemaProfile::Anthropic),
        json!({"type": "integer", "description": "(maximum: 255, minimum: 0)"})
    );
    let word = json!({"type": "string", "description": "A word.", "minLength": 1, "pattern": "^[a-z]+$"});
    assert_eq!(
        property(word, SchemaProfile::OpenAi),
        json!({"type": "string", "description": "A word.\n\n(minLength: 1)", "pattern": "^[a-z]+$"})
    );
}

#[test]
fn what_is_told_is_reported() {
    let schema = json!({"type": "object", "properties": {"a/b": {"type": "string", "maxLength": 3}}, "required": ["a/b"]});
    let transformed = transform(&schema, SchemaProfile::OpenAi);
    let [unenforced] = &transformed.unenforced[..] else { panic!("{transformed:?}") };
    assert_eq!((unenforced.at.as_str(), unenforced.keyword.as_str()), ("/properties/a~1b", "maxLength"));
}

#[test]
fn options_are_nullable_and_their_null_defaults_are_left_out() {
    let text = || json!({"type": ["string", "null"], "default": null});
    assert_eq!(property(text(), SchemaProfile::OpenAi), json!({"type": ["string", "null"]}));
    assert_eq!(property(text(), SchemaProfile::Gemini), json!({"type": ["string", "null"]}));
    assert_eq!(
        property(text(), SchemaProfile::Anthropic),
        json!({"anyOf": [{"type": "string"}, {"type": "null"}]})
    );
}

#[test]
fn a_reference_with_siblings_is_replaced_by_its_target() {
    for profile in STRICT {
        let commented = transform(&schema_for!(types::Commented).to_value(), profile);
        let light = &commented.schema["properties"]["light"];
        assert_eq!(light["description"], "The lamp.");
        assert_eq!(light["enum"], json!(["Red", "Green"]));
        assert!(light.get("$ref").is_none());
    }
}

#[test]
fn all_of_and_tagged_variants_become_one_schema() {
    let both = json!({"allOf": [
        {"type": "object", "properties": {"a": {"type": "integer", "minimum": 1}}, "required": ["a"]},
        {"type": "object", "properties": {"a": {"type": "integer", "minimum": 3}, "b": {"type": "null"}}, "required": ["b"]},
    ]});
    assert_eq!(
        property(both, SchemaProfile::OpenAi),
        json!({"type": "object", "properties": {"a": {"type": "integer", "minimum": 3}, "b": {"type": "null"}},
            "required": ["a", "b"], "additionalProperties": false})
    );
    let internal = transform(&schema_for!(types::Internal).to_value(), SchemaProfile::OpenAi);
    let whole = &internal.schema["properties"]["value"]["anyOf"][2];
    assert_eq!(whole["required"], json!(["kind", "left", "right"]));
    assert_eq!(whole["properties"]["kind"]["const"], "Whole");
}

#[test]
fn one_of_becomes_any_of_and_an_overlap_is_reported() {
    let overlap = json!({"oneOf": [{"type": "integer"}, {"type": "number"}]});
    assert_eq!(
        property(overlap.clone(), SchemaProfile::OpenAi),
        json!({"anyOf": [{"type": "integer"}, {"type": "number"}]})
    );
    let reported = transform(&overlap, SchemaProfile::OpenAi).unenforced;
    assert_eq!(reported.iter().map(|rule| rule.keyword.as_str()).collect::<Vec<_>>(), ["oneOf"]);
    let enums = transform(&schema_for!(types::External).to_value(), SchemaProfile::OpenAi).unenforced;
    assert!(enums.iter().all(|rule| rule.keyword != "oneOf"), "{enums:?}");
}

#[test]
fn gemini_gets_enums_for_constants() {
    let explained = transform(&schema_for!(types::Explained).to_value(), SchemaProfile::Gemini);
    let first = &explained.schema["properties"]["value"]["anyOf"][0];
    assert_eq!(*first, json!({"type": "string", "enum": ["first"], "description": "The first one."}));
}

#[test]
fn a_recursive_root_that_is_no_object_moves_to_the_definitions() {
    let expression = transform(&schema_for!(types::Expression).to_value(), SchemaProfile::OpenAi);
    assert!(expression.is_strict && expression.wraps_value);
    assert_eq!(expression.schema["properties"]["value"], json!({"$ref": "#/$defs/Value"}));
    assert!(expression.schema["$defs"]["Value"]["anyOf"].is_array());
    assert!(!expression.schema.to_string().contains("\"#\""));
}

#[test]
fn unused_definitions_are_left_out() {
    let schema = json!({"type": "object", "properties": {"a": {"$ref": "#/definitions/A"}}, "required": ["a"],
        "definitions": {"A": {"type": "string"}, "B": {"type": "string"}}});
    let transformed = transform(&schema, SchemaProfile::OpenAi).schema;
    assert_eq!(transformed["$defs"], json!({"A": {"type": "string"}}));
    assert_eq!(transformed["properties"]["a"], json!({"$ref": "#/$defs/A"}));
}
