//! Adding headers up, compared with the rules in the docs of `header.rs`.

use std::collections::BTreeMap;

use proptest::prelude::*;
use proptest::test_runner::{Config, RngSeed};
use serde_json::{Map, Value, json};

use super::HeaderMap;
use crate::delta::encode;
use crate::frame::{HeaderWriter, complete, open};
use crate::row::RowKind;

/// Keys and values of one record, in the order of writing.
type HeaderKeys = Vec<(&'static str, Value)>;

/// Open activations in the order in which they were made.
fn activations() -> impl Strategy<Value = Value> {
    proptest::collection::btree_map((0..4_u64, 0..2_u32), 0..3_u8, 0..4).prop_map(|nodes| {
        let item = |((made, index), node): ((u64, u32), u8)| json!({"node": node.to_string(), "from": "f", "made": made, "index": index});
        Value::Array(nodes.into_iter().map(item).collect())
    })
}

fn texts() -> impl Strategy<Value = Value> {
    proptest::collection::vec(0..9_u8, 0..3).prop_map(|items| json!(items))
}

fn map() -> impl Strategy<Value = Value> {
    proptest::collection::btree_map("[a-d]", 0..9_u8, 0..3).prop_map(|map| json!(map))
}

fn one() -> impl Strategy<Value = (&'static str, Value)> {
    let of = |keys: &[&'static str]| proptest::sample::select(keys.to_vec());
    let names = proptest::collection::vec("[a-c]", 0..3).prop_map(|names| json!(names));
    let ended = proptest::collection::vec((0..4_u64, 0..2_u32), 0..3);
    let writes = proptest::collection::vec(("[ab]", any::<bool>()), 0..3);
    prop_oneof![
        (
            of(&["source", "abandoned", "halt", "wrote", "spent", "time", "joins", "of_a_later_release"]),
            texts()
        ),
        (of(&["groups", "kept"]), texts()),
        activations().prop_map(|next| ("next", next)),
        names.prop_map(|next| ("next", next)),
        (of(&["overlay", "edits", "stuck", "also_stuck"]), texts()),
        (of(&["memories", "remembered", "outputs"]), map()),
        activations().prop_map(|begun| ("begun", begun)),
        ended.prop_map(|ended| ("ended", json!(ended))),
        writes.prop_map(|writes| ("writes", json!(writes))),
    ]
}

/// A record contains each key once; `run` and `log`, if it has them, come first.
fn record() -> impl Strategy<Value = HeaderKeys> {
    let log = (0..50_u64, "[x-z]").prop_map(|(at, node)| json!([{"at": at, "ended": [0, 0, node]}]));
    (proptest::option::of(0..3_u8), log, proptest::collection::vec(one(), 0..8)).prop_map(
        |(run, log, more)| {
            let mut keys: HeaderKeys = run.map(|run| ("run", json!(run))).into_iter().collect();
            keys.push(("log", log));
            for (key, value) in more {
                if keys.iter().all(|(known, _)| *known != key) {
                    keys.push((key, value));
                }
            }
            keys
        },
    )
}

fn bytes_of(keys: &HeaderKeys) -> Vec<u8> {
    let mut bytes = Vec::new();
    let mut header = HeaderWriter::begin(&mut bytes);
    keys.iter().for_each(|(key, value)| header.value(key, value));
    header.finish();
    complete(&mut bytes, RowKind::Full, &[]);
    bytes
}

fn applied(map: &mut HeaderMap, record: &[u8]) {
    map.apply(open(RowKind::Full, record).unwrap().header).unwrap();
}

fn list<'a>(model: &'a mut BTreeMap<String, Value>, key: &str) -> &'a mut Vec<Value> {
    model.entry(key.to_owned()).or_insert_with(|| json!([])).as_array_mut().unwrap()
}

fn entries<'a>(model: &'a mut BTreeMap<String, Value>, key: &str) -> &'a mut Map<String, Value> {
    model.entry(key.to_owned()).or_insert_with(|| json!({})).as_object_mut().unwrap()
}

/// Names, which a run in supersteps stores, have no key.
fn key_of(item: &Value) -> Option<(u64, u64)> {
    Some((item["made"].as_u64()?, item["index"].as_u64()?))
}

/// Applies the rules to one more record.
fn follow(model: &mut BTreeMap<String, Value>, keys: &HeaderKeys) {
    for key in ["source", "abandoned", "halt", "wrote", "log"] {
        model.remove(key);
    }
    for (key, value) in keys {
        let items = value.as_array().cloned().unwrap_or_default();
        match *key {
            "run" => {
                if model.get("run") != Some(value) {
                    for key in ["spent", "stuck", "log", "groups", "written", "kept"] {
                        model.remove(key);
                    }
                }
                model.insert("run".into(), value.clone());
            }
            "edits" => list(model, "overlay").extend(items),
            "also_stuck" => list(model, "stuck").extend(items),
            "remembered" => entries(model, "memories").extend(value.as_object().unwrap().clone()),
            "outputs" => entries(model, "outputs").extend(value.as_object().unwrap().clone()),
            "ended" => list(model, "next").retain(|open| {
                let key = key_of(open);
                key.is_none_or(|(made, index)| !items.contains(&json!([made, index])))
            }),
            "begun" => {
                let next = list(model, "next");
                for item in items {
                    next.retain(|open| key_of(open) != key_of(&item));
                    next.push(item);
                }
                next.sort_by_key(key_of);
            }
            "writes" => {
                let last = model["log"].as_array().unwrap().last().unwrap().clone();
                let written = list(model, "written");
                for item in items {
                    written.retain(|written| written["channel"] != item[0]);
                    let mut now = json!({"channel": item[0], "at": last["at"], "by": last["ended"][2]});
                    if item[1] == true {
                        now["overwrote"] = json!(true);
                    }
                    written.push(now);
                }
            }
            _ => {
                model.insert((*key).to_owned(), value.clone());
            }
        }
    }
}

fn all_of(map: &HeaderMap) -> BTreeMap<String, Value> {
    map.iter().map(|(key, _)| (key.to_owned(), map.get(key).unwrap().unwrap())).collect()
}

proptest! {
    #![proptest_config(Config { rng_seed: RngSeed::Fixed(20), ..Config::default() })]

    #[test]
    fn headers_add_up_as_the_rules_say(records in proptest::collection::vec(record(), 1..8)) {
        let mut map = HeaderMap::default();
        let mut model = BTreeMap::new();
        for keys in &records {
            applied(&mut map, &bytes_of(keys));
            follow(&mut model, keys);
            prop_assert_eq!(&all_of(&map), &model);
        }
        // One full record of the whole header reads the same.
        let mut again = HeaderMap::default();
        applied(&mut again, &map.to_record(&[]));
        prop_assert_eq!(&all_of(&again), &model);
    }

    #[test]
    fn no_bytes_make_a_header_panic(bytes in proptest::collection::vec(any::<u8>(), 0..60), key in 0..20_usize) {
        const KEYS: [&str; 10] =
            ["run", "edits", "also_stuck", "remembered", "outputs", "writes", "ended", "begun", "next", "log"];
        let mut map = HeaderMap::default();
        let _ = map.apply(&bytes);
        let mut header = vec![0x82];
        for key in [KEYS[key / 2], KEYS[key % 10]] {
            encode(&mut header, key).unwrap();
            header.extend_from_slice(&bytes);
        }
        let _ = map.apply(&header);
        let _ = all_bytes(&map);
    }
}

fn all_bytes(map: &HeaderMap) -> usize {
    map.iter().map(|(_, value)| value.len()).sum()
}
