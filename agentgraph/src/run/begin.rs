//! The start of a call: the checkpoint that it finds on its thread, and the action that it takes there.

use std::collections::HashSet;
use std::sync::Arc;

use crate::context::CallMethod;
use crate::engine::call::answers::Answers;
use crate::engine::call::edit::Edit;
use crate::engine::flow::order::Order;
use crate::engine::journal::Journal;
use crate::engine::left_over::Leftovers;
use crate::engine::load::{Remains, Replay, RestoredState, read_remains, replay, restore};
use crate::engine::unknown_fields::{check_kept_states, check_results};
use crate::error::{Code, Error};
use crate::graph::run_graph::RunGraph;
use crate::graph::{Discipline, GraphCore};
use crate::persistence::Persistence;
use crate::run::attached::Attached;
use crate::run::busy::{UndoneRun, newest_run};
use crate::run::open::{StoredTasks, open_work_inside, replay_pass};
use crate::run::parts::RunParts;
use crate::session::StoredSessions;
use crate::typed::{AnyState, AnyUpdate};
use crate::words::{OpenId, OpenRequest, Spent, until_text};
use agentgraph_checkpoint::engine::page;
use agentgraph_checkpoint::services::from_micros;
use agentgraph_checkpoint::{CheckpointId, ListQuery, PendingWrite, Place, RunId, Tail};

/// The request of the caller.
#[derive(Clone)]
pub(super) enum CallRequest {
    Invoke(AnyUpdate),
    Resume(Answers),
    Proceed,
    Edit(Edit),
}

impl CallRequest {
    pub(super) fn method(&self) -> CallMethod {
        match self {
            CallRequest::Invoke(_) => CallMethod::Invoke,
            CallRequest::Resume(_) => CallMethod::Resume,
            CallRequest::Proceed => CallMethod::Proceed,
            CallRequest::Edit(_) => CallMethod::UpdateState,
        }
    }
}

/// The state of a thread, as a call finds it.
pub(super) struct FoundThread<'a> {
    persistence: &'a Persistence,
    name: Arc<str>,
    /// Boxed, so that a call on a new thread has no room for it.
    found: Option<Box<FoundCheckpoint>>,
    /// Whether an unfinished run is given up for this one.
    pub(super) gives_up: bool,
    /// The run that is undone.
    rolled_back: Option<UndoneRun>,
    /// The original of a copied thread, for an edit that makes the remains of its tasks the copy's own.
    copied_from: Option<Arc<str>>,
}

struct FoundCheckpoint {
    replayed: Box<Replay>,
    left: Remains,
    writes: Vec<PendingWrite>,
    /// The branch to start, if the call continues from a checkpoint that it names.
    forks: Option<u32>,
    /// The recorded merge order after that checkpoint, if there is one.
    order: Option<Order>,
}

impl FoundCheckpoint {
    async fn read(
        core: &Arc<GraphCore>,
        persistence: &Persistence,
        place: Place<'_>,
        mut tail: Tail,
        forks: Option<u32>,
    ) -> Result<Box<Self>, Error> {
        let replayed = replay(&*persistence.saver, place, &mut tail).await?;
        let left = read_remains(core, place, (replayed.id, &replayed.header), &tail.writes)?;
        let number = replayed.id.step.saturating_add(replayed.header.ahead);
        let order = match forks {
            Some(_) if core.rules.discipline == Discipline::Eager => {
                Some(Order::read(&*persistence.saver, place, replayed.id, number).await?)
            }
            _ => None,
        };
        Ok(Box::new(FoundCheckpoint { replayed, left, writes: tail.writes, forks, order }))
    }

