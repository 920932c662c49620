//! A call passes values to its nodes, wherever they run. The values end with the call.

use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};
use std::task::{Context, Poll};

use agentgraph::host::{Host, TaskCall, TaskReply};
use agentgraph::node::{NodeCall, NodeService};
use agentgraph::prelude::*;
use agentgraph::{BoxError, Code, Error};
#[cfg(feature = "sqlite")]
use futures_util::StreamExt;
use futures_util::future::BoxFuture;
use tower::Service;
use tower::layer::layer_fn;

use crate::common::words::{Words, WordsUpdate, says, text};

/// The value of a call. Its text must not be found anywhere after the call.
#[derive(Debug)]
struct User {
    token: &'static str,
}

const ADA: User = User { token: "token-of-ada" };
const GRACE: User = User { token: "token-of-grace" };

/// A node that writes the length of the token, so that the token itself is in no state.
async fn greet(ctx: Ctx, user: CallContext<User>) -> WordsUpdate {
    Words::update().seen([format!("{}:{}", ctx.node(), user.token.len())])
}

/// A node that asks a question and then reads the context.
async fn ask(ctx: Ctx, user: CallContext<User>) -> Result<WordsUpdate> {
    let answer: String = ctx.interrupt("go on?")?;
    Ok(Words::update().seen([format!("{answer}:{}", user.token.len())]))
}

fn single(name: &'static str) -> StateGraph<Words> {
    StateGraph::new().node(name, greet).edge(START, name)
}

fn problem_of(error: &Error) -> (Code, String) {
    (error.code(), error.to_string())
}

#[tokio::test]
async fn nodes_of_every_discipline_read_it() {
    for graph in [single("a"), single("a").eager()] {
        let graph = graph.compile().unwrap();
        let words = graph.invoke(Words::update()).context(ADA).await.unwrap().into_finished().unwrap();
        assert_eq!(text(&words), "a:12");
    }
    let pass = DependencyGraph::<usize>::new()
        .node("a", |user: CallContext<User>| async move { user.token.len() })
        .node("b", |deps: Deps<usize>, user: CallContext<User>| deps["a"] + user.token.len())
        .edge("a", "b")
        .compile()
        .unwrap();
    let outputs = pass.invoke(()).context(ADA).await.unwrap().into_finished().unwrap();
    assert_eq!(outputs["b"], 24);
    let error = pass.invoke(()).await.unwrap_err();
    assert_eq!(error.code(), Code::MissingContext);
    assert!(error.to_string().contains("node `a`"), "{error}");
}

#[tokio::test]
async fn subgraphs_of_every_depth_read_it() {
    let inner = single("deep").compile().unwrap();
    let middle = StateGraph::new().node("inner", inner).edge(START, "inner").compile().unwrap();
    let graph = StateGraph::new().node("middle", middle).edge(START, "middle").compile().unwrap();
    let words = graph.invoke(Words::update()).context(ADA).await.unwrap().into_finished().unwrap();
    assert_eq!(text(&words), "deep:12");

    let error = graph.invoke(Words::update()).await.unwrap_err();
    assert_eq!(error.code(), Code::MissingContext);
    assert!(error.to_string().contains("node `middle.inner.deep`"), "{error}");
}

#[tokio::test]
async fn handlers_of_failures_read_it() {
    async fn fail() -> Result<WordsUpdate> {
        Err("always".into())
    }
    let graph = StateGraph::new()
        .node("work", fail.on_error("greet"))
        .node("greet", greet)
        .edge(START, "work")
        .compile()
        .unwrap();
    let words = graph.invoke(Words::update()).context(ADA).await.unwrap().into_finished().unwrap();
    assert_eq!(text(&words), "greet:12");
}

/// A layer that lets only one user pass.
#[derive(Clone)]
struct OnlyAda(NodeService<Words>);

impl Service<NodeCall<Words>> for OnlyAda {
    type Response = agentgraph::node::Step<Words>;
    type Error = BoxError;
    type Future = BoxFuture<'static, Result<Self::Response, BoxError>>;

    fn poll_ready(&mut self, cx: &mut Context<'_>) -> Poll<Result<(), BoxError>> {
        self.0.poll_ready(cx)
    }

    fn call(&mut self, call: NodeCall<Words>) -> Self::Future {
        let allowed = call.task().ctx().call_context::<User>().map(|user| user.token == ADA.token);
        match allowed {
            Ok(true) => self.0.call(call),
            Ok(false) => Box::pin(async { Err("only for Ada".into()) }),
            Err(missing) => Box::pin(async move { Err(missing.into()) }),
        }
    }
}

