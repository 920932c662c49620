//! The UpGrade agent inside another program, with that program's model, client and checkpointer.

use agentgraph::SqliteSaver;
use agentgraph_llm::{ChatModel, ChatRequest, ChatStream, ModelInfo};
use upgrade_agent::{UpgradeAgent, client::UpgradeClient, offline::OfflineModel, server::EmbeddedServer};

/// Any model can take its place. This one prints the size of a request and asks the offline model.
struct PrintingModel(OfflineModel);

#[async_trait::async_trait]
impl ChatModel for PrintingModel {
    fn info(&self) -> ModelInfo {
        self.0.info()
    }

    async fn stream(&self, request: ChatRequest) -> agentgraph_llm::Result<ChatStream> {
        println!("  (the model sees {} messages)", request.messages.len());
        self.0.stream(request).await
    }
}

#[tokio::main]
async fn main() -> Result<(), Box<dyn std::error::Error>> {
    let server = EmbeddedServer::builder().start().await?;
    let client = UpgradeClient::builder(server.url()).build()?;
    let agent = UpgradeAgent::builder()
        .model(PrintingModel(OfflineModel::new()))
        .client(client.clone())
        .checkpointer(SqliteSaver::in_memory()?)
        .build()?;
    let create = "create experiment Hints in assign-prog at SelectSection / absolute_value_plot_equality, 50/50, for everybody";
    for text in [create, "yes", "start it", "yes"] {
        println!("> {text}\n{}\n", agent.turn("ada", text).await?.reply);
    }
    let experiments = client.experiments().await?;
    assert_eq!((&*experiments[0].name, experiments[0].state.to_string()), ("Hints", "enrolling".to_owned()));
    server.shutdown().await;
    Ok(())
}
