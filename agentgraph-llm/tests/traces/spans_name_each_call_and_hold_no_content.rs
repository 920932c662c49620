//! The spans of a tool loop, with the names of the OpenTelemetry GenAI conventions.

use std::collections::BTreeMap;
use std::fmt::Debug;
use std::sync::{Arc, Mutex};

use agentgraph_llm::prelude::*;
use agentgraph_llm::{Code, Error};
use schemars::JsonSchema;
use serde::Deserialize;
use serde_json::json;
use tracing::field::{Field, Visit};
use tracing::span::{Attributes, Id, Record};
use tracing_subscriber::layer::{Context, Layer, SubscriberExt};
use tracing_subscriber::registry::LookupSpan;

/// The closed spans: each as `parent > name`, with its fields.
#[derive(Clone, Default)]
struct Closed(Arc<Mutex<Vec<(String, Fields)>>>);

type Fields = BTreeMap<&'static str, String>;

struct FieldsVisitor<'a>(&'a mut Fields);

impl Visit for FieldsVisitor<'_> {
    fn record_debug(&mut self, field: &Field, value: &dyn Debug) {
        self.0.insert(field.name(), format!("{value:?}").trim_matches('"').to_owned());
    }
}

impl<S: tracing::Subscriber + for<'a> LookupSpan<'a>> Layer<S> for Closed {
    fn on_new_span(&self, attributes: &Attributes<'_>, id: &Id, context: Context<'_, S>) {
        let mut fields = Fields::new();
        attributes.record(&mut FieldsVisitor(&mut fields));
        context.span(id).unwrap().extensions_mut().insert(fields);
    }

    fn on_record(&self, id: &Id, values: &Record<'_>, context: Context<'_, S>) {
        let span = context.span(id).unwrap();
        let mut extensions = span.extensions_mut();
        values.record(&mut FieldsVisitor(extensions.get_mut().unwrap()));
    }

    fn on_close(&self, id: Id, context: Context<'_, S>) {
        let span = context.span(&id).unwrap();
        let parent = span.parent().map_or("-", |parent| parent.name());
        let fields = span.extensions_mut().remove::<Fields>().unwrap();
        self.0.lock().unwrap().push((format!("{parent} > {}", span.name()), fields));
    }
}

#[derive(Deserialize, JsonSchema)]
struct Nothing {}

#[tokio::test]
async fn a_loop_gives_one_tree_of_spans_with_names_numbers_and_errors() {
    let closed = Closed::default();
    let _guard = tracing::subscriber::set_default(tracing_subscriber::registry().with(closed.clone()));

    let mut many = Reply::empty().with_usage(agentgraph_llm::Usage::new(30, 7));
    for _ in 0..100 {
        many = many.and_tool_call("wait", json!({}));
    }
    let model = ScriptedModel::new([
        many.and_tool_call("missing", json!({"swordfish": 1})),
        Reply::error(Error::new(Code::Overloaded, "swordfish")),
    ]);
    let wait = FnTool::new("wait", "Waits for the others.", async |_: Nothing| {
        tokio::task::yield_now().await;
        drop(tracing::info_span!("inside"));
        Ok::<_, ToolError>("swordfish")
    });
    let node = tracing::info_span!("node");
    let request = ChatRequest::user("swordfish").with_max_tokens(50);
    let run = ToolLoop::new(&model).tool(wait.clone()).on_event(async |_| {}).run(request);
    tracing::Instrument::instrument(run, node).await.unwrap_err();

    let model = ScriptedModel::new([Reply::tool_call("wait", json!({})), Reply::text("swordfish")]);
    let agent = Agent::new(model).name("clerk").tool(wait.clone()).compile().unwrap();
    let closed_loop = std::mem::take(&mut *closed.0.lock().unwrap());
    agent.invoke("swordfish").await.unwrap();
    an_agent_is_one_tree_below_its_run(&std::mem::replace(&mut *closed.0.lock().unwrap(), closed_loop));

    let closed = closed.0.lock().unwrap();
    let count = |name: &str| closed.iter().filter(|(path, _)| path == name).count();
    assert_eq!((count("node > chat"), count("node > execute_tool"), count("- > node")), (2, 101, 1));
    assert_eq!(count("execute_tool > inside"), 100, "every tool has its own span, although many run at once");
    assert_eq!(closed.len(), 204, "nothing outside the node");
    assert!(!format!("{closed:?}").contains("swordfish"), "content is in no span");

    let fields =
        |at: usize| closed.iter().filter(|(path, _)| path.ends_with("chat")).nth(at).unwrap().1.clone();
    let first = fields(0);
    let second = fields(1);
    let expected = [
        ("otel.name", "chat scripted"),
        ("otel.kind", "client"),
        ("gen_ai.operation.name", "chat"),
        ("gen_ai.provider.name", "scripted"),
        ("gen_ai.request.model", "scripted"),
        ("gen_ai.request.max_tokens", "50"),
        ("gen_ai.request.stream", "true"),
        ("gen_ai.response.finish_reasons", "tool_use"),
        ("gen_ai.usage.input_tokens", "30"),
        ("gen_ai.usage.output_tokens", "7"),
    ];
    for (name, value) in expected {
        assert_eq!(first.get(name).map(String::as_str), Some(value), "{name}");
    }
    assert_eq!(first.get("error.type"), None);
    assert_eq!(second["error.type"], "E_LLM_OVERLOADED");
    assert_eq!(second["otel.status_code"], "ERROR");

    let tool = |name: &str| {
        closed.iter().find(|(_, fields)| fields.get("gen_ai.tool.name").is_some_and(|of| of == name))
    };
    let (_, wait) = tool("wait").unwrap();
    assert_eq!(
        (wait["otel.name"].as_str(), wait["gen_ai.tool.type"].as_str()),
        ("execute_tool wait", "function")
    );
    assert!(wait["gen_ai.tool.call.id"].starts_with("call-") && !wait.contains_key("error.type"));
    assert_eq!(tool("missing").unwrap().1["error.type"], "failed");
}

fn an_agent_is_one_tree_below_its_run(closed: &[(String, Fields)]) {
    let count = |name: &str| closed.iter().filter(|(path, _)| path == name).count();
    assert_eq!(
        (count("- > run"), count("attempt > chat"), count("attempt > execute_tool")),
        (1, 2, 1),
        "{closed:?}"
    );
    let run = &closed.iter().find(|(path, _)| path == "- > run").unwrap().1;
    assert_eq!(run["otel.name"], "invoke_agent clerk");
    assert_eq!(
        (run["gen_ai.operation.name"].as_str(), run["gen_ai.agent.name"].as_str()),
        ("invoke_agent", "clerk")
    );
    assert!(!format!("{closed:?}").contains("swordfish"), "content is in no span");
}