    /// Checks that a call would lose nothing of the checkpoint that the graph does not know.
    fn check(
        &self,
        graph: &Attached,
        start: &CallRequest,
        thread: &FoundThread<'_>,
        restored: &RestoredState,
    ) -> Result<(), Error> {
        let (core, place) = (&*graph.core, thread.persistence.place(&thread.name));
        let is_copy = thread.copied_from.is_some();
        // A copy contains everything that the thread contains, known to the program or not.
        let keeps = core.stored.unknown_fields.keeps || is_copy;
        restored.check(keeps, place)?;
        if !keeps && !matches!(start, CallRequest::Invoke(_)) {
            check_kept_states(core, place, &self.replayed.header.eager.kept)?;
        }
        let begins_anew = matches!(start, CallRequest::Invoke(_) | CallRequest::Edit(Edit::AsStart(_)));
        if is_copy || self.forks.is_some() || begins_anew {
            return Ok(());
        }
        check_results(core, &thread.persistence.codec, place, &self.left.tasks)
    }
}

impl<'a> FoundThread<'a> {
    /// Reads the checkpoint `from`, or the newest one. An edit (`edits`) of the newest one stays on its
    /// branch.
    pub(super) async fn open(
        core: &Arc<GraphCore>,
        persistence: &'a Persistence,
        name: Arc<str>,
        from: Option<CheckpointId>,
        edits: bool,
    ) -> Result<Self, Error> {
        let place = persistence.place(&name);
        let forks = match from {
            None => None,
            Some(from) => next_branch(persistence, place, from, edits).await?,
        };
        let found = match (persistence.saver.get(place, from).await?, from) {
            (None, None) => None,
            (None, Some(from)) => return Err(unknown_checkpoint(place, from)),
            (Some(tail), _) => {
                Some(Box::pin(FoundCheckpoint::read(core, persistence, place, tail, forks)).await?)
            }
        };
        Ok(FoundThread { persistence, name, found, gives_up: false, rolled_back: None, copied_from: None })
    }

    /// Reads the checkpoint that the newest run of the thread started on.
    pub(super) async fn before_newest_run(
        core: &Arc<GraphCore>,
        persistence: &'a Persistence,
        name: Arc<str>,
    ) -> Result<Self, Error> {
        let newest = newest_run(&*persistence.saver, persistence.place(&name)).await?;
        let found = match newest.as_ref().map(|run| run.before) {
            Some(None) => FoundThread {
                persistence,
                name,
                found: None,
                gives_up: true,
                rolled_back: None,
                copied_from: None,
            },
            None => Self::open(core, persistence, name, None, false).await?,
            Some(before) => Self::open(core, persistence, name, before, false).await?,
        };
        Ok(FoundThread { rolled_back: newest, ..found })
    }

    /// The thread as it is before its first run, for a branch that shares nothing with the others.
    pub(super) async fn at_start(persistence: &'a Persistence, name: Arc<str>) -> Result<Self, Error> {
        let rolled_back = newest_run(&*persistence.saver, persistence.place(&name)).await?;
        Ok(FoundThread { persistence, name, found: None, gives_up: true, rolled_back, copied_from: None })
    }

    /// Sets the thread that this one is a copy of. The remains of tasks have the ids of that thread.
    pub(super) fn is_copy_of(&mut self, core: &Arc<GraphCore>, original: &Arc<str>) -> Result<(), Error> {
        self.copied_from = Some(Arc::clone(original));
        let Some(found) = &mut self.found else { return Ok(()) };
        let FoundCheckpoint { replayed, left, writes, .. } = &mut **found;
        let place = Place { thread: original, ..self.persistence.place(&self.name) };
        *left = read_remains(core, place, (replayed.id, &replayed.header), writes)?;
        Ok(())
    }

    /// The step of the checkpoint that the call continues from.
    pub(super) fn head(&self) -> u64 {
        self.found.as_ref().map_or(0, |found| found.replayed.id.step)
    }

