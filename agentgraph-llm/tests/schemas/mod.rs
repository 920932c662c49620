//! Schemas in the forms that providers accept.

mod each_dialect_gets_what_it_accepts;
mod schemas_of_any_origin_never_become_weaker;
mod serialised_values_are_accepted_and_mutated_ones_refused;
mod types;
mod what_cannot_be_strict_is_said;
