//! The gatherer's tools that explain an action: its parameters as a JSON schema from the Rust types, and the
//! rules that the types cannot express (see [`guide`]).

mod guide;

use std::sync::Arc;

use agentgraph_llm::FnTool;
use serde::Serialize;
use serde_json::Value;

use super::{Desk, NoArguments, tool};
use crate::actions::{self, ActionKind};
use guide::Guide;

/// One tool for each action.
pub(super) fn tools(desk: &Arc<Desk>) -> Vec<FnTool> {
    ActionKind::ALL.iter().map(|&kind| schema_tool(desk, kind)).collect()
}

fn schema_tool(desk: &Arc<Desk>, kind: ActionKind) -> FnTool {
    let about = format!("The parameters of the action {kind}, how to gather them, and its rules.");
    tool(desk, &format!("get_{kind}_schema"), &about, move |desk: Arc<Desk>, _: NoArguments| {
        std::future::ready(desk.keep(format!("{kind}_schema"), &ActionGuide::of(kind)))
    })
}

/// The full description of an action's parameters.
#[derive(Serialize)]
struct ActionGuide {
    action: ActionKind,
    required: Vec<String>,
    parameters: Value,
    #[serde(flatten)]
    guide: &'static Guide,
}

impl ActionGuide {
    fn of(kind: ActionKind) -> Self {
        let required = actions::required(kind);
        let parameters = kind.schema();
        ActionGuide { action: kind, required, parameters, guide: guide::of(kind) }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_action_has_described_parameters_a_flow_rules_and_next_steps() {
        for &kind in ActionKind::ALL {
            let told = serde_json::to_value(ActionGuide::of(kind)).unwrap();
            for part in ["required", "parameter_gathering_flow", "rules", "suggested_next_steps"] {
                assert!(!told[part].as_array().unwrap().is_empty(), "{kind} has no {part}");
            }
            let properties = told["parameters"]["properties"].as_object().unwrap();
            for (name, property) in properties {
                let described = property["description"].is_string();
                assert!(described, "{kind}: the parameter {name} is not described");
            }
        }
    }

    #[test]
    fn the_flow_of_an_action_names_each_required_parameter() {
        for &kind in ActionKind::ALL {
            let flow = guide::of(kind).parameter_gathering_flow.join("\n");
            for name in actions::required(kind) {
                assert!(flow.contains(&name), "the flow of {kind} does not mention {name}");
            }
        }
    }

    #[test]
    fn guides_to_create_and_update_mention_the_empty_inclusion_list() {
        for kind in
            [ActionKind::CreateExperiment, ActionKind::UpdateExperiment, ActionKind::UpdateExperimentStatus]
        {
            let hints = guide::of(kind).suggested_next_steps.join("\n");
            assert!(hints.contains("excludeAll") && hints.contains("nobody"), "{kind}: {hints}");
        }
    }
}
