//! Several runs of a question, and a vote over their answers.
//!
//! ```text
//! START -> run (a task for each run, side by side) -> vote -> END
//! ```
//!
//! Each run has a thread of its own, in which its calls are stored as those of a single run are; the thread
//! of the vote has the ballots. So a process that is killed anywhere repeats no run that has ended, and no
//! call of another whose result was stored.

use std::collections::BTreeMap;

use agentgraph::{
    BoxError, CallContext, CancellationToken, CompileError, CompiledGraph, Input, Route, START, Snapshot,
    State, StateGraph,
};

use super::solution::{AnswerKind, Figures, Solution, Votes};
use super::{GaiaAgent, SolveOptions};
use crate::score::are_alike;
use crate::task::Task;

/// The stored state of a vote.
#[derive(State, Clone, Debug, Default, PartialEq)]
pub(super) struct Voting {
    /// How many runs vote.
    pub(super) runs: u8,
    /// The solutions of the runs, by number.
    #[reduce(merge)]
    pub(super) ballots: BTreeMap<u8, Solution>,
    /// The solution of the question.
    pub(super) elected: Option<Solution>,
}

/// What the runs work with. Passed to each call, and never stored.
pub(super) struct Voters {
    pub(super) agent: GaiaAgent,
    pub(super) thread: String,
    pub(super) task: Task,
    pub(super) drain: CancellationToken,
}

#[derive(Route)]
enum Next {
    Run(u8),
    #[route(end)]
    Done,
}

/// The thread of a run, or of the vote, which is number 0. No run and question have such a thread.
pub(super) fn thread(number: u8, thread: &str) -> String {
    format!("vote-{number}/{thread}")
}

pub(super) fn graph() -> Result<CompiledGraph<Voting>, CompileError> {
    StateGraph::new().node("run", run).node("vote", vote).route(START, runs).edge("run", "vote").compile()
}

fn runs(voting: &Voting) -> Vec<Next> {
    match voting.elected {
        Some(_) => vec![Next::Done],
        None => (1..=voting.runs).map(Next::Run).collect(),
    }
}

/// A run whose models failed is a ballot, too; one that was stopped is none, and goes on with the next call.
async fn run(Input(number): Input<u8>, voters: CallContext<Voters>) -> Result<VotingUpdate, BoxError> {
    let options = SolveOptions { drain: Some(voters.drain.clone()), ..SolveOptions::default() };
    let solved = voters.agent.solve_with(&thread(number, &voters.thread), &voters.task, options).await?;
    Ok(Voting::update().ballots(BTreeMap::from([(number, solved)])))
}

async fn vote(voting: Snapshot<Voting>) -> VotingUpdate {
    Voting::update().elected(elect(&voting.ballots, voting.runs))
}

/// The first of the largest group of answers that are alike. Final answers alone are counted if there are
/// any, else the best so far; `unknown` wins only if all runs say so.
fn elect(ballots: &BTreeMap<u8, Solution>, runs: u8) -> Option<Solution> {
    let rank = |ballot: &Solution| match ballot.kind {
        AnswerKind::Final | AnswerKind::Cached | AnswerKind::Pattern => 2,
        AnswerKind::BestText | AnswerKind::BestResult => 1,
        AnswerKind::Unknown => 0,
    };
    let highest = ballots.values().map(rank).max()?;
    let counted: Vec<_> = ballots.values().filter(|ballot| rank(ballot) == highest).collect();
    let agree = |one: &Solution| counted.iter().filter(|other| are_alike(&one.answer, &other.answer)).count();
    // Of several groups `max_by_key` takes the last.
    let winner = counted.iter().rev().max_by_key(|ballot| agree(ballot))?;
    let mut elected = Solution::clone(winner);
    elected.votes = Some(Votes { agree: u8::try_from(agree(winner)).unwrap_or(u8::MAX), runs });
    elected.is_done = highest == 2 || ballots.values().all(|ballot| ballot.is_done);
    elected.error = ballots.values().find_map(|ballot| ballot.error.clone());
    elected.figures = Figures::default();
    ballots.values().for_each(|ballot| elected.figures.add(&ballot.figures));
    Some(elected)
}
