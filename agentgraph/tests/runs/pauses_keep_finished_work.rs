//! What survives a pause and the edits during it: in memory and in SQLite, with each durability.
#![cfg(feature = "sqlite")]

use std::sync::Arc;

use agentgraph::prelude::*;
use agentgraph::{Code, Durability};
use serde::{Deserialize, Serialize};

#[derive(State, Serialize, Deserialize, Clone, Debug, Default, PartialEq)]
struct Day {
    #[reduce(append)]
    said: Vec<String>,
    #[channel(ephemeral)]
    flash: u8,
    #[channel(untracked)]
    handle: u8,
    #[channel(run)]
    turns: u8,
}

fn says(word: impl Into<String>) -> DayUpdate {
    Day::update().said([word.into()])
}

async fn savers() -> [(&'static str, Arc<dyn Checkpointer>); 2] {
    let file = SqliteSaver::in_memory().unwrap();
    [("memory", Arc::new(MemorySaver::new())), ("sqlite", Arc::new(file))]
}

const MODES: [Durability; 3] = [Durability::Sync, Durability::Async, Durability::Exit];

fn said(outcome: &Outcome<Day>) -> String {
    outcome.output().said.join(" ")
}

#[tokio::test]
async fn short_lived_channels_survive_a_pause_and_an_edit_as_declared() {
    let set = || async { Day::update().flash(5).handle(7).turns(3) };
    async fn read(ctx: Ctx, day: Snapshot<Day>) -> Result<DayUpdate> {
        let answer: String = ctx.interrupt("?")?;
        Ok(says(format!("{answer}:{}:{}:{}", day.flash, day.handle, day.turns)))
    }
    let late = async |day: Snapshot<Day>| says(format!("{}:{}:{}", day.flash, day.handle, day.turns));
    for mode in MODES {
        for (name, saver) in savers().await {
            let graph = StateGraph::new().node("set", set).node("read", read).node("late", late);
            let graph = graph.edge(START, "set").edge("set", "read").edge("read", "late").compile().unwrap();
            let graph = graph.checkpointer(saver);
            let asked = graph.invoke(says("i")).thread("t").durability(mode).await.unwrap();
            let paused = asked.checkpoint().unwrap();
            graph.update_state("t").update(says("edit")).await.unwrap();
            let ended = graph.resume("a").thread("t").durability(mode).await.unwrap();
            // An untracked channel does not outlive the call that wrote it.
            assert_eq!(said(&ended), "i edit a:5:0:3 0:0:3", "{name} {mode:?}");
            graph.proceed().from(paused).thread("t").durability(mode).await.unwrap();
            let again = graph.resume("b").thread("t").durability(mode).await.unwrap();
            assert_eq!(said(&again), "i b:5:0:3 0:0:3", "{name} {mode:?}");
            let anew = graph.invoke(says("j")).from(paused).thread("t").max_supersteps(0).await.unwrap();
            let Day { flash, turns, .. } = anew.output();
            assert_eq!((flash, turns), (&0, &0), "{name} {mode:?}");
        }
    }
}

#[tokio::test]
async fn partial_answers_survive_an_edit_and_old_interrupt_ids_do_not() {
    async fn page(ctx: Ctx, Input(n): Input<u32>) -> Result<DayUpdate> {
        let first: String = ctx.interrupt(n)?;
        let second: String = ctx.interrupt(n + 10)?;
        Ok(says(format!("{n}{first}{second}")))
    }
    let pages = || async { Command::<Day>::to([1_u32, 2, 3].map(|n| Dispatch::new("page", n)).to_vec()) };
    for mode in MODES {
        for (name, saver) in savers().await {
            let graph = StateGraph::new().node("pages", pages).node("page", page).edge(START, "pages");
            let graph = graph.compile().unwrap().checkpointer(saver);
            let ask = graph.invoke(says("i")).thread("t").durability(mode).await.unwrap();
            let ids: Vec<_> = ask.interrupts().iter().map(|one| one.id.unwrap()).collect();
            graph.resume_many([(ids[1], "x")]).thread("t").durability(mode).await.unwrap();
            graph.update_state("t").update(says("edit")).await.unwrap();
            let stale = graph.resume_many([(ids[0], "x")]).thread("t").await.unwrap_err();
            assert_eq!(stale.code(), Code::UnknownInterrupt);
            for (answer, asked) in [("y", vec![1, 12, 3]), ("z", vec![11, 13])] {
                let open = graph.state("t").await.unwrap().unwrap().interrupts;
                let questions: Vec<u64> = open.iter().map(|one| one.value.as_u64().unwrap()).collect();
                assert_eq!(questions, asked, "{name} {mode:?}");
                let answers = open.iter().map(|one| (one.id.unwrap(), answer));
                graph.resume_many(answers).thread("t").durability(mode).await.unwrap();
            }
            let end = graph.state("t").await.unwrap().unwrap();
            assert_eq!(end.values.said.join(" "), "i edit 1yz 2xy 3yz", "{name} {mode:?}");
        }
    }
}

#[tokio::test]
async fn a_failure_beside_a_question_keeps_the_question_its_answer_and_the_finished_sibling() {
    async fn ask(ctx: Ctx) -> Result<DayUpdate> {
        Ok(says(ctx.interrupt::<String>("?")?))
    }
    async fn broken(day: Snapshot<Day>) -> Result<DayUpdate> {
        if day.turns == 0 { Err("not yet".into()) } else { Ok(says("mended")) }
    }
    for mode in MODES {
        for (name, saver) in savers().await {
            let graph = StateGraph::new().node("ask", ask).node("broken", broken);
            let graph = graph.node("ok", || async { says("ok") });
            let graph = graph.edge(START, "ask").edge(START, "broken").edge(START, "ok").compile().unwrap();
            let graph = graph.checkpointer(saver);
            graph.invoke(says("i")).thread("t").durability(mode).await.unwrap_err();
            assert_eq!(graph.state("t").await.unwrap().unwrap().interrupts.len(), 1);
            graph.resume("A").thread("t").durability(mode).await.unwrap_err();
            let twice = graph.resume("A").thread("t").durability(mode).await.unwrap_err();
            assert_eq!(twice.code(), Code::NothingToResume);
            graph.update_state("t").update(Day::update().turns(1)).await.unwrap();
            let ended = graph.proceed().thread("t").durability(mode).await.unwrap();
            assert_eq!(said(&ended), "i A mended ok", "{name} {mode:?}");
        }
    }
}
