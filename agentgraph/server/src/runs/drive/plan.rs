//! [`Plan`]: what a run asks of its graph.

use agentgraph::{CheckpointId, InterruptId};
use serde_json::{Value, json};

use super::Drive;
use super::answers::{Answers, asked, by_id, standing};
use crate::app::seen_as;
use crate::error::Failed;
use crate::graph::{Begin, Edit, End, Moment, Start};
use crate::ids::{WirePlace, interrupt_id};
use crate::runs::request::goto;

/// The name of the failure of a strict run.
pub(super) const UNKNOWN_INTERRUPT: &str = "UnknownInterruptError";

pub(super) enum Plan {
    Call(Start, Begin),
    /// The thread already is where the run would lead.
    Nothing(End),
}

impl Drive<'_> {
    /// What the run asks of the graph, on the thread as it is.
    pub(super) async fn plan(
        &self,
        kwargs: &Value,
        head: Option<&Moment>,
        is_new: bool,
    ) -> Result<Plan, Failed> {
        let given = kwargs["checkpoint"].as_str().map(WirePlace::parse).transpose();
        let place = given.map_err(|error| Failed::new("BadRequest", error.detail))?;
        let input = &kwargs["input"];
        let command = &kwargs["command"];
        let has_moved = !is_new && self.has_moved(head);
        if has_moved {
            let waits = head.is_some_and(|head| !asked(head).is_empty() || head.finished);
            let is_elsewhere = self.graph.is_elsewhere();
            match head {
                Some(head) if waits && (is_elsewhere || command["resume"].is_null()) => {
                    return Ok(Plan::Nothing(standing(head)));
                }
                // The call went on without this process: the same one again finds it.
                _ if is_elsewhere => {}
                _ => return Ok(Plan::Call(Start::Proceed, Begin::Head)),
            }
        }
        // The head is where a run goes on anyway, and so is where it began if it went on. Only an older place
        // is a fork.
        let from = match place {
            Some(_) if has_moved => Begin::Head,
            Some(place)
                if !place.is_before_input && head.is_some_and(|head| self.is_seen_as(head, place)) =>
            {
                Begin::Head
            }
            Some(place) if place.is_before_input => self.before(place).await?,
            Some(place) => Begin::At(place.id),
            None => Begin::Head,
        };
        if command.is_object() {
            let is_strict = kwargs["strict_resume"] == true && !has_moved;
            return self.command(command, is_strict, head, from, has_moved).await;
        }
        if !input.is_null() {
            return Ok(Plan::Call(Start::Input(input.clone()), from));
        }
        if let Some(place) = place.filter(|place| place.is_before_input) {
            // The input is taken again from the checkpoint that holds it.
            return Ok(Plan::Call(Start::Proceed, Begin::At(place.id)));
        }
        match (head, from) {
            (Some(head), Begin::Head) if !asked(head).is_empty() || head.finished => {
                Ok(Plan::Nothing(standing(head)))
            }
            (None, Begin::Head) => Ok(Plan::Call(Start::Input(json!({})), Begin::Head)),
            // Nothing runs, and the thread is there again.
            (_, Begin::At(id)) if self.has_finished_at(id).await? => {
                let edit = Edit { at: Some(id), ..Edit::default() };
                self.graph.edit(&self.thread.id, edit).await.map_err(|error| Failed::of(&error))?;
                Ok(Plan::Nothing(End::Finished))
            }
            (_, from) => Ok(Plan::Call(Start::Proceed, from)),
        }
    }

    /// Whether something of the run is stored. Only then does it go on; else it begins again.
    fn has_moved(&self, head: Option<&Moment>) -> bool {
        let head = head.map(|head| WirePlace::at(head.id).wire(&self.thread.id));
        self.run.data["began_at"] != json!(head)
    }

    fn is_seen_as(&self, head: &Moment, place: WirePlace) -> bool {
        seen_as(&self.thread, head.id) == place.id
    }

    async fn has_finished_at(&self, id: CheckpointId) -> Result<bool, Failed> {
        let found = self.graph.state(&self.thread.id, Some(id)).await.map_err(|error| Failed::of(&error))?;
        Ok(found.is_some_and(|found| found.finished && asked(&found).is_empty()))
    }

    /// The place just before an input: the checkpoint before it, or the begin of the thread.
    async fn before(&self, place: WirePlace) -> Result<Begin, Failed> {
        let found =
            self.graph.state(&self.thread.id, Some(place.id)).await.map_err(|error| Failed::of(&error))?;
        let message = "the checkpoint is unknown: the history lists those there are";
        let found = found.ok_or_else(|| Failed::new("UnknownCheckpoint", message))?;
        Ok(found.parent.map_or(Begin::Start, Begin::At))
    }

    /// A command: an update of the state unless that was made, then answers. A strict one changes nothing if
    /// one of its answers is to no open question; otherwise such an answer is ignored.
    async fn command(
        &self,
        command: &Value,
        is_strict: bool,
        head: Option<&Moment>,
        from: Begin,
        is_edited: bool,
    ) -> Result<Plan, Failed> {
        let resume = &command["resume"];
        let answers = by_id(resume, &head.map(asked).unwrap_or_default());
        if let Some(answers) = answers.as_ref().filter(|answers| is_strict && !answers.unknown.is_empty()) {
            let message = format!(
                "no open question has the id {}: the thread's state has those that wait",
                answers.unknown.join(" or ")
            );
            return Err(Failed::new(UNKNOWN_INTERRUPT, message));
        }
        let mut now = head.cloned();
        let goto = goto(&command["goto"]).unwrap_or_default();
        if !goto.is_empty() {
            if head.is_some_and(|head| !head.finished) {
                let message = "command.goto is for a thread that has nothing left to do: answer its questions, \
                               or go on with an empty run, first";
                return Err(Failed::new("ThreadUnfinished", message));
            }
            let at = if let Begin::At(id) = from { Some(id) } else { None };
            let values = Some(command["update"].clone()).filter(|update| !update.is_null());
            let edit = Edit { at, values, goto, ..Edit::default() };
            self.graph.edit(&self.thread.id, edit).await.map_err(|error| Failed::of(&error))?;
            return Ok(Plan::Call(Start::Proceed, Begin::Head));
        }
        if !command["update"].is_null() && !is_edited {
            let edit = Edit { values: Some(command["update"].clone()), ..Edit::default() };
            self.graph.edit(&self.thread.id, edit).await.map_err(|error| Failed::of(&error))?;
            now = self.graph.state(&self.thread.id, None).await.map_err(|error| Failed::of(&error))?;
        }
        let Some(now) = now else {
            let message = "the thread has no open question to answer";
            return Err(Failed::new("NothingToResume", message));
        };
        // An answer to no question is ignored, unless a call that goes on without this process has taken it.
        let is_taken = is_edited && self.graph.is_elsewhere();
        if resume.is_null() || asked(&now).is_empty() && !is_strict && !is_taken {
            let goes_on = asked(&now).is_empty() && !now.finished;
            return Ok(if goes_on {
                Plan::Call(Start::Proceed, from)
            } else {
                Plan::Nothing(standing(&now))
            });
        }
        let Some(Answers { known: answers, .. }) = answers else {
            let open: Vec<String> = asked(&now).iter().filter_map(|one| one.id.map(interrupt_id)).collect();
            if open.len() > 1 && !is_taken {
                let message = format!(
                    "several questions are open: make command.resume an object with answers by the ids {}",
                    open.join(" and ")
                );
                return Err(Failed::new("AmbiguousAnswer", message));
            }
            return Ok(Plan::Call(Start::Resume(resume.clone()), from));
        };
        if answers.is_empty() {
            return Ok(Plan::Nothing(standing(&now)));
        }
        // An edit gives the questions new ids, in the same order.
        let ids: Vec<InterruptId> = asked(&now).iter().filter_map(|one| one.id).collect();
        let answers = answers.into_iter().filter_map(|(at, answer)| Some((*ids.get(at)?, answer)));
        Ok(Plan::Call(Start::ResumeMany(answers.collect()), from))
    }
}
