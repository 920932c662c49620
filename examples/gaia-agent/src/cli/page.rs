//! The command `serve`: a page for the questions, their runs and their submission, beside the embedded
//! evaluation server.
//!
//! What the page shows is in the data folder, so it is the same after a reload, and after another start. Only
//! this machine's own pages may use it.

use std::convert::Infallible;
use std::process::ExitCode;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use agentgraph::CancellationToken;
use axum::extract::{Path, Request, State};
use axum::http::{HeaderValue, Method, StatusCode, header};
use axum::middleware::{Next, from_fn_with_state};
use axum::response::sse::{Event, KeepAlive, Sse};
use axum::response::{IntoResponse, Response};
use axum::routing::{get, post};
use axum::{Json, Router};
use futures_util::future::OptionFuture;
use futures_util::{Stream, stream};
use gaia_agent::agent::{GaiaAgent, SolveError};
use gaia_agent::evaluation::EvaluationClient;
use gaia_agent::evaluation::submission;
use gaia_agent::run::{Plan, Progress, Run, content};
use gaia_agent::trace::steps_of;
use gaia_agent::world::{World, WorldServer};
use serde_json::{Value, json};
use tokio::net::TcpListener;
use tokio::task::JoinHandle;

use super::RunOptions;
use super::failure::{Failure, in_words_of_the_program};
use super::run::{
    Ready, Source, in_words, line, listen, lock, log_report, no_server, prepare, stopped, submit, submitter,
};
use super::screen::Screen;
use super::setup::{Commits, reader, runs};
use super::show::report_of;
use crate::config::Config;

const POLICY: &str = "default-src 'none'; script-src 'self'; style-src 'self'; connect-src 'self'; base-uri 'none'; \
                      form-action 'none'; frame-ancestors 'none'";

/// Commits that an open page may be behind before it is sent everything once more.
const BEHIND: usize = 256;

struct Page {
    config: Config,
    /// As `--questions` says.
    from: Option<String>,
    source: Source,
    /// Where answers are submitted.
    server: Option<EvaluationClient>,
    reader: GaiaAgent,
    commits: Commits,
    /// Ends the program after what is under way.
    drain: CancellationToken,
    screen: Screen,
    work: Mutex<Work>,
}

/// The run that is shown.
#[derive(Default)]
struct Work {
    run: Run,
    is_running: bool,
    problem: String,
    /// How many questions were stopped.
    left: usize,
    task: Option<JoinHandle<()>>,
}

pub(super) async fn serve(config: Config, from: Option<String>, screen: Screen) -> Result<ExitCode, Failure> {
    let source = Source::of(&config, from.as_deref())?;
    let listener = TcpListener::bind("127.0.0.1:0").await?;
    let port = listener.local_addr()?.port();
    let url = format!("http://127.0.0.1:{port}");
    let (server, questions) = match &source {
        Source::Embedded => (Some(EvaluationClient::new(&url)?), World::new().questions),
        other => (other.server().cloned(), other.questions(other.server()).await?),
    };
    let plan = Plan { source: source.name(), model: config.model_name(), ..Plan::default() };
    let last = runs(&config).latest()?.filter(|run| run.plan.source == plan.source);
    let run = last.unwrap_or_else(|| Run { plan, questions, ..Run::default() });
    let page = Arc::new(Page {
        reader: reader(&config).await?,
        commits: Commits::new(BEHIND),
        drain: CancellationToken::new(),
        work: Mutex::new(Work { run, ..Work::default() }),
        config,
        from,
        source,
        server,
        screen,
    });
    listen(page.drain.clone(), screen)?;
    let hosts = Arc::new([format!("127.0.0.1:{port}"), format!("localhost:{port}")]);
    let routes = routes(Arc::clone(&page))
        .merge(WorldServer::routes(World::new()))
        .layer(from_fn_with_state(hosts, guard));
    let serving = tokio::spawn(async move { axum::serve(listener, routes).await });
    screen.line(&url);
    page.drain.cancelled().await;
    let task = page.work().task.take();
    OptionFuture::from(task).await;
    serving.abort();
    let work = page.work();
    if work.left > 0 {
        screen.note(&stopped(&work.run, work.left));
    }
    Ok(ExitCode::from(u8::from(work.left > 0)))
}

