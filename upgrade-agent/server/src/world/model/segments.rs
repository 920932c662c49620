//! Segments, and their ties to experiments as lists.

use serde::{Deserialize, Serialize};

use super::Stamp;

/// That an experiment takes in, or leaves out, the members of a segment.
#[derive(Clone, Debug, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub(crate) struct ListTie {
    #[serde(flatten)]
    pub(crate) stamp: Stamp,
    pub(crate) segment_id: String,
}

/// A named set of students, groups and other segments. The lists of experiments and of segments are
/// segments too, private ones.
#[derive(Clone, Debug, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub(crate) struct Segment {
    #[serde(flatten)]
    pub(crate) stamp: Stamp,
    /// Counts segments in the order of their making.
    pub(crate) sequence: u64,
    pub(crate) id: String,
    pub(crate) name: String,
    pub(crate) description: Option<String>,
    pub(crate) list_type: Option<String>,
    pub(crate) context: String,
    #[serde(rename = "type")]
    pub(crate) kind: SegmentKind,
    pub(crate) tags: Option<Vec<String>>,
    /// When the members were last written: all of them are, each time.
    pub(crate) enlisted_at: String,
    pub(crate) users: Vec<String>,
    pub(crate) groups: Vec<ListGroup>,
    /// The ids of the segments whose members are members here.
    pub(crate) sub_segments: Vec<String>,
}

/// What a segment is for.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(crate) enum SegmentKind {
    /// Is offered to everybody by its name.
    Public,
    /// Belongs to an experiment or a segment as one of its lists.
    Private,
    /// Leaves its members out of a whole context.
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
