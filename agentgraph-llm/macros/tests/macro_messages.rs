//! The compiler's messages for every mistake that `#[tool]` and its traits explain.
//!
//! The expected texts are those of rustc 1.95, the toolchain this workspace is tested with; another
//! release may word its own part of a message differently. After an intended change,
//! `TRYBUILD=overwrite` rewrites the texts; read the difference.

#[test]
fn every_mistake_has_its_message() {
    let cases = trybuild::TestCases::new();
    cases.compile_fail("tests/ui/*.rs");
}
