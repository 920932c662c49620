//! Classifies the person's message. A model fills in one forced tool call, and fixed rules follow from it.

use std::sync::{Mutex, PoisonError};

use agentgraph::{Ctx, Dep, Snapshot};
use agentgraph_llm::{FnTool, ToolChoice, ToolError, ToolLoop, ToolOutput};
use schemars::JsonSchema;
use serde::Deserialize;

use super::{begin, failure};
use crate::agent::Settings;
use crate::prompts;
use crate::state::{Analysis, ConversationState, ConversationStateUpdate, Intent, PresetReply, ResponseKind};

const TOOL: &str = "analyze_user_request";

/// A model that calls the tool wrongly gets two corrections.
const ROUNDS: usize = 3;

pub(crate) async fn run(
    state: Snapshot<ConversationState>,
    settings: Dep<Settings>,
    ctx: Ctx,
) -> ConversationStateUpdate {
    let update = begin(&ctx).await;
    if state.plan.is_some() {
        // The intent is fixed: the next step of the plan.
        return update;
    }
    match analyze(&state, &settings).await {
        Ok(analysis) => concluded(update, &state, &settings, analysis),
        Err(error) => {
            let error = failure::of_model(&error, ctx.node());
            update.preset(Some(failure::model_preset(&error))).errors([error])
        }
    }
}

#[derive(Deserialize, JsonSchema)]
struct Call {
    /// What the person wants.
    intent: Intent,
    /// How sure you are, from 0 to 1.
    confidence: f64,
    /// The request in one sentence, with what it refers to spelled out.
    user_request_summary: String,
    /// Why, in one sentence.
    #[serde(default, rename = "reasoning")]
    _reasoning: Option<String>,
}

/// A model that does not classify leaves the intent unclear.
async fn analyze(state: &ConversationState, settings: &Settings) -> agentgraph_llm::Result<Analysis> {
    let said = std::sync::Arc::new(Mutex::new(None));
    let slot = std::sync::Arc::clone(&said);
    let tool = FnTool::new(TOOL, "Says what the last message of the person asks for.", move |call: Call| {
        let analysis = Analysis {
            intent: call.intent,
            confidence: call.confidence.clamp(0.0, 1.0),
            summary: call.user_request_summary,
        };
        *slot.lock().unwrap_or_else(PoisonError::into_inner) = Some(analysis);
        std::future::ready(Ok::<_, ToolError>(ToolOutput::text("noted").returned_directly()))
    });
    let request = prompts::analyzer(state, settings).with_tool_choice(ToolChoice::tool(TOOL));
    ToolLoop::new(&settings.model).tool(tool).max_rounds(ROUNDS).run(request).await?;
    let said = said.lock().unwrap_or_else(PoisonError::into_inner).take();
    Ok(said.unwrap_or(Analysis { intent: Intent::Unclear, confidence: 0.0, summary: String::new() }))
}

fn concluded(
    update: ConversationStateUpdate,
    state: &ConversationState,
    settings: &Settings,
    analysis: Analysis,
) -> ConversationStateUpdate {
    let (kind, preset) = match analysis.intent {
        Intent::Greeting => (ResponseKind::Answer, None),
        Intent::ConfirmReply => (ResponseKind::Clarification, Some(what_is_meant(state))),
        Intent::Cancel => (ResponseKind::Answer, Some(nothing_to_cancel(state))),
        Intent::Unclear => (ResponseKind::Clarification, None),
        _ if analysis.confidence < settings.confidence => (ResponseKind::Clarification, None),
        Intent::DirectAnswer | Intent::NeedsInfo => (ResponseKind::Answer, None),
    };
    let preset = preset.map(|text| PresetReply::new(kind, text));
    update.analysis(Some(analysis)).kind(kind).preset(preset)
}

fn what_is_meant(state: &ConversationState) -> &'static str {
    match state.dropped {
        Some(_) => "I am not sure that this was a plain yes, so I did nothing. What would you like me to do?",
        None => "I am not waiting for a yes or no. What do you mean?",
    }
}

fn nothing_to_cancel(state: &ConversationState) -> &'static str {
    match state.dropped {
        Some(_) => "All right.",
        None => "There is nothing under way to cancel.",
    }
}
