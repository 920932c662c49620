//! The spans that a test has caused, as a tree in text.

use std::collections::BTreeMap;
use std::fmt::Debug;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Mutex, OnceLock};

use tracing::field::{Field, Visit};
use tracing::span::{Attributes, Id, Record};
use tracing::{Instrument, Span};
use tracing_subscriber::layer::{Context, Layer, SubscriberExt};
use tracing_subscriber::registry::LookupSpan;

/// Every span of the process, in the order in which they opened.
static SPANS: Mutex<Vec<Recorded>> = Mutex::new(Vec::new());
static NEXT: AtomicU64 = AtomicU64::new(0);

struct Recorded {
    id: Number,
    parent: Option<Number>,
    name: &'static str,
    fields: Fields,
    open: bool,
}

type Fields = BTreeMap<&'static str, String>;

/// The number of a span; `tracing` gives the ids of closed spans to others.
#[derive(Clone, Copy, PartialEq)]
struct Number(u64);

struct Recorder;

impl<S: tracing::Subscriber + for<'a> LookupSpan<'a>> Layer<S> for Recorder {
    fn on_new_span(&self, attributes: &Attributes<'_>, id: &Id, context: Context<'_, S>) {
        let mut fields = Fields::new();
        attributes.record(&mut FieldsVisitor(&mut fields));
        let span = context.span(id).unwrap();
        let parent = span.parent().and_then(|parent| parent.extensions().get::<Number>().copied());
        let id = Number(NEXT.fetch_add(1, Ordering::Relaxed));
        span.extensions_mut().insert(id);
        SPANS.lock().unwrap().push(Recorded { id, parent, name: span.name(), fields, open: true });
    }

    fn on_record(&self, id: &Id, values: &Record<'_>, context: Context<'_, S>) {
        change(id, &context, |span| values.record(&mut FieldsVisitor(&mut span.fields)));
    }

    fn on_close(&self, id: Id, context: Context<'_, S>) {
        change(&id, &context, |span| span.open = false);
    }
}

fn change<S: tracing::Subscriber + for<'a> LookupSpan<'a>>(
    id: &Id,
    context: &Context<'_, S>,
    change: impl FnOnce(&mut Recorded),
) {
    let number = *context.span(id).unwrap().extensions().get::<Number>().unwrap();
    change(SPANS.lock().unwrap().iter_mut().find(|span| span.id == number).unwrap());
}

struct FieldsVisitor<'a>(&'a mut Fields);

impl Visit for FieldsVisitor<'_> {
    fn record_debug(&mut self, field: &Field, value: &dyn Debug) {
        self.0.insert(field.name(), format!("{value:?}").trim_matches('"').to_owned());
    }
}

/// The spans below a span of the test itself.
pub struct Trace(Span, Option<Number>);

impl Trace {
    pub fn new() -> Self {
        static ONCE: OnceLock<()> = OnceLock::new();
        ONCE.get_or_init(|| {
            tracing::subscriber::set_global_default(tracing_subscriber::registry().with(Recorder)).unwrap();
        });
        let span = tracing::info_span!("test", id = NEXT.fetch_add(1, Ordering::Relaxed));
        let number = span.with_subscriber(|(id, subscriber)| {
            let registry = subscriber.downcast_ref::<tracing_subscriber::Registry>().unwrap();
            *registry.span(id).unwrap().extensions().get::<Number>().unwrap()
        });
        Trace(span, number)
    }

    /// Runs a future whose spans belong to the test.
    pub fn follow<F: Future>(&self, future: F) -> tracing::instrument::Instrumented<F> {
        future.instrument(self.0.clone())
    }

    /// The tree: a line for each span, with its status and the code of its error; `..` if it is open.
    pub fn tree(&self) -> String {
        let spans = SPANS.lock().unwrap();
        let mut text = String::new();
        write_below(&spans, self.1, 0, &mut text);
        text.trim_end().to_owned()
    }

    /// A field of each span with this name.
    pub fn fields(&self, name: &str, field: &str) -> Vec<Option<String>> {
        self.all(name).into_iter().map(|mut fields| fields.remove(field)).collect()
    }

    /// The fields of each span with this name.
    pub fn all(&self, name: &str) -> Vec<Fields> {
        let spans = SPANS.lock().unwrap();
        let mut below = vec![self.1];
        let mut found = Vec::new();
        for span in spans.iter().filter(|span| span.parent.is_some()) {
            if below.contains(&span.parent) {
                below.push(Some(span.id));
                found.extend((span.name == name).then(|| span.fields.clone()));
            }
        }
        found
    }
}

fn write_below(spans: &[Recorded], parent: Option<Number>, depth: usize, text: &mut String) {
    for span in spans.iter().filter(|span| span.parent == parent) {
        let field = |name| span.fields.get(name).map_or("", String::as_str);
        let what = ["node", "attempt"].map(field).concat();
        let step = if span.name == "superstep" { field("step") } else { "" };
        let words = [span.name, &what, step, field("status"), field("reason"), field("otel.status_code")];
        let words = words.into_iter().chain([field("error.type"), if span.open { ".." } else { "" }]);
        let words: Vec<&str> = words.filter(|word| !word.is_empty()).collect();
        *text += &format!("{}{}\n", "  ".repeat(depth), words.join(" "));
        assert_eq!(field("otel.status_description"), field("error.type"));
        write_below(spans, Some(span.id), depth + 1, text);
    }
}

/// The lines of a tree, without the indentation of the source.
pub fn lines(tree: &str) -> String {
    let lines = tree.trim_matches('\n').trim_end().lines();
    let indent = lines.clone().map(|line| line.len() - line.trim_start().len()).min().unwrap_or(0);
    lines.map(|line| line[indent..].to_owned()).collect::<Vec<_>>().join("\n")
}
