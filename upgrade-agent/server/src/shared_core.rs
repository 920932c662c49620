//! The core behind a lock: requests pass the gate and are answered one at a time.

use std::sync::{Arc, Mutex, PoisonError};

use serde_json::Value;

use crate::accounts::gate::{Caller, Gate};
use crate::core::{Answer, ApiRequest, Core};
use crate::wire::fault::Fault;

/// The core, shared by all connections until the server ends and takes it.
#[derive(Clone)]
pub(crate) struct SharedCore {
    core: Arc<Mutex<Option<Core>>>,
    gate: Arc<Gate>,
}

impl SharedCore {
    pub(crate) fn new(core: Core, gate: Gate) -> Self {
        Self { core: Arc::new(Mutex::new(Some(core))), gate: Arc::new(gate) }
    }

    /// Runs one request; none if the server has ended.
    pub(crate) fn run(
        &self,
        caller: Caller,
        answer: Answer,
        asked: &ApiRequest,
    ) -> Option<Result<Value, Fault>> {
        let mut core = self.core.lock().unwrap_or_else(PoisonError::into_inner);
        core.as_mut().map(|core| {
            // A request that panicked has no answer.
            core.world.undo_changes();
            self.gate.admit(core, caller, asked)?;
            core.run(answer, asked)
        })
    }

    /// Takes the core from open connections and closes the data file.
    pub(crate) fn close(&self) {
        self.core.lock().unwrap_or_else(PoisonError::into_inner).take();
    }
}

#[cfg(test)]
mod tests {
    use std::panic::{AssertUnwindSafe, catch_unwind};
    use std::time::SystemTime;

    use serde_json::json;

    use super::*;
    use crate::contexts::Contexts;
    use crate::students;
    use crate::wire::dialect::Dialect;
    use crate::world::{World, sources};

    fn shared() -> SharedCore {
        let clock = Box::new(|| SystemTime::UNIX_EPOCH);
        let world = World::new(Dialect::V65);
        let core = Core::new(world, None, Contexts::default(), clock, sources::seeded(1));
        SharedCore::new(core, Gate::default())
    }

    fn request_of(student: &str) -> ApiRequest {
        ApiRequest { user: Some(student.into()), body: json!({}), ..ApiRequest::default() }
    }

    fn user_ids(shared: &SharedCore) -> Vec<String> {
        let core = shared.core.lock().unwrap_or_else(PoisonError::into_inner);
        core.as_ref().unwrap().world.users.entries().map(|(id, _)| id.to_owned()).collect()
    }

    #[test]
    fn a_call_that_returns_an_error_changes_nothing() {
        let shared = shared();
        let fails: Answer = |core, asked| {
            students::init(core, asked)?;
            Err(Fault::internal("late"))
        };
        assert!(shared.run(Caller::Anybody, fails, &request_of("ada")).unwrap().is_err());
        assert_eq!(user_ids(&shared), [""; 0]);
        assert!(shared.run(Caller::Anybody, students::init, &request_of("bob")).unwrap().is_ok());
        assert_eq!(user_ids(&shared), ["bob"]);
    }

    #[test]
    fn changes_of_a_call_that_panics_are_undone_before_the_next_call() {
        let shared = shared();
        let panics: Answer = |core, asked| {
            students::init(core, asked)?;
            panic!("deliberate panic of a test")
        };
        let call = || shared.run(Caller::Anybody, panics, &request_of("ada"));
        assert!(catch_unwind(AssertUnwindSafe(call)).is_err());
        assert!(shared.run(Caller::Anybody, students::init, &request_of("bob")).unwrap().is_ok());
        assert_eq!(user_ids(&shared), ["bob"]);
    }
}
