//! The form of an answer, and the judgement of an answer by it.

use std::sync::Arc;

use schemars::JsonSchema;
use serde::de::DeserializeOwned;
use serde_json::Value;

use crate::json::RawJson;
use crate::message::{Message, ToolResult};
use crate::model::{ChatRequest, ChatResponse, Form, ToolChoice};
use crate::tool::ToolSpec;

/// The form of an answer of a type.
#[derive(Clone)]
pub(super) struct OutputForm {
    form: Arc<Form>,
    check: fn(Value) -> Result<(), String>,
}

/// An answer, judged by its form.
pub(super) enum Judgement {
    /// It has the form. The results answer the calls of the artificial tool.
    Fits(RawJson, Vec<ToolResult>),
    /// It does not have the form, and the model reads why: as results of calls, or as a message.
    Misfit { why: String, results: Vec<ToolResult> },
    /// It is no answer yet: it has calls to run. Calls of the artificial tool among them are answered.
    NotYet(Vec<ToolResult>),
}

impl OutputForm {
    pub(super) fn of<T: JsonSchema + DeserializeOwned>(is_native: bool) -> Self {
        let check = |value| serde_json::from_value::<T>(value).map(drop).map_err(|error| error.to_string());
        OutputForm { form: Arc::new(Form::of::<T>(is_native)), check }
    }

    /// The name of the artificial tool, if the model gets the form as one.
    pub(super) fn tool(&self) -> Option<&str> {
        (!self.form.is_native).then_some(self.form.spec.name.as_str())
    }

    pub(super) fn add_to(&self, request: &mut ChatRequest) {
        if self.form.is_native {
            request.output = Some(self.form.spec.clone());
            return;
        }
        let about = "Gives the final answer. Call it alone, when nothing else is left to do.";
        let spec = &self.form.spec;
        request.tools.push(ToolSpec::new(&spec.name, about, spec.schema.clone()));
        if !request.tool_choice.is_forced() {
            let parallel = request.tool_choice.parallel;
            request.tool_choice = ToolChoice::any();
            request.tool_choice.parallel = parallel;
        }
    }

    pub(super) fn judge(&self, response: &ChatResponse) -> Judgement {
        match self.tool() {
            None => self.judge_text(response),
            Some(tool) => self.judge_calls(response, tool),
        }
    }

    fn judge_text(&self, response: &ChatResponse) -> Judgement {
        if response.message.tool_uses().next().is_some() {
            return Judgement::NotYet(Vec::new());
        }
        match self.read(response) {
            Ok(value) => Judgement::Fits(value, Vec::new()),
            Err(why) => Judgement::Misfit { why: misfit(&why), results: Vec::new() },
        }
    }

    fn judge_calls(&self, response: &ChatResponse, tool: &str) -> Judgement {
        let answers: Vec<_> = response.message.tool_uses().filter(|call| call.name == tool).collect();
        let all = response.message.tool_uses().count();
        let refuse = |why: &str| answers.iter().map(|call| ToolResult::error(&call.id, why)).collect();
        if all == 0 {
            let why = format!("Give the answer by calling `{tool}`.");
            return Judgement::Misfit { why, results: Vec::new() };
        }
        if answers.len() < all {
            let why = "not accepted: give the answer alone, after the results of the other calls";
            return Judgement::NotYet(refuse(why));
        }
        if answers.len() > 1 {
            let why = "not accepted: give one answer";
            return Judgement::Misfit { why: why.to_owned(), results: refuse(why) };
        }
        match self.read(response) {
            Ok(value) => Judgement::Fits(value, vec![ToolResult::text(&answers[0].id, "accepted")]),
            Err(why) => Judgement::Misfit { results: refuse(&misfit(&why)), why },
        }
    }

    fn read(&self, response: &ChatResponse) -> Result<RawJson, String> {
        let value: Value = self.form.read(response)?;
        (self.check)(value.clone())?;
        Ok(value.into())
    }
}

fn misfit(why: &str) -> String {
    format!("This does not have the required form: {why}. Give the answer again.")
}

/// What the model reads about an answer without calls that does not have the form.
pub(super) fn feedback(answer: &Message, why: &str) -> Message {
    Message::user(why).with_id(format!("{}:misfit", answer.id))
}
