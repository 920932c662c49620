//! The gatherer's tools that explain the parameters of an action.

use std::sync::Arc;

use agentgraph_llm::FnTool;
use serde_json::{Value, json};

use super::{Desk, Nothing, tool};
use crate::actions::{self, ActionKind};

/// One tool an action.
pub(super) fn tools(desk: &Arc<Desk>) -> Vec<FnTool> {
    ActionKind::ALL.iter().map(|&kind| schema_tool(desk, kind)).collect()
}

fn schema_tool(desk: &Arc<Desk>, kind: ActionKind) -> FnTool {
    let name = tool_name(kind);
    let about = format!("The parameters of the action {kind}, and its rules.");
    tool(desk, name, &about, move |desk: Arc<Desk>, _: Nothing| {
        let key = name.trim_start_matches("get_");
        std::future::ready(desk.keep(key, &explained(kind)))
    })
}

fn tool_name(kind: ActionKind) -> &'static str {
    match kind {
        ActionKind::CreateExperiment => "get_create_experiment_schema",
        ActionKind::UpdateExperiment => "get_update_experiment_schema",
        ActionKind::UpdateExperimentStatus => "get_update_experiment_status_schema",
        ActionKind::DeleteExperiment => "get_delete_experiment_schema",
        ActionKind::InitExperimentUser => "get_init_experiment_user_schema",
        ActionKind::GetDecisionPointAssignments => "get_decision_point_assignments_schema",
        ActionKind::MarkDecisionPoint => "get_mark_decision_point_schema",
    }
}

fn explained(kind: ActionKind) -> Value {
    json!({
        "action": kind,
        "required": actions::required(kind),
        "parameters": kind.schema(),
        "rules": rules(kind),
    })
}

fn rules(kind: ActionKind) -> &'static [&'static str] {
    match kind {
        ActionKind::CreateExperiment => &[
            "context, sites, targets, condition codes and group types are those of the context's metadata, spelt alike",
            "weights sum to exactly 100; without any weights they are equal",
            "no two experiments have one name",
            "group_type is given exactly when assignment_unit is group; consistency_rule group needs it too",
            "with filter_mode excludeAll (the default) only listed students and groups take part: with empty lists nobody",
            "a new experiment is inactive; starting it is update_experiment_status",
        ],
        ActionKind::UpdateExperiment => &[
            "only what is given changes; conditions and decision_points are given whole",
            "a condition that keeps its code keeps its students",
            "conditions and decision points of a running or paused experiment change only with force",
            "inclusion and exclusion lists cannot be changed here",
        ],
        ActionKind::UpdateExperimentStatus => &[
            "usual moves: inactive to enrolling, preview, scheduled or cancelled; preview and scheduled to inactive or \
             enrolling; enrolling to enrollmentComplete or cancelled; enrollmentComplete to enrolling or cancelled; \
             cancelled to archived; any other only with force",
            "start = enrolling; stop or pause = enrollmentComplete; resume = enrolling; cancel or end = cancelled",
            "an experiment starts only with decision points, conditions and weights that sum to 100",
        ],
        ActionKind::DeleteExperiment => &["the person confirms by typing DELETE; it cannot be undone"],
        ActionKind::InitExperimentUser => {
            &["a part that is not given leaves what the server knows of the student"]
        }
        ActionKind::GetDecisionPointAssignments => {
            &["the student must be initialized first", "asking enrols nobody: only a mark does"]
        }
        ActionKind::MarkDecisionPoint => &[
            "the student must be initialized first",
            "the server enrols with the condition of its own draw; the code given is only checked to exist",
        ],
    }
}
