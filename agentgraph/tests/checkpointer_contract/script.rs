//! Calls to a checkpointer as lines of text, and what they return as lines of text.
//!
//! ```text
//! put THREAD[/NAMESPACE] BRANCH.STEP full|delta RECORD [segment=RECORD] [clears]
//! get PLACE [BRANCH.STEP]     row PLACE BRANCH.STEP     list PLACE [branch=N] [before=N] [limit=N]
//! writes PLACE BRANCH.STEP [TASK:SLOT=BYTES ..]         threads     delete THREAD
//! ```

use agentgraph::checkpoint::{Checkpointer, ListQuery, PendingWrite, Place, Put, PutWrites, Row, RowKind};
use agentgraph::{CheckpointId, Error, TaskId};

/// Runs the commands of a script; returns them with an `=> answer` line after each. Lines that begin so are skipped.
pub(crate) async fn run(saver: &dyn Checkpointer, script: &str) -> String {
    let mut transcript = String::new();
    for line in script.lines().map(str::trim).filter(|line| !line.is_empty() && !line.starts_with("=>")) {
        let answer = command(saver, line).await.unwrap_or_else(|error| error.code().to_string());
        transcript += &format!("{line}\n=> {answer}\n");
    }
    transcript
}

async fn command(saver: &dyn Checkpointer, line: &str) -> Result<String, Error> {
    let words: Vec<&str> = line.split_whitespace().collect();
    match words[..] {
        ["put", at, step, kind, record, ref rest @ ..] => {
            saver.put(put(at, step, kind, record, rest)).await.map(|()| "ok".to_owned())
        }
        ["get", at, ref rest @ ..] => {
            let tail = saver.get(place(at), rest.first().map(|step| id(step))).await?;
            let Some(tail) = tail else { return Ok("nothing".to_owned()) };
            let rows = tail.rows.iter().map(show_row);
            Ok(rows.chain(tail.writes.iter().map(show_write)).collect::<Vec<_>>().join(", "))
        }
        ["row", at, step] => {
            let row = saver.row(place(at), id(step)).await?;
            Ok(row.as_ref().map_or("nothing".to_owned(), show_row))
        }
        ["list", at, ref rest @ ..] => {
            let rows = saver.list(place(at), query(rest)).await?;
            Ok(rows.iter().map(show_row).collect::<Vec<_>>().join(", "))
        }
        ["writes", at, step, ref rest @ ..] => {
            let writes: Vec<PendingWrite> = rest.iter().map(|text| write(text)).collect();
            saver.put_writes(PutWrites::new(place(at), id(step), &writes)).await.map(|()| "ok".to_owned())
        }
        ["threads"] => Ok(saver.threads().await?.join(", ")),
        ["delete", thread] => saver.delete_thread(thread).await.map(|()| "ok".to_owned()),
        _ => panic!("no such command: {line}"),
    }
}

fn put<'a>(at: &'a str, step: &str, kind: &str, record: &'a str, rest: &[&'a str]) -> Put<'a> {
    Put {
        place: place(at),
        id: id(step),
        fence: 0,
        kind: if kind == "full" { RowKind::Full } else { RowKind::Delta },
        record: record.as_bytes(),
        segment: rest.iter().find_map(|word| word.strip_prefix("segment=")).map(str::as_bytes),
        clears_writes: rest.contains(&"clears"),
    }
}

fn query(words: &[&str]) -> ListQuery {
    let mut query = ListQuery::default();
    for word in words {
        match word.split_once('=') {
            Some(("branch", number)) => query.branch = Some(number.parse().expect("a branch")),
            Some(("before", number)) => query.before = Some(number.parse().expect("a step")),
            Some(("limit", number)) => query.limit = Some(number.parse().expect("a limit")),
            _ => panic!("no such part of a query: {word}"),
        }
    }
    query
}

fn write(text: &str) -> PendingWrite {
    let (key, bytes) = text.split_once('=').expect("TASK:SLOT=BYTES");
    let (task, slot) = key.split_once(':').expect("TASK:SLOT");
    PendingWrite {
        task: TaskId::from_u128(task.parse().expect("a task")),
        slot: slot.parse().expect("a slot"),
        bytes: bytes.as_bytes().to_vec(),
    }
}

fn place(text: &str) -> Place<'_> {
    match text.split_once('/') {
        Some((thread, namespace)) => Place { thread, namespace },
        None => Place::root(text),
    }
}

fn id(text: &str) -> CheckpointId {
    let (branch, step) = text.split_once('.').expect("BRANCH.STEP");
    CheckpointId::new(branch.parse().expect("a branch"), step.parse().expect("a step"))
}

fn show_row(row: &Row) -> String {
    let kind = match row.kind {
        RowKind::Full => "full",
        RowKind::Delta => "delta",
        RowKind::Segment => "segment",
        _ => "unknown",
    };
    format!("{kind} {} {}", row.id, String::from_utf8_lossy(&row.record))
}

fn show_write(write: &PendingWrite) -> String {
    format!("write {}:{} {}", write.task.to_u128(), write.slot, String::from_utf8_lossy(&write.bytes))
}
