//! The stream of an answer without personal data.

use std::collections::{BTreeMap, VecDeque};

use futures_util::{StreamExt, stream};

use super::Rule;
use super::scrubber::Scrubber;
use crate::error::Result;
use crate::model::{ChatEvent, ChatStream};

/// Cleans the pieces of texts and of thinking, and the response. Held text of a block comes at the latest
/// with the end of the response, because pieces of several blocks may take turns.
pub(super) fn clean(rule: Rule, stream: ChatStream) -> ChatStream {
    let state = Cleaner { rule, stream, open: BTreeMap::new(), ready: VecDeque::new() };
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
    stream: ChatStream,
    open: BTreeMap<(usize, Part), Scrubber>,
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
            ChatEvent::TextDelta { index, text } => self.piece((index, Part::Text), &text)?,
            ChatEvent::ThinkingDelta { index, thinking } => self.piece((index, Part::Thinking), &thinking)?,
            ChatEvent::Restarted {} => {
                self.open.clear();
                self.ready.push_back(ChatEvent::Restarted {});
            }
            ChatEvent::Finished(mut response) => {
                for (place, mut scrubber) in std::mem::take(&mut self.open) {
                    let rest = scrubber.finish(&self.rule)?;
                    self.send(place, rest);
                }
                self.rule.clean_blocks(&mut response.message.content)?;
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
