//! Writes the implementations of `Route` and `IntoGoto`.

use proc_macro2::{Span, TokenStream};
use quote::{quote, quote_spanned};
use syn::Ident;
use syn::spanned::Spanned;

use super::ast::{Choice, RouteEnum, Target};

pub(super) fn expand(route: &RouteEnum) -> TokenStream {
    let targets = route.choices.iter().map(|choice| match &choice.target {
        Target::Node(name) => quote!(::agentgraph::node::RouteTarget::Node(#name)),
        Target::Dispatch(name, _) => quote!(::agentgraph::node::RouteTarget::Dispatch(#name)),
        Target::End => quote!(::agentgraph::node::RouteTarget::End),
    });
    let arms = route.choices.iter().enumerate().map(|(number, choice)| arm(number, choice));
    implement(route, quote!([#(#targets),*]), quote!(match self { #(#arms)* }))
}

fn arm(number: usize, choice: &Choice) -> TokenStream {
    let variant = &choice.variant;
    match &choice.target {
        Target::Node(_) | Target::End => quote!(Self::#variant => ::agentgraph::node::Pick::node(#number),),
        Target::Dispatch(_, ty) => {
            let input = Ident::new("__input", Span::mixed_site());
            let pick = quote_spanned!(ty.span()=> ::agentgraph::__private::dispatch::<#ty>(#number, #input));
            quote!(Self::#variant(#input) => #pick,)
        }
    }
}

/// Writes the same implementations after a mistake, with bodies that never run.
pub(super) fn fallback(route: &RouteEnum) -> TokenStream {
    implement(route, quote!([]), quote!(loop {}))
}

fn implement(route: &RouteEnum, targets: TokenStream, pick: TokenStream) -> TokenStream {
    let name = &route.name;
    let (generics, arguments, bounds) = route.generics.split_for_impl();
    quote! {
        #[automatically_derived]
        impl #generics ::agentgraph::node::IntoGoto for #name #arguments #bounds {
            fn into_goto(self) -> ::agentgraph::Goto {
                ::agentgraph::__private::goto(self)
            }
        }

        #[automatically_derived]
        impl #generics ::agentgraph::Route for #name #arguments #bounds {
            const TARGETS: &'static [::agentgraph::node::RouteTarget] = &#targets;

            fn pick(self) -> ::agentgraph::node::Pick {
                #pick
            }
        }
    }
}
