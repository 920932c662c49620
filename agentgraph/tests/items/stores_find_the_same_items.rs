//! Random changes, filters and searches have the same answers in every store of items: in memory, in a file,
//! encrypted and in a server; and filters those of a small model.
#![cfg(all(feature = "conformance", feature = "encryption", feature = "sqlite"))]

use std::cmp::Ordering;
use std::sync::Arc;
use std::time::Duration;

use agentgraph::checkpoint::{EncryptionKey, KeyRing};
use agentgraph::store::conformance::Setup;
use agentgraph::store::{
    Change, EncryptedStore, Filter, Lifetime, MemoryStore, Namespace, NamespacePattern, NamespaceQuery,
    SearchQuery, SqliteStore, Store,
};
use proptest::prelude::*;
use serde_json::{Number, Value, json};

fn scalar() -> impl Strategy<Value = Value> {
    prop_oneof![
        Just(Value::Null),
        any::<bool>().prop_map(Value::from),
        prop::sample::select(vec![
            json!(0),
            json!(-1),
            json!(1),
            json!(1.0),
            json!(1.5),
            json!(-0.0),
            json!(u64::MAX),
            json!(i64::MAX),
            json!(i64::MIN),
            json!(9_007_199_254_740_993_u64),
            json!(9_007_199_254_740_992_u64),
            json!(9_007_199_254_740_992.0),
            json!(18_446_744_073_709_551_616.0),
            json!(1e300),
            json!(-1e300),
            json!(5e-324),
        ]),
        prop::sample::select(vec![
            "",
            "1",
            "a",
            "A",
            "é",
            "e\u{301}",
            "\u{ffff}",
            "\u{10000}",
            "a\0",
            "NULL",
            "%"
        ])
        .prop_map(Value::from),
    ]
}

fn value() -> impl Strategy<Value = Value> {
    scalar().prop_recursive(3, 12, 3, |inner| {
        prop_oneof![
            prop::collection::vec(inner.clone(), 0..3).prop_map(Value::from),
            prop::collection::btree_map(prop::sample::select(vec!["a", "b", "0", "a.b", ""]), inner, 0..3)
                .prop_map(|fields| fields
                    .into_iter()
                    .map(|(name, value)| (name.to_owned(), value))
                    .collect()),
        ]
    })
}

/// A filter, and the same as a model.
#[derive(Clone, Debug)]
enum Model {
    Compare(&'static str, String, Value),
    In(String, Vec<Value>),
    Exists(String),
    Contains(String, Value),
    All(Vec<Model>),
    Any(Vec<Model>),
    Not(Box<Model>),
}

fn path() -> impl Strategy<Value = String> {
    prop::sample::select(vec!["a", "b", "a.b", "a.0", "b.1.a", "/a.b", "", "0", "missing"])
        .prop_map(str::to_owned)
}

fn model() -> impl Strategy<Value = Model> {
    let name = prop::sample::select(vec!["eq", "ne", "gt", "gte", "lt", "lte"]);
    let leaf = prop_oneof![
        4 => (name, path(), value()).prop_map(|(name, path, value)| Model::Compare(name, path, value)),
        1 => (path(), prop::collection::vec(scalar(), 0..3)).prop_map(|(path, values)| Model::In(path, values)),
        1 => path().prop_map(Model::Exists),
        1 => (path(), scalar()).prop_map(|(path, value)| Model::Contains(path, value)),
    ];
    leaf.prop_recursive(3, 8, 3, |inner| {
        prop_oneof![
            prop::collection::vec(inner.clone(), 0..3).prop_map(Model::All),
            prop::collection::vec(inner.clone(), 0..3).prop_map(Model::Any),
            inner.prop_map(|inner| Model::Not(Box::new(inner))),
        ]
    })
}

impl Model {
    fn filter(&self) -> Filter {
        match self {
            Model::Compare(name, path, value) => {
                let make = match *name {
                    "eq" => Filter::eq,
                    "ne" => Filter::ne,
                    "gt" => Filter::gt,
                    "gte" => Filter::gte,
                    "lt" => Filter::lt,
                    _ => Filter::lte,
                };
                make(path, value.clone())
            }
            Model::In(path, values) => Filter::is_in(path, values.clone()),
            Model::Exists(path) => Filter::exists(path),
            Model::Contains(path, value) => Filter::contains(path, value.clone()),
            Model::All(models) => Filter::all(models.iter().map(Model::filter)),
            Model::Any(models) => Filter::any(models.iter().map(Model::filter)),
            Model::Not(model) => Filter::not(model.filter()),
        }
    }

