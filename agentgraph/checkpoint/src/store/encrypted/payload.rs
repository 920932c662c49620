//! The bytes of an encrypted item: its names, its value and its vectors, in an envelope as base64.

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use serde::{Deserialize, Serialize};
use serde_json::Value;

use super::EncryptedStore;
use crate::encrypted::seal::{Label, SealError, open, seal};
use crate::error::{StoreCode, StoreError};
use crate::store::item::{Item, name_of};
use crate::store::namespace::Namespace;
use crate::store::value::MAX_DEPTH;

#[derive(Serialize, Deserialize)]
struct Payload {
    namespace: Vec<String>,
    key: String,
    value: Value,
    vectors: Vec<Vec<f32>>,
}

/// What an envelope contained.
pub(super) struct Opened {
    pub(super) item: Item,
    pub(super) vectors: Vec<Vec<f32>>,
}

/// An item in the clear, which is to be stored at a place of the inner store.
pub(super) struct Clear<'a> {
    pub(super) namespace: &'a Namespace,
    pub(super) key: &'a str,
    pub(super) value: &'a Value,
    pub(super) vectors: &'a [Vec<f32>],
}

impl<S> EncryptedStore<S> {
    pub(super) fn seal(&self, clear: &Clear<'_>, place: &(Namespace, String)) -> Result<Value, StoreError> {
        let payload = Payload {
            namespace: clear.namespace.segments().to_vec(),
            key: clear.key.to_owned(),
            value: clear.value.clone(),
            vectors: clear.vectors.to_vec(),
        };
        let bytes = rmp_serde::to_vec_named(&payload).map_err(|error| {
            let problem = format!("{} cannot be stored: {error}", name_of(clear.namespace, clear.key));
            StoreError::new(StoreCode::ItemValue, problem).with_source(error)
        })?;
        let label = Label::item(&place.0.to_bytes(), &place.1);
        let sealed = seal(&self.keys, &self.random, &label, &bytes)?;
        Ok(Value::String(STANDARD.encode(sealed)))
    }

    /// Opens an item that was found under these names.
    pub(super) fn open_named(
        &self,
        found: Item,
        namespace: &Namespace,
        key: &str,
    ) -> Result<Opened, StoreError> {
        let problem = match self.try_open(&found) {
            Ok(opened) if opened.item.namespace == *namespace && opened.item.key == key => return Ok(opened),
            Ok(_) => SealError::Broken,
            Err(problem) => problem,
        };
        Err(closed(&name_of(namespace, key), &problem))
    }

    /// Opens an item of unknown names.
    pub(super) fn open(&self, found: &Item) -> Result<Opened, StoreError> {
        self.try_open(found).map_err(|problem| {
            let stored = name_of(&found.namespace, &found.key);
            closed(&format!("{stored} of the inner store"), &problem)
        })
    }

    fn try_open(&self, found: &Item) -> Result<Opened, SealError> {
        let envelope = envelope_of(found)?;
        let label = Label::item(&found.namespace.to_bytes(), &found.key);
        let clear = open(&self.keys, &label, &envelope)?;
        // Its bytes are authentic, so only a newer release can have written them otherwise.
        let mut reader = rmp_serde::Deserializer::from_read_ref(&clear);
        reader.set_max_depth(2 * MAX_DEPTH + 8);
        let payload = Payload::deserialize(&mut reader).map_err(|_| SealError::Broken)?;
        let namespace = Namespace::new(payload.namespace).map_err(|_| SealError::Broken)?;
        let item = Item { namespace, key: payload.key, value: payload.value, ..found.clone() };
        Ok(Opened { item, vectors: payload.vectors })
    }
}

/// The envelope of an item of the inner store.
pub(super) fn envelope_of(found: &Item) -> Result<Vec<u8>, SealError> {
    let text = found.value.as_str().ok_or(SealError::Clear)?;
    STANDARD.decode(text).map_err(|_| SealError::Clear)
}

fn closed(item: &str, problem: &SealError) -> StoreError {
    StoreError::new(problem.code(), format!("{item} cannot be read: {problem}"))
}
