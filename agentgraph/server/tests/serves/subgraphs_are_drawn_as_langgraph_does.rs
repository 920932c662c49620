//! `/assistants/{id}/graph`: nodes and edges are those that LangGraph 1.2.24 draws of the same graphs.

use agentgraph::prelude::*;
use agentgraph_server::Server;
use reqwest::{Method, StatusCode};
use serde_json::{Value, json};

use crate::common::Served;

#[derive(State, Clone, Debug, Default)]
struct Text {
    text: String,
}

async fn node() {}

fn graph(nodes: &[&str]) -> StateGraph<Text> {
    nodes.iter().fold(StateGraph::new(), |graph, name| graph.node(*name, node))
}

fn row() -> CompiledGraph<Text> {
    graph(&["c1", "c2"]).edge(START, "c1").edge("c1", "c2").compile().unwrap()
}

/// The graph between two nodes.
fn around(inner: CompiledGraph<Text>) -> CompiledGraph<Text> {
    let graph = graph(&["a", "b"]).node("child", inner);
    graph.edge(START, "a").edge("a", "child").edge("child", "b").compile().unwrap()
}

async fn shown(server: &Served, name: &str, query: &str) -> (String, String) {
    let drawn = server.get(&format!("/assistants/{name}/graph{query}")).await;
    let id = |node: &Value| node["id"].as_str().unwrap().to_owned();
    let edge = |edge: &Value| arrow(&edge["source"], &edge["target"], &edge["conditional"]);
    (sorted(&drawn["nodes"], id), sorted(&drawn["edges"], edge))
}

fn arrow(from: &Value, to: &Value, is_conditional: &Value) -> String {
    let arrow = if *is_conditional == true { ".." } else { "->" };
    format!("{}{arrow}{}", from.as_str().unwrap(), to.as_str().unwrap())
}

fn sorted(list: &Value, shown: impl Fn(&Value) -> String) -> String {
    let mut shown: Vec<String> = list.as_array().unwrap().iter().map(shown).collect();
    shown.sort();
    shown.join(" ")
}

async fn draws(graph: CompiledGraph<Text>, query: &str, nodes: &str, edges: &str) {
    let server = Served::of(Server::new().in_memory().graph_without_schema("drawn", graph)).await;
    let (found_nodes, found_edges) = shown(&server, "drawn", query).await;
    assert_eq!((&*found_nodes, &*found_edges), (nodes, edges));
}

#[tokio::test]
async fn a_node_that_leads_nowhere_leads_to_the_end() {
    let edges = "__start__->a a->child b->__end__ child->b";
    for query in ["", "?xray=false", "?xray=0"] {
        draws(around(row()), query, "__end__ __start__ a b child", edges).await;
    }
    let routed = graph(&["a", "x"]).edge(START, "a").branch("a", |_: &Text| "x", ["x", END]);
    let edges = "__start__->a a..__end__ a..x x->__end__";
    draws(routed.compile().unwrap(), "", "__end__ __start__ a x", edges).await;
    let handled = graph(&["h"]).node("a", node.on_error("h")).edge(START, "a").compile().unwrap();
    let edges = "__start__->a a->__end__ a..h h->__end__";
    draws(handled, "", "__end__ __start__ a h", edges).await;
}

#[tokio::test]
async fn an_opened_subgraph_takes_the_place_of_its_node() {
    let nodes = "__end__ __start__ a b child:c1 child:c2";
    let edges = "__start__->a a->child:c1 b->__end__ child:c1->child:c2 child:c2->b";
    draws(around(row()), "?xray=true", nodes, edges).await;
    let one = graph(&["o"]).edge(START, "o").compile().unwrap();
    let edges = "__start__->a a->child:o b->__end__ child:o->b";
    draws(around(one), "?xray=1", "__end__ __start__ a b child:o", edges).await;
    let routed = graph(&["a"]).node("child", row()).edge(START, "a").edge("child", "a");
    let routed = routed.branch("a", |_: &Text| "child", ["child", END]).compile().unwrap();
    let edges = "__start__->a a..__end__ a..child:c1 child:c1->child:c2 child:c2->a";
    draws(routed, "?xray=true", "__end__ __start__ a child:c1 child:c2", edges).await;
}

