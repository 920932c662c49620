//! Questions to a model whose answer is a value of a type.

use std::future::Future;

use schemars::JsonSchema;
use serde::Deserialize;
use serde::de::DeserializeOwned;

use crate::error::{Code, Error, Result};
use crate::message::{Message, ToolResult};
use crate::model::{ChatModel, ChatRequest, ChatResponse, OutputSpec, ToolChoice, Usage};
use crate::schema;
use crate::tool::ToolSpec;

/// Requests after which [`AskExt::ask`] gives up.
const ATTEMPTS: usize = 3;

/// The questions that every model answers.
pub trait AskExt: ChatModel {
    /// Requests one assistant message and waits for the whole of it.
    ///
    /// # Errors
    /// As [`ChatModel::stream`], and the error of the stream.
    fn chat(&self, request: ChatRequest) -> impl Future<Output = Result<ChatResponse>> + Send {
        async move { self.stream(request).await?.into_response().await }
    }

    /// Requests a value of type `T`. A model with [structured output](crate::Capabilities::structured_output)
    /// gets the type's schema as the form of its answer, any other model gets it as the arguments of a tool
    /// that it has to call. An answer of another form goes back to the model with the error, twice.
    ///
    /// ```
    /// use agentgraph_llm::prelude::*;
    /// use serde_json::json;
    ///
    /// #[derive(serde::Deserialize, schemars::JsonSchema)]
    /// struct Weather {
    ///     celsius: i32,
    /// }
    ///
    /// # #[tokio::main(flavor = "current_thread")]
    /// # async fn main() -> agentgraph_llm::Result<()> {
    /// let mild = Reply::tool_call("Weather", json!({"celsius": "mild"}));
    /// let model = ScriptedModel::new([mild, Reply::tool_call("Weather", json!({"celsius": 12}))]);
    /// let asked = model.ask::<Weather>(ChatRequest::user("How warm is it in Oslo?")).await?;
    /// assert_eq!((asked.value.celsius, model.requests().len()), (12, 2));
    /// # Ok(())
    /// # }
    /// ```
    ///
    /// # Errors
    /// `E_LLM_ANSWER_REJECTED` if no answer had the form, with the usage of all of them; as
    /// [`chat`](Self::chat) otherwise.
    fn ask<T: JsonSchema + DeserializeOwned + Send>(
        &self,
        mut request: ChatRequest,
    ) -> impl Future<Output = Result<Asked<T>>> + Send {
        async move {
            let form = Form::of::<T>(self.info().capabilities.structured_output);
            form.add_to(&mut request);
            let mut usage = Usage::default();
            let mut problem = String::new();
            for _ in 0..ATTEMPTS {
                let response = self.chat(request.clone()).await.map_err(|error| error.with_usage(usage))?;
                usage += response.usage;
                match form.read(&response) {
                    Ok(value) => return Ok(Asked { value, response, usage }),
                    Err(why) => {
                        request.messages.push(response.message.clone());
                        request.messages.push(form.refuse(&response, &why));
                        problem = why;
                    }
                }
            }
            let message = format!(
                "{ATTEMPTS} answers did not have the form `{}` ({problem}): describe the fields of the type in doc \
                 comments, or use another model",
                form.spec.name
            );
            Err(Error::new(Code::AnswerRejected, message).with_usage(usage))
        }
    }
}

impl<M: ChatModel + ?Sized> AskExt for M {}

/// A value from a model.
#[derive(Clone, Debug, PartialEq)]
#[non_exhaustive]
pub struct Asked<T> {
    /// The value.
    pub value: T,
    /// The response that has it.
    pub response: ChatResponse,
    /// The tokens of all attempts.
    pub usage: Usage,
}

/// The form of an answer, and the way in which the model is told.
pub(crate) struct Form {
    pub(crate) spec: OutputSpec,
    pub(crate) is_native: bool,
    /// The value is the field [`WRAPPER`](schema::WRAPPER) of an object, because providers take objects only.
    is_wrapped: bool,
}

#[derive(Deserialize)]
struct Wrapped<T> {
    value: T,
}

impl Form {
    pub(crate) fn of<T: JsonSchema>(is_native: bool) -> Self {
        let mut spec = OutputSpec::of::<T>();
        let (schema, is_wrapped) = schema::as_object(&spec.schema);
        spec.schema = schema;
        Form { spec, is_native, is_wrapped }
    }

    fn add_to(&self, request: &mut ChatRequest) {
        if self.is_native {
            request.output = Some(self.spec.clone());
            return;
        }
        let about = "Gives the answer in its final form.";
        request.tools.push(ToolSpec::new(&self.spec.name, about, self.spec.schema.clone()));
        request.tool_choice = ToolChoice::tool(&self.spec.name).one_at_a_time();
    }

    pub(crate) fn read<T: DeserializeOwned>(&self, response: &ChatResponse) -> Result<T, String> {
        if response.stop.is_truncated() {
            return Err("the answer reached the token limit".to_owned());
        }
        let text = match self.is_native {
            true => response.message.text(),
            false => {
                let call = response.message.tool_uses().find(|call| call.name == self.spec.name);
                let call = call.ok_or_else(|| format!("`{}` was not called", self.spec.name))?;
                call.input.text().to_owned()
            }
        };
        let value = match self.is_wrapped {
            true => serde_json::from_str(&text).map(|wrapped: Wrapped<T>| wrapped.value),
            false => serde_json::from_str(&text),
        };
        value.map_err(|error| error.to_string())
    }

    /// What the model reads about an answer of another form.
    fn refuse(&self, response: &ChatResponse, why: &str) -> Message {
        let text = format!("This does not have the required form: {why}. Give the answer again.");
        let results: Vec<_> =
            response.message.tool_uses().map(|call| ToolResult::error(&call.id, &text)).collect();
        if results.is_empty() { Message::user(text) } else { Message::tool_results(results) }
    }
}
