//! The eight nodes.
//!
//! Five of them ask a model for JSON. A model with structured output gets the schema of the answer; any other
//! reads it in the prompt, and is asked again with the error if its answer does not fit.

use std::sync::Arc;

use agentgraph::prelude::*;
use agentgraph_llm::prelude::*;
use agentgraph_llm::{Answer, LlmNode, OutputSpec, Refusal};
use schemars::JsonSchema;
use serde::Deserialize;
use serde::de::DeserializeOwned;
use serde_json::{Map, Value, json};
use tracing::Instrument;

use super::prompt::{self, AWAITING, Ask, TEMPERATURE, TEMPERATURE_OF_WAITING};
use super::state::{Step, ToolRun, ToolUse, Turn, TurnUpdate, decoded};
use super::{Brain, node};
use crate::session::ShopSession;

/// What the model answers if no tool fits.
const NO_TOOL: &str = "";

#[derive(Deserialize, JsonSchema)]
struct RoutingAnswer {
    /// Why.
    #[serde(default)]
    reason: String,
    /// What is next.
    #[serde(rename = "next-action")]
    next_action: Step,
}

#[derive(Deserialize, JsonSchema)]
struct ChoiceAnswer {
    /// Why.
    #[serde(default)]
    reason: String,
    /// The name of the tool.
    tool: String,
}

#[derive(Deserialize, JsonSchema)]
struct ParametersAnswer {
    /// Why.
    #[serde(default)]
    reason: String,
    /// The arguments.
    parameters: Map<String, Value>,
}

#[derive(Deserialize, JsonSchema)]
struct DescriptionAnswer {
    /// The description.
    description: String,
}

#[derive(Deserialize, JsonSchema)]
struct SpokenAnswer {
    /// What is said.
    response: String,
}

pub(super) async fn routing(
    turn: Snapshot<Turn>,
    cell: Session<ShopSession>,
    brain: Dep<Brain>,
) -> Result<TurnUpdate> {
    let answer: RoutingAnswer = ask(&brain, &turn, &Ask::Routing).await?;
    let output = json!(match answer.next_action {
        Step::CallTool => "call-tool",
        Step::RespondToCustomer => "respond-to-customer",
    });
    let frame = turn.frame(&opened(&cell, &turn), node::ROUTING, output, &answer.reason);
    Ok(Turn::update().next(answer.next_action).frames([frame]))
}

pub(super) async fn task_description_response(
    turn: Snapshot<Turn>,
    cell: Session<ShopSession>,
    brain: Dep<Brain>,
) -> Result<TurnUpdate> {
    let answer: SpokenAnswer = ask(&brain, &turn, &Ask::Waiting).await?;
    // The session is read after the call: a tool may have changed it meanwhile, and a frame with an old one
    // would take the cart away from the customer.
    let session = opened(&cell, &turn);
    let frame = turn.frame(&session, node::TASK_DESCRIPTION_RESPONSE, json!(answer.response), "");
    Ok(Turn::update().frames([frame]))
}

pub(super) async fn choose_tool(
    turn: Snapshot<Turn>,
    cell: Session<ShopSession>,
    brain: Dep<Brain>,
) -> Result<TurnUpdate> {
    let names: Arc<[String]> = brain.tools.iter().map(|tool| tool.spec().name.clone()).collect();
    let is_known = move |answer: &ChoiceAnswer| {
        let name = bare(&answer.tool);
        if name == NO_TOOL || names.iter().any(|known| known == name) {
            return Ok(());
        }
        Err(format!("There is no tool `{name}`. The tools are: {}.", names.join(", ")))
    };
    let answer: ChoiceAnswer = ask_checked(&brain, &turn, &Ask::Choice, is_known).await?;
    let tool = bare(&answer.tool);
    let frame = turn.frame(&opened(&cell, &turn), node::CHOOSE_TOOL, json!(tool), &answer.reason);
    Ok(Turn::update().tool(tool).parameters(Map::new()).frames([frame]))
}

/// Some models write a call: `get_products(search="wings")`.
fn bare(tool: &str) -> &str {
    tool.split('(').next().unwrap_or_default().trim()
}

pub(super) async fn identify_tool_params(
    turn: Snapshot<Turn>,
    cell: Session<ShopSession>,
    brain: Dep<Brain>,
) -> Result<TurnUpdate> {
    let spec = brain.tools.iter().map(|tool| tool.spec()).find(|spec| spec.name == turn.tool);
    let takes_none =
        spec.is_none_or(|spec| spec.input_schema["properties"].as_object().is_none_or(Map::is_empty));
    let answer = match takes_none {
        true => ParametersAnswer { reason: String::new(), parameters: Map::new() },
        false => ask(&brain, &turn, &Ask::Parameters(&turn.tool)).await?,
    };
    let output = Value::Object(answer.parameters.clone());
    let frame = turn.frame(&opened(&cell, &turn), node::IDENTIFY_TOOL_PARAMS, output, &answer.reason);
    Ok(Turn::update().parameters(answer.parameters).frames([frame]))
}

