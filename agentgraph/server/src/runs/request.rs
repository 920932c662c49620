//! [`RunRequest`]: the body of a request for a run, checked.

use agentgraph::{Dispatch, Goto};
use serde_json::{Map, Value, json};

use crate::app::{App, OWNER, object, object_of, owner_of, version_of};
use crate::error::ApiError;
use crate::ids::{self, WirePlace};
use crate::live::Strategy;
use crate::records::{Kind, Record};

/// A run that a client asks for.
pub(crate) struct RunRequest {
    pub(crate) assistant: Record,
    pub(crate) metadata: Map<String, Value>,
    /// What the run needs later, perhaps in another process.
    pub(crate) kwargs: Value,
    pub(crate) strategy: Strategy,
    pub(crate) strategy_name: String,
    /// Whether the thread is made if it is missing.
    pub(crate) makes_thread: bool,
    /// Whether the run ends with its connection.
    pub(crate) ends_on_disconnect: bool,
    /// Whether thread and run are removed at the end.
    pub(crate) is_temporary: bool,
}

const MODES: [&str; 12] = [
    "values",
    "updates",
    "messages",
    "messages-tuple",
    "custom",
    "tasks",
    "checkpoints",
    "debug",
    "tools",
    "lifecycle",
    "heartbeat",
    "metadata",
];

impl RunRequest {
    pub(crate) async fn read(app: &App, body: &Value) -> Result<Self, ApiError> {
        let name = body["assistant_id"].as_str();
        let name = name
            .ok_or_else(|| ApiError::invalid("assistant_id is missing: it names a graph or an assistant"))?;
        let assistant = app.assistant_of_run(name).await?;
        let strategy_name = choice(body, &["multitask_strategy", "multitaskStrategy"], "enqueue")?;
        let strategy = Strategy::of(&strategy_name).ok_or_else(|| {
            ApiError::invalid("multitask_strategy must be reject, enqueue, interrupt or rollback")
        })?;
        let on_disconnect = choice(body, &["on_disconnect"], "continue")?;
        if !["cancel", "continue"].contains(&&*on_disconnect) {
            return Err(ApiError::invalid("on_disconnect must be cancel or continue"));
        }
        let command = command(&body["command"])?;
        let input = body.get("input").cloned().unwrap_or_default();
        if !input.is_null()
            && let Some(graph) = app.graphs.get(&assistant.parent)
        {
            graph.check(&input)?;
        }
        let [config, context] = settings(body)?;
        let kwargs = json!({
            "input": input,
            "command": command,
            "checkpoint": checkpoint(body)?.map(|_| wire_id(body)),
            "config": config,
            "context": context,
            "stream_mode": modes(&body["stream_mode"])?,
            "subgraphs": flag(body, "stream_subgraphs")?,
            "resumable": flag(body, "stream_resumable")?,
            "interrupt_before": nodes(body, "interrupt_before")?,
            "interrupt_after": nodes(body, "interrupt_after")?,
            "durability": durability(body)?,
            "strict_resume": flag(body, "strict_resume")?,
            "after_seconds": after_seconds(body)?,
        });
        recursion_limit(&kwargs)?;
        Ok(RunRequest {
            assistant,
            metadata: optional_object(body, "metadata")?,
            kwargs,
            strategy,
            strategy_name,
            makes_thread: choice(body, &["if_not_exists"], "reject")? == "create",
            ends_on_disconnect: on_disconnect == "cancel",
            is_temporary: false,
        })
    }

