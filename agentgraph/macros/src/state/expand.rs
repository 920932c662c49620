//! Writes the update and the implementations of `State` and `IntoStep`.

use proc_macro2::{Span, TokenStream};
use quote::{format_ident, quote, quote_spanned};
use syn::Ident;
use syn::spanned::Spanned;

use super::ast::{Field, Lifetime, Reduce, StateStruct};
use super::{setters, stored};

pub(super) fn expand(state: &StateStruct) -> TokenStream {
    let functions: TokenStream = state.fields.iter().map(|field| reduce_function(state, field)).collect();
    let update = update_struct(state);
    let implementation = state_impl(state);
    let step = step_impl(state);
    let stored = (!state.volatile).then(|| stored::expand(state));
    quote! {
        #functions
        #update
        const _: () = {
            #implementation
            #step
            #stored
        };
    }
}

/// The reducer's type.
pub(super) fn reducer(state: &StateStruct, field: &Field) -> TokenStream {
    let span = field.ty.span();
    match &field.reduce {
        Reduce::Once => quote_spanned!(span=> ::agentgraph::reduce::Once),
        Reduce::Last => quote_spanned!(span=> ::agentgraph::reduce::Last),
        Reduce::Append(_) => quote_spanned!(span=> ::agentgraph::reduce::Append),
        Reduce::Merge(_) => quote_spanned!(span=> ::agentgraph::reduce::Merge),
        Reduce::ById(_) => quote_spanned!(span=> ::agentgraph::reduce::ById),
        Reduce::Reducer(reducer, _) => quote!(#reducer),
        Reduce::With(..) => {
            let function = function_type(state, field);
            quote_spanned!(span=> ::agentgraph::reduce::With<#function>)
        }
    }
}

fn function_type(state: &StateStruct, field: &Field) -> Ident {
    format_ident!("__{}_{}", state.name, field.channel, span = Span::call_site())
}

/// The type that stands for the function of `#[reduce(with = function)]`.
fn reduce_function(state: &StateStruct, field: &Field) -> TokenStream {
    let Reduce::With(function, said) = &field.reduce else { return TokenStream::new() };
    let name = function_type(state, field);
    let ty = &field.ty;
    let write = said.as_deref().unwrap_or(ty);
    let (value, write_name) =
        (Ident::new("value", Span::mixed_site()), Ident::new("write", Span::mixed_site()));
    let call = quote_spanned!(function.span()=> #function(#value, #write_name));
    quote! {
        #[doc(hidden)]
        #[allow(non_camel_case_types)]
        struct #name;
        #[automatically_derived]
        impl ::agentgraph::reduce::ReduceFn<#ty> for #name {
            type Write = #write;
            fn call(#value: &mut #ty, #write_name: #write) {
                let _ = #call;
            }
        }
    }
}

fn update_struct(state: &StateStruct) -> TokenStream {
    let StateStruct { vis, name, update, fields, .. } = state;
    let slots = fields.iter().map(|field| {
        let (ident, ty, reducer) = (&field.ident, &field.ty, reducer(state, field));
        quote_spanned!(ty.span()=> #ident: ::agentgraph::reduce::Slot<#ty, #reducer>)
    });
    let idents: Vec<_> = fields.iter().map(|field| &field.ident).collect();
    let channels = fields.iter().map(|field| &field.channel);
    let setters = setters::all(state);
    let about = format!(" A partial [`{name}`]: what a node writes to its channels.");
    let makes = format!(" A [`{update}`] that writes nothing yet.");
    quote! {
        #[doc = #about]
        #[derive(::core::clone::Clone, ::core::default::Default)]
        #[must_use = "an update does nothing until a node returns it"]
        #vis struct #update {
            #(#slots,)*
        }

        #[automatically_derived]
        #[allow(dead_code, private_interfaces, clippy::all)]
        impl #name {
            #[doc = #makes]
            #vis fn update() -> #update {
                ::core::default::Default::default()
            }
        }

        #[automatically_derived]
        #[allow(dead_code, private_interfaces, clippy::all)]
        impl #update {
            #setters

            /// Whether it writes to no channel.
            #[must_use]
            #vis fn is_empty(&self) -> bool {
                true #(&& self.#idents.kind().is_none())*
            }
        }

        /// Says which channels it writes and how, and not what: a state may hold secrets.
        #[automatically_derived]
        impl ::core::fmt::Debug for #update {
            fn fmt(&self, out: &mut ::core::fmt::Formatter<'_>) -> ::core::fmt::Result {
                let mut written = out.debug_struct(::core::stringify!(#update));
                #(
                    if let ::core::option::Option::Some(kind) = self.#idents.kind() {
                        written.field(#channels, &kind);
                    }
                )*
                written.finish()
            }
        }
    }
}

