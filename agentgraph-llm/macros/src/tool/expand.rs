//! The code of a tool: its type, the function that returns it, the original function as its `run`, and its
//! `Tool`.

use proc_macro2::{TokenStream, TokenTree};
use quote::{ToTokens, format_ident, quote, quote_spanned};
use syn::ext::IdentExt;
use syn::spanned::Spanned;
use syn::{Expr, ExprLit, Ident, Lit, ReturnType, Type};

use super::ast::ToolFunction;
use super::parameter::{Argument, DefaultValue, Injected, Parameter, Passed};

pub(super) fn tool(tool: &ToolFunction) -> TokenStream {
    let cfgs = &tool.cfgs;
    let ty = type_name(tool);
    let value = value(tool);
    let run = run(tool);
    let spec = spec(tool);
    let state = state(tool);
    let call = call(tool);
    quote! {
        #value

        #(#cfgs)*
        impl #ty {
            #run
        }

        #(#cfgs)*
        #[allow(clippy::all, clippy::pedantic)]
        const _: () = {
            #[::agentgraph_llm::__private::async_trait]
            impl ::agentgraph_llm::Tool for #ty {
                #spec
                #state
                #call
            }
        };
    }
}

/// A tool of the same name that cannot run.
pub(super) fn fallback(tool: &ToolFunction) -> TokenStream {
    let cfgs = &tool.cfgs;
    let ty = type_name(tool);
    let value = value(tool);
    let run = run(tool);
    quote! {
        #value

        #(#cfgs)*
        impl #ty {
            #run
        }

        #(#cfgs)*
        const _: () = {
            #[::agentgraph_llm::__private::async_trait]
            impl ::agentgraph_llm::Tool for #ty {
                fn spec(&self) -> ::agentgraph_llm::ToolSpec {
                    loop {}
                }
                async fn call(
                    &self,
                    _: &::agentgraph_llm::RawJson,
                    _: &::agentgraph_llm::ToolCall,
                ) -> ::core::result::Result<::agentgraph_llm::ToolOutput, ::agentgraph_llm::ToolError> {
                    loop {}
                }
            }
        };
    }
}

/// The type of the tool. Its name is unlikely in code, so it collides with no module and no type.
fn type_name(tool: &ToolFunction) -> Ident {
    format_ident!("__tool_{}", tool.function.sig.ident.unraw(), span = tool.function.sig.ident.span())
}

/// The function that returns the tool. A unit struct or a constant of the tool's name would be shorter to
/// use, but would turn every `let weather = ..` of the module into a pattern that matches the tool.
fn value(tool: &ToolFunction) -> TokenStream {
    let ToolFunction { cfgs, docs, function, .. } = tool;
    let (vis, name) = (&function.vis, &function.sig.ident);
    let ty = type_name(tool);
    quote! {
        #(#cfgs)*
        #(#docs)*
        #vis const fn #name() -> #ty {
            #ty {}
        }

        #(#cfgs)*
        #[doc(hidden)]
        #[allow(non_camel_case_types, dead_code)]
        #[derive(::core::clone::Clone, ::core::marker::Copy, ::core::fmt::Debug)]
        #vis struct #ty {}
    }
}

fn run(tool: &ToolFunction) -> TokenStream {
    let mut function = tool.function.clone();
    function.sig.ident = Ident::new("run", tool.function.sig.ident.span());
    // By value, so that a lifetime left out of the output is still that of an argument.
    function.sig.inputs.insert(0, syn::parse_quote!(self));
    quote! {
        /// The function of the tool.
        #[allow(clippy::too_many_arguments, dead_code)]
        #function
    }
}

