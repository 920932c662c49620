//! The world, the journal and the sources together, for one call. A call that is answered well is on disk
//! before; one that is answered badly has changed nothing. What the calls are, this file does not know.

use std::time::SystemTime;

use serde_json::Value;

use crate::contexts::Contexts;
use crate::wire::calendar::timestamp;
use crate::wire::fault::Fault;
use crate::world::World;
use crate::world::journal::Journal;
use crate::world::model::User;
use crate::world::sources::{Clock, Ids};

/// What a route is asked.
#[derive(Debug, Default)]
pub(crate) struct ApiRequest {
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

impl ApiRequest {
    /// The id in the header that names a student.
    pub(crate) fn student_id(&self) -> Result<&str, Fault> {
        self.user.as_deref().filter(|id| !id.is_empty()).ok_or_else(Fault::no_user_header)
    }

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
    pub(crate) contexts: Contexts,
    journal: Option<Journal>,
    clock: Clock,
    ids: Ids,
}

/// What answers a route. `null` goes out as an answer without a body (204).
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

    /// Runs one call and writes down what it changed, if it is answered well.
    pub(crate) fn run(&mut self, answer: Answer, asked: &ApiRequest) -> Result<Value, Fault> {
        let answered = answer(self, asked);
        let done = answered.and_then(|answered| self.commit().map(|()| answered));
        if done.is_err() {
            self.world.undo_changes();
        }
        done
    }

    /// Writes down what changed, and lets it stand.
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

    /// The student whom the header names, who must be known.
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

    /// The world and the maker of ids, for changes that need both at once.
    pub(crate) fn world_and_ids(&mut self) -> (&mut World, impl FnMut() -> String + '_) {
        let ids = &mut self.ids;
        (&mut self.world, move || ids().to_string())
    }
}
