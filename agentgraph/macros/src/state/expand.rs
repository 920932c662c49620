//! Writes the update and the implementations of `State` and `IntoStep`.

use proc_macro2::{Span, TokenStream};
use quote::{format_ident, quote, quote_spanned};
use syn::ext::IdentExt;
use syn::spanned::Spanned;
use syn::{ExprPath, Ident, Type};

use super::ast::{Field, Lifetime, Reduce, StateStruct};
use super::{setters, shape, stored};

pub(super) fn expand(state: &StateStruct) -> TokenStream {
    let helpers = helper_structs(state);
    let update = update_struct(state);
    let helper_impls: TokenStream = state.fields.iter().map(|field| helper_impl(state, field)).collect();
    let implementation = state_impl(state);
    let debug = debug_impl(state);
    let step = step_impl(state);
    let stored = (!state.volatile).then(|| stored::expand(state));
    // The generated code has the spans of the fields, so lints would treat it as the user's code.
    quote! {
        #helpers
        #update
        #[allow(unused_variables, unused_mut, trivial_bounds, clippy::all, clippy::pedantic, clippy::nursery)]
        const _: () = {
            #helper_impls
            #implementation
            #debug
            #step
            #stored
        };
    }
}

/// Whether a write may be refused by the field's reducer.
fn is_checked(field: &Field) -> bool {
    matches!(field.reduce, Reduce::Sum(_) | Reduce::Reducer(..))
}

