//! Clauses: a search by text finds similar items.

use serde_json::{Value, json};

use super::{Clause, Trial, Tried, keys, listed_clauses, same, space};
use crate::error::StoreCode;
use crate::store::{Change, Filter, Namespace, Store, StoreExt};

pub(super) const CLAUSES: &[Clause] = listed_clauses![
    "a search by text shows the most similar items first": ordered,
    "equally similar items are shown by namespace and key": ties,
    "an item is as similar as its most similar text": fields,
    "an item that was put without an index is not found by a text": unindexed,
    "a search by text obeys its filter, `limit`, `offset` and `before`": pages,
    "a later put replaces the vectors of an item": replaced,
    "if the embedder fails, nothing is stored": failing,
];

async fn ordered(Trial { store, .. }: Trial) -> Tried {
    let at = space(["x"])?;
    for (key, value) in [("far", "bbb"), ("near", "aab"), ("nearest", "a"), ("nothing", "xyz")] {
        store.put(&at, key, value).await?;
    }
    let found = store.search(&at).text("aa").await?;
    same("the order", &keys(&found), &vec!["nearest", "near", "far", "nothing"])?;
    for (found, wanted) in found.iter().zip([1.0, 2.0 / 5.0_f64.sqrt(), 0.0, 0.0]) {
        let score = found.score.ok_or("an item has no score")?;
        if (score - wanted).abs() > 1e-6 {
            return Err(format!("the score of {:?} is {score}, and not {wanted}", found.item.key).into());
        }
    }
    Ok(())
}

async fn ties(Trial { store, .. }: Trial) -> Tried {
    for (namespace, key) in [("b", "x"), ("a", "z"), ("b", "a"), ("a", "y")] {
        store.put(&space([namespace])?, key, "a").await?;
    }
    let found = store.search(&Namespace::root()).text("a").await?;
    same("the order", &keys(&found), &vec!["y", "z", "a", "x"])
}

async fn fields(Trial { store, .. }: Trial) -> Tried {
    let at = space(["x"])?;
    let value =
        || json!({"title": "b", "parts": [{"text": "d"}, {"text": "a"}, {"text": ""}, 7], "rest": "cccc"});
    store.put(&at, "parts", value()).index_fields(["title", "parts.*.text"]).await?;
    store.put(&at, "title", value()).index_fields(["title"]).await?;
    store.put(&at, "none", value()).index_fields(["missing", "parts.2.text"]).await?;
    let found = store.search(&at).text("a").await?;
    same("the order", &keys(&found), &vec!["parts", "title"])?;
    same("whether the best text counts", &found[0].score.map(|score| score > 0.999), &Some(true))
}

async fn unindexed(Trial { store, .. }: Trial) -> Tried {
    let at = space(["x"])?;
    store.put(&at, "off", "a").unindexed().await?;
    store.put(&at, "null", Value::Null).await?;
    store.put(&at, "on", "a").await?;
    same("what is found", &keys(&store.search(&at).text("a").await?), &vec!["on"])?;
    same("what is there", &store.search(&at).await?.len(), &3)
}

async fn pages(Trial { store, .. }: Trial) -> Tried {
    let at = space(["x"])?;
    let mut versions = Vec::new();
    for n in 0..5_usize {
        let text = format!("a{}", "b".repeat(n));
        let change = Change::put(&at, n.to_string(), json!({ "n": n, "t": text }));
        let fields = crate::store::Indexing::Fields(vec!["t".to_owned()]);
        versions.extend(store.change(vec![change.indexing(fields)]).await?.into_iter().flatten());
    }
    store.put(&space(["y"])?, "elsewhere", "a").await?;
    let found = store.search(&at).text("a").limit(2).offset(1).await?;
    same("the page", &keys(&found), &vec!["1", "2"])?;
    let found = store.search(&at).text("a").filter(Filter::gte("n", 2)).limit(2).offset(1).await?;
    same("the page with a filter", &keys(&found), &vec!["3", "4"])?;
    let found = store.search(&at).text("a").before(versions[2]).await?;
    same("the items before one", &keys(&found), &vec!["0", "1"])
}

async fn replaced(Trial { store, .. }: Trial) -> Tried {
    let at = space(["x"])?;
    store.put(&at, "k", "a").await?;
    store.put(&at, "l", "ab").await?;
    store.put(&at, "k", "b").await?;
    same("the order", &keys(&store.search(&at).text("a").await?), &vec!["l", "k"])?;
    store.put(&at, "l", "ab").unindexed().await?;
    same("what is found", &keys(&store.search(&at).text("a").await?), &vec!["k"])?;
    store.delete(&at, "k").await?;
    same("what is found", &keys(&store.search(&at).text("a").await?), &vec![])
}

async fn failing(Trial { store, .. }: Trial) -> Tried {
    let at = space(["x"])?;
    store.put(&at, "k", "a").await?;
    let changes = vec![Change::put(&at, "j", "a"), Change::put(&at, "k", "!")];
    let code = store.change(changes).await.err().map(|error| error.code());
    same("the code", &code, &Some(StoreCode::Embedder))?;
    let found = store.search(&at).await?;
    same("what is there", &keys(&found), &vec!["k"])?;
    same("its value", &found[0].item.value, &json!("a"))?;
    let code = store.search(&at).text("!").await.err().map(|error| error.code());
    same("the code of a search", &code, &Some(StoreCode::Embedder))
}
