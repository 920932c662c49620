//! The state of a turn. A turn is a thread: its id is that of the task.

use agentgraph::prelude::*;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value, json};

use super::TaskStatus;
use crate::consent::consent;
use crate::session::{Offer, ShopSession};
use crate::widget::Widget;
use crate::wire::{Click, Frame, RunRequest, Speaker, Spoken};

/// A turn: what was said, what the tools gave, and what was sent.
#[derive(State, Serialize, Deserialize, Clone, Debug, Default)]
pub struct Turn {
    /// The conversation, up to the message or click that the turn begins with.
    pub said: Vec<Spoken>,
    /// The click that the turn begins with.
    pub click: Option<Click>,
    /// The session, as the last tool has left it.
    pub session: ShopSession,
    /// The cart and total that the request consents to order.
    pub consent: Option<Offer>,
    /// What is next.
    pub next: Step,
    /// The chosen tool.
    pub tool: String,
    /// Its arguments.
    pub parameters: Map<String, Value>,
    /// What it gave.
    pub result: Option<ToolRun>,
    /// The tools that were used, with a description of what they gave.
    #[reduce(append)]
    pub uses: Vec<ToolUse>,
    /// What was sent, in order of its making.
    #[reduce(append)]
    pub frames: Vec<Frame>,
    /// The answer.
    pub answer: String,
    /// How the task has ended, if it did not end by itself.
    pub ended: Option<TaskStatus>,
}

/// What is next.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum Step {
    /// The answer.
    #[default]
    RespondToCustomer,
    /// A tool.
    CallTool,
}

/// What a tool gave.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct ToolRun {
    /// What the model reads.
    pub output: String,
    /// What the customer sees.
    pub widget: Option<Widget>,
}

/// A tool that was used in this turn.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct ToolUse {
    /// Its name.
    pub tool: String,
    /// Its arguments.
    pub input: Value,
    /// What it gave.
    pub output: String,
    /// The same in words.
    pub description: String,
}

impl Turn {
    /// The input of a turn.
    pub(super) fn begin(request: RunRequest) -> TurnUpdate {
        let consent = consent(&request);
        let RunRequest { messages, mut session, click } = request;
        let mut said = messages;
        let mut update = Turn::update().consent(consent);
        match click {
            Some(click) => {
                let parameters = Value::Object(click.parameters.clone());
                said.push(Spoken::user(format!("(The customer clicks: {} {parameters})", click.tool)));
                update = update.tool(&*click.tool).parameters(click.parameters.clone()).click(Some(click));
            }
            None => {
                if let Some(mut offer) = session.offer().filter(|offer| offer.is_fresh) {
                    offer.is_fresh = false;
                    session.set_offer(Some(&offer));
                }
            }
        }
        update.said(said).session(session)
    }

    /// A frame of a node. Its message is what the history keeps of the turn so far.
    pub(super) fn frame(&self, session: &ShopSession, node: &str, output: Value, reason: &str) -> Frame {
        let answer = (node == super::node::CUSTOMER_RESPONSE).then(|| output.as_str()).flatten();
        let message = Spoken { role: Speaker::Assistant, content: history(&self.uses, answer) };
        let (session, node, reason) = (session.clone(), node.to_owned(), reason.to_owned());
        Frame { messages: vec![message], session, node, output, reason }
    }
}

/// The message that the history keeps, in the form of xRx.
fn history(uses: &[ToolUse], answer: Option<&str>) -> String {
    let mut parts = Vec::new();
    if !uses.is_empty() {
        parts.push("### Tools Used Before Responding to Customer".to_owned());
        parts.extend(uses.iter().map(|used| format!("* {}: {}", used.tool, used.description)));
    }
    if let Some(answer) = answer {
        parts.push("### Audio Response to Customer".to_owned());
        parts.push(answer.to_owned());
    }
    parts.join("\n")
}

/// The text of an output: JSON as what it is, other text as text.
pub(super) fn decoded(output: &str) -> Value {
    serde_json::from_str(output).unwrap_or_else(|_| json!(output))
}
