#![deny(warnings, missing_docs)]
#![allow(clippy::needless_lifetimes)]
//! Every form of a tool that compiles, without a warning.

use std::borrow::Cow;
use std::sync::Arc;

use agentgraph::prelude::*;
use agentgraph_llm::FromToolCall;
use agentgraph_llm::prelude::*;

/// A type of arguments.
#[derive(serde::Deserialize, schemars::JsonSchema)]
pub struct __Arguments {
    r#type: String,
}

/// An output without a name.
#[tool]
pub fn unnamed() -> impl Into<ToolOutput> {
    "ok"
}

/// An error without a name.
#[tool]
pub async fn unnamed_error() -> Result<impl Into<ToolOutput>, impl Into<ToolError>> {
    Ok::<_, ToolError>("ok")
}

/// The prelude's `Result`, and `?` behind functions that return it.
#[tool]
pub async fn boxed_error(ctx: Ctx) -> Result<String> {
    let n: u8 = ctx.once("n", async { Ok("7".parse()?) }).await?;
    Ok(n.to_string())
}

/// `?` behind functions that return the prelude's `Result`.
#[tool]
pub async fn tool_error(ctx: Ctx) -> Result<String, ToolError> {
    let n: u8 = ctx.once("n", async { Ok("7".parse()?) }).await?;
    Ok(n.to_string())
}

/// An output that borrows from the call.
#[tool]
pub async fn id(call: &ToolCall) -> &str {
    call.id()
}

#[derive(State, Clone, Debug, Default)]
#[state(volatile)]
/// A state.
pub struct Trip {
    /// A field.
    pub stops: Vec<String>,
}

/// The names of the macro's own variables are free.
#[tool]
pub async fn input(
    call: &ToolCall,
    input: __Arguments,
    __input: u8,
    __call: u8,
    __given: u8,
    __value_0: u8,
) -> String {
    format!("{} {} {__input} {__call} {__given} {__value_0}", call.id(), input.r#type)
}

/// A keyword as the name of a tool and of an argument.
#[tool]
pub fn r#match(r#type: String, mut r#in: Option<u8>) -> String {
    r#in.take();
    r#type
}

/// Lifetimes.
#[tool]
pub async fn lifetimes<'a>(
    ctx: &'a Ctx,
    store: &dyn agentgraph::Store,
    text: Cow<'_, str>,
) -> Result<&'static str, ToolError> {
    let _ = (ctx, store, text);
    Ok("ok")
}

/// Injected values of every kind.
#[tool(strict, name = "inject-all")]
pub async fn injected(
    trip: Snapshot<Trip>,
    store: Arc<dyn agentgraph::Store>,
    user: CallContext<String>,
    guest: Option<CallContext<u8>>,
    #[inject] key: Key,
    #[inject] second: &Key,
    _: Ctx,
) -> ToolOutput {
    let _ = (trip, store, user, guest, key.0, second.0);
    "ok".into()
}

/// A value of the call.
#[derive(Clone, Copy)]
pub struct Key(u8);

impl FromToolCall for Key {
    fn from_tool_call(_: &ToolCall) -> Result<Self, ToolError> {
        Ok(Key(1))
    }
}

/// An error of its own.
#[tool]
async fn parse(
    #[default(10)] radix: u32,
    #[default("7")] text: String,
    #[default]
    #[allow(unused)]
    rest: Vec<u8>,
) -> Result<String, std::num::ParseIntError> {
    Ok(i64::from_str_radix(&text, radix)?.to_string())
}

#[cfg(any())]
#[tool]
fn absent(argument: Missing) {}

#[tool]
#[cfg(any())]
fn absent_too(argument: Missing) -> Missing {}

/// In a function, beside a type that only the function knows.
fn local() -> String {
    #[derive(serde::Deserialize, schemars::JsonSchema)]
    struct Inner {
        value: u8,
    }

    #[tool]
    fn inside(inner: Inner) -> String {
        inner.value.to_string()
    }
    inside().spec().name.clone() + &inside().run(Inner { value: 1 })
}

/// A module of the same name.
pub mod parse {}

#[test]
fn tools_of_every_kind_compile() {
    let injected_by_name = injected;
    let (lifetimes, match_) = (lifetimes(), r#match());
    assert_eq!(local(), "inside1");
    let tools: Vec<Box<dyn Tool>> = vec![
        Box::new(input()),
        Box::new(match_),
        Box::new(lifetimes),
        Box::new(injected_by_name()),
        Box::new(parse()),
    ];
    let names: Vec<_> = tools.iter().map(|tool| tool.spec().name.clone()).collect();
    assert_eq!(names, ["input", "match", "lifetimes", "inject-all", "parse"]);
    assert_eq!(r#match().run("a".to_owned(), None), "a");
}
