//! The programs of the documentation's pages. Each page is the doc comment of a type in this crate, so
//! `cargo test -p guide --doc` compiles and runs all its programs.

macro_rules! pages {
    ($($(#[$only:meta])? $page:ident = $file:literal)*) => {
        $(
            $(#[$only])?
            #[doc = include_str!(concat!("../../../", $file))]
            #[cfg(doctest)]
            struct $page;
        )*
    };
}

pages! {
    Readme = "README.md"
    FirstGraph = "docs/first-graph.md"
    #[cfg(feature = "encryption")]
    Encryption = "docs/encryption.md"
    Models = "docs/guide/models.md"
    Agents = "docs/guide/agents.md"
    MultiAgent = "docs/guide/multi-agent.md"
    Testing = "docs/guide/testing.md"
    Tracing = "docs/guide/tracing.md"
    Http = "docs/guide/http.md"
    Server = "docs/guide/server.md"
    Steering = "docs/guide/steering.md"
    Blocking = "docs/guide/blocking.md"
    Limits = "docs/guide/limits.md"
    Caching = "docs/guide/caching.md"
    Tools = "docs/guide/tools.md"
    StructuredOutput = "docs/guide/structured-output.md"
    Middleware = "docs/guide/middleware.md"
    Reducers = "docs/guide/reducers.md"
    JsonGraphs = "docs/guide/json-graphs.md"
    Policies = "docs/guide/policies.md"
    Subgraphs = "docs/guide/subgraphs.md"
    Dispatch = "docs/guide/dispatch.md"
    CallContext = "docs/guide/call-context.md"
    Sessions = "docs/guide/sessions.md"
    DurableSteps = "docs/guide/durable-steps.md"
    Workflows = "docs/guide/workflows.md"
    Store = "docs/guide/store.md"
    TemporaryEdits = "docs/guide/temporary-edits.md"
    Hosts = "docs/guide/hosts.md"
    FromLangGraph = "docs/langgraph.md"
    FromAgentKit = "docs/agentkit.md"
    FromXrx = "docs/xrx.md"
}
