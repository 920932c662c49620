//! The services of a graph, as the SDK dispatches them. They are made by hand, since their names are those of
//! graphs, which are known only at run time.

use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use futures_util::future::BoxFuture;
use restate_sdk::discovery::{
    Handler, HandlerName, HandlerType, InputPayload, OutputPayload, RetryPolicyOnMaxAttempts,
    Service as Manifest, ServiceName, ServiceType,
};
use restate_sdk::errors::HandlerResult;
use restate_sdk::service::ServiceDefinition;

use super::hosted::Hosted;
use super::sdk::{self, About, Handlers, Journal};
use super::{ServeError, look, steps, tasks, thread};

/// The attempts of a read, half a minute in all. Its caller has left by then, so it is killed.
const READS: u64 = 11;

/// The attempts of a call: as many as there are. The default of the server would pause a call after some 12
/// minutes without workers, and a person would have to resume it.
const ALWAYS: u64 = u32::MAX as u64;

/// How long after the time limit of its nodes the server gives up an invocation.
const PAST_LIMIT: Duration = Duration::from_secs(60);

/// A handler: it gets the bytes of a request, and returns those of the answer.
type Handle = for<'a> fn(&'a Hosted, &'a Journal, &'a About, Bytes) -> BoxFuture<'a, HandlerResult<Bytes>>;

/// A handler with its settings.
struct Entry {
    name: &'static str,
    handle: Handle,
    kind: Kind,
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Kind {
    /// One at a time for each key, called by clients.
    Exclusive,
    /// One at a time for each key, called by other services only.
    ExclusiveInside,
    /// Beside others.
    Shared,
    /// Of a service without keys, called by other services only.
    Inside,
}

/// The three services of a graph.
pub(super) fn services(hosted: &Arc<Hosted>) -> Result<[ServiceDefinition; 3], ServeError> {
    let threads = [
        Entry {
            name: "call",
            handle: |h, c, m, b| Box::pin(thread::call(h, c, m, b)),
            kind: Kind::Exclusive,
        },
        Entry {
            name: "cancel",
            handle: |h, c, m, b| Box::pin(thread::cancel(h, c, m, b)),
            kind: Kind::Shared,
        },
        Entry {
            name: "delete",
            handle: |h, c, m, b| Box::pin(thread::delete(h, c, m, b)),
            kind: Kind::Exclusive,
        },
        Entry {
            name: "answer",
            handle: |h, c, m, b| Box::pin(thread::answer(h, c, m, b)),
            kind: Kind::Shared,
        },
        Entry {
            name: "wake",
            handle: |h, c, m, b| Box::pin(thread::wake(h, c, m, b)),
            kind: Kind::ExclusiveInside,
        },
        Entry {
            name: "settle",
            handle: |h, c, m, b| Box::pin(thread::settle(h, c, m, b)),
            kind: Kind::Exclusive,
        },
    ];
    let steps = [
        Entry {
            name: "drive",
            handle: |h, c, m, b| Box::pin(steps::drive(h, c, m, b)),
            kind: Kind::ExclusiveInside,
        },
        Entry {
            name: "delete",
            handle: |h, c, m, b| Box::pin(steps::delete(h, c, m, b)),
            kind: Kind::ExclusiveInside,
        },
        Entry { name: "drain", handle: |h, c, m, b| Box::pin(steps::drain(h, c, m, b)), kind: Kind::Shared },
        Entry { name: "look", handle: |h, c, m, b| Box::pin(look::look(h, c, m, b)), kind: Kind::Shared },
    ];
    let tasks =
        [Entry { name: "run", handle: |h, c, m, b| Box::pin(tasks::run(h, c, m, b)), kind: Kind::Inside }];
    Ok([
        definition(hosted, hosted.name.clone(), threads.into())?,
        definition(hosted, hosted.steps(), steps.into())?,
        definition(hosted, hosted.tasks(), tasks.into())?,
    ])
}

/// A service of a graph.
struct Served {
    hosted: Arc<Hosted>,
    entries: Box<[Entry]>,
}

impl Handlers for Served {
    fn handle<'a>(
        &'a self,
        name: &str,
        journal: &'a Journal,
        about: &'a About,
        input: Bytes,
    ) -> Option<BoxFuture<'a, HandlerResult<Bytes>>> {
        let entry = self.entries.iter().find(|entry| entry.name == name)?;
        Some((entry.handle)(&self.hosted, journal, about, input))
    }
}

fn definition(
    hosted: &Arc<Hosted>,
    name: String,
    entries: Box<[Entry]>,
) -> Result<ServiceDefinition, ServeError> {
    let bad_name = || ServeError::GraphName { graph: hosted.name.clone() };
    let ty = match entries.iter().any(|entry| entry.kind == Kind::Inside) {
        true => ServiceType::Service,
        false => ServiceType::VirtualObject,
    };
    let handlers = entries.iter().map(|entry| handler(entry, hosted.longest_task));
    let manifest = Manifest {
        ty,
        name: ServiceName::try_from(name).map_err(|_| bad_name())?,
        handlers: handlers.collect::<Option<_>>().ok_or_else(bad_name)?,
        documentation: None,
        metadata: hosted.settings(),
        abort_timeout: None,
        inactivity_timeout: None,
        journal_retention: None,
        idempotency_retention: None,
        enable_lazy_state: None,
        ingress_private: None,
        retry_policy_initial_interval: None,
        retry_policy_max_interval: None,
        retry_policy_max_attempts: None,
        retry_policy_exponentiation_factor: None,
        retry_policy_on_max_attempts: None,
    };
    Ok(sdk::service(Served { hosted: Arc::clone(hosted), entries }, manifest))
}

fn handler(entry: &Entry, longest_task: Duration) -> Option<Handler> {
    let is_inside = matches!(entry.kind, Kind::ExclusiveInside | Kind::Inside);
    let is_read = entry.kind == Kind::Shared;
    let ty = match entry.kind {
        Kind::Exclusive | Kind::ExclusiveInside => Some(HandlerType::Exclusive),
        Kind::Shared => Some(HandlerType::Shared),
        Kind::Inside => None,
    };
    Some(Handler {
        name: HandlerName::try_from(entry.name).ok()?,
        input: Some(InputPayload {
            content_type: Some("*/*".to_owned()),
            json_schema: None,
            required: Some(false),
        }),
        output: Some(OutputPayload {
            content_type: Some("application/octet-stream".to_owned()),
            json_schema: None,
            set_content_type_if_empty: Some(false),
        }),
        ty,
        documentation: None,
        metadata: Default::default(),
        // A node over its time is ended here, and the server need not do so.
        abort_timeout: is_inside.then(|| millis(longest_task.saturating_add(PAST_LIMIT))),
        inactivity_timeout: None,
        // A look or a cancel is over when it is answered.
        journal_retention: is_read.then_some(0),
        idempotency_retention: None,
        workflow_completion_retention: None,
        enable_lazy_state: None,
        ingress_private: is_inside.then_some(true),
        retry_policy_initial_interval: Some(50),
        retry_policy_max_interval: Some(10_000),
        retry_policy_max_attempts: Some(if is_read { READS } else { ALWAYS }),
        retry_policy_exponentiation_factor: Some(2.0),
        retry_policy_on_max_attempts: is_read.then_some(RetryPolicyOnMaxAttempts::Kill),
    })
}

fn millis(time: Duration) -> u64 {
    u64::try_from(time.as_millis()).unwrap_or(u64::MAX)
}
