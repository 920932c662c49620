//! The glossary: the words of UpGrade with their meaning on a current server, for the tools
//! `get_core_terms` and `get_assignment_terms`. Text only.

mod assignment;
mod design;

use serde::Serialize;
use serde::ser::{SerializeMap, Serializer};

/// The description of a word for a language model: its meaning, its values, and common mistakes.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Entry {
    name: &'static str,
    definition: &'static str,
    options: &'static [(&'static str, &'static str)],
    notes: &'static [&'static str],
}

/// Entries under a heading.
struct Section {
    name: &'static str,
    entries: &'static [Entry],
}

/// The words of a design, as a JSON object by name.
pub(crate) fn core_entries() -> impl Serialize {
    ByName(design::DESIGN.iter().collect())
}

/// The ways of assignment, as a JSON object by section and name.
pub(crate) fn assignment_entries() -> impl Serialize {
    ByName(assignment::ASSIGNMENT.iter().collect())
}

/// A list of things, written as a JSON object by their names.
struct ByName<T: 'static>(Vec<&'static T>);

impl Serialize for ByName<Entry> {
    fn serialize<S: Serializer>(&self, to: S) -> Result<S::Ok, S::Error> {
        to.collect_map(self.0.iter().map(|entry| (entry.name, entry)))
    }
}

impl Serialize for ByName<Section> {
    fn serialize<S: Serializer>(&self, to: S) -> Result<S::Ok, S::Error> {
        to.collect_map(self.0.iter().map(|section| (section.name, ByName(section.entries.iter().collect()))))
    }
}

impl Serialize for Entry {
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

    fn entries_json() -> String {
        let core = core_entries();
        let assignment = assignment_entries();
        serde_json::to_string(&(core, assignment)).unwrap()
    }

    #[test]
    fn each_word_of_a_design_has_an_entry() {
        let names: Vec<&str> = design::DESIGN.iter().map(|entry| entry.name).collect();
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
    fn each_topic_of_assignment_has_an_entry() {
        let names: Vec<String> = assignment::ASSIGNMENT
            .iter()
            .map(|section| {
                let terms: Vec<&str> = section.entries.iter().map(|entry| entry.name).collect();
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

    /// The phrases occur in common wrong statements about the server.
    #[test]
    fn no_entry_contains_a_common_wrong_statement() {
        let told = entries_json().to_lowercase();
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
    fn the_entries_contain_each_required_statement() {
        let told = entries_json();
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
    fn entries_are_serialized_as_json_objects() {
        let core = serde_json::to_value(core_entries()).unwrap();
        assert!(core["app_context"]["definition"].is_string());
        assert!(core["experiment_status"]["options"]["enrolling"].as_str().unwrap().contains("running"));
        let assignment = serde_json::to_value(assignment_entries()).unwrap();
        assert!(assignment["common_patterns"]["pilot_testing"]["definition"].is_string());
    }
}
