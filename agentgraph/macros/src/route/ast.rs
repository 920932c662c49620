//! The parsed enum: targets instead of variants.

use syn::ext::IdentExt;
use syn::parse::ParseStream;
use syn::{
    Attribute, Data, DeriveInput, Error, Fields, Generics, Ident, LitStr, Meta, Result, Type, Variant,
};

use crate::mistakes::Mistakes;
use crate::words::{self, Words};

pub(super) struct RouteEnum {
    pub(super) name: Ident,
    pub(super) generics: Generics,
    pub(super) choices: Vec<Choice>,
}

/// One variant.
pub(super) struct Choice {
    pub(super) variant: Ident,
    pub(super) target: Target,
}

pub(super) enum Target {
    Node(String),
    /// A node, and the type of the input it gets.
    Dispatch(String, Box<Type>),
    End,
}

const ROUTE: Words = Words { attribute: "route", known: &["end"] };

/// Returns `None` if the input is no enum that could be a route.
pub(super) fn read(input: &DeriveInput, mistakes: &mut Mistakes) -> Option<RouteEnum> {
    let variants = match &input.data {
        Data::Enum(data) => &data.variants,
        Data::Struct(data) => {
            mistakes.at(data.struct_token, ONLY_ENUMS);
            return None;
        }
        Data::Union(data) => {
            mistakes.at(data.union_token, ONLY_ENUMS);
            return None;
        }
    };
    if variants.is_empty() {
        mistakes.at(
            &input.ident,
            "a route names at least one node: add a variant, `#[route(end)]` to end the branch",
        );
        return None;
    }
    for attribute in input.attrs.iter().filter(|attribute| attribute.path().is_ident("route")) {
        mistakes.at(attribute, "`#[route(..)]` belongs on a variant");
    }
    let choices = variants.iter().filter_map(|variant| read_variant(variant, mistakes)).collect();
    Some(RouteEnum { name: input.ident.clone(), generics: input.generics.clone(), choices })
}

const ONLY_ENUMS: &str = "a route is an enum whose variants are the nodes to go to";

/// The content of `#[route(..)]`.
enum RouteAttribute {
    Name(LitStr),
    End(Ident),
}

fn read_variant(variant: &Variant, mistakes: &mut Mistakes) -> Option<Choice> {
    let said = match read_attributes(&variant.attrs) {
        Ok(said) => said,
        Err(error) => {
            mistakes.add(error);
            return None;
        }
    };
    let payload = match read_payload(variant) {
        Ok(payload) => payload,
        Err(error) => {
            mistakes.add(error);
            return None;
        }
    };
    let target = match (said, payload) {
        (Some(RouteAttribute::End(word)), Some(_)) => {
            mistakes.at(word, "the end takes no input: remove the payload, or name the node that gets it");
            return None;
        }
        (Some(RouteAttribute::End(_)), None) => Target::End,
        (Some(RouteAttribute::Name(name)), payload) => node(name.value(), payload),
        (None, payload) => node(snake_case(&variant.ident.unraw().to_string()), payload),
    };
    Some(Choice { variant: variant.ident.clone(), target })
}

fn node(name: String, payload: Option<Type>) -> Target {
    match payload {
        None => Target::Node(name),
        Some(ty) => Target::Dispatch(name, Box::new(ty)),
    }
}

fn read_payload(variant: &Variant) -> Result<Option<Type>> {
    let name = &variant.ident;
    match &variant.fields {
        Fields::Unit => Ok(None),
        Fields::Named(fields) => Err(Error::new_spanned(
            fields,
            format!(
                "a variant with a payload is written `{name}(Payload)`: put the fields into a struct of their own"
            ),
        )),
        Fields::Unnamed(fields) => {
            let mut types = fields.unnamed.iter().map(|field| &field.ty);
            match (types.next(), types.next()) {
                (Some(ty), None) => Ok(Some(ty.clone())),
                (None, _) => Err(Error::new_spanned(
                    fields,
                    format!("a variant without a payload is written `{name}`"),
                )),
                (Some(_), Some(second)) => Err(Error::new_spanned(
                    second,
                    "a dispatch carries one input: put both into a tuple or a struct",
                )),
            }
        }
    }
}

fn read_attributes(attributes: &[Attribute]) -> Result<Option<RouteAttribute>> {
    let mut said = None;
    for attribute in attributes.iter().filter(|attribute| attribute.path().is_ident("route")) {
        if said.is_some() {
            return Err(Error::new_spanned(
                attribute,
                "the variant has a target already: keep one `#[route(..)]`",
            ));
        }
        said = Some(match &attribute.meta {
            Meta::List(list) if !list.tokens.is_empty() => attribute.parse_args_with(read_words)?,
            _ => return Err(Error::new_spanned(attribute, "write `#[route(\"node\")]` or `#[route(end)]`")),
        });
    }
    Ok(said)
}

fn read_words(input: ParseStream) -> Result<RouteAttribute> {
    let said = if input.peek(LitStr) {
        RouteAttribute::Name(node_name(input.parse()?)?)
    } else if input.peek(Ident::peek_any) {
        RouteAttribute::End(read_end(input)?)
    } else {
        return Err(input.error("write `#[route(\"node\")]` or `#[route(end)]`"));
    };
    if words::next(input)? { Err(input.error("a variant has one target")) } else { Ok(said) }
}

fn read_end(input: ParseStream) -> Result<Ident> {
    let word = input.fork().call(Ident::parse_any)?;
    ROUTE.parse(input).map_err(|error| {
        Error::new(error.span(), format!("{error}, or a node's name in quotes: `#[route(\"{word}\")]`"))
    })
}

fn node_name(name: LitStr) -> Result<LitStr> {
    match name.value().as_str() {
        "" => Err(Error::new(name.span(), "a node's name is not empty")),
        "__end__" => Err(Error::new(name.span(), "write `#[route(end)]` for the end")),
        "__start__" => {
            Err(Error::new(name.span(), "nothing can go to the start: name a node, or `#[route(end)]`"))
        }
        _ => Ok(name),
    }
}

/// Writes `ReadPage` as `read_page`, `HTTPGet` as `http_get`.
fn snake_case(name: &str) -> String {
    let letters: Vec<char> = name.chars().collect();
    let mut snake = String::new();
    for (at, letter) in letters.iter().enumerate() {
        let before = at.checked_sub(1).map(|before| letters[before]);
        let after_is_lower = letters.get(at + 1).is_some_and(|after| after.is_lowercase());
        let begins_word =
            before.is_some_and(|before| before != '_' && (!before.is_uppercase() || after_is_lower));
        if letter.is_uppercase() && begins_word {
            snake.push('_');
        }
        snake.extend(letter.to_lowercase());
    }
    snake
}

#[cfg(test)]
mod tests {
    use super::snake_case;

    #[test]
    fn variants_are_named_in_snake_case() {
        let cases = [
            ("Approve", "approve"),
            ("ReadPage", "read_page"),
            ("HTTPGet", "http_get"),
            ("GetHTTP", "get_http"),
            ("Step2", "step2"),
            ("Step2Again", "step2_again"),
            ("Already_Snake", "already_snake"),
            ("A", "a"),
            ("ÄhnlichSuchen", "ähnlich_suchen"),
        ];
        for (variant, node) in cases {
            assert_eq!(snake_case(variant), node);
        }
    }
}
