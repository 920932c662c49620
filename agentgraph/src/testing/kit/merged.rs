//! [`Merged`]: an update that is merged again, to see whether reducers depend on their arguments alone; and
//! [`Fickle`]: the ways in which a route or a reducer shows that it does not.

use std::sync::Arc;

use crate::record::codec::Codec;
use crate::record::content::Content;
use crate::state::{State, StoredState};
use crate::typed::{AnySchema, AnyState};

/// How a route or a reducer turned out to depend on more than its arguments.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Fickle {
    /// Called twice in a row.
    AtOnce,
    /// Called with the same values, as another process reads them.
    Reread,
    /// Called again after the run.
    Later,
}

impl Fickle {
    /// When the second call was made.
    pub(super) fn when(self) -> &'static str {
        match self {
            Fickle::AtOnce => "when it is called again",
            Fickle::Reread => {
                "when it is called with the same values as another process reads them: it depends on the order of a hash \
                 map or set"
            }
            Fickle::Later => {
                "when it is called again after the run: it depends on something outside that nodes or time have changed"
            }
        }
    }
}

/// How often values are read anew: two entries of a map may happen to come in the same order.
pub(super) const REREADS: usize = 4;

/// An update of a node, with the state that it was merged into.
pub(super) struct Merged<S: State> {
    before: S,
    update: S::Update,
    after: Content,
}

impl<S: StoredState> Merged<S> {
    /// Applies an update to a state; `None` if it is refused.
    pub(super) fn new(schema: &S::Schema, before: &S, update: &S::Update) -> Option<Self> {
        let after = applied(schema, before.clone(), update.clone())?;
        let after = Codec::content_of::<S>(schema, &after);
        Some(Merged { before: before.clone(), update: update.clone(), after })
    }

    /// The channels that differ when the update is applied again, and when that was.
    pub(super) fn differs_now(&self, schema: &S::Schema) -> Option<(Fickle, Vec<String>)> {
        let at_once = self.differing(schema, applied(schema, self.before.clone(), self.update.clone()));
        if !at_once.is_empty() {
            return Some((Fickle::AtOnce, at_once));
        }
        let mut rereads = (0..REREADS).map(|_| self.differing(schema, self.reread(schema)));
        rereads.find(|channels| !channels.is_empty()).map(|channels| (Fickle::Reread, channels))
    }

    /// The channels that differ when the update is applied again, after the run.
    pub(super) fn differs_later(&self, schema: &S::Schema) -> Vec<String> {
        self.differing(schema, self.reread(schema))
    }

    /// The state after the update, as another process computes it.
    fn reread(&self, schema: &S::Schema) -> Option<S> {
        let update = S::encode_update(schema, &self.update).ok()?;
        let update = S::decode_update(schema, &update).ok()?;
        let before = AnyState::new(Arc::new(self.before.clone()));
        let before = Codec::of::<S>(0).reread(&AnySchema::new::<S>(schema.clone()), &before);
        applied(schema, before.into_state(), update)
    }

    /// The channels that differ in the state that the update has led to again.
    fn differing(&self, schema: &S::Schema, again: Option<S>) -> Vec<String> {
        again.map_or_else(Vec::new, |again| self.after.differing(&Codec::content_of::<S>(schema, &again)))
    }
}

fn applied<S: StoredState>(schema: &S::Schema, mut state: S, update: S::Update) -> Option<S> {
    state.apply(schema, update).is_ok().then_some(state)
}
