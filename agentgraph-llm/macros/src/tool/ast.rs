//! The function as the later stages see it.

use proc_macro2::TokenStream;
use syn::ext::IdentExt;
use syn::{Attribute, Expr, FnArg, ItemFn, PathSegment, ReturnType, Type};

use super::docs;
use super::parameter::Parameter;
use super::settings::Settings;
use super::validate;
use crate::mistakes::Mistakes;

pub(super) struct ToolFunction {
    pub(super) settings: Settings,
    /// The name of the tool.
    pub(super) name: String,
    /// The lines of the description.
    pub(super) description: Vec<Expr>,
    /// The `cfg`s of the function, which every generated item repeats.
    pub(super) cfgs: Vec<Attribute>,
    /// The doc comment, for the struct.
    pub(super) docs: Vec<Attribute>,
    pub(super) parameters: Vec<Parameter>,
    /// The function without the attributes that only the macro reads.
    pub(super) function: ItemFn,
}

impl ToolFunction {
    pub(super) fn read(settings: TokenStream, mut function: ItemFn, mistakes: &mut Mistakes) -> Self {
        let settings = Settings::read(settings, mistakes);
        let name = match &settings.name {
            Some(name) => name.value(),
            None => function.sig.ident.unraw().to_string(),
        };
        validate::name(&name, &settings, &function.sig.ident, mistakes);
        if let Some(result) = result_of(&function) {
            validate::result(&result.arguments, mistakes);
        }
        let attributes = std::mem::take(&mut function.attrs);
        let (cfgs, attributes) =
            attributes.into_iter().partition(|attribute| attribute.path().is_ident("cfg"));
        let (docs, attributes) = Vec::into_iter(attributes).partition(docs::is_doc);
        function.attrs = attributes;
        let description = match &settings.description {
            Some(text) => vec![syn::parse_quote!(#text)],
            None => docs::lines(&docs),
        };
        let arguments = function.sig.inputs.iter_mut().filter_map(|input| match input {
            FnArg::Typed(argument) => Some(argument),
            FnArg::Receiver(_) => None,
        });
        let parameters = arguments.map(|argument| Parameter::read(argument, mistakes)).collect();
        ToolFunction { settings, name, description, cfgs, docs, parameters, function }
    }

    /// Whether the function returns a `Result`, as far as its name says.
    pub(super) fn returns_result(&self) -> bool {
        result_of(&self.function).is_some()
    }
}

fn result_of(function: &ItemFn) -> Option<&PathSegment> {
    let ReturnType::Type(_, ty) = &function.sig.output else { return None };
    let Type::Path(path) = &**ty else { return None };
    path.path.segments.last().filter(|last| last.ident.to_string().ends_with("Result"))
}
