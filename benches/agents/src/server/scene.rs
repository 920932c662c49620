//! A server with running experiments and known students, and the calls that it gets.

use std::net::{Ipv4Addr, SocketAddr};
use std::path::PathBuf;

use axum::Router;
use axum::body::Bytes;
use axum::http::header::CONTENT_TYPE;
use axum::routing::post;
use axum::serve::ListenerExt;
use tokio::net::TcpListener;
use upgrade_agent::client::{ExperimentState, NewExperiment, UpgradeClient};
use upgrade_agent::server::{EmbeddedServer, ServerHandle};

use super::caller::Caller;
use agentgraph_benches::Problem;

/// The decision points: each has one running experiment.
const PLACES: [(&str, &str); 3] = [
    ("SelectSection", "absolute_value_plot_equality"),
    ("SelectSection", "analyzing_step_functions"),
    ("workspace", "analyzing_step_functions"),
];
const STUDENTS: u64 = 500;

/// The place where the server keeps its data.
#[derive(Clone, Copy)]
pub(super) enum Kept {
    Memory,
    File,
}

impl Kept {
    pub(super) fn name(self) -> &'static str {
        match self {
            Self::Memory => "in memory",
            Self::File => "in a file",
        }
    }
}

/// A call that is repeated.
#[derive(Clone, Copy)]
pub(super) enum Call {
    /// A call of the bare handler, with the body of a mark.
    Bare,
    /// Makes a new student known in every call.
    Init,
    Assign,
    /// Marks a new visit in every call, until each student has visited every point.
    Mark,
    /// Reads one complete experiment.
    Read,
    /// In turns: makes a new student known; assigns a known one; marks a visit of the latter; reads an
    /// experiment.
    Mix,
}

impl Call {
    pub(super) fn name(self) -> &'static str {
        match self {
            Self::Bare => "bare",
            Self::Init => "init",
            Self::Assign => "assign",
            Self::Mark => "mark",
            Self::Read => "read",
            Self::Mix => "init, assign, mark, read in turns",
        }
    }

    /// The request of the n-th call.
    pub(super) fn request(self, n: u64) -> String {
        match self {
            Self::Bare => post_text("/", "somebody", &mark_body(n)),
            Self::Init => init(&format!("new-{n}")),
            Self::Assign => assign(&student(n)),
            Self::Mark => mark(&student(n), n / STUDENTS),
            Self::Read => get_text(&format!("/api/experiments/single/{}", id(n))),
            // Calls on several connections may overtake each other, so the assigned student is one that
            // was known from the start.
            Self::Mix => match n % 4 {
                0 => init(&format!("new-{}", n / 4)),
                1 => assign(&student(n / 4)),
                2 => mark(&student(n / 4), n / 4 / STUDENTS),
                _ => Self::Read.request(n / 4),
            },
        }
    }
}

fn student(n: u64) -> String {
    format!("student-{}", n % STUDENTS)
}

fn id(n: u64) -> String {
    format!("eeeeeeee-0000-4000-8000-{:012}", n % PLACES.len() as u64)
}

fn init(student: &str) -> String {
    post_text("/api/v6/init", student, r#"{"group":{"classId":["c1"]},"workingGroup":{"classId":"c1"}}"#)
}

fn assign(student: &str) -> String {
    post_text("/api/v6/assign", student, r#"{"context":"assign-prog"}"#)
}

fn mark(student: &str, place: u64) -> String {
    post_text("/api/v6/mark", student, &mark_body(place))
}

fn mark_body(n: u64) -> String {
    let (site, target) = PLACES[n as usize % PLACES.len()];
    format!(r#"{{"data":{{"site":"{site}","target":"{target}"}},"status":"condition applied"}}"#)
}

fn post_text(path: &str, student: &str, body: &str) -> String {
    let length = body.len();
    format!(
        "POST {path} HTTP/1.1\r\nHost: localhost\r\nUser-Id: {student}\r\n\
         Content-Type: application/json\r\nContent-Length: {length}\r\n\r\n{body}"
    )
}

fn get_text(path: &str) -> String {
    format!("GET {path} HTTP/1.1\r\nHost: localhost\r\n\r\n")
}

/// A running server, ready for calls.
pub(super) struct Scene {
    server: ServerHandle,
    file: Option<PathBuf>,
}

impl Scene {
    pub(super) async fn new(kept: Kept) -> Result<Self, Problem> {
        let mut builder = EmbeddedServer::builder().seed(1);
        let file = matches!(kept, Kept::File).then(|| {
            std::env::temp_dir().join(format!("upgrade-bench-{}", std::process::id())).join("server.db")
        });
        if let Some(file) = &file {
            builder = builder.data_file(file);
        }
        let server = builder.start().await?;
        run_experiments(server.url()).await?;
        let mut caller = Caller::new(server.addr()).await?;
        for n in 0..STUDENTS {
            caller.call(&init(&student(n))).await?;
        }
        Ok(Self { server, file })
    }

    pub(super) fn addr(&self) -> SocketAddr {
        self.server.addr()
    }

    pub(super) async fn end(self) -> Result<(), Problem> {
        self.server.shutdown().await;
        if let Some(folder) = self.file.as_deref().and_then(|file| file.parent()) {
            std::fs::remove_dir_all(folder)?;
        }
        Ok(())
    }
}

async fn run_experiments(url: &str) -> Result<(), Problem> {
    let client = UpgradeClient::builder(url).build()?;
    for (n, (site, target)) in PLACES.into_iter().enumerate() {
        let new = NewExperiment::new(format!("Experiment {n}"), "assign-prog")
            .id(id(n as u64))
            .point(site, target)
            .condition("control", 50.0)
            .condition("variant", 50.0)
            .include_all();
        let made = client.create(&new).await?;
        client.set_state(&made.id, &ExperimentState::Enrolling).await?;
    }
    Ok(())
}

/// Starts a handler of the same framework that reads a body and returns one of the size of a mark's.
pub(super) async fn bare() -> Result<SocketAddr, Problem> {
    const ANSWER: &str = r#"{"id":"eeeeeeee-0000-4000-8000-000000000000","condition":null,"userId":"student-1","site":"SelectSection","target":"absolute_value_plot_equality","experimentId":null}"#;
    let answer = |body: Bytes| async move {
        ([(CONTENT_TYPE, "application/json")], if body.is_empty() { "" } else { ANSWER })
    };
    let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).await?;
    let addr = listener.local_addr()?;
    let listener = listener.tap_io(|stream| drop(stream.set_nodelay(true)));
    tokio::spawn(async move { axum::serve(listener, Router::new().route("/", post(answer))).await });
    Ok(addr)
}
