use agentgraph::Ctx;
use agentgraph_llm::tool;

#[tool]
async fn weather(
    #[default] ctx: Ctx,
    #[default(1, 2)] days: u8,
    #[default = 3] hours: u8,
    #[default]
    #[default]
    minutes: u8,
    #[inject(now)] call: agentgraph_llm::ToolCall,
    #[describe("a town")] city: String,
) -> String {
    format!("{city} {days} {hours} {minutes} {} {}", ctx.step(), call.id())
}

fn main() {}
