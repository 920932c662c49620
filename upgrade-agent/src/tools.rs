//! The tools that models see.
