//! `ask` gives a value of a type, however the model is told what its form is.

use std::collections::BTreeMap;

use agentgraph_llm::prelude::*;
use agentgraph_llm::schema::{self, SchemaProfile};
use agentgraph_llm::{Capabilities, Code, StopReason, ToolMode};
use schemars::JsonSchema;
use serde::Deserialize;
use serde::de::DeserializeOwned;
use serde_json::json;

#[derive(Debug, PartialEq, Deserialize, JsonSchema)]
struct Weather {
    celsius: i32,
}

#[derive(Debug, PartialEq, Deserialize, JsonSchema)]
struct Part {
    name: String,
    parts: Vec<Part>,
}

fn native(replies: impl IntoIterator<Item = impl Into<Reply>>) -> ScriptedModel {
    ScriptedModel::new(replies).with_capabilities(Capabilities::new().structured_output())
}

#[tokio::test]
async fn a_model_with_structured_output_gets_the_schema_as_the_form_of_its_answer() {
    let model = native([r#"{"celsius": 12}"#]);
    let asked = model.ask::<Weather>(ChatRequest::user("Oslo?")).await.unwrap();
    assert_eq!(asked.value, Weather { celsius: 12 });
    let [request] = &model.requests()[..] else { panic!() };
    let output = request.output.as_ref().unwrap();
    assert_eq!((output.name.as_str(), output.strict, request.tools.len()), ("Weather", true, 0));
    assert_eq!(output.schema["properties"]["celsius"]["type"], "integer");
}

#[tokio::test]
async fn any_other_model_must_call_a_tool_with_the_value_as_arguments() {
    let model = ScriptedModel::new([Reply::tool_call("Weather", json!({"celsius": 12}))]);
    let asked = model.ask::<Weather>(ChatRequest::user("Oslo?")).await.unwrap();
    assert_eq!(asked.value, Weather { celsius: 12 });
    let [request] = &model.requests()[..] else { panic!() };
    assert!(request.output.is_none());
    assert_eq!(request.tool_choice.mode, ToolMode::Tool("Weather".to_owned()));
    assert_eq!(request.tool_choice.parallel, Some(false));
}

#[tokio::test]
async fn values_that_are_no_objects_are_a_field_of_one() {
    let lists = r#"{"value": [1, 2]}"#;
    assert_eq!(native([lists]).ask::<Vec<u8>>(ChatRequest::user("?")).await.unwrap().value, [1, 2]);
    let tool = ScriptedModel::from_fn(|request| {
        assert_eq!(request.tools[0].input_schema["type"], "object");
        Reply::tool_call(request.tools[0].name.clone(), json!({"value": {"name": "a", "parts": []}}))
    });
    let asked = tool.ask::<Option<Part>>(ChatRequest::user("?")).await.unwrap();
    assert_eq!(asked.value, Some(Part { name: "a".to_owned(), parts: Vec::new() }));
}

/// Each kind of answer that has not the form is followed by one that has.
#[tokio::test]
async fn an_answer_of_another_form_goes_back_with_the_reason() {
    let bad = [
        Reply::text("It is mild."),
        Reply::tool_call("Weather", json!({"celsius": "mild"})),
        Reply::raw_tool_call("Weather", r#"{"celsius": 1"#),
        Reply::tool_call("weather", json!({"celsius": 1})),
        Reply::tool_call("Weather", json!({"celsius": 1})).with_stop(StopReason::MaxTokens),
    ];
    for bad in bad {
        let good = Reply::tool_call("Weather", json!({"celsius": 12})).with_usage(Usage::new(2, 1));
        let model = ScriptedModel::new([bad.with_usage(Usage::new(2, 1)), good]);
        let asked = model.ask::<Weather>(ChatRequest::user("Oslo?")).await.unwrap();
        assert_eq!((asked.value.celsius, asked.usage), (12, Usage::new(4, 2)));
        let requests = model.requests();
        let [_, answer, refusal] = &requests[1].messages[..] else { panic!("{:?}", requests[1]) };
        assert_eq!(refusal.results().count(), answer.tool_uses().count(), "each call is answered");
        let told = refusal.results().next().map_or(refusal.text(), ToolResult::as_text);
        assert!(told.contains("required form"), "{told}");
    }
}

#[tokio::test]
async fn three_answers_of_another_form_are_an_error_with_their_usage() {
    let model = ScriptedModel::from_fn(|_| Reply::text("mild").with_usage(Usage::new(2, 1)));
    let model: std::sync::Arc<dyn ChatModel> = std::sync::Arc::new(model);
    let error = model.ask::<BTreeMap<String, u8>>(ChatRequest::user("Oslo?")).await.unwrap_err();
    assert_eq!((error.code(), error.usage()), (Code::AnswerRejected, Usage::new(6, 3)));
}

#[derive(Deserialize, JsonSchema, Debug, PartialEq)]
#[serde(tag = "kind", rename_all = "snake_case")]
enum Sky {
    Clear,
    Cloudy { cover: u8 },
}

#[derive(Deserialize, JsonSchema, Debug, PartialEq)]
struct Report {
    city: String,
    #[serde(flatten)]
    sky: Sky,
}

/// The schema that is asked for, and whether a profile would wrap it once more.
async fn asked_schema<T: JsonSchema + DeserializeOwned + Send>(answer: serde_json::Value) -> T {
    let model = native([answer.to_string()]);
    let asked = model.ask::<T>(ChatRequest::user("?")).await.unwrap();
    let schema = model.requests().remove(0).output.unwrap().schema;
    for profile in
        [SchemaProfile::Plain, SchemaProfile::OpenAi, SchemaProfile::Anthropic, SchemaProfile::Gemini]
    {
        assert!(!schema::transform(&schema, profile).wraps_value, "{profile:?} wraps {schema:#}");
    }
    asked.value
}

#[tokio::test]
async fn a_value_is_wrapped_in_one_place_for_all_wires() {
    let report = Report { city: "Oslo".to_owned(), sky: Sky::Cloudy { cover: 8 } };
    let fields = json!({"city": "Oslo", "kind": "cloudy", "cover": 8});
    assert_eq!(asked_schema::<Report>(json!({"value": fields})).await, report);
    assert_eq!(asked_schema::<Sky>(json!({"value": {"kind": "clear"}})).await, Sky::Clear);
    assert_eq!(asked_schema::<Vec<u8>>(json!({"value": [1, 2]})).await, [1, 2]);
    assert_eq!(asked_schema::<Weather>(json!({"celsius": 12})).await, Weather { celsius: 12 });
    assert_eq!(asked_schema::<Part>(json!({"name": "a", "parts": []})).await.name, "a");
}
