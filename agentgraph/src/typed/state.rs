//! [`AnyState`] and [`AnyUpdate`]: values whose type only the shell knows.

use std::any::Any;
use std::sync::Arc;

use super::AnySchema;
use crate::state::{Channel, Lifetime, State, StateError, WriteKind};

/// A state. Its box contains an `Arc<S>`, which snapshots share.
pub(crate) struct AnyState(Box<dyn HeldState>);

/// The functions of an `Arc<S>` that need its type.
trait HeldState: Send + Sync {
    fn share(&self) -> Box<dyn HeldState>;
    fn value(&self) -> Arc<dyn Any + Send + Sync>;
    fn seen(&self) -> &dyn Any;
    fn shared(&self) -> &dyn Any;
    fn shared_mut(&mut self) -> &mut dyn Any;
    fn into_shared(self: Box<Self>) -> Box<dyn Any>;
}

impl<S: State> HeldState for Arc<S> {
    fn share(&self) -> Box<dyn HeldState> {
        Box::new(Arc::clone(self))
    }

    fn value(&self) -> Arc<dyn Any + Send + Sync> {
        Arc::clone(self) as _
    }

    fn seen(&self) -> &dyn Any {
        &**self
    }

    fn shared(&self) -> &dyn Any {
        self
    }

    fn shared_mut(&mut self) -> &mut dyn Any {
        self
    }

    fn into_shared(self: Box<Self>) -> Box<dyn Any> {
        self
    }
}

/// A look at a state, borrowed from an [`AnyState`] or from a state with its type.
#[derive(Clone, Copy)]
pub(crate) struct Seen<'a>(&'a dyn Any);

impl<'a> Seen<'a> {
    pub(crate) fn of<S: State>(state: &'a S) -> Self {
        Seen(state)
    }

    #[inline]
    pub(crate) fn state<S: State>(self) -> &'a S {
        self.0.downcast_ref().unwrap_or_else(|| other_type())
    }
}

/// The value is not of the type that the shell around it has: a fault of the shell, since schema, states and
/// updates of a graph are made together.
#[cold]
#[track_caller]
pub(super) fn other_type() -> ! {
    unreachable!("a value of another state type")
}

impl AnyState {
    pub(crate) fn new<S: State>(state: Arc<S>) -> Self {
        AnyState(Box::new(state))
    }

    /// The state itself, for a function that knows its type.
    pub(crate) fn seen(&self) -> Seen<'_> {
        Seen(self.0.seen())
    }

    /// The state as a value of its own, for an error.
    pub(crate) fn value(&self) -> Arc<dyn Any + Send + Sync> {
        self.0.value()
    }

    #[inline]
    pub(crate) fn shared<S: State>(&self) -> &Arc<S> {
        self.0.shared().downcast_ref().unwrap_or_else(|| other_type())
    }

    #[inline]
    pub(crate) fn shared_mut<S: State>(&mut self) -> &mut Arc<S> {
        self.0.shared_mut().downcast_mut().unwrap_or_else(|| other_type())
    }

    /// The state, to be changed. It is cloned if a snapshot of it still exists.
    pub(crate) fn get_mut<S: State>(&mut self) -> &mut S {
        Arc::make_mut(self.shared_mut())
    }

    pub(crate) fn into_state<S: State>(self) -> S {
        match self.0.into_shared().downcast::<Arc<S>>() {
            Ok(shared) => Arc::unwrap_or_clone(*shared),
            Err(_) => other_type(),
        }
    }
}

/// Shares the state with the copy: whoever changes one of them first clones it.
impl Clone for AnyState {
    fn clone(&self) -> Self {
        AnyState(self.0.share())
    }
}

/// An update. Nothing is allocated for an empty one.
#[derive(Default)]
pub(crate) struct AnyUpdate(Option<Box<dyn HeldUpdate>>);

trait HeldUpdate: Send + Sync {
    fn copy(&self) -> Box<dyn HeldUpdate>;
    fn seen(&self) -> &dyn Any;
    fn seen_mut(&mut self) -> &mut dyn Any;
    fn into_any(self: Box<Self>) -> Box<dyn Any>;
}

impl<U: Clone + Send + Sync + 'static> HeldUpdate for U {
    fn copy(&self) -> Box<dyn HeldUpdate> {
        Box::new(self.clone())
    }

    fn seen(&self) -> &dyn Any {
        self
    }

    fn seen_mut(&mut self) -> &mut dyn Any {
        self
    }

    fn into_any(self: Box<Self>) -> Box<dyn Any> {
        self
    }
}

impl AnyUpdate {
    pub(crate) fn new<S: State>(update: S::Update) -> Self {
        AnyUpdate(Some(Box::new(update)))
    }

    /// The update, unless it is an empty one that was never given a type.
    pub(crate) fn seen<S: State>(&self) -> Option<&S::Update> {
        let held = self.0.as_deref()?;
        Some(held.seen().downcast_ref().unwrap_or_else(|| other_type()))
    }

    pub(crate) fn get_mut<S: State>(&mut self) -> &mut S::Update {
        let held = self.0.get_or_insert_with(|| Box::new(S::Update::default()));
        (**held).seen_mut().downcast_mut().unwrap_or_else(|| other_type())
    }

    pub(crate) fn into_update<S: State>(self) -> S::Update {
        let Some(held) = self.0 else { return S::Update::default() };
        match held.into_any().downcast() {
            Ok(update) => *update,
            Err(_) => other_type(),
        }
    }
}

impl Clone for AnyUpdate {
    fn clone(&self) -> Self {
        AnyUpdate(self.0.as_deref().map(HeldUpdate::copy))
    }
}

/// So that the types of the face ([`Step`](crate::node::Step), [`Task`](crate::node::Task), events) serve the
/// engine, too.
impl State for AnyState {
    type Schema = AnySchema;
    type Update = AnyUpdate;

    fn channels(schema: &AnySchema) -> &[Channel] {
        schema.channels()
    }

    fn initial(schema: &AnySchema) -> Self {
        schema.initial()
    }

    fn apply(&mut self, schema: &AnySchema, update: AnyUpdate) -> Result<(), StateError> {
        schema.apply(self, update)
    }

    fn peek<R>(
        &mut self,
        schema: &AnySchema,
        update: &mut AnyUpdate,
        look: impl FnOnce(&Self) -> R,
    ) -> Result<R, StateError> {
        let mut changed = self.clone();
        schema.apply(&mut changed, update.clone())?;
        Ok(look(&changed))
    }

    fn reset(&mut self, schema: &AnySchema, lifetime: Lifetime) {
        schema.reset(self, lifetime);
    }

    fn writes(schema: &AnySchema, update: &AnyUpdate, each: &mut dyn FnMut(usize, WriteKind)) {
        schema.writes(update, each);
    }

    fn discard(schema: &AnySchema, update: &mut AnyUpdate, channel: usize) {
        schema.discard(update, channel);
    }

    fn compose(schema: &AnySchema, update: &mut AnyUpdate, later: AnyUpdate) -> Result<(), StateError> {
        schema.compose(update, later)
    }
}