#[tokio::test]
async fn a_subgraph_that_begins_with_a_loop_keeps_its_ends() {
    let looped = graph(&["l"]).edge(START, "l").branch("l", |_: &Text| END, ["l", END]).compile().unwrap();
    let nodes = "__end__ __start__ a b child:__end__ child:__start__ child:l";
    let edges = "__start__->a a->child:__start__ b->__end__ child:__end__->b child:__start__->child:l \
                 child:l..child:__end__ child:l..child:l";
    draws(around(looped), "?xray=true", nodes, edges).await;
}

/// A graph of `drawings.jsonl`.
fn described(graph: &Value) -> CompiledGraph<Text> {
    let name = |value: &Value| match value.as_str().unwrap() {
        "__start__" => START.to_owned(),
        "__end__" => END.to_owned(),
        name => name.to_owned(),
    };
    let list = |field: &str| graph[field].as_array().unwrap().clone();
    let mut made = StateGraph::new();
    for node in list("nodes") {
        let (name, inner) = (name(&node[0]), &node[1]);
        made = if inner.is_null() { made.node(name, self::node) } else { made.node(name, described(inner)) };
    }
    for edge in list("edges") {
        made = made.edge(name(&edge[0]), name(&edge[1]));
    }
    for branch in list("branches") {
        let targets: Vec<String> = branch[1].as_array().unwrap().iter().map(name).collect();
        made = made.branch(name(&branch[0]), |_: &Text| END, targets);
    }
    made.compile().unwrap()
}

/// `tests/beside_langgraph/drawings.py` makes others.
#[tokio::test]
async fn random_graphs_are_drawn_as_langgraph_drew_them() {
    let cases = include_str!("../beside_langgraph/drawings.jsonl").lines();
    let cases: Vec<Value> = cases.map(|case| serde_json::from_str(case).unwrap()).collect();
    let server = cases.iter().enumerate().fold(Server::new().in_memory(), |server, (at, case)| {
        server.graph_without_schema(format!("g{at}"), described(&case["graph"]))
    });
    let server = Served::of(server).await;
    for (at, case) in cases.iter().enumerate() {
        for (xray, expected) in case["drawn"].as_object().unwrap() {
            let nodes = sorted(&expected["nodes"], |node| node.as_str().unwrap().to_owned());
            let edges = sorted(&expected["edges"], |edge| arrow(&edge[0], &edge[1], &edge[2]));
            let found = shown(&server, &format!("g{at}"), &format!("?xray={xray}")).await;
            assert_eq!(found, (nodes, edges), "xray={xray}: {}", case["graph"]);
        }
    }
}

#[tokio::test]
async fn subgraphs_are_opened_down_to_a_depth() {
    let deep = || {
        let graph = graph(&["z"]).node("child", row()).edge(START, "child").edge("child", "z");
        around(graph.compile().unwrap())
    };
    let nodes = "__end__ __start__ a b child:child child:z";
    let edges = "__start__->a a->child:child b->__end__ child:child->child:z child:z->b";
    draws(deep(), "?xray=1", nodes, edges).await;
    let nodes = "__end__ __start__ a b child:child:c1 child:child:c2 child:z";
    let edges = "__start__->a a->child:child:c1 b->__end__ child:child:c1->child:child:c2 \
                 child:child:c2->child:z child:z->b";
    for query in ["?xray=2", "?xray=true"] {
        draws(deep(), query, nodes, edges).await;
    }
    let server = Served::new().await;
    let (status, answer) = server.send(Method::GET, "/assistants/steps/graph?xray=x", None).await;
    assert_eq!(status, StatusCode::UNPROCESSABLE_ENTITY, "{answer}");
    assert_eq!(server.get("/assistants/steps/graph").await["nodes"][1]["data"], json!({ "name": "first" }));
}