    /// The record of the run, its assistant, and what it does about those before it.
    pub(crate) fn into_run(self, thread: &Record) -> (Record, Record, Strategy) {
        let RunRequest { assistant, metadata: given, kwargs, strategy, strategy_name, is_temporary, .. } =
            self;
        let now = ids::now();
        let mut metadata = object(&version_of(&assistant)["metadata"]);
        // The run belongs to whom the thread belongs, whosever the assistant is.
        metadata.remove(OWNER);
        metadata.extend(object(&thread.data["metadata"]));
        metadata.extend(object(&kwargs["config"]["metadata"]));
        metadata.extend(given);
        metadata.insert("graph_id".to_owned(), assistant.parent.clone().into());
        metadata.insert("assistant_id".to_owned(), assistant.id.clone().into());
        metadata.extend(owner_of(thread).map(|owner| (OWNER.to_owned(), owner.into())));
        let data = object_of([
            ("assistant_id", assistant.id.clone().into()),
            ("graph_id", assistant.parent.clone().into()),
            ("metadata", metadata.into()),
            ("kwargs", kwargs),
            ("multitask_strategy", strategy_name.into()),
            ("is_temporary", is_temporary.into()),
        ]);
        let (id, parent, status) = (ids::new_id(), thread.id.clone(), "pending".to_owned());
        let run =
            Record { kind: Kind::Run, id, parent, status, created: now, updated: now, version: 0, data };
        (run, assistant, strategy)
    }

    /// The modes whose events the stream has.
    pub(crate) fn modes(&self) -> Vec<String> {
        texts(&self.kwargs["stream_mode"])
    }

    pub(crate) fn is_resumable(&self) -> bool {
        self.kwargs["resumable"] == true
    }
}

/// The strings of a list.
pub(crate) fn texts(list: &Value) -> Vec<String> {
    list.as_array().into_iter().flatten().filter_map(|one| one.as_str().map(str::to_owned)).collect()
}

fn choice(body: &Value, names: &[&str], otherwise: &str) -> Result<String, ApiError> {
    match names.iter().map(|name| &body[*name]).find(|value| !value.is_null()) {
        None => Ok(otherwise.to_owned()),
        Some(Value::String(text)) => Ok(text.clone()),
        Some(_) => Err(ApiError::invalid(format!("{} must be a string", names[0]))),
    }
}

fn flag(body: &Value, name: &str) -> Result<bool, ApiError> {
    match &body[name] {
        Value::Null => Ok(false),
        Value::Bool(is_set) => Ok(*is_set),
        _ => Err(ApiError::invalid(format!("{name} must be true or false"))),
    }
}

pub(crate) fn optional_object(body: &Value, name: &str) -> Result<Map<String, Value>, ApiError> {
    match &body[name] {
        Value::Null => Ok(Map::new()),
        Value::Object(fields) => Ok(fields.clone()),
        _ => Err(ApiError::invalid(format!("{name} must be an object"))),
    }
}

/// The configuration and the context of a run or an assistant. Clients give one of them, and nodes read
/// either: the values of the other are the same then.
pub(crate) fn settings(body: &Value) -> Result<[Map<String, Value>; 2], ApiError> {
    let (mut config, mut context) = (optional_object(body, "config")?, optional_object(body, "context")?);
    match config.get("configurable").and_then(Value::as_object).filter(|given| !given.is_empty()) {
        Some(configurable) if context.is_empty() => context.clone_from(configurable),
        None if !context.is_empty() => {
            config.insert("configurable".to_owned(), context.clone().into());
        }
        _ => {}
    }
    Ok([config, context])
}

fn command(command: &Value) -> Result<Value, ApiError> {
    match command {
        Value::Null => Ok(Value::Null),
        Value::Object(fields) => {
            // `RemoteGraph` sends an empty list for a command that goes nowhere.
            let nodes = goto(&command["goto"])?;
            if !nodes.is_empty() && fields.get("resume").is_some_and(|resume| !resume.is_null()) {
                let detail = "command.goto is not served beside command.resume: answer first, then go on";
                return Err(ApiError::invalid(detail));
            }
            Ok(command.clone())
        }
        _ => Err(ApiError::invalid("command must be an object")),
    }
}

