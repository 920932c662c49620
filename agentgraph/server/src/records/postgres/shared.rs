//! Replicas on one database: who lives, who drives which thread, and what they tell each other.
//!
//! Times are those of the database. A row of `replica` is a life: once it is removed its name is never used
//! again, so a claim of a name without a row is free. The row of a thread is locked while a run is admitted
//! and while a claim is given back, so that no run is left without one who drives it. A claim is locked while
//! its holder adds to a log, so that nothing is added after another replica has it.

use std::time::Duration;

use agentgraph_checkpoint::tables::{Fault, Tables, Transaction};
use futures_util::FutureExt;
use tokio::sync::{broadcast, mpsc};
use tokio_util::task::AbortOnDropHandle;

use super::{COLUMNS, PostgresRecords, column, columns_of, metadata_of, record, signed, values};
use crate::error::RecordError;
use crate::records::{Admission, Admitted, LogEntry, Next, Record, SharedRecords, Signal, Stop};

macro_rules! now {
    () => {
        "(extract(epoch FROM clock_timestamp()) * 1000000)::bigint"
    };
}

macro_rules! is_open {
    () => {
        "kind = 'run' AND status IN ('pending', 'running')"
    };
}

/// How often a handle that hears nothing has others look.
const LOOK: Duration = Duration::from_secs(1);

/// Passes on the notifications of others, while the handle is there.
pub(super) fn hear(
    tables: &Tables,
    name: &str,
    signals: &broadcast::Sender<Signal>,
) -> AbortOnDropHandle<()> {
    let (hear, mut heard) = mpsc::unbounded_channel();
    let (name, signals) = (name.to_owned(), signals.clone());
    let hears = tables.hears();
    tables.listen(hear);
    AbortOnDropHandle::new(tokio::spawn(async move {
        if !hears {
            loop {
                let _ = signals.send(Signal::Missed);
                tokio::time::sleep(LOOK).await;
            }
        }
        while let Some(told) = heard.recv().await {
            let signal = told.map_or(Some(Signal::Missed), |told| read(&told, &name));
            if let Some(signal) = signal {
                // It fails while no server listens.
                let _ = signals.send(signal);
            }
        }
    }))
}

/// A notification: the name of its sender, a word, ids.
fn read(told: &str, name: &str) -> Option<Signal> {
    let mut words = told.split(' ').map(str::to_owned);
    if words.next()? == name {
        return None;
    }
    Some(match &*words.next()? {
        "admitted" => Signal::Admitted { thread: words.next()?, run: words.next()? },
        "stopped" => Signal::Stopped { run: words.next()? },
        "logged" => Signal::Logged { log: words.next()? },
        "free" => Signal::Free,
        _ => return None,
    })
}

fn stop_of(code: i16) -> Option<Stop> {
    match code {
        1 => Some(Stop::Interrupt),
        2 => Some(Stop::RollBack),
        _ => None,
    }
}

fn code_of(stop: Stop) -> i16 {
    match stop {
        Stop::Interrupt => 1,
        Stop::RollBack => 2,
    }
}

fn micros(time: Duration) -> i64 {
    i64::try_from(time.as_micros()).unwrap_or(i64::MAX / 4)
}

const FIRST: &str = concat!(
    "SELECT kind, id, parent, status, created, updated, version, data, stop FROM @record WHERE parent = $1 AND ",
    is_open!(),
    " ORDER BY created, id LIMIT 1"
);

async fn first(transaction: &Transaction<'_>, thread: &str) -> Result<Option<Next>, Fault> {
    let Some(row) = transaction.query_opt(FIRST, &[&thread]).await? else { return Ok(None) };
    Ok(Some(Next::Run(Box::new(record(&row)?), stop_of(row.try_get(8)?))))
}

/// What an admission tells the others.
struct Teller<'a> {
    transaction: &'a Transaction<'a>,
    channel: &'a str,
    name: &'a str,
}

impl Teller<'_> {
    async fn tell(&self, words: &str) -> Result<(), Fault> {
        let payload = format!("{} {words}", self.name);
        self.transaction.query("SELECT pg_notify($1, $2)", &[&self.channel, &payload]).await.map(drop)
    }
}

