//! Writes the implementation of `StoredState`.
//!
//! Every stored channel is one constant: a table of the functions that encode and decode it. Only this
//! constant requires serde of the field's type, so a type without serde is reported once, on the field.

use proc_macro2::TokenStream;
use quote::{format_ident, quote, quote_spanned};
use syn::Ident;
use syn::spanned::Spanned;

use super::ast::{Field, StateStruct};
use super::expand::{checks, reducer, slot, where_clone};

pub(super) fn expand(state: &StateStruct) -> TokenStream {
    let fields: Vec<_> = state.fields.iter().enumerate().collect();
    let constants = fields
        .iter()
        .filter(|(_, field)| field.is_stored())
        .map(|(number, field)| constant(state, *number, field));
    let applies = fields.iter().map(|(number, field)| apply(*number, field));
    let records = per_stored(
        &fields,
        |number, constant, ident| quote!(#number => #constant.record(&self.#ident, __delta.channel(#number)),),
    );
    let restores = per_stored(
        &fields,
        |number, constant, ident| quote!(#number => #constant.restore(&mut self.#ident, __value),),
    );
    let encodes =
        per_stored(&fields, |_, constant, ident| quote!(#constant.encode(&__update.#ident, &mut __fields)?;));
    let decodes = fields.iter().map(|(number, field)| decode(*number, field));
    let StateStruct { name, update, .. } = state;
    let checks = checks(state);
    let where_clone = where_clone(state);
    quote! {
        #(#constants)*

        #[automatically_derived]
        impl ::agentgraph::state::StoredState for #name #where_clone {
            #[inline]
            fn apply_recorded(
                &mut self,
                _: &(),
                __update: #update,
                __delta: &mut ::agentgraph::__private::DeltaWriter,
            ) -> ::core::result::Result<(), ::agentgraph::state::StateError> {
                #checks
                #(#applies)*
                ::core::result::Result::Ok(())
            }

            fn record_channel(
                &self,
                _: &(),
                __channel: usize,
                __delta: &mut ::agentgraph::__private::DeltaWriter,
            ) -> ::core::result::Result<(), ::agentgraph::state::StateError> {
                match __channel {
                    #records
                    _ => ::core::result::Result::Ok(()),
                }
            }

            fn restore_channel(
                &mut self,
                _: &(),
                __channel: usize,
                __value: &[u8],
            ) -> ::core::result::Result<(), ::agentgraph::state::StateError> {
                match __channel {
                    #restores
                    _ => ::core::result::Result::Ok(()),
                }
            }

            fn encode_update(
                _: &(),
                __update: &#update,
            ) -> ::core::result::Result<::std::vec::Vec<u8>, ::agentgraph::state::StateError> {
                let mut __fields = ::agentgraph::__private::FieldsWriter::default();
                #encodes
                ::core::result::Result::Ok(__fields.finish())
            }

            fn decode_update(
                _: &(),
                __bytes: &[u8],
            ) -> ::core::result::Result<#update, ::agentgraph::state::StateError> {
                let mut __update = <#update as ::core::default::Default>::default();
                for (__channel, __write) in ::agentgraph::__private::decode_fields(__bytes)? {
                    match __channel {
                        #(#decodes)*
                        __unknown => {
                            return ::core::result::Result::Err(::agentgraph::__private::unknown_channel(__unknown, &__CHANNELS));
                        }
                    }
                }
                ::core::result::Result::Ok(__update)
            }
        }
    }
}

fn constant_name(number: usize) -> Ident {
    format_ident!("__CHANNEL_{number}")
}

fn constant(state: &StateStruct, number: usize, field: &Field) -> TokenStream {
    let constant = constant_name(number);
    let ty = &field.ty;
    let channel = &field.channel;
    let reducer = reducer(state, field);
    let slot = slot(state, field);
    quote_spanned! {ty.span()=>
        const #constant: ::agentgraph::__private::StoredChannel<#ty, #slot> =
            ::agentgraph::__private::stored_channel::<#ty, #reducer, #slot>(#channel);
    }
}

fn per_stored(
    fields: &[(usize, &Field)],
    mut write: impl FnMut(usize, Ident, &Ident) -> TokenStream,
) -> TokenStream {
    let stored = fields.iter().filter(|(_, field)| field.is_stored());
    stored.map(|(number, field)| write(*number, constant_name(*number), &field.ident)).collect()
}

fn apply(number: usize, field: &Field) -> TokenStream {
    let ident = &field.ident;
    let constant = constant_name(number);
    if field.is_stored() {
        quote!(#constant.apply(__update.#ident, &mut self.#ident, __delta.channel(#number))?;)
    } else {
        quote!(__update.#ident.apply(&mut self.#ident);)
    }
}

/// Returns the arm that decodes a stored write. A write to a channel that is untracked by now is dropped.
fn decode(number: usize, field: &Field) -> TokenStream {
    let (ident, constant, channel, aliases) =
        (&field.ident, constant_name(number), &field.channel, &field.aliases);
    if field.is_stored() {
        quote!(#channel #(| #aliases)* => __update.#ident = #constant.decode(__write)?,)
    } else {
        quote!(#channel => {})
    }
}
