//! A store of items beside a hand-written table with the same columns: puts, gets and searches of values of
//! some hundred bytes.

use std::rc::Rc;

use agentgraph::store::{Filter, Item, Namespace, SqliteStore, StoreExt};
use rusqlite::{Connection, OptionalExtension, params};
use serde_json::{Value, json};

use crate::case::{Case, Entrant};
use crate::folder::Folder;
use crate::runtime::one_thread;

const ITEMS: u64 = 100;
/// The items that a filter looks at.
const MANY: u64 = 1_000;

pub(crate) fn cases() -> Vec<Case> {
    vec![
        Case::new("store/put", "item", ITEMS, puts),
        Case::new("store/get", "item", ITEMS, gets),
        Case::new("store/search", "search", ITEMS, searches),
        // The store searches on a second thread.
        Case::new("store/filter", "item", MANY, filters).on_two_threads().by_wall_clock(),
    ]
}

fn value(n: u64) -> Value {
    json!({ "n": n, "kind": "fact", "text": "a sentence about a user, as an agent keeps it. ".repeat(5) })
}

fn space() -> Namespace {
    Namespace::new(["users", "ada", "facts"]).expect("a namespace")
}

const CREATE: &str = "
CREATE TABLE item (
    version INTEGER PRIMARY KEY AUTOINCREMENT, namespace BLOB NOT NULL, key BLOB NOT NULL, created INTEGER NOT NULL,
    updated INTEGER NOT NULL, value BLOB NOT NULL, UNIQUE (namespace, key)
)";
const PUT: &str =
    "INSERT OR REPLACE INTO item (namespace, key, created, updated, value) VALUES (?1, ?2, ?3, ?3, ?4)";
const GET: &str = "SELECT value FROM item WHERE namespace = ?1 AND key = ?2";
const SEARCH: &str = "SELECT value FROM item WHERE namespace = ?1 ORDER BY version DESC LIMIT ?2";

/// The hand-written table.
struct Bare {
    connection: Connection,
    _folder: Folder,
}

const PLACE: &[u8] = b"users/ada/facts";

impl Bare {
    fn new() -> Self {
        let folder = Folder::create();
        let connection = Connection::open(folder.file("bare.db")).expect("a file");
        let settings = "PRAGMA journal_mode = WAL; PRAGMA synchronous = NORMAL";
        connection.execute_batch(settings).expect("settings");
        connection.execute_batch(CREATE).expect("a table");
        Bare { connection, _folder: folder }
    }

    fn filled(items: u64) -> Self {
        let bare = Bare::new();
        (0..items).for_each(|n| bare.put(n));
        bare
    }

    fn put(&self, n: u64) {
        let bytes = rmp_serde::to_vec_named(&value(n)).expect("bytes");
        let mut statement = self.connection.prepare_cached(PUT).expect("a statement");
        statement.execute(params![PLACE, n.to_string().as_bytes(), 1_i64, bytes]).expect("a row");
    }

    fn get(&self, n: u64) -> Value {
        let mut statement = self.connection.prepare_cached(GET).expect("a statement");
        let key = n.to_string();
        let read = |row: &rusqlite::Row<'_>| row.get::<_, Vec<u8>>(0);
        let bytes = statement.query_row(params![PLACE, key.as_bytes()], read).optional();
        rmp_serde::from_slice(&bytes.expect("a query").expect("a row")).expect("a value")
    }

    fn search(&self, limit: u64) -> Vec<Value> {
        let mut statement = self.connection.prepare_cached(SEARCH).expect("a statement");
        let limit = i64::try_from(limit).expect("a small number");
        let rows =
            statement.query_map(params![PLACE, limit], |row| row.get::<_, Vec<u8>>(0)).expect("a query");
        rows.map(|bytes| rmp_serde::from_slice(&bytes.expect("a row")).expect("a value")).collect()
    }
}

/// The store, and the runtime that it runs on. Entrants call its functions: a closure that named some of its
/// fields would capture only these, and the folder would be removed.
struct Ours {
    store: SqliteStore,
    runtime: Rc<tokio::runtime::Runtime>,
    _folder: Folder,
}

impl Ours {
    fn new() -> Self {
        let (runtime, folder) = (one_thread(), Folder::create());
        let store = runtime.block_on(SqliteStore::open(folder.file("store.db"))).expect("a store");
        Ours { store, runtime, _folder: folder }
    }

    fn filled(items: u64) -> Self {
        let ours = Ours::new();
        let space = space();
        (0..items).for_each(|n| ours.put(&space, n));
        ours
    }

    fn put(&self, space: &Namespace, n: u64) {
        self.runtime.block_on(self.store.put(space, n.to_string(), value(n)).into_future()).expect("a put");
    }

    fn get(&self, space: &Namespace, n: u64) -> Option<Item> {
        self.runtime.block_on(self.store.get(space, &n.to_string()).into_future()).expect("a get")
    }

    /// The number of items that a search finds.
    fn search(&self, space: &Namespace, filter: Option<Filter>) -> usize {
        let search = self.store.search(space);
        let search = match filter {
            None => search,
            Some(filter) => search.filter(filter),
        };
        self.runtime.block_on(search.into_future()).expect("a search").len()
    }
}

fn puts() -> Vec<Entrant> {
    let (bare, ours, space) = (Bare::new(), Ours::new(), space());
    vec![
        Entrant::new("floor: an insert of the same bytes", move |times| {
            (0..times * ITEMS).for_each(|n| bare.put(n % ITEMS));
        }),
        Entrant::new("`SqliteStore`", move |times| {
            (0..times * ITEMS).for_each(|n| ours.put(&space, n % ITEMS));
        })
        .within(3.0),
    ]
}

fn gets() -> Vec<Entrant> {
    let (bare, ours, space) = (Bare::filled(ITEMS), Ours::filled(ITEMS), space());
    vec![
        Entrant::new("floor: a select of the same bytes", move |times| {
            (0..times * ITEMS).for_each(|n| assert!(bare.get(n % ITEMS).is_object()));
        }),
        Entrant::new("`SqliteStore`", move |times| {
            (0..times * ITEMS).for_each(|n| assert!(ours.get(&space, n % ITEMS).is_some()));
        })
        .within(3.0),
    ]
}

fn searches() -> Vec<Entrant> {
    let (bare, ours, space) = (Bare::filled(ITEMS), Ours::filled(ITEMS), space());
    vec![
        Entrant::new("floor: a select of the ten newest rows", move |times| {
            (0..times * ITEMS).for_each(|_| assert_eq!(bare.search(10).len(), 10));
        }),
        Entrant::new("`SqliteStore`", move |times| {
            (0..times * ITEMS).for_each(|_| assert_eq!(ours.search(&space, None), 10));
        })
        .within(3.0),
    ]
}

fn filters() -> Vec<Entrant> {
    let (bare, ours, space) = (Bare::filled(MANY), Ours::filled(MANY), space());
    vec![
        Entrant::new("floor: a select of all rows, and a comparison of each", move |times| {
            for _ in 0..times {
                let found = bare.search(MANY).into_iter().filter(|value| value["n"].as_u64() < Some(10));
                assert_eq!(found.count(), 10);
            }
        }),
        Entrant::new("`SqliteStore`", move |times| {
            (0..times).for_each(|_| assert_eq!(ours.search(&space, Some(Filter::lt("n", 10))), 10));
        })
        .within(3.0),
    ]
}
