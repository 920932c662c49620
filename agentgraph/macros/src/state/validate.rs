//! Finds mistakes that no single attribute shows: reducers on types that they cannot reduce, and colliding
//! names.

use std::collections::HashMap;

use quote::ToTokens;
use syn::Ident;

use super::ast::{Field, Reduce, StateStruct};
use super::shape::{self, Shape};
use crate::mistakes::Mistakes;

pub(super) fn check(state: &StateStruct, mistakes: &mut Mistakes) {
    for field in &state.fields {
        check_reducer(field, mistakes);
        check_lifetime(field, mistakes);
    }
    check_methods(state, mistakes);
    check_aliases(state, mistakes);
}

fn check_reducer(field: &Field, mistakes: &mut Mistakes) {
    let shape = shape::of(&field.ty);
    match (&field.reduce, &shape) {
        (Reduce::Append(_) | Reduce::ById(_), Shape::List(_) | Shape::Unknown) => {}
        (Reduce::Append(word), Shape::Map(..)) => {
            misfit(mistakes, word, "a `Vec`", field, "use `merge` for a map")
        }
        (Reduce::Append(word) | Reduce::ById(word), _) => misfit(mistakes, word, "a `Vec`", field, WITH),
        (Reduce::Merge(_), Shape::Map(..) | Shape::Unknown) => {}
        (Reduce::Merge(word), Shape::List(_)) => {
            misfit(
                mistakes,
                word,
                MAP,
                field,
                "use `append` for a list, or `by_id` for one whose items have keys",
            );
        }
        (Reduce::Merge(word), _) => misfit(mistakes, word, MAP, field, WITH),
        (Reduce::Sum(word), Shape::List(_)) => {
            misfit(mistakes, word, "a number", field, "use `append` for a list");
        }
        (Reduce::Sum(word), Shape::Map(..)) => {
            misfit(mistakes, word, "a number", field, "use `merge` for a map");
        }
        (Reduce::Sum(word), Shape::String | Shape::Set) => {
            misfit(mistakes, word, "a number", field, WITH);
        }
        (Reduce::Sum(word), _) if shape::is_option(&field.ty) => {
            misfit(
                mistakes,
                word,
                "a number",
                field,
                "use the number without `Option`: a sum begins with zero",
            );
        }
        _ => {}
    }
}

const MAP: &str = "a `HashMap` or `BTreeMap`";
const WITH: &str = "use `with = path` for a function that combines two values of any type";

fn misfit(mistakes: &mut Mistakes, word: &Ident, needs: &str, field: &Field, remedy: &str) {
    let ty = printed(&field.ty);
    mistakes.at(word, format!("`{word}` reduces {needs}, and this field is `{ty}`: {remedy}"));
}

/// Prints a type without most of the spaces that the tokens are printed with.
fn printed(ty: &syn::Type) -> String {
    let text = ty.to_token_stream().to_string();
    text.replace(" < ", "<")
        .replace(" <", "<")
        .replace(" > ", ">")
        .replace(" >", ">")
        .replace(" ,", ",")
        .replace(" :: ", "::")
}

fn check_lifetime(field: &Field, mistakes: &mut Mistakes) {
    if let (false, Some(alias)) = (field.is_stored(), field.aliases.first()) {
        mistakes
            .at(alias, "an untracked channel is never stored, so no checkpoint holds it under another name");
    }
}

/// Checks that no setter has the name of another method of the update.
fn check_methods(state: &StateStruct, mistakes: &mut Mistakes) {
    let mut taken: HashMap<String, &str> = HashMap::new();
    for field in &state.fields {
        for (prefix, _) in field.methods().iter().filter(|(prefix, _)| !prefix.is_empty()) {
            taken.insert(format!("{prefix}{}", field.channel), &field.channel);
        }
    }
    for field in &state.fields {
        if field.channel == "is_empty" {
            mistakes.at(
                &field.ident,
                "every update has a method `is_empty`, so no setter can be called so: rename the field",
            );
        } else if let Some(owner) = taken.get(&field.channel) {
            let name = &field.channel;
            let message = format!(
                "`{name}` is the method of the update that the field `{owner}` gets: rename one of the two fields"
            );
            mistakes.at(&field.ident, message);
        }
    }
}

fn check_aliases(state: &StateStruct, mistakes: &mut Mistakes) {
    let mut taken: HashMap<String, &str> =
        state.fields.iter().map(|field| (field.channel.clone(), field.channel.as_str())).collect();
    for field in &state.fields {
        for alias in &field.aliases {
            if let Some(owner) = taken.insert(alias.value(), &field.channel) {
                mistakes.at(alias, format!("`{}` is a name of the channel `{owner}` already", alias.value()));
            }
        }
    }
}
