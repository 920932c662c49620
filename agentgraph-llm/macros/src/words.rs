//! The words of `#[tool(..)]`, and the message about an unknown one.

use syn::Ident;
use syn::parse::{Parse, ParseStream};
use syn::{Error, Result, Token};

/// Returns "`#[tool(..)]` has no `x`" with the words that it has.
pub(crate) fn unknown(word: &Ident, known: &[&str]) -> Error {
    let choices: Vec<_> = known.iter().map(|known| format!("`{known}`")).collect();
    let choices = format!("use {}", choices.join(", "));
    let word_text = word.to_string();
    let message = match nearest(&word_text, known) {
        Some(near) => format!("`#[tool(..)]` has no `{word}`; did you mean `{near}`? ({choices})"),
        None => format!("`#[tool(..)]` has no `{word}`: {choices}"),
    };
    Error::new(word.span(), message)
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
