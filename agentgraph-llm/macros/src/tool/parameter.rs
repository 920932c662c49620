//! One parameter: an argument of the model, or a value that is injected.

use quote::ToTokens;
use syn::ext::IdentExt;
use syn::{
    Attribute, Expr, GenericArgument, Meta, Pat, PatType, PathArguments, PathSegment, Type, TypeParamBound,
    TypeReference,
};

use super::docs;
use crate::mistakes::Mistakes;

/// The types that are injected, by the last word of their path.
const INJECTED: &[&str] = &["Ctx", "ToolCall", "Snapshot", "CallContext", "Dep", "Session", "Input"];

pub(super) enum Parameter {
    Argument(Box<Argument>),
    Injected(Box<Injected>),
}

/// A value that the model gives.
pub(super) struct Argument {
    /// Its name in the schema.
    pub(super) name: String,
    pub(super) ty: Type,
    /// The lines of its description.
    pub(super) description: Vec<Expr>,
    pub(super) default: Option<DefaultValue>,
}

/// The value of an argument that the model has left out.
pub(super) enum DefaultValue {
    /// `#[default]`
    OfType,
    /// `#[default(5)]`
    Given(Expr),
}

/// A value that comes from the call.
pub(super) struct Injected {
    /// The type of the value, without the `&` of the parameter.
    pub(super) ty: Type,
    pub(super) passed: Passed,
}

/// How the function takes an injected value.
#[derive(Clone, Copy)]
pub(super) enum Passed {
    Value,
    Reference,
    /// A `&dyn Store`, taken out of its `Arc`.
    Pointee,
}

impl Parameter {
    /// Reads a parameter and removes the attributes that only the macro knows.
    pub(super) fn read(parameter: &mut PatType, mistakes: &mut Mistakes) -> Self {
        let attributes = std::mem::take(&mut parameter.attrs);
        let (docs, attributes) = attributes.into_iter().partition(docs::is_doc);
        let (defaults, attributes) = taken("default", attributes);
        let (injects, attributes) = taken("inject", attributes);
        parameter.attrs = attributes;
        let injected =
            injected(&parameter.ty).or_else(|| injects.first().map(|_| by_attribute(&parameter.ty)));
        if let Some(inject) = injects.first().filter(|inject| !matches!(inject.meta, Meta::Path(_))) {
            mistakes.at(inject, "`#[inject]` takes no value");
        }
        for second in defaults.iter().skip(1).chain(injects.iter().skip(1)) {
            mistakes.at(second, "this attribute is already there");
        }
        match injected {
            Some(injected) => {
                if let Some(default) = defaults.first() {
                    mistakes.at(
                        default,
                        "an injected value has no default: only arguments of the model have one",
                    );
                }
                Parameter::Injected(Box::new(injected))
            }
            None => Parameter::Argument(Box::new(Argument {
                name: argument_name(&parameter.pat, mistakes),
                ty: argument_type(&parameter.ty, mistakes),
                description: docs::lines(&docs),
                default: defaults.first().and_then(|default| DefaultValue::read(default, mistakes)),
            })),
        }
    }

    pub(super) fn argument(&self) -> Option<&Argument> {
        match self {
            Parameter::Argument(argument) => Some(argument),
            Parameter::Injected(_) => None,
        }
    }

    pub(super) fn injected(&self) -> Option<&Injected> {
        match self {
            Parameter::Injected(injected) => Some(injected),
            Parameter::Argument(_) => None,
        }
    }
}

impl DefaultValue {
    fn read(attribute: &Attribute, mistakes: &mut Mistakes) -> Option<Self> {
        match &attribute.meta {
            Meta::Path(_) => Some(DefaultValue::OfType),
            Meta::List(list) => match list.parse_args() {
                Ok(value) => Some(DefaultValue::Given(value)),
                Err(error) => {
                    mistakes.at(attribute, format!("a default is written `#[default(5)]`: {error}"));
                    None
                }
            },
            Meta::NameValue(_) => {
                mistakes.at(attribute, "a default is written `#[default(5)]`");
                None
            }
        }
    }
}

fn taken(name: &str, attributes: Vec<Attribute>) -> (Vec<Attribute>, Vec<Attribute>) {
    attributes.into_iter().partition(|attribute| attribute.path().is_ident(name))
}

