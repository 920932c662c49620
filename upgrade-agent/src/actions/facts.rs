//! The server's data for the judgement of an action. Missing data are not judged.

use crate::client::{
    ContextMetadata, Dialect, EnrollmentDetail, Experiment, ExperimentName, GlobalExclusion,
};

/// The known data of the server.
#[derive(Clone, Copy, Debug, Default)]
pub struct Facts<'a> {
    /// The contexts.
    pub contexts: Option<&'a ContextMetadata>,
    /// The names of the experiments.
    pub names: &'a [ExperimentName],
    /// The experiment of the action.
    pub experiment: Option<&'a Experiment>,
    /// The experiments of the server with their decision points; the one above may be among them.
    pub experiments: &'a [Experiment],
    /// The enrolments of the experiment.
    pub enrollment: Option<&'a EnrollmentDetail>,
    /// The global exclusion list of the context.
    pub globally_excluded: Option<&'a GlobalExclusion>,
    /// A lower bound for the number of students at the points that exclude early visitors. It comes from
    /// enrolments, because the server does not report other visits.
    pub seen_before: Option<u64>,
    /// The limit of simulated students; 1,000 if unknown.
    pub max_students: Option<u32>,
    /// The wire dialect; the newer one if unknown.
    pub dialect: Option<Dialect>,
    /// The data that the server failed to return.
    pub untold: &'a [&'static str],
}

impl<'a> Facts<'a> {
    /// The other experiments of a context.
    pub(super) fn others(self, context: &'a str) -> impl Iterator<Item = &'a Experiment> {
        let own = self.experiment.map(|experiment| experiment.id.as_str());
        let others = self.experiments.iter().filter(move |other| Some(other.id.as_str()) != own);
        others.filter(move |other| other.context.iter().any(|name| name == context))
    }

    /// Whether the server has the dialect up to 6.2.
    pub(super) fn is_old(self) -> bool {
        self.dialect == Some(Dialect::V62)
    }
}
