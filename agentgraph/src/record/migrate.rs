//! Migration: converts data stored under an earlier version of the state into the current one.
//!
//! A graph declares the version of its state, and checkpoints record it. Data of an earlier version goes
//! through the migrations between the two when it is read, as fields by name, before it is decoded into
//! today's types. Stored data does not change: the next checkpoint is a full in the new version.

use std::borrow::Cow;
use std::fmt;
use std::sync::Arc;

use serde::Serialize;
use serde::de::DeserializeOwned;

use crate::error::{BoxError, Code, Error};
use crate::reduce::derived::{decode_fields, encode_field, encode_fields};
use crate::state::StateError;
use agentgraph_checkpoint::delta::{decode, encode};

/// The stored fields of a state, or of an update that waits to be merged, during migration from one version
/// to the next.
///
/// ```
/// use agentgraph::prelude::*;
///
/// /// Version 0 had `price: f64`, in dollars.
/// #[derive(State, Clone, Debug, Default)]
/// struct Order {
///     cents: u64,
/// }
///
/// async fn pay(order: Snapshot<Order>) {
///     assert!(order.cents > 0);
/// }
///
/// let graph = StateGraph::<Order>::new()
///     .node("pay", pay)
///     .edge(START, "pay")
///     .schema_version(1)
///     .migration(0, |fields| {
///         if let Some(dollars) = fields.take::<f64>("price")? {
///             fields.set("cents", (dollars * 100.0).round() as u64)?;
///         }
///         Ok(())
///     })
///     .compile();
/// assert!(graph.is_ok());
/// ```
#[derive(Clone, PartialEq)]
pub struct StoredFields {
    fields: Vec<StoredField>,
    is_update: bool,
    /// Overwriting fields of an update that were taken out: written again, they overwrite again.
    overwritten: Vec<String>,
}

#[derive(Clone, PartialEq)]
struct StoredField {
    name: String,
    value: Vec<u8>,
    /// In an update: bypasses the reducer.
    overwrites: bool,
}

impl StoredFields {
    /// The value of a field; `None` if it was never written, or, in an update, if the update does not write
    /// it.
    ///
    /// # Errors
    /// If the stored value is not a `T`.
    pub fn get<T: DeserializeOwned>(&self, name: &str) -> Result<Option<T>, BoxError> {
        let Some(field) = self.fields.iter().find(|field| field.name == name) else { return Ok(None) };
        let value = decode(&field.value).map_err(|error| format!("the stored field `{name}`: {error}"))?;
        Ok(Some(value))
    }

    /// [`get`](StoredFields::get), and removes the field.
    ///
    /// # Errors
    /// As [`get`](StoredFields::get); the field then stays.
    pub fn take<T: DeserializeOwned>(&mut self, name: &str) -> Result<Option<T>, BoxError> {
        let value = self.get(name)?;
        self.remove(name);
        Ok(value)
    }

    /// Writes a field, existing or new. In an update, a field that overwrote its channel still does.
    ///
    /// # Errors
    /// If the value cannot be encoded.
    pub fn set<T: Serialize>(&mut self, name: &str, value: T) -> Result<(), BoxError> {
        let mut bytes = Vec::new();
        encode(&mut bytes, &value).map_err(|error| format!("the field `{name}`: {error}"))?;
        match self.fields.iter_mut().find(|field| field.name == name) {
            Some(field) => field.value = bytes,
            None => {
                let overwrites = self.overwritten.iter().any(|taken| taken == name);
                self.fields.push(StoredField { name: name.to_owned(), value: bytes, overwrites });
            }
        }
        Ok(())
    }

    /// Removes a field. `false` if it does not exist.
    pub fn remove(&mut self, name: &str) -> bool {
        let Some(at) = self.fields.iter().position(|field| field.name == name) else { return false };
        let field = self.fields.remove(at);
        if field.overwrites {
            self.overwritten.push(field.name);
        }
        true
    }

    /// Renames a field, if it exists. A field with the new name is replaced.
    pub fn rename(&mut self, from: &str, to: &str) {
        if from != to && self.fields.iter().any(|field| field.name == from) {
            self.remove(to);
            self.fields
                .iter_mut()
                .filter(|field| field.name == from)
                .for_each(|field| to.clone_into(&mut field.name));
        }
    }

    /// The names of the existing fields.
    pub fn names(&self) -> impl Iterator<Item = &str> {
        self.fields.iter().map(|field| &*field.name)
    }

    /// Whether these are the writes of a task that finished while its superstep was not committed, and not
    /// a whole state. A reduced field then contains the write for its reducer.
    pub fn is_update(&self) -> bool {
        self.is_update
    }