    /// The open requests in subgraphs of the unfinished superstep. If the call continues these subgraphs
    /// (`goes_on`), they must store nothing that this would lose.
    pub(super) async fn open_inside(
        &self,
        core: &Arc<GraphCore>,
        goes_on: bool,
    ) -> Result<Vec<OpenRequest>, Error> {
        let mut open = Vec::new();
        // A branch of its own calls its subgraphs anew.
        let Some(FoundCheckpoint { replayed, left, forks: None, .. }) = self.found.as_deref() else {
            return Ok(open);
        };
        let place = self.persistence.place(&self.name);
        let core = &RunGraph::restore(core, &replayed.header, &mut Vec::new());
        let (header, id) = (&replayed.header, replayed.id);
        for task in (StoredTasks { core, place, header, id, left: &left.tasks }).open() {
            let inside = open_work_inside(core, &*self.persistence.saver, place, &task).await?;
            match inside.refused {
                Some(refused) if goes_on => return Err(refused),
                _ => open.extend(inside.requests),
            }
        }
        Ok(open)
    }
}

/// The branch that a call from a checkpoint starts; `None` for an edit of the newest one.
async fn next_branch(
    persistence: &Persistence,
    place: Place<'_>,
    from: CheckpointId,
    edits: bool,
) -> Result<Option<u32>, Error> {
    let newest = ListQuery { limit: Some(1), ..ListQuery::default() };
    let newest = page(&*persistence.saver, place, newest).await?.first().map(|row| row.id);
    let newest = newest.filter(|newest| !edits || *newest != from);
    newest.map(|id| id.branch.checked_add(1).ok_or_else(|| unknown_checkpoint(place, from))).transpose()
}

pub(super) fn unknown_checkpoint(place: Place<'_>, id: CheckpointId) -> Error {
    let problem = format!("there is no checkpoint {id}: `history` lists those there are");
    Error::new(Code::UnknownCheckpoint, problem).on_thread(Some(place.thread))
}

/// The start of a call.
pub(super) struct Opening {
    pub(super) run: RunId,
    pub(super) parts: RunParts,
    /// The amounts that earlier calls of the run used up.
    pub(super) spent: Spent,
    pub(super) next: FirstAction,
}

/// The first action of the call.
pub(super) enum FirstAction {
    Input {
        input: AnyUpdate,
        abandoned: Option<RunId>,
    },
    /// The answers, and the open requests of subgraphs.
    Answer(Answers, Vec<OpenRequest>),
    /// Continues; the open requests of subgraphs.
    GoOn(Vec<OpenRequest>),
    /// Replays a checkpoint, on a branch of its own.
    Fork,
    Edit(Edit, Option<EditBase>),
}

/// The checkpoint that is edited, with the run and thread in the ids of its tasks.
pub(super) struct EditBase {
    pub(super) run: RunId,
    pub(super) id: CheckpointId,
    pub(super) ahead: u64,
    pub(super) writes: Vec<PendingWrite>,
    /// The thread that it was copied from, if any.
    pub(super) thread: Option<Arc<str>>,
}

impl Opening {
    /// How a call with this request starts on the thread that it has found. `inside` are the open requests of
    /// the thread's subgraphs.
    pub(super) fn of(
        graph: &Attached,
        start: CallRequest,
        thread: Option<FoundThread<'_>>,
        inside: Vec<OpenRequest>,
    ) -> Result<Self, Error> {
        let run = graph.shared.services.run_id();
        let Some(mut thread) = thread else {
            let CallRequest::Invoke(input) = start else { return Err(no_checkpointer()) };
            let next = FirstAction::Input { input, abandoned: None };
            return Ok(Opening::fresh(graph, None, run, next));
        };
        let channels = graph.core.schema.channels().len();
        let mut journal = Box::new(Journal::new(thread.persistence, Arc::clone(&thread.name), run, channels));
        let Some(found) = thread.found.take() else {
            return Self::on_new_thread(graph, start, &thread, (run, journal));
        };
        let place = thread.persistence.place(&thread.name);
        let restored = restore(&graph.core, thread.persistence, place, &found.replayed)?;
        found.check(graph, &start, &thread, &restored)?;
        journal.continue_from(&graph.core, &found.replayed, &restored, !found.writes.is_empty());
        if let Some(branch) = found.forks {
            journal.fork(branch);
        }
        match start {
            CallRequest::Invoke(input) => {
                Self::new_run(graph, input, &thread, found, (run, journal, restored.state), &inside)
            }
            start => Self::continued(graph, start, thread, found, (run, journal, restored.state), inside),
        }
    }

