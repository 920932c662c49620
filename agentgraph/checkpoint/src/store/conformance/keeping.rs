//! Clauses on puts, gets and deletes.

use std::time::Duration;

use serde_json::{Value, json};

use super::{Clause, Trial, Tried, keys, listed_clauses, same, space};
use crate::error::StoreCode;
use crate::services::Services;
use crate::store::{Change, Namespace, Store, StoreExt};

pub(super) const CLAUSES: &[Clause] = listed_clauses![
    "an item is read as it was put": read_back,
    "an item that was never put is absent": absent,
    "a later put replaces the value and keeps the time of creation": replaced,
    "a deleted item is absent, and a delete says whether it was there": deleted,
    "namespaces with similar names are separate": separate,
    "names may have any characters": hostile,
    "an empty key is refused": empty_key,
    "changes are made all or none": all_or_none,
    "changes of one item are made in their order": in_order,
];

async fn read_back(Trial { store, clock }: Trial) -> Tried {
    let at = space(["a", "b"])?;
    for value in [
        json!({"text": "é\u{0}\u{10ffff}", "list": [1, null, true, {"x": []}], "": {}}),
        json!(u64::MAX),
        json!(i64::MIN),
        json!(9_007_199_254_740_993_u64),
        json!(0.1),
        json!(1.0),
        json!(null),
        json!(""),
    ] {
        store.put(&at, "k", value.clone()).await?;
        let item = store.get(&at, "k").await?.ok_or("an item that was put is absent")?;
        same("the value", &item.value.to_string(), &value.to_string())?;
        same("the place", &(item.namespace, &*item.key), &(at.clone(), "k"))?;
        same(
            "the time",
            &(item.created_at, item.updated_at, item.expires_at),
            &(clock.now(), clock.now(), None),
        )?;
    }
    Ok(())
}

async fn absent(Trial { store, .. }: Trial) -> Tried {
    store.put(&space(["a"])?, "k", 1).await?;
    for (namespace, key) in [(space(["a"])?, "j"), (space(["b"])?, "k"), (Namespace::root(), "k")] {
        same("an absent item", &store.get(&namespace, key).await?, &None)?;
    }
    Ok(())
}

async fn replaced(Trial { store, clock }: Trial) -> Tried {
    let at = space(["a"])?;
    let begun = clock.now();
    let first = store.put(&at, "k", "old").await?;
    clock.advance(Duration::from_secs(1));
    let second = store.put(&at, "k", "new").await?;
    let item = store.get(&at, "k").await?.ok_or("it is absent")?;
    same("the value", &item.value, &json!("new"))?;
    same("the time of creation", &item.created_at, &begun)?;
    same("the time of the value", &item.updated_at, &clock.now())?;
    same("the version", &item.version, &second)?;
    match second > first {
        true => Ok(()),
        false => Err(format!("the later version {second} is not higher than {first}").into()),
    }
}

async fn deleted(Trial { store, clock }: Trial) -> Tried {
    let at = space(["a"])?;
    let before = store.put(&at, "k", 1).await?;
    same("a delete of an item", &store.delete(&at, "k").await?, &true)?;
    same("a deleted item", &store.get(&at, "k").await?, &None)?;
    same("a delete of no item", &store.delete(&at, "k").await?, &false)?;
    clock.advance(Duration::from_secs(1));
    let again = store.put(&at, "k", 2).await?;
    let item = store.get(&at, "k").await?.ok_or("it is absent")?;
    same("the time of creation after a delete", &item.created_at, &clock.now())?;
    same("whether a version was granted twice", &(again > before), &true)
}

