use agentgraph_llm::{ToolError, tool};

struct Forecast;

#[tool]
async fn plain() -> Forecast {
    Forecast
}

#[tool]
async fn nothing() {}

#[tool]
async fn fallible() -> Result<Forecast, ToolError> {
    Ok(Forecast)
}

#[tool]
async fn no_error() -> Result<String, Forecast> {
    Ok(String::new())
}

type NoResult = String;

#[tool]
async fn misnamed() -> NoResult {
    String::new()
}

fn main() {}
