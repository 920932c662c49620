//! Contexts and decision points: the words of a context's vocabulary in a message.

use super::super::slots::is_free;
use super::super::text::{Text, folded};
use super::names::word_of;

/// The site and the target in a message. If a context has only one site, it need not be named.
pub(in super::super) fn point(
    text: &Text,
    sites: &[String],
    targets: &[String],
) -> (Option<String>, Option<String>) {
    let named = |known: &[String]| word_of(text, known.iter().map(String::as_str)).map(str::to_owned);
    (named(sites), named(targets))
}

/// A text that may be a context: "in the foo context", "context foo", "in foo-app".
pub(in super::super) fn context_guess(text: &Text) -> Option<String> {
    let words = &text.words;
    let noun = |at: usize| words.get(at).is_some_and(|word| word.is(&["context", "app", "application"]));
    let free = |at: usize| words.get(at).filter(|word| is_free(word) || word.low.contains("context"));
    words.iter().enumerate().find_map(|(at, word)| {
        let led = word.is(&["in", "for", "with", "within", "under", "on", "inside", "using"]);
        let from = if led {
            at + 1 + usize::from(words.get(at + 1).is_some_and(|word| word.is(&["the", "a"])))
        } else {
            at + 1
        };
        let guess = match (led, noun(at)) {
            (true, _) if noun(from) => free(from + 1).filter(|word| !word.new_clause),
            (true, _) if noun(from + 1) => free(from),
            (true, _) => free(from)
                .filter(|next| looks_like_context(&next.raw) || word.is(&["in", "within", "inside"])),
            (false, true) => free(at + 1).filter(|word| !word.new_clause),
            _ => None,
        };
        guess.map(|word| word.raw.clone())
    })
}

/// The context of a question about experiments: "in mathstream". A text that only resembles a context is
/// ignored.
pub(in super::super) fn named_context(text: &Text) -> Option<String> {
    let idle = [
        "total",
        "general",
        "detail",
        "details",
        "progress",
        "short",
        "brief",
        "particular",
        "place",
        "use",
        "order",
        "upgrade",
        "production",
        "existence",
        "english",
        "parallel",
        "sum",
        "words",
        "numbers",
        "alphabetical",
        "full",
        "table",
    ];
    let guess = context_guess(text).filter(|guess| !idle.contains(&guess.to_lowercase().as_str()))?;
    Some(guess)
}

fn looks_like_context(raw: &str) -> bool {
    raw.contains(['-', '_']) || folded(raw).contains("context")
}

/// Whether the person leaves a choice to the agent.
pub(in super::super) fn leaves_it_open(text: &Text) -> bool {
    text.has(&[
        "any",
        "whatever",
        "whichever",
        "anything",
        "either",
        "default",
        "defaults",
        "first",
        "random",
    ]) || text.has_phrase("you choose|pick|decide")
        || text.has_phrase("do not|n't care|mind")
        || text.has_phrase("no preference")
        || text.has_phrase("up to you")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_context_is_guessed_only_if_the_message_names_one() {
        let guess = |message| context_guess(&Text::read(message));
        assert_eq!(guess("create experiment with invalid-context").as_deref(), Some("invalid-context"));
        assert_eq!(guess("create test Foo in the moonbase app").as_deref(), Some("moonbase"));
        assert_eq!(guess("new study for context moonbase").as_deref(), Some("moonbase"));
        assert_eq!(guess("create experiment Foo"), None);
        assert_eq!(guess("an experiment for teachers"), None);
    }

    #[test]
    fn site_and_target_are_found_in_any_order() {
        let sites = ["SelectSection".to_owned(), "workspace".to_owned()];
        let targets = ["absolute_value_plot_equality".to_owned()];
        let found = point(&Text::read("absolute value plot equality at selectsection"), &sites, &targets);
        assert_eq!(found, (Some("SelectSection".into()), Some("absolute_value_plot_equality".into())));
        assert_eq!(point(&Text::read("dunno"), &sites, &targets), (None, None));
    }
}
