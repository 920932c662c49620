//! Calls to a store as lines of text, and what they return as lines of text.

use std::collections::HashMap;
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use super::Extension;
use crate::checkpointer::{Catalog, Checkpointer, Upkeep};
use crate::error::StoreError;
use crate::id::{CheckpointId, TaskId};
use crate::lease::{Claim, HeldLease, HeldQuery, LeaseTerms};
use crate::leases::Leases;
use crate::row::{
    ListQuery, PendingWrite, Place, Put, PutWrites, Rewrite, Row, RowKind, Waiting, WaitingQuery,
};

/// Makes the calls of a script, one a line, and returns them with an `=> answer` line after each. Lines that
/// begin with `=>` are skipped, so a transcript can be run as a script. A call that fails answers with its
/// code. A call of an extension that the store lacks answers with `no leases`, `no catalog` or `no upkeep`.
///
/// ```text
/// put THREAD[/NAMESPACE] BRANCH.STEP full|delta RECORD [segment=RECORD] [clears] [by=LEASE]
///     [after=BRANCH.STEP] [with=TASK:SLOT=BYTES ..]
/// get PLACE [BRANCH.STEP]         row PLACE BRANCH.STEP     list PLACE [branch=N] [before=N] [limit=N]
/// writes PLACE BRANCH.STEP [TASK:SLOT=BYTES ..] [by=LEASE]
/// waiting [after=THREAD] [limit=N]
/// threads     namespaces THREAD   delete THREAD             copy FROM TO
/// acquire THREAD NOW UNTIL as LEASE [seize]                 (times in seconds; an expired lease is seized)
/// renew THREAD LEASE UNTIL        release THREAD LEASE
/// stop THREAD NOW                 held NOW [thread=THREAD] [after=THREAD] [limit=N] [asked]
/// rewrite PLACE [full=BRANCH.STEP:RECORD ..] [unfold=BRANCH.STEP ..] [gone=BRANCH:STEP..STEP ..] [by=LEASE]
/// branches PLACE                  compact
/// ```
///
/// In calls and in answers, `large:c` means 70,000 times the letter `c`.
///
/// ```
/// # #[tokio::main(flavor = "current_thread")]
/// # async fn main() {
/// use agentgraph_checkpoint::{MemorySaver, conformance};
///
/// let script = "put t 0.0 full a\nput t 0.1 delta b\nput t 0.1 delta c\nget t";
/// let transcript = conformance::transcript(&MemorySaver::new(), script).await;
/// assert!(transcript.ends_with("put t 0.1 delta c\n=> E_STALE\nget t\n=> full 0.0 a, delta 0.1 b\n"));
/// # }
/// ```
pub async fn transcript(store: &dyn Checkpointer, script: &str) -> String {
    let mut teller = Teller::default();
    let mut transcript = String::new();
    for line in calls(script) {
        let answer = teller.answer(store, line).await;
        transcript += &format!("{line}\n{}\n", shown(&answer));
    }
    transcript
}

/// Checks that a store answers as the script says: by the `=>` line after a call, and without one by `ok`.
/// The error is the first answer that differs, after the lines before it.
pub(super) async fn check(store: &dyn Checkpointer, script: &str) -> Result<(), String> {
    let mut teller = Teller::default();
    let mut lines = script.lines().map(str::trim).filter(|line| !line.is_empty()).peekable();
    let mut before = String::new();
    while let Some(call) = lines.next() {
        let expected = lines.next_if(|line| line.starts_with("=>")).unwrap_or("=> ok");
        let answer = shown(&teller.answer(store, call).await);
        if answer != expected {
            return Err(format!("{before}{call}\n{answer}\nand not\n{expected}"));
        }
        before += &format!("{call}\n{answer}\n");
    }
    Ok(())
}

fn shown(answer: &str) -> String {
    format!("=> {answer}").trim_end().to_owned()
}

/// How often `large:` repeats its letter.
const LARGE: usize = 70_000;

fn whole(line: &str) -> String {
    let mut parts = line.split("large:");
    let mut whole = parts.next().unwrap_or_default().to_owned();
    for part in parts {
        let mut letters = part.chars();
        whole.extend(letters.next().into_iter().flat_map(|letter| std::iter::repeat_n(letter, LARGE)));
        whole += letters.as_str();
    }
    whole
}

fn shortened(bytes: &[u8]) -> String {
    let text = String::from_utf8_lossy(bytes);
    let Some(letter) = text.chars().next_back().filter(|_| text.len() >= LARGE) else {
        return text.into_owned();
    };
    match text.trim_end_matches(letter) {
        before if text.len() - before.len() == LARGE => format!("{before}large:{letter}"),
        _ => text.into_owned(),
    }
}

