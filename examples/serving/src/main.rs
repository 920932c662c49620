//! A graph behind HTTP, for LangGraph's clients: `docs/guide/server.md` says which.
//!
//! ```text
//! cargo run -p serving -- reports.db 127.0.0.1:2024
//! curl -N localhost:2024/runs/stream -H content-type:application/json \
//!     -d '{"assistant_id":"report","input":{"topic":"tea","sections":3,"pause":500}}'
//! ```
//!
//! `--model anthropic:claude-...` names a model in the place of the script.

mod report;

use agentgraph_server::Server;
use report::{graph, script};

#[tokio::main]
async fn main() -> Result<(), Box<dyn std::error::Error>> {
    let mut arguments: Vec<String> = std::env::args().skip(1).collect();
    let model = example_model::take_from(&mut arguments)?.unwrap_or_else(script);
    let mut arguments = arguments.into_iter();
    let file = arguments.next().unwrap_or_else(|| "reports.db".to_owned());
    let address = arguments.next().unwrap_or_else(|| "127.0.0.1:2024".to_owned());
    let listener = tokio::net::TcpListener::bind(address).await?;
    println!("listening on {}", listener.local_addr()?);
    Ok(Server::new().sqlite(file).graph("report", graph(model)?).serve_on(listener).await?)
}
