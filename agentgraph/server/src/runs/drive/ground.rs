//! [`Ground`]: what is known of a run when its driver begins.

use std::sync::Arc;

use serde_json::{Value, json};

use super::Halt;
use crate::app::{App, object, owner_of, version_of};
use crate::graph::{Moment, RunConfig, ServedGraph};
use crate::ids::{self, WirePlace};
use crate::live::{Hold, LiveRun};
use crate::records::{Kind, Record};
use crate::runs::is_open;

/// What is known of a run when its driver begins.
pub(in crate::runs) struct Ground {
    pub(in crate::runs) run: Record,
    pub(in crate::runs) thread: Record,
    pub(super) graph: Arc<dyn ServedGraph>,
    pub(super) config: RunConfig,
    /// The newest checkpoint of the thread, if it was read.
    pub(super) head: Option<Option<Moment>>,
    /// Whether no process has driven the run before.
    pub(super) is_new: bool,
}

impl App {
    /// Reads what the driver of a run needs. `None` if there is nothing to drive.
    pub(super) async fn ground_of(
        &self,
        live: &LiveRun,
        hold: Option<&Hold>,
    ) -> Result<Option<Ground>, Halt> {
        let Some(run) = self.records.get(Kind::Run, &live.id).await? else {
            live.end(Value::Null);
            return Ok(None);
        };
        if !is_open(&run) {
            self.tell_end(&run, hold).await?;
            self.end_for_readers(live, &run).await;
            return Ok(None);
        }
        let assistant = run.data["assistant_id"].as_str().unwrap_or_default();
        let assistant = self.records.get(Kind::Assistant, assistant).await?;
        let thread = self.records.get(Kind::Thread, &live.thread).await?;
        let Some(ground) = thread.and_then(|thread| self.ground(run, thread, assistant.as_ref())) else {
            let gone =
                json!({ "error": "GraphGone", "message": "the thread or the graph of the run is gone" });
            self.set_status(&live.id, "error", &gone).await?;
            live.end(json!({ "__error__": gone }));
            return Ok(None);
        };
        // What an earlier process has sent comes first, so that readers find all of it, and no number again.
        if !ground.is_new {
            live.send(self.stored_frames(&live.id, live.last_seq()).await?);
        }
        Ok(Some(ground))
    }

    /// What is known of a run that no process drives. `None` without its graph.
    pub(in crate::runs) fn ground(
        &self,
        run: Record,
        thread: Record,
        assistant: Option<&Record>,
    ) -> Option<Ground> {
        let graph = Arc::clone(self.graphs.get(run.data["graph_id"].as_str()?)?);
        let (config, is_new) = (config_of(&run, assistant), run.status == "pending");
        Some(Ground { run, thread, graph, config, head: None, is_new })
    }
}

impl Ground {
    /// Notes in the record of a new run that it begins now, if it does: then one write adds it and says so.
    pub(in crate::runs) async fn begin(&mut self) {
        // What runs a graph elsewhere may take long to answer.
        if self.run.data["kwargs"]["after_seconds"] == 0.0
            && !self.graph.is_elsewhere()
            && let Ok(head) = self.graph.head(&self.thread.id).await
        {
            begin(&mut self.run, head.as_ref(), self.is_new, None);
            self.head = Some(head);
        }
    }
}

/// Notes in the record of a run on which checkpoint it began, and since when which process drives it.
pub(super) fn begin(run: &mut Record, head: Option<&Moment>, is_new: bool, hold: Option<&Hold>) {
    if is_open(run) {
        "running".clone_into(&mut run.status);
    }
    if is_new {
        run.data["began_at"] = json!(head.map(|head| WirePlace::at(head.id).wire(&run.parent)));
    }
    run.data["since"] = json!(ids::time(ids::now()));
    if let Some(hold) = hold {
        run.data["replica"] = json!(*hold.replica);
    }
}

fn config_of(run: &Record, assistant: Option<&Record>) -> RunConfig {
    let none = Value::Null;
    let of_assistant = assistant.map_or(&none, version_of);
    let kwargs = &run.data["kwargs"];
    let both = |of_assistant: &Value, of_run: &Value| {
        let mut both = object(of_assistant);
        both.extend(object(of_run));
        both
    };
    RunConfig {
        thread_id: run.parent.clone(),
        run_id: run.id.clone(),
        assistant_id: run.data["assistant_id"].as_str().unwrap_or_default().to_owned(),
        configurable: both(&of_assistant["config"]["configurable"], &kwargs["config"]["configurable"]),
        context: both(&of_assistant["context"], &kwargs["context"]),
        metadata: object(&run.data["metadata"]),
        owner: owner_of(run).map(str::to_owned),
    }
}
