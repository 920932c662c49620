//! The bodies about feature flags, and the files of flags.

use super::super::rules::Check::*;
use super::super::rules::{Field, Form, may, must};
use super::super::words;
use super::{GROUP, NAME, SEGMENT, STUDENT, TEXT};

pub(in super::super) static FLAG_LIST: Form = Form::of(&[&[
    must("id", &[Uuid, Filled]),
    must("enabled", &[Flag, Defined]),
    must("listType", &[Text, Filled]),
    may("segment", &[]).form(&SEGMENT),
]]);
/// The common properties of a flag and its file.
static FLAG_FIELDS: [Field; 8] = [
    may("id", &[Uuid]),
    must("name", NAME),
    may("description", TEXT),
    must("key", NAME),
    must("status", &[OneOf(&words::FLAG_STATUSES), Filled]),
    must("context", &[Texts, Some, Array, Filled]),
    must("filterMode", &[OneOf(&words::FILTERS), Defined]),
    must("tags", &[Texts, Array, Filled]),
];
pub(in super::super) static FLAG: Form = Form::of(&[
    &FLAG_FIELDS,
    &[
        may("featureFlagSegmentInclusion", &[Array]).each(&FLAG_LIST),
        may("featureFlagSegmentExclusion", &[Array]).each(&FLAG_LIST),
    ],
]);
pub(in super::super) static FLAG_STATUS: Form =
    Form::of(&[&[must("flagId", &[Uuid, Filled]), must("status", &[OneOf(&words::FLAG_STATUSES), Defined])]]);
pub(in super::super) static FLAG_FILTER: Form =
    Form::of(&[&[must("flagId", &[Uuid, Filled]), must("filterMode", &[OneOf(&words::FILTERS), Defined])]]);
static FLAG_SEARCH: Form =
    Form::of(&[&[must("key", &[OneOf(&words::FLAG_SEARCH_KEYS), Filled]), must("string", NAME)]]);
static FLAG_SORT: Form = Form::of(&[&[
    must("key", &[OneOf(&words::FLAG_SORT_KEYS), Filled]),
    must("sortAs", &[OneOf(&words::DIRECTIONS), Filled]),
]]);
pub(in super::super) static FLAG_PAGE: Form = Form::of(&[&[
    must("skip", &[Number, Filled]),
    must("take", &[Number, Filled]),
    may("searchParams", &[]).form(&FLAG_SEARCH),
    may("sortParams", &[]).form(&FLAG_SORT),
]]);
pub(in super::super) static EXPOSURES: Form = Form::of(&[&[
    must("flagId", NAME),
    must("range", &[OneOf(&words::RANGES), Filled]),
    must("clientOffset", &[Number, Filled]),
]]);

static FILE: Form = Form::of(&[&[must("fileName", &[Filled, Text]), must("fileContent", &[Defined, Text])]]);
pub(in super::super) static FLAG_FILES: Form = Form::of(&[&[must("files", &[Array]).each(&FILE)]]);
pub(in super::super) static FLAG_LIST_FILES: Form = Form::of(&[&[
    must("files", &[Array]).each(&FILE),
    must("listType", &[OneOf(&words::SIDES), Filled, Text]),
    must("flagId", &[Filled, Uuid]),
]]);

/// The common properties of segments in files.
static SEGMENT_FIELDS: [Field; 5] = [
    may("id", &[Uuid]),
    must("name", NAME),
    may("description", TEXT),
    must("context", NAME),
    must("type", &[OneOf(&words::SEGMENTS), Filled]),
];
static NAMED_SEGMENT: Form = Form::of(&[&SEGMENT_FIELDS]);
static SEGMENT_FILE: Form = Form::of(&[
    &SEGMENT_FIELDS,
    &[
        must("individualForSegment", &[Array]).each(&STUDENT),
        must("groupForSegment", &[Array]).each(&GROUP),
        must("subSegments", &[Array]).each(&NAMED_SEGMENT),
    ],
]);
static LIST_FILE: Form = Form::of(&[&[
    must("enabled", &[Flag, Defined]),
    must("listType", NAME),
    may("segment", &[]).form(&SEGMENT_FILE),
]]);
/// The properties of a file that creates a flag.
pub(in super::super) static FLAG_FILE: Form = Form::of(&[
    &FLAG_FIELDS,
    &[
        may("featureFlagSegmentInclusion", &[Array]).each(&LIST_FILE),
        may("featureFlagSegmentExclusion", &[Array]).each(&LIST_FILE),
    ],
]);
