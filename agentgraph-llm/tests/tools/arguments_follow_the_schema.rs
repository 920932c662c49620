use agentgraph_llm::prelude::*;
use proptest::prelude::*;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::json;

use super::{call, refused};

#[derive(Debug, Default, Deserialize, Serialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
enum Unit {
    #[default]
    Celsius,
    Fahrenheit,
}

#[tool]
fn weather(
    city: String,
    #[default(3)] days: u8,
    #[default("de")] language: String,
    #[default] unit: Unit,
    at: Option<f64>,
) -> String {
    format!("{city} {days} {language} {unit:?} {at:?}")
}

#[tokio::test]
async fn arguments_that_are_left_out_have_their_defaults() {
    let output = call(&weather(), r#"{"city": "Oslo"}"#).await.unwrap();
    assert_eq!(output, ToolOutput::text("Oslo 3 de Celsius None"));
    let all = r#"{"at": 1.5, "unit": "fahrenheit", "language": "en", "days": 1, "city": "Os\u006co"}"#;
    assert_eq!(call(&weather(), all).await.unwrap(), ToolOutput::text("Oslo 1 en Fahrenheit Some(1.5)"));
    let null = r#"{"city": "Oslo", "at": null}"#;
    assert_eq!(call(&weather(), null).await.unwrap(), ToolOutput::text("Oslo 3 de Celsius None"));
}

#[tokio::test]
async fn all_wrong_arguments_are_reported_at_once() {
    let why =
        refused(&weather(), r#"{"days": "two", "unit": "kelvin", "town": "Oslo", "at": 1, "at": 2}"#).await;
    let parts: Vec<_> = why.split("; ").collect();
    assert_eq!(
        parts,
        [
            "there is no argument `town`",
            "the tool takes `city`, `days`, `language`, `unit`, `at`",
            "`at` is given twice",
            "`city` is missing",
            "`days`: invalid type: string \"two\", expected u8",
            "`unit`: unknown variant `kelvin`, expected `celsius` or `fahrenheit`",
        ]
    );
}

#[tokio::test]
async fn a_null_is_no_default() {
    let why = refused(&weather(), r#"{"city": null, "days": null}"#).await;
    assert_eq!(why, "`city`: invalid type: null, expected a string; `days`: invalid type: null, expected u8");
}

#[tokio::test]
async fn arguments_that_are_no_object_are_refused() {
    for input in ["[]", "null", "\"{}\"", "[\"Oslo\"]"] {
        assert_eq!(refused(&weather(), input).await, "they must be a JSON object");
    }
}

#[tool]
fn nothing() -> &'static str {
    "called"
}

#[tokio::test]
async fn a_tool_without_arguments_takes_an_empty_object_only() {
    assert_eq!(call(&nothing(), "{ }").await.unwrap(), ToolOutput::text("called"));
    assert_eq!(refused(&nothing(), r#"{"a": 1}"#).await, "there is no argument `a`; the tool takes none");
}

#[tool]
fn exact(number: serde_json::Value, whole: u64, least: i64, #[default] text: String) -> ToolOutput {
    ToolOutput::json(&(number, whole, least, text)).unwrap()
}

#[tokio::test]
async fn large_numbers_and_escapes_arrive_whole() {
    let input = r#"{"number": 1.5, "whole": 18446744073709551615, "least": -9223372036854775808, "text": "\ud83e\udd80\n"}"#;
    let output = call(&exact(), input).await.unwrap();
    assert_eq!(output, ToolOutput::text("[1.5,18446744073709551615,-9223372036854775808,\"🦀\\n\"]"));
}

proptest! {
    /// Whatever the schema of the arguments describes is accepted, and arrives unchanged.
    #[test]
    fn what_the_schema_allows_is_accepted(
        city in any::<String>(),
        days in prop::option::of(any::<u8>()),
        language in prop::option::of(any::<String>()),
        at in prop::option::of(prop::option::of(any::<i32>())),
    ) {
        let mut input = json!({"city": city});
        for (name, value) in [("days", days.map(|days| json!(days))), ("language", language.clone().map(|text| json!(text))),
            ("at", at.map(|at| json!(at)))] {
            if let Some(value) = value {
                input[name] = value;
            }
        }
        let runtime = tokio::runtime::Builder::new_current_thread().build().unwrap();
        let output = runtime.block_on(call(&weather(), &input.to_string())).unwrap();
        let expected = format!(
            "{city} {} {} Celsius {:?}",
            days.unwrap_or(3),
            language.unwrap_or("de".to_owned()),
            at.flatten().map(f64::from)
        );
        prop_assert_eq!(output, ToolOutput::text(expected));
    }
}
