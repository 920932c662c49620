//! The fields of the spans of a test. The switch belongs to the process, so tests that use it run one after
//! the other.

use std::collections::BTreeMap;
use std::fmt::Debug;
use std::sync::{Arc, Mutex};

use agentgraph_llm::ContentCapture;
use serde_json::Value;
use tokio::sync::MutexGuard;
use tracing::field::{Field, Visit};
use tracing::span::{Attributes, Id, Record};
use tracing::subscriber::DefaultGuard;
use tracing_subscriber::layer::{Context, Layer, SubscriberExt};
use tracing_subscriber::registry::LookupSpan;

static TURN: tokio::sync::Mutex<()> = tokio::sync::Mutex::const_new(());

type Fields = BTreeMap<&'static str, String>;

/// The fields of each span and of each event, in their order.
#[derive(Clone, Default)]
struct Seen(Arc<Mutex<Vec<Fields>>>);

/// The place of a span in the list.
struct Place(usize);

pub struct Spans {
    seen: Seen,
    _subscriber: DefaultGuard,
    _turn: MutexGuard<'static, ()>,
}

impl Spans {
    /// Begins to listen, with this capture.
    pub async fn listen(capture: Option<ContentCapture>) -> Self {
        let turn = TURN.lock().await;
        match capture {
            Some(capture) => capture.install(),
            None => ContentCapture::remove(),
        }
        let seen = Seen::default();
        let subscriber = tracing_subscriber::registry().with(seen.clone());
        Spans { seen, _subscriber: tracing::subscriber::set_default(subscriber), _turn: turn }
    }

    /// The values of a field as JSON, in the order of the spans.
    pub fn json(&self, field: &str) -> Vec<Value> {
        let seen = self.seen.0.lock().unwrap();
        let values = seen.iter().filter_map(|fields| fields.get(field));
        values.map(|value| serde_json::from_str(value).unwrap()).collect()
    }

    /// Everything that was recorded.
    pub fn text(&self) -> String {
        format!("{:?}", self.seen.0.lock().unwrap())
    }
}

impl Drop for Spans {
    fn drop(&mut self) {
        ContentCapture::remove();
    }
}

struct Visitor<'a>(&'a mut Fields);

impl Visit for Visitor<'_> {
    fn record_debug(&mut self, field: &Field, value: &dyn Debug) {
        let earlier = self.0.insert(field.name(), format!("{value:?}"));
        assert!(earlier.is_none() || !field.name().starts_with("gen_ai."), "{field} was recorded twice");
    }
}

impl Seen {
    fn add(&self, record: impl FnOnce(&mut Visitor<'_>)) -> Place {
        let mut seen = self.0.lock().unwrap();
        let mut fields = Fields::new();
        record(&mut Visitor(&mut fields));
        seen.push(fields);
        Place(seen.len() - 1)
    }
}

impl<S: tracing::Subscriber + for<'a> LookupSpan<'a>> Layer<S> for Seen {
    fn on_new_span(&self, attributes: &Attributes<'_>, id: &Id, context: Context<'_, S>) {
        let place = self.add(|visitor| attributes.record(visitor));
        context.span(id).unwrap().extensions_mut().insert(place);
    }

    fn on_record(&self, id: &Id, values: &Record<'_>, context: Context<'_, S>) {
        let span = context.span(id).unwrap();
        let place = span.extensions().get::<Place>().unwrap().0;
        values.record(&mut Visitor(&mut self.0.lock().unwrap()[place]));
    }

    fn on_event(&self, event: &tracing::Event<'_>, _: Context<'_, S>) {
        self.add(|visitor| event.record(visitor));
    }
}