    /// The start of a call on a thread without checkpoints.
    fn on_new_thread(
        graph: &Attached,
        start: CallRequest,
        thread: &FoundThread<'_>,
        (run, mut journal): (RunId, Box<Journal>),
    ) -> Result<Self, Error> {
        let undone = thread.rolled_back.as_ref();
        let next = match start {
            CallRequest::Invoke(input) => {
                journal.begin_on(undone.map_or(0, |gone| gone.branch));
                FirstAction::Input { input, abandoned: undone.map(|gone| gone.run) }
            }
            CallRequest::Resume(_) | CallRequest::Proceed | CallRequest::Edit(Edit::Here(None)) => {
                return Err(nothing_to_resume("the thread does not exist"));
            }
            CallRequest::Edit(edit) => FirstAction::Edit(edit, None),
        };
        Ok(Opening::fresh(graph, Some(journal), run, next))
    }

    /// The start of a run on a thread that has a checkpoint.
    fn new_run(
        graph: &Attached,
        input: AnyUpdate,
        thread: &FoundThread<'_>,
        found: Box<FoundCheckpoint>,
        (run, mut journal, state): (RunId, Box<Journal>, AnyState),
        inside: &[OpenRequest],
    ) -> Result<Self, Error> {
        let FoundCheckpoint { replayed, left, forks, .. } = *found;
        let unfinished = !replayed.header.next.is_empty();
        if unfinished && !thread.gives_up && forks.is_none() {
            let place = thread.persistence.place(&thread.name);
            let next = still_to_run(graph, thread.persistence, place, &replayed, &left.tasks, state);
            return Err(run_unfinished(&next, &left.tasks, inside));
        }
        let undone = thread.rolled_back.as_ref().map(|gone| gone.run);
        let abandoned = undone.or(unfinished.then_some(replayed.header.run));
        journal.begin_run(run);
        let parts = RunParts::fresh(&graph.core, Arc::new(state), Some(journal));
        let parts = RunParts { outputs: replayed.header.outputs, ..parts };
        let next = FirstAction::Input { input, abandoned };
        Ok(Opening { run, parts, spent: Spent::default(), next })
    }

    /// The start of a call that continues, answers, replays or edits a checkpoint.
    fn continued(
        graph: &Attached,
        start: CallRequest,
        thread: FoundThread<'_>,
        found: Box<FoundCheckpoint>,
        (run, mut journal, state): (RunId, Box<Journal>, AnyState),
        inside: Vec<OpenRequest>,
    ) -> Result<Self, Error> {
        let FoundCheckpoint { replayed, left, writes, forks, order } = *found;
        let Replay { mut header, id, .. } = *replayed;
        let place = thread.persistence.place(&thread.name);
        let edits = matches!(start, CallRequest::Edit(_));
        if header.next.is_empty() && !edits {
            return Err(nothing_to_resume("its last run has finished"));
        }
        let replays = matches!(start, CallRequest::Proceed);
        let run = if edits || forks.is_some() { run } else { header.run };
        journal.set_run(run);
        let edited =
            EditBase { run: header.run, id, ahead: header.ahead, writes, thread: thread.copied_from };
        let next = match start {
            CallRequest::Edit(edit) => FirstAction::Edit(edit, Some(edited).filter(|_| forks.is_none())),
            CallRequest::Resume(answers) => FirstAction::Answer(answers, inside),
            _ if forks.is_some() => FirstAction::Fork,
            _ => FirstAction::GoOn(inside),
        };
        let begins = matches!(&next, FirstAction::Edit(Edit::AsStart(_), _));
        // Answers and the results of siblings belong to the checkpoint, so a new branch starts without them.
        let mut left = if forks.is_some() { Remains::default() } else { left };
        let mut spent = left.spent.take().unwrap_or(std::mem::take(&mut header.spent));
        let mut parts = RunParts::continued(&graph.core, place, header, state, left, Some(journal))?;
        if forks.is_some() {
            parts.position.fork(order.filter(|_| replays));
        }
        if begins {
            // A new run inherits neither the sessions nor the spent amounts of the run before.
            (parts.sessions, parts.sessions_changed, spent) = (StoredSessions::new(), true, Spent::default());
        }
        Ok(Opening { run, parts, spent, next })
    }