async fn admit(teller: &Teller<'_>, asked: &Admission) -> Result<Admitted, Fault> {
    let Teller { transaction, .. } = teller;
    let Admission { replica, run, thread, graph, .. } = asked;
    let data = thread.data.to_string();
    let replaced = transaction
        .execute(
            "UPDATE @record SET status = $1, updated = $2, data = $3, metadata = ($4::text)::jsonb, version = version + 1 \
         WHERE kind = 'thread' AND id = $5 AND version = $6",
        &[
            &thread.status, &thread.updated, &data, &metadata_of(thread), &thread.id, &signed(thread.version),
        ],
    ).await?;
    if replaced == 0 {
        return Ok(Admitted::Stale);
    }
    if asked.alone && first(transaction, &thread.id).await?.is_some() {
        return Ok(Admitted::Refused);
    }
    if let Some(stop) = asked.stops {
        let stops = concat!(
            "UPDATE @record SET stop = $2 WHERE parent = $1 AND stop = 0 AND ",
            is_open!(),
            " RETURNING id"
        );
        for stopped in transaction.query(stops, &[&thread.id, &code_of(stop)]).await? {
            teller.tell(&format!("stopped {}", stopped.try_get::<_, &str>(0)?)).await?;
        }
    }
    // The clocks of replicas differ, and the order of a thread's runs is that of their admission: of those
    // that wait, for the line, and of those that have ended, for readers that look for the runs after one.
    let newest = "SELECT max(created) FROM @record WHERE kind = 'run' AND parent = $1";
    let newest: Option<i64> = transaction.query_one(newest, &[&thread.id]).await?.try_get(0)?;
    insert(transaction, run, run.created.max(newest.map_or(0, |newest| newest + 1))).await?;
    teller.tell(&format!("admitted {} {}", thread.id, run.id)).await?;
    let claim = "INSERT INTO @claim (thread, replica, graph) VALUES ($1, $2, $3) ON CONFLICT (thread) DO UPDATE \
                 SET replica = excluded.replica, graph = excluded.graph \
                 WHERE NOT EXISTS (SELECT FROM @replica AS living WHERE living.id = claim.replica) RETURNING 1";
    if transaction.query_opt(claim, &[&thread.id, replica, graph]).await?.is_some() {
        return Ok(Admitted::Mine { is_new: true });
    }
    let held = "SELECT 1 FROM @claim WHERE thread = $1 AND replica = $2";
    Ok(match transaction.query_opt(held, &[&thread.id, replica]).await? {
        Some(_) => Admitted::Mine { is_new: false },
        None => Admitted::Elsewhere,
    })
}

async fn insert(transaction: &Transaction<'_>, run: &Record, created: i64) -> Result<(), Fault> {
    let insert = format!(
        "INSERT INTO @record ({COLUMNS}, metadata) VALUES ('run', $1, $2, $3, $4, $4, 1, $5, ($6::text)::jsonb)"
    );
    let Record { id, parent, status, data, .. } = run;
    transaction
        .execute(&insert, &[id, parent, status, &created, &data.to_string(), &metadata_of(run)])
        .await?;
    Ok(())
}

async fn next(transaction: &Transaction<'_>, replica: &str, thread: &str) -> Result<Next, Fault> {
    let held = "SELECT 1 FROM @claim WHERE thread = $1 AND replica = $2 FOR SHARE";
    if transaction.query_opt(held, &[&thread, &replica]).await?.is_none() {
        return Ok(Next::Lost);
    }
    if let Some(next) = first(transaction, thread).await? {
        return Ok(next);
    }
    // Locked, no run can be admitted; one may have been until now.
    let lock = "SELECT 1 FROM @record WHERE kind = 'thread' AND id = $1 FOR UPDATE";
    transaction.query(lock, &[&thread]).await?;
    if let Some(next) = first(transaction, thread).await? {
        return Ok(next);
    }
    let free = "DELETE FROM @claim WHERE thread = $1 AND replica = $2";
    transaction.execute(free, &[&thread, &replica]).await?;
    Ok(Next::Released)
}

#[async_trait::async_trait]
impl SharedRecords for PostgresRecords {
    async fn enter(&self, replica: &str, lease: Duration) -> Result<(), RecordError> {
        let statement = concat!("INSERT INTO @replica (id, until) VALUES ($1, $2 + ", now!(), ")");
        self.query(statement, values![replica.to_owned(), micros(lease)]).await.map(drop)
    }

    async fn renew(&self, replica: &str, lease: Duration) -> Result<bool, RecordError> {
        let statement = concat!("UPDATE @replica SET until = $2 + ", now!(), " WHERE id = $1 RETURNING 1");
        self.changes(statement, values![replica.to_owned(), micros(lease)]).await
    }

    async fn leave(&self, replica: &str) -> Result<(), RecordError> {
        let statement = "WITH gone AS (DELETE FROM @replica WHERE id = $1 RETURNING 1) \
                         SELECT pg_notify($2, $3) FROM gone";
        let free = format!("{} free", self.name);
        self.query(statement, values![replica.to_owned(), self.tables.schema().to_owned(), free])
            .await
            .map(drop)
    }

    async fn admit(&self, admission: Admission) -> Result<Admitted, RecordError> {
        let (channel, name) = (self.tables.schema().to_owned(), self.name.clone());
        let done = self.tables.call(move |connection| {
            let (admission, channel, name) = (admission.clone(), channel.clone(), name.clone());
            async move {
                let transaction = connection.begin().await?;
                let teller = Teller { transaction: &transaction, channel: &channel, name: &name };
                let admitted = admit(&teller, &admission).await?;
                // A transaction that is dropped is rolled back.
                if !matches!(admitted, Admitted::Refused | Admitted::Stale) {
                    transaction.commit().await?;
                }
                Ok(admitted)
            }
            .boxed()
        });
        done.await.map_err(RecordError::new)
    }

