//! One call at a time: the world, the journal and the sources together. A call that is answered
//! well is on disk before; one that is answered badly has changed nothing.

use std::sync::{Arc, Mutex, PoisonError};
use std::time::SystemTime;

use serde_json::Value;

use super::accounts;
use super::fault::Fault;
use super::gate::{self, Caller, Gate};
use super::journal::Journal;
use super::metrics;
use super::segments;
use super::settings;
use super::sources::{Clock, Ids, timestamp};
use super::world::World;
use crate::client::ContextMetadata;

/// What a route is asked.
#[derive(Debug, Default)]
pub(crate) struct Asked {
    pub(crate) method: String,
    /// Path and query, as they came.
    pub(crate) endpoint: String,
    /// The path of the route, as the tables have it.
    pub(crate) route: &'static str,
    /// The header by which the caller says who he is.
    pub(crate) authorization: Option<String>,
    /// The part of the path that is an id, without its escapes, if the route has one.
    pub(crate) id: String,
    /// What follows the question mark, as it came.
    pub(crate) query: String,
    /// The student in the header.
    pub(crate) user: Option<String>,
    pub(crate) body: Value,
}

impl Asked {
    /// The values of a name after the question mark, which may be there more than once.
    pub(crate) fn values_of(&self, name: &str) -> Vec<&str> {
        let pairs = self.query.split('&').filter_map(|pair| pair.split_once('='));
        let is_named = |key: &str| {
            let rest = key.strip_prefix(name);
            rest.is_some_and(|rest| rest.is_empty() || rest.starts_with('[') || rest.starts_with("%5B"))
        };
        pairs.filter(|(key, _)| is_named(key)).map(|(_, value)| value).collect()
    }
}

/// Everything behind the routes.
pub(crate) struct Core {
    pub(crate) world: World,
    pub(crate) contexts: ContextMetadata,
    pub(crate) gate: Gate,
    journal: Option<Journal>,
    clock: Clock,
    ids: Ids,
}

/// What answers a route. `null` goes out as an answer without a body (204).
pub(crate) type Answer = fn(&mut Core, &Asked) -> Result<Value, Fault>;

/// A core that all connections share, until the server ends and takes it away.
#[derive(Clone)]
pub(crate) struct Shared(Arc<Mutex<Option<Core>>>);

impl Shared {
    pub(crate) fn new(core: Core) -> Self {
        Self(Arc::new(Mutex::new(Some(core))))
    }

    /// Runs one call; none if the server has ended.
    pub(crate) fn run(&self, caller: Caller, answer: Answer, asked: &Asked) -> Option<Result<Value, Fault>> {
        let mut core = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        core.as_mut().map(|core| {
            // A call that panicked was not answered.
            core.world.undo_changes();
            gate::admit(core, caller, asked)?;
            core.run(answer, asked)
        })
    }

    /// Ends the service on connections that are still open and closes the data file.
    pub(crate) fn close(&self) {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).take();
    }
}

impl Core {
    pub(crate) fn new(
        world: World,
        journal: Option<Journal>,
        contexts: ContextMetadata,
        clock: Clock,
        ids: Ids,
    ) -> Self {
        Self { world, contexts, gate: Gate::default(), journal, clock, ids }
    }

    /// Sees that there is what the original makes when it starts, on disk as well.
    pub(crate) fn found(&mut self) -> Result<(), Fault> {
        segments::found_global_lists(self);
        settings::found_setting(self);
        accounts::found_account(self);
        metrics::found_metrics(self);
        self.commit()
    }

    /// Runs one call and writes down what it changed, if it is answered well.
    pub(crate) fn run(&mut self, answer: Answer, asked: &Asked) -> Result<Value, Fault> {
        let answered = answer(self, asked);
        let done = answered.and_then(|answered| self.commit().map(|()| answered));
        if done.is_err() {
            self.world.undo_changes();
        }
        done
    }

    fn commit(&mut self) -> Result<(), Fault> {
        if let Some(journal) = &mut self.journal {
            let changes = self.world.changes().map_err(|why| why.to_string());
            let written = changes.and_then(|all| journal.write(&all).map_err(|why| why.to_string()));
            written.map_err(|why| {
                tracing::error!(%why, "the embedded UpGrade server cannot write its data file");
                Fault::internal("the server cannot write its data")
            })?;
        }
        self.world.keep_changes();
        Ok(())
    }

    pub(crate) fn time(&self) -> SystemTime {
        (self.clock)()
    }

    pub(crate) fn now(&self) -> String {
        timestamp(self.time())
    }

    pub(crate) fn new_id(&mut self) -> String {
        (self.ids)().to_string()
    }

    /// The world and the maker of ids, for changes that need both at once.
    pub(crate) fn world_and_ids(&mut self) -> (&mut World, impl FnMut() -> String + '_) {
        let ids = &mut self.ids;
        (&mut self.world, move || ids().to_string())
    }
}

#[cfg(test)]
mod tests {
    use std::panic::{AssertUnwindSafe, catch_unwind};

    use serde_json::json;

    use super::*;
    use crate::client::Dialect;
    use crate::server::contexts::default_contexts;
    use crate::server::{sources, students};

    fn shared() -> Shared {
        let clock = Box::new(|| SystemTime::UNIX_EPOCH);
        Shared::new(Core::new(World::new(Dialect::V65), None, default_contexts(), clock, sources::seeded(1)))
    }

    fn asked(student: &str) -> Asked {
        Asked { user: Some(student.into()), body: json!({}), ..Asked::default() }
    }

    fn known(shared: &Shared) -> Vec<String> {
        let core = shared.0.lock().unwrap_or_else(PoisonError::into_inner);
        core.as_ref().unwrap().world.users.entries().map(|(id, _)| id.to_owned()).collect()
    }

    #[test]
    fn a_call_that_is_answered_badly_has_changed_nothing() {
        let shared = shared();
        let fails: Answer = |core, asked| {
            students::init(core, asked)?;
            Err(Fault::internal("late"))
        };
        assert!(shared.run(Caller::Anybody, fails, &asked("ada")).unwrap().is_err());
        assert_eq!(known(&shared), [""; 0]);
        assert!(shared.run(Caller::Anybody, students::init, &asked("bob")).unwrap().is_ok());
        assert_eq!(known(&shared), ["bob"]);
    }

    #[test]
    fn a_call_that_panics_has_changed_nothing_for_the_next_one() {
        let shared = shared();
        let panics: Answer = |core, asked| {
            students::init(core, asked)?;
            panic!("as a test wants it")
        };
        let call = || shared.run(Caller::Anybody, panics, &asked("ada"));
        assert!(catch_unwind(AssertUnwindSafe(call)).is_err());
        assert!(shared.run(Caller::Anybody, students::init, &asked("bob")).unwrap().is_ok());
        assert_eq!(known(&shared), ["bob"]);
    }
}