pub(super) async fn execute_tool(
    ctx: Ctx,
    turn: Snapshot<Turn>,
    cell: Session<ShopSession>,
    brain: Dep<Brain>,
) -> Result<TurnUpdate> {
    opened(&cell, &turn);
    let span = tracing::info_span!(
        "execute_tool",
        otel.name = format_args!("execute_tool {}", turn.tool),
        gen_ai.operation.name = "execute_tool",
        gen_ai.tool.name = &*turn.tool,
        "gen_ai.tool.type" = "function",
        "error.type" = tracing::field::Empty,
    );
    let run = run_tool(ctx, &turn, &brain).instrument(span).await?;
    let session = cell.with(|session| session.clone());
    let frame = turn.frame(&session, node::EXECUTE_TOOL, decoded(&run.output), "");
    Ok(Turn::update().result(Some(run)).session(session).frames([frame]))
}

/// The output, or the error that the model can tell the customer about.
async fn run_tool(ctx: Ctx, turn: &Snapshot<Turn>, brain: &Brain) -> Result<ToolRun> {
    let failed = |kind: &'static str, why: String| {
        tracing::Span::current().record("error.type", kind);
        Ok(ToolRun { output: why, widget: None })
    };
    let Some(tool) = brain.tools.iter().find(|tool| tool.spec().name == turn.tool) else {
        return failed("unknown_tool", format!("There is no tool `{}`.", turn.tool));
    };
    let input = RawJson::from(Value::Object(turn.parameters.clone()));
    let call = ToolCall::detached(ctx.task_id().to_string(), &*turn.tool).with_input(input.clone());
    match tool.call(&input, &call.with_ctx(ctx).with_state(turn.clone())).await {
        Ok(output) => {
            let text: String = output.content.iter().filter_map(|block| block.as_text()).collect();
            let widget = output.artifact.map(serde_json::from_value).transpose()?;
            Ok(ToolRun { output: text, widget })
        }
        Err(ToolError::InvalidArguments(why)) => {
            failed("invalid_arguments", format!("Nothing was done: {why}."))
        }
        Err(ToolError::Failed(why)) => failed("failed", why),
        Err(ToolError::Fatal(error)) => Err(error),
        Err(other) => failed("failed", other.to_string()),
    }
}

pub(super) async fn widget(turn: Snapshot<Turn>, cell: Session<ShopSession>) -> Result<TurnUpdate> {
    // A tool that failed shows nothing.
    let Some(widget) = turn.result.as_ref().and_then(|run| run.widget.as_ref()) else {
        return Ok(Turn::update());
    };
    let frame = turn.frame(&opened(&cell, &turn), node::WIDGET, serde_json::to_value(widget)?, "");
    Ok(Turn::update().frames([frame]))
}

pub(super) async fn convert_natural_language(
    turn: Snapshot<Turn>,
    cell: Session<ShopSession>,
    brain: Dep<Brain>,
) -> Result<TurnUpdate> {
    let answer: DescriptionAnswer = ask(&brain, &turn, &Ask::Description).await?;
    let used = ToolUse {
        tool: turn.tool.clone(),
        input: Value::Object(turn.parameters.clone()),
        output: turn.result.as_ref().map(|run| run.output.clone()).unwrap_or_default(),
        description: answer.description.replace('\n', " "),
    };
    let output = json!(used.description);
    let frame = turn.frame(&opened(&cell, &turn), node::CONVERT_NATURAL_LANGUAGE, output, "");
    Ok(Turn::update().uses([used]).frames([frame]))
}

pub(super) async fn customer_response(
    turn: Snapshot<Turn>,
    cell: Session<ShopSession>,
    brain: Dep<Brain>,
) -> Result<TurnUpdate> {
    let answer: SpokenAnswer = ask(&brain, &turn, &Ask::Answer).await?;
    let frame = turn.frame(&opened(&cell, &turn), node::CUSTOMER_RESPONSE, json!(answer.response), "");
    Ok(Turn::update().answer(answer.response).frames([frame]))
}

/// The session of the run, which begins as that of the request.
fn opened(cell: &Session<ShopSession>, turn: &Turn) -> ShopSession {
    cell.with(|session| {
        if session.is_unopened() {
            session.clone_from(&turn.session);
        }
        session.clone()
    })
}

async fn ask<T>(brain: &Brain, turn: &Turn, task: &Ask<'_>) -> Result<T>
where
    T: DeserializeOwned + JsonSchema + 'static,
{
    ask_checked(brain, turn, task, |_: &T| Ok(())).await
}

/// Asks the model until its answer is a `T` that passes the check, three times at most.
async fn ask_checked<T>(
    brain: &Brain,
    turn: &Turn,
    task: &Ask<'_>,
    check: impl Fn(&T) -> Result<(), String> + Send + Sync + 'static,
) -> Result<T>
where
    T: DeserializeOwned + JsonSchema + 'static,
{
    let temperature = if matches!(task, Ask::Waiting) { TEMPERATURE_OF_WAITING } else { TEMPERATURE };
    let is_native = brain.model.info().capabilities.structured_output;
    let model = LlmNode::<Answer>::new(Arc::clone(&brain.model), AWAITING)
        .system(prompt::system(task, turn, &brain.tools))
        .typed::<T>()
        .compose(move |question| {
            let mut request = question.request().with_temperature(temperature);
            // A hint: the arguments of a tool are an object of any form.
            request.output = is_native.then(|| OutputSpec::of::<T>().lenient());
            Ok(request)
        })
        .after(move |answer| check(&answer.parse()?).map_err(Refusal::again));
    let graph = DependencyGraph::<Answer>::new().node("model", model).compile()?;
    let answers = graph.invoke(()).await?.into_finished()?;
    Ok(answers["model"].parse()?)
}
