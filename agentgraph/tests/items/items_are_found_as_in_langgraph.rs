//! Items, filters, texts and namespaces recorded with LangGraph's `InMemoryStore` (1.2.22) are found in the
//! same way here. The fixture is the output of `beside_langgraph/store.py`; docs/langgraph.md names the
//! differences, which it leaves out.

#![cfg(feature = "conformance")]

use agentgraph::store::conformance::Letters;
use agentgraph::store::{
    Filter, Indexing, MemoryStore, Namespace, NamespacePattern, Store, StoreExt, VectorIndex,
};
use serde::Deserialize;
use serde_json::Value;

#[derive(Deserialize)]
struct Round {
    puts: Vec<Put>,
    searches: Vec<Search>,
    texts: Vec<Text>,
    lists: Vec<List>,
}

#[derive(Deserialize)]
struct Put {
    namespace: Vec<String>,
    key: String,
    value: Value,
    index: Value,
}

#[derive(Deserialize)]
struct Search {
    prefix: Vec<String>,
    filter: Value,
    found: Option<Vec<(Vec<String>, String)>>,
    /// The error in Python.
    fails: Option<String>,
}

#[derive(Deserialize)]
struct Text {
    prefix: Vec<String>,
    text: String,
    scores: Vec<(Vec<String>, String, f64)>,
}

#[derive(Deserialize)]
struct List {
    prefix: Option<Vec<String>>,
    suffix: Option<Vec<String>>,
    max_depth: Option<usize>,
    limit: usize,
    offset: usize,
    found: Vec<Vec<String>>,
}

fn pattern(segments: Option<&Vec<String>>) -> NamespacePattern {
    let segments: Vec<&str> = segments.into_iter().flatten().map(String::as_str).collect();
    NamespacePattern::from(&segments[..])
}

async fn filled(round: &Round) -> MemoryStore {
    let store = MemoryStore::new().index(VectorIndex::new(Letters).fields(["text"]));
    for Put { namespace, key, value, index } in &round.puts {
        let namespace = Namespace::new(namespace.clone()).unwrap();
        let indexing = match index {
            Value::Array(paths) => {
                Indexing::Fields(paths.iter().map(|path| path.as_str().unwrap().to_owned()).collect())
            }
            Value::Bool(false) => Indexing::Off,
            _ => Indexing::Default,
        };
        let put = agentgraph::store::Change::put(&namespace, key, value.clone()).indexing(indexing);
        store.change(vec![put]).await.unwrap();
    }
    store
}

fn rounds() -> Vec<Round> {
    serde_json::from_str(include_str!("../fixtures/langgraph_store.json")).unwrap()
}

#[tokio::test]
async fn filters_find_what_they_find_in_langgraph() {
    let (mut compared, mut failed) = (0, 0);
    for round in rounds() {
        let store = filled(&round).await;
        for Search { prefix, filter, found, fails } in &round.searches {
            let within = Namespace::new(prefix.clone()).unwrap();
            let filter = Filter::from_json(filter).unwrap();
            let page = store.search(&within).filter(filter.clone()).limit(100).await.unwrap();
            let mut names: Vec<(Vec<String>, String)> = page
                .into_iter()
                .map(|found| (found.item.namespace.segments().to_vec(), found.item.key))
                .collect();
            names.sort();
            match (found, fails) {
                (Some(found), _) => {
                    compared += 1;
                    assert_eq!(&names, found, "{filter:?} in {within}");
                }
                // `float(..)` of something that is no number: here it does not match.
                (None, _) => failed += 1,
            }
        }
    }
    assert!(compared > 400 && failed > 50, "{compared} {failed}");
}

#[tokio::test]
async fn texts_have_the_scores_that_they_have_in_langgraph() {
    let mut compared = 0;
    for round in rounds() {
        let store = filled(&round).await;
        for Text { prefix, text, scores } in &round.texts {
            let within = Namespace::new(prefix.clone()).unwrap();
            let page = store.search(&within).text(text).limit(100).await.unwrap();
            assert_eq!(page.len(), scores.len(), "{text} in {within}");
            for (namespace, key, score) in scores {
                let found = page.iter().find(|found| {
                    found.item.namespace.segments() == namespace.as_slice() && found.item.key == *key
                });
                let ours = found.expect("it is found").score.unwrap();
                assert!((ours - score).abs() < 1e-9, "{key}: {ours} {score}");
                compared += 1;
            }
            assert!(page.windows(2).all(|pair| pair[0].score >= pair[1].score));
        }
    }
    assert!(compared > 300, "{compared}");
}

#[tokio::test]
async fn namespaces_are_listed_as_in_langgraph() {
    let mut compared = 0;
    for round in rounds() {
        let store = filled(&round).await;
        for list in &round.lists {
            let mut ours = store
                .list_namespaces()
                .prefix(pattern(list.prefix.as_ref()))
                .suffix(pattern(list.suffix.as_ref()))
                .limit(list.limit)
                .offset(list.offset);
            if let Some(depth) = list.max_depth {
                ours = ours.max_depth(depth);
            }
            let ours: Vec<Vec<String>> =
                ours.await.unwrap().iter().map(|namespace| namespace.segments().to_vec()).collect();
            assert_eq!(ours, list.found);
            compared += usize::from(!ours.is_empty());
        }
    }
    assert!(compared > 150, "{compared}");
}