fn calls(script: &str) -> impl Iterator<Item = &str> {
    script.lines().map(str::trim).filter(|line| !line.is_empty() && !line.starts_with("=>"))
}

/// The extensions that the calls of a script need.
pub(super) fn needs(script: &str) -> Vec<Extension> {
    let words: Vec<&str> = calls(script).filter_map(|line| line.split_whitespace().next()).collect();
    let is_needed = |extension: &Extension| words.iter().any(|word| extension_of(word) == Some(*extension));
    Extension::ALL.into_iter().filter(is_needed).collect()
}

fn extension_of(word: &str) -> Option<Extension> {
    match word {
        "acquire" | "renew" | "release" | "stop" | "held" => Some(Extension::Leases),
        "waiting" | "namespaces" | "branches" => Some(Extension::Catalog),
        "copy" | "rewrite" | "compact" => Some(Extension::Upkeep),
        _ => None,
    }
}

/// Takes a thread. A lease whose time has passed is seized if the store leaves that to the caller.
pub(super) async fn acquire(
    leases: &dyn Leases,
    thread: &str,
    terms: LeaseTerms,
) -> Result<Claim, StoreError> {
    match leases.acquire(thread, terms).await? {
        Claim::Held { until, .. } if until <= terms.now && !terms.seize => {
            leases.acquire(thread, LeaseTerms { seize: true, ..terms }).await
        }
        claim => Ok(claim),
    }
}

/// Why a line has no answer.
enum Failed {
    Store(StoreError),
    Lacks(Extension),
    Unreadable,
}

impl From<StoreError> for Failed {
    fn from(error: StoreError) -> Self {
        Failed::Store(error)
    }
}

/// Keeps the fences of granted leases by their names in the script.
#[derive(Default)]
struct Teller {
    fences: HashMap<String, u64>,
    greatest: u64,
}

impl Teller {
    async fn answer(&mut self, store: &dyn Checkpointer, line: &str) -> String {
        match self.call(store, line).await {
            Ok(answer) => answer,
            Err(Failed::Store(error)) => error.code().to_string(),
            Err(Failed::Lacks(extension)) => format!("no {extension}"),
            Err(Failed::Unreadable) => "this is no call".to_owned(),
        }
    }

    async fn call(&mut self, store: &dyn Checkpointer, line: &str) -> Result<String, Failed> {
        let line = whole(line);
        let words: Vec<&str> = line.split_whitespace().collect();
        let lacks = |extension: Extension| Failed::Lacks(extension);
        match words.first().and_then(|word| extension_of(word)) {
            None => self.call_core(store, &words).await,
            Some(one @ Extension::Leases) => {
                self.call_leases(store.leases().ok_or(lacks(one))?, &words).await
            }
            Some(one @ Extension::Catalog) => call_catalog(store.catalog().ok_or(lacks(one))?, &words).await,
            Some(one @ Extension::Upkeep) => {
                self.call_upkeep(store.upkeep().ok_or(lacks(one))?, &words).await
            }
        }
    }

    async fn call_core(&self, store: &dyn Checkpointer, words: &[&str]) -> Result<String, Failed> {
        Ok(match *words {
            ["put", at, step, kind, record, ref rest @ ..] => {
                let writes = rest.iter().filter_map(|word| word.strip_prefix("with="));
                let writes: Vec<PendingWrite> = writes.map(write).collect::<Result<_, _>>()?;
                let put = self.put(at, step, kind, record, rest)?;
                store.put(Put { writes: &writes, ..put }).await.map(ok)?
            }
            ["get", at, ref rest @ ..] => {
                let at_step = rest.first().map(|step| id(step)).transpose()?;
                match store.get(place(at), at_step).await? {
                    None => "nothing".to_owned(),
                    Some(tail) => {
                        let rows = tail.rows.iter().map(show_row);
                        listed(rows.chain(tail.writes.iter().map(show_write)))
                    }
                }
            }
            ["row", at, step] => {
                let row = store.row(place(at), id(step)?).await?;
                row.as_ref().map_or("nothing".to_owned(), show_row)
            }
            ["list", at, ref rest @ ..] => {
                listed(store.list(place(at), query(rest)?).await?.iter().map(show_row))
            }
            ["writes", at, step, ref rest @ ..] => {
                let writes = rest.iter().filter(|word| !word.starts_with("by="));
                let writes: Vec<PendingWrite> = writes.map(|text| write(text)).collect::<Result<_, _>>()?;
                let put =
                    PutWrites { fence: self.fence(rest)?, ..PutWrites::new(place(at), id(step)?, &writes) };
                store.put_writes(put).await.map(ok)?
            }
            ["threads"] => store.threads().await?.join(", "),
            ["delete", thread] => store.delete_thread(thread).await.map(ok)?,
            _ => return Err(Failed::Unreadable),
        })
    }

