//! After a restart, a server with a data file has all confirmed changes, whether it was shut down or
//! killed. A foreign file is not changed.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]

use std::io::{BufRead, BufReader};
use std::path::PathBuf;
use std::process::{Child, Command, Stdio};

use upgrade_agent::client::{
    Dialect, Experiment, ExperimentState, Mark, NewExperiment, NewUser, UpgradeClient,
};
use upgrade_agent::server::{EmbeddedServer, ServerHandle};

struct TempDir(PathBuf);

impl TempDir {
    fn new() -> Self {
        let path = std::env::temp_dir().join(format!("upgrade-server-{}", uuid::Uuid::new_v4()));
        std::fs::create_dir(&path).unwrap();
        Self(path)
    }

    fn file(&self) -> PathBuf {
        self.0.join("upgrade.db")
    }
}

impl Drop for TempDir {
    fn drop(&mut self) {
        let _ = std::fs::remove_dir_all(&self.0);
    }
}

async fn start(dir: &TempDir) -> ServerHandle {
    EmbeddedServer::builder().data_file(dir.file()).start().await.unwrap()
}

fn client(url: &str) -> UpgradeClient {
    UpgradeClient::builder(url).build().unwrap()
}

/// Creates a running experiment in which one student takes part.
async fn work(client: &UpgradeClient) -> Experiment {
    let new = NewExperiment::new("Kept", "assign-prog")
        .include_all()
        .condition("control", 50.0)
        .condition("variant", 50.0)
        .point("SelectSection", "workspace");
    let made = client.create(&new).await.unwrap();
    client.set_state(&made.id, &ExperimentState::Enrolling).await.unwrap();
    client.init_user(&NewUser::new("ada").in_group("classId", "c1")).await.unwrap();
    let mark = Mark::new("SelectSection", "workspace");
    client.mark("ada", &mark).await.unwrap();
    client.experiment(&made.id).await.unwrap()
}

async fn check(client: &UpgradeClient, known: &Experiment) {
    assert_eq!(client.experiments().await.unwrap(), std::slice::from_ref(known));
    assert_eq!(client.enrollment(&known.id).await.unwrap().users, 1);
    assert_eq!(client.assign("ada", "assign-prog").await.unwrap().len(), 1);
    let user = client.init_user(&NewUser::new("ada")).await.unwrap();
    assert_eq!(user.working_group["classId"], "c1");
}

#[tokio::test]
async fn a_server_that_was_shut_down_keeps_its_data() {
    let dir = TempDir::new();
    let server = start(&dir).await;
    let known = work(&client(server.url())).await;
    server.shutdown().await;
    let server = start(&dir).await;
    check(&client(server.url()), &known).await;
    client(server.url()).delete(&known.id).await.unwrap();
    server.shutdown().await;
    let server = start(&dir).await;
    assert_eq!(client(server.url()).experiments().await.unwrap(), []);
}

const CHILD_FILE: &str = "UPGRADE_TEST_DATA_FILE";

/// The process that the next test kills; it is not a test itself.
#[tokio::test]
#[ignore = "runs only as the child of the test below"]
async fn child_server() {
    let Some(file) = std::env::var_os(CHILD_FILE) else { return };
    let server = EmbeddedServer::builder().data_file(file).start().await.unwrap();
    println!("\nurl={}", server.url());
    std::future::pending::<()>().await;
}

fn spawn_child(dir: &TempDir) -> (Child, String) {
    let mut child = Command::new(std::env::current_exe().unwrap())
        .args(["--exact", "server_keeps_its_data::child_server", "--ignored", "--nocapture"])
        .env(CHILD_FILE, dir.file())
        .stdout(Stdio::piped())
        .spawn()
        .unwrap();
    let lines = BufReader::new(child.stdout.take().unwrap()).lines();
    let url = lines.map_while(Result::ok).find_map(|line| Some(line.strip_prefix("url=")?.to_owned()));
    (child, url.expect("the child prints its address"))
}

#[tokio::test]
async fn a_killed_server_keeps_every_change_that_it_confirmed() {
    let dir = TempDir::new();
    let (mut child, url) = spawn_child(&dir);
    let known = work(&client(&url)).await;
    child.kill().unwrap();
    child.wait().unwrap();
    let server = start(&dir).await;
    check(&client(server.url()), &known).await;
}

#[tokio::test]
async fn a_second_server_on_the_same_file_is_refused() {
    let dir = TempDir::new();
    let first = start(&dir).await;
    let second = EmbeddedServer::builder().data_file(dir.file()).start().await.unwrap_err();
    assert_eq!(second.code(), "E_SERVER_IN_USE", "{second}");
    work(&client(first.url())).await;
}

#[tokio::test]
async fn foreign_files_are_refused_and_unchanged() {
    let dir = TempDir::new();
    let not_sqlite = b"these are somebody's notes, more than a hundred bytes of them, ".repeat(4);
    std::fs::write(dir.file(), &not_sqlite).unwrap();
    let refused = EmbeddedServer::builder().data_file(dir.file()).start().await.unwrap_err();
    assert_eq!(refused.code(), "E_SERVER_DATA", "{refused}");
    assert_eq!(std::fs::read(dir.file()).unwrap(), not_sqlite);

    std::fs::remove_file(dir.file()).unwrap();
    let other = rusqlite::Connection::open(dir.file()).unwrap();
    other.execute_batch("CREATE TABLE note (text); INSERT INTO note VALUES ('mine');").unwrap();
    drop(other);
    let refused = EmbeddedServer::builder().data_file(dir.file()).start().await.unwrap_err();
    assert!(refused.to_string().contains("belongs to another program"), "{refused}");
    let other = rusqlite::Connection::open(dir.file()).unwrap();
    let notes: i64 = other.query_row("SELECT count(*) FROM note", [], |row| row.get(0)).unwrap();
    assert_eq!(notes, 1);
}

