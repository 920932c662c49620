//! The embedder, which a store uses.

use agentgraph::store::Embedder;
use agentgraph_llm::openai::OpenAiEmbedder;
use serde_json::{Value, json};

use crate::server::{Reply, Server};
use crate::talk::KEY;

fn texts(count: usize) -> Vec<String> {
    (0..count).map(|number| number.to_string()).collect()
}

async fn embed(replies: Vec<Value>, count: usize) -> (Result<Vec<Vec<f32>>, String>, Server) {
    let replies = replies.into_iter().map(|body| Reply::json(200, "", &body.to_string()));
    let server = Server::start(replies).await;
    let builder = OpenAiEmbedder::builder().api_key(KEY).base_url(&server.url).max_retries(0);
    let embedder = builder.model("e").shortened_to(2).batch(2).build().unwrap();
    assert_eq!(embedder.dimensions(), 2);
    let vectors = embedder.embed(&texts(count)).await.map_err(|error| error.to_string());
    (vectors, server)
}

#[tokio::test]
async fn vectors_come_in_the_order_of_the_texts_and_in_batches() {
    let first = json!({"data": [{"index": 1, "embedding": [2.0, 0.5]}, {"index": 0, "embedding": [1, 0.5]}]});
    // 3.0 and 0.5 in base64, and no index.
    let second = json!({"data": [{"embedding": "AABAQAAAAD8="}]});
    let (vectors, server) = embed(vec![first, second], 3).await;
    assert_eq!(vectors.unwrap(), [[1.0, 0.5], [2.0, 0.5], [3.0, 0.5]]);
    let bodies: Vec<Value> =
        server.requests().iter().map(|request| serde_json::from_str(&request.body).unwrap()).collect();
    let body =
        |input: Value| json!({"model": "e", "input": input, "encoding_format": "float", "dimensions": 2});
    assert_eq!(bodies, [body(json!(["0", "1"])), body(json!(["2"]))]);
    assert!(server.requests()[0].head.starts_with("post /v1/embeddings "));
}

#[tokio::test]
async fn vectors_that_are_missing_doubled_or_malformed_are_an_error() {
    for data in [
        json!([{"index": 0, "embedding": [1, 2]}]),
        json!([{"index": 0, "embedding": [1, 2]}, {"index": 0, "embedding": [1, 2]}]),
        json!([{"index": 0, "embedding": [1, 2]}, {"index": 7, "embedding": [1, 2]}]),
        json!([{"index": 0, "embedding": [1, 2]}, {"index": 1, "embedding": "AAA"}]),
        json!([{"index": 0, "embedding": [1, 2]}, 5]),
        json!({}),
    ] {
        let (vectors, _server) = embed(vec![json!({ "data": data })], 2).await;
        assert!(vectors.unwrap_err().contains("E_LLM_DECODE"), "{data}");
    }
}

#[tokio::test]
async fn vectors_of_another_length_name_the_setting() {
    let (vectors, _server) = embed(vec![json!({"data": [{"index": 0, "embedding": [1, 2, 3]}]})], 1).await;
    assert!(vectors.unwrap_err().contains(".dimensions(..)"));
}

#[tokio::test]
async fn no_texts_need_no_request() {
    let (vectors, server) = embed(Vec::new(), 0).await;
    assert_eq!((vectors.unwrap().len(), server.requests().len()), (0, 0));
}
