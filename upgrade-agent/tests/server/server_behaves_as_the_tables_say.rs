//! Five students visit one point while an experiment is inactive, enrolling and paused, under each recorded
//! combination of unit, consistency and post-experiment rule. Ids differ from the recorded ones, and so do
//! draws; students with the default, with a kept condition and with their group's condition must be the same.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]

use crate::recording;

use std::collections::BTreeMap;

use serde_json::Value;
use upgrade_agent::client::{
    AssignmentUnit, ConsistencyRule, EnrollmentDetail, ExperimentState, Mark, NewExperiment, NewUser,
    PostExperimentRule, PostRule, UpgradeClient,
};
use upgrade_agent::server::EmbeddedServer;

const SITE: &str = "SelectSection";
const TARGET: &str = "workspace";

/// The code that a student got, by student and phase.
type Table = BTreeMap<String, BTreeMap<String, String>>;

#[tokio::test]
async fn all_recorded_tables_are_reproduced() {
    let tables = recording::fixture("behaviour_tables");
    let tables = tables.as_object().unwrap();
    assert_eq!(tables.len(), 8);
    for (name, recorded) in tables {
        let table: Table = serde_json::from_value(recorded["table"].clone()).unwrap();
        let (ours, detail) = visits(name, &table).await;
        compare(name, &table, &ours);
        compare_counts(name, &recorded["stats"], &detail);
    }
}

async fn visits(name: &str, table: &Table) -> (Table, EnrollmentDetail) {
    let server = EmbeddedServer::builder().in_memory().seed(5).start().await.unwrap();
    let client = UpgradeClient::builder(server.url()).build().unwrap();
    let id = client.create(&experiment(name)).await.unwrap().id;
    for student in table.keys() {
        let group = if student.as_str() <= "3" { "first" } else { "second" };
        let user = NewUser::new(format!("student-{student}")).in_group("classId", group);
        client.init_user(&user).await.unwrap();
    }
    let mut ours = Table::new();
    let phases = [
        ("inactive", ExperimentState::Inactive),
        ("enrolling", ExperimentState::Enrolling),
        ("complete", ExperimentState::EnrollmentComplete),
    ];
    for (phase, state) in phases {
        client.set_state(&id, &state).await.unwrap();
        for (student, _) in table.iter().filter(|(_, phases)| phases.contains_key(phase)) {
            let code = visit(&client, &format!("student-{student}")).await;
            ours.entry(student.clone()).or_default().insert(phase.to_owned(), code);
        }
    }
    let detail = client.enrollment(&id).await.unwrap();
    server.shutdown().await;
    (ours, detail)
}

/// `unit-consistency/rule`, as the tables are named.
fn experiment(name: &str) -> NewExperiment {
    let (design, rule) = name.split_once('/').unwrap();
    let (unit, consistency) = design.split_once('-').unwrap();
    let mut new = NewExperiment::new(name, "assign-prog")
        .include_all()
        .condition("control", 33.0)
        .condition("variant", 33.0)
        .condition("third", 34.0)
        .point(SITE, TARGET);
    new.decision_points[0].exclude_if_reached = true;
    if unit == "grp" {
        new.assignment_unit = AssignmentUnit::Group;
        new.group_type = Some("classId".into());
    }
    new.consistency_rule = Some(match consistency {
        "ind" => ConsistencyRule::Individual,
        "grp" => ConsistencyRule::Group,
        _ => ConsistencyRule::Experiment,
    });
    new.post_rule(match rule {
        "continue" => PostRule::keep(),
        "none" => PostRule { rule: PostExperimentRule::Assign, condition_code: None },
        code => PostRule::assign(code),
    })
}

async fn visit(client: &UpgradeClient, student: &str) -> String {
    let assigned = client.assign(student, "assign-prog").await.unwrap();
    let mark = assigned.first().map_or_else(|| Mark::new(SITE, TARGET), Mark::of);
    client.mark(student, &mark).await.unwrap();
    mark.condition_code.unwrap_or_else(|| "default".into())
}

fn compare(name: &str, recorded: &Table, ours: &Table) {
    for (student, phases) in recorded {
        for (phase, code) in phases {
            let told = &ours[student][phase];
            let at = format!("{name}, student {student}, {phase}");
            assert_eq!(*told == "default", *code == "default", "{at}: {told} for {code}");
            if name.ends_with("/third") && phase == "complete" {
                assert_eq!(told, code, "{at}");
            }
        }
    }
    // Cells that must be equal by the rules are equal here, too.
    for (student, phase) in kept(name, recorded) {
        assert_eq!(ours[student]["enrolling"], ours[phase]["complete"], "{name}: {student}, {phase}");
    }
}

/// Returns pairs of students: after the pause, the second one has the condition that the first one had
/// before.
fn kept<'t>(name: &str, table: &'t Table) -> Vec<(&'t str, &'t str)> {
    if !name.ends_with("/continue") {
        return Vec::new();
    }
    let had = |student: &str| table[student].get("enrolling").is_some_and(|code| code != "default");
    let mut pairs: Vec<(&str, &str)> =
        table.keys().filter(|student| had(student)).map(|s| (s.as_str(), s.as_str())).collect();
    if name.starts_with("grp") {
        let latecomers = [("2", "3"), ("4", "5")];
        pairs.extend(latecomers.into_iter().filter(|(mate, _)| had(mate)));
    }
    pairs
}

/// Compares the counts. The recorded exclusions include visitors of earlier tables, so only zero is
/// comparable.
fn compare_counts(name: &str, recorded: &Value, ours: &EnrollmentDetail) {
    assert_eq!(recorded["users"], ours.users, "{name}");
    assert_eq!(recorded["groups"], ours.groups, "{name}");
    assert_eq!(recorded["usersExcluded"] == 0, ours.users_excluded == 0, "{name}");
    assert_eq!(recorded["groupsExcluded"] == 0, ours.groups_excluded == 0, "{name}");
}
