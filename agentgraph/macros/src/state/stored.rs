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
        |number, constant, ident| quote!(#number => #constant.record(&self.#ident, delta.channel(#number)),),
    );
    let restores = per_stored(
        &fields,
        |number, constant, ident| quote!(#number => #constant.restore(&mut self.#ident, value),),
    );
    let encodes =
        per_stored(&fields, |_, constant, ident| quote!(#constant.encode(&update.#ident, &mut fields)?;));
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
                update: #update,
                delta: &mut ::agentgraph::__private::DeltaWriter,
            ) -> ::core::result::Result<(), ::agentgraph::state::StateError> {
                #checks
                #(#applies)*
                ::core::result::Result::Ok(())
            }

            fn record_channel(
                &self,
                _: &(),
                channel: usize,
                delta: &mut ::agentgraph::__private::DeltaWriter,
            ) -> ::core::result::Result<(), ::agentgraph::state::StateError> {
                match channel {
                    #records
                    _ => ::core::result::Result::Ok(()),
                }
            }

            fn restore_channel(
                &mut self,
                _: &(),
                channel: usize,
                value: &[u8],
            ) -> ::core::result::Result<(), ::agentgraph::state::StateError> {
                match channel {
                    #restores
                    _ => ::core::result::Result::Ok(()),
                }
            }

            fn encode_update(
                _: &(),
                update: &#update,
            ) -> ::core::result::Result<::std::vec::Vec<u8>, ::agentgraph::state::StateError> {
                let mut fields = ::agentgraph::__private::FieldsWriter::default();
                #encodes
                ::core::result::Result::Ok(fields.finish())
            }

            fn decode_update(
                _: &(),
                bytes: &[u8],
            ) -> ::core::result::Result<#update, ::agentgraph::state::StateError> {
                let mut update = <#update as ::core::default::Default>::default();
                for (channel, write) in ::agentgraph::__private::decode_fields(bytes)? {
                    match channel {
                        #(#decodes)*
                        unknown => {
                            return ::core::result::Result::Err(::agentgraph::__private::unknown_channel(unknown, &__CHANNELS));
                        }
                    }
                }
                ::core::result::Result::Ok(update)
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
        quote!(#constant.apply(update.#ident, &mut self.#ident, delta.channel(#number))?;)
    } else {
        quote!(update.#ident.apply(&mut self.#ident);)
    }
}

/// Returns the arm that decodes a stored write. A write to a channel that is untracked by now is dropped.
fn decode(number: usize, field: &Field) -> TokenStream {
    let (ident, constant, channel, aliases) =
        (&field.ident, constant_name(number), &field.channel, &field.aliases);
    if field.is_stored() {
        quote!(#channel #(| #aliases)* => update.#ident = #constant.decode(write)?,)
    } else {
        quote!(#channel => {})
    }
}
