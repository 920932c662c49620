//! Tests for authors of extensions to graphs (feature `conformance`).

pub mod store_clauses;
