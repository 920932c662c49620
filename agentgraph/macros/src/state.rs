//! `derive(State)`: from a struct to its update and the implementations of the engine's traits.

mod ast;
mod attributes;
mod expand;
mod fallback;
mod setters;
mod shape;
mod stored;
mod validate;

use proc_macro2::TokenStream;
use syn::DeriveInput;

use crate::mistakes::Mistakes;

pub(crate) fn derive(input: TokenStream) -> TokenStream {
    let input: DeriveInput = match syn::parse2(input) {
        Ok(input) => input,
        Err(error) => return error.into_compile_error(),
    };
    let mut mistakes = Mistakes::default();
    let Some(state) = ast::read(&input, &mut mistakes) else { return mistakes.into_tokens() };
    validate::check(&state, &mut mistakes);
    if mistakes.is_empty() {
        return expand::expand(&state);
    }
    let mut tokens = mistakes.into_tokens();
    tokens.extend(fallback::expand(&state));
    tokens
}
