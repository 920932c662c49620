//! Constants, statics and unit structs are patterns: a variable with the name of one would be no variable. So
//! the code of the macros has no variables that a module could collide with.

#![deny(warnings)]
#![allow(non_upper_case_globals, non_camel_case_types, dead_code)]

use std::collections::HashMap;

use agentgraph::{Ctx, Route, Snapshot, State, node};
use serde::{Deserialize, Serialize};

macro_rules! constants {
    ($($name:ident)*) => { $(const $name: u8 = 1;)* };
}

constants! {
    argument argument_0 before by bytes call channel delta each encoded entry error fields formatter found how
    initial index input item items key keys kind later lifetime map misfit name names next number out pick
    result restored seen shown slot source stage state store table target task this undo undo_0 unknown
    update value values write writer
}
struct look;
struct written;
static peek: u8 = 1;
// A node of this name is called by the code of its check.
struct future;

#[derive(State, Serialize, Deserialize, Clone, Default)]
struct Trip {
    #[reduce(last)]
    last: String,
    id: u32,
    #[reduce(append)]
    stops: Vec<String>,
    #[reduce(append)]
    hours: Vec<u8>,
    #[reduce(merge)]
    prices: HashMap<String, u32>,
    #[reduce(sum)]
    total: u32,
    #[reduce(max)]
    best: Option<u32>,
    #[reduce(min)]
    least: u32,
    #[reduce(with = join)]
    notes: String,
    #[channel(run, secret)]
    token: String,
    #[serde(skip)]
    #[channel(untracked)]
    cache: u8,
}

#[derive(State, Clone, Debug, Default)]
#[state(volatile)]
struct Volatile {
    socket: Option<u8>,
}

fn join(text: &mut String, more: String) {
    text.push_str(&more);
}

#[derive(Route)]
enum Next {
    Read(String),
    #[route(end)]
    Done,
}

#[node(Trip)]
async fn types(_: Ctx, trip: Snapshot<Trip>) -> TripUpdate {
    Trip::update().id(trip.id)
}

#[test]
fn the_code_of_macros_collides_with_no_constant() {
    let written_to = Trip::update().last("a").stops(["b"]).prices([("c", 1)]).total(1).best(2).notes("d");
    assert!(format!("{written_to:?}").contains("stops"));
    let _ = Next::Read(String::new());
}
