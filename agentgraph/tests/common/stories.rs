//! Three threads that together hold everything in format 1, without the additions of `later_stories`.

use std::borrow::Cow;
use std::collections::BTreeMap;

use agentgraph::Checkpointer;
use agentgraph::node::IntoGoto;
use agentgraph::prelude::*;
use serde::{Deserialize, Serialize};

use super::clock::Clock;
use super::tape::{Recorder, Tape};

#[derive(State, Serialize, Deserialize, Clone, Debug, Default, PartialEq)]
pub struct Story {
    pub title: String,
    pub number: Option<i64>,
    #[reduce(append)]
    pub lines: Vec<String>,
    #[reduce(merge)]
    pub table: BTreeMap<String, f64>,
    #[reduce(by_id)]
    pub people: Vec<Person>,
    #[reduce(with = longest)]
    pub longest: String,
    #[reduce(last)]
    pub count: u64,
    #[channel(run)]
    pub asked: bool,
    #[reduce(last)]
    #[channel(ephemeral)]
    pub flash: u8,
    #[reduce(last)]
    #[channel(untracked)]
    pub handle: u32,
}

#[derive(Serialize, Deserialize, Clone, Debug, Default, PartialEq)]
pub struct Person {
    pub id: String,
    pub age: u8,
}

impl Keyed for Person {
    fn key(&self) -> Cow<'_, str> {
        Cow::Borrowed(&self.id)
    }
}

fn longest(value: &mut String, write: String) {
    if write.len() > value.len() {
        *value = write;
    }
}

pub fn person(id: &str, age: u8) -> Person {
    Person { id: id.into(), age }
}

fn compile(graph: StateGraph<Story>, saver: impl Checkpointer) -> CompiledGraph<Story> {
    graph.compile().unwrap().services(Clock::default()).checkpointer(saver)
}

/// Builds a graph that asks two questions. In [`recorded`], one of them is answered, two dispatched
/// tasks have finished, one has failed, and the round of a join is open.
pub fn paused(saver: impl Checkpointer) -> CompiledGraph<Story> {
    compile(questions(), saver)
}

/// Builds the same graph with a newer schema: states that [`paused`] has stored are migrated.
pub fn migrated(saver: impl Checkpointer) -> CompiledGraph<Story> {
    let graph = questions().schema_version(1).migration(0, |fields| {
        fields.rename("title", "longest");
        if let Some(lines) = fields.take::<Vec<String>>("lines")? {
            fields.set("lines", lines.iter().map(|line| format!("{line}!")).collect::<Vec<_>>())?;
        }
        Ok(())
    });
    compile(graph, saver)
}

fn questions() -> StateGraph<Story> {
    async fn begin() -> Command<Story> {
        let update =
            Story::update().people([person("ada", 36), person("bob", 7)]).table([("pi", 3.25)]).flash(9);
        Command::update(update)
            .also_goto([2_u32, 1, 3].map(|page| Dispatch::new("read", page).into_goto()).to_vec())
    }
    async fn ask(ctx: Ctx) -> Result<StoryUpdate> {
        let name: String = ctx.interrupt("name?")?;
        let age: u8 = ctx.interrupt_with_schema(serde_json::json!({ "ask": "age?", "of": name }))?;
        Ok(Story::update().people([person(&name, age)]).lines(["asked"]))
    }
    async fn read(Input(page): Input<u32>, story: Snapshot<Story>) -> Result<Command<Story>> {
        match page {
            3 if story.number.is_none() => Err("page 3 is torn".into()),
            1 => Ok(Command::update(Story::update().remove_people(["bob"]).longest("page one")).goto("end")),
            _ => Ok(Command::update(
                Story::update().lines([format!("page {page}")]).overwrite_count(page.into()),
            )),
        }
    }
    let line = |text: &'static str| move || std::future::ready(Story::update().lines([text]));
    StateGraph::new()
        .node("begin", begin)
        .node("early", line("early"))
        .node("ask", ask)
        .node("read", read)
        .node("joined", line("joined"))
        .node("end", line("end"))
        .edge(START, "begin")
        .edge(START, "early")
        .edge("begin", "ask")
        .edge(["early", "ask"], "joined")
}

/// Returns the update of the long thread in its superstep after `n` others.
pub fn long_step(n: u64) -> StoryUpdate {
    let update = Story::update().count(n + 1);
    match n % 103 {
        0 => update.lines([format!("line {n}")]),
        1 => update.people([person(&format!("p{}", n % 5), (n % 100) as u8)]),
        2 => update.remove_people([format!("p{}", (n + 1) % 5)]),
        3 => update.table([(format!("t{}", n % 7), n as f64 / 4.0)]),
        4 if n > 500 => update.overwrite_lines(vec![format!("all new at {n}")]),
        5 => update.longest("x".repeat((n / 103) as usize)),
        6 => update.number(Some(-(n as i64))),
        _ => update,
    }
}

/// Builds a graph of 1,030 supersteps with every kind of change, enough for a segment.
pub fn long(saver: impl Checkpointer) -> CompiledGraph<Story> {
    let step = |story: Snapshot<Story>| std::future::ready(long_step(story.count));
    let more = |story: &Story| if story.count.is_multiple_of(1030) { END } else { "step" };
    compile(
        StateGraph::new().node("step", step).edge(START, "step").branch("step", more, ["step", END]),
        saver,
    )
}

/// Builds a graph with a large title. The full of another version of the graph only refers to it.
pub fn large(saver: impl Checkpointer, version: u32) -> CompiledGraph<Story> {
    async fn write(story: Snapshot<Story>) -> StoryUpdate {
        let update = Story::update().lines([format!("{} long", story.title.len())]);
        if story.title.is_empty() { update.title("T".repeat(5000)) } else { update }
    }
    let graph = StateGraph::new()
        .node("write", write)
        .node("again", write)
        .edge(START, "write")
        .edge("write", "again");
    let graph = if version == 1 { graph } else { graph.node("new", || async {}).edge("again", "new") };
    compile(graph, saver)
}

/// Returns the three threads as this release stores them. Of the long one, only the part that a reader
/// of its end needs; its title is so long that no full is written after the first.
pub async fn recorded() -> [(&'static str, Tape); 3] {
    let [first, second, third] = [Recorder::default(), Recorder::default(), Recorder::default()];
    let graph = paused(first.clone());
    graph.invoke(Story::update().title("paused").number(None)).thread("t").await.unwrap_err();
    graph.resume("cy").thread("t").await.unwrap_err();

    long(second.clone())
        .invoke(Story::update().title("long".repeat(1500)))
        .thread("t")
        .max_supersteps(1025)
        .await
        .unwrap();
    let mut tape = second.tape();
    tape.commits.retain(|commit| commit.step == 0 || commit.step >= 1024);

    large(third.clone(), 1).invoke(Story::update()).thread("t").max_supersteps(1).await.unwrap();
    large(third.clone(), 2).proceed().thread("t").max_supersteps(1).await.unwrap();
    [("paused", first.tape()), ("long", tape), ("large", third.tape())]
}
