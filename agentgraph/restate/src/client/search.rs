//! [`ThreadSearch`]: the threads that a server has, for those who operate it.

use std::fmt::Write;
use std::future::IntoFuture;
use std::time::{Duration, SystemTime};

use agentgraph::{Code, Error};
use futures_util::future::BoxFuture;
use reqwest::Method;
use serde::Deserialize;
use serde_json::Value;

use crate::admin::{Admin, ENDED};
use crate::worker::steps_of;

/// The threads of a page, if the search does not say.
const PAGE: usize = 100;

/// What the newest call of a thread does or has done.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "lowercase")]
#[non_exhaustive]
pub enum ThreadStatus {
    /// The thread's first call waits for a worker.
    Queued,
    /// A call is under way, or waits for a worker to go on.
    Running,
    /// A call [waits](crate::RemoteCall::wait_answer) for an answer.
    Waiting,
    /// The last call ended with open interrupts.
    Interrupted,
    /// The thread sleeps, and wakes by itself: [`FoundThread::until`].
    Sleeping,
    /// The last call finished.
    Finished,
    /// The last call failed: [`FoundThread::code`] says why.
    Failed,
    /// The last call was cancelled, drained, or reached a limit.
    Stopped,
    /// The last call was refused, and has changed nothing.
    Refused,
    /// The last call was killed at the server: `proceed()` goes on.
    Killed,
}

/// A thread as the server has it.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct FoundThread {
    /// The name of its graph.
    pub graph: String,
    /// The name of the thread.
    pub thread: String,
    /// What its newest call does.
    pub status: ThreadStatus,
    /// The code of the error of a failed call, such as `E_NODE_FAILED`.
    pub code: Option<String>,
    /// The open interrupts.
    pub interrupts: u64,
    /// When its sleep ends.
    pub until: Option<SystemTime>,
    /// The calls that have no end yet: the one under way, and those that wait behind it.
    pub calls: u64,
    /// When the oldest of these was made.
    pub since: Option<SystemTime>,
    /// The deployment whose code the call under way is pinned to.
    pub deployment: Option<String>,
}

/// A page of a search.
#[derive(Debug)]
#[non_exhaustive]
pub struct FoundThreads {
    /// The threads, in the order of their graphs and names.
    pub threads: Vec<FoundThread>,
    /// The search for the next page, if this one was full.
    pub next: Option<ThreadSearch>,
}

/// A search among the threads of a server; a future of one page. Made by
/// [`RestateClient::search`](crate::RestateClient::search).
///
/// ```no_run
/// use agentgraph_restate::{RestateClient, ThreadStatus};
///
/// # #[tokio::main(flavor = "current_thread")]
/// # async fn main() -> agentgraph::Result<()> {
/// let client =
///     RestateClient::builder().admin("http://127.0.0.1:9070").connect("http://127.0.0.1:8080")?;
/// let mut search = Some(client.search().graph("triage").status(ThreadStatus::Interrupted));
/// while let Some(page) = search {
///     let page = page.await?;
///     for found in &page.threads {
///         println!("{} asks {} questions", found.thread, found.interrupts);
///     }
///     search = page.next;
/// }
/// # Ok(())
/// # }
/// ```
#[derive(Clone)]
#[must_use = "a search does nothing unless it is awaited"]
pub struct ThreadSearch {
    admin: Option<Admin>,
    patience: Duration,
    graph: Option<String>,
    status: Option<ThreadStatus>,
    since: Option<SystemTime>,
    prefix: String,
    limit: usize,
    after: Option<(String, String)>,
}

impl ThreadSearch {
    pub(super) fn new(admin: Option<Admin>, patience: Duration) -> Self {
        let (graph, status, since, prefix, after) = (None, None, None, String::new(), None);
        ThreadSearch { admin, patience, graph, status, since, prefix, limit: PAGE, after }
    }

    /// Only threads of the graph with this name.
    pub fn graph(mut self, name: impl Into<String>) -> Self {
        self.graph = Some(name.into());
        self
    }

