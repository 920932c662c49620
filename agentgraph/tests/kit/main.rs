//! The kit for tests of users' graphs: what it shows, and what it finds.
#![cfg(feature = "testing")]
#![allow(missing_docs, unreachable_pub, clippy::unwrap_used, clippy::expect_used, clippy::panic)]

mod a_dropped_test_leaves_nothing_running;
mod changes_of_a_test_reach_only_their_node;
mod every_kill_finds_effects_that_happen_twice;
mod every_kill_finds_ends_that_differ;
mod every_kill_kills_at_each_point;
mod every_order_finds_nodes_that_share_something;
mod the_reader_of_an_unordered_map_is_blamed;
mod traces_find_effects_before_questions;
mod traces_find_routes_and_reducers_that_are_not_pure;
mod traces_show_what_ran;
mod virtual_time_ends_waits_in_order;

use agentgraph::prelude::*;

/// A state that lists what its nodes say.
#[derive(State, Clone, Debug, Default)]
pub struct Words {
    #[reduce(append)]
    pub said: Vec<String>,
    pub flag: bool,
}

pub fn say(word: impl Into<String>) -> WordsUpdate {
    Words::update().said([word.into()])
}

/// Says the name of its node.
pub async fn note(ctx: Ctx) -> WordsUpdate {
    say(ctx.node())
}
