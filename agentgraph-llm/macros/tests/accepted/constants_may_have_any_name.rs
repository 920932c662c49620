//! Constants, statics and unit structs are patterns: a variable with the name of one would be no variable. So
//! the code of the macro has no variables that a module could collide with.

#![deny(warnings)]
#![allow(non_upper_case_globals, non_camel_case_types, dead_code)]

use agentgraph::Ctx;
use agentgraph_llm::{Tool, ToolCall, tool};

macro_rules! constants {
    ($($name:ident)*) => { $(const $name: u8 = 1;)* };
}

constants! { arguments call ctx default error future given id name output run schema state this value value_0 }
struct input;
static spec: u8 = 1;

// Without a doc comment, with two contexts, and without arguments.
#[tool]
async fn weather(_: Ctx, _: &Ctx, _: &ToolCall, city: String, #[default(3)] days: u8) -> String {
    format!("{city} {days}")
}

#[tool]
fn ping() -> &'static str {
    "pong"
}

#[test]
fn the_code_of_macros_collides_with_no_constant() {
    assert_eq!(weather().spec().description, "");
}
