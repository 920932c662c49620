//! The code after a mistake: the same names with bodies that never run, so that uses of the state give no
//! further messages. Setters take any type, because the mistake may be in the attribute that decides their
//! type.

use proc_macro2::TokenStream;
use quote::quote;

use super::ast::StateStruct;

pub(super) fn expand(state: &StateStruct) -> TokenStream {
    let StateStruct { vis, name, update, .. } = state;
    let setters = setters(state);
    let stored = (!state.volatile).then(|| stored(state));
    quote! {
        #[doc(hidden)]
        #[derive(::core::clone::Clone, ::core::fmt::Debug, ::core::default::Default)]
        #vis struct #update;

        #[allow(dead_code)]
        impl #name {
            #vis fn update() -> #update {
                #update
            }
        }

        #[allow(dead_code)]
        impl #update {
            #setters
            #vis fn is_empty(&self) -> bool {
                true
            }
        }

        #[allow(unused_variables)]
        impl ::agentgraph::State for #name {
            type Schema = ();
            type Update = #update;
            fn channels(_: &()) -> &[::agentgraph::state::Channel] {
                &[]
            }
            fn initial(_: &()) -> Self {
                loop {}
            }
            fn apply(&mut self, _: &(), _: #update) -> ::core::result::Result<(), ::agentgraph::state::StateError> {
                loop {}
            }
            fn peek<__R>(
                &mut self,
                _: &(),
                _: &mut #update,
                _: impl ::core::ops::FnOnce(&Self) -> __R,
            ) -> ::core::result::Result<__R, ::agentgraph::state::StateError> {
                loop {}
            }
            fn reset(&mut self, _: &(), _: ::agentgraph::state::Lifetime) {}
            fn writes(_: &(), _: &#update, _: &mut dyn ::core::ops::FnMut(usize, ::agentgraph::state::WriteKind)) {}
            fn discard(_: &(), _: &mut #update, _: usize) {}
            fn compose(
                _: &(),
                _: &mut #update,
                _: #update,
            ) -> ::core::result::Result<(), ::agentgraph::state::StateError> {
                loop {}
            }
        }

        impl ::agentgraph::node::IntoStep<#name> for #update {
            fn into_step(self) -> ::core::result::Result<::agentgraph::node::Step<#name>, ::agentgraph::BoxError> {
                loop {}
            }
        }

        #stored
    }
}

fn setters(state: &StateStruct) -> TokenStream {
    let vis = &state.vis;
    let mut written = vec!["is_empty".to_owned()];
    let mut setters = TokenStream::new();
    for field in &state.fields {
        for prefix in ["", "overwrite_", "remove_"] {
            let name = format!("{prefix}{}", field.channel);
            let ident = field.method_name(prefix);
            if !written.contains(&name) {
                setters.extend(quote!(#vis fn #ident<__T>(self, _: __T) -> Self { self }));
                written.push(name);
            }
        }
    }
    setters
}

fn stored(state: &StateStruct) -> TokenStream {
    let StateStruct { name, update, .. } = state;
    let (delta, error) =
        (quote!(&mut ::agentgraph::__private::DeltaWriter), quote!(::agentgraph::state::StateError));
    quote! {
        #[allow(unused_variables)]
        impl ::agentgraph::state::StoredState for #name {
            fn apply_recorded(&mut self, _: &(), _: #update, _: #delta) -> ::core::result::Result<(), #error> {
                loop {}
            }
            fn record_channel(&self, _: &(), _: usize, _: #delta) -> ::core::result::Result<(), #error> {
                loop {}
            }
            fn restore_channel(&mut self, _: &(), _: usize, _: &[u8]) -> ::core::result::Result<(), #error> {
                loop {}
            }
            fn encode_update(_: &(), _: &#update) -> ::core::result::Result<::std::vec::Vec<u8>, #error> {
                loop {}
            }
            fn decode_update(_: &(), _: &[u8]) -> ::core::result::Result<#update, #error> {
                loop {}
            }
        }
    }
}
