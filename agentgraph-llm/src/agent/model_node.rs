//! The node that asks the model.

use agentgraph::{Command, Ctx, Snapshot};

use super::form::{self, Judgement};
use super::plan::{Next, Plan};
use super::state::{AgentChange, AgentChannels, AnswerFacts, RecordChange, conversation_of};
use crate::conversation;
use crate::error::{Code, Error, Result};
use crate::message::{Message, MessageIds, Messages, ToolResult};
use crate::middleware::{Bill, ModelRequest, NextModel, OpenBill};
use crate::model::end::{empty_answer, is_empty};
use crate::model::{ChatRequest, ChatResponse, ChatStream, ToolMode, listening};
use crate::tool_loop::LoopEnd;
use crate::tool_loop::after::After;

/// Asks the model, and answers the calls that cannot be run.
pub(super) async fn run<S: AgentChannels>(plan: &Plan, ctx: Ctx, state: Snapshot<S>) -> Result<Command<S>> {
    let left = plan.rounds_left(&*state);
    if left == 0 {
        let mut change = AgentChange::default();
        change.run_mut().end = Some(LoopEnd::LimitReached);
        return Ok(plan.go(change, Next::End));
    }
    let mut bill = Bill::default();
    let messages = conversation_of(&*state);
    let mut first = None;
    // A loop, since a second place that waits for an answer would double the future.
    let mut response = loop {
        let asked = ask(plan, &ctx, &state, &messages, &mut bill).await;
        let before = first.unwrap_or_default();
        let mut response = asked.map_err(|error| error.with_usage(before))?;
        response.usage += before;
        if !plan.settings.stop.is_empty() || !is_empty(&response) {
            break response;
        }
        if first.replace(response.usage).is_some() {
            return Err(empty_answer(response));
        }
    };
    // A message of the same id would replace the earlier one in the state.
    if messages.has_message(&response.message.id) {
        response.message.id = MessageIds::default().next_id();
    }
    ctx.spend("rounds", 1);
    let misfits = state.run_record().misfits;
    let answer = Answer::of(plan, &response, left == 1, misfits)?;
    Ok(answer.into_command(plan, bill, conversation::results_to_move(&messages)))
}

async fn ask<S: AgentChannels>(
    plan: &Plan,
    ctx: &Ctx,
    state: &Snapshot<S>,
    messages: &Messages,
    bill: &mut Bill,
) -> Result<ChatResponse> {
    let request = plan.request(&**state, messages);
    let mut open = None;
    // Only what the outermost wrap returns is heard.
    let begun = if plan.chain.is_empty() {
        listening::silently((*plan.model).stream(request)).await
    } else {
        let request = ModelRequest::new(plan.model.clone(), request).with_ctx(ctx.clone());
        let open = open.insert(OpenBill::new(Some(ctx.clone())));
        let next = NextModel::first(&plan.chain, open.clone());
        listening::silently(Box::pin(next.run(request))).await
    };
    let ended = match begun {
        Ok(stream) => read(stream, messages).await,
        Err(error) => Err(error),
    };
    match open {
        Some(open) => bill.add_all(&open.read()),
        // Without a chain, no other model is asked, and nothing else reads the stream.
        None => bill.add_answer(&plan.model, ended.as_ref(), Some(ctx)),
    }
    let mut response = ended?;
    conversation::make_calls_distinct(&mut response, |id| messages.has_call(id));
    Ok(response)
}

async fn read(mut stream: ChatStream, messages: &Messages) -> Result<ChatResponse> {
    if listening::is_heard() {
        let messages = messages.clone();
        stream = conversation::with_distinct_calls(stream, move |id| messages.has_call(id));
    }
    stream.into_response().await
}

impl Plan {
    /// The answers that the limits still allow.
    fn rounds_left<S: AgentChannels>(&self, state: &S) -> u64 {
        let run = self.limits.run_rounds.saturating_sub(state.run_record().rounds);
        let thread =
            self.limits.thread_rounds.map(|limit| limit.saturating_sub(state.thread_record().rounds));
        thread.map_or(run, |thread| thread.min(run))
    }

    fn request<S: AgentChannels>(&self, state: &S, messages: &Messages) -> ChatRequest {
        let mut request = self.settings.clone();
        let messages = conversation::complete_list(messages);
        if request.messages.is_empty() {
            request.messages = messages;
        } else {
            request.messages.extend(messages);
        }
        if state.run_record().rounds > 0 && request.tool_choice.is_forced() {
            request.tool_choice.mode = ToolMode::Auto;
        }
        if let Some(form) = &self.form {
            form.add_to(&mut request);
        }
        request
    }
}