#[tokio::test]
async fn layers_read_it() {
    let graph = StateGraph::new()
        .node("work", says("work").layer(layer_fn(OnlyAda)))
        .edge(START, "work")
        .compile()
        .unwrap();
    let call = || graph.invoke(Words::update());
    assert_eq!(text(call().context(ADA).await.unwrap().output()), "work");
    assert_eq!(call().context(GRACE).await.unwrap_err().code(), Code::NodeFailed);
    // A layer declares nothing, so its call fails when it runs.
    let error = call().await.unwrap_err();
    assert_eq!(error.code(), Code::MissingContext);
    assert!(error.to_string().contains("this call of `invoke` was passed no `"), "{error}");
}

#[tokio::test]
async fn temporary_nodes_read_it() {
    async fn plan(ctx: Ctx) -> Result<()> {
        ctx.edits().add_node("late", "greet", ())?;
        ctx.edits().add_edge("plan", "late")?;
        Ok(())
    }
    let graph = StateGraph::<Words>::new()
        .node("plan", plan)
        .edge(START, "plan")
        .template("greet", |(): ()| greet)
        .compile()
        .unwrap();
    let words = graph.invoke(Words::update()).context(ADA).await.unwrap().into_finished().unwrap();
    assert_eq!(text(&words), "late:12");
    let error = graph.invoke(Words::update()).await.unwrap_err();
    assert_eq!((error.code(), error.node()), (Code::MissingContext, Some("late")));
}

#[tokio::test]
async fn a_call_without_it_names_itself_and_runs_nothing() {
    let ran = Arc::new(AtomicU32::new(0));
    let counter = Arc::clone(&ran);
    let count = move || {
        counter.fetch_add(1, Ordering::SeqCst);
        async {}
    };
    let graph = StateGraph::new()
        .node("count", count)
        .node("ask", ask)
        .edge(START, "count")
        .edge("count", "ask")
        .compile()
        .unwrap()
        .checkpointer(MemorySaver::new());
    let error = graph.invoke(Words::update()).thread("t").await.unwrap_err();
    let user = std::any::type_name::<User>();
    let wanted = |call: &str| {
        format!(
            "E_MISSING_CONTEXT: node `ask` takes a `CallContext<{user}>`, and this call of `{call}` was passed no `{user}`: add \
             `.context(..)` to the call (thread `t`)"
        )
    };
    assert_eq!(problem_of(&error), (Code::MissingContext, wanted("invoke")));
    assert_eq!(error.thread(), Some("t"));
    assert_eq!(ran.load(Ordering::SeqCst), 0);
    assert!(graph.state("t").await.unwrap().is_none());

    // A refused call changes nothing on a thread that waits.
    let waits = graph.invoke(Words::update()).thread("t").context(ADA).await.unwrap();
    assert_eq!(waits.interrupts().len(), 1);
    let error = graph.resume("yes").thread("t").await.unwrap_err();
    assert_eq!(problem_of(&error), (Code::MissingContext, wanted("resume")));
    let error = graph.proceed().thread("t").await.unwrap_err();
    assert_eq!(problem_of(&error), (Code::MissingContext, wanted("proceed")));
    assert_eq!(graph.state("t").await.unwrap().unwrap().interrupts.len(), 1);
    let words = graph.resume("yes").thread("t").context(GRACE).await.unwrap().into_finished().unwrap();
    assert_eq!((text(&words), ran.load(Ordering::SeqCst)), ("yes:14".to_owned(), 1));
}

#[tokio::test]
async fn a_change_of_the_state_needs_none() {
    let graph = single("a").compile().unwrap().checkpointer(MemorySaver::new());
    graph.update_state("t").update(Words::update().seen(["x"])).await.unwrap();
    assert_eq!(text(&graph.state("t").await.unwrap().unwrap().values), "x");
}

#[tokio::test]
async fn an_optional_one_may_be_missing() {
    async fn greet(user: Option<CallContext<User>>) -> WordsUpdate {
        Words::update().seen([user.map_or("guest", |user| if user.token == ADA.token { "ada" } else { "?" })])
    }
    let graph = StateGraph::new().node("greet", greet).edge(START, "greet").compile().unwrap();
    assert_eq!(text(graph.invoke(Words::update()).await.unwrap().output()), "guest");
    assert_eq!(text(graph.invoke(Words::update()).context(ADA).await.unwrap().output()), "ada");
}

