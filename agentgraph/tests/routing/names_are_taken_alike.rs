//! Names are taken alike: a `String`, a reference to one, a borrowed part of one and a literal, in every
//! call that takes a name.
// Borrowed names are what this file is about.
#![allow(clippy::needless_borrows_for_generic_args)]

use std::borrow::Cow;
use std::sync::Arc;

use agentgraph::checkpoint::Retention;
use agentgraph::graph::Sources;
use agentgraph::json_state::{JsonFunctions, JsonReducer};
use agentgraph::prelude::*;
use agentgraph::{Budget, all, any, n_of};
use serde::{Deserialize, Serialize};
use serde_json::json;

#[derive(State, Serialize, Deserialize, Clone, Debug, Default)]
struct Words {
    #[reduce(append)]
    seen: Vec<String>,
}

async fn note(ctx: Ctx) -> WordsUpdate {
    Words::update().seen([ctx.node()])
}

/// A name that is not in the program's text.
fn name(text: &str) -> String {
    text.chars().collect()
}

#[tokio::test]
async fn the_builder_takes_names_that_are_made_at_run_time() -> Result<()> {
    let (first, second, third, last) = (name("first"), name("second"), name("third"), name("last"));
    let nodes = [&first, &second, &third, &last];
    let mut graph = StateGraph::<Words>::new();
    for node in &nodes {
        graph = graph.node(node, note);
    }
    for (from, to) in &[(&first, &second), (&first, &third)] {
        graph = graph.edge(from, to);
    }
    let joined: Vec<String> = vec![second.clone(), third.clone()];
    let graph = graph
        .edge(START, &first)
        .edge(&joined[1], &*last)
        .edge([second.clone(), third], last.clone())
        .interrupt_before([&second])
        .interrupt_after([second.as_str()])
        .on_limit(&*last)
        .default_on_error(&last)
        .session::<u32>(&last)
        .template(name("say"), |word: String| {
            move || {
                let word = word.clone();
                async move { Words::update().seen([word]) }
            }
        })
        .compile()?
        .agent_name(first)
        .namespace(&last);
    assert_eq!(graph.nodes().collect::<Vec<_>>(), ["first", "second", "third", "last"]);

    let sources: [Sources; 3] = [all(&joined), any(&joined), n_of(2, joined.iter().map(String::as_str))];
    for sources in sources {
        let graph = StateGraph::<Words>::new().node("second", note).node("third", note).node("last", note);
        let graph = graph.edge(START, "second").edge(START, "third").edge(sources, Cow::Borrowed(&*last));
        assert_eq!(graph.compile()?.invoke(Words::update()).finish().await?.seen.len(), 3);
    }

    let graph = StateGraph::<Words>::new()
        .node(Arc::<str>::from("second"), note.targets(&joined).on_error(&joined[1]))
        .node(&joined[1], note)
        .branch(START, |_: &Words| ["second", "third"], &joined)
        .edge(["second", &joined[1]], END)
        .route("third", |_: &Words| End::End);
    assert_eq!(graph.compile()?.invoke(Words::update()).finish().await?.seen, ["second", "third"]);
    Ok(())
}

#[derive(Route)]
enum End {
    #[route(end)]
    End,
}

#[tokio::test]
async fn nodes_edit_and_go_to_names_that_are_made_at_run_time() -> Result<()> {
    async fn plan(ctx: Ctx) -> Result<Command<Words>> {
        let (other, own, unit) = (name("write"), ctx.node().to_owned(), name("pages"));
        ctx.edits().add_fn::<Words, _>(&*name("aside"), note)?;
        ctx.edits().add_edge(&own, "aside")?;
        ctx.edits().remove_edge(own.as_str(), "aside")?;
        ctx.edits().prepend_edge(&&*own, &other)?;
        ctx.edits().remove_node(name("aside"))?;
        ctx.spend(&*unit, 2);
        ctx.spend(unit, 3);
        ctx.version(&other, 1).await?;
        ctx.once(&*other, async { Ok(()) }).await?;
        Ok(Command::to(&other).also_goto(Dispatch::new(&other, ())).also_goto(other))
    }
    let graph = StateGraph::new()
        .node("plan", plan.targets(["write"]))
        .node("write", note)
        .edge(START, "plan")
        .compile()?;
    let run = graph.invoke(Words::update()).budget(Budget::new().units(name("pages"), 9)).await?;
    assert_eq!(run.output().seen, ["write", "write"]);
    assert_eq!(run.spent("pages"), 5);
    Ok(())
}

#[tokio::test]
async fn threads_are_named_alike() -> Result<()> {
    let (ada, bob) = (name("ada"), name("bob"));
    let graph = StateGraph::new().node("note", note).edge(START, "note").compile()?;
    let graph = graph.checkpointer(MemorySaver::new());
    graph.invoke(Words::update()).thread(&&*ada).await?;
    graph.update_state(&ada).as_node(&name("note"), Words::update().seen(["tea"])).await?;
    assert_eq!(graph.state(&ada).await?.unwrap().values.seen, ["note", "tea"]);
    let head = graph.state(ada.as_str()).await?.unwrap().id;
    assert!(graph.state_at(ada.clone(), head).await?.is_some());
    assert!(graph.topology_at(ada.clone(), head).await?.is_some());
    assert_eq!(graph.history(&ada).await?.len(), 3);
    assert_eq!(graph.branches(ada.clone()).await?.len(), 1);
    assert!(graph.report(ada.clone()).await?.is_some());
    graph.cancel(&ada).await?;
    graph.copy_thread(&ada, bob.clone()).await?;
    assert!(graph.waiting().after(&ada).await?.is_empty());
    assert!(graph.running().after(&ada).await?.is_empty());
    graph.prune(Retention::keep_last(1)).thread(&bob).await?;
    graph.delete_thread(bob).await?;
    Ok(())
}

#[tokio::test]
async fn dependency_graphs_workflows_and_json_channels_take_them_too() -> Result<()> {
    let (a, b) = (name("a"), name("b"));
    let pass = DependencyGraph::<u32>::new()
        .node(&a, |_: Deps<'_, u32>| async { 1 })
        .node(b.clone(), |deps: Deps<'_, u32>| {
            let sum: u32 = deps.iter().map(|(_, output)| output).sum();
            async move { sum }
        })
        .edge(&*a, &b)
        .session::<u32>(&a)
        .compile()?;
    let end = pass.invoke(()).for_this_pass(|edits| {
        edits.remove_edge(&a, &*b).add_edge(a.as_str(), &&*b).skip::<&String>([]);
    });
    assert_eq!(end.finish().await?.get("b"), Some(&1));

    async fn double(number: u32) -> Result<u32> {
        Ok(2 * number)
    }
    let twice = Workflow::new(&*name("twice"), double).compile()?;
    assert_eq!(twice.invoke(2).returned().await?, 4);

    let functions = JsonFunctions::new().with(&a, |_, _| Ok(()));
    let channels = JsonChannels::new()
        .channel(&a, json!([]), JsonReducer::by_field(&*name("at")))
        .channel(&&*b, json!(0), JsonReducer::with(&a, |_, _| Ok(())))
        .with_functions(&functions)?;
    let mut state = JsonState::initial(&channels);
    let update = JsonUpdate::new().set(&a, json!({ "at": "x" })).remove(a.as_str(), [&name("x")]);
    state.apply(&channels, update.overwrite(&&*b, 7))?;
    assert_eq!(state.to_value(), json!({ "a": [], "b": 7 }));
    Ok(())
}
