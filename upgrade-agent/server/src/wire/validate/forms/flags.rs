//! The bodies about feature flags.

use super::super::rules::Check::*;
use super::super::rules::{Form, may, must};
use super::super::words;
use super::{NAME, SEGMENT, TEXT};

pub(in super::super) static FLAG_LIST: Form = Form::of(&[&[
    must("id", &[Uuid, Filled]),
    must("enabled", &[Flag, Defined]),
    must("listType", &[Text, Filled]),
    may("segment", &[]).form(&SEGMENT),
]]);
pub(in super::super) static FLAG: Form = Form::of(&[&[
    may("id", &[Uuid]),
    must("name", NAME),
    may("description", TEXT),
    must("key", NAME),
    must("status", &[OneOf(&words::FLAG_STATUSES), Filled]),
    must("context", &[Texts, Some, Array, Filled]),
    must("filterMode", &[OneOf(&words::FILTERS), Defined]),
    must("tags", &[Texts, Array, Filled]),
    may("featureFlagSegmentInclusion", &[Array]).each(&FLAG_LIST),
    may("featureFlagSegmentExclusion", &[Array]).each(&FLAG_LIST),
]]);
pub(in super::super) static FLAG_STATUS: Form =
    Form::of(&[&[must("flagId", &[Uuid, Filled]), must("status", &[OneOf(&words::FLAG_STATUSES), Defined])]]);
pub(in super::super) static FLAG_FILTER: Form =
    Form::of(&[&[must("flagId", &[Uuid, Filled]), must("filterMode", &[OneOf(&words::FILTERS), Defined])]]);
