//! The command `serve`: the agent behind HTTP, for the clients of LangGraph and for a browser.

use std::net::SocketAddr;

use agentgraph::prelude::*;
use agentgraph_llm::{Message, Role};
use agentgraph_server::{Server, ServerError};
use clap::Args;
use serde::{Deserialize, Serialize};
use tokio::net::TcpListener;
use upgrade_agent::agent::UpgradeAgent;

use super::failure::Failure;
use super::screen::Screen;
use super::world::{World, keep_private};
use crate::config::Config;

/// The name of the graph, which clients give as `assistant_id`.
const NAME: &str = "upgrade";

/// The address of the server.
#[derive(Debug, Args)]
pub(super) struct Options {
    /// The loopback address to listen on; nothing checks who calls
    #[arg(long, value_name = "ADDRESS", default_value = "127.0.0.1:2024", value_parser = loopback)]
    listen: SocketAddr,
}

fn loopback(address: &str) -> Result<SocketAddr, String> {
    let address: SocketAddr = address.parse().map_err(|error| format!("{error}: such as 127.0.0.1:2024"))?;
    match address.ip().is_loopback() {
        true => Ok(address),
        false => {
            Err("nothing here checks who calls: serve on 127.0.0.1, behind a proxy that does".to_owned())
        }
    }
}

/// A conversation as web clients have it. The agent keeps its own under the same name.
#[derive(State, Serialize, Deserialize, Clone, Debug, Default)]
struct Chat {
    #[reduce(by_id)]
    messages: Vec<Message>,
}

/// Serves conversations until it is told to end.
pub(super) async fn run(config: &Config, options: Options, screen: Screen) -> Result<(), Failure> {
    let listener = TcpListener::bind(options.listen).await.map_err(ServerError::from)?;
    let world = World::open(config).await?;
    let chat = StateGraph::new().node("turn", turn).edge(START, "turn").dep(world.agent.clone()).compile();
    let chat = chat.map_err(|error| ServerError::Graph { name: NAME.to_owned(), source: error.into() })?;
    let [file, items] = ["web.db", "web.items.db"].map(|name| config.data_dir.join(name));
    keep_private(&file);
    keep_private(&items);
    let server = Server::new().sqlite(file).graph_without_schema(NAME, chat);
    let address = listener.local_addr()?;
    screen.line(&format!("http://{address}"));
    screen.warn(&format!(
        "{} A browser finds its page at http://{address}/ui/; programs call the graph `{NAME}`.",
        world.introduction
    ));
    let served = server.serve_on(listener).await;
    world.close().await;
    Ok(served?)
}

/// Answers the last message.
async fn turn(ctx: Ctx, chat: Snapshot<Chat>, agent: Dep<UpgradeAgent>) -> Result<ChatUpdate> {
    let said = chat.messages.last().filter(|message| message.role == Role::User).map(Message::text);
    let thread = ctx.thread().unwrap_or_default();
    let turn = agent.turn(thread, &said.unwrap_or_default()).await?;
    agent.heard(thread, turn.number).await?;
    let recovered = turn.recovered.into_iter();
    Ok(Chat::update().messages(recovered.chain([turn.reply]).map(Message::assistant).collect::<Vec<_>>()))
}