    async fn call_leases(&mut self, leases: &dyn Leases, words: &[&str]) -> Result<String, Failed> {
        Ok(match *words {
            ["acquire", thread, now, until, "as", name, ref rest @ ..] => {
                let terms =
                    LeaseTerms { now: time(now)?, until: time(until)?, seize: rest.contains(&"seize") };
                let claim = acquire(leases, thread, terms).await?;
                self.describe_claim(name, claim)
            }
            ["renew", thread, name, until] => {
                let renewed = leases.renew(thread, self.named(name)?, time(until)?).await?;
                if renewed { "yes".to_owned() } else { "no".to_owned() }
            }
            ["release", thread, name] => leases.release(thread, self.named(name)?).await.map(ok)?,
            ["stop", thread, now] => {
                let asked = leases.ask_to_stop(thread, time(now)?).await?;
                asked.map_or("nobody", |fence| self.holder(fence)).to_owned()
            }
            ["held", now, ref rest @ ..] => {
                let found = leases.held(held_query(now, rest)?).await?;
                listed(found.iter().map(|lease| self.describe_held(lease)))
            }
            _ => return Err(Failed::Unreadable),
        })
    }

    async fn call_upkeep(&self, upkeep: &dyn Upkeep, words: &[&str]) -> Result<String, Failed> {
        Ok(match *words {
            ["compact"] => upkeep.compact().await.map(ok)?,
            ["copy", from, to] => upkeep.copy_thread(from, to).await.map(ok)?,
            ["rewrite", at, ref rest @ ..] => {
                let Parts { fulls, unfold, gone } = &Parts::read(rest)?;
                let fence = self.fence(rest)?;
                upkeep.rewrite(Rewrite { place: place(at), fence, fulls, unfold, gone }).await.map(ok)?
            }
            _ => return Err(Failed::Unreadable),
        })
    }

    fn describe_claim(&mut self, name: &str, claim: Claim) -> String {
        match claim {
            Claim::Granted { fence } if fence <= self.greatest => {
                format!("granted, with the fence {fence}, which is not greater than {}", self.greatest)
            }
            Claim::Granted { fence } => {
                self.greatest = fence;
                self.fences.insert(name.to_owned(), fence);
                "granted".to_owned()
            }
            Claim::Held { fence, until } => {
                format!("held by {} until {}", self.holder(fence), seconds(until))
            }
        }
    }

    fn describe_held(&self, lease: &HeldLease) -> String {
        let HeldLease { thread, fence, until, asked_to_stop } = lease;
        let asked = if *asked_to_stop { " asked" } else { "" };
        format!("{thread} {} until {}{asked}", self.holder(*fence), seconds(*until))
    }

    fn holder(&self, fence: u64) -> &str {
        let holder = self.fences.iter().find(|(_, known)| **known == fence);
        holder.map_or("nobody", |(name, _)| name)
    }

    fn named(&self, name: &str) -> Result<u64, Failed> {
        self.fences.get(name).copied().ok_or(Failed::Unreadable)
    }

    fn fence(&self, words: &[&str]) -> Result<u64, Failed> {
        words.iter().find_map(|word| word.strip_prefix("by=")).map_or(Ok(0), |name| self.named(name))
    }

    fn put<'a>(
        &self,
        at: &'a str,
        step: &str,
        kind: &str,
        record: &'a str,
        rest: &[&'a str],
    ) -> Result<Put<'a>, Failed> {
        Ok(Put {
            place: place(at),
            id: id(step)?,
            fence: self.fence(rest)?,
            kind: if kind == "full" { RowKind::Full } else { RowKind::Delta },
            record: record.as_bytes(),
            segment: rest.iter().find_map(|word| word.strip_prefix("segment=")).map(str::as_bytes),
            clears_writes: rest.contains(&"clears"),
            parent: rest.iter().find_map(|word| word.strip_prefix("after=")).map(id).transpose()?,
            writes: &[],
        })
    }
}

