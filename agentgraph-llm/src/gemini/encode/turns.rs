//! The messages of a conversation as contents.

use std::borrow::Cow;
use std::collections::HashMap;

use super::part::{self, CalledTool};
use crate::gemini::content::continuation;
use crate::json::{Object, RawJson};
use crate::message::{Block, Message, Role};

/// The contents, and the token of a turn that is to be continued. The server has the pieces of such a turn
/// already.
pub(super) fn contents(messages: &[Cow<'_, Message>]) -> (RawJson, Option<RawJson>) {
    let token = |message: &Message| message.content.iter().find_map(continuation);
    let paused = messages.iter().rev().take_while(|message| token(message).is_some()).count();
    let (messages, pieces) = messages.split_at(messages.len() - paused);
    let mut calls = HashMap::new();
    let contents: Vec<_> = turns(messages).into_iter().filter_map(|turn| turn.content(&mut calls)).collect();
    (RawJson::array(&contents), pieces.last().and_then(|message| token(message)))
}

struct Turn<'a> {
    is_model: bool,
    blocks: Vec<&'a Block>,
}

fn turns<'a>(messages: &'a [Cow<'_, Message>]) -> Vec<Turn<'a>> {
    let mut turns: Vec<Turn<'a>> = Vec::new();
    for message in messages {
        let is_model = match message.role {
            Role::System => continue,
            Role::User => false,
            Role::Assistant => true,
        };
        match turns.last_mut() {
            Some(last) if last.is_model == is_model => last.blocks.extend(&message.content),
            _ => turns.push(Turn { is_model, blocks: message.content.iter().collect() }),
        }
    }
    turns
}

impl<'a> Turn<'a> {
    /// `None` for a turn without parts, which the API rejects.
    fn content(mut self, calls: &mut HashMap<&'a str, CalledTool<'a>>) -> Option<RawJson> {
        for call in self.blocks.iter().filter_map(|block| block.as_tool_use()) {
            let order = calls.len();
            calls.insert(&call.id, CalledTool { name: &call.name, order });
        }
        if !self.is_model {
            let order = |id: &str| calls.get(id).map_or(usize::MAX - 1, |call| call.order);
            self.blocks.sort_by_key(|block| {
                block.as_tool_result().map_or(usize::MAX, |result| order(&result.tool_use_id))
            });
        }
        let parts: Vec<_> = self
            .blocks
            .into_iter()
            .filter_map(|block| match block {
                Block::ToolResult(result) => Some(part::result(result, calls.get(&*result.tool_use_id))),
                block => part::part(block),
            })
            .collect();
        if parts.is_empty() {
            return None;
        }
        let role = if self.is_model { "model" } else { "user" };
        let content =
            Object::default().with("role", RawJson::string(role)).with("parts", RawJson::array(&parts));
        Some(content.to_json())
    }
}