/// Each holds one item; only the first is in `["a"]`, beside those that begin with the segment.
async fn separate(Trial { store, .. }: Trial) -> Tried {
    let inside =
        [space(["a"])?, space(["a", "b"])?, space(["a", "\u{0}"])?, space(["a", "\u{10ffff}", "x"])?];
    let outside = [
        Namespace::root(),
        space(["ab"])?,
        space(["a\u{0}"])?,
        space(["a\u{1}"])?,
        space(["a/b"])?,
        space(["a%"])?,
        space(["A"])?,
        space(["b", "a"])?,
    ];
    for (at, namespace) in inside.iter().chain(&outside).enumerate() {
        store.put(namespace, "k", at).await?;
    }
    for (at, namespace) in inside.iter().chain(&outside).enumerate() {
        let value = store.get_as::<usize>(namespace, "k").await?;
        same(&format!("the item in {namespace}"), &value, &Some(at))?;
    }
    let found = store.search(&inside[0]).limit(100).await?;
    let mut values: Vec<Value> = found.iter().map(|found| found.item.value.clone()).collect();
    values.sort_by_key(Value::as_u64);
    same("what is in [\"a\"]", &values, &vec![json!(0), json!(1), json!(2), json!(3)])
}

const HOSTILE: [&str; 14] = [
    " ",
    "'; DROP TABLE item; --",
    "\" OR 1=1 --",
    "$1",
    "?1",
    "%",
    "_",
    "*",
    ".",
    "../../etc/passwd",
    "a\0b",
    "\u{202e}\u{feff}名前😀",
    "NULL",
    "\\x00",
];

async fn hostile(Trial { store, .. }: Trial) -> Tried {
    let long = "é".repeat(500);
    let names: Vec<&str> = HOSTILE.into_iter().chain([&*long]).collect();
    for (at, name) in names.iter().enumerate() {
        store.put(&space([name])?, *name, at).await?;
    }
    for (at, name) in names.iter().enumerate() {
        let here = space([name])?;
        same("the item", &store.get_as::<usize>(&here, name).await?, &Some(at))?;
        same("what is beside it", &keys(&store.search(&here).await?), &vec![*name])?;
        let listed = store.list_namespaces().prefix(&here).await?;
        same("the listed namespace", &listed, &vec![here])?;
    }
    let deep = Namespace::new(vec!["d"; Namespace::MAX_SEGMENTS])?;
    let key = "k".repeat(crate::store::MAX_KEY_BYTES);
    store.put(&deep, &*key, 1).await?;
    same("the deepest item", &store.get_as(&deep, &key).await?, &Some(1))
}

async fn empty_key(Trial { store, .. }: Trial) -> Tried {
    let at = space(["a"])?;
    let long = "k".repeat(crate::store::MAX_KEY_BYTES + 1);
    for key in ["", &long] {
        let codes = [
            store.put(&at, key, 1).await.err().map(|error| error.code()),
            store.get(&at, key).await.err().map(|error| error.code()),
            store.delete(&at, key).await.err().map(|error| error.code()),
        ];
        same("the code", &codes, &[Some(StoreCode::ItemName); 3])?;
    }
    Ok(())
}

async fn all_or_none(Trial { store, .. }: Trial) -> Tried {
    let at = space(["a"])?;
    store.put(&at, "b", 1).await?;
    let changes =
        vec![Change::put(&at, "a", 2), Change::delete(&at, "b"), Change::put(&at, "b", 2).if_version(0)];
    match store.change(changes).await {
        Ok(_) => return Err("a change was made whose condition does not hold".into()),
        Err(error) => same("the code", &error.code(), &StoreCode::ItemConflict)?,
    }
    same("an item before the failed change", &store.get_as::<u64>(&at, "a").await?, &None)?;
    same("an item beside the failed change", &store.get_as(&at, "b").await?, &Some(1))?;
    let changes = vec![Change::put(&at, "z", 3), Change::delete(&at, "b"), Change::put(&at, "a", 3)];
    let versions = store.change(changes).await?;
    same("the number of answers", &versions.len(), &3)?;
    same("the answers", &(versions.iter().all(Option::is_some), versions[2] > versions[0]), &(true, true))?;
    same("what was put", &keys(&store.search(&at).await?), &vec!["a", "z"])
}

async fn in_order(Trial { store, .. }: Trial) -> Tried {
    let at = space(["a"])?;
    let changes = vec![
        Change::put(&at, "k", 1).if_absent(),
        Change::put(&at, "k", 2),
        Change::delete(&at, "k"),
        Change::put(&at, "k", 3).if_absent(),
    ];
    store.change(changes).await?;
    same("the last value", &store.get_as(&at, "k").await?, &Some(3))
}
