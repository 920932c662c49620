//! The world, the journal, the clock and the ids, for one request. The changes of a successful request are on
//! disk before the response; a failed request changes nothing. This file does not know the routes.

use std::time::SystemTime;

use serde_json::Value;

use crate::contexts::Contexts;
use crate::wire::calendar::timestamp;
use crate::wire::fault::Fault;
use crate::world::World;
use crate::world::journal::Journal;
use crate::world::model::User;
use crate::world::sources::{Clock, Ids};

/// A request to a route.
#[derive(Debug, Default)]
pub(crate) struct ApiRequest {
    pub(crate) method: String,
    /// Path and query, as received.
    pub(crate) endpoint: String,
    /// The path of the route, as in the tables.
    pub(crate) route: &'static str,
    /// The authorization header.
    pub(crate) authorization: Option<String>,
    /// The id in the path, unescaped, if the route has one.
    pub(crate) id: String,
    /// The query, as received.
    pub(crate) query: String,
    /// The student in the header.
    pub(crate) user: Option<String>,
    pub(crate) body: Value,
}

impl ApiRequest {
    /// The student id in the header.
    pub(crate) fn student_id(&self) -> Result<&str, Fault> {
        self.user.as_deref().filter(|id| !id.is_empty()).ok_or_else(Fault::no_user_header)
    }

    /// The values of a query parameter, which may occur several times.
    pub(crate) fn values_of(&self, name: &str) -> Vec<&str> {
        let pairs = self.query.split('&').filter_map(|pair| pair.split_once('='));
        let is_named = |key: &str| {
            let rest = key.strip_prefix(name);
            rest.is_some_and(|rest| rest.is_empty() || rest.starts_with('[') || rest.starts_with("%5B"))
        };
        pairs.filter(|(key, _)| is_named(key)).map(|(_, value)| value).collect()
    }
}

/// The data and sources behind the routes.
pub(crate) struct Core {
    pub(crate) world: World,
    pub(crate) contexts: Contexts,
    journal: Option<Journal>,
    clock: Clock,
    ids: Ids,
}

/// The function that answers a route. `null` becomes a response without a body (204).
pub(crate) type Answer = fn(&mut Core, &ApiRequest) -> Result<Value, Fault>;

impl Core {
    pub(crate) fn new(
        world: World,
        journal: Option<Journal>,
        contexts: Contexts,
        clock: Clock,
        ids: Ids,
    ) -> Self {
        Self { world, contexts, journal, clock, ids }
    }

    /// Runs one request and stores its changes if it succeeds.
    pub(crate) fn run(&mut self, answer: Answer, asked: &ApiRequest) -> Result<Value, Fault> {
        let answered = answer(self, asked);
        let done = answered.and_then(|answered| self.commit().map(|()| answered));
        if done.is_err() {
            self.world.undo_changes();
        }
        done
    }

    /// Stores the changes and keeps them.
    pub(crate) fn commit(&mut self) -> Result<(), Fault> {
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

    /// The student in the header, who must be known.
    pub(crate) fn student(&self, asked: &ApiRequest) -> Result<User, Fault> {
        let id = asked.student_id()?;
        self.world.user(id).cloned().ok_or_else(|| Fault::unknown_user(id))
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

    /// The world and the source of ids, for changes that need both.
    pub(crate) fn world_and_ids(&mut self) -> (&mut World, impl FnMut() -> String + '_) {
        let ids = &mut self.ids;
        (&mut self.world, move || ids().to_string())
    }
}
