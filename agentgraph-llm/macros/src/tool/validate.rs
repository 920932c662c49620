//! The checks of a function's signature and of a tool's name.

use syn::{GenericArgument, GenericParam, Ident, PathArguments, Signature, Type};

use super::settings::Settings;
use crate::mistakes::Mistakes;

/// The longest name that every provider accepts, in bytes.
const LONGEST_NAME: usize = 64;

pub(super) fn signature(signature: &Signature, mistakes: &mut Mistakes) {
    if let Some(receiver) = signature.receiver() {
        mistakes.at(
            receiver,
            "a tool has no `self`: make it a free function, or use `FnTool` with a closure that owns the value",
        );
    }
    for parameter in &signature.generics.params {
        if !matches!(parameter, GenericParam::Lifetime(_)) {
            mistakes.at(parameter, "a tool has no type parameters: its schema needs concrete types");
        }
    }
    if let Some(word) = &signature.unsafety {
        mistakes.at(word, "a tool is called by a model: it cannot be `unsafe`");
    }
    if let Some(abi) = &signature.abi {
        mistakes.at(abi, "a tool is a Rust function: remove the ABI");
    }
    if let Some(variadic) = &signature.variadic {
        mistakes.at(variadic, "a tool has named arguments");
    }
}

/// Checks the arguments of a `Result`. A text converts to an error that ends the run, and its author means
/// one for the model.
pub(super) fn result(arguments: &PathArguments, mistakes: &mut Mistakes) {
    let PathArguments::AngleBracketed(arguments) = arguments else { return };
    let Some(GenericArgument::Type(error)) = arguments.args.get(1) else { return };
    let text = match error {
        Type::Path(path) => path.path.segments.last().is_some_and(|last| last.ident == "String"),
        Type::Reference(to) => matches!(&*to.elem, Type::Path(path) if path.path.is_ident("str")),
        _ => false,
    };
    if text {
        mistakes.at(
            error,
            "a text is no error of a tool: return `ToolError::failed(text)`, which the model reads",
        );
    }
}

/// Checks the name by the rules of the providers.
pub(super) fn name(name: &str, settings: &Settings, function: &Ident, mistakes: &mut Mistakes) {
    let allowed = |byte: u8| byte.is_ascii_alphanumeric() || byte == b'_' || byte == b'-';
    if !name.is_empty() && name.len() <= LONGEST_NAME && name.bytes().all(allowed) {
        return;
    }
    match &settings.name {
        Some(literal) => mistakes.at(literal, "a tool's name has 1 to 64 letters (a-z), digits, `_` and `-`"),
        None => mistakes.at(
            function,
            "a tool's name has 1 to 64 letters (a-z), digits, `_` and `-`: set another one, `#[tool(name = \"..\")]`",
        ),
    }
}