    fn matches(&self, value: &Value) -> bool {
        match self {
            Model::Compare("eq", path, wanted) => {
                field(value, path).is_some_and(|found| canonical(found) == canonical(wanted))
            }
            Model::Compare("ne", path, wanted) => {
                field(value, path).is_none_or(|found| canonical(found) != canonical(wanted))
            }
            Model::Compare(name, path, wanted) => {
                let Some(order) = field(value, path).and_then(|found| ordered(found, wanted)) else {
                    return false;
                };
                match *name {
                    "gt" => order == Ordering::Greater,
                    "gte" => order != Ordering::Less,
                    "lt" => order == Ordering::Less,
                    _ => order != Ordering::Greater,
                }
            }
            Model::In(path, values) => field(value, path)
                .is_some_and(|found| values.iter().any(|wanted| canonical(found) == canonical(wanted))),
            Model::Exists(path) => field(value, path).is_some(),
            Model::Contains(path, wanted) => match field(value, path) {
                Some(Value::Array(values)) => {
                    values.iter().any(|found| canonical(found) == canonical(wanted))
                }
                _ => false,
            },
            Model::All(models) => models.iter().all(|model| model.matches(value)),
            Model::Any(models) => models.iter().any(|model| model.matches(value)),
            Model::Not(model) => !model.matches(value),
        }
    }
}

/// By serde's own pointers.
fn field<'a>(value: &'a Value, path: &str) -> Option<&'a Value> {
    match path {
        "" => Some(value),
        path if path.starts_with('/') => value.pointer(path),
        path => value.pointer(&format!("/{}", path.replace('.', "/"))),
    }
}

/// The exact value of a number, in decimal digits: floats have at most 1,074 of them after the point.
fn digits(number: &Number) -> String {
    if let Some(integer) = number.as_i64().map(i128::from).or_else(|| number.as_u64().map(i128::from)) {
        return format!("{integer}.{}", "0".repeat(1_074));
    }
    let float = number.as_f64().unwrap();
    format!("{:.1074}", if float == 0.0 { 0.0 } else { float })
}

/// Equal texts for equal values.
fn canonical(value: &Value) -> String {
    match value {
        Value::Number(number) => digits(number),
        Value::Array(values) => format!("[{}]", values.iter().map(canonical).collect::<Vec<_>>().join(",")),
        Value::Object(fields) => {
            let mut shown: Vec<String> =
                fields.iter().map(|(name, value)| format!("{name:?}:{}", canonical(value))).collect();
            shown.sort();
            format!("{{{}}}", shown.join(","))
        }
        other => other.to_string(),
    }
}

fn ordered(a: &Value, b: &Value) -> Option<Ordering> {
    match (a, b) {
        (Value::Number(a), Value::Number(b)) => {
            let (a, b) = (digits(a), digits(b));
            let signed = |text: &str| match text.strip_prefix('-') {
                Some(rest) => (-1, rest.to_owned()),
                None => (1, text.to_owned()),
            };
            let ((sign_a, a), (sign_b, b)) = (signed(&a), signed(&b));
            let sizes = a.len().cmp(&b.len()).then(a.cmp(&b));
            Some(sign_a.cmp(&sign_b).then(if sign_a < 0 { sizes.reverse() } else { sizes }))
        }
        (Value::String(a), Value::String(b)) => Some(a.chars().cmp(b.chars())),
        _ => None,
    }
}

#[derive(Clone, Debug)]
enum Step {
    Put(usize, u8, Value, Option<u64>),
    Delete(usize, u8),
    Pass(u64),
    Read(usize, u8),
    Sweep,
}

fn step() -> impl Strategy<Value = Step> {
    let at = 0..SPACES.len();
    prop_oneof![
        6 => (at.clone(), 0..4_u8, value(), prop::option::of(1..5_u64)).prop_map(|(at, key, value, life)| Step::Put(at, key, value, life)),
        1 => (at.clone(), 0..4_u8).prop_map(|(at, key)| Step::Delete(at, key)),
        1 => (1..3_u64).prop_map(Step::Pass),
        1 => (at, 0..4_u8).prop_map(|(at, key)| Step::Read(at, key)),
        1 => Just(Step::Sweep),
    ]
}

const SPACES: [&[&str]; 6] = [&["a"], &["a", "b"], &["ab"], &["a\0"], &[], &["b", "*"]];

fn space(at: usize) -> Namespace {
    Namespace::try_from(SPACES[at]).unwrap()
}

