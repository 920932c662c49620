//! Segments, and their ties to experiments as lists.

use serde::{Deserialize, Serialize};

use super::Stamp;

/// That an experiment takes in, or leaves out, the members of a segment.
#[derive(Clone, Debug, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub(in crate::server) struct ListTie {
    #[serde(flatten)]
    pub(in crate::server) stamp: Stamp,
    pub(in crate::server) segment_id: String,
}

/// A named set of students, groups and other segments. The lists of experiments and of segments are
/// segments too, private ones.
#[derive(Clone, Debug, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub(in crate::server) struct Segment {
    #[serde(flatten)]
    pub(in crate::server) stamp: Stamp,
    /// Counts segments in the order of their making.
    pub(in crate::server) sequence: u64,
    pub(in crate::server) id: String,
    pub(in crate::server) name: String,
    pub(in crate::server) description: Option<String>,
    pub(in crate::server) list_type: Option<String>,
    pub(in crate::server) context: String,
    #[serde(rename = "type")]
    pub(in crate::server) kind: SegmentKind,
    pub(in crate::server) tags: Option<Vec<String>>,
    /// When the members were last written: all of them are, each time.
    pub(in crate::server) enlisted_at: String,
    pub(in crate::server) users: Vec<String>,
    pub(in crate::server) groups: Vec<ListGroup>,
    /// The ids of the segments whose members are members here.
    pub(in crate::server) sub_segments: Vec<String>,
}

/// What a segment is for.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(in crate::server) enum SegmentKind {
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
pub(in crate::server) struct ListGroup {
    #[serde(rename = "type")]
    pub(in crate::server) kind: String,
    pub(in crate::server) group_id: String,
}
