//! Faults of hosts, and the clause that finds each of them. Every clause has at least one fault.

use super::driver::DriverFault::{self, *};
use super::faulty_caller::CallerFault::{self, *};
use super::faulty_host::HostFault::{self, *};

/// A fault of a host of either kind, or of the way to it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Fault {
    Host(HostFault),
    Driver(DriverFault),
    Caller(CallerFault),
}

impl From<HostFault> for Fault {
    fn from(fault: HostFault) -> Self {
        Fault::Host(fault)
    }
}

impl From<DriverFault> for Fault {
    fn from(fault: DriverFault) -> Self {
        Fault::Driver(fault)
    }
}

impl From<CallerFault> for Fault {
    fn from(fault: CallerFault) -> Self {
        Fault::Caller(fault)
    }
}

/// Each fault with a clause that finds it.
pub fn faults() -> Vec<(Fault, &'static str)> {
    macro_rules! faults {
        ($($fault:ident => $clause:literal,)*) => { vec![$((Fault::from($fault), $clause)),*] };
    }
    faults! {
        MixesReplies => "updates of a superstep are merged in task order",
        KeepsStatesByThread => "all tasks of a superstep read the same state",
        RunsOneAtATime => "tasks of a superstep run side by side",
        DividesCalls => "a loop of 600 supersteps runs to its end",
        SkipsCommits => "the history has a checkpoint for each superstep",
        TakesBytesForText => "values of every kind arrive as they are",
        LimitsMessages => "a state of two megabytes arrives whole, and so does an update of that size",
        FindsRepliesByNode => "each dispatch gets its own input, and updates are merged in the order of the dispatches",
        LosesLimits => "the time limit of a dispatch holds where its task runs",
        RetriesItself => "each attempt has its number",
        FiresTimersAtOnce => "the run waits between two attempts",
        FailsForItsNodes => "after the last attempt the run fails with the error of the node",
        LosesTheLastChange => "a failing node fails the run with its code, and results of its siblings are kept",
        DiesOfPanics => "a panic of a node is a failure of the node",
        LosesCodes => "errors of the engine keep their codes",
        LosesFailures => "an error handler gets the failure of its node",
        ForgetsAnswers => "the n-th question gets the n-th answer",
        SwapsAnswers => "questions with keys are open together, and answered by their ids",
        LosesTheLastChange => "a node that waits does not run its finished siblings again",
        ShowsCommitsOnly => "a node that waits does not run its finished siblings again",
        FailsOfRefusals => "an answer that does not fit is refused and changes nothing",
        KeepsStatesByThread => "an answer to a question that has changed is not delivered",
        FailsOfRefusedAnswers => "an answer that its node refuses is void, and its question is asked again with the reason",
        LosesReasons => "a node may refuse the answer to one key and keep the others",
        ProceedsByItself => "static interrupts stop a run before and after nodes",
        LosesSessions => "a session has the changes of all earlier tasks",
        LosesSessions => "two tasks of a superstep that change one session are an error",
        MakesIds => "a task has one id in all its attempts and with each answer",
        MakesIdsOfNodes => "no two tasks have the same id",
        LosesSupersteps => "a task knows its run, its thread, its node, its superstep and its attempt",
        LosesPaths => "tasks of subgraphs run, at every depth",
        LosesAddedGraphs => "tasks of a subgraph that a temporary edit added run",
        ForgetsNamespaces => "a subgraph with a memory for its thread remembers its earlier calls",
        ForgetsNamespaces => "questions inside a subgraph are asked at the root, and answered inside",
        ForgetsNamespaces => "a failure inside a subgraph fails the run, and `proceed()` goes on inside",
        LosesExits => "a node of a subgraph can leave it",
        LosesEdits => "a node can add nodes and edges for its run",
        LosesGraphs => "a node can add nodes and edges for its run",
        LosesTheLastChange => "edits outlive a question",
        LosesGraphs => "an edit that does not fit is refused where it is made",
        LosesKeptOutputs => "a node that keeps its output can be skipped",
        LosesDroppedEdits => "edits of a superstep that conflict are dropped whole, and reported",
        KeepsStatesByThread => "the nodes of a pass run in the order of the queue, with inputs in the order of their edges",
        LosesEdits => "a node of a pass can add nodes and edges for it",
        StartsAnew => "a node of a pass can skip nodes, which then have their last outputs",
        LosesTheLastChange => "a question in a pass does not make finished nodes run again",
        LosesTheLastChange => "a failed pass goes on with the node that failed",
        WaitsForAll => "a branch of an eager graph does not wait for a slower one",
        KeepsStatesByThread => "a task of an eager graph reads the state of the commit that made it",
        StopsAtQuestions => "a question in an eager graph holds its own branch only",
        FindsRepliesByNode => "a node behind a group of dispatches runs once, after all of them",
        LosesSettings => "a call makes as many supersteps as it may, and `proceed()` goes on",
        LosesSettings => "no more tasks run at a time than the call allows",
        LosesSpending => "units that tasks spend count for the run's budget",
        LosesDrains => "a node can stop its run at the next boundary",
        LosesTimesOfReplies => "time goes on while a call runs",
        LosesSettings => "a superstep that takes too long is cut off",
        HoldsTimersBack => "a superstep that takes too long is cut off",
        HoldsTimersBack => "a join of an eager graph fires after its timeout",
        LosesSettings => "a deadline stops a run",
        FiresTimersAtOnce => "a deadline stops a run",
        SharesRows => "threads that are called at the same time do not mix",
        LowersNames => "any text can name a thread, and different texts name different threads",
        CutsNames => "any text can name a thread, and different texts name different threads",
        StartsAnew => "a thread keeps its state from run to run, and each run has an id of its own",
        HasOneSeed => "a thread keeps its state from run to run, and each run has an id of its own",
        ShowsOldStates => "the end of a call names the newest checkpoint of its thread",
        StartsUnknownThreads => "a thread that does not exist has no state, and cannot be continued",
        IgnoresEdits => "the state of a thread can be changed between two calls",
        ForgetsSteps => "a durable step is done once, however often its task runs",
        StopsItsClock => "a sleep ends when its time has come, and not before",
        HasOneContext => "a node's context is made where the node runs, for its thread",
        IgnoresCancel => "a cancelled call stops, and `proceed()` continues its run",
        ForgetsItsJournal => "a run whose worker dies ends as usual, and no finished task runs again",
    }
}