/// The nodes of a `goto`, and those with an input of their own: `{node, input}`. A run that goes to the end
/// goes nowhere.
pub(super) fn goto(goto: &Value) -> Result<Vec<Goto>, ApiError> {
    let given = match goto {
        Value::Null => &[],
        Value::Array(list) => list.as_slice(),
        one => std::slice::from_ref(one),
    };
    let named = |node: &str| !["", "__end__"].contains(&node);
    let mut targets = Vec::new();
    for target in given {
        match (target.as_str(), target["node"].as_str()) {
            (Some(node), _) if named(node) => targets.push(Goto::Node(node.to_owned().into())),
            (None, Some(node)) if named(node) => {
                targets.push(Goto::Dispatch(Dispatch::new(node.to_owned(), target["input"].clone())));
            }
            (None, None) => {
                let detail = "command.goto must be nodes, or objects with a node and its input";
                return Err(ApiError::invalid(detail));
            }
            _ => {}
        }
    }
    Ok(targets)
}

fn wire_id(body: &Value) -> Value {
    let inside = &body["checkpoint"]["checkpoint_id"];
    if inside.is_null() { body["checkpoint_id"].clone() } else { inside.clone() }
}

/// The checkpoint that a body names, by its id or as an object.
pub(crate) fn checkpoint(body: &Value) -> Result<Option<WirePlace>, ApiError> {
    match wire_id(body) {
        Value::Null => Ok(None),
        Value::String(id) => WirePlace::parse(&id).map(Some),
        _ => Err(ApiError::invalid("checkpoint_id must be a string")),
    }
}

fn modes(given: &Value) -> Result<Vec<String>, ApiError> {
    let modes = match given {
        Value::Null => vec!["values".to_owned()],
        Value::String(mode) => vec![mode.clone()],
        Value::Array(list) if list.is_empty() => vec!["values".to_owned()],
        Value::Array(list) if list.iter().all(Value::is_string) => texts(given),
        _ => return Err(ApiError::invalid("stream_mode must be a mode or a list of modes")),
    };
    match modes.iter().find(|mode| !MODES.contains(&&***mode)) {
        Some(unknown) => {
            let known = MODES.join(", ");
            Err(ApiError::invalid(format!("the stream mode {unknown} is not served: choose from {known}")))
        }
        None => Ok(modes),
    }
}

fn nodes(body: &Value, name: &str) -> Result<Value, ApiError> {
    match &body[name] {
        Value::Null => Ok(json!([])),
        Value::String(all) if all == "*" => Ok(json!(["*"])),
        Value::Array(list) if list.iter().all(Value::is_string) => Ok(body[name].clone()),
        _ => Err(ApiError::invalid(format!("{name} must be \"*\" or a list of nodes"))),
    }
}

fn durability(body: &Value) -> Result<String, ApiError> {
    let otherwise = if body["checkpoint_during"] == false { "exit" } else { "sync" };
    let durability = choice(body, &["durability"], otherwise)?;
    if ["sync", "async", "exit"].contains(&&*durability) {
        Ok(durability)
    } else {
        Err(ApiError::invalid("durability must be sync, async or exit"))
    }
}

fn after_seconds(body: &Value) -> Result<f64, ApiError> {
    const YEAR: f64 = 366.0 * 86_400.0;
    match &body["after_seconds"] {
        Value::Null => Ok(0.0),
        Value::Number(number) => {
            let seconds = number.as_f64().filter(|seconds| (0.0..=YEAR).contains(seconds));
            seconds.ok_or_else(|| ApiError::invalid("after_seconds must be from 0 to a year"))
        }
        _ => Err(ApiError::invalid("after_seconds must be a number")),
    }
}

/// The limit of supersteps, if the run has one.
pub(crate) fn recursion_limit(kwargs: &Value) -> Result<Option<u64>, ApiError> {
    match &kwargs["config"]["recursion_limit"] {
        Value::Null => Ok(None),
        limit => match limit.as_u64() {
            Some(limit) if limit > 0 => Ok(Some(limit)),
            _ => Err(ApiError::invalid("config.recursion_limit must be an integer above 0")),
        },
    }
}
