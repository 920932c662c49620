//! The wire formats of both dialects: words, bodies and their validation, times, tokens, pages, error
//! responses. It shares no type with the client of the same API, so a mistake in one of them shows in tests.
//! It knows no table and no route.

pub(crate) mod body;
pub(crate) mod calendar;
pub(crate) mod csv;
pub(crate) mod dialect;
pub(crate) mod fault;
pub(crate) mod fit;
pub(crate) mod paging;
pub(crate) mod row;
pub(crate) mod shape;
pub(crate) mod spans;
pub(crate) mod token;
pub(crate) mod validate;
pub(crate) mod words;
