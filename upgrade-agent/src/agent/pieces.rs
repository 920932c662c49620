//! [`Pieces`]: the text of a reply that comes in pieces over a relay, which loses some of them and repeats
//! others. What was passed on cannot be taken back, so only pieces that continue it are passed on.

/// The text of a reply under way.
#[derive(Debug, Default)]
pub(super) struct Pieces {
    /// The text that was passed on.
    given: String,
    /// The text from the node that writes the reply, since it has begun.
    written: String,
    /// Whether some of that is lost.
    has_lost: bool,
}

impl Pieces {
    /// Takes the next piece. Returns the text to pass on, if there is any.
    pub(super) fn take(&mut self, piece: &str) -> Option<String> {
        if self.has_lost {
            return None;
        }
        self.written.push_str(piece);
        let more = self.written.strip_prefix(&*self.given).filter(|more| !more.is_empty())?.to_owned();
        self.given.push_str(&more);
        Some(more)
    }

    /// Pieces are lost here. Those that follow do not continue the text.
    pub(super) fn lose(&mut self) {
        self.has_lost = true;
    }

    /// The node runs again. Its pieces come again from the first one, and may be others.
    pub(super) fn restart(&mut self) {
        self.written.clear();
        self.has_lost = false;
    }

    /// The end of a reply, as far as it was not passed on. `None` if that is nothing, or if the text that was
    /// passed on is not its beginning.
    pub(super) fn rest(&self, reply: &str) -> Option<String> {
        reply.strip_prefix(&*self.given).filter(|rest| !rest.is_empty()).map(str::to_owned)
    }
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use proptest::collection::vec;
    use proptest::prelude::*;

    use super::*;

    #[derive(Clone, Debug)]
    enum Event {
        Piece(String),
        Gap,
        Restart,
    }

    /// The text that was passed on.
    fn read(pieces: &mut Pieces, events: &[Event]) -> String {
        let mut passed_on = String::new();
        for event in events {
            match event {
                Event::Piece(piece) => passed_on.extend(pieces.take(piece)),
                Event::Gap => pieces.lose(),
                Event::Restart => pieces.restart(),
            }
        }
        passed_on
    }

    fn written(words: &[&str]) -> Vec<Event> {
        words.iter().map(|word| Event::Piece((*word).to_owned())).collect()
    }

    #[test]
    fn a_node_that_runs_again_and_writes_the_same_is_not_noticed() {
        let mut pieces = Pieces::default();
        let events =
            [written(&["Hel", "lo "]), vec![Event::Restart], written(&["H", "ello wo", "rld"])].concat();
        assert_eq!(read(&mut pieces, &events), "Hello world");
        assert_eq!(pieces.rest("Hello world"), None);
    }

    #[test]
    fn a_node_that_runs_again_and_writes_something_else_is_not_mixed_with_what_was_passed_on() {
        let mut pieces = Pieces::default();
        let events = [written(&["Hello"]), vec![Event::Restart], written(&["Good ", "day"])].concat();
        assert_eq!(read(&mut pieces, &events), "Hello");
        assert_eq!(pieces.rest("Good day"), None);
    }

    /// A reply in pieces, of which each execution writes some, and some of them are lost.
    fn executions() -> impl Strategy<Value = (Vec<String>, Vec<Event>)> {
        let words = vec("[a-c ü]{0,4}", 0..8);
        words.prop_flat_map(|words| {
            let cuts = vec((0..=words.len(), proptest::option::of(0..=words.len())), 0..4);
            (Just(words), cuts).prop_map(|(words, cuts)| {
                let all = (words.len(), None);
                let mut events = Vec::new();
                for (length, lost) in cuts.into_iter().chain([all]) {
                    for (at, word) in words[..length].iter().enumerate() {
                        events.push(if lost == Some(at) { Event::Gap } else { Event::Piece(word.clone()) });
                    }
                    events.push(Event::Restart);
                }
                events.pop();
                (words, events)
            })
        })
    }

    proptest! {
        /// However often the node runs again and whatever is lost, a reader has the reply at the end.
        #[test]
        fn what_is_passed_on_and_the_rest_are_the_reply((words, events) in executions()) {
            let mut pieces = Pieces::default();
            let mut passed_on = read(&mut pieces, &events);
            let reply = words.concat();
            prop_assert!(reply.starts_with(&passed_on));
            passed_on.extend(pieces.rest(&reply));
            prop_assert_eq!(passed_on, reply);
        }

        /// Whatever the executions write, what is passed on is a beginning of what one of them has written.
        #[test]
        fn texts_are_never_mixed(texts in vec(vec("[ab]{0,2}", 0..5), 0..4)) {
            let events: Vec<Event> = texts
                .iter()
                .flat_map(|words| words.iter().cloned().map(Event::Piece).chain([Event::Restart]))
                .collect();
            let passed_on = read(&mut Pieces::default(), &events);
            prop_assert!(
                passed_on.is_empty() || texts.iter().any(|words| words.concat().starts_with(&passed_on))
            );
        }
    }
}