#[tokio::test]
async fn a_missing_folder_is_created_or_reported() {
    let dir = TempDir::new();
    let deep = dir.0.join("a/b/upgrade.db");
    EmbeddedServer::builder().data_file(&deep).start().await.unwrap().shutdown().await;
    assert!(deep.is_file());
    let below_a_file = deep.join("upgrade.db");
    let refused = EmbeddedServer::builder().data_file(below_a_file).start().await.unwrap_err();
    assert_eq!(refused.code(), "E_SERVER_DATA", "{refused}");
    let a_folder = EmbeddedServer::builder().data_file(&dir.0).start().await.unwrap_err();
    assert_eq!(a_folder.code(), "E_SERVER_DATA", "{a_folder}");
}

#[tokio::test]
async fn a_damaged_row_is_reported() {
    let dir = TempDir::new();
    let server = start(&dir).await;
    work(&client(server.url())).await;
    server.shutdown().await;
    let file = rusqlite::Connection::open(dir.file()).unwrap();
    file.execute("UPDATE record SET row = '{' WHERE kind = 'user'", []).unwrap();
    drop(file);
    let refused = EmbeddedServer::builder().data_file(dir.file()).start().await.unwrap_err();
    assert_eq!(refused.code(), "E_SERVER_DATA");
    assert!(refused.to_string().contains("the user ada cannot be read"), "{refused}");
}

#[tokio::test]
async fn a_file_belongs_to_one_dialect() {
    let dir = TempDir::new();
    let of = |dialect| EmbeddedServer::builder().data_file(dir.file()).dialect(dialect).start();
    of(Dialect::V62).await.unwrap().shutdown().await;
    of(Dialect::V62).await.unwrap().shutdown().await;
    let refused = of(Dialect::V65).await.unwrap_err();
    assert_eq!(refused.code(), "E_SERVER_DATA", "{refused}");
    assert!(refused.to_string().contains("UpGrade 6.2.0, not of 6.5.0"), "{refused}");
}

#[tokio::test]
async fn a_taken_port_is_refused() {
    let first = EmbeddedServer::builder().start().await.unwrap();
    let taken = first.addr().port();
    let second = EmbeddedServer::builder().port(taken).start().await.unwrap_err();
    assert_eq!(second.code(), "E_SERVER_BIND", "{second}");
}

#[tokio::test]
async fn the_same_seed_and_clock_give_the_same_responses() {
    let mut answers = Vec::new();
    for _ in 0..2 {
        let server = EmbeddedServer::builder()
            .in_memory()
            .seed(11)
            .clock(|| std::time::UNIX_EPOCH + std::time::Duration::from_secs(1_800_000_000))
            .start()
            .await
            .unwrap();
        answers.push(work(&client(server.url())).await);
    }
    assert_eq!(answers[0], answers[1]);
    assert_eq!(answers[0].created_at.as_deref(), Some("2027-01-15T08:00:00.000Z"));
}

/// Turns the file into format 1, in which the experiment contains its lists and there are no
/// segments.
fn age(dir: &TempDir) {
    let file = rusqlite::Connection::open(dir.file()).unwrap();
    let row: String =
        file.query_row("SELECT row FROM record WHERE kind = 'experiment'", [], |row| row.get(0)).unwrap();
    let mut experiment: serde_json::Value = serde_json::from_str(&row).unwrap();
    experiment["exclusion"] = serde_json::json!([{
        "createdAt": "2026-01-01T00:00:00.000Z",
        "updatedAt": "2026-01-01T00:00:00.000Z",
        "versionNumber": 1,
        "segmentId": "22e32d58-4f10-430b-b9a3-2c78046f8619",
        "name": "old list",
        "description": "",
        "listType": null,
        "context": "assign-prog",
        "type": "private",
        "users": ["bob"],
        "groups": [],
    }]);
    file.execute("UPDATE record SET row = ? WHERE kind = 'experiment'", [experiment.to_string()]).unwrap();
    file.execute_batch("DELETE FROM record WHERE kind = 'segment'; PRAGMA user_version = 1;").unwrap();
}

#[tokio::test]
async fn a_file_of_the_first_format_is_opened_with_its_lists() {
    let dir = TempDir::new();
    let server = start(&dir).await;
    work(&client(server.url())).await;
    server.shutdown().await;
    age(&dir);
    for _ in 0..2 {
        let server = start(&dir).await;
        let client = client(server.url());
        let lists = client.experiments().await.unwrap().remove(0).exclusion;
        assert_eq!(lists.users, ["bob"]);
        for (student, gets) in [("ada", 1), ("bob", 0)] {
            client.init_user(&NewUser::new(student)).await.unwrap();
            assert_eq!(client.assign(student, "assign-prog").await.unwrap().len(), gets, "{student}");
        }
        server.shutdown().await;
    }
}
