//! Segments, and their ties to experiments as lists.

use serde::{Deserialize, Serialize};

use super::Stamp;

/// The tie from an experiment to a segment as one of its lists.
#[derive(Clone, Debug, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub(crate) struct ListTie {
    #[serde(flatten)]
    pub(crate) stamp: Stamp,
    pub(crate) segment_id: String,
}

/// A named set of students, groups and other segments. The lists of experiments and of segments are private
/// segments.
#[derive(Clone, Debug, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub(crate) struct Segment {
    #[serde(flatten)]
    pub(crate) stamp: Stamp,
    /// The number in the order of creation.
    pub(crate) sequence: u64,
    pub(crate) id: String,
    pub(crate) name: String,
    pub(crate) description: Option<String>,
    pub(crate) list_type: Option<String>,
    pub(crate) context: String,
    #[serde(rename = "type")]
    pub(crate) kind: SegmentKind,
    pub(crate) tags: Option<Vec<String>>,
    /// The time of the last write of the members, who are always written together.
    pub(crate) enlisted_at: String,
    pub(crate) users: Vec<String>,
    pub(crate) groups: Vec<ListGroup>,
    /// The ids of segments whose members belong to this one.
    pub(crate) sub_segments: Vec<String>,
}

/// The kind of a segment.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(crate) enum SegmentKind {
    /// Public, used by its name.
    Public,
    /// A list of an experiment or a segment.
    Private,
    /// The global exclusion list of a context.
    GlobalExclude,
}

/// A group on a list.
#[derive(Clone, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub(crate) struct ListGroup {
    #[serde(rename = "type")]
    pub(crate) kind: String,
    pub(crate) group_id: String,
}