    pub(crate) fn of_state(fields: impl IntoIterator<Item = (String, Vec<u8>)>) -> Self {
        let fields = fields.into_iter().map(|(name, value)| StoredField { name, value, overwrites: false });
        StoredFields { fields: fields.collect(), is_update: false, overwritten: Vec::new() }
    }

    /// The MessagePack of a field.
    pub(crate) fn value(&self, name: &str) -> Option<&[u8]> {
        self.fields.iter().find(|field| field.name == name).map(|field| &*field.value)
    }

    /// The fields of an encoded update.
    fn of_update(update: &[u8]) -> Result<Self, StateError> {
        let fields = decode_fields(update)?.into_iter().map(|(name, write)| {
            let (value, overwrites) = unwrap(write).ok_or_else(|| StateError::BadValue {
                channel: name.to_owned(),
                problem: "the stored write is damaged".into(),
            })?;
            Ok(StoredField { name: name.to_owned(), value: value.to_vec(), overwrites })
        });
        let fields = fields.collect::<Result<_, StateError>>()?;
        Ok(StoredFields { fields, is_update: true, overwritten: Vec::new() })
    }

    fn to_update(&self) -> Vec<u8> {
        let mut bytes = encode_fields(self.fields.len());
        for field in &self.fields {
            encode_field(&mut bytes, &field.name, &wrap(&field.value, field.overwrites));
        }
        bytes
    }
}

impl fmt::Debug for StoredFields {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        out.debug_list().entries(self.names()).finish()
    }
}

/// A write is a map with one entry, whose key is its kind.
const KINDS: [(&str, bool); 2] = [("Reduce", false), ("Overwrite", true)];

fn unwrap(mut write: &[u8]) -> Option<(&[u8], bool)> {
    let count = rmp::decode::read_map_len(&mut write).ok()?;
    let (kind, value) = rmp::decode::read_str_from_slice(write).ok()?;
    let (_, overwrites) = KINDS.iter().find(|(known, _)| *known == kind)?;
    (count == 1).then_some((value, *overwrites))
}

fn wrap(value: &[u8], overwrites: bool) -> Vec<u8> {
    let (kind, _) = KINDS[usize::from(overwrites)];
    let mut bytes = vec![0x81];
    // Writing to a Vec does not fail.
    let _ = rmp::encode::write_str(&mut bytes, kind);
    bytes.extend_from_slice(value);
    bytes
}

pub(crate) type Migrate = Arc<dyn Fn(&mut StoredFields) -> Result<(), BoxError> + Send + Sync>;

/// The version of a graph's state, and the migrations to it.
#[derive(Clone, Default)]
pub(crate) struct Migrations {
    pub(crate) version: u32,
    /// By the version they start from.
    pub(crate) steps: Vec<(u32, Migrate)>,
}

impl Migrations {
    /// Migrates the fields of a stored state to this version.
    ///
    /// # Errors
    /// [`Code::SchemaVersion`].
    pub(crate) fn state(&self, stored: u32, fields: &mut StoredFields) -> Result<(), Error> {
        if stored > self.version {
            let problem = format!(
                "it was stored with version {stored} of the state, and this graph has version {}: run it with the newer program",
                self.version
            );
            return Err(Error::new(Code::SchemaVersion, problem));
        }
        (stored..self.version).try_for_each(|from| self.step(from, fields))
    }

    /// Migrates an encoded update to this version.
    pub(crate) fn update(&self, stored: u32, update: Vec<u8>) -> Result<Vec<u8>, Error> {
        if stored == self.version {
            return Ok(update);
        }
        let mut fields = StoredFields::of_update(&update)?;
        self.state(stored, &mut fields)?;
        Ok(fields.to_update())
    }

    fn step(&self, from: u32, fields: &mut StoredFields) -> Result<(), Error> {
        let Some((_, migrate)) = self.steps.iter().find(|(known, _)| *known == from) else {
            let problem = format!(
                "it was stored with version {from} of the state, and this graph has no way from there to version {}: add \
                 `.migration({from}, ..)` to the builder",
                from + 1
            );
            return Err(Error::new(Code::SchemaVersion, problem));
        };
        migrate(fields).map_err(|error| {
            let problem = format!(
                "the migration from version {from} of the state failed: {error}; correct the migration; nothing was stored"
            );
            Error::new(Code::SchemaVersion, problem).with_source(error)
        })
    }
}

/// How a graph treats stored fields that its state does not have.
#[derive(Clone, Debug, Default)]
pub(crate) struct UnknownFields {
    /// The names of dropped fields.
    pub(crate) drops: Vec<Cow<'static, str>>,
    /// Whether all others are kept.
    pub(crate) keeps: bool,
}

impl UnknownFields {
    pub(crate) fn drops(&self, name: &str) -> bool {
        self.drops.iter().any(|dropped| dropped == name)
    }
}
