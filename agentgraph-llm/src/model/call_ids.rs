//! The ids of the calls of one response, made distinct.

use std::collections::HashSet;

use super::ChatEvent;

/// Gives each call of a response an id of its own.
///
/// A result names its call by the id. Some servers write one id twice in an answer, or an empty one; then a
/// result would answer several calls. Such an id gets a number behind it.
#[derive(Debug, Default)]
pub(crate) struct CallIds(HashSet<String>);

impl CallIds {
    pub(crate) fn make_distinct(&mut self, event: &mut ChatEvent) {
        match event {
            ChatEvent::ToolUseStarted { id, .. } => self.add(id),
            ChatEvent::Restarted {} => self.0.clear(),
            ChatEvent::Finished(response) => {
                let mut ids = CallIds::default();
                response
                    .message
                    .content
                    .iter_mut()
                    .filter_map(|block| block.as_tool_use_mut())
                    .for_each(|call| ids.add(&mut call.id));
            }
            _ => {}
        }
    }

    fn add(&mut self, id: &mut String) {
        if !id.is_empty() && self.0.insert(id.clone()) {
            return;
        }
        let name = if id.is_empty() { "call" } else { id.as_str() };
        let numbered = (2_usize..).map(|number| format!("{name}-{number}"));
        if let Some(free) = numbered.into_iter().find(|free| !self.0.contains(free)) {
            self.0.insert(free.clone());
            *id = free;
        }
    }
}
