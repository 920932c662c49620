//! What UpGrade's words mean, as the server really behaves. Text only: nothing here asks a server.

mod assignment;
mod core;

pub(super) use assignment::ASSIGNMENT;
pub(super) use core::CORE;

use serde::Serialize;
use serde::ser::{SerializeMap, Serializer};

/// A word with what it means, what it can be, and what is easily got wrong about it.
pub(super) struct Term {
    name: &'static str,
    definition: &'static str,
    options: &'static [(&'static str, &'static str)],
    notes: &'static [&'static str],
}

/// Terms under a heading.
pub(super) struct Section {
    name: &'static str,
    terms: &'static [Term],
}

/// A list of things, written as a JSON object by their names.
pub(super) struct ByName<T: 'static>(pub(super) &'static [T]);

impl Serialize for ByName<Term> {
    fn serialize<S: Serializer>(&self, to: S) -> Result<S::Ok, S::Error> {
        to.collect_map(self.0.iter().map(|term| (term.name, term)))
    }
}

impl Serialize for ByName<Section> {
    fn serialize<S: Serializer>(&self, to: S) -> Result<S::Ok, S::Error> {
        to.collect_map(self.0.iter().map(|section| (section.name, ByName(section.terms))))
    }
}

impl Serialize for Term {
    fn serialize<S: Serializer>(&self, to: S) -> Result<S::Ok, S::Error> {
        let mut map = to.serialize_map(None)?;
        map.serialize_entry("definition", self.definition)?;
        if !self.options.is_empty() {
            map.serialize_entry("options", &Options(self.options))?;
        }
        if !self.notes.is_empty() {
            map.serialize_entry("notes", self.notes)?;
        }
        map.end()
    }
}

struct Options(&'static [(&'static str, &'static str)]);

impl Serialize for Options {
    fn serialize<S: Serializer>(&self, to: S) -> Result<S::Ok, S::Error> {
        to.collect_map(self.0.iter().copied())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn told() -> String {
        let (core, assignment) = (ByName(CORE), ByName(ASSIGNMENT));
        serde_json::to_string(&(core, assignment)).unwrap()
    }

    #[test]
    fn every_word_of_a_design_is_explained() {
        let names: Vec<&str> = CORE.iter().map(|term| term.name).collect();
        let expected = [
            "app_context",
            "unit_of_assignment",
            "consistency_rule",
            "post_experiment_rule",
            "design_type",
            "assignment_algorithm",
            "decision_point",
            "exclude_if_reached",
            "condition",
            "payload",
            "segment",
            "experiment_status",
        ];
        assert_eq!(names, expected);
    }

    #[test]
    fn every_part_of_assignment_is_explained() {
        let names: Vec<String> = ASSIGNMENT
            .iter()
            .map(|section| {
                let terms: Vec<&str> = section.terms.iter().map(|term| term.name).collect();
                format!("{}: {}", section.name, terms.join(", "))
            })
            .collect();
        let expected = [
            "assignment_combinations: individual_assignment_individual_consistency, \
             group_assignment_individual_consistency, group_assignment_group_consistency",
            "experiment_status_impact: inactive, enrolling, enrollment_complete, cancelled, preview_and_scheduled",
            "exclude_if_reached_behavior: enabled, disabled",
            "key_behavioral_patterns: consistency, group_and_working_group, late_arrivals, assign_and_mark, \
             sticky_exclusion, shared_decision_points, global_exclusion",
            "testing_verification_patterns: trying_one_student, condition_balance, what_to_verify, test_scenarios",
            "common_patterns: classroom_experiments, individual_interventions, pilot_testing",
        ];
        assert_eq!(names, expected);
    }

    /// What a server of today was seen not to do, in the words in which it used to be told.
    #[test]
    fn nothing_is_told_that_the_server_does_not_do() {
        let told = told().to_lowercase();
        let wrong = [
            "equal chance",
            "all students will receive",
            "everyone gets assigned",
            "inclusion will be ignored",
            "inclusion is ignored",
            "new users get fresh random",
            "not supported in mvp",
            "includeall ignores",
        ];
        for text in wrong {
            assert!(!told.contains(text), "{text}");
        }
    }

    #[test]
    fn what_used_to_be_missing_is_told() {
        let told = told();
        let needed = [
            "running",
            "paused",
            "completed",
            "draft",
            "preview",
            "scheduled",
            "archived",
            "by its weight",
            "only those enrolled",
            "stores nothing",
            "even if one of his groups is excluded",
            "The server accepts any weights",
            "does not insist on unique names",
            "first condition",
        ];
        for text in needed {
            assert!(told.contains(text), "{text}");
        }
    }

    #[test]
    fn a_term_is_an_object_of_its_parts() {
        let core = serde_json::to_value(ByName(CORE)).unwrap();
        assert!(core["app_context"]["definition"].is_string());
        assert!(core["experiment_status"]["options"]["enrolling"].as_str().unwrap().contains("running"));
        let assignment = serde_json::to_value(ByName(ASSIGNMENT)).unwrap();
        assert!(assignment["common_patterns"]["pilot_testing"]["definition"].is_string());
    }
}
