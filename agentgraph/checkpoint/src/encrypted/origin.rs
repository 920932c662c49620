//! Copies of threads. A store copies bytes unchanged, and these are bound to the thread they were written
//! for. So a copy carries permissions beside them, in a separate namespace: encrypted lists of the threads
//! whose bytes it may contain. The permission of a new copy is written into the *source* before the store
//! copies it, so a copy without one never exists.

use super::seal::{Label, open, seal};
use super::{EncryptedSaver, KeyRing};
use crate::catalog;
use crate::checkpointer::Checkpointer;
use crate::delta::{decode, encode};
use crate::error::{StoreCode, StoreError};
use crate::id::CheckpointId;
use crate::row::{ListQuery, Place, Put, Rewrite, RowKind};
use crate::upkeep;

/// The namespace of permissions. No graph has a namespace with this prefix.
pub(super) const PERMISSIONS: &str = "||origins";

/// The most attempts to find a free step for a permission, while other copies write theirs.
const TRIES: usize = 16;

/// The threads that a thread is a copy of, directly or not; read on first use.
#[derive(Default)]
pub(super) struct Origins(Option<Vec<String>>);

impl Origins {
    pub(super) async fn of<C: Checkpointer>(
        &mut self,
        store: &C,
        keys: &KeyRing,
        thread: &str,
    ) -> Result<&[String], StoreError> {
        if self.0.is_none() {
            self.0 = Some(read(store, keys, thread).await?);
        }
        Ok(self.0.as_deref().unwrap_or_default())
    }
}

/// Permissions of other copies, which were copied along, and changed ones do not open.
async fn read<C: Checkpointer>(store: &C, keys: &KeyRing, thread: &str) -> Result<Vec<String>, StoreError> {
    let rows = store.list(Place { thread, namespace: PERMISSIONS }, ListQuery::default()).await?;
    let mut origins = Vec::new();
    for row in rows {
        let clear = open(keys, &Label::permission(thread), &row.record);
        origins.extend(clear.ok().and_then(|clear| decode::<Vec<String>>(&clear).ok()).unwrap_or_default());
    }
    Ok(origins)
}

pub(super) async fn copy_thread<C: Checkpointer>(
    saver: &EncryptedSaver<C>,
    from: &str,
    to: &str,
) -> Result<(), StoreError> {
    if catalog::namespaces(&saver.inner, from).await?.is_empty() {
        // Then later reads find nothing either.
        return upkeep::copy_thread(&saver.inner, from, to).await;
    }
    let step = permit(saver, from, to).await?;
    let copied = upkeep::copy_thread(&saver.inner, from, to).await;
    // By now the copy has its own, if the store made one. In the source the permission is useless and
    // harmless.
    let gone = [(0, step..step.saturating_add(1))];
    let place = Place { thread: from, namespace: PERMISSIONS };
    let rewrite = Rewrite { place, fence: 0, fulls: &[], unfold: &[], gone: &gone };
    let _ = upkeep::rewrite(&saver.inner, rewrite).await;
    copied
}

/// Stores a permission in `from`: `to` may contain the same bytes. Returns its step.
async fn permit<C: Checkpointer>(saver: &EncryptedSaver<C>, from: &str, to: &str) -> Result<u64, StoreError> {
    let mut origins = vec![from.to_owned()];
    origins.extend(read(&saver.inner, &saver.keys, from).await?);
    let mut clear = Vec::new();
    encode(&mut clear, &origins).map_err(|error| StoreError::new(StoreCode::Encode, error.to_string()))?;
    let record = seal(&saver.keys, &saver.random, &Label::permission(to), &clear)?;
    let place = Place { thread: from, namespace: PERMISSIONS };
    let newest = ListQuery { limit: Some(1), ..ListQuery::default() };
    let mut tried = 0;
    loop {
        let step =
            saver.inner.list(place, newest).await?.first().map_or(0, |row| row.id.step.saturating_add(1));
        let put = Put::new(place, CheckpointId::new(0, step), RowKind::Full, &record);
        tried += 1;
        match saver.inner.put(put).await {
            Ok(()) => return Ok(step),
            Err(error) if error.code() == StoreCode::Stale && tried < TRIES => {}
            Err(error) => return Err(error),
        }
    }
}
