//! Texts as vectors, for the search of a store.

use agentgraph::store::{Embedder, MemoryStore, Namespace, StoreExt, VectorIndex};
use agentgraph_llm::{Code, Error, GeminiEmbedder, GeminiEmbedderBuilder};
use serde_json::{Value, json};

use crate::server::{Reply, Server};

fn embedder(server: &Server) -> GeminiEmbedderBuilder {
    GeminiEmbedder::builder()
        .api_key("not-a-real-key")
        .model("embed-x")
        .dimensions(2)
        .base_url(&server.url)
        .max_retries(0)
}

fn vectors(vectors: &[[f32; 2]]) -> Reply {
    let list: Vec<_> = vectors.iter().map(|values| json!({ "values": values })).collect();
    Reply::json(200, "", &json!({"embeddings": list, "usageMetadata": {"promptTokenCount": 8}}).to_string())
}

fn texts(count: usize) -> Vec<String> {
    (0..count).map(|at| format!("text {at}")).collect()
}

#[tokio::test]
async fn texts_are_sent_with_model_and_length_and_vectors_keep_their_order() {
    let server = Server::start([vectors(&[[1.0, 0.0], [0.0, 1.0]]), vectors(&[[0.5, 0.5]])]).await;
    let embedder = embedder(&server).task_types("RETRIEVAL_DOCUMENT", "RETRIEVAL_QUERY").build().unwrap();
    assert_eq!(embedder.embed(&texts(2)).await.unwrap(), [[1.0, 0.0], [0.0, 1.0]]);
    assert_eq!(embedder.embed_query("q").await.unwrap(), [0.5, 0.5]);
    let requests = server.requests();
    assert!(requests[0].head.starts_with("post /v1beta/models/embed-x:batchembedcontents "));
    let body: Value = serde_json::from_str(&requests[0].body).unwrap();
    assert_eq!(
        body["requests"][1],
        json!({"model": "models/embed-x", "content": {"parts": [{"text": "text 1"}]}, "outputDimensionality": 2,
            "taskType": "RETRIEVAL_DOCUMENT"})
    );
    let query: Value = serde_json::from_str(&requests[1].body).unwrap();
    assert_eq!(query["requests"][0]["taskType"], "RETRIEVAL_QUERY");
}

#[tokio::test]
async fn more_than_a_hundred_texts_are_several_requests() {
    let server = Server::start([vectors(&[[1.0, 0.0]; 100]), vectors(&[[0.0, 1.0]; 3])]).await;
    let all = embedder(&server).build().unwrap().embed(&texts(103)).await.unwrap();
    assert_eq!((all.len(), all[99][0], all[100][0]), (103, 1.0, 0.0));
    assert!(embedder(&server).build().unwrap().embed(&[]).await.unwrap().is_empty());
    assert_eq!(server.requests().len(), 2);
}

#[tokio::test]
async fn answers_that_do_not_fit_are_errors() {
    for (reply, code) in [
        (vectors(&[[1.0, 0.0]]), Code::Decode),
        (Reply::json(200, "", r#"{"embeddings":[{"values":[1]},{"values":[1]}]}"#), Code::Config),
        (Reply::json(200, "", r#"{"embeddings":[{"values":["a"]},{}]}"#), Code::Decode),
        (Reply::json(200, "", r#"{"embedding":{}}"#), Code::Decode),
        (
            Reply::json(404, "", r#"{"error":{"code":404,"status":"NOT_FOUND","message":"no"}}"#),
            Code::NotFound,
        ),
    ] {
        let server = Server::start([reply]).await;
        let error = embedder(&server).build().unwrap().embed(&texts(2)).await.unwrap_err();
        assert_eq!(error.downcast::<Error>().unwrap().code(), code);
    }
    let server = Server::start([]).await;
    assert_eq!(embedder(&server).dimensions(0).build().unwrap_err().code(), Code::Config);
}

#[tokio::test]
async fn a_store_searches_with_it() {
    let server =
        Server::start([vectors(&[[1.0, 0.0]]), vectors(&[[0.0, 1.0]]), vectors(&[[0.1, 0.9]])]).await;
    let store =
        MemoryStore::new().index(VectorIndex::new(embedder(&server).build().unwrap()).fields(["fact"]));
    let facts = Namespace::new(["ada", "facts"]).unwrap();
    store.put(&facts, "1", json!({"fact": "likes tea"})).await.unwrap();
    store.put(&facts, "2", json!({"fact": "born in Rome"})).await.unwrap();
    let found = store.search(&facts).text("where from?").limit(1).await.unwrap();
    assert_eq!(found[0].item.key, "2");
}
