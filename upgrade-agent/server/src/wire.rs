//! What goes over the wire in both dialects: words, bodies and their forms, times, tokens, pages, bad
//! answers. It shares no type with the client of the same API, so that a mistake in one of them shows. It
//! knows no table and no route.

pub(crate) mod body;
pub(crate) mod calendar;
pub(crate) mod csv;
pub(crate) mod dialect;
pub(crate) mod fault;
pub(crate) mod fit;
pub(crate) mod json_text;
pub(crate) mod paging;
pub(crate) mod row;
pub(crate) mod shape;
pub(crate) mod spans;
pub(crate) mod token;
pub(crate) mod validate;
pub(crate) mod words;
