//! Values that nodes take by their type: the dependencies of a graph, and the contexts of a call. And how an
//! argument of a node shares a value.

use std::any::{Any, TypeId};
use std::sync::Arc;

/// For an argument that is an `Arc`: a clone shares the value, whose type need not be `Clone`.
macro_rules! shares_its_value {
    ($argument:ident) => {
        impl<T> Clone for $argument<T> {
            fn clone(&self) -> Self {
                $argument(std::sync::Arc::clone(&self.0))
            }
        }

        impl<T> std::ops::Deref for $argument<T> {
            type Target = T;
            fn deref(&self) -> &T {
                &self.0
            }
        }
    };
}
pub(crate) use shares_its_value;

/// At most one value of each type. They are few, and nodes take them in each step: a search is cheaper than a
/// hash.
#[derive(Clone, Default)]
pub(crate) struct ValuesByType(Vec<(TypeId, Arc<dyn Any + Send + Sync>)>);

impl ValuesByType {
    /// Adds a value; it replaces the one of its type.
    pub(crate) fn insert<T: Send + Sync + 'static>(&mut self, value: T) {
        let id = TypeId::of::<T>();
        self.0.retain(|(other, _)| *other != id);
        self.0.push((id, Arc::new(value)));
    }

    pub(crate) fn get<T: Send + Sync + 'static>(&self) -> Option<Arc<T>> {
        let id = TypeId::of::<T>();
        let (_, value) = self.0.iter().find(|(other, _)| *other == id)?;
        Arc::downcast(Arc::clone(value)).ok()
    }

    pub(crate) fn contains(&self, id: TypeId) -> bool {
        self.types().any(|other| other == id)
    }

    pub(crate) fn types(&self) -> impl Iterator<Item = TypeId> {
        self.0.iter().map(|(id, _)| *id)
    }
}