fn spec(tool: &ToolFunction) -> TokenStream {
    let arguments = tool.parameters.iter().filter_map(Parameter::argument).map(|argument| {
        let Argument { name, ty, description, .. } = argument;
        let access = access(ty);
        match default_of(argument) {
            None => quote!(.argument(#access, #name, &[#(#description),*])),
            Some(default) => quote!(.argument_or(#access, #name, &[#(#description),*], #default)),
        }
    });
    let ToolFunction { name, description, settings, .. } = tool;
    let strict = settings.strict;
    quote! {
        fn spec(&self) -> ::agentgraph_llm::ToolSpec {
            ::agentgraph_llm::__private::ArgumentsSchema::new()
                #(#arguments)*
                .into_spec(#name, &[#(#description),*], #strict)
        }
    }
}

fn state(tool: &ToolFunction) -> Option<TokenStream> {
    let injections: Vec<_> = tool
        .parameters
        .iter()
        .filter_map(Parameter::injected)
        .map(|injected| injection(&injected.ty))
        .collect();
    if injections.is_empty() {
        return None;
    }
    Some(quote! {
        fn state(&self) -> ::core::option::Option<::agentgraph_llm::StateType> {
            ::core::option::Option::None #(.or_else(#injections.state))*
        }
    })
}

fn call(tool: &ToolFunction) -> TokenStream {
    let values: Vec<_> = (0..tool.parameters.len()).map(|number| format_ident!("__value_{number}")).collect();
    let arguments = read_arguments(tool, &values);
    let injected = tool.parameters.iter().zip(&values).filter_map(|(parameter, value)| {
        let Injected { ty, .. } = parameter.injected()?;
        let injection = injection(ty);
        Some(quote!(let #value = (#injection.take)(__call)?;))
    });
    let passed = tool.parameters.iter().zip(&values).map(|(parameter, value)| match parameter.injected() {
        Some(Injected { passed: Passed::Reference, .. }) => quote!(&#value),
        Some(Injected { passed: Passed::Pointee, .. }) => quote!(&*#value),
        _ => quote!(#value),
    });
    let output = finished(tool, quote!(self.run(#(#passed),*)));
    quote! {
        async fn call(
            &self,
            __input: &::agentgraph_llm::RawJson,
            __call: &::agentgraph_llm::ToolCall,
        ) -> ::core::result::Result<::agentgraph_llm::ToolOutput, ::agentgraph_llm::ToolError> {
            #arguments
            #(#injected)*
            #output
        }
    }
}

/// Reads every argument before the first error is returned, so that the model learns of all at once.
fn read_arguments(tool: &ToolFunction, values: &[Ident]) -> TokenStream {
    let arguments: Vec<_> = tool
        .parameters
        .iter()
        .zip(values)
        .filter_map(|(parameter, value)| Some((parameter.argument()?, value)))
        .collect();
    let names = arguments.iter().map(|(argument, _)| &argument.name);
    let values = arguments.iter().map(|(_, value)| value);
    let reads = arguments.iter().map(|(argument, _)| {
        let Argument { name, ty, .. } = argument;
        let access = access(ty);
        match default_of(argument) {
            None => quote!(__given.take(#access, #name)),
            Some(default) => quote!(__given.take_or(#access, #name, #default)),
        }
    });
    quote! {
        #[allow(unused_mut)]
        let mut __given = ::agentgraph_llm::__private::Given::read(__input, &[#(#names),*])?;
        let (#(::core::option::Option::Some(#values),)*) = (#(#reads,)*) else {
            return ::core::result::Result::Err(__given.into_error());
        };
        __given.check()?;
    }
}

/// The call of the function with the conversion of its output.
fn finished(tool: &ToolFunction, run: TokenStream) -> TokenStream {
    let signature = &tool.function.sig;
    let value = match signature.asyncness {
        Some(_) => {
            // A variable at the function's name, so that a future that is not `Send` is reported there.
            let future = Ident::new("__future", signature.ident.span());
            let boxed = quote_spanned!(future.span()=> ::agentgraph_llm::__private::future(#future));
            quote!({
                let #future = #run;
                #boxed.await
            })
        }
        None => run,
    };
    let (ty, span) = match &signature.output {
        ReturnType::Type(_, ty) if has_impl(ty) => (quote!(_), signature.ident.span()),
        ReturnType::Type(_, ty) => (quote!(#ty), ty.span()),
        ReturnType::Default => (quote_spanned!(signature.ident.span()=> ()), signature.ident.span()),
    };
    let conversion = match tool.returns_result() {
        true => quote_spanned!(span=> ::agentgraph_llm::__private::outcome::<#ty>()),
        false => quote_spanned!(span=> ::agentgraph_llm::__private::output::<#ty>()),
    };
    quote! {
        let __value = #value;
        (#conversion)(__value)
    }
}

/// Whether there is an `impl Trait` in the type, which has no name.
fn has_impl(ty: &Type) -> bool {
    fn any(tokens: TokenStream) -> bool {
        tokens.into_iter().any(|token| match token {
            TokenTree::Ident(ident) => ident == "impl",
            TokenTree::Group(group) => any(group.stream()),
            _ => false,
        })
    }
    any(ty.to_token_stream())
}

fn access(ty: &Type) -> TokenStream {
    quote_spanned!(ty.span()=> ::agentgraph_llm::__private::argument::<#ty>())
}

fn injection(ty: &Type) -> TokenStream {
    quote_spanned!(ty.span()=> ::agentgraph_llm::__private::injected::<#ty>())
}

/// The default of an argument as a closure.
fn default_of(argument: &Argument) -> Option<TokenStream> {
    let ty = &argument.ty;
    match argument.default.as_ref()? {
        DefaultValue::OfType => {
            Some(quote_spanned!(ty.span()=> || <#ty as ::core::default::Default>::default()))
        }
        // A text literal is a `&str`, and hardly an argument is.
        DefaultValue::Given(value @ Expr::Lit(ExprLit { lit: Lit::Str(_), .. })) => {
            Some(quote_spanned!(value.span()=> || -> #ty { ::core::convert::Into::into(#value) }))
        }
        DefaultValue::Given(value) => Some(quote_spanned!(value.span()=> || -> #ty { #value })),
    }
}
