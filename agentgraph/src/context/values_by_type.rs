//! Values that nodes take by their type: the dependencies of a graph, and the contexts of a call.

use std::any::{Any, TypeId};
use std::collections::HashMap;
use std::sync::Arc;

/// At most one value of each type.
#[derive(Clone, Default)]
pub(crate) struct ValuesByType(HashMap<TypeId, Arc<dyn Any + Send + Sync>>);

impl ValuesByType {
    /// Adds a value; it replaces the one of its type.
    pub(crate) fn insert<T: Send + Sync + 'static>(&mut self, value: T) {
        self.0.insert(TypeId::of::<T>(), Arc::new(value));
    }

    pub(crate) fn get<T: Send + Sync + 'static>(&self) -> Option<Arc<T>> {
        Arc::downcast(Arc::clone(self.0.get(&TypeId::of::<T>())?)).ok()
    }

    pub(crate) fn contains(&self, id: TypeId) -> bool {
        self.0.contains_key(&id)
    }

    pub(crate) fn types(&self) -> impl Iterator<Item = TypeId> {
        self.0.keys().copied()
    }
}
