//! The methods of an update: one setter for each field, and further methods for its reducer.

use proc_macro2::{Span, TokenStream};
use quote::{format_ident, quote, quote_spanned};
use syn::spanned::Spanned;
use syn::{Ident, Type};

use super::ast::{Field, Reduce, StateStruct};
use super::expand::helper_name;
use super::shape::{self, Shape};

/// The kind of a method of the update. The method's name is a prefix and the field's name.
#[derive(Clone, Copy)]
pub(super) enum Method {
    Write,
    Overwrite,
    Remove,
}

impl Field {
    pub(super) fn methods(&self) -> &'static [(&'static str, Method)] {
        match self.reduce {
            Reduce::Once => &[("", Method::Write)],
            Reduce::ById(_) => {
                &[("", Method::Write), ("overwrite_", Method::Overwrite), ("remove_", Method::Remove)]
            }
            _ => &[("", Method::Write), ("overwrite_", Method::Overwrite)],
        }
    }

    pub(super) fn method_name(&self, prefix: &str) -> Ident {
        match prefix {
            "" => self.ident.clone(),
            _ => format_ident!("{prefix}{}", self.channel, span = self.ident.span()),
        }
    }
}

pub(super) fn all(state: &StateStruct) -> TokenStream {
    let setters = state.fields.iter().flat_map(|field| {
        field.methods().iter().map(|(prefix, method)| setter(state, field, prefix, *method))
    });
    setters.collect()
}