fn state_impl(state: &StateStruct) -> TokenStream {
    let StateStruct { name, update, fields, .. } = state;
    let idents: Vec<_> = fields.iter().map(|field| &field.ident).collect();
    let backwards: Vec<_> = idents.iter().rev().collect();
    let numbers: Vec<_> = (0..fields.len()).collect();
    let undo: Vec<_> =
        numbers.iter().map(|number| format_ident!("undo_{number}", span = Span::mixed_site())).collect();
    let undo_backwards: Vec<_> = undo.iter().rev().collect();
    let channels = fields.iter().map(|field| channel(state, field));
    let count = fields.len();
    let resets = resets(state);
    let initial = quote_spanned!(name.span()=> ::agentgraph::__private::initial::<#name>());
    quote! {
        static __CHANNELS: [::agentgraph::Channel; #count] = [#(#channels),*];

        #[automatically_derived]
        #[allow(unused_variables, clippy::all)]
        impl ::agentgraph::State for #name {
            type Schema = ();
            type Update = #update;

            fn channels(_: &()) -> &[::agentgraph::Channel] {
                &__CHANNELS
            }

            fn initial(_: &()) -> Self {
                #initial
            }

            fn apply(&mut self, _: &(), update: #update) -> ::core::result::Result<(), ::agentgraph::StateError> {
                #(update.#idents.apply(&mut self.#idents);)*
                ::core::result::Result::Ok(())
            }

            fn peek<__R>(
                &mut self,
                _: &(),
                update: &mut #update,
                look: impl ::core::ops::FnOnce(&Self) -> __R,
            ) -> ::core::result::Result<__R, ::agentgraph::StateError> {
                #(let #undo = update.#idents.try_on(&mut self.#idents);)*
                let seen = look(&*self);
                #(update.#backwards.take_off(&mut self.#backwards, #undo_backwards);)*
                ::core::result::Result::Ok(seen)
            }

            fn reset(&mut self, _: &(), lifetime: ::agentgraph::Lifetime) {
                match lifetime {
                    #resets
                    _ => {}
                }
            }

            fn writes(_: &(), update: &#update, each: &mut dyn ::core::ops::FnMut(usize, ::agentgraph::WriteKind)) {
                #(
                    if let ::core::option::Option::Some(kind) = update.#idents.kind() {
                        each(#numbers, kind);
                    }
                )*
            }

            fn discard(_: &(), update: &mut #update, channel: usize) {
                match channel {
                    #(#numbers => update.#idents.discard(),)*
                    _ => {}
                }
            }
        }
    }
}

fn channel(state: &StateStruct, field: &Field) -> TokenStream {
    let (name, ty, aliases) = (&field.channel, &field.ty, &field.aliases);
    let reducer = reducer(state, field);
    let lifetime = lifetime(field.lifetime);
    quote_spanned! {ty.span()=>
        ::agentgraph::__private::channel::<#ty, #reducer>(#name, &[#(#aliases),*]).with_lifetime(#lifetime)
    }
}

fn lifetime(lifetime: Lifetime) -> TokenStream {
    match lifetime {
        Lifetime::Thread => quote!(::agentgraph::Lifetime::Thread),
        Lifetime::Run => quote!(::agentgraph::Lifetime::Run),
        Lifetime::Ephemeral => quote!(::agentgraph::Lifetime::Ephemeral),
        Lifetime::Untracked => quote!(::agentgraph::Lifetime::Untracked),
    }
}

/// One match arm a lifetime. Values are swapped in, since nothing can be moved out of a state that implements `Drop`.
fn resets(state: &StateStruct) -> TokenStream {
    let all = [Lifetime::Thread, Lifetime::Run, Lifetime::Ephemeral, Lifetime::Untracked];
    let arms = all.into_iter().map(|one| {
        let with: Vec<_> =
            state.fields.iter().filter(|field| field.lifetime == one).map(|field| &field.ident).collect();
        let pattern = lifetime(one);
        (!with.is_empty()).then(|| {
            quote! {
                #pattern => {
                    let mut initial = <Self as ::agentgraph::State>::initial(&());
                    #(::core::mem::swap(&mut self.#with, &mut initial.#with);)*
                }
            }
        })
    });
    arms.flatten().collect()
}

fn step_impl(state: &StateStruct) -> TokenStream {
    let StateStruct { name, update, .. } = state;
    quote! {
        #[automatically_derived]
        impl ::agentgraph::IntoStep<#name> for #update {
            fn into_step(self) -> ::core::result::Result<::agentgraph::Step<#name>, ::agentgraph::BoxError> {
                ::core::result::Result::Ok(::agentgraph::Step::Update(self))
            }
        }
    }
}
