//! What is known of the server when an action is judged. What is not known is not judged.

use crate::client::{
    ContextMetadata, Dialect, EnrollmentDetail, Experiment, ExperimentName, GlobalExclusion,
};

/// What is known of the server.
#[derive(Clone, Copy, Debug, Default)]
pub struct Facts<'a> {
    /// The contexts.
    pub contexts: Option<&'a ContextMetadata>,
    /// The experiments' names.
    pub names: &'a [ExperimentName],
    /// The experiment that the action is about.
    pub experiment: Option<&'a Experiment>,
    /// The experiments of the server, with their decision points; the one above may be among them.
    pub experiments: &'a [Experiment],
    /// Who takes part in the experiment.
    pub enrollment: Option<&'a EnrollmentDetail>,
    /// Who is excluded from every experiment of the context that the action is about.
    pub globally_excluded: Option<&'a GlobalExclusion>,
    /// At least how many students were at the points that leave early visitors out, as far as enrolments
    /// tell: of visits without one the server tells nothing.
    pub seen_before: Option<u64>,
    /// The most students that one simulation may play; 1,000 if it is not known.
    pub max_students: Option<u32>,
    /// The wire dialect; the newer one if it is not known.
    pub dialect: Option<Dialect>,
    /// What the server was asked for and did not tell.
    pub untold: &'a [&'static str],
}

impl<'a> Facts<'a> {
    /// The other experiments of a context.
    pub(super) fn others(self, context: &'a str) -> impl Iterator<Item = &'a Experiment> {
        let own = self.experiment.map(|experiment| experiment.id.as_str());
        let others = self.experiments.iter().filter(move |other| Some(other.id.as_str()) != own);
        others.filter(move |other| other.context.iter().any(|name| name == context))
    }

    /// Whether the server speaks the dialect up to 6.2.
    pub(super) fn is_old(self) -> bool {
        self.dialect == Some(Dialect::V62)
    }
}
