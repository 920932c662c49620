//! The attribute macro of agentgraph-llm. Use it through `agentgraph-llm`, which re-exports it; the code it
//! writes names nothing but `::agentgraph_llm` and the standard library.
//!
//! The macro reads the function, collects every mistake with the token at fault, and then writes code. After
//! a mistake it writes a tool that type-checks but cannot run, so that one mistake gives one message.

mod mistakes;
mod tool;
mod words;

use proc_macro::TokenStream;

/// Makes a function a tool. Its name then stands for the tool: `.tool(weather)`, or `weather()` where a value
/// is needed.
///
/// ```
/// use agentgraph_llm::prelude::*;
///
/// /// The weather of the next days.
/// #[tool]
/// async fn weather(
///     /// A town, in English.
///     city: String,
///     #[default(3)] days: u8,
/// ) -> Result<String, ToolError> {
///     if days > 14 {
///         return Err(ToolError::failed("no forecast reaches that far"));
///     }
///     Ok(format!("Rain in {city} for {days} days."))
/// }
///
/// let spec = weather().spec();
/// assert_eq!((&*spec.name, &*spec.description), ("weather", "The weather of the next days."));
/// assert_eq!(spec.input_schema["properties"]["city"]["description"], "A town, in English.");
/// assert_eq!(spec.input_schema["required"][0], "city");
/// ```
///
/// The function's name is the name of the tool, its doc comment the description, and the doc comments of its
/// parameters describe the arguments. The function itself is
/// `weather().run(..)`, for unit tests. It may be `async` or not.
///
/// | a parameter | its value |
/// |---|---|
/// | of a type with `Deserialize` and `JsonSchema` | an argument, which the model must give |
/// | of type `Option<T>` | an argument that may be left out |
/// | with `#[default]` or `#[default(5)]` | an argument that may be left out, and its value then |
/// | `Ctx`, `&Ctx` | the context of the task that runs the tool |
/// | `ToolCall`, `&ToolCall` | the call itself, with its id |
/// | `Snapshot<S>` | the state of the graph; `compile()` checks that the graph has this state |
/// | `Arc<dyn Store>`, `&dyn Store` | the long-term memory of the graph |
/// | `CallContext<T>`, `Option<CallContext<T>>` | the value that the caller of the run has passed |
/// | with `#[inject]` | a `Session<T>` of the run, or any type of your own that implements `FromToolCall` |
///
/// Only arguments are in the schema. It allows no others, and a call with others is refused: a model cannot
/// forge an injected value by its name. Other attributes of a parameter, such as `#[allow(..)]`, stay on it.
///
/// | a word of `#[tool(..)]` | |
/// |---|---|
/// | `name = "get_weather"` | a name other than the function's |
/// | `description = "..."` | a description instead of the doc comment |
/// | `strict` | asks the provider to enforce the schema |
///
/// Limits of time and size are added to the value: `weather().timeout(limit)`, see `ToolExt`.
///
/// The function returns a text or another type that is `Into<ToolOutput>`, or a `Result` of one whose error
/// is `Into<ToolError>`. A `Result` is known by its name, which ends with `Result`.
///
/// `?` works behind a standard error, behind `ctx.once(..)`, and behind every function that returns the
/// prelude's `Result`; the run ends with the error, or waits if it is an interrupt.
#[proc_macro_attribute]
pub fn tool(settings: TokenStream, function: TokenStream) -> TokenStream {
    tool::expand(settings.into(), function.into()).into()
}