#[tokio::test]
async fn each_type_has_one_value_and_the_last_one_counts() {
    struct Tenant(u8);
    async fn both(user: CallContext<User>, tenant: CallContext<Tenant>) -> WordsUpdate {
        Words::update().seen([format!("{} {}", user.token, tenant.0)])
    }
    let graph = StateGraph::new().node("both", both).edge(START, "both").compile().unwrap();
    let call = graph.invoke(Words::update()).context(GRACE).context(Tenant(7)).context(ADA);
    assert_eq!(text(call.await.unwrap().output()), "token-of-ada 7");
}

/// A hundred calls at once on one graph: each node reads the value of its own call.
#[tokio::test]
async fn calls_side_by_side_have_their_own_values() {
    struct Caller(usize);
    async fn note(caller: CallContext<Caller>) -> WordsUpdate {
        tokio::task::yield_now().await;
        Words::update().seen([caller.0.to_string()])
    }
    let graph = StateGraph::new().node("note", note).edge(START, "note").compile().unwrap();
    let calls = (0..100).map(|n| graph.invoke(Words::update()).context(Caller(n)).into_future());
    let outcomes = futures_util::future::join_all(calls).await;
    for (n, outcome) in outcomes.into_iter().enumerate() {
        assert_eq!(text(outcome.unwrap().output()), n.to_string());
    }
}

/// Stores, events and errors contain nothing of the value, and nothing keeps it after the call.
#[cfg(feature = "sqlite")]
#[tokio::test]
async fn nothing_of_it_outlives_the_call() {
    struct Secret(String);
    async fn fail_once(ctx: Ctx, secret: CallContext<Secret>) -> Result<WordsUpdate> {
        ctx.emit(format!("{secret:?}")).await;
        match ctx.attempt() {
            1 => Err(format!("no luck with {secret:?}").into()),
            _ => Ok(Words::update().seen([secret.0.len().to_string()])),
        }
    }
    let folder = crate::sqlite_folder::Folder::new();
    let file = folder.file("threads.db");
    let graph = StateGraph::new()
        .node("work", fail_once.retry(RetryPolicy::attempts(2).initial(std::time::Duration::ZERO)))
        .node("ask", |ctx: Ctx| async move { ctx.interrupt::<bool>("go on?").map(drop) })
        .edge(START, "work")
        .edge("work", "ask")
        .compile()
        .unwrap()
        .checkpointer(SqliteSaver::open(&file).await.unwrap());
    let probe: Arc<str> = Arc::from("any text");
    let mut stream = graph
        .invoke(Words::update())
        .thread("t")
        .context(Secret("hunter2-is-the-password".to_owned()))
        .context(Arc::clone(&probe))
        .views([View::Values, View::Updates, View::Custom, View::Checkpoints, View::Debug])
        .stream();
    let mut shown = String::new();
    while let Some(event) = stream.next().await {
        shown += &format!("{event:?}\n");
    }
    drop(stream);
    assert!(shown.contains("CallContext<"), "{shown}");
    assert!(!shown.contains("hunter2"), "{shown}");
    assert_eq!(Arc::strong_count(&probe), 1);
    drop(graph);
    for entry in std::fs::read_dir(file.parent().unwrap()).unwrap() {
        let bytes = std::fs::read(entry.unwrap().path()).unwrap();
        assert!(!bytes.is_empty());
        assert!(!bytes.windows(7).any(|window| window == b"hunter2"));
    }
}

/// A host that may pass a user of its own.
struct Elsewhere {
    graph: CompiledGraph<Words>,
    user: Option<&'static str>,
}

#[async_trait::async_trait]
impl Host for Elsewhere {
    async fn run(&self, call: TaskCall) -> Result<TaskReply, BoxError> {
        let task = self.graph.run_task(call);
        Ok(match self.user {
            Some(token) => task.context(User { token }).await?,
            None => task.await?,
        })
    }
}

/// Values stay in the process of the call, so a host passes its own.
#[tokio::test]
async fn a_host_passes_its_own() {
    let hosted = |user| {
        let graph = single("a").compile().unwrap();
        graph.clone().host(Elsewhere { graph, user })
    };
    let outcome = hosted(Some("at the host")).invoke(Words::update()).context(ADA).await.unwrap();
    assert_eq!(text(outcome.output()), "a:11");
    let error = hosted(None).invoke(Words::update()).context(ADA).await.unwrap_err();
    assert_eq!(error.code(), Code::MissingContext);
    assert!(error.to_string().contains("this call of `run_task`"), "{error}");
}
