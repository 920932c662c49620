//! The shape of a type, judged by its tokens alone. An alias can hide any type, so every shape except
//! `Unknown` is certain; for an unknown shape, the generated code lets the compiler resolve the type.

use syn::{GenericArgument, PathArguments, Type};

pub(super) enum Shape<'a> {
    String,
    List(&'a Type),
    Map(&'a Type, &'a Type),
    /// A collection that is neither list nor map.
    Set,
    /// A type that is certainly no collection: a number, a tuple, an `Option`...
    Single,
    Unknown,
}

pub(super) fn of(ty: &Type) -> Shape<'_> {
    match ty {
        Type::Group(group) => of(&group.elem),
        Type::Paren(paren) => of(&paren.elem),
        Type::Array(_) | Type::Tuple(_) | Type::BareFn(_) | Type::Ptr(_) | Type::Reference(_) => {
            Shape::Single
        }
        Type::Path(path) if path.qself.is_none() => of_path(&path.path),
        _ => Shape::Unknown,
    }
}

fn of_path(path: &syn::Path) -> Shape<'_> {
    let Some(last) = path.segments.last().filter(|_| is_standard(path)) else { return Shape::Unknown };
    let arguments = types_in(&last.arguments);
    match (last.ident.to_string().as_str(), arguments.as_slice()) {
        ("String", []) => Shape::String,
        ("Vec", [item]) => Shape::List(item),
        ("HashMap" | "BTreeMap", [key, value, ..]) => Shape::Map(key, value),
        ("HashSet" | "BTreeSet" | "VecDeque", [_, ..]) => Shape::Set,
        ("Option", [_]) => Shape::Single,
        (name, []) if PRIMITIVES.contains(&name) => Shape::Single,
        _ => Shape::Unknown,
    }
}

const PRIMITIVES: &[&str] = &[
    "u8", "u16", "u32", "u64", "u128", "usize", "i8", "i16", "i32", "i64", "i128", "isize", "f32", "f64",
    "bool", "char",
];

fn is_standard(path: &syn::Path) -> bool {
    path.segments.len() == 1
        || path
            .segments
            .first()
            .is_some_and(|first| ["std", "alloc", "core"].iter().any(|name| first.ident == name))
}

fn types_in(arguments: &PathArguments) -> Vec<&Type> {
    let PathArguments::AngleBracketed(arguments) = arguments else { return Vec::new() };
    let types = arguments.args.iter().filter_map(|argument| match argument {
        GenericArgument::Type(ty) => Some(ty),
        _ => None,
    });
    types.collect()
}

pub(super) fn is_string(ty: &Type) -> bool {
    matches!(of(ty), Shape::String)
}

pub(super) fn is_option(ty: &Type) -> bool {
    match ty {
        Type::Group(group) => is_option(&group.elem),
        Type::Paren(paren) => is_option(&paren.elem),
        Type::Path(path) if path.qself.is_none() && is_standard(&path.path) => {
            path.path.segments.last().is_some_and(|last| last.ident == "Option")
        }
        _ => false,
    }
}
