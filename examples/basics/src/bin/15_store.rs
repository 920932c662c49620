//! Long-term memory: an assistant that remembers facts about its users across threads. The store is a file of
//! its own beside the checkpoints; a search by text finds the facts that a question is about. The embedder
//! counts words; use a model in its place.

use agentgraph::prelude::*;
use agentgraph::store::{Embedder, Filter, Namespace, SqliteStore, StoreExt, VectorIndex};
use serde_json::json;

#[derive(State, Clone, Debug, Default)]
struct Chat {
    user: String,
    #[channel(run)]
    said: String,
    #[channel(run)]
    recalled: Vec<String>,
    answer: String,
}

/// Every word of the vocabulary is a dimension.
struct Words;

const VOCABULARY: [&str; 6] = ["eat", "cook", "nuts", "tea", "rome", "live"];

#[async_trait::async_trait]
impl Embedder for Words {
    fn dimensions(&self) -> usize {
        VOCABULARY.len()
    }

    async fn embed(&self, texts: &[String]) -> Result<Vec<Vec<f32>>> {
        let count = |text: &str, word: &str| text.to_lowercase().matches(word).count() as f32;
        Ok(texts.iter().map(|text| VOCABULARY.map(|word| count(text, word)).to_vec()).collect())
    }
}

fn facts(user: &str) -> Result<Namespace> {
    Ok(Namespace::new(["users", user, "facts"])?)
}

/// The facts that are most similar to what the user says.
async fn recall(ctx: Ctx, chat: Snapshot<Chat>) -> Result<ChatUpdate> {
    let found = ctx.store()?.search(&facts(&chat.user)?).text(&chat.said).limit(3).await?;
    let related = found.into_iter().filter(|found| found.score > Some(0.1));
    let recalled = related.map(|found| found.item.value["text"].as_str().unwrap_or_default().to_owned());
    Ok(Chat::update().recalled(recalled.collect()))
}

/// Stands in for a model.
async fn answer(chat: Snapshot<Chat>) -> ChatUpdate {
    Chat::update().answer(match &*chat.recalled {
        [] => "I know nothing about that yet.".to_owned(),
        known => format!("I remember: {}", known.join("; ")),
    })
}

/// Keeps what the user says about themselves. The key is a function of the state: if the node runs again, it
/// stores the same item again.
async fn learn(ctx: Ctx, chat: Snapshot<Chat>) -> Result<()> {
    if chat.said.starts_with("I ") {
        let fact = json!({ "text": chat.said, "kind": "said" });
        ctx.store()?.put(&facts(&chat.user)?, &*chat.said, fact).await?;
    }
    Ok(())
}

#[tokio::main(flavor = "current_thread")]
async fn main() -> Result<()> {
    let folder = std::env::temp_dir().join(format!("agentgraph-15-{}", std::process::id()));
    let index = VectorIndex::new(Words).fields(["text"]);
    let store = SqliteStore::builder(folder.join("memory.db")).index(index).open().await?;
    let graph = StateGraph::new()
        .node("recall", recall)
        .node("answer", answer)
        .node("learn", learn)
        .edge(START, "recall")
        .edge("recall", "answer")
        .edge("answer", "learn")
        .compile()?;
    let saver = SqliteSaver::open(folder.join("threads.db")).await?;
    let graph = graph.checkpointer(saver).store(store.clone());

    let says = async |user: &str, thread: &str, said: &str| -> Result<String> {
        let outcome = graph.invoke(Chat::update().user(user).said(said)).thread(thread).await?;
        println!("{user} ({thread}): {said}\n    {}", outcome.output().answer);
        Ok(outcome.output().answer.clone())
    };
    says("ada", "monday", "I eat no nuts").await?;
    says("ada", "monday", "I live in Rome").await?;
    // Another thread knows what the first one learned; another user does not.
    assert_eq!(says("ada", "tuesday", "What shall I eat?").await?, "I remember: I eat no nuts");
    assert_eq!(says("bo", "wednesday", "What shall I eat?").await?, "I know nothing about that yet.");

    let said = store.search(&facts("ada")?).filter(Filter::eq("kind", "said")).await?;
    assert_eq!(said.len(), 2);
    assert_eq!(store.list_namespaces().prefix(["users"]).await?, [facts("ada")?]);
    drop((graph, store));
    std::fs::remove_dir_all(&folder)?;
    Ok(())
}
