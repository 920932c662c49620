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

use super::hosted::{Hosted, Settings};
use super::sdk::{self, About, Handlers, Journal};
use super::{ServeError, limits, look, rows, steps, tasks, thread};

/// The attempts of a read, half a minute in all. Its caller has left by then, so it is killed.
const READS: u64 = 11;

/// The attempts of a call: as many as there are. The default of the server would pause a call after some 12
/// minutes without workers, and a person would have to resume it.
const ALWAYS: u64 = u32::MAX as u64;

/// How long after the time limit of its nodes the server gives up an invocation.
const PAST_LIMIT: Duration = Duration::from_secs(60);

/// A handler: it gets the bytes of a request, and returns those of the answer. `T` is what it belongs to.
type Handle<T> = for<'a> fn(&'a T, &'a Journal, &'a About, Bytes) -> BoxFuture<'a, HandlerResult<Bytes>>;

/// A handler with its settings.
struct Entry<T> {
    name: &'static str,
    kind: Kind,
    handle: Handle<T>,
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Kind {
    /// One at a time for each key, called by clients.
    Exclusive,
    /// One at a time for each key, called by other services only.
    ExclusiveInside,
    /// Reads or asks, beside others.
    Shared,
    /// Beside others, called by other services only.
    SharedInside,
    /// Of a service without keys, called by other services only.
    Inside,
}

/// Handlers with their names and kinds.
macro_rules! entries {
    ($($name:literal $kind:ident $handle:expr),* $(,)?) => {
        [$(Entry { name: $name, kind: Kind::$kind, handle: |h, c, m, b| Box::pin($handle(h, c, m, b)) }),*].into()
    };
}

/// The three services of a graph.
pub(super) fn services(hosted: &Arc<Hosted>) -> Result<[ServiceDefinition; 3], ServeError> {
    let threads = entries![
        "call" Exclusive thread::call,
        "cancel" Shared thread::cancel,
        "drain" Shared thread::drain,
        "delete" Exclusive thread::delete,
        "answer" Shared thread::answer,
        "wake" ExclusiveInside thread::wake,
        "settle" Exclusive thread::settle,
        "look" Shared look::look,
    ];
    let steps = entries![
        "drive" ExclusiveInside steps::drive,
        "take" ExclusiveInside rows::take,
        "delete" ExclusiveInside steps::delete,
        "look" Shared look::look,
    ];
    let tasks = entries!["run" Inside tasks::run];
    let (settings, longest_task) = (hosted.settings(), hosted.longest_task);
    let define = |name: String, entries| {
        let defined = definition(hosted, name, entries, settings.clone(), Some(longest_task));
        defined.ok_or_else(|| ServeError::GraphName { graph: hosted.name.clone() })
    };
    Ok([
        define(hosted.name.clone(), threads)?,
        define(hosted.steps(), steps)?,
        define(hosted.tasks(), tasks)?,
    ])
}

/// The service of limits, which all graphs share.
pub(super) fn limits() -> Option<ServiceDefinition> {
    let entries: Box<[Entry<()>]> = entries![
        "enter" ExclusiveInside |(): &'_ (), ctx, about, input| limits::enter(ctx, about, input),
        "leave" ExclusiveInside |(): &'_ (), ctx, about, input| limits::leave(ctx, about, input),
        "watch" SharedInside |(): &'_ (), ctx, about, input| limits::watch(ctx, about, input),
    ];
    definition(&Arc::new(()), limits::SERVICE.to_owned(), entries, Settings::new(), None)
}

/// A service.
struct Served<T> {
    of: Arc<T>,
    entries: Box<[Entry<T>]>,
}

impl<T: Send + Sync + 'static> Handlers for Served<T> {
    fn handle<'a>(
        &'a self,
        name: &str,
        journal: &'a Journal,
        about: &'a About,
        input: Bytes,
    ) -> Option<BoxFuture<'a, HandlerResult<Bytes>>> {
        let entry = self.entries.iter().find(|entry| entry.name == name)?;
        Some((entry.handle)(&self.of, journal, about, input))
    }
}

/// `None` if the name cannot be that of a service. Without tasks, no journal is of interest when it has
/// ended.
fn definition<T: Send + Sync + 'static>(
    of: &Arc<T>,
    name: String,
    entries: Box<[Entry<T>]>,
    metadata: Settings,
    longest_task: Option<Duration>,
) -> Option<ServiceDefinition> {
    let ty = match entries.iter().any(|entry| entry.kind == Kind::Inside) {
        true => ServiceType::Service,
        false => ServiceType::VirtualObject,
    };
    let manifest = Manifest {
        ty,
        name: ServiceName::try_from(name).ok()?,
        handlers: entries.iter().map(|entry| handler(entry, longest_task)).collect::<Option<_>>()?,
        documentation: None,
        metadata,
        abort_timeout: None,
        inactivity_timeout: None,
        journal_retention: longest_task.is_none().then_some(0),
        idempotency_retention: None,
        enable_lazy_state: None,
        ingress_private: None,
        retry_policy_initial_interval: None,
        retry_policy_max_interval: None,
        retry_policy_max_attempts: None,
        retry_policy_exponentiation_factor: None,
        retry_policy_on_max_attempts: None,
    };
    Some(sdk::service(Served { of: Arc::clone(of), entries }, manifest))
}

fn handler<T>(entry: &Entry<T>, longest_task: Option<Duration>) -> Option<Handler> {
    let is_inside = matches!(entry.kind, Kind::ExclusiveInside | Kind::SharedInside | Kind::Inside);
    let is_read = entry.kind == Kind::Shared;
    let ty = match entry.kind {
        Kind::Exclusive | Kind::ExclusiveInside => Some(HandlerType::Exclusive),
        Kind::Shared | Kind::SharedInside => Some(HandlerType::Shared),
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
        abort_timeout: longest_task
            .filter(|_| !is_read)
            .map(|limit| millis(limit.saturating_add(PAST_LIMIT))),
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
