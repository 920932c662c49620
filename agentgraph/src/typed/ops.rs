//! [`AnySchema`]: what the engine asks of a state type.

use std::any::{Any, TypeId};
use std::sync::Arc;

use super::state::other_type;
use super::{AnyState, AnyUpdate, Seen};
use crate::state::{Channel, Lifetime, State, StateError, WriteKind};

/// The channels of a state, and the functions of its type.
#[derive(Clone)]
pub(crate) struct AnySchema(Arc<dyn Ops>);

impl std::ops::Deref for AnySchema {
    type Target = dyn Ops;

    fn deref(&self) -> &(dyn Ops + 'static) {
        &*self.0
    }
}

impl AnySchema {
    pub(crate) fn new<S: State>(schema: S::Schema) -> Self {
        AnySchema(Arc::new(OpsOf::<S>(schema)))
    }

    pub(crate) fn typed<S: State>(&self) -> &S::Schema {
        self.0.schema().downcast_ref().unwrap_or_else(|| other_type())
    }
}

/// The functions of a state type that a run needs. [`State`] has the contract of most of them.
pub(crate) trait Ops: Send + Sync {
    fn schema(&self) -> &dyn Any;
    fn state_type(&self) -> (TypeId, &'static str);
    fn problems(&self) -> Vec<StateError>;
    /// [`State::SEVERAL_WRITES`].
    fn several_writes(&self) -> &'static str;
    fn channels(&self) -> &[Channel];
    fn initial(&self) -> AnyState;
    fn apply(&self, state: &mut AnyState, update: AnyUpdate) -> Result<(), StateError>;
    /// Calls `look` with the state as `update` would change it.
    fn peek(
        &self,
        state: &mut AnyState,
        update: &mut AnyUpdate,
        look: &mut dyn FnMut(Seen<'_>),
    ) -> Result<(), StateError>;
    fn reset(&self, state: &mut AnyState, lifetime: Lifetime);
    /// A state of its own, which is a clone.
    #[cfg(feature = "testing")]
    fn copy_of(&self, state: Seen<'_>) -> AnyState;
    /// A copy of an update, if it is one of this state.
    fn update_of(&self, update: &(dyn Any + Send + Sync)) -> Option<AnyUpdate>;
    fn writes(&self, update: &AnyUpdate, each: &mut dyn FnMut(usize, WriteKind));
    fn discard(&self, update: &mut AnyUpdate, channel: usize);
    fn compose(&self, update: &mut AnyUpdate, later: AnyUpdate) -> Result<(), StateError>;
}

struct OpsOf<S: State>(S::Schema);

impl<S: State> Ops for OpsOf<S> {
    fn schema(&self) -> &dyn Any {
        &self.0
    }

    fn state_type(&self) -> (TypeId, &'static str) {
        (TypeId::of::<S>(), std::any::type_name::<S>())
    }

    fn problems(&self) -> Vec<StateError> {
        S::problems(&self.0)
    }

    fn several_writes(&self) -> &'static str {
        S::SEVERAL_WRITES
    }

    fn channels(&self) -> &[Channel] {
        S::channels(&self.0)
    }

    fn initial(&self) -> AnyState {
        AnyState::new(Arc::new(S::initial(&self.0)))
    }

    fn apply(&self, state: &mut AnyState, update: AnyUpdate) -> Result<(), StateError> {
        state.get_mut::<S>().apply(&self.0, update.into_update::<S>())
    }

    fn peek(
        &self,
        state: &mut AnyState,
        update: &mut AnyUpdate,
        look: &mut dyn FnMut(Seen<'_>),
    ) -> Result<(), StateError> {
        state.get_mut::<S>().peek(&self.0, update.get_mut::<S>(), |state| look(Seen::of(state)))
    }

    fn reset(&self, state: &mut AnyState, lifetime: Lifetime) {
        state.get_mut::<S>().reset(&self.0, lifetime);
    }

    #[cfg(feature = "testing")]
    fn copy_of(&self, state: Seen<'_>) -> AnyState {
        AnyState::new(Arc::new(state.state::<S>().clone()))
    }

    fn update_of(&self, update: &(dyn Any + Send + Sync)) -> Option<AnyUpdate> {
        update.downcast_ref::<S::Update>().cloned().map(AnyUpdate::new::<S>)
    }

    fn writes(&self, update: &AnyUpdate, each: &mut dyn FnMut(usize, WriteKind)) {
        if let Some(update) = update.seen::<S>() {
            S::writes(&self.0, update, each);
        }
    }

    fn discard(&self, update: &mut AnyUpdate, channel: usize) {
        S::discard(&self.0, update.get_mut::<S>(), channel);
    }

    fn compose(&self, update: &mut AnyUpdate, later: AnyUpdate) -> Result<(), StateError> {
        S::compose(&self.0, update.get_mut::<S>(), later.into_update::<S>())
    }
}