    /// Only threads with this status.
    pub fn status(mut self, status: ThreadStatus) -> Self {
        self.status = Some(status);
        self
    }

    /// Only threads with a call that was made, or was under way, since this time. The server remembers calls
    /// for a day, unless it is configured otherwise.
    pub fn since(mut self, time: SystemTime) -> Self {
        self.since = Some(time);
        self
    }

    /// Only threads whose names begin so.
    pub fn named(mut self, prefix: impl Into<String>) -> Self {
        self.prefix = prefix.into();
        self
    }

    /// The most threads of a page; 100 if not set, at least 1.
    pub fn limit(mut self, threads: usize) -> Self {
        self.limit = threads.max(1);
        self
    }

    async fn page(self) -> Result<FoundThreads, Error> {
        let admin = needed(self.admin.as_ref())?;
        let mut rows: Vec<Row> = admin.rows(&self.sql(), self.patience).await.map_err(failed)?;
        let is_full = rows.len() > self.limit;
        rows.truncate(self.limit);
        let next = rows.last().filter(|_| is_full).map(|row| (row.graph.clone(), row.thread.clone()));
        Ok(FoundThreads {
            threads: rows.into_iter().map(Row::into_thread).collect(),
            next: next.map(|last| ThreadSearch { after: Some(last), ..self }),
        })
    }

    /// The query: threads with a status, and those whose first call has not begun, which have none yet.
    fn sql(&self) -> String {
        let mut sql = "with called as (select target_service_name as graph, target_service_key as thread, \
             count(*) as calls, min(created_at) as since, max(pinned_deployment_id) as deployment \
             from sys_invocation where target_handler_name = 'call' and status <> 'completed' \
             group by target_service_name, target_service_key), \
             known as (select service_name as graph, service_key as thread, value_utf8 as status \
             from state where key = 'status'), \
             found as (select coalesce(known.graph, called.graph) as graph, \
             coalesce(known.thread, called.thread) as thread, status, coalesce(calls, 0) as calls, \
             arrow_cast(since, 'Int64') as since, deployment \
             from known full join called on known.graph = called.graph and known.thread = called.thread) \
             select * from found where concat(graph, '.steps') in (select name from sys_service)"
            .to_owned();
        let mut and = |condition: String| {
            // Writing to a text does not fail.
            let _ = write!(sql, " and {condition}");
        };
        if let Some(graph) = &self.graph {
            and(format!("graph = {}", quoted(graph)));
        }
        if !self.prefix.is_empty() {
            and(format!("starts_with(thread, {})", quoted(&self.prefix)));
        }
        if let Some(status) = self.status {
            and(condition(status));
        }
        if let Some(since) = self.since {
            let millis = since.duration_since(SystemTime::UNIX_EPOCH).unwrap_or_default().as_millis();
            and(format!(
                "concat(graph, '/', thread) in (select concat(target_service_name, '/', target_service_key) \
                 from sys_invocation where target_handler_name = 'call' \
                 and modified_at >= to_timestamp_millis({millis}))"
            ));
        }
        if let Some((graph, thread)) = &self.after {
            let (graph, thread) = (quoted(graph), quoted(thread));
            and(format!("(graph > {graph} or graph = {graph} and thread > {thread})"));
        }
        let _ = write!(sql, " order by graph, thread limit {}", self.limit.saturating_add(1));
        sql
    }
}

impl IntoFuture for ThreadSearch {
    type Output = Result<FoundThreads, Error>;
    type IntoFuture = BoxFuture<'static, Self::Output>;

    fn into_future(self) -> Self::IntoFuture {
        Box::pin(self.page())
    }
}

impl std::fmt::Debug for ThreadSearch {
    fn fmt(&self, out: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        out.debug_struct("ThreadSearch")
            .field("graph", &self.graph)
            .field("status", &self.status)
            .finish_non_exhaustive()
    }
}

