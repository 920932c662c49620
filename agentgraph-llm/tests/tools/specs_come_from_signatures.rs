use std::collections::BTreeMap;

use agentgraph_llm::prelude::*;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};

#[derive(Deserialize, Serialize, JsonSchema, Default)]
#[serde(rename_all = "lowercase")]
enum Unit {
    #[default]
    Celsius,
    Fahrenheit,
}

/// The weather of the next days.
///
/// Not for the past:
///   * ask `history` for it
#[tool]
async fn weather(
    _ctx: &agentgraph::Ctx,
    /// A town, in English.
    ///
    /// With its country if the name is not unique.
    city: String,
    #[default(3)] days: u8,
    #[default] unit: Unit,
    /// Languages of the text.
    languages: Option<Vec<String>>,
) -> String {
    let _ = (days, unit, languages);
    city
}

#[test]
fn names_docs_defaults_and_types_are_in_the_schema() {
    let spec = weather().spec();
    assert_eq!(spec.name, "weather");
    assert_eq!(
        spec.description,
        "The weather of the next days.\n\nNot for the past:\n  * ask `history` for it"
    );
    assert_eq!(spec.strict, None);
    let properties = &spec.input_schema["properties"];
    assert_eq!(
        properties["city"],
        json!({
            "type": "string",
            "description": "A town, in English.\n\nWith its country if the name is not unique.",
        })
    );
    assert_eq!(properties["days"]["default"], 3);
    assert_eq!(properties["unit"]["default"], "celsius");
    assert_eq!(properties["languages"]["description"], "Languages of the text.");
    assert_eq!(properties["languages"]["type"], json!(["array", "null"]));
    assert_eq!(spec.input_schema["required"], json!(["city"]));
}

#[test]
fn the_schema_allows_no_other_arguments() {
    assert_eq!(weather().spec().input_schema["additionalProperties"], false);
}

#[test]
fn injected_parameters_are_not_in_the_schema() {
    let schema = weather().spec().input_schema.clone();
    let names: Vec<_> = schema["properties"].as_object().unwrap().keys().cloned().collect();
    assert_eq!(names, ["city", "days", "languages", "unit"]);
}

#[tool(name = "get-time", description = "The time of a zone.", strict)]
fn clock(zone: Option<String>) -> String {
    zone.unwrap_or_default()
}

#[test]
fn name_description_and_strictness_can_be_set() {
    let spec = clock().spec();
    assert_eq!((&*spec.name, &*spec.description), ("get-time", "The time of a zone."));
    assert_eq!(spec.strict, Some(true));
}

#[tool]
fn ping() -> &'static str {
    "pong"
}

#[test]
fn a_tool_without_arguments_has_an_empty_schema() {
    let expected = json!({"type": "object", "properties": {}, "required": [], "additionalProperties": false});
    assert_eq!(ping().spec().input_schema, expected);
    assert_eq!(ping().spec().description, "");
}

#[derive(Deserialize, JsonSchema)]
struct Node {
    name: String,
    children: Vec<Node>,
}

/// A tree.
#[tool]
fn depth(
    /// The root of the tree.
    root: Node,
    labels: BTreeMap<String, Value>,
    anything: Value,
) -> String {
    let _ = (labels, anything);
    format!("{} {}", root.name, root.children.len())
}

#[test]
fn a_recursive_type_is_a_definition() {
    let schema = depth().spec().input_schema.clone();
    assert_eq!(
        schema["properties"]["root"],
        json!({"$ref": "#/$defs/Node", "description": "The root of the tree."})
    );
    assert_eq!(schema["$defs"]["Node"]["properties"]["children"]["items"], json!({"$ref": "#/$defs/Node"}));
    assert_eq!(schema["properties"]["anything"], json!({}));
    assert_eq!(schema["required"], json!(["root", "labels", "anything"]));
}

#[tool]
fn r#type(r#fn: String, r#where: Option<u8>) -> String {
    format!("{} {where:?}", r#fn, r#where = r#where)
}

#[tokio::test]
async fn keywords_lose_their_prefix() {
    let spec = r#type().spec();
    assert_eq!(spec.name, "type");
    assert_eq!(spec.input_schema["required"], json!(["fn"]));
    let output = super::call(&r#type(), r#"{"fn": "a", "where": 2}"#).await.unwrap();
    assert_eq!(output, ToolOutput::text("a Some(2)"));
}

#[test]
fn the_function_itself_stays_callable() {
    assert_eq!(clock().run(Some("UTC".to_owned())), "UTC");
}
