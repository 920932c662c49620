//! `graph.branches(thread)` lists the branches of a thread as a model of forks says, before and after
//! pruning.

use agentgraph::CheckpointId;
use agentgraph::checkpoint::Retention;
use agentgraph::prelude::*;
use agentgraph::run::Branch;
use proptest::prelude::*;

use crate::common::words::{Words, WordsUpdate, says};

fn said(word: &str) -> WordsUpdate {
    Words::update().seen([word])
}

fn graph() -> CompiledGraph<Words> {
    let graph = StateGraph::new().node("a", says("a")).node("b", says("b")).edge(START, "a").edge("a", "b");
    graph.compile().unwrap().checkpointer(MemorySaver::new())
}

/// A branch as the model knows it: where it began, and its newest step.
type Known = (Option<CheckpointId>, u64);

fn shown(branches: &[Branch]) -> Vec<(u32, Option<CheckpointId>, CheckpointId)> {
    branches.iter().map(|one| (one.number, one.began_at, one.newest)).collect()
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 60, ..ProptestConfig::default() })]

    #[test]
    fn branches_are_those_of_the_forks(forks in prop::collection::vec((any::<u16>(), any::<bool>()), 0..8)) {
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
        runtime.block_on(async {
            let graph = graph();
            assert!(graph.branches("t").await.unwrap().is_empty());
            graph.invoke(said("i")).thread("t").await.unwrap();
            // The input, `a` and `b`.
            let mut model: Vec<Known> = vec![(None, 2)];
            let mut points: Vec<CheckpointId> = (0..3).map(|step| CheckpointId::new(0, step)).collect();
            for (chosen, is_edit) in forks {
                let at = points[usize::from(chosen) % points.len()];
                let (newest_branch, newest) = (model.len() as u32 - 1, model[model.len() - 1].1);
                let branch = if is_edit {
                    graph.update_state("t").at(at).update(said("x")).await.unwrap()
                } else {
                    graph.update_state("t").at(at).await.unwrap()
                };
                // An edit of the newest checkpoint continues its branch.
                if at == CheckpointId::new(newest_branch, newest) {
                    model[newest_branch as usize].1 += 1;
                } else {
                    model.push((Some(at), at.step + 1));
                }
                let expected = CheckpointId::new(model.len() as u32 - 1, model[model.len() - 1].1);
                assert_eq!(branch, expected);
                points.push(expected);
            }
            let expected: Vec<_> = (0..)
                .zip(&model)
                .map(|(number, (began_at, step))| (number, *began_at, CheckpointId::new(number, *step)))
                .collect();
            assert_eq!(shown(&graph.branches("t").await.unwrap()), expected);
            // A branch still says where it began if that checkpoint is gone.
            graph.prune(Retention::keep_last(1)).thread("t").await.unwrap();
            for branch in graph.branches("t").await.unwrap() {
                assert_eq!(branch.began_at, model[branch.number as usize].0);
            }
        });
    }
}

#[tokio::test]
async fn a_branch_names_the_run_that_wrote_its_end() {
    let graph = graph();
    let first = graph.invoke(said("i")).thread("t").await.unwrap().run();
    graph.update_state("t").at(CheckpointId::new(0, 0)).await.unwrap();
    let second = graph.proceed().thread("t").await.unwrap().run();
    let branches = graph.branches("t").await.unwrap();
    assert_eq!(branches.iter().map(|one| one.run).collect::<Vec<_>>(), [first, second]);
    assert!(graph.branches("nobody").await.unwrap().is_empty());
}
