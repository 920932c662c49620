//! `#[node(State)]`: leaves the function unchanged and adds checks beside it, one for each argument, one
//! for the output and one for the future. Each has the span of its part, so that the compiler's message
//! points to the part that is wrong.

use proc_macro2::TokenStream;
use quote::{ToTokens, format_ident, quote, quote_spanned};
use syn::spanned::Spanned;
use syn::{FnArg, ItemFn, PatType, ReturnType, Signature, Type};

use crate::mistakes::Mistakes;

/// The largest number of arguments for which `IntoNode` is implemented.
const MAX_ARGUMENTS: usize = 8;

pub(crate) fn check(state: TokenStream, function: TokenStream) -> TokenStream {
    let Ok(parsed) = syn::parse2::<ItemFn>(function.clone()) else {
        let mut tokens = not_a_function(&function);
        tokens.extend(function);
        return tokens;
    };
    let mut mistakes = Mistakes::default();
    let state = read_state(state, &mut mistakes);
    check_signature(&parsed.sig, state.as_ref(), &mut mistakes);
    let mut tokens = function;
    match state {
        Some(state) if mistakes.is_empty() => tokens.extend(checks(&parsed.sig, &state)),
        _ => tokens.extend(mistakes.into_tokens()),
    }
    tokens
}

fn not_a_function(item: &TokenStream) -> TokenStream {
    let first = item.clone().into_iter().next();
    let mut mistakes = Mistakes::default();
    mistakes.at(first, "`#[node(..)]` belongs on an `async fn`");
    mistakes.into_tokens()
}

fn read_state(state: TokenStream, mistakes: &mut Mistakes) -> Option<Type> {
    if state.is_empty() {
        mistakes.at(state, "say which state the graph has: `#[node(MyState)]`");
        return None;
    }
    match syn::parse2(state.clone()) {
        Ok(ty) => Some(ty),
        Err(_) => {
            mistakes.at(state, "`#[node(..)]` takes one type, the state of the graph: `#[node(MyState)]`");
            None
        }
    }
}

fn check_signature(signature: &Signature, state: Option<&Type>, mistakes: &mut Mistakes) {
    if signature.asyncness.is_none() {
        mistakes.at(signature.fn_token, "a node is an `async fn`");
    }
    if !signature.generics.params.is_empty() {
        mistakes.at(
            &signature.generics.params,
            "the checks need concrete types: remove `#[node(..)]`, or check a function that calls this one",
        );
    }
    if let Some(variadic) = &signature.variadic {
        mistakes.at(variadic, "a node takes extractors");
    }
    for argument in &signature.inputs {
        match argument {
            FnArg::Receiver(receiver) => mistakes.at(
                receiver,
                "a node has no `self`: let the graph hold the value with `.dep(value)` and take `Dep<T>`, or pass a closure",
            ),
            FnArg::Typed(argument) => check_argument(&argument.ty, state, mistakes),
        }
    }
    if let Some(ninth) = signature.inputs.iter().nth(MAX_ARGUMENTS) {
        mistakes.at(ninth, "a node takes at most eight arguments: put some of them into an extractor of your own (`FromTask`)");
    }
}

fn check_argument(ty: &Type, state: Option<&Type>, mistakes: &mut Mistakes) {
    match ty {
        Type::Reference(reference) => {
            let target = reference.elem.to_token_stream().to_string();
            let is_state = state.is_some_and(|state| state.to_token_stream().to_string() == target);
            let message = match is_state {
                true => format!(
                    "a node outlives the borrow of its arguments: take `Snapshot<{target}>`, which is shared and not copied, or `{target}`"
                ),
                false => "a node outlives the borrow of its arguments: take a value".to_owned(),
            };
            mistakes.at(ty, message);
        }
        Type::ImplTrait(_) => mistakes.at(ty, "an argument of a node is a type with a name"),
        _ => {}
    }
}

fn checks(signature: &Signature, state: &Type) -> TokenStream {
    let name = &signature.ident;
    let types: Vec<&Type> = signature.inputs.iter().filter_map(typed).map(|argument| &*argument.ty).collect();
    let names: Vec<_> = (0..types.len()).map(|number| format_ident!("__argument_{number}")).collect();
    let arguments = types
        .iter()
        .map(|ty| quote_spanned!(ty.span()=> ::agentgraph::__private::is_argument::<#state, #ty>();));
    let unit: Type = syn::parse_quote!(());
    let (output, span) = match &signature.output {
        ReturnType::Type(_, ty) => (&**ty, ty.span()),
        ReturnType::Default => (&unit, name.span()),
    };
    let output = quote_spanned!(span=> ::agentgraph::__private::is_output::<#state, #output>(););
    let future = quote_spanned!(name.span()=> ::agentgraph::__private::is_future(#name(#(#names),*)););
    // A bound on the function: a type that is no state is reported here once, and assumed to be one inside.
    let condition = quote_spanned!(state.span()=> where #state: ::agentgraph::State);
    quote! {
        #[allow(dead_code, trivial_bounds, clippy::all)]
        const _: () = {
            fn __types() #condition {
                #(#arguments)*
                #output
            }
            fn __future(#(#names: #types),*) {
                #future
            }
        };
    }
}

fn typed(argument: &FnArg) -> Option<&PatType> {
    match argument {
        FnArg::Typed(argument) => Some(argument),
        FnArg::Receiver(_) => None,
    }
}
