//! The script of the model.

use std::collections::VecDeque;
use std::sync::{Arc, Mutex};

use agentgraph_llm::{ChatRequest, Code, Error, Reply, ScriptedModel};
use serde_json::{Value, json};

/// A list of replies that can be added to.
#[derive(Clone, Default)]
pub(crate) struct Script {
    replies: Arc<Mutex<VecDeque<Reply>>>,
    asked: Arc<Mutex<Vec<ChatRequest>>>,
}

impl Script {
    pub(crate) fn new() -> Self {
        Self::default()
    }

    pub(crate) fn add(&self, replies: impl IntoIterator<Item = Reply>) {
        self.replies.lock().unwrap().extend(replies);
    }

    /// Returns the number of replies left.
    pub(crate) fn left(&self) -> usize {
        self.replies.lock().unwrap().len()
    }

    /// Returns the requests to the model since the last call.
    pub(crate) fn asked(&self) -> Vec<ChatRequest> {
        std::mem::take(&mut *self.asked.lock().unwrap())
    }

    /// Returns a model that follows the list, and fails at its end.
    pub(crate) fn model(&self) -> ScriptedModel {
        let script = self.clone();
        ScriptedModel::from_fn(move |request| {
            script.asked.lock().unwrap().push(request.clone());
            let next = script.replies.lock().unwrap().pop_front();
            next.unwrap_or_else(|| Reply::error(Error::new(Code::ScriptExhausted, "no reply is left")))
        })
    }
}

/// Returns a reply of the analyzer.
pub(crate) fn wants(intent: &str, confidence: f64) -> Reply {
    let call = json!({
        "intent": intent,
        "confidence": confidence,
        "user_request_summary": "as said",
        "reasoning": "as said",
    });
    Reply::tool_call("analyze_user_request", call)
}

/// Returns a reply of the gatherer: an action with its parameters.
pub(crate) fn acts(action: &str, params: Value) -> Reply {
    Reply::tool_call("set_action_needed", json!({ "action": action, "reasoning": "as said" }))
        .and_tool_call("set_action_params", json!({ "action_params": params }))
}

/// Returns the replies of the model that request an action in one turn.
pub(crate) fn request(action: &str, params: Value) -> Vec<Reply> {
    vec![wants("needs_info", 0.95), acts(action, params), Reply::text("ready")]
}
