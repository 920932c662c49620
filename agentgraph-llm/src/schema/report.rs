//! The differences between a schema and its transformed form.

use std::fmt;

/// A rule of the original that the transformed schema does not hold.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Unenforced {
    /// The JSON pointer of the place in the original schema; empty for the root.
    pub at: String,
    /// The keyword, such as `minLength`.
    pub keyword: String,
}

/// A reason why a schema cannot be strict.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Obstacle {
    /// The JSON pointer of the place in the original schema; empty for the root.
    pub at: String,
    /// The reason.
    pub kind: ObstacleKind,
}

impl Obstacle {
    pub(super) fn new(at: &str, kind: ObstacleKind) -> Self {
        Obstacle { at: at.to_owned(), kind }
    }
}

impl fmt::Display for Obstacle {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.at.as_str() {
            "" => write!(out, "at the root: {}", self.kind),
            at => write!(out, "at {at}: {}", self.kind),
        }
    }
}

/// The kind of an [`Obstacle`].
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum ObstacleKind {
    /// An object with free keys, such as a map.
    FreeKeys,
    /// A value of any type, such as a `serde_json::Value`.
    AnyValue,
    /// A schema that accepts no value.
    NoValue,
    /// A property that may be absent but not null, and has no default.
    Optional,
    /// A tuple with elements of different types.
    Tuple,
    /// A type that contains itself.
    Recursion,
    /// Parts of an `allOf`, or siblings of a `$ref` or a union, that cannot be written as one schema.
    Unfoldable,
    /// A keyword that changes which values are valid in a way that no description replaces.
    Keyword(String),
    /// A `$ref` to a place that is not in the schema.
    UnknownRef(String),
    /// Arguments of a tool that are not one object.
    NotAnObject,
    /// A schema that grows too large when its references are replaced.
    TooLarge,
}

impl fmt::Display for ObstacleKind {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            ObstacleKind::FreeKeys => out.write_str("an object with free keys"),
            ObstacleKind::AnyValue => out.write_str("a value of any type"),
            ObstacleKind::NoValue => out.write_str("a schema that accepts no value"),
            ObstacleKind::Optional => {
                out.write_str("a property that may be absent: make it nullable, or give it a default")
            }
            ObstacleKind::Tuple => out.write_str("a tuple with elements of different types"),
            ObstacleKind::Recursion => out.write_str("a type that contains itself"),
            ObstacleKind::Unfoldable => out.write_str("rules that cannot be written as one schema"),
            ObstacleKind::Keyword(keyword) => write!(out, "the keyword `{keyword}`"),
            ObstacleKind::UnknownRef(target) => write!(out, "a `$ref` to `{target}`, which is not there"),
            ObstacleKind::NotAnObject => out.write_str("arguments that are not one object"),
            ObstacleKind::TooLarge => out.write_str("too many nested references"),
        }
    }
}
