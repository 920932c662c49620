use agentgraph::prelude::*;

async fn savers() -> Result<()> {
    let saver = SqliteSaver::open("threads.db").await?;
    let _: &dyn Checkpointer = &saver;
    Ok(())
}

fn main() {}
