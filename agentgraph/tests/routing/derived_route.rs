//! A derived route names its targets by position, for the loop, and by name, for a `goto`. Both name the same
//! targets.

use agentgraph::node::{IntoGoto, RouteTarget};
use agentgraph::{END, Goto, Route};
use serde::Serialize;

#[derive(Serialize, Clone, Copy)]
struct Page {
    number: u32,
}

#[derive(Route, Clone, Copy)]
enum Next {
    Approve,
    #[route("look_up")]
    Search,
    ReadPage(Page),
    #[route("read_page")]
    Reread(u32),
    #[route(end)]
    Done,
}

const ALL: [Next; 5] =
    [Next::Approve, Next::Search, Next::ReadPage(Page { number: 3 }), Next::Reread(4), Next::Done];

#[test]
fn targets_are_in_the_order_of_the_variants() {
    let expected = [
        RouteTarget::Node("approve"),
        RouteTarget::Node("look_up"),
        RouteTarget::Dispatch("read_page"),
        RouteTarget::Dispatch("read_page"),
        RouteTarget::End,
    ];
    assert_eq!(Next::TARGETS, expected);
}

#[test]
fn a_route_is_also_a_goto_target() {
    let names = ALL.map(|next| match next.into_goto() {
        Goto::Node(name) => format!("node {name}"),
        Goto::Dispatch(dispatch) => format!("{dispatch:?}"),
        other => format!("{other:?}"),
    });
    let dispatch = r#"Dispatch { node: "read_page", input: InputValue::Live }"#;
    assert_eq!(names, ["node approve", "node look_up", dispatch, dispatch, &format!("node {END}")]);
}

#[test]
fn a_pick_is_the_position_of_its_variant() {
    for (position, next) in ALL.into_iter().enumerate() {
        let pick = format!("{:?}", next.pick());
        assert!(pick.starts_with(&format!("Pick {{ target: {position}, ")), "{pick}");
        assert_eq!(
            pick.contains("Live"),
            matches!(Next::TARGETS[position], RouteTarget::Dispatch(_)),
            "{pick}"
        );
    }
}
