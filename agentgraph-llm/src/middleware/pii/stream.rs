//! The stream of an answer without personal data.

use std::collections::{BTreeMap, VecDeque};

use futures_util::{StreamExt, stream};

use super::scrubber::Scrubber;
use super::{Rule, json};
use crate::error::Result;
use crate::message::ToolInput;
use crate::model::{ChatEvent, ChatStream};

/// The parts of an answer that are cleaned.
#[derive(Clone, Copy)]
pub(super) struct Parts {
    pub(super) texts: bool,
    pub(super) arguments: bool,
}

/// Cleans the pieces of an answer, and the response. Held text of a block comes at the latest with the end of
/// the response, because pieces of several blocks may take turns. Arguments always come then: a string of
/// JSON is known only when it is whole.
pub(super) fn clean(rule: Rule, parts: Parts, stream: ChatStream) -> ChatStream {
    let state = Cleaner {
        rule,
        parts,
        stream,
        open: BTreeMap::new(),
        inputs: BTreeMap::new(),
        ready: VecDeque::new(),
    };
    ChatStream::new(stream::unfold(Some(state), |state| async {
        let mut state = state?;
        match state.next().await? {
            Ok(event) => Some((Ok(event), Some(state))),
            Err(error) => Some((Err(error), None)),
        }
    }))
}

#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum Part {
    Text,
    Thinking,
}

struct Cleaner {
    rule: Rule,
    parts: Parts,
    stream: ChatStream,
    open: BTreeMap<(usize, Part), Scrubber>,
    /// The arguments so far, by block.
    inputs: BTreeMap<usize, String>,
    ready: VecDeque<ChatEvent>,
}

impl Cleaner {
    async fn next(&mut self) -> Option<Result<ChatEvent>> {
        loop {
            if let Some(event) = self.ready.pop_front() {
                return Some(Ok(event));
            }
            let cleaned = match self.stream.next().await? {
                Ok(event) => self.clean(event),
                Err(error) => Err(error),
            };
            if let Err(error) = cleaned {
                return Some(Err(error));
            }
        }
    }

    fn clean(&mut self, event: ChatEvent) -> Result<()> {
        match event {
            ChatEvent::TextDelta { index, text } if self.parts.texts => {
                self.piece((index, Part::Text), &text)?;
            }
            ChatEvent::ThinkingDelta { index, thinking } if self.parts.texts => {
                self.piece((index, Part::Thinking), &thinking)?;
            }
            ChatEvent::ToolInputDelta { index, json } if self.parts.arguments => {
                self.inputs.entry(index).or_default().push_str(&json);
            }
            ChatEvent::Restarted {} => {
                self.open.clear();
                self.inputs.clear();
                self.ready.push_back(ChatEvent::Restarted {});
            }
            ChatEvent::Finished(mut response) => {
                for (place, mut scrubber) in std::mem::take(&mut self.open) {
                    let rest = scrubber.finish(&self.rule)?;
                    self.send(place, rest);
                }
                for (index, text) in std::mem::take(&mut self.inputs) {
                    let input = json::clean_input(&self.rule, &ToolInput::from_text(text))?;
                    self.ready.push_back(ChatEvent::ToolInputDelta { index, json: input.text().to_owned() });
                }
                if self.parts.texts {
                    self.rule.clean_blocks(&mut response.message.content)?;
                }
                if self.parts.arguments {
                    self.rule.clean_calls(&mut response.message.content)?;
                }
                self.ready.push_back(ChatEvent::Finished(response));
            }
            other => self.ready.push_back(other),
        }
        Ok(())
    }

    fn piece(&mut self, place: (usize, Part), text: &str) -> Result<()> {
        let scrubber = self.open.entry(place).or_insert_with(Scrubber::new);
        let clean = scrubber.push(&self.rule, text)?;
        self.send(place, clean);
        Ok(())
    }

    fn send(&mut self, (index, part): (usize, Part), text: String) {
        if !text.is_empty() {
            self.ready.push_back(match part {
                Part::Text => ChatEvent::TextDelta { index, text },
                Part::Thinking => ChatEvent::ThinkingDelta { index, thinking: text },
            });
        }
    }
}