fn routes(page: Arc<Page>) -> Router {
    let file =
        |kind: &'static str, text: &'static str| get(async move || ([(header::CONTENT_TYPE, kind)], text));
    Router::new()
        .route("/", file("text/html; charset=utf-8", include_str!("../page/index.html")))
        .route("/page/page.css", file("text/css; charset=utf-8", include_str!("../page/page.css")))
        .route("/page/page.js", file("text/javascript; charset=utf-8", include_str!("../page/page.js")))
        .route("/page/events", get(events))
        .route("/page/run", post(start))
        .route("/page/submit", post(hand_in))
        .route("/page/files/{task}", get(attachment))
        .route("/favicon.ico", get(async || StatusCode::NO_CONTENT))
        .with_state(page)
}

/// Answers to its own address alone, also where another site's name leads to this machine, and takes no
/// requests of other sites' pages. A program that is no browser says nothing of sites.
async fn guard(State(hosts): State<Arc<[String; 2]>>, request: Request, next: Next) -> Response {
    let headers = request.headers();
    let Some(host) = hosts.iter().find(|host| headers.get(header::HOST).is_some_and(|value| value == *host))
    else {
        return (StatusCode::MISDIRECTED_REQUEST, "this server has another name\n").into_response();
    };
    let own = format!("http://{host}");
    let is_foreign = headers.get(header::ORIGIN).is_some_and(|origin| *origin != own)
        || headers.get("sec-fetch-site").is_some_and(|site| site != "same-origin" && site != "none");
    if is_foreign && !matches!(*request.method(), Method::GET | Method::HEAD) {
        return (StatusCode::FORBIDDEN, "this is the page of another site\n").into_response();
    }
    let mut response = next.run(request).await;
    let headers = response.headers_mut();
    headers.insert(header::CONTENT_SECURITY_POLICY, HeaderValue::from_static(POLICY));
    headers.insert(header::X_CONTENT_TYPE_OPTIONS, HeaderValue::from_static("nosniff"));
    headers.insert(header::CACHE_CONTROL, HeaderValue::from_static("no-store"));
    response
}

impl IntoResponse for Failure {
    fn into_response(self) -> Response {
        (StatusCode::CONFLICT, in_words_of_the_program(&self.to_string())).into_response()
    }
}

/// All questions, then those in whose threads something is stored.
async fn events(State(page): State<Arc<Page>>) -> Sse<impl Stream<Item = Result<Event, Infallible>>> {
    let commits = page.commits.subscribe();
    let updates = stream::unfold((page, commits, true), async |(page, mut commits, is_first)| {
        let mut changed = vec![String::new()];
        if !is_first {
            // A page that is too far behind gets everything once more.
            changed = vec![commits.recv().await.unwrap_or_default()];
            changed.extend(std::iter::from_fn(|| commits.try_recv().ok()));
        }
        let update = page.update(&changed).await.unwrap_or_else(|why| json!({ "problem": why.to_string() }));
        Some((Ok(Event::default().data(update.to_string())), (page, commits, false)))
    });
    Sse::new(updates).keep_alive(KeepAlive::default())
}

/// The options of the command `run`, as far as they are about which questions and how.
async fn start(State(page): State<Arc<Page>>, Json(wanted): Json<RunOptions>) -> Result<StatusCode, Failure> {
    let RunOptions { limit, level, new, .. } = wanted;
    let (questions, runs) = (page.from.clone(), wanted.runs.clamp(1, 9));
    let options = RunOptions { limit, level, new, questions, runs, concurrency: 4, ..RunOptions::default() };
    let (commits, drain) = (page.commits.clone(), page.drain.clone());
    let ready = prepare(&page.config, &options, commits, drain, page.screen).await?;
    *page.work() = Work { run: ready.run.clone(), is_running: true, ..Work::default() };
    page.work().task = Some(tokio::spawn(Arc::clone(&page).run(ready)));
    page.changed();
    Ok(StatusCode::ACCEPTED)
}

