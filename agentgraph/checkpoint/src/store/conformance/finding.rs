//! Clauses: what a search finds, and in which order.

use serde_json::{Value, json};

use super::{Clause, Trial, Tried, keys, listed_clauses, same, space};
use crate::error::StoreCode;
use crate::store::{Filter, Namespace, SearchQuery, Store, StoreExt};

pub(super) const CLAUSES: &[Clause] = listed_clauses![
    "a search shows the items that were stored last first": newest_first,
    "a search obeys `limit` and `offset`": pages,
    "a search obeys `before`": before,
    "a search obeys `limit` and `offset` after its filter": filtered_pages,
    "a filter finds exactly the values that it matches": filters,
    "a filter that is not valid is refused": invalid,
    "a limit that is too high is refused": too_many,
];

async fn newest_first(Trial { store, .. }: Trial) -> Tried {
    for (namespace, key) in [("z", "a"), ("a", "b"), ("a", "c"), ("m", "d"), ("a", "b")] {
        store.put(&space([namespace])?, key, 1).await?;
    }
    let found = store.search(&Namespace::root()).await?;
    same("the order", &keys(&found), &vec!["b", "d", "c", "a"])?;
    same("the scores", &found.iter().all(|found| found.score.is_none()), &true)?;
    let found = store.search(&space(["a"])?).await?;
    same("the order", &keys(&found), &vec!["b", "c"])
}

async fn ten(store: &dyn Store) -> Tried<Namespace> {
    let at = space(["a"])?;
    for n in 0..10 {
        store.put(&at, n.to_string(), json!({ "n": n })).await?;
        // Items elsewhere do not count.
        store.put(&space(["b"])?, n.to_string(), json!({ "n": n })).await?;
    }
    Ok(at)
}

async fn pages(Trial { store, .. }: Trial) -> Tried {
    let at = ten(&store).await?;
    for (limit, offset, wanted) in [
        (3, 0, vec!["9", "8", "7"]),
        (3, 8, vec!["1", "0"]),
        (3, 10, vec![]),
        (0, 0, vec![]),
        (1, 1_000_000, vec![]),
    ] {
        let found = store.search(&at).limit(limit).offset(offset).await?;
        same("the page", &keys(&found), &wanted)?;
    }
    Ok(())
}

async fn before(Trial { store, .. }: Trial) -> Tried {
    let at = ten(&store).await?;
    let first = store.search(&at).limit(4).await?;
    let last = first.last().ok_or("the first page is empty")?.item.version;
    // Stored while the pages are read.
    store.put(&at, "late", json!({ "n": 1 })).await?;
    store.put(&at, "9", json!({ "n": 1 })).await?;
    let next = store.search(&at).before(last).limit(3).await?;
    same("the next page", &keys(&next), &vec!["5", "4", "3"])?;
    let next = store.search(&at).before(last).filter(Filter::lt("n", 4)).offset(1).await?;
    same("the next page with a filter", &keys(&next), &vec!["2", "1", "0"])
}

async fn filtered_pages(Trial { store, .. }: Trial) -> Tried {
    let at = ten(&store).await?;
    let odd = || Filter::is_in("n", [1, 3, 5, 7, 9]);
    let found = store.search(&at).filter(odd()).limit(2).offset(1).await?;
    same("the page", &keys(&found), &vec!["7", "5"])?;
    let found = store.search(&at).filter(odd()).limit(2).offset(4).await?;
    same("the last page", &keys(&found), &vec!["1"])
}

/// Where stores that push filters into a database answer differently.
async fn filters(Trial { store, .. }: Trial) -> Tried {
    let at = space(["a"])?;
    let big = 9_007_199_254_740_993_u64;
    let values: [(&str, Value); 14] = [
        ("int", json!({ "v": 1 })),
        ("float", json!({ "v": 1.0 })),
        ("half", json!({ "v": 1.5 })),
        ("text", json!({ "v": "1" })),
        ("big", json!({ "v": big })),
        ("huge", json!({ "v": u64::MAX })),
        ("less", json!({ "v": -3 })),
        ("true", json!({ "v": true })),
        ("null", json!({ "v": null })),
        ("missing", json!({ "w": 1 })),
        ("list", json!({ "v": [1, "b", {"x": 2}] })),
        ("object", json!({ "v": {"x": {"y": "é"}} })),
        ("z", json!({ "v": "z" })),
        ("scalar", json!(7)),
    ];
    for (key, value) in values {
        store.put(&at, key, value).await?;
    }
    let cases: [(Filter, &[&str]); 20] = [
        (Filter::eq("v", 1), &["float", "int"]),
        (Filter::eq("v", "1"), &["text"]),
        (Filter::eq("v", big), &["big"]),
        (Filter::eq("v", big - 1), &[]),
        (Filter::gt("v", big - 1), &["big", "huge"]),
        (Filter::gt("v", 1), &["big", "half", "huge"]),
        (Filter::gte("v", 1), &["big", "float", "half", "huge", "int"]),
        (Filter::lt("v", 1), &["less"]),
        (Filter::lte("v", "1"), &["text"]),
        (Filter::gt("v", "1"), &["z"]),
        (Filter::eq("v", Value::Null), &["null"]),
        (Filter::exists("w"), &["missing"]),
        (Filter::eq("v.x.y", "é"), &["object"]),
        (Filter::eq("/v/2/x", 2), &["list"]),
        (Filter::contains("v", "b"), &["list"]),
        (Filter::eq("", 7), &["scalar"]),
        (Filter::eq("v", json!([1.0, "b", {"x": 2}])), &["list"]),
        (Filter::is_in("v", [json!("z"), json!(true)]), &["true", "z"]),
        (Filter::not(Filter::exists("v").or(Filter::exists("w"))), &["scalar"]),
        (
            Filter::ne("v", 1).and(Filter::not(Filter::gt("v", 0))).and(Filter::exists("v")),
            &["less", "list", "null", "object", "text", "true", "z"],
        ),
    ];
    for (filter, wanted) in cases {
        let found = store.search(&at).filter(filter.clone()).limit(100).await?;
        let mut found = keys(&found);
        found.sort_unstable();
        same(&format!("what {filter:?} finds"), &found, &wanted.to_vec())?;
    }
    Ok(())
}

async fn invalid(Trial { store, .. }: Trial) -> Tried {
    let at = space(["a"])?;
    let deep = (0..1_000).fold(Filter::eq("a", 1), |inner, _| Filter::not(inner));
    let wide = Filter::any((0..1_000).map(|n| Filter::eq("a", n)));
    let nested = (0..1_000).fold(json!(1), |inner, _| json!([inner]));
    for filter in
        [deep, wide, Filter::eq("a..b", 1), Filter::eq("a".repeat(2_000), 1), Filter::eq("a", nested)]
    {
        let code = store.search(&at).filter(filter).await.err().map(|error| error.code());
        same("the code", &code, &Some(StoreCode::ItemQuery))?;
    }
    Ok(())
}

async fn too_many(Trial { store, .. }: Trial) -> Tried {
    let at = space(["a"])?;
    for (limit, offset) in [(1_001, 0), (usize::MAX, usize::MAX), (1, usize::MAX)] {
        let query = SearchQuery { limit, offset, ..SearchQuery::within(&at) };
        let code = store.find(&query).await.err().map(|error| error.code());
        same("the code", &code, &Some(StoreCode::ItemQuery))?;
        let code = store.list_namespaces().limit(limit).offset(offset).await.err().map(|error| error.code());
        same("the code of a list", &code, &Some(StoreCode::ItemQuery))?;
    }
    Ok(())
}
