//! [`Options`]: what every store of this crate is told about time, vectors and limits.

use std::sync::Arc;
use std::time::{Duration, SystemTime};

use super::change::{Change, Lifetime, Write};
use super::embedder::{VectorIndex, embed_changes};
use crate::error::StoreError;
use crate::impls::shows;
use crate::services::{Services, SystemServices, micros};

/// The end of time: the last microsecond of the year 9999.
const LAST: u64 = 253_402_300_799_999_999;

#[derive(Clone)]
pub(crate) struct Options {
    pub(crate) services: Arc<dyn Services>,
    pub(crate) lifetime: Option<Duration>,
    pub(crate) refreshes: bool,
    pub(crate) index: Option<VectorIndex>,
    pub(crate) scan_limit: usize,
}

impl Options {
    pub(crate) fn new(scan_limit: usize) -> Self {
        Options {
            services: Arc::new(SystemServices),
            lifetime: None,
            refreshes: true,
            index: None,
            scan_limit,
        }
    }

    /// The time, in microseconds since 1970.
    pub(crate) fn now(&self) -> u64 {
        micros(self.services.now()).min(LAST)
    }

    pub(crate) fn refreshes(&self, asked: Option<bool>) -> bool {
        asked.unwrap_or(self.refreshes)
    }

    /// Checks the changes and calls the embedder, so that only the store remains to be changed.
    pub(crate) async fn prepare(&self, changes: Vec<Change>) -> Result<Vec<Prepared>, StoreError> {
        changes.iter().try_for_each(Change::check)?;
        let vectors = embed_changes(self.index.as_ref(), &changes).await?;
        let now = self.now();
        Ok(changes
            .into_iter()
            .zip(vectors)
            .map(|(change, vectors)| self.times(change, vectors, now))
            .collect())
    }

    fn times(&self, change: Change, vectors: Vec<Vec<f32>>, now: u64) -> Prepared {
        let mut prepared = Prepared { now, created: now, ttl: None, expires: None, vectors, change };
        if let Write::Put(new) = &prepared.change.write {
            prepared.created = new.created_at.map_or(now, |time| micros(time).min(LAST));
            let lifetime = match new.lifetime {
                Lifetime::Default => self.lifetime.map(|ttl| (ttl, None)),
                Lifetime::Forever => None,
                Lifetime::For(ttl) => Some((ttl, None)),
                Lifetime::Until(ttl, end) => Some((ttl, Some(end))),
            };
            if let Some((ttl, end)) = lifetime {
                let ttl = u64::try_from(ttl.as_micros()).unwrap_or(LAST).min(LAST);
                prepared.ttl = Some(ttl);
                prepared.expires =
                    Some(end.map_or(end_of(now, ttl), |end: SystemTime| micros(end).min(LAST)));
            }
        }
        prepared
    }
}

shows!(Options: |it| {
    lifetime: it.lifetime, refreshes: it.refreshes, index: it.index, scan_limit: it.scan_limit
});

/// When an item ends whose time begins now.
pub(crate) fn end_of(now: u64, ttl: u64) -> u64 {
    now.saturating_add(ttl).min(LAST)
}

/// A change with its times and its vectors. Times are microseconds since 1970.
#[derive(Clone, Debug)]
pub(crate) struct Prepared {
    pub(crate) change: Change,
    pub(crate) now: u64,
    /// When the item was created, if it is new.
    pub(crate) created: u64,
    pub(crate) ttl: Option<u64>,
    pub(crate) expires: Option<u64>,
    pub(crate) vectors: Vec<Vec<f32>>,
}

/// A change as bytes.
#[cfg(any(feature = "sqlite", feature = "postgres"))]
pub(crate) struct ChangeRow {
    pub(crate) prepared: Prepared,
    pub(crate) namespace: Vec<u8>,
    /// Empty for a delete.
    pub(crate) value: Vec<u8>,
}

#[cfg(any(feature = "sqlite", feature = "postgres"))]
impl ChangeRow {
    pub(crate) fn key(&self) -> &[u8] {
        self.prepared.change.key.as_bytes()
    }
}

#[cfg(any(feature = "sqlite", feature = "postgres"))]
pub(crate) fn rows_of(changes: Vec<Prepared>) -> Result<Vec<ChangeRow>, StoreError> {
    let mut rows = Vec::with_capacity(changes.len());
    for prepared in changes {
        let value = match &prepared.change.write {
            Write::Put(new) => super::value::encode(&new.value)?,
            Write::Delete => Vec::new(),
        };
        rows.push(ChangeRow { namespace: prepared.change.namespace.to_bytes(), value, prepared });
    }
    Ok(rows)
}

/// The options that every store has, as methods of its builder, or of the store if it has none.
///
/// The methods of a type that is not `must_use` itself take that attribute.
macro_rules! option_methods {
    ($(#[$attribute:meta])?) => {
        /// Uses `services` for the time; the system's clock if not set. Processes that share a store need
        /// clocks that agree.
        $(#[$attribute])?
        pub fn services(mut self, services: impl $crate::services::Services) -> Self {
            self.options.services = std::sync::Arc::new(services);
            self
        }

        /// How long items last that are put without a lifetime of their own; forever if not set.
        $(#[$attribute])?
        pub fn lifetime(mut self, lifetime: std::time::Duration) -> Self {
            self.options.lifetime = Some(lifetime);
            self
        }

        /// Whether the time of an item begins anew when it is read; `true` if not set. Each read can decide
        /// for itself.
        $(#[$attribute])?
        pub fn refresh_on_read(mut self, refreshes: bool) -> Self {
            self.options.refreshes = refreshes;
            self
        }

        /// Makes items comparable with a text; without an index, searches by text fail. Items that were
        /// put without it are not found by a text until they are put again.
        $(#[$attribute])?
        pub fn index(mut self, index: $crate::VectorIndex) -> Self {
            self.options.index = Some(index);
            self
        }

        /// The most items that one search looks at, if it has a filter or a text; a search that would look
        /// at more fails with [`StoreCode::ScanLimit`](crate::StoreCode::ScanLimit).
        $(#[$attribute])?
        pub fn scan_limit(mut self, items: usize) -> Self {
            self.options.scan_limit = items;
            self
        }
    };
}
pub(crate) use option_methods;

/// The `scan_limit` if not set.
pub(crate) const SCAN_LIMIT: usize = 100_000;
