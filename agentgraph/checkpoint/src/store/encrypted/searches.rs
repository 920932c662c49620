//! Searches of encrypted items: the inner store finds those of a namespace, and this file opens them.

use std::collections::BTreeSet;

use super::EncryptedStore;
use crate::error::StoreError;
use crate::store::Store;
use crate::store::embedder::{best_score, embed_query};
use crate::store::item::Found;
use crate::store::namespace::Namespace;
use crate::store::pattern::{NamespacePage, NamespacePattern, NamespaceQuery};
use crate::store::search::{MAX_LIMIT, Results, SearchQuery};

/// How often a search begins again because items were stored meanwhile.
const REPEATS: u32 = 3;

pub(super) async fn find<S: Store>(
    store: &EncryptedStore<S>,
    query: &SearchQuery,
) -> Result<Vec<Found>, StoreError> {
    query.check()?;
    let vector = embed_query(store.options.index.as_ref(), query.text.as_deref()).await?;
    let spaces = spaces_of(store, &query.within);
    let mut page = match (&*spaces, &query.filter, &vector) {
        ([space], None, None) => {
            let inner = SearchQuery { within: space.clone(), refresh: Some(false), ..query.clone() };
            let page = store.inner.find(&inner).await?;
            page.iter()
                .map(|found| Ok(Found::new(store.open(&found.item)?.item, None)))
                .collect::<Result<_, _>>()?
        }
        _ => scan_steadily(store, query, &spaces, vector.as_deref()).await?,
    };
    if store.options.refreshes(query.refresh) {
        for Found { item, .. } in page.iter_mut().filter(|found| found.item.lifetime.is_some()) {
            if let Some(read) = store.read(&item.namespace, &item.key, Some(true)).await? {
                item.expires_at = read.expires_at;
            }
        }
    }
    Ok(page)
}

/// The namespaces of the inner store that can have the items.
fn spaces_of<S>(store: &EncryptedStore<S>, within: &Namespace) -> Vec<Namespace> {
    match within.segments() {
        [] => vec![Namespace::root()],
        _ => store.names.iter().map(|names| names.namespace(within)).collect(),
    }
}

/// Repeats the search if an item was stored meanwhile: it gets a new version, and the search may already have
/// passed that.
async fn scan_steadily<S: Store>(
    store: &EncryptedStore<S>,
    query: &SearchQuery,
    spaces: &[Namespace],
    vector: Option<&[f32]>,
) -> Result<Vec<Found>, StoreError> {
    let mut newest = newest_of(store, spaces).await?;
    for _ in 0..REPEATS {
        let page = scan(store, query, spaces, vector).await?;
        let now = newest_of(store, spaces).await?;
        if now == newest {
            return Ok(page);
        }
        newest = now;
    }
    scan(store, query, spaces, vector).await
}

async fn newest_of<S: Store>(
    store: &EncryptedStore<S>,
    spaces: &[Namespace],
) -> Result<Option<u64>, StoreError> {
    let mut newest = None;
    for space in spaces {
        let query = SearchQuery { limit: 1, refresh: Some(false), ..SearchQuery::within(space) };
        let found = store.inner.find(&query).await?;
        newest = newest.max(found.first().map(|found| found.item.version));
    }
    Ok(newest)
}

async fn scan<S: Store>(
    store: &EncryptedStore<S>,
    query: &SearchQuery,
    spaces: &[Namespace],
    vector: Option<&[f32]>,
) -> Result<Vec<Found>, StoreError> {
    let mut results = Results::new(query, store.options.scan_limit);
    // Items of one space arrive in order of their versions.
    let stops = vector.is_none() && spaces.len() == 1;
    for space in spaces {
        let mut inner = SearchQuery {
            limit: MAX_LIMIT.min(256),
            before: query.before,
            refresh: Some(false),
            ..SearchQuery::within(space)
        };
        loop {
            let page = store.inner.find(&inner).await?;
            let Some(last) = page.last() else { break };
            inner.before = Some(last.item.version);
            for found in &page {
                if stops && results.is_full() {
                    return Ok(results.page());
                }
                results.count(1)?;
                add(store, &mut results, found, vector)?;
            }
        }
    }
    Ok(results.page())
}

fn add<S: Store>(
    store: &EncryptedStore<S>,
    results: &mut Results<'_>,
    found: &Found,
    vector: Option<&[f32]>,
) -> Result<(), StoreError> {
    let opened = store.open(&found.item)?;
    let score = vector.and_then(|vector| best_score(vector, opened.vectors.iter().map(Vec::as_slice)));
    results.add(opened.item, score);
    Ok(())
}

pub(super) async fn list<S: Store>(
    store: &EncryptedStore<S>,
    query: &NamespaceQuery,
) -> Result<Vec<Namespace>, StoreError> {
    query.check()?;
    let no_query = SearchQuery::within(&Namespace::root());
    let mut opened = Results::new(&no_query, store.options.scan_limit);
    let mut names = BTreeSet::new();
    for space in spaces_of(store, &query.prefix.fixed()?) {
        let mut inner = NamespaceQuery {
            prefix: NamespacePattern::from(&space),
            limit: MAX_LIMIT,
            ..NamespaceQuery::default()
        };
        loop {
            let page = store.inner.list(&inner).await?;
            opened.count(page.len())?;
            for space in &page {
                names.extend(name_of(store, space).await?);
            }
            if page.len() < MAX_LIMIT {
                break;
            }
            inner.offset += MAX_LIMIT;
        }
    }
    let mut page = NamespacePage::new(query);
    for name in &names {
        if !page.add(name) {
            break;
        }
    }
    Ok(page.into_found())
}

/// The name of a namespace of the inner store: every item in it, or in one in it, knows.
async fn name_of<S: Store>(
    store: &EncryptedStore<S>,
    space: &Namespace,
) -> Result<Option<Namespace>, StoreError> {
    let query = SearchQuery { limit: 1, refresh: Some(false), ..SearchQuery::within(space) };
    let found = store.inner.find(&query).await?;
    let Some(found) = found.first() else { return Ok(None) };
    let name = store.open(&found.item)?.item.namespace;
    Ok(Some(name.cut_to(space.segments().len())))
}