fn argument_name(pattern: &Pat, mistakes: &mut Mistakes) -> String {
    match pattern {
        Pat::Ident(name) if name.by_ref.is_none() && name.subpat.is_none() => name.ident.unraw().to_string(),
        other => {
            mistakes.at(other, "an argument needs a name, which the model reads: take it apart in the body");
            String::new()
        }
    }
}

fn argument_type(ty: &Type, mistakes: &mut Mistakes) -> Type {
    match ty {
        Type::Reference(reference) => mistakes.at(ty, reference_message(&reference.elem)),
        Type::ImplTrait(_) => {
            mistakes.at(ty, "an argument of a tool is a type with a name: the schema needs it")
        }
        Type::Infer(_) | Type::Never(_) => mistakes.at(ty, "an argument of a tool is a type with a name"),
        _ => {
            if let Some(reference) = inner_reference(ty) {
                mistakes.at(reference, reference_message(&reference.elem));
            }
        }
    }
    ty.clone()
}

/// A reference in the type, as in `Option<&str>`: the compiler would only say that a trait is not general
/// enough.
fn inner_reference(ty: &Type) -> Option<&TypeReference> {
    match ty {
        Type::Reference(reference) => Some(reference),
        Type::Path(path) => path.path.segments.iter().flat_map(generics).find_map(inner_reference),
        Type::Tuple(tuple) => tuple.elems.iter().find_map(inner_reference),
        Type::Array(array) => inner_reference(&array.elem),
        Type::Paren(inner) => inner_reference(&inner.elem),
        Type::Group(inner) => inner_reference(&inner.elem),
        _ => None,
    }
}

fn reference_message(target: &Type) -> String {
    let owned = match target {
        Type::Path(path) if path.path.is_ident("str") => "String".to_owned(),
        Type::Slice(slice) => format!("Vec<{}>", slice.elem.to_token_stream()),
        other => other.to_token_stream().to_string(),
    };
    format!("a tool owns its arguments: take `{owned}`")
}

/// The parameter as an injected value, if its type is one of those that always are.
fn injected(ty: &Type) -> Option<Injected> {
    let (inner, passed) = match ty {
        Type::Reference(reference) if reference.mutability.is_none() => (&*reference.elem, Passed::Reference),
        other => (other, Passed::Value),
    };
    if let (Type::TraitObject(object), Passed::Reference) = (inner, passed) {
        let is_store = object.bounds.iter().any(is_store);
        let ty = syn::parse_quote!(::std::sync::Arc<#object>);
        return is_store.then_some(Injected { ty, passed: Passed::Pointee });
    }
    is_injected(inner).then(|| Injected { ty: inner.clone(), passed })
}

fn is_injected(ty: &Type) -> bool {
    let Some(last) = last_segment(ty) else { return false };
    if INJECTED.iter().any(|name| last.ident == name) {
        return true;
    }
    match (&*last.ident.to_string(), first_generic(last)) {
        ("Option", Some(inner)) => last_segment(inner).is_some_and(|inner| inner.ident == "CallContext"),
        ("Arc", Some(Type::TraitObject(object))) => object.bounds.iter().any(is_store),
        _ => false,
    }
}

fn is_store(bound: &TypeParamBound) -> bool {
    let TypeParamBound::Trait(bound) = bound else { return false };
    bound.path.segments.last().is_some_and(|last| last.ident == "Store")
}

fn by_attribute(ty: &Type) -> Injected {
    match ty {
        Type::Reference(reference) => Injected { ty: (*reference.elem).clone(), passed: Passed::Reference },
        other => Injected { ty: other.clone(), passed: Passed::Value },
    }
}

fn last_segment(ty: &Type) -> Option<&PathSegment> {
    match ty {
        Type::Path(path) => path.path.segments.last(),
        _ => None,
    }
}

fn first_generic(segment: &PathSegment) -> Option<&Type> {
    generics(segment).next()
}

/// The types between the angle brackets.
fn generics(segment: &PathSegment) -> impl Iterator<Item = &Type> {
    let arguments = match &segment.arguments {
        PathArguments::AngleBracketed(arguments) => Some(&arguments.args),
        _ => None,
    };
    arguments.into_iter().flatten().filter_map(|argument| match argument {
        GenericArgument::Type(ty) => Some(ty),
        _ => None,
    })
}
