//! Mistakes found in the input of a macro, collected so that all of them are reported at once.

use proc_macro2::TokenStream;
use quote::ToTokens;
use syn::Error;

#[derive(Default)]
pub(crate) struct Mistakes(Option<Error>);

impl Mistakes {
    /// Adds a mistake at these tokens.
    pub(crate) fn at(&mut self, tokens: impl ToTokens, message: impl std::fmt::Display) {
        self.add(Error::new_spanned(tokens, message));
    }

    pub(crate) fn add(&mut self, error: Error) {
        match &mut self.0 {
            None => self.0 = Some(error),
            Some(errors) => errors.combine(error),
        }
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.0.is_none()
    }

    /// Returns code that fails to compile with these messages.
    pub(crate) fn into_tokens(self) -> TokenStream {
        self.0.map(Error::into_compile_error).unwrap_or_default()
    }
}
