//! The contract of [`Records`], as a test of any store.

use serde_json::{Map, Value, json};

use super::{Kind, LogEntry, Query, Record, Records, SortBy};
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
    broken.unless(records.insert(first.clone()).await?, "a record is added");
    broken.unless(!records.insert(first.clone()).await?, "a second record of an id is refused");
    let stored = records.get(Kind::Thread, "a").await?;
    broken.unless(stored == Some(Record { version: 1, ..first.clone() }), "a record is read as it was added");
    broken.unless(records.get(Kind::Run, "a").await?.is_none(), "kinds have ids of their own");
    let changed = Record { version: 1, status: "error".to_owned(), data: json!({}), ..first };
    broken.unless(records.replace(changed.clone()).await?, "a record is replaced");
    broken.unless(!records.replace(changed.clone()).await?, "a change of an old version is refused");
    let stored = records.get(Kind::Thread, "a").await?;
    broken.unless(stored == Some(Record { version: 2, ..changed.clone() }), "a change counts the version up");
    let missing = Record { id: "missing".to_owned(), ..changed };
    broken.unless(!records.replace(missing).await?, "a record that is missing is not replaced");
    broken.unless(records.remove(Kind::Thread, "a").await?, "a record is removed");
    broken.unless(!records.remove(Kind::Thread, "a").await?, "a record is removed once");
    Ok(())
}

async fn pages(records: &dyn Records, broken: &mut Broken) -> Result<(), RecordError> {
    for number in 0..10_i64 {
        // Two of each time of creation, so that the id decides.
        let metadata = json!({ "n": number, "owner": { "name": if number < 4 { "ada" } else { "grace" } } });
        records.insert(thread(&format!("id-{number}"), number / 2, metadata)).await?;
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
