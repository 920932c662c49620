//! `derive(Route)`: from an enum to the nodes it names.

mod ast;
mod expand;

use proc_macro2::TokenStream;
use syn::DeriveInput;

use crate::mistakes::Mistakes;

pub(crate) fn derive(input: TokenStream) -> TokenStream {
    let input: DeriveInput = match syn::parse2(input) {
        Ok(input) => input,
        Err(error) => return error.into_compile_error(),
    };
    let mut mistakes = Mistakes::default();
    let Some(route) = ast::read(&input, &mut mistakes) else { return mistakes.into_tokens() };
    if mistakes.is_empty() {
        return expand::expand(&route);
    }
    let mut tokens = mistakes.into_tokens();
    tokens.extend(expand::fallback(&route));
    tokens
}
