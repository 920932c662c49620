use agentgraph_llm::tool;

#[tool(nam = "get_weather")]
fn misspelt() -> &'static str {
    ""
}

#[tool(retries = 3)]
fn unknown() -> &'static str {
    ""
}

#[tool(name)]
fn without_value() -> &'static str {
    ""
}

#[tool(name = 5)]
fn wrong_value() -> &'static str {
    ""
}

#[tool(strict = true)]
fn with_value() -> &'static str {
    ""
}

#[tool(strict, strict)]
fn twice() -> &'static str {
    ""
}

#[tool("weather")]
fn no_word() -> &'static str {
    ""
}

fn main() {}
