//! How nodes follow each other: checks at `compile()`, routes, dispatches, joins.
#![allow(missing_docs, unreachable_pub, clippy::unwrap_used, clippy::expect_used, clippy::panic)]

#[path = "../common/mod.rs"]
mod common;

mod chains_longer_than_the_limit_are_a_warning;
mod compile_finds_every_problem;
mod compile_warns_of_joins_of_exclusive_branches;
mod deferred_nodes_wait_for_those_before_them;
mod derived_route;
#[cfg(feature = "draw")]
mod drawings_show_every_part_in_its_place;
#[cfg(feature = "draw")]
mod drawings_show_what_a_checkpoint_knows;
mod joins_fire_as_their_policy_says;
mod joins_take_a_superstep_as_a_set;
mod joins_wait_for_all_and_begin_anew;
mod names_are_taken_alike;
mod nodes_with_an_input_are_dispatched;
mod outcomes_are_narrowed_and_report_stuck_joins;
mod routing_goes_where_it_says;
mod the_same_router_twice_is_a_warning;
