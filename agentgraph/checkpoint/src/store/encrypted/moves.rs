//! Changes of encrypted items, which may still be under an older key.

use std::collections::HashSet;

use super::EncryptedStore;
use super::payload::{Clear, envelope_of};
use crate::encrypted::seal::key_of;
use crate::error::{StoreCode, StoreError};
use crate::store::Store;
use crate::store::change::{Change, Condition, Lifetime, NewItem, Write};
use crate::store::embedder::embed_changes;
use crate::store::item::Item;
use crate::store::namespace::Namespace;
use crate::store::search::{MAX_LIMIT, SearchQuery};

/// How often a change is repeated whose item another writer moved meanwhile.
const REPEATS: u32 = 8;

pub(super) async fn change<S: Store>(
    store: &EncryptedStore<S>,
    changes: Vec<Change>,
) -> Result<Vec<Option<u64>>, StoreError> {
    changes.iter().try_for_each(Change::check)?;
    let vectors = embed_changes(store.options.index.as_ref(), &changes).await?;
    let mut repeats = 0;
    loop {
        let plan = Plan::of(store, &changes, &vectors).await?;
        let done = store.inner.change(plan.changes).await;
        let clash = match done {
            Ok(done) => return Ok(plan.answers.into_iter().map(|at| answer(&done, &at)).collect()),
            Err(error) if error.code() == StoreCode::ItemConflict => error,
            Err(error) => return Err(error),
        };
        // The names in the inner store's error are codes: the error for the user names the item.
        for change in &changes {
            let found = store.read(&change.namespace, &change.key, Some(false)).await?;
            change.check_condition(found.map(|item| item.version))?;
        }
        repeats += 1;
        if repeats > REPEATS {
            let problem =
                "other writers change the same items again and again: nothing was changed; try again later";
            return Err(StoreError::new(StoreCode::ItemConflict, problem).with_source(clash));
        }
    }
}

/// The first version among the answers to the inner changes of one change.
fn answer(done: &[Option<u64>], at: &[usize]) -> Option<u64> {
    at.iter().find_map(|at| done.get(*at).copied().flatten())
}

/// The changes of the inner store.
#[derive(Default)]
struct Plan {
    changes: Vec<Change>,
    /// For each change of the caller, the positions of the inner changes with its answer.
    answers: Vec<Vec<usize>>,
}

impl Plan {
    async fn of<S: Store>(
        store: &EncryptedStore<S>,
        changes: &[Change],
        vectors: &[Vec<Vec<f32>>],
    ) -> Result<Self, StoreError> {
        let mut plan = Plan::default();
        // Items that an earlier change of the list has moved to the current key.
        let mut moved = HashSet::new();
        for (change, vectors) in changes.iter().zip(vectors) {
            let first = moved.insert((&change.namespace, &*change.key));
            plan.add(store, change, vectors, first).await?;
        }
        Ok(plan)
    }

    /// The item must be under one key only, so it is removed under the older ones in the same transaction.
    async fn add<S: Store>(
        &mut self,
        store: &EncryptedStore<S>,
        change: &Change,
        vectors: &[Vec<f32>],
        first: bool,
    ) -> Result<(), StoreError> {
        let Change { namespace, key, .. } = change;
        let Some((current, older)) = store.names.split_first() else { return Ok(()) };
        let mut moves: Option<Item> = None;
        let mut answers = Vec::new();
        for names in older.iter().filter(|_| first) {
            let (space, code) = names.place(namespace, key);
            let found = store.inner.read(&space, &code, Some(false)).await?;
            let removes = Change::delete(&space, code);
            let removes = match &found {
                Some(item) => removes.if_version(item.version),
                None => removes.if_absent(),
            };
            if found.is_some() && change.write == Write::Delete {
                answers.push(self.changes.len());
            }
            self.changes.push(removes);
            moves = moves.or(found);
        }
        if let Some(item) = &moves {
            change.check_condition(Some(item.version))?;
        }
        answers.push(self.changes.len());
        let place = current.place(namespace, key);
        let mut inner = match &change.write {
            Write::Delete => Change::delete(&place.0, &*place.1),
            Write::Put(NewItem { value, lifetime, created_at, .. }) => {
                let sealed = store.seal(&Clear { namespace, key, value, vectors }, &place)?;
                let mut put = Change::put(&place.0, &*place.1, sealed).lifetime(*lifetime);
                if let Some(time) = moves.as_ref().map(|item| item.created_at).or(*created_at) {
                    put = put.created_at(time);
                }
                put
            }
        };
        inner.condition = match moves {
            // The condition holds for the item that is removed.
            Some(_) => Condition::Absent,
            None => change.condition,
        };
        self.changes.push(inner);
        self.answers.push(answers);
        Ok(())
    }
}

pub(super) async fn reseal<S: Store>(
    store: &EncryptedStore<S>,
    within: &Namespace,
) -> Result<u64, StoreError> {
    let mut places = Vec::new();
    let spaces: Vec<Namespace> = match within.segments() {
        [] => vec![Namespace::root()],
        _ => store.names.iter().skip(1).map(|names| names.namespace(within)).collect(),
    };
    for space in spaces {
        let mut query = SearchQuery { limit: MAX_LIMIT, refresh: Some(false), ..SearchQuery::within(&space) };
        loop {
            let page = store.inner.find(&query).await?;
            let Some(last) = page.last() else { break };
            query.before = Some(last.item.version);
            let older = page.into_iter().filter(|found| !is_current(store, &found.item));
            places.extend(older.map(|found| (found.item.version, found.item.namespace, found.item.key)));
        }
    }
    // From the oldest on, so that the new versions keep their order.
    places.sort();
    let mut count = 0;
    for (_, space, code) in places {
        let Some(found) = store.inner.read(&space, &code, Some(false)).await? else { continue };
        match store.inner.change(moved(store, &found)?).await {
            Ok(_) => count += 1,
            // It was stored again meanwhile, with the current key.
            Err(error) if error.code() == StoreCode::ItemConflict => {}
            Err(error) => return Err(error),
        }
    }
    Ok(count)
}

fn is_current<S>(store: &EncryptedStore<S>, found: &Item) -> bool {
    // What cannot be read as an envelope is reported when it is opened.
    let envelope = envelope_of(found).unwrap_or_default();
    key_of(&envelope) == Some(store.keys.current().as_bytes())
}

/// The changes that move an item to the current key.
fn moved<S: Store>(store: &EncryptedStore<S>, found: &Item) -> Result<Vec<Change>, StoreError> {
    let opened = store.open(found)?;
    let Item { namespace, key, value, .. } = &opened.item;
    let Some(current) = store.names.first() else { return Ok(Vec::new()) };
    let place = current.place(namespace, key);
    let sealed = store.seal(&Clear { namespace, key, value, vectors: &opened.vectors }, &place)?;
    let lifetime = match (found.lifetime, found.expires_at) {
        (Some(lifetime), Some(end)) => Lifetime::Until(lifetime, end),
        _ => Lifetime::Forever,
    };
    Ok(vec![
        Change::delete(&found.namespace, &*found.key).if_version(found.version),
        Change::put(&place.0, &*place.1, sealed).if_absent().lifetime(lifetime).created_at(found.created_at),
    ])
}