/// Returns the checks of all writes that may be refused, before any is applied to `self`.
pub(super) fn checks(state: &StateStruct) -> TokenStream {
    let checked = state.fields.iter().filter(|field| is_checked(field));
    let checks = checked.map(|field| {
        let (ident, channel) = (&field.ident, &field.channel);
        quote! {
            if let ::core::result::Result::Err(__misfit) = __update.#ident.check(&self.#ident) {
                return ::core::result::Result::Err(::agentgraph::__private::misfit(#channel, &__misfit));
            }
        }
    });
    checks.collect()
}

/// Returns the checks that a later update can be composed with an earlier one.
fn compose_checks(state: &StateStruct) -> TokenStream {
    let checked = state.fields.iter().filter(|field| is_checked(field));
    let checks = checked.map(|field| {
        let (ident, channel) = (&field.ident, &field.channel);
        quote! {
            if let ::core::result::Result::Err(__misfit) = __update.#ident.check_compose(&__later.#ident) {
                return ::core::result::Result::Err(::agentgraph::__private::misfit(#channel, &__misfit));
            }
        }
    });
    checks.collect()
}

/// Returns the type of the channel's slot in an update.
pub(super) fn slot(state: &StateStruct, field: &Field) -> TokenStream {
    let ty = &field.ty;
    let reducer = slot_reducer(state, field);
    quote_spanned!(ty.span()=> ::agentgraph::reduce::Slot<#ty, #reducer>)
}

/// Returns the reducer of the field.
pub(super) fn reducer(state: &StateStruct, field: &Field) -> TokenStream {
    let span = field.ty.span();
    match &field.reduce {
        Reduce::Once => quote_spanned!(span=> ::agentgraph::reduce::Once),
        Reduce::Last => quote_spanned!(span=> ::agentgraph::reduce::Last),
        Reduce::Append(_) => quote_spanned!(span=> ::agentgraph::reduce::Append),
        Reduce::Merge(_) => quote_spanned!(span=> ::agentgraph::reduce::Merge),
        Reduce::ById(_) => quote_spanned!(span=> ::agentgraph::reduce::ById),
        Reduce::Sum(_) => quote_spanned!(span=> ::agentgraph::reduce::Sum),
        Reduce::Min if shape::is_option(&field.ty) => quote_spanned!(span=> ::agentgraph::reduce::MinSome),
        Reduce::Min => quote_spanned!(span=> ::agentgraph::reduce::Min),
        Reduce::Max => quote_spanned!(span=> ::agentgraph::reduce::Max),
        Reduce::Reducer(reducer, _) => quote!(#reducer),
        Reduce::With(..) => {
            let helper = helper_name(state, field);
            quote_spanned!(span=> ::agentgraph::reduce::With<#helper>)
        }
    }
}

/// Returns the reducer in the slot's type: that of the field, or a helper if it may not fit the field's
/// type.
fn slot_reducer(state: &StateStruct, field: &Field) -> TokenStream {
    if may_misfit(field) {
        let helper = helper_name(state, field);
        quote_spanned!(field.ty.span()=> ::agentgraph::__private::By<#helper>)
    } else {
        reducer(state, field)
    }
}

/// Whether the reducer may not fit the field's type: only the compiler can decide that.
fn may_misfit(field: &Field) -> bool {
    !matches!(field.reduce, Reduce::Once | Reduce::Last | Reduce::With(..))
}

pub(super) fn helper_name(state: &StateStruct, field: &Field) -> Ident {
    format_ident!("__{}_{}", state.name.unraw(), field.channel, span = Span::call_site())
}

/// Declares a helper type for each field that needs one: for the function of `with`, or to name a reducer
/// that may not fit in only one place, so that it is reported once.
fn helper_structs(state: &StateStruct) -> TokenStream {
    let needed =
        state.fields.iter().filter(|field| may_misfit(field) || matches!(field.reduce, Reduce::With(..)));
    let names = needed.map(|field| helper_name(state, field));
    quote! {
        #(
            #[doc(hidden)]
            #[allow(non_camel_case_types)]
            struct #names;
        )*
    }
}

fn helper_impl(state: &StateStruct, field: &Field) -> TokenStream {
    let name = helper_name(state, field);
    match &field.reduce {
        Reduce::With(function, said) => reduce_function(&name, field, function, said.as_deref()),
        _ if may_misfit(field) => reducer_constant(state, &name, field),
        _ => TokenStream::new(),
    }
}

fn reduce_function(name: &Ident, field: &Field, function: &ExprPath, said: Option<&Type>) -> TokenStream {
    let ty = &field.ty;
    let write_type = said.unwrap_or(ty);
    let span = function.span().resolved_at(Span::mixed_site());
    let value = Ident::new("__value", span);
    let write = Ident::new("__write", span);
    let call = quote_spanned!(function.span()=> #function(#value, #write));
    quote! {
        #[automatically_derived]
        impl ::agentgraph::reduce::ReduceFn<#ty> for #name {
            type Write = #write_type;
            fn call(#value: &mut #ty, #write: #write_type) {
                let _ = #call;
            }
        }
    }
}

fn reducer_constant(state: &StateStruct, name: &Ident, field: &Field) -> TokenStream {
    let ty = &field.ty;
    let reducer = reducer(state, field);
    let write = setters::write_type(field);
    let table = quote_spanned!(ty.span()=> ::agentgraph::__private::reducer::<#ty, #reducer, Self::Write>());
    quote! {
        #[automatically_derived]
        impl ::agentgraph::__private::Field for #name {
            type Value = #ty;
            type Write = #write;
            const REDUCER: ::agentgraph::__private::ReducerTable<#ty, Self::Write> = #table;
        }
    }
}

fn update_struct(state: &StateStruct) -> TokenStream {
    let StateStruct { vis, name, update, fields, .. } = state;
    let slots = fields.iter().map(|field| {
        let ident = &field.ident;
        let slot = slot(state, field);
        quote!(#ident: #slot)
    });
    let idents: Vec<_> = fields.iter().map(|field| &field.ident).collect();
    let setters = setters::all(state);
    let about = format!(" A partial [`{name}`]: what a node writes to its channels.");
    let makes = format!(" A [`{update}`] that writes nothing yet.");
    quote! {
        #[doc = #about]
        #[derive(::core::clone::Clone, ::core::default::Default)]
        #[must_use = "an update does nothing until a node returns it"]
        #[allow(clippy::all, clippy::pedantic, clippy::nursery)]
        #vis struct #update {
            #(#slots,)*
        }

        #[automatically_derived]
        #[allow(dead_code, private_interfaces, clippy::all, clippy::pedantic, clippy::nursery)]
        impl #name {
            #[doc = #makes]
            #vis fn update() -> #update {
                ::core::default::Default::default()
            }
        }

        #[automatically_derived]
        #[allow(dead_code, private_interfaces, clippy::all, clippy::pedantic, clippy::nursery)]
        impl #update {
            #setters

            /// Whether the update writes to no channel.
            #[must_use]
            #vis fn is_empty(&self) -> bool {
                true #(&& self.#idents.kind().is_none())*
            }
        }
    }
}

fn debug_impl(state: &StateStruct) -> TokenStream {
    let StateStruct { update, fields, .. } = state;
    let shown = fields.iter().enumerate().map(|(number, field)| {
        let (ident, channel, secret) = (&field.ident, &field.channel, field.secret);
        quote! {
            if let ::core::option::Option::Some(__write) = self.#ident.get() {
                let (__how, __shown) = match __write {
                    ::agentgraph::reduce::Write::Reduce(__write) => {
                        (&*__CHANNELS[#number].reducer, (&::agentgraph::__private::peeked(__write)).shown())
                    }
                    ::agentgraph::reduce::Write::Overwrite(__value) => {
                        ("overwrite", (&::agentgraph::__private::peeked(&**__value)).shown())
                    }
                };
                __written.field(#channel, &::agentgraph::__private::shown_write(__how, __shown, #secret));
            }
        }
    });
    quote! {
        /// Shows the written channels with their values; secret ones are masked.
        #[automatically_derived]
        impl ::core::fmt::Debug for #update {
            fn fmt(&self, __out: &mut ::core::fmt::Formatter<'_>) -> ::core::fmt::Result {
                #[allow(unused_imports)]
                use ::agentgraph::__private::{WithDebug as _, WithoutDebug as _};
                let mut __written = __out.debug_struct(::core::stringify!(#update));
                #(#shown)*
                __written.finish()
            }
        }
    }
}

fn state_impl(state: &StateStruct) -> TokenStream {
    let StateStruct { name, update, fields, .. } = state;
    let idents: Vec<_> = fields.iter().map(|field| &field.ident).collect();
    let backwards: Vec<_> = idents.iter().rev().collect();
    let numbers: Vec<_> = (0..fields.len()).collect();
    let undo: Vec<_> = numbers.iter().map(|number| format_ident!("__undo_{number}")).collect();
    let undo_backwards: Vec<_> = undo.iter().rev().collect();
    let channels = fields.iter().map(|field| channel(state, field));
    let count = fields.len();
    let resets = resets(state);
    let where_clone = where_clone(state);
    let (checks, compose_checks) = (checks(state), compose_checks(state));
    let hides = fields.iter().any(|field| field.secret).then(|| {
        quote!(
            const HIDES: bool = true;
        )
    });
    let initial = quote_spanned!(name.span()=> ::agentgraph::__private::initial::<#name>());
    quote! {
        static __CHANNELS: [::agentgraph::state::Channel; #count] = [#(#channels),*];

        #[automatically_derived]
        impl ::agentgraph::State for #name #where_clone {
            type Schema = ();
            type Update = #update;
            #hides

            fn channels(_: &()) -> &[::agentgraph::state::Channel] {
                &__CHANNELS
            }

            fn initial(_: &()) -> Self {
                #initial
            }

            #[inline]
            fn apply(&mut self, _: &(), __update: #update) -> ::core::result::Result<(), ::agentgraph::state::StateError> {
                #checks
                #(__update.#idents.apply(&mut self.#idents);)*
                ::core::result::Result::Ok(())
            }

            fn peek<__R>(
                &mut self,
                _: &(),
                __update: &mut #update,
                __look: impl ::core::ops::FnOnce(&Self) -> __R,
            ) -> ::core::result::Result<__R, ::agentgraph::state::StateError> {
                #checks
                #(let #undo = __update.#idents.try_on(&mut self.#idents);)*
                let __seen = __look(&*self);
                #(__update.#backwards.take_off(&mut self.#backwards, #undo_backwards);)*
                ::core::result::Result::Ok(__seen)
            }

            fn reset(&mut self, _: &(), __lifetime: ::agentgraph::state::Lifetime) {
                match __lifetime {
                    #resets
                    _ => {}
                }
            }

            fn writes(_: &(), __update: &#update, __each: &mut dyn ::core::ops::FnMut(usize, ::agentgraph::state::WriteKind)) {
                #(
                    if let ::core::option::Option::Some(__kind) = __update.#idents.kind() {
                        __each(#numbers, __kind);
                    }
                )*
            }

            fn discard(_: &(), __update: &mut #update, __channel: usize) {
                match __channel {
                    #(#numbers => __update.#idents.discard(),)*
                    _ => {}
                }
            }

            fn compose(
                _: &(),
                __update: &mut #update,
                __later: #update,
            ) -> ::core::result::Result<(), ::agentgraph::state::StateError> {
                #compose_checks
                #(__update.#idents.compose(__later.#idents);)*
                ::core::result::Result::Ok(())
            }
        }
    }
}

fn channel(state: &StateStruct, field: &Field) -> TokenStream {
    let name = &field.channel;
    let ty = &field.ty;
    let aliases = &field.aliases;
    let reducer = slot_reducer(state, field);
    let lifetime = lifetime(field.lifetime);
    let secret = field.secret.then(|| quote!(.with_secret(true)));
    quote_spanned! {ty.span()=>
        ::agentgraph::__private::channel::<#ty, #reducer>(#name, &[#(#aliases),*]).with_lifetime(#lifetime) #secret
    }
}

fn lifetime(lifetime: Lifetime) -> TokenStream {
    match lifetime {
        Lifetime::Thread => quote!(::agentgraph::state::Lifetime::Thread),
        Lifetime::Run => quote!(::agentgraph::state::Lifetime::Run),
        Lifetime::Ephemeral => quote!(::agentgraph::state::Lifetime::Ephemeral),
        Lifetime::Untracked => quote!(::agentgraph::state::Lifetime::Untracked),
    }
}

/// Returns a match arm for each lifetime. Values are swapped, because nothing can be moved out of a
/// state that implements `Drop`.
fn resets(state: &StateStruct) -> TokenStream {
    let all = [Lifetime::Thread, Lifetime::Run, Lifetime::Ephemeral, Lifetime::Untracked];
    let arms = all.into_iter().map(|one| {
        let with: Vec<_> =
            state.fields.iter().filter(|field| field.lifetime == one).map(|field| &field.ident).collect();
        let pattern = lifetime(one);
        (!with.is_empty()).then(|| {
            quote! {
                #pattern => {
                    let mut __initial = <Self as ::agentgraph::State>::initial(&());
                    #(::core::mem::swap(&mut self.#with, &mut __initial.#with);)*
                }
            }
        })
    });
    arms.flatten().collect()
}

/// Returns the bound that a state is `Clone`. Every implementation has it on the same token, so the
/// compiler shows one message for a struct that is not.
pub(super) fn where_clone(state: &StateStruct) -> TokenStream {
    let name = &state.name;
    quote_spanned!(name.span()=> where #name: ::core::clone::Clone)
}

fn step_impl(state: &StateStruct) -> TokenStream {
    let StateStruct { name, update, .. } = state;
    let where_clone = where_clone(state);
    quote! {
        #[automatically_derived]
        impl ::agentgraph::node::IntoStep<#name> for #update #where_clone {
            fn into_step(self) -> ::core::result::Result<::agentgraph::node::Step<#name>, ::agentgraph::BoxError> {
                ::core::result::Result::Ok(::agentgraph::node::Step::Update(self))
            }
        }
    }
}
