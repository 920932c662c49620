//! The contract of [`Records`], as a test of any store.

use std::time::Duration;

use serde_json::{Map, Value, json};
use tokio::sync::broadcast::error::RecvError;
use tokio::time::timeout;

use super::{
    Admission, Admitted, Kind, LogEntry, Next, Query, Record, Records, SharedRecords, Signal, SortBy, Stop,
};
use crate::error::RecordError;

/// Checks an empty store against the contract.
///
/// ```
/// use agentgraph_server::records::{MemoryRecords, conformance};
///
/// # #[tokio::main(flavor = "current_thread")]
/// # async fn main() {
/// let broken = conformance::check(&MemoryRecords::default()).await;
/// assert_eq!(broken.unwrap(), Vec::<String>::new());
/// # }
/// ```
///
/// # Returns
/// The clauses that the store breaks.
///
/// # Errors
/// That of the store.
pub async fn check(records: &dyn Records) -> Result<Vec<String>, RecordError> {
    let mut broken = Broken::default();
    changes(records, &mut broken).await?;
    pages(records, &mut broken).await?;
    logs(records, &mut broken).await?;
    Ok(broken.0)
}

/// Checks two handles of an empty store that servers share against the contract of [`SharedRecords`].
///
/// ```
/// use agentgraph_server::records::{MemoryRecords, conformance};
///
/// # #[tokio::main(flavor = "current_thread")]
/// # async fn main() {
/// let (one, other) = (MemoryRecords::default(), MemoryRecords::default());
/// let broken = conformance::check_shared(&one, &other).await;
/// assert_eq!(broken.unwrap(), ["the store is for several servers"]);
/// # }
/// ```
///
/// # Returns
/// The clauses that the store breaks.
///
/// # Errors
/// That of the store.
pub async fn check_shared(one: &dyn Records, other: &dyn Records) -> Result<Vec<String>, RecordError> {
    let mut broken = Broken::default();
    let (Some(shared), Some(heard)) = (one.shared(), other.shared()) else {
        broken.unless(false, "the store is for several servers");
        return Ok(broken.0);
    };
    let mut signals = heard.signals();
    admissions(one, shared, &mut broken).await?;
    claims(one, shared, &mut broken).await?;
    deaths(one, shared, &mut broken).await?;
    let hears = async {
        loop {
            // A handle may begin to listen later than it is made.
            shared.stop("r-4", Stop::RollBack).await?;
            match timeout(Duration::from_millis(200), signals.recv()).await {
                Ok(Ok(Signal::Stopped { run })) if run == "r-4" => return Ok(true),
                Ok(Err(RecvError::Closed)) => return Ok(false),
                _ => {}
            }
        }
    };
    let hears: Result<bool, RecordError> = timeout(Duration::from_secs(60), hears).await.unwrap_or(Ok(false));
    broken.unless(hears?, "another handle hears of a stop");
    Ok(broken.0)
}

const HOUR: Duration = Duration::from_secs(3600);

fn asked(replica: &str, thread: &Record, id: &str, created: i64) -> Admission {
    let run = Record {
        kind: Kind::Run,
        id: id.to_owned(),
        parent: thread.id.clone(),
        status: "pending".to_owned(),
        ..self::thread(id, created, json!({}))
    };
    let (replica, graph) = (replica.to_owned(), "graph".to_owned());
    Admission { replica, run, thread: thread.clone(), graph, alone: false, stops: None }
}

/// The run that a replica drives next.
async fn next_of(
    shared: &dyn SharedRecords,
    replica: &str,
) -> Result<Option<(String, Option<Stop>)>, RecordError> {
    Ok(match shared.next(replica, "t-1").await? {
        Next::Run(run, stop) => Some((run.id, stop)),
        Next::Released | Next::Lost => None,
    })
}

