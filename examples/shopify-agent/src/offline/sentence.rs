//! The sentences that the offline model knows.

/// Examples of them, which it tells a customer whom it does not understand.
pub(super) const FORMS: &str = "what's on the menu; what kind of wings do you have; tell me about the garden pizza; I'll get 6 \
    lemon garlic and 12 hot buffalo; add 2 colas; remove the fries; show my cart; place the order; where is my order; \
    yes; no thanks; hello";

/// A sentence of the customer.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Sentence {
    /// What there is, of some kind.
    List(Option<String>),
    Details(String),
    Add(Vec<Item>),
    Remove(Vec<Item>),
    Cart,
    Order,
    Status,
    Yes,
    No,
    Greeting,
    Unknown,
}

/// Something that is named, and how many of it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Item {
    pub(super) quantity: Option<i64>,
    pub(super) name: String,
}

/// Sentences as a whole, several in one text.
const WHOLE: [(&str, Sentence); 7] = [
    ("|hello|hi|hey|good morning|good evening", Sentence::Greeting),
    ("thanks|thank you|no|no thanks|no thank you|nothing else|that's all|that is all", Sentence::No),
    (
        "what's on the menu|what is on the menu|show me the menu|the menu|menu|what do you have|what products do you \
         have|show me everything|everything|what can i get",
        Sentence::List(None),
    ),
    ("show my cart|what is in my cart|what's in my cart|my cart|cart", Sentence::Cart),
    ("where is my order|where's my order|order status", Sentence::Status),
    ("place the order|place my order|order now|confirm|checkout|check out", Sentence::Order),
    ("yes|yeah|yep|sure|ok|okay|do it|go ahead", Sentence::Yes),
];
const ADD: &str =
    "i'll get|i'll have|i'll take|i will have|i want|i'd like|i would like|can i get|give me|add";
const REMOVE: &str = "remove|delete|take out|take away";
const LIST: &str = "what|which|do you have|show me your|show me all";
const DETAILS: &str = "tell me about|tell me more about|more about|details of|show me the|how much is";
/// Words of a question that are no part of what it asks for.
const FILLERS: &str = "a|an|the|any|some|of|do|you|have|your|kind|kinds|sauce|flavor|are|there|today|and";

impl Sentence {
    pub(super) fn read(text: &str) -> Self {
        let said = plain(text);
        let opened = ["yeah ", "yes ", "ok ", "okay ", "please ", "and "];
        let said =
            opened.iter().fold(said.as_str(), |said, opening| said.strip_prefix(opening).unwrap_or(said));
        let said = said.strip_suffix(" please").unwrap_or(said);
        if let Some((_, whole)) = WHOLE.iter().find(|(list, _)| list.split('|').any(|one| one == said)) {
            return whole.clone();
        }
        let after = |openings: &str| {
            let rests =
                openings.split('|').filter_map(|opening| said.strip_prefix(opening)?.strip_prefix(' '));
            rests.min_by_key(|rest| rest.len())
        };
        let read = || match (after(ADD), after(REMOVE), after(DETAILS), after(LIST)) {
            (Some(rest), ..) => Some(Sentence::Add(items(rest)?)),
            (_, Some(rest), ..) => Some(Sentence::Remove(items(rest)?)),
            (_, _, Some(rest), _) => Some(Sentence::Details(named(rest)?)),
            (.., Some(rest)) => Some(Sentence::List(Some(named(rest)?))),
            _ => None,
        };
        read().unwrap_or(Sentence::Unknown)
    }
}

/// Lower case, without signs but apostrophes and the minus of a number.
fn plain(text: &str) -> String {
    let is_kept = |c: char| c.is_alphanumeric() || c.is_whitespace() || matches!(c, '\'' | '-');
    let text: String =
        text.replace('\u{2019}', "'").replace(',', " and ").chars().filter(|c| is_kept(*c)).collect();
    text.to_lowercase().split_whitespace().collect::<Vec<_>>().join(" ").replace("and and ", "and ")
}

/// The words of a name in the singular, without fillers.
pub(super) fn words(name: &str) -> Vec<String> {
    let words = plain(name);
    let words = words.split(' ').map(|word| match word.strip_suffix('s') {
        Some(singular) if singular.len() > 2 && !singular.ends_with('s') => singular.to_owned(),
        _ => word.to_owned(),
    });
    words.filter(|word| !word.is_empty() && !FILLERS.split('|').any(|filler| filler == word)).collect()
}

fn named(text: &str) -> Option<String> {
    Some(words(text).join(" ")).filter(|name| !name.is_empty())
}

/// `6 lemon garlic and 12 hot buffalo`; `None` if a part names nothing.
fn items(text: &str) -> Option<Vec<Item>> {
    let text = format!("{text} ").replace(" from my cart ", " ").replace(" to my cart ", " ");
    let words: Vec<&str> = text.split_whitespace().collect();
    words.split(|word| *word == "and").map(item).collect()
}

fn item(words: &[&str]) -> Option<Item> {
    let (first, rest) = words.split_first()?;
    let quantity = match *first {
        "a" | "an" | "one" => Some(1),
        number => number.parse().ok(),
    };
    let name = if quantity.is_some() { rest } else { words };
    Some(Item { quantity, name: named(&name.join(" "))? })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_form_that_is_offered_is_understood() {
        for form in FORMS.split("; ") {
            assert_ne!(Sentence::read(form), Sentence::Unknown, "{form}");
        }
        assert_eq!(FORMS.split("; ").count(), 12);
    }

    #[test]
    fn the_sentences_of_the_document_are_read() {
        let list = Sentence::List(Some("wing".to_owned()));
        assert_eq!(Sentence::read("What kind of wing sauces do you have?"), list);
        let item = |quantity, name: &str| Item { quantity: Some(quantity), name: name.to_owned() };
        let items = vec![item(6, "lemon garlic"), item(12, "hot buffalo")];
        assert_eq!(Sentence::read("Yeah I'll get 6 lemon garlic and 12 hot buffalo"), Sentence::Add(items));
    }

    #[test]
    fn what_is_not_known_is_not_guessed() {
        for text in ["The weather is nice", "add and", "sing a song", "yes maybe later", "ordering is fun"] {
            assert_eq!(Sentence::read(text), Sentence::Unknown, "{text}");
        }
    }
}
