//! Every form of a variant, generic payloads, and two variants for one node.

#![deny(warnings)]

use agentgraph::node::RouteTarget;
use agentgraph::{END, Route};

#[derive(Route)]
enum Next<T: serde::Serialize + Send + Sync + 'static> {
    Approve,
    HTTPGet,
    #[route("look_up")]
    Search,
    #[route("look_up")]
    SearchAgain,
    ReadPage(T),
    #[route("read_page")]
    ReadBoth((T, T)),
    r#Type,
    #[route(end)]
    Done,
}

#[test]
fn routes_have_their_targets_and_payloads() {
    let targets: Vec<_> = Next::<u32>::TARGETS.iter().map(RouteTarget::name).collect();
    assert_eq!(targets, ["approve", "http_get", "look_up", "look_up", "read_page", "read_page", "type", END]);
    let all = [
        Next::Approve,
        Next::HTTPGet,
        Next::Search,
        Next::SearchAgain,
        Next::ReadPage(1),
        Next::ReadBoth((1, 2)),
        Next::Type,
        Next::Done,
    ];
    assert_eq!(all.map(Next::pick).len(), 8);
}
