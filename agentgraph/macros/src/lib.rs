//! The macros of agentgraph.
use proc_macro::TokenStream;

/// Derives `State`.
#[proc_macro_derive(State, attributes(reduce, channel, state))]
pub fn derive_state(_: TokenStream) -> TokenStream {
    TokenStream::new()
}

/// Derives `Route`.
#[proc_macro_derive(Route, attributes(route))]
pub fn derive_route(_: TokenStream) -> TokenStream {
    TokenStream::new()
}

/// Checks a node.
#[proc_macro_attribute]
pub fn node(_: TokenStream, item: TokenStream) -> TokenStream {
    item
}