#[derive(Deserialize)]
struct Row {
    graph: String,
    thread: String,
    /// JSON, as the worker wrote it.
    status: Option<String>,
    calls: u64,
    since: Option<u64>,
    deployment: Option<String>,
}

impl Row {
    fn into_thread(self) -> FoundThread {
        let shown: Value = self.status.and_then(|text| serde_json::from_str(&text).ok()).unwrap_or_default();
        let status = ThreadStatus::deserialize(&shown["state"]).unwrap_or(ThreadStatus::Queued);
        FoundThread {
            // A killed call could not say so.
            status: match status {
                ThreadStatus::Running | ThreadStatus::Waiting if self.calls == 0 => ThreadStatus::Killed,
                status => status,
            },
            graph: self.graph,
            thread: self.thread,
            code: shown["code"].as_str().map(str::to_owned),
            interrupts: shown["interrupts"].as_u64().unwrap_or(0),
            until: shown["until"].as_u64().and_then(|micros| time(Duration::from_micros(micros))),
            calls: self.calls,
            since: self.since.and_then(|millis| time(Duration::from_millis(millis))),
            deployment: self.deployment,
        }
    }
}

fn time(since_epoch: Duration) -> Option<SystemTime> {
    SystemTime::UNIX_EPOCH.checked_add(since_epoch)
}

/// Kills the call that is under way in a thread. Returns whether there was one.
pub(super) async fn kill(
    admin: Option<&Admin>,
    patience: Duration,
    graph: &str,
    thread: &str,
) -> Result<bool, Error> {
    #[derive(Deserialize)]
    struct Open {
        id: String,
    }
    let admin = needed(admin)?;
    // The steps first: the call that waits for them ends by itself then, and says that it was killed.
    let sql = format!(
        "select id from sys_invocation where target_service_key = {} and status not in ('completed', 'pending', 'scheduled') \
         and (target_service_name = {} and target_handler_name = 'drive' \
         or target_service_name = {} and target_handler_name = 'call') order by target_service_name desc",
        quoted(thread),
        quoted(&steps_of(graph)),
        quoted(graph),
    );
    let open: Vec<Open> = admin.rows(&sql, patience).await.map_err(failed)?;
    for Open { id } in &open {
        let path = format!("invocations/{id}/kill");
        match admin.send::<Value>(Method::PATCH, &path, None, patience).await {
            // The call may have ended by itself, as its steps were killed.
            Err(problem) if !problem.contains(ENDED) => return Err(failed(problem)),
            _ => {}
        }
    }
    Ok(!open.is_empty())
}

/// The rows with a status, as [`Row::into_thread`] reads them.
fn condition(status: ThreadStatus) -> String {
    let is = |name: &str| format!("status like '%\"state\":\"{name}\"%'");
    match status {
        ThreadStatus::Queued => "status is null".to_owned(),
        ThreadStatus::Running => format!("{} and calls > 0", is("running")),
        ThreadStatus::Waiting => format!("{} and calls > 0", is("waiting")),
        ThreadStatus::Interrupted => is("interrupted"),
        ThreadStatus::Sleeping => is("sleeping"),
        ThreadStatus::Finished => is("finished"),
        ThreadStatus::Failed => is("failed"),
        ThreadStatus::Stopped => is("stopped"),
        ThreadStatus::Refused => is("refused"),
        ThreadStatus::Killed => {
            format!("({} or ({} or {}) and calls = 0)", is("killed"), is("running"), is("waiting"))
        }
    }
}

/// A text as a literal of SQL.
fn quoted(text: &str) -> String {
    format!("'{}'", text.replace('\'', "''"))
}

fn needed(admin: Option<&Admin>) -> Result<&Admin, Error> {
    let problem =
        "the client does not know the admin API of the server: `RestateClient::builder().admin(url)`";
    admin.ok_or_else(|| Error::new(Code::Host, problem))
}

fn failed(problem: String) -> Error {
    Error::new(Code::Host, format!("the admin API of the server: {problem}"))
}
