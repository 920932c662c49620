//! `#[tool]`: reads the function, checks it, and writes the tool.

mod ast;
mod docs;
mod expand;
mod parameter;
mod settings;
mod validate;

use proc_macro2::TokenStream;
use quote::quote;
use syn::ItemFn;

use crate::mistakes::Mistakes;
use ast::ToolFunction;

pub(crate) fn expand(settings: TokenStream, function: TokenStream) -> TokenStream {
    let mut mistakes = Mistakes::default();
    let Ok(item) = syn::parse2::<ItemFn>(function.clone()) else {
        mistakes.at(function.clone().into_iter().next(), "`#[tool]` belongs on a function");
        let messages = mistakes.into_tokens();
        return quote!(#messages #function);
    };
    validate::signature(&item.sig, &mut mistakes);
    let is_method = item.sig.receiver().is_some();
    let tool = ToolFunction::read(settings, item, &mut mistakes);
    if mistakes.is_empty() {
        return expand::tool(&tool);
    }
    // A method is written in an `impl`, where there can be no type.
    let fallback = (!is_method).then(|| expand::fallback(&tool));
    let messages = mistakes.into_tokens();
    quote!(#messages #fallback)
}
