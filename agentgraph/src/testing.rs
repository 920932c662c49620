//! What others test with that build on graphs (feature `conformance`).

pub mod store_clauses;