fn setter(state: &StateStruct, field: &Field, prefix: &str, method: Method) -> TokenStream {
    let vis = &state.vis;
    let ident = &field.ident;
    let name = field.method_name(prefix);
    let argument = Ident::new("__value", Span::mixed_site());
    let (takes, call) = match method {
        Method::Write => write(state, field, &argument),
        Method::Overwrite => {
            let (takes, value) = one(&field.ty, &argument);
            (takes, quote!(overwrite(#value)))
        }
        Method::Remove => remove(&argument),
    };
    let first = about(field, method);
    let docs = &field.docs;
    let gap = docs.first().map(|_| quote!(#[doc = ""]));
    quote! {
        #[doc = #first]
        #gap
        #(#docs)*
        #[must_use = "an update does nothing until a node returns it"]
        #vis fn #name(mut self, #argument: #takes) -> Self {
            self.#ident.#call;
            self
        }
    }
}

fn about(field: &Field, method: Method) -> String {
    let channel = &field.channel;
    match (method, &field.reduce) {
        (Method::Overwrite, _) => {
            format!(" Replaces `{channel}`, whatever else is written to it in the superstep.")
        }
        (Method::Remove, _) => format!(" Removes the items with these keys from `{channel}`."),
        (Method::Write, Reduce::Once | Reduce::Last) => format!(" Sets `{channel}`."),
        (Method::Write, Reduce::Append(_)) => format!(" Adds items to the end of `{channel}`."),
        (Method::Write, Reduce::Merge(_)) => format!(" Puts entries into `{channel}`."),
        (Method::Write, Reduce::ById(_)) => {
            format!(
                " Replaces the items of `{channel}` that have the same keys, and adds the others at the end."
            )
        }
        (Method::Write, Reduce::Sum(_)) => format!(" Adds to `{channel}`."),
        (Method::Write, Reduce::Min) => format!(" Sets `{channel}` if this is less."),
        (Method::Write, Reduce::Max) => format!(" Sets `{channel}` if this is greater."),
        (Method::Write, Reduce::With(..) | Reduce::Reducer(..)) => {
            format!(" Writes to `{channel}` through its reducer.")
        }
    }
}

/// Returns the type of a write. It names the reducer's `Write` only if no other way exists.
pub(super) fn write_type(field: &Field) -> TokenStream {
    let ty = &field.ty;
    match (&field.reduce, shape::of(ty)) {
        (Reduce::ById(_), _) => {
            let item = item_type(ty);
            quote!(::std::vec::Vec<::agentgraph::reduce::KeyedWrite<#item>>)
        }
        (Reduce::Merge(_), shape) => {
            let (key, value) = entry_types(ty, &shape);
            quote!(::std::vec::Vec<(#key, #value)>)
        }
        (Reduce::Reducer(_, Some(said)), _) => quote!(#said),
        (Reduce::Reducer(reducer, None), _) => {
            quote!(<#reducer as ::agentgraph::reduce::Reducer<#ty>>::Write)
        }
        (Reduce::With(_, Some(said)), _) => quote!(::std::vec::Vec<#said>),
        (Reduce::With(_, None), _) => quote!(::std::vec::Vec<#ty>),
        (Reduce::Sum(_), _) => quote!(::agentgraph::reduce::Summands<#ty>),
        (Reduce::Once | Reduce::Last | Reduce::Append(_) | Reduce::Min | Reduce::Max, _) => quote!(#ty),
    }
}

/// Returns the argument type of the setter, and the call on the slot.
fn write(state: &StateStruct, field: &Field, argument: &Ident) -> (TokenStream, TokenStream) {
    let ty = &field.ty;
    match (&field.reduce, shape::of(ty)) {
        (Reduce::Once | Reduce::Last, _) => {
            let (takes, value) = one(ty, argument);
            (takes, quote!(write(#value)))
        }
        (Reduce::Sum(_), _) => (quote!(#ty), quote!(write(::agentgraph::reduce::Summands::from(#argument)))),
        // A number goes into an `Option` of it by itself.
        (Reduce::Min | Reduce::Max, _) if shape::is_option(ty) => {
            (quote!(impl ::core::convert::Into<#ty>), quote!(write(::core::convert::Into::into(#argument))))
        }
        (Reduce::Min | Reduce::Max, _) => {
            let (takes, value) = one(ty, argument);
            (takes, quote!(write(#value)))
        }
        (Reduce::Append(_), _) => {
            let (takes, items) = items(ty, argument);
            (takes, quote!(write(#items)))
        }
        (Reduce::ById(_), _) => {
            let item = item_type(ty);
            (
                quote!(impl ::agentgraph::reduce::Items<#item>),
                quote!(write(::core::iter::Iterator::collect(::core::iter::Iterator::map(
                    ::agentgraph::reduce::Items::items(#argument),
                    ::agentgraph::reduce::KeyedWrite::Upsert,
                )))),
            )
        }
        (Reduce::Merge(_), shape) => {
            let (takes, entries) = entries(ty, &shape, argument);
            (takes, quote!(write(#entries)))
        }
        (Reduce::With(_, said), _) => {
            let (takes, value) = one(said.as_deref().unwrap_or(ty), argument);
            (takes, quote!(write(::std::vec![#value])))
        }
        (Reduce::Reducer(_, Some(said)), _) => {
            let (takes, value) = one(said, argument);
            (takes, quote!(write(#value)))
        }
        (Reduce::Reducer(_, None), _) => {
            let helper = helper_name(state, field);
            (quote!(<#helper as ::agentgraph::__private::Field>::Write), quote!(write(#argument)))
        }
    }
}

/// Returns the argument type for one value, and the value; a `String` is taken as `Into<String>`.
fn one(ty: &Type, argument: &Ident) -> (TokenStream, TokenStream) {
    if shape::is_string(ty) {
        (into_string(), quote!(::core::convert::Into::into(#argument)))
    } else {
        (quote!(#ty), quote_spanned!(ty.span()=> #argument))
    }
}

fn into_string() -> TokenStream {
    quote!(impl ::core::convert::Into<::std::string::String>)
}

fn item_type(list: &Type) -> TokenStream {
    match shape::of(list) {
        Shape::List(item) => quote!(#item),
        _ => quote!(<#list as ::core::iter::IntoIterator>::Item),
    }
}

fn items(list: &Type, argument: &Ident) -> (TokenStream, TokenStream) {
    let (takes, iterator) = match shape::of(list) {
        Shape::List(item) if shape::is_string(item) => texts(argument),
        _ => {
            let item = item_type(list);
            (
                quote!(impl ::agentgraph::reduce::Items<#item>),
                quote!(::agentgraph::reduce::Items::items(#argument)),
            )
        }
    };
    (takes, quote!(::core::iter::Iterator::collect(#iterator)))
}

/// Returns the argument type for a list of texts, and its iterator.
fn texts(argument: &Ident) -> (TokenStream, TokenStream) {
    (quote!(impl ::agentgraph::reduce::Texts), quote!(::agentgraph::reduce::Texts::texts(#argument)))
}

fn entry_types(map: &Type, shape: &Shape<'_>) -> (TokenStream, TokenStream) {
    match shape {
        Shape::Map(key, value) => (quote!(#key), quote!(#value)),
        _ => (
            quote!(<#map as ::agentgraph::reduce::MapState>::Key),
            quote!(<#map as ::agentgraph::reduce::MapState>::Value),
        ),
    }
}

fn entries(map: &Type, shape: &Shape<'_>, argument: &Ident) -> (TokenStream, TokenStream) {
    let key = Ident::new("__key", Span::mixed_site());
    let value = Ident::new("__entry", Span::mixed_site());
    let part = |ty: &Type, name: &Ident| one(ty, name);
    let ((takes_key, key_from), (takes_value, value_from)) = match shape {
        Shape::Map(key_type, value_type) => (part(key_type, &key), part(value_type, &value)),
        _ => {
            let (key_type, value_type) = entry_types(map, shape);
            ((key_type, quote!(#key)), (value_type, quote!(#value)))
        }
    };
    (
        quote!(impl ::core::iter::IntoIterator<Item = (#takes_key, #takes_value)>),
        quote!(::core::iter::Iterator::collect(::core::iter::Iterator::map(
            ::core::iter::IntoIterator::into_iter(#argument),
            |(#key, #value)| (#key_from, #value_from),
        ))),
    )
}

fn remove(argument: &Ident) -> (TokenStream, TokenStream) {
    let (takes, keys) = texts(argument);
    (
        takes,
        quote!(write(::core::iter::Iterator::collect(::core::iter::Iterator::map(
            #keys,
            ::agentgraph::reduce::KeyedWrite::Remove,
        )))),
    )
}