/// The options of the command `run` about the submission.
async fn hand_in(State(page): State<Arc<Page>>, Json(mut who): Json<RunOptions>) -> Result<String, Failure> {
    who.submit = true;
    let submitter = submitter(&page.config, &who)?.unwrap_or_default();
    // As a run does that submits: two submissions at once would both be the first.
    let _lock = lock(&page.config.data_dir)?;
    let client = page.server.as_ref().ok_or_else(no_server)?;
    let run = page.work().run.clone();
    let report = report_of(&page.config, &run, &page.reader).await?;
    let solutions: Vec<_> = report.rows.into_iter().filter_map(|row| row.solution).collect();
    if solutions.is_empty() {
        return Err(Failure::Questions("there is no answer yet that could be submitted".to_owned()));
    }
    let sent = submit(&page.config, &run, &solutions, client, submitter, who.again).await;
    page.changed();
    Ok(in_words(&sent?))
}

/// The file of a question. Nothing in it is shown by the browser, which only keeps it.
async fn attachment(State(page): State<Arc<Page>>, Path(task): Path<String>) -> Result<Response, Failure> {
    let run = page.work().run.clone();
    let question = run.questions.iter().find(|question| question.task_id == task);
    let question = question.ok_or_else(|| Failure::Unknown(format!("there is no question {task}")))?;
    let files = page.source.files(&page.config, page.server.as_ref());
    let content = content(&files, question).await.map_err(Failure::Unknown)?;
    let kind =
        [(header::CONTENT_TYPE, "application/octet-stream"), (header::CONTENT_DISPOSITION, "attachment")];
    Ok((kind, content).into_response())
}

impl Page {
    fn work(&self) -> MutexGuard<'_, Work> {
        self.work.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Something has changed that is in no thread.
    fn changed(&self) {
        // An error means that no page is open.
        let _ = self.commits.send(String::new());
    }

    async fn run(self: Arc<Self>, ready: Ready) {
        let hear = |progress: Progress<'_>| {
            self.work().problem = match progress {
                Progress::Solved(solution) if !solution.is_done => line(solution),
                Progress::NotSolved(_, SolveError::Stopped) | Progress::Solved(_) => return,
                Progress::NotSolved(question, error) => format!("{}: {error}", question.task_id),
            };
            self.changed();
        };
        let end = ready.runner.run(&ready.run, hear).await;
        log_report(&self.config, &ready.run, &end, &ready.runner);
        let mut work = self.work();
        (work.is_running, work.left) = (false, end.stopped);
        if end.stopped > 0 {
            work.problem = stopped(&ready.run, end.stopped);
        }
        // Its lock ends before the page hears that the next run may begin.
        drop((work, ready));
        self.changed();
    }

    /// The run, and the questions of these threads; all of them for the thread without a name.
    async fn update(&self, changed: &[String]) -> Result<Value, Failure> {
        let run = self.work().run.clone();
        let report = report_of(&self.config, &run, &self.reader).await?;
        let is_whole = changed.iter().any(String::is_empty);
        let mut rows = Vec::new();
        for row in &report.rows {
            let thread = run.thread(&row.question.task_id);
            // The threads of several runs of a question end with its own.
            if is_whole || changed.iter().any(|one| one.ends_with(&thread)) {
                rows.push(json!({
                    "question": row.question,
                    "file": row.question.file(),
                    "answer": row.solution.as_ref().map(|solution| &solution.answer),
                    "verdict": row.verdict(),
                    "right": row.is_right.filter(|_| row.solution.is_some()),
                    "steps": steps_of(&self.reader, &thread).await?,
                }));
            }
        }
        let submission = submission::read(&runs(&self.config).submission(&run))?;
        let work = self.work();
        Ok(json!({
            "rows": rows,
            "whole": is_whole,
            "run": run.id,
            "plan": run.plan,
            "running": work.is_running,
            "problem": work.problem,
            "figures": report.figures(),
            "submission": submission.map(|stored| stored.state),
            "can_submit": self.server.is_some(),
            "username": self.config.submitter.username,
            "agent_code": self.config.submitter.agent_code,
        }))
    }
}
