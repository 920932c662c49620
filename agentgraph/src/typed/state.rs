//! [`AnyState`] and [`AnyUpdate`]: values whose type only the shell knows.

use std::any::Any;
use std::pin::Pin;
use std::sync::Arc;

use super::AnySchema;
use crate::state::{Channel, Lifetime, State, StateError, WriteKind};

/// A state. Its box contains an `Arc<S>`, which snapshots share.
pub(crate) struct AnyState(Box<dyn HeldState>);

/// An `Arc<S>`, with the functions that need its type.
trait HeldState: Any + Send + Sync {
    fn share(&self) -> Box<dyn HeldState>;
    fn value(&self) -> Arc<dyn Any + Send + Sync>;
    fn seen(&self) -> &dyn Any;
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
}

/// A look at a state, borrowed from an [`AnyState`] or from a state with its type.
#[derive(Clone, Copy)]
pub(crate) struct Seen<'a>(&'a dyn Any);

impl<'a> Seen<'a> {
    pub(crate) fn of<S: State>(state: &'a S) -> Self {
        Seen(state)
    }

    pub(crate) fn of_any(state: &'a (dyn Any + Send + Sync)) -> Self {
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
pub(crate) fn other_type() -> ! {
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
        let held: &dyn Any = &*self.0;
        held.downcast_ref().unwrap_or_else(|| other_type())
    }

    #[inline]
    pub(super) fn shared_mut<S: State>(&mut self) -> &mut Arc<S> {
        let held: &mut dyn Any = &mut *self.0;
        held.downcast_mut().unwrap_or_else(|| other_type())
    }

    /// The state, to be changed. It is cloned if a snapshot of it still exists.
    pub(crate) fn get_mut<S: State>(&mut self) -> &mut S {
        Arc::make_mut(self.shared_mut())
    }

    pub(crate) fn into_state<S: State>(self) -> S {
        let held: Box<dyn Any> = self.0;
        match held.downcast::<Arc<S>>() {
            Ok(shared) => Arc::unwrap_or_clone(*shared),
            Err(_) => other_type(),
        }
    }
}

/// The clone shares the state. The first change through either of them clones the value.
impl Clone for AnyState {
    fn clone(&self) -> Self {
        AnyState(self.0.share())
    }
}

/// An update. Nothing is allocated for an empty one.
#[derive(Default)]
pub(crate) struct AnyUpdate(Option<Pin<Box<dyn HeldUpdate>>>);

/// A box with an update in it.
pub(crate) trait HeldUpdate: Send + Sync {
    fn slot(&self) -> &dyn UpdateSlot;
    fn slot_mut(self: Pin<&mut Self>) -> &mut dyn UpdateSlot;
}

/// An `Option<S::Update>`, which is `None` once the update is taken.
pub(crate) trait UpdateSlot: Any {
    fn copy(&self) -> Pin<Box<dyn HeldUpdate>>;
}

impl<U: Clone + Send + Sync + 'static> UpdateSlot for Option<U> {
    fn copy(&self) -> Pin<Box<dyn HeldUpdate>> {
        AnyUpdate::boxed(self.clone())
    }
}

/// An update alone in its box.
struct Alone<U>(Option<U>);

/// The update is never pinned.
impl<U> Unpin for Alone<U> {}

impl<U: Clone + Send + Sync + 'static> HeldUpdate for Alone<U> {
    fn slot(&self) -> &dyn UpdateSlot {
        &self.0
    }

    fn slot_mut(self: Pin<&mut Self>) -> &mut dyn UpdateSlot {
        &mut self.get_mut().0
    }
}

fn typed_slot<S: State>(held: Pin<&mut dyn HeldUpdate>) -> &mut Option<S::Update> {
    let slot: &mut dyn Any = held.slot_mut();
    slot.downcast_mut().unwrap_or_else(|| other_type())
}

impl AnyUpdate {
    pub(crate) fn new<S: State>(update: S::Update) -> Self {
        AnyUpdate(Some(Self::boxed(Some(update))))
    }

    /// An update in a box that had another use before.
    pub(super) fn held(update: Pin<Box<dyn HeldUpdate>>) -> Self {
        AnyUpdate(Some(update))
    }

    pub(super) fn boxed<U: Clone + Send + Sync + 'static>(update: Option<U>) -> Pin<Box<dyn HeldUpdate>> {
        Box::pin(Alone(update))
    }

    /// The update, unless it is an empty one that was never given a type.
    pub(crate) fn seen<S: State>(&self) -> Option<&S::Update> {
        let slot: &dyn Any = self.0.as_deref()?.slot();
        let slot: Option<&Option<S::Update>> = slot.downcast_ref();
        slot.unwrap_or_else(|| other_type()).as_ref()
    }

    pub(crate) fn get_mut<S: State>(&mut self) -> &mut S::Update {
        let held = self.0.get_or_insert_with(|| Self::boxed::<S::Update>(None));
        typed_slot::<S>(held.as_mut()).get_or_insert_default()
    }

    pub(crate) fn into_update<S: State>(self) -> S::Update {
        let Some(mut held) = self.0 else { return S::Update::default() };
        typed_slot::<S>(held.as_mut()).take().unwrap_or_default()
    }
}

impl Clone for AnyUpdate {
    fn clone(&self) -> Self {
        AnyUpdate(self.0.as_deref().map(|held| held.slot().copy()))
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

/// Removes a write that an overwrite beside it replaces.
pub(crate) fn discard_reduced<S: State>(schema: &S::Schema, update: &mut S::Update, channel: usize) {
    let mut reduces = false;
    S::writes(schema, update, &mut |written, kind| {
        reduces |= written == channel && kind == WriteKind::Reduce;
    });
    if reduces {
        S::discard(schema, update, channel);
    }
}
