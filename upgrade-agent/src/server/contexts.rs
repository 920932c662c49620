//! The contexts that are served unless others are given.

use crate::client::{Context, ContextMetadata};

pub(crate) fn default_contexts() -> ContextMetadata {
    let assign_prog = context(
        &["control", "variant"],
        &["schoolId", "classId", "instructorId"],
        &["SelectSection", "workspace"],
        &["absolute_value_plot_equality", "analyzing_step_functions"],
    );
    let mathstream = context(
        &["question-hint-default", "question-hint-tutorbot"],
        &["classId"],
        &["lesson-stream"],
        &["question-hint"],
    );
    let contexts = [("assign-prog", assign_prog), ("mathstream", mathstream)];
    ContextMetadata { contexts: contexts.map(|(name, words)| (name.to_owned(), words)).into() }
}

fn context(conditions: &[&str], groups: &[&str], sites: &[&str], targets: &[&str]) -> Context {
    let owned = |words: &[&str]| words.iter().map(|&word| word.to_owned()).collect();
    Context {
        conditions: owned(conditions),
        group_types: owned(groups),
        sites: owned(sites),
        targets: owned(targets),
    }
}
