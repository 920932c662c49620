//! An edit that would remove or skip a running node is refused as [`Rejection::Running`], which names the
//! node.

use std::sync::{Arc, Mutex};

use agentgraph::edit::Rejection;
use agentgraph::prelude::*;

#[tokio::test]
async fn the_node_itself_and_a_sibling_that_runs() {
    let refused = Arc::new(Mutex::new(Vec::new()));
    let seen = Arc::clone(&refused);
    let edits = move |_: Deps<String>, edits: PassEdits<String>| {
        let mut seen = seen.lock().unwrap();
        seen.extend(edits.remove_node("a").err());
        seen.extend(edits.skip(["a"]).err());
        seen.extend(edits.remove_node("slow").err());
        String::new()
    };
    let slow = || async {
        tokio::task::yield_now().await;
        String::new()
    };
    let graph = DependencyGraph::new().node("slow", slow).node("a", edits).compile().unwrap();
    graph.invoke(()).await.unwrap().into_finished().unwrap();

    let refused = refused.lock().unwrap();
    let running = |node: &str| Rejection::Running { node: node.to_owned() };
    let why: Vec<&Rejection> = refused.iter().map(|error| error.why()).collect();
    assert_eq!(why, [&running("a"), &running("a"), &running("slow")]);
    assert!(refused.iter().all(|error| error.code() == agentgraph::Code::EditRejected));
    assert_eq!(refused[0].to_string(), "cannot remove node `a`: node `a` runs already");
}
