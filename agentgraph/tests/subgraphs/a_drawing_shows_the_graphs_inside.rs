use agentgraph::prelude::*;

#[derive(State, Clone, Debug, Default)]
struct Outer {}

#[derive(State, Clone, Debug, Default)]
struct Inner {
    again: bool,
}

#[derive(Route)]
enum Next {
    Write,
    #[route(end)]
    Done,
}

async fn node() {}

#[test]
fn graphs_are_drawn_at_every_depth_with_ids_of_their_own() {
    let write = StateGraph::<Inner>::new().node("write", node).edge(START, "write");
    let write = write.route("write", |inner: &Inner| if inner.again { Next::Write } else { Next::Done });
    let section = StateGraph::new().node("a \"b\" [c]", write.compile().unwrap());
    let section = section.edge(START, "a \"b\" [c]").compile().unwrap();
    let graph = StateGraph::new()
        .node("plan", node)
        .node("section", section.embed(Inner::update, |_| Outer::update()))
        .edge(START, "plan")
        .edge("plan", "section")
        .compile()
        .unwrap();
    let expected = r##"flowchart TD
    start([START])
    n0["plan"]
    subgraph n1["section"]
        n1_start([START])
        subgraph n1_n0["a #quot;b#quot; [c]"]
            n1_n0_start([START])
            n1_n0_n0["write"]
            n1_n0_finish([END])
            n1_n0_start --> n1_n0_n0
            n1_n0_n0 -.-> n1_n0_n0
            n1_n0_n0 -.-> n1_n0_finish
        end
        n1_start --> n1_n0
    end
    start --> n0
    n0 --> n1
"##;
    assert_eq!(graph.mermaid_with_subgraphs(), expected);
    assert!(graph.mermaid().contains("n1[[\"section\"]]"), "{}", graph.mermaid());
    assert!(!graph.mermaid().contains("subgraph"), "{}", graph.mermaid());
}
