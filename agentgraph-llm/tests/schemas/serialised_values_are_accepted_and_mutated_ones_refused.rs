//! For each type and dialect: every serialised value is accepted, and a mutated value that the original
//! schema refuses is refused, except by the rules that the transformation reports as unenforced.

use std::fmt::Debug;

use agentgraph_llm::schema::{SchemaProfile, Transformed, WRAPPER, transform};
use jsonschema::Validator;
use proptest::prelude::*;
use proptest::test_runner::{Config, TestRunner};
use schemars::JsonSchema;
use serde::Serialize;
use serde::de::DeserializeOwned;
use serde_json::{Value, json};

use super::types;

const PROFILES: [SchemaProfile; 4] =
    [SchemaProfile::Plain, SchemaProfile::OpenAi, SchemaProfile::Anthropic, SchemaProfile::Gemini];

pub(crate) struct Dialect {
    pub(crate) profile: SchemaProfile,
    pub(crate) transformed: Transformed,
    accepts: Validator,
    /// The original without the rules that are not enforced.
    pub(crate) original: Validator,
}

impl Dialect {
    pub(crate) fn new(profile: SchemaProfile, schema: &Value) -> Self {
        let transformed = transform(schema, profile);
        let mut original = schema.clone();
        for unenforced in &transformed.unenforced {
            without_keyword(&mut original, &unenforced.keyword);
        }
        let validator = |schema: &Value| {
            jsonschema::validator_for(schema)
                .unwrap_or_else(|error| panic!("{profile:?}: {error}: {schema:#}"))
        };
        let accepts = validator(&transformed.schema);
        Dialect { profile, accepts, original: validator(&original), transformed }
    }

    pub(crate) fn accepts(&self, value: &Value) -> bool {
        if self.transformed.wraps_value {
            self.accepts.is_valid(&json!({ WRAPPER: value }))
        } else {
            self.accepts.is_valid(value)
        }
    }
}

fn without_keyword(schema: &mut Value, keyword: &str) {
    match schema {
        Value::Object(fields) => {
            if let Some(rule) = fields.remove(keyword).filter(|_| keyword == "oneOf") {
                fields.insert("anyOf".to_owned(), rule);
            }
            fields.values_mut().for_each(|value| without_keyword(value, keyword));
        }
        Value::Array(items) => items.iter_mut().for_each(|item| without_keyword(item, keyword)),
        _ => {}
    }
}

fn check<T>(values: BoxedStrategy<T>)
where
    T: JsonSchema + Serialize + DeserializeOwned + Debug + PartialEq + 'static,
{
    let schema = schemars::schema_for!(T).to_value();
    let dialects = PROFILES.map(|profile| Dialect::new(profile, &schema));
    let mutation = (any::<prop::sample::Index>(), 0_u8..12);
    let cases = (values, proptest::collection::vec(mutation, 1..12));
    let mut runner = TestRunner::new(Config { cases: 96, failure_persistence: None, ..Config::default() });
    let outcome = runner.run(&cases, |(value, mutations)| {
        let value = serde_json::to_value(&value).unwrap();
        for dialect in &dialects {
            let Dialect { profile, transformed, .. } = dialect;
            prop_assert!(dialect.accepts(&value), "{profile:?} refuses {value}: {:#}", transformed.schema);
            for (index, kind) in &mutations {
                let mutated = mutated(&value, index, *kind);
                if !dialect.original.is_valid(&mutated) {
                    prop_assert!(
                        !dialect.accepts(&mutated),
                        "{profile:?} accepts {mutated}: {:#}",
                        transformed.schema
                    );
                }
            }
        }
        Ok(())
    });
    outcome.unwrap_or_else(|failure| panic!("{failure}"));
}

/// The value with one change at one place.
fn mutated(value: &Value, index: &prop::sample::Index, kind: u8) -> Value {
    let mut places = Vec::new();
    collect(value, String::new(), &mut places);
    let mut mutated = value.clone();
    let Some(place) = mutated.pointer_mut(&places[index.index(places.len())]) else { return mutated };
    match (kind, place) {
        (0, Value::Object(fields)) => {
            if let Some(name) = fields.keys().nth(index.index(fields.len().max(1))).cloned() {
                fields.remove(&name);
            }
        }
        (1, Value::Object(fields)) => {
            fields.insert("unknown".to_owned(), json!(1));
        }
        (2, Value::Array(items)) => items.push(json!({"unknown": 1})),
        (3, Value::Array(items)) => drop(items.pop()),
        (4, Value::String(text)) => text.push('!'),
        (5, place) => *place = json!(null),
        (6, place) => *place = json!("text"),
        (7, place) => *place = json!(-1),
        (8, place) => *place = json!(1.5),
        (9, place) => *place = json!([]),
        (10, place) => *place = json!({}),
        (_, place) => *place = json!(true),
    }
    mutated
}

fn collect(value: &Value, at: String, places: &mut Vec<String>) {
    match value {
        Value::Object(fields) => {
            fields.iter().for_each(|(name, value)| collect(value, format!("{at}/{name}"), places))
        }
        Value::Array(items) => {
            items
                .iter()
                .enumerate()
                .for_each(|(index, value)| collect(value, format!("{at}/{index}"), places));
        }
        _ => {}
    }
    places.push(at);
}

macro_rules! types {
    ($($name:ident),*) => {
        $(#[test]
        fn $name() {
            check(types::$name());
        })*
    };
}

types![
    scalars, light, explained, options, external, internal, adjacent, untagged, flat, commented, tree,
    expression, all, maps, lights, pair
];

#[test]
fn an_answer_is_unwrapped_into_the_value() {
    let schema = schemars::schema_for!(Vec<types::Light>).to_value();
    let transformed = transform(&schema, SchemaProfile::Anthropic);
    assert!(transformed.wraps_value);
    let value = transformed.unwrap_value(json!({ WRAPPER: ["Red"] }));
    assert_eq!(serde_json::from_value::<Vec<types::Light>>(value).unwrap(), [types::Light::Red]);
}