async fn admissions(
    records: &dyn Records,
    shared: &dyn SharedRecords,
    broken: &mut Broken,
) -> Result<(), RecordError> {
    shared.enter("a", HOUR).await?;
    shared.enter("b", HOUR).await?;
    let mut thread = self::thread("t-1", 1, json!({}));
    records.put(vec![thread.clone()]).await?;
    let stale = shared.admit(asked("a", &thread, "r-1", 10)).await?;
    broken.unless(stale == Admitted::Stale, "a run of an old version of its thread is not admitted");
    thread.version = 1;
    thread.status = "busy".to_owned();
    let first = shared.admit(asked("a", &thread, "r-1", 10)).await?;
    broken.unless(first == Admitted::Mine { is_new: true }, "the first run claims its thread");
    let stored = records.get(Kind::Thread, "t-1").await?;
    broken.unless(stored == Some(Record { version: 2, ..thread.clone() }), "the thread is stored with a run");
    thread.version = 2;
    let alone = Admission { alone: true, ..asked("b", &thread, "r-2", 5) };
    broken.unless(shared.admit(alone).await? == Admitted::Refused, "a run that must be alone is refused");
    let kept = records.get(Kind::Thread, "t-1").await?.map(|thread| thread.version);
    broken.unless(kept == Some(2), "a refused run changes nothing");
    let elsewhere = shared.admit(asked("b", &thread, "r-2", 5)).await?;
    broken.unless(elsewhere == Admitted::Elsewhere, "a claim is kept while its replica lives");
    thread.version = 3;
    let interrupts = Admission { stops: Some(Stop::Interrupt), ..asked("a", &thread, "r-3", 4) };
    let third = shared.admit(interrupts).await?;
    broken.unless(third == Admitted::Mine { is_new: false }, "a claim is held once");
    Ok(())
}

async fn claims(
    records: &dyn Records,
    shared: &dyn SharedRecords,
    broken: &mut Broken,
) -> Result<(), RecordError> {
    broken.unless(shared.next("b", "t-1").await? == Next::Lost, "only the holder of a claim drives");
    let mut order = Vec::new();
    while let Some((id, stop)) = next_of(shared, "a").await? {
        if id == "r-1" {
            broken.unless(shared.stop(&id, Stop::RollBack).await?, "a run is stopped");
        }
        let Some(mut run) = records.get(Kind::Run, &id).await? else { break };
        run.status = "success".to_owned();
        records.put(vec![run]).await?;
        broken.unless(!shared.stop(&id, Stop::RollBack).await?, "a run that has ended is not stopped");
        order.push((id, stop));
    }
    let (stopped, goes) = (Some(Stop::Interrupt), None);
    let expected = [("r-1", stopped), ("r-2", stopped), ("r-3", goes)];
    broken.unless(
        order.iter().map(|(id, stop)| (&**id, *stop)).eq(expected),
        "runs are driven in the order of their admission, with the first stop of each",
    );
    broken.unless(shared.next("a", "t-1").await? == Next::Lost, "a claim ends with the last run");
    Ok(())
}

