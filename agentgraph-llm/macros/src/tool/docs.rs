//! Doc comments as texts for the model.

use syn::{Attribute, Expr, Meta};

/// Whether the attribute is a doc comment, or `#[doc = ..]`.
pub(super) fn is_doc(attribute: &Attribute) -> bool {
    attribute.path().is_ident("doc")
}

/// The lines of a doc comment. A line may be an expression such as `include_str!(..)`.
pub(super) fn lines(attributes: &[Attribute]) -> Vec<Expr> {
    let values = attributes.iter().filter_map(|attribute| match &attribute.meta {
        Meta::NameValue(doc) => Some(doc.value.clone()),
        _ => None,
    });
    values.collect()
}
