//! The request of an LLM node.

use agentgraph::dependency::Deps;
use serde_json::Value;

use super::answer::Exchange;
use crate::error::Result;
use crate::message::Message;
use crate::model::ChatRequest;
use crate::template::Template;

/// The key of the database that contains the shorthands.
const SHORTHANDS: &str = "shorthands";

/// The parts of a node's request, for [`LlmNode::compose`](crate::LlmNode::compose).
#[non_exhaustive]
pub struct Composition<'a, O: 'static> {
    /// The node's name.
    pub node: &'a str,
    /// The instructions, with the values of the database.
    pub system: Option<String>,
    /// The prompt, with the values of the database.
    pub prompt: String,
    /// The outputs of the dependencies, in the order of the edges.
    pub deps: &'a Deps<'static, O>,
    /// The database; `null` if the node has none.
    pub db: &'a Value,
}

impl<'a, O: Exchange> Composition<'a, O> {
    pub(super) fn new(
        node: &'a str,
        (system, prompt): (Option<&Template>, &Template),
        deps: &'a Deps<'static, O>,
        db: &'a Value,
    ) -> Result<Self> {
        let system = system.map(|system| system.render(db)).transpose()?;
        Ok(Composition { node, system, prompt: prompt.render(db)?, deps, db })
    }

    /// The default request: instructions, [turns](Self::turns), prompt.
    pub fn request(&self) -> ChatRequest {
        let mut messages = self.turns();
        messages.push(Message::user(&self.prompt));
        let mut request = ChatRequest::new(messages);
        request.system.clone_from(&self.system);
        request
    }

    /// Each dependency as a prompt and its answer. A dependency with an entry in the `shorthands` of the
    /// database becomes one system message instead: the shorthand, a colon and the result.
    pub fn turns(&self) -> Vec<Message> {
        self.deps.iter().flat_map(|(name, output)| self.turn(name, output)).collect()
    }

    fn turn(&self, name: &str, output: &O) -> Vec<Message> {
        let shorthand = self.db.get(SHORTHANDS).and_then(|shorthands| shorthands.get(name)?.as_str());
        if let Some(shorthand) = shorthand {
            return vec![Message::system(format!("{shorthand}:\n\n{}", output.result()))];
        }
        let prompt = output.prompt().unwrap_or(name);
        vec![Message::user(prompt), Message::assistant(output.result())]
    }
}
