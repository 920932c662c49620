//! [`Narrow`]: a graph as a function from one type to another, with a hidden state.

use std::fmt;
use std::marker::PhantomData;

use serde::Serialize;

use super::compiled::CompiledGraph;
use crate::run::RunBuilder;
use crate::state::State;
use crate::words::{InterruptId, clones};

/// A graph whose runs take an `I` and show an `O`: see [`CompiledGraph::narrow`].
pub struct Narrow<S: State, I, O> {
    graph: CompiledGraph<S>,
    #[allow(clippy::type_complexity)]
    between: PhantomData<fn(I) -> O>,
}

/// # Other types for the input and the result
impl<S: State> CompiledGraph<S> {
    /// Hides the state of the graph: its runs take an `I`, which becomes an update, and show an `O`, which is
    /// made from the last state. Callers can neither write nor read more.
    ///
    /// ```
    /// # use agentgraph::prelude::*;
    /// #[derive(State, Clone, Debug, Default)]
    /// struct Triage { question: String, draft: String, answer: String }
    ///
    /// struct Question(String);
    /// impl From<Question> for TriageUpdate {
    ///     fn from(Question(text): Question) -> Self {
    ///         Triage::update().question(text)
    ///     }
    /// }
    ///
    /// struct Answer(String);
    /// impl From<Triage> for Answer {
    ///     fn from(state: Triage) -> Self {
    ///         Answer(state.answer)
    ///     }
    /// }
    ///
    /// # async fn answer(state: Snapshot<Triage>) -> TriageUpdate { Triage::update().answer(format!("{}!", state.question)) }
    /// # #[tokio::main(flavor = "current_thread")]
    /// # async fn main() -> Result<()> {
    /// # let graph = StateGraph::new().node("answer", answer).edge(START, "answer").compile()?;
    /// let ask = graph.narrow::<Question, Answer>();
    /// let Answer(answer) = ask.invoke(Question("tea".into())).finish().await?;
    /// assert_eq!(answer, "tea!");
    /// # Ok(())
    /// # }
    /// ```
    pub fn narrow<I: Into<S::Update>, O: From<S>>(&self) -> Narrow<S, I, O> {
        Narrow { graph: self.clone(), between: PhantomData }
    }
}

impl<S: State, I: Into<S::Update>, O: From<S>> Narrow<S, I, O> {
    /// [`CompiledGraph::invoke`].
    pub fn invoke(&self, input: I) -> RunBuilder<S, O> {
        self.graph.invoke(input).output()
    }

    /// [`CompiledGraph::resume`].
    pub fn resume(&self, answer: impl Serialize) -> RunBuilder<S, O> {
        self.graph.resume(answer).output()
    }

    /// [`CompiledGraph::resume_many`].
    pub fn resume_many<A: Serialize>(
        &self,
        answers: impl IntoIterator<Item = (InterruptId, A)>,
    ) -> RunBuilder<S, O> {
        self.graph.resume_many(answers).output()
    }

    /// [`CompiledGraph::proceed`].
    pub fn proceed(&self) -> RunBuilder<S, O> {
        self.graph.proceed().output()
    }
}

clones!([S: State, I, O] Narrow<S, I, O> { graph, between });

impl<S: State, I, O> fmt::Debug for Narrow<S, I, O> {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        out.debug_tuple("Narrow").field(&self.graph).finish()
    }
}
