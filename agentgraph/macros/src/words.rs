//! The known words of an attribute, and the message about an unknown one.

use syn::Ident;
use syn::ext::IdentExt;
use syn::parse::{Parse, ParseStream};
use syn::{Error, Result, Token};

/// The words of one attribute, such as `append` in `#[reduce(append)]`.
pub(crate) struct Words {
    pub(crate) attribute: &'static str,
    pub(crate) known: &'static [&'static str],
}

impl Words {
    /// Reads the next word, which must be a known one.
    pub(crate) fn parse(&self, input: ParseStream) -> Result<Ident> {
        if input.is_empty() {
            return Err(input.error(format!("`#[{}(..)]` is empty: {}", self.attribute, self.choices())));
        }
        let Ok(word) = input.call(Ident::parse_any) else {
            return Err(input.error(format!("`#[{}(..)]` takes words: {}", self.attribute, self.choices())));
        };
        if self.known.iter().any(|known| word == known) {
            Ok(word)
        } else {
            Err(Error::new(word.span(), self.unknown(&word.to_string())))
        }
    }

    /// Returns "use one of `a`, `b` and `c`".
    pub(crate) fn choices(&self) -> String {
        match self.known {
            [] => String::new(),
            [one] => format!("use `{one}`"),
            [first @ .., last] => {
                let first: Vec<_> = first.iter().map(|word| format!("`{word}`")).collect();
                format!("use one of {} and `{last}`", first.join(", "))
            }
        }
    }

    fn unknown(&self, word: &str) -> String {
        let choices = self.choices();
        match nearest(word, self.known) {
            Some(near) if self.known.len() == 1 => {
                format!("`#[{}(..)]` has no `{word}`; did you mean `{near}`?", self.attribute)
            }
            Some(near) => {
                format!("`#[{}(..)]` has no `{word}`; did you mean `{near}`? ({choices})", self.attribute)
            }
            None => format!("`#[{}(..)]` has no `{word}`: {choices}", self.attribute),
        }
    }
}

fn nearest<'a>(wrong: &str, known: &[&'a str]) -> Option<&'a str> {
    let allowed = (wrong.chars().count() / 3).max(1);
    let near = known.iter().map(|word| (strsim::damerau_levenshtein(wrong, word), *word));
    near.filter(|(distance, _)| *distance <= allowed).min().map(|(_, word)| word)
}

/// Reads the value after a word's `=`.
pub(crate) fn value<T: Parse>(input: ParseStream, word: &Ident, example: &str) -> Result<T> {
    if !input.peek(Token![=]) {
        return Err(Error::new(word.span(), format!("`{word}` needs a value: `{example}`")));
    }
    input.parse::<Token![=]>()?;
    input
        .parse()
        .map_err(|error| Error::new(error.span(), format!("`{word}` is written `{example}`: {error}")))
}

/// Checks that no value follows the word.
pub(crate) fn no_value(input: ParseStream, word: &Ident) -> Result<()> {
    if input.is_empty() || input.peek(Token![,]) {
        Ok(())
    } else {
        Err(input.error(format!("`{word}` takes no value")))
    }
}

/// Reads the comma before the next word. Returns whether there is a next word.
pub(crate) fn next(input: ParseStream) -> Result<bool> {
    if input.is_empty() {
        return Ok(false);
    }
    input.parse::<Token![,]>()?;
    Ok(!input.is_empty())
}
