//! "Force it", "do it anyway": a message that repeats the last request with more emphasis and without its
//! content.

use super::intent::{Request, understand};
use super::slots;
use super::text::Text;

/// How many messages back the request may be.
const REACH: usize = 4;

/// The last message. If it only insists, the request and all messages after it.
pub(super) fn spelled_out(spoken: &[String]) -> String {
    let Some((last, before)) = spoken.split_last() else { return String::new() };
    if !only_insists(&Text::read(last)) {
        return last.clone();
    }
    let near = &before[before.len().saturating_sub(REACH)..];
    let wish = near.iter().rposition(|said| matches!(understand(&Text::read(said)).ask, Request::Do(_)));
    match wish {
        Some(at) => near[at..].iter().chain([last]).map(String::as_str).collect::<Vec<_>>().join("\n"),
        None => last.clone(),
    }
}

/// Whether the message insists and names nothing.
fn only_insists(text: &Text) -> bool {
    slots::insists(text) && text.words.iter().all(|word| !slots::is_free(word) || slots::is_insisting(word))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn spelled(spoken: &[&str]) -> String {
        spelled_out(&spoken.iter().map(|&said| said.to_owned()).collect::<Vec<_>>())
    }

    #[test]
    fn a_message_that_only_insists_repeats_the_last_request() {
        let said = spelled(&["hi", "set the weights of Foo to 70/30", "force it"]);
        assert_eq!(said, "set the weights of Foo to 70/30\nforce it");
        let said = spelled(&["change the weights of Foo", "70/30", "do it anyway"]);
        assert_eq!(said, "change the weights of Foo\n70/30\ndo it anyway");
    }

    #[test]
    fn other_messages_are_not_extended() {
        assert_eq!(spelled(&["start Foo", "list the experiments"]), "list the experiments");
        assert_eq!(spelled(&["hello", "force it"]), "force it");
        assert_eq!(spelled(&["start Foo", "force Bar to stop"]), "force Bar to stop");
        assert_eq!(spelled(&[]), "");
    }
}