/// An answer of the model, and what follows from it.
struct Answer<'a> {
    response: &'a ChatResponse,
    /// The results of calls that are not run.
    results: Vec<ToolResult>,
    feedback: Option<Message>,
    end: Option<LoopEnd>,
    output: Option<crate::json::RawJson>,
    goes_on: bool,
    is_misfit: bool,
}

impl<'a> Answer<'a> {
    fn of(plan: &Plan, response: &'a ChatResponse, is_last: bool, misfits: u32) -> Result<Self> {
        let mut answer = Answer {
            response,
            results: Vec::new(),
            feedback: None,
            end: None,
            output: None,
            goes_on: false,
            is_misfit: false,
        };
        match After::of(response) {
            After::End { end: LoopEnd::Refused, refusal } => {
                answer.refuse_calls(refusal);
                answer.end = Some(LoopEnd::Refused);
            }
            // The form speaks about a cut answer in its own words.
            After::AskAgain { refusal } if plan.form.is_none() || !answer.has_calls() => {
                answer.refuse_calls(refusal);
                answer.goes_on = true;
            }
            After::End { end, .. } if plan.form.is_none() => answer.end = Some(end),
            after => answer.judge(plan, misfits, after)?,
        }
        if is_last && answer.end.is_none() {
            let why = format!("not run: the limit of {} answers was reached", plan.limits.run_rounds);
            answer.refuse_calls(&why);
            answer.end = Some(LoopEnd::LimitReached);
        }
        Ok(answer)
    }

    fn judge(&mut self, plan: &Plan, misfits: u32, after: After) -> Result<()> {
        let Some(form) = &plan.form else { return Ok(()) };
        if let After::AskAgain { refusal } = after {
            let is_answer = |name: &str| form.tool() == Some(name);
            let others: Vec<_> =
                self.response.message.tool_uses().filter(|call| !is_answer(&call.name)).collect();
            let refused: Vec<_> = others.iter().map(|call| ToolResult::error(&call.id, refusal)).collect();
            self.add_results(refused);
        }
        match form.judge(self.response) {
            Judgement::Fits(value, results) => {
                self.output = Some(value);
                self.add_results(results);
                self.end = Some(LoopEnd::Finished);
            }
            Judgement::NotYet(results) => self.add_results(results),
            Judgement::Misfit { why, .. } if misfits >= plan.limits.misfits => {
                return Err(rejected(misfits, &why));
            }
            Judgement::Misfit { why, results } => {
                if results.is_empty() {
                    self.feedback = Some(form::feedback(&self.response.message, &why));
                }
                self.add_results(results);
                self.goes_on = true;
                self.is_misfit = true;
            }
        }
        Ok(())
    }

    fn has_calls(&self) -> bool {
        self.response.message.tool_uses().next().is_some()
    }

    /// Adds results of calls that have none.
    fn add_results(&mut self, results: impl IntoIterator<Item = ToolResult>) {
        for result in results {
            if !self.results.iter().any(|known| known.tool_use_id == result.tool_use_id) {
                self.results.push(result);
            }
        }
    }

    fn refuse_calls(&mut self, why: &str) {
        let calls = self.response.message.tool_uses();
        let refused: Vec<_> = calls.map(|call| ToolResult::error(&call.id, why)).collect();
        self.add_results(refused);
    }

    /// `moved` are earlier results, which are stored again in the order of their calls.
    fn into_command<S: AgentChannels>(self, plan: &Plan, bill: Bill, moved: Vec<Message>) -> Command<S> {
        let ChatResponse { message, stop, usage, .. } = self.response;
        let (stop, usage) = (stop.clone(), *usage);
        let removed = moved.iter().map(|message| message.id.clone()).collect();
        let mut put = moved;
        let at = put.len();
        put.push(message.clone());
        put.extend(self.results.into_iter().map(|result| conversation::result_of(&message.id, result)));
        put.extend(self.feedback);
        let facts = AnswerFacts { usage, stop, goes_on: self.goes_on, is_misfit: self.is_misfit };
        let is_ended = self.end.is_some();
        let answer = Some(facts.clone());
        let thread = RecordChange { answer, bill: bill.clone(), ..RecordChange::default() };
        let (end, output) = (self.end, self.output);
        let run = RecordChange { answer: Some(facts), end, output, bill, ..RecordChange::default() };
        let next = match &plan.ways.after_model {
            Some(hook) => Next::Hook(hook.clone()),
            None => plan.next(&put[at..], is_ended, self.goes_on),
        };
        let (thread, run) = (Some(thread), Some(run));
        let change = AgentChange { put, removed, thread, run, ..AgentChange::default() };
        plan.go(change, next)
    }
}

fn rejected(misfits: u32, why: &str) -> Error {
    let message = format!(
        "{} answers of the model did not have the form of the agent's output ({why}): describe the fields of the type \
         in doc comments, or use another model",
        misfits + 1
    );
    Error::new(Code::AnswerRejected, message)
}