async fn call_catalog(catalog: &dyn Catalog, words: &[&str]) -> Result<String, Failed> {
    Ok(match *words {
        ["branches", at] => listed(catalog.branches(place(at)).await?.iter().map(u32::to_string)),
        ["namespaces", thread] => {
            listed(catalog.namespaces(thread).await?.iter().map(|name| format!("`{name}`")))
        }
        ["waiting", ref rest @ ..] => {
            let mut query = WaitingQuery::default();
            for word in rest {
                match word.split_once('=') {
                    Some(("after", thread)) => query.after = Some(thread),
                    Some(("limit", text)) => query.limit = Some(number(text)?),
                    _ => return Err(Failed::Unreadable),
                }
            }
            let found = catalog.waiting(query).await?;
            listed(found.iter().map(|Waiting { thread, namespace, at, request }| {
                let slash = if namespace.is_empty() { "" } else { "/" };
                format!("{thread}{slash}{namespace} {at} {}", show_write(request))
            }))
        }
        _ => return Err(Failed::Unreadable),
    })
}

fn ok((): ()) -> String {
    "ok".to_owned()
}

fn listed(items: impl Iterator<Item = String>) -> String {
    items.collect::<Vec<_>>().join(", ")
}

fn seconds(time: SystemTime) -> f64 {
    time.duration_since(UNIX_EPOCH).unwrap_or_default().as_secs_f64()
}

fn held_query<'a>(now: &str, words: &[&'a str]) -> Result<HeldQuery<'a>, Failed> {
    let mut query = HeldQuery::at(time(now)?);
    for word in words {
        match word.split_once('=') {
            Some(("thread", thread)) => query.thread = Some(thread),
            Some(("after", thread)) => query.after = Some(thread),
            Some(("limit", text)) => query.limit = Some(number(text)?),
            None if *word == "asked" => query.asked_to_stop = true,
            _ => return Err(Failed::Unreadable),
        }
    }
    Ok(query)
}

/// The arguments of a `rewrite` line.
#[derive(Default)]
struct Parts {
    fulls: Vec<(CheckpointId, Vec<u8>)>,
    unfold: Vec<CheckpointId>,
    gone: Vec<(u32, std::ops::Range<u64>)>,
}

impl Parts {
    fn read(words: &[&str]) -> Result<Self, Failed> {
        let mut parts = Parts::default();
        for word in words {
            match word.split_once('=') {
                Some(("full", text)) => {
                    let (step, record) = text.split_once(':').ok_or(Failed::Unreadable)?;
                    parts.fulls.push((id(step)?, record.as_bytes().to_vec()));
                }
                Some(("unfold", step)) => parts.unfold.push(id(step)?),
                Some(("gone", text)) => {
                    let (branch, steps) = text.split_once(':').ok_or(Failed::Unreadable)?;
                    let (start, end) = steps.split_once("..").ok_or(Failed::Unreadable)?;
                    parts.gone.push((number(branch)?, number(start)?..number(end)?));
                }
                Some(("by", _)) => {}
                _ => return Err(Failed::Unreadable),
            }
        }
        Ok(parts)
    }
}

fn query(words: &[&str]) -> Result<ListQuery, Failed> {
    let mut query = ListQuery::default();
    for word in words {
        match word.split_once('=') {
            Some(("branch", text)) => query.branch = Some(number(text)?),
            Some(("before", text)) => query.before = Some(number(text)?),
            Some(("limit", text)) => query.limit = Some(number(text)?),
            _ => return Err(Failed::Unreadable),
        }
    }
    Ok(query)
}

fn write(text: &str) -> Result<PendingWrite, Failed> {
    let (key, bytes) = text.split_once('=').ok_or(Failed::Unreadable)?;
    let (task, slot) = key.split_once(':').ok_or(Failed::Unreadable)?;
    let task = TaskId::from_u128(number(task)?);
    Ok(PendingWrite { task, slot: number(slot)?, bytes: bytes.as_bytes().to_vec() })
}

fn place(text: &str) -> Place<'_> {
    match text.split_once('/') {
        Some((thread, namespace)) => Place { thread, namespace },
        None => Place::root(text),
    }
}

fn id(text: &str) -> Result<CheckpointId, Failed> {
    let (branch, step) = text.split_once('.').ok_or(Failed::Unreadable)?;
    Ok(CheckpointId::new(number(branch)?, number(step)?))
}

fn time(text: &str) -> Result<SystemTime, Failed> {
    UNIX_EPOCH.checked_add(Duration::from_secs(number(text)?)).ok_or(Failed::Unreadable)
}

fn number<T: std::str::FromStr>(text: &str) -> Result<T, Failed> {
    text.parse().map_err(|_| Failed::Unreadable)
}

fn show_row(row: &Row) -> String {
    let kind = match row.kind {
        RowKind::Full => "full",
        RowKind::Delta => "delta",
        RowKind::Segment => "segment",
    };
    format!("{kind} {} {}", row.id, shortened(&row.record))
}

fn show_write(write: &PendingWrite) -> String {
    format!("write {}:{} {}", write.task.to_u128(), write.slot, shortened(&write.bytes))
}