    /// The start of a new run on the initial state.
    fn fresh(graph: &Attached, journal: Option<Box<Journal>>, run: RunId, next: FirstAction) -> Self {
        let state = Arc::new(graph.core.schema.initial());
        let parts = RunParts::fresh(&graph.core, state, journal);
        Opening { run, parts, spent: Spent::default(), next }
    }
}

pub(super) fn no_thread() -> Error {
    let problem = "the graph has a checkpointer, so a run needs a thread: add `.thread(\"..\")`";
    Error::new(Code::NoThread, problem)
}

/// The error of a call on a thread of a graph that keeps none.
pub(super) fn no_threads(thread: &str) -> Error {
    let problem = format!(
        "the call is on the thread `{thread}`, and the graph keeps no threads: add `.checkpointer(..)` to the compiled \
         graph, or leave out `.thread(..)`"
    );
    Error::new(Code::NoCheckpointer, problem)
}

fn no_checkpointer() -> Error {
    let problem =
        "a run can be continued only if the graph keeps it: add `.checkpointer(..)` to the compiled graph";
    Error::new(Code::NoCheckpointer, problem)
}

fn nothing_to_resume(why: &str) -> Error {
    Error::new(
        Code::NothingToResume,
        format!("there is nothing to continue: {why}; use `invoke` to begin a run"),
    )
}

/// The nodes of an unfinished run that are still to run, each once.
fn still_to_run(
    graph: &Attached,
    persistence: &Persistence,
    place: Place<'_>,
    replayed: &Replay,
    left: &Leftovers,
    mut state: AnyState,
) -> Vec<String> {
    let Replay { header, id, .. } = replayed;
    let core = &RunGraph::restore(&graph.core, header, &mut Vec::new());
    let tasks = StoredTasks { core, place, header, id: *id, left };
    let of_tasks = || tasks.open().map(|task| task.node).collect();
    let codec = &persistence.codec;
    let of_pass = |driver| replay_pass(driver, core, codec, place.thread, left, &mut state).ok();
    // A pass that this graph cannot continue is described by the names that are stored.
    let next: Vec<String> = graph.driver.as_ref().and_then(of_pass).unwrap_or_else(of_tasks);
    let mut seen = HashSet::new();
    next.into_iter().chain(header.deferred.iter().cloned()).filter(|node| seen.insert(node.clone())).collect()
}

fn run_unfinished(next: &[String], left_over: &Leftovers, inside: &[OpenRequest]) -> Error {
    let mut open: Vec<OpenId> = left_over.iter().flat_map(|(task, left)| left.open_ids(*task)).collect();
    open.extend(inside.iter().filter_map(OpenId::of));
    let mut asked: Vec<String> =
        open.iter().filter(|open| open.until.is_none()).map(|open| open.id.to_string()).collect();
    asked.sort();
    let first_end = open.iter().filter_map(|open| open.until).min();
    let open = match (asked.is_empty(), first_end) {
        (true, None) if next.is_empty() => "use `proceed()` to commit what is done".to_owned(),
        (true, None) => "use `proceed()` to continue it".to_owned(),
        (true, Some(end)) => format!("it sleeps {}: use `proceed()` then", until_text(from_micros(end))),
        (false, _) => format!("it waits for answers to {}: use `resume`", asked.join(", ")),
    };
    let next: Vec<String> = next.iter().map(|node| format!("`{node}`")).collect();
    let next = if next.is_empty() { "nothing is".to_owned() } else { next.join(", ") };
    let problem = format!(
        "the thread's last run has not finished: {next} still to run; {open}, or `.abandon()` to give it up"
    );
    Error::new(Code::RunUnfinished, problem)
}