/// All stores with one clock.
async fn stores(setup: &Setup) -> Vec<(&'static str, Arc<dyn Store>)> {
    let index = || setup.index.clone();
    let clock = || setup.clock.clone();
    let keys = || KeyRing::new("k", EncryptionKey::from_bytes([1; 32])).unwrap();
    let two = || {
        let keys = KeyRing::new("n", EncryptionKey::from_bytes([2; 32])).unwrap();
        keys.older("k", EncryptionKey::from_bytes([1; 32])).unwrap()
    };
    let file = || SqliteStore::builder("").services(clock());
    let mut stores: Vec<(&'static str, Arc<dyn Store>)> = vec![
        ("memory", Arc::new(MemoryStore::new().services(clock()).index(index()))),
        ("file", Arc::new(file().index(index()).in_memory().unwrap())),
        ("encrypted", Arc::new(EncryptedStore::new(file().in_memory().unwrap(), keys()).index(index()))),
        (
            "two keys",
            Arc::new(EncryptedStore::new(MemoryStore::new().services(clock()), two()).index(index())),
        ),
    ];
    #[cfg(feature = "postgres")]
    {
        use crate::postgres_server::PostgresServer;
        let connect = async |server: &PostgresServer| {
            let builder = agentgraph::store::PostgresStore::builder(server.url());
            let builder = builder.schema(server.fresh_schema()).connections(2);
            builder.services(clock()).index(index()).connect().await.unwrap()
        };
        stores.push(("server", Arc::new(connect(&PostgresServer::get()).await)));
        stores.push(("pgvector", Arc::new(connect(&PostgresServer::with_vectors()).await)));
    }
    stores.shrink_to_fit();
    stores
}

/// Everything that a store shows, apart from versions, of which only the order is the same.
async fn shown(store: &dyn Store, queries: &[SearchQuery]) -> Vec<String> {
    let mut lines = Vec::new();
    for query in queries {
        for found in store.find(query).await.unwrap() {
            let item = found.item;
            let score = found.score.map(|score| (score * 1e5).round());
            lines.push(format!(
                "{} {:?} {} {:?} {:?} {:?} {score:?}",
                item.namespace, item.key, item.value, item.created_at, item.updated_at, item.expires_at
            ));
        }
        lines.push("-".to_owned());
    }
    for depth in [None, Some(1)] {
        let mut query = NamespaceQuery::default();
        query.max_depth = depth;
        lines.push(format!("{:?}", store.list(&query).await.unwrap()));
        query.prefix = NamespacePattern::from(["*"]);
        query.offset = 1;
        lines.push(format!("{:?}", store.list(&query).await.unwrap()));
    }
    lines
}

fn queries(models: &[Model]) -> Vec<SearchQuery> {
    let mut queries = Vec::new();
    for (at, model) in models.iter().enumerate() {
        for (limit, offset, text) in [(100, 0, None), (2, 1, None), (3, 0, Some("ab")), (100, 1, Some("a"))] {
            let mut query = SearchQuery::within(&space(at % SPACES.len()));
            query.filter = (at % 3 > 0).then(|| model.filter());
            (query.limit, query.offset, query.refresh) = (limit, offset, Some(false));
            query.text = text.map(str::to_owned);
            queries.push(query);
        }
    }
    queries
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 24, ..ProptestConfig::default() })]

    #[test]
    fn every_store_answers_alike(
        steps in prop::collection::vec(step(), 1..24),
        models in prop::collection::vec(model(), 6..7),
    ) {
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
        runtime.block_on(async {
            let setup = Setup::new();
            let stores = stores(&setup).await;
            for step in &steps {
                if let Step::Pass(seconds) = step {
                    setup.clock.advance(Duration::from_secs(*seconds));
                }
                let mut answers = Vec::new();
                for (_, store) in &stores {
                    answers.push(match step {
                        Step::Put(at, key, value, life) => {
                            let life = life.map_or(Lifetime::Forever, |life| Lifetime::For(Duration::from_secs(life)));
                            let put = Change::put(&space(*at), key.to_string(), value.clone()).lifetime(life);
                            store.change(vec![put]).await.unwrap().len() as u64
                        }
                        Step::Delete(at, key) => {
                            let done = store.change(vec![Change::delete(&space(*at), key.to_string())]).await;
                            u64::from(done.unwrap()[0].is_some())
                        }
                        Step::Pass(_) => 0,
                        Step::Read(at, key) => {
                            u64::from(store.read(&space(*at), &key.to_string(), None).await.unwrap().is_some())
                        }
                        Step::Sweep => store.sweep().await.unwrap(),
                    });
                }
                assert!(answers.iter().all(|answer| *answer == answers[0]), "{step:?}: {answers:?}");
            }
            let queries = queries(&models);
            let wanted = shown(&*stores[0].1, &queries).await;
            for (name, store) in &stores[1..] {
                assert_eq!(shown(&**store, &queries).await, wanted, "{name}");
            }
        });
    }

    #[test]
    fn filters_match_as_the_model_does(values in prop::collection::vec(value(), 1..20), model in model()) {
        let filter = model.filter();
        prop_assert!(filter.check().is_ok());
        for value in values {
            prop_assert_eq!(filter.matches(&value), model.matches(&value), "{:?} on {}", model, value);
        }
    }
}