async fn deaths(
    records: &dyn Records,
    shared: &dyn SharedRecords,
    broken: &mut Broken,
) -> Result<(), RecordError> {
    let Some(thread) = records.get(Kind::Thread, "t-1").await? else { return Ok(()) };
    let graphs = ["graph".to_owned()];
    shared.admit(asked("a", &thread, "r-4", 3)).await?;
    let after = records.get(Kind::Run, "r-3").await?;
    let newer = Query { parent: Some("t-1".to_owned()), after, ..Query::all(Kind::Run) };
    let newer: Vec<String> = records.page(&newer).await?.into_iter().map(|run| run.id).collect();
    broken.unless(newer == ["r-4"], "a run is newer than those of its thread that have ended, by any clock");
    let entry = |seq: u64| LogEntry { seq, text: String::from("x") };
    let by = async |replica: &str, seq: u64, fleeting: bool| {
        shared.append_claimed((replica, "t-1"), "claimed", vec![entry(seq)], fleeting).await
    };
    broken.unless(by("a", 1, true).await?, "the holder of a claim adds to a log");
    broken.unless(shared.take_over("b", &graphs, 9).await?.is_empty(), "a living replica keeps its claims");
    shared.stop("r-4", Stop::RollBack).await?;
    let stops = shared.stops("a").await?;
    broken.unless(stops == [("r-4".to_owned(), Stop::RollBack)], "the stops of a replica's runs are known");
    shared.leave("a").await?;
    broken.unless(!shared.renew("a", HOUR).await?, "a replica that has left is dead");
    broken.unless(
        shared.take_over("b", &[], 9).await?.is_empty(),
        "a claim waits for a replica with its graph",
    );
    broken
        .unless(shared.take_over("b", &graphs, 9).await? == ["t-1"], "the claims of a dead replica are free");
    broken.unless(!by("a", 2, true).await?, "a dead replica adds nothing to a log");
    broken.unless(by("b", 3, false).await?, "the new holder adds to it");
    shared.begin("claimed").await?;
    let numbers = async || -> Result<Vec<u64>, RecordError> {
        Ok(records.read("claimed", None, 9).await?.iter().map(|entry| entry.seq).collect())
    };
    broken.unless(numbers().await? == [1, 3], "a log with entries has begun");
    shared.sweep(Duration::ZERO).await?;
    broken.unless(numbers().await? == [3], "a sweep removes what is fleeting");
    shared.begin("begun").await?;
    broken.unless(records.last("begun").await? == Some(0), "a log with a reader has begun");
    shared.enter("c", HOUR).await?;
    shared.leave("b").await?;
    shared.take_over("c", &graphs, 9).await?;
    shared.enter("d", HOUR).await?;
    broken.unless(shared.renew("c", Duration::ZERO).await?, "a replica lives until it is found to be silent");
    broken
        .unless(shared.take_over("d", &graphs, 9).await? == ["t-1"], "a silent replica dies with its lease");
    broken.unless(!shared.renew("c", HOUR).await?, "a dead replica does not come back");
    Ok(())
}

#[derive(Default)]
struct Broken(Vec<String>);

impl Broken {
    fn unless(&mut self, holds: bool, clause: &str) {
        if !holds {
            self.0.push(clause.to_owned());
        }
    }
}

fn thread(id: &str, created: i64, metadata: Value) -> Record {
    Record {
        kind: Kind::Thread,
        id: id.to_owned(),
        parent: String::new(),
        status: if created % 2 == 0 { "idle" } else { "busy" }.to_owned(),
        created,
        updated: 100 - created,
        version: 0,
        data: json!({ "metadata": metadata, "text": "'\"\u{0}ü\\" }),
    }
}

async fn changes(records: &dyn Records, broken: &mut Broken) -> Result<(), RecordError> {
    let first = thread("a", 1, json!({}));
    let put = async |record: &Record| records.put(vec![record.clone()]).await;
    broken.unless(put(&first).await?, "a record is added");
    broken.unless(!put(&first).await?, "a second record of an id is refused");
    let stored = records.get(Kind::Thread, "a").await?;
    broken.unless(stored == Some(Record { version: 1, ..first.clone() }), "a record is read as it was added");
    broken.unless(records.get(Kind::Run, "a").await?.is_none(), "kinds have ids of their own");
    let changed = Record { version: 1, status: "error".to_owned(), data: json!({}), ..first };
    broken.unless(put(&changed).await?, "a record is replaced");
    broken.unless(!put(&changed).await?, "a change of an old version is refused");
    let stored = records.get(Kind::Thread, "a").await?;
    let changed = Record { version: 2, ..changed };
    broken.unless(stored.as_ref() == Some(&changed), "a change counts the version up");
    let missing = Record { id: "missing".to_owned(), ..changed.clone() };
    broken.unless(!put(&missing).await?, "a record that is missing is not replaced");
    let new = thread("b", 2, json!({}));
    let moved = Record { parent: "elsewhere".to_owned(), created: 9, ..changed };
    let stale = Record { version: 1, ..moved.clone() };
    broken.unless(!records.put(vec![new.clone(), stale]).await?, "one stale record refuses all");
    broken
        .unless(records.get(Kind::Thread, "b").await?.is_none(), "of those that are refused none is stored");
    broken
        .unless(records.put(vec![moved.clone(), new.clone()]).await?, "several records are stored together");
    let stored = records.get(Kind::Thread, "a").await?;
    broken.unless(stored == Some(Record { version: 3, ..moved }), "a change is of all columns");
    broken
        .unless(records.remove(Kind::Thread, "b").await?, "a record that was added beside a change is there");
    broken.unless(records.remove(Kind::Thread, "a").await?, "a record is removed");
    broken.unless(!records.remove(Kind::Thread, "a").await?, "a record is removed once");
    Ok(())
}