    async fn next(&self, replica: &str, thread: &str) -> Result<Next, RecordError> {
        let (replica, thread) = (replica.to_owned(), thread.to_owned());
        let done = self.tables.call(move |connection| {
            let (replica, thread) = (replica.clone(), thread.clone());
            async move {
                let transaction = connection.begin().await?;
                let next = next(&transaction, &replica, &thread).await?;
                transaction.commit().await?;
                Ok(next)
            }
            .boxed()
        });
        done.await.map_err(RecordError::new)
    }

    async fn take_over(
        &self,
        replica: &str,
        graphs: &[String],
        limit: usize,
    ) -> Result<Vec<String>, RecordError> {
        // First a statement of its own: one that renews its lease at the same time is either seen alive, or
        // learns that it is dead.
        let bury = concat!("DELETE FROM @replica WHERE until < ", now!());
        self.query(bury, values![]).await?;
        let take = "UPDATE @claim SET replica = $1 WHERE thread IN (SELECT thread FROM @claim AS free \
                    WHERE NOT EXISTS (SELECT FROM @replica AS living WHERE living.id = free.replica) \
                    AND graph = ANY($2) LIMIT $3 FOR UPDATE SKIP LOCKED) RETURNING thread";
        let limit = i64::try_from(limit).unwrap_or(i64::MAX);
        let rows = self.query(take, values![replica.to_owned(), graphs.to_vec(), limit]).await?;
        rows.iter().map(|row| column(row, 0)).collect()
    }

    async fn stop(&self, run: &str, stop: Stop) -> Result<bool, RecordError> {
        let statement = concat!(
            "WITH open AS (UPDATE @record SET stop = CASE WHEN stop = 0 THEN $2 ELSE stop END WHERE id = $1 AND ",
            is_open!(),
            " RETURNING 1) SELECT pg_notify($3, $4) FROM open"
        );
        let told = format!("{} stopped {run}", self.name);
        let channel = self.tables.schema().to_owned();
        self.changes(statement, values![run.to_owned(), code_of(stop), channel, told]).await
    }

    async fn stops(&self, replica: &str) -> Result<Vec<(String, Stop)>, RecordError> {
        let statement = concat!(
            "SELECT id, stop FROM @record JOIN @claim ON claim.thread = record.parent \
             WHERE claim.replica = $1 AND stop <> 0 AND ",
            is_open!()
        );
        let rows = self.query(statement, values![replica.to_owned()]).await?;
        let stops =
            rows.iter().map(|row| Ok((column(row, 0)?, stop_of(column(row, 1)?).unwrap_or(Stop::Interrupt))));
        stops.collect()
    }

    async fn append_claimed(
        &self,
        (replica, thread): (&str, &str),
        log: &str,
        entries: Vec<LogEntry>,
        fleeting: bool,
    ) -> Result<bool, RecordError> {
        let statement = concat!(
            "WITH held AS (SELECT 1 FROM @claim WHERE thread = $1 AND replica = $2 FOR SHARE), \
             added AS (INSERT INTO @log (log, seq, text, fleeting) \
                 SELECT $3::text, seq, text, CASE WHEN $4 THEN ",
            now!(),
            " END FROM unnest($5::bigint[], $6::text[]) AS entry (seq, text) WHERE EXISTS (SELECT FROM held) \
                 ON CONFLICT DO NOTHING) \
             SELECT pg_notify($7, $8) FROM held"
        );
        let (numbers, texts) = columns_of(entries);
        let told = format!("{} logged {log}", self.name);
        let channel = self.tables.schema().to_owned();
        let (thread, replica) = (thread.to_owned(), replica.to_owned());
        self.changes(
            statement,
            values![thread, replica, log.to_owned(), fleeting, numbers, texts, channel, told],
        )
        .await
    }

    async fn begin(&self, log: &str) -> Result<(), RecordError> {
        let statement = concat!(
            "WITH begun AS (INSERT INTO @log (log, seq, text, fleeting) SELECT $1::text, 0, '', ",
            now!(),
            " WHERE NOT EXISTS (SELECT FROM @log WHERE log = $1) ON CONFLICT DO NOTHING) SELECT pg_notify($2, $3)"
        );
        let told = format!("{} logged {log}", self.name);
        self.query(statement, values![log.to_owned(), self.tables.schema().to_owned(), told]).await.map(drop)
    }

    async fn sweep(&self, age: Duration) -> Result<(), RecordError> {
        let statement = concat!("DELETE FROM @log WHERE fleeting < ", now!(), " - $1");
        self.query(statement, values![micros(age)]).await.map(drop)
    }

    fn signals(&self) -> broadcast::Receiver<Signal> {
        self.signals.subscribe()
    }
}
