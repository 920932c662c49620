//! Tools and the choice among them.

use serde_json::{Value, json};

use crate::json::{Object, RawJson};
use crate::model::{ChatRequest, ToolMode};
use crate::schema::{self, SchemaProfile};
use crate::tool::ToolSpec;

/// The functions as one tool, and each tool of the provider's own as another.
pub(super) fn tools(specs: &[ToolSpec]) -> RawJson {
    let functions: Vec<_> = specs.iter().filter(|spec| spec.raw.is_none()).map(declaration).collect();
    let mut tools: Vec<_> = specs.iter().filter_map(|spec| spec.raw.clone()).collect();
    if !functions.is_empty() {
        let declarations = Object::default().with("functionDeclarations", RawJson::array(&functions));
        tools.insert(0, declarations.to_json());
    }
    RawJson::array(&tools)
}

fn declaration(spec: &ToolSpec) -> RawJson {
    let mut fields = Object::default()
        .with("name", RawJson::string(&spec.name))
        .with("description", RawJson::string(&spec.description));
    let parameters = schema::transform_arguments(&spec.input_schema, SchemaProfile::Gemini).schema;
    if !is_empty(&parameters) {
        fields.set("parametersJsonSchema", parameters);
    }
    fields.with_all(&spec.extra).to_json()
}

/// Whether a function has no parameters: the API rejects an object without properties.
fn is_empty(parameters: &Value) -> bool {
    let has = |keyword: &str| parameters.get(keyword).is_some_and(|value| *value != json!({}));
    let is_open = parameters.get("additionalProperties").is_some_and(|rest| *rest != json!(false));
    !has("properties")
        && !has("anyOf")
        && !has("oneOf")
        && !has("$ref")
        && !has("patternProperties")
        && !is_open
}

/// `None` if the model decides and no tool is strict, or if there is no function to choose.
pub(super) fn config(request: &ChatRequest) -> Option<RawJson> {
    let functions = || request.tools.iter().filter(|spec| spec.raw.is_none());
    functions().next()?;
    let is_strict = functions().any(|spec| spec.strict == Some(true));
    let mode = |name: &str| Object::default().with("mode", RawJson::string(name));
    let config = match &request.tool_choice.mode {
        ToolMode::Auto if !is_strict => return None,
        ToolMode::Auto => mode("VALIDATED"),
        ToolMode::Any => mode("ANY"),
        ToolMode::Tool(name) => mode("ANY").with("allowedFunctionNames", json!([name])),
        ToolMode::None => mode("NONE"),
    };
    Some(Object::default().with("functionCallingConfig", config.to_json()).to_json())
}