async fn pages(records: &dyn Records, broken: &mut Broken) -> Result<(), RecordError> {
    for number in 0..10_i64 {
        // Two of each time of creation, so that the id decides.
        let metadata = json!({ "n": number, "owner": { "name": if number < 4 { "ada" } else { "grace" } } });
        records.put(vec![thread(&format!("id-{number}"), number / 2, metadata)]).await?;
    }
    let all = Query::all(Kind::Thread);
    for sort in [SortBy::Created, SortBy::Updated, SortBy::Id, SortBy::Status] {
        for descending in [false, true] {
            let query = Query { sort, descending, ..all.clone() };
            let whole = records.page(&query).await?;
            broken.unless(
                whole.len() == 10 && whole.is_sorted_by(|one, other| query.compare(one, other).is_lt()),
                &format!("a list is in order: {sort:?}, descending {descending}"),
            );
            let (mut paged, mut after) = (Vec::new(), None);
            loop {
                let page = records.page(&Query { after, limit: 3, ..query.clone() }).await?;
                after = page.last().cloned();
                paged.extend(page);
                if after.is_none() || paged.len() > 20 {
                    break;
                }
            }
            broken.unless(paged == whole, &format!("pages by key are the list: {sort:?}, {descending}"));
            let middle = records.page(&Query { offset: 4, limit: 3, ..query.clone() }).await?;
            broken.unless(whole.get(4..7) == Some(&*middle), "a page by number is a part of the list");
        }
    }
    let owned = Map::from_iter([("owner".to_owned(), json!({ "name": "ada" }))]);
    let of_ada = Query { metadata: owned, limit: 2, ..all.clone() };
    broken.unless(records.page(&of_ada).await?.len() == 2, "metadata select");
    broken.unless(records.count(&of_ada).await? == 4, "a count is of all pages");
    let hostile = Map::from_iter([("'; DROP TABLE x; --".to_owned(), json!("\" OR 1=1"))]);
    broken
        .unless(records.count(&Query { metadata: hostile, ..all.clone() }).await? == 0, "names are no code");
    let ids = Some(vec!["id-3".to_owned(), "unknown".to_owned()]);
    broken.unless(records.count(&Query { ids, ..all.clone() }).await? == 1, "ids select");
    let busy = Query { status: Some("busy".to_owned()), ..all };
    broken.unless(records.count(&busy).await? == 4, "a status selects");
    Ok(())
}

async fn logs(records: &dyn Records, broken: &mut Broken) -> Result<(), RecordError> {
    let entry = |seq: u64, text: &str| LogEntry { seq, text: text.to_owned() };
    records.append("log", vec![entry(0, "a"), entry(2, "c")]).await?;
    records.append("log", vec![entry(2, "other"), entry(3, "d")]).await?;
    records.append("other", vec![entry(1, "b")]).await?;
    let all = records.read("log", None, 10).await?;
    let expected = [entry(0, "a"), entry(2, "c"), entry(3, "d")];
    broken.unless(all == expected, "a log has each entry once, in order");
    broken.unless(records.read("log", Some(2), 10).await? == expected[2..], "a log is read after a number");
    broken.unless(records.read("log", Some(0), 1).await? == expected[1..2], "a log is read in pages");
    broken.unless(records.last("log").await? == Some(3), "the last number of a log is known");
    broken.unless(records.last("none").await?.is_none(), "a log without entries has no last number");
    records.trim("log", 2).await?;
    broken.unless(records.read("log", None, 10).await? == expected[1..], "a log loses its first entries");
    records.forget("log").await?;
    broken.unless(records.read("log", None, 10).await?.is_empty(), "a log is removed");
    broken.unless(records.read("other", None, 10).await?.len() == 1, "other logs stay");
    Ok(())
}
