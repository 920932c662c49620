//! Every method of the client, against the embedded server in its version 6.5.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]

use std::collections::BTreeMap;

use futures_util::TryStreamExt;
use upgrade_agent::client::{
    AssignmentUnit, ConsistencyRule, Dialect, ErrorKind, Experiment, ExperimentPatch, ExperimentState,
    FilterMode, GroupMember, Mark, MarkStatus, NewCondition, NewDecisionPoint, NewExperiment, NewUser, Page,
    PageQuery, PostExperimentRule, PostRule, SearchKey, SortDirection, SortKey, UpgradeClient,
};
use upgrade_agent::server::{EmbeddedServer, ServerHandle};

const SITE: &str = "SelectSection";
const TARGET: &str = "absolute_value_plot_equality";
const UNKNOWN_ID: &str = "00000000-0000-4000-8000-000000000000";
const CHOSEN: &str = "5b38c553-8c64-4e81-b91c-df3d22e48b7b";

async fn start() -> (ServerHandle, UpgradeClient) {
    let server = EmbeddedServer::builder().in_memory().start().await.unwrap();
    let client = UpgradeClient::builder(server.url()).build().unwrap();
    (server, client)
}

fn hints() -> NewExperiment {
    NewExperiment::new("Math hints", "assign-prog")
        .point(SITE, TARGET)
        .condition("control", 50.0)
        .condition("variant", 50.0)
        .include_all()
}

fn codes(experiment: &Experiment) -> Vec<(&str, f64)> {
    experiment.conditions.iter().map(|condition| (condition.code.as_str(), condition.weight)).collect()
}

#[tokio::test]
async fn the_version_in_the_health_response_sets_the_dialect() {
    let (_server, client) = start().await;
    assert_eq!(client.connect().await.unwrap().version, "6.5.0");
    assert_eq!(client.dialect().await.unwrap(), Dialect::V65);
}

#[tokio::test]
async fn sites_and_targets_of_a_context_are_not_mixed_up() {
    let (_server, client) = start().await;
    let contexts = client.context_metadata().await.unwrap();
    assert_eq!(contexts.names().collect::<Vec<_>>(), ["assign-prog", "mathstream"]);
    let context = contexts.get("assign-prog").unwrap();
    assert_eq!(context.sites, [SITE, "workspace"]);
    assert_eq!(context.targets, [TARGET, "analyzing_step_functions"]);
    assert_eq!(context.conditions, ["control", "variant"]);
    assert_eq!(context.group_types, ["schoolId", "classId", "instructorId"]);
    assert!(contexts.get("Assign-Prog").is_none());
}

#[tokio::test]
async fn a_created_experiment_is_read_back() {
    let (_server, client) = start().await;
    let mut new = hints().id(CHOSEN);
    new.description = "With and without".into();
    new.tags = vec!["algebra".into()];
    new.inclusion.users = vec!["ada".into()];
    new.exclusion.groups = vec![GroupMember { group_type: "classId".into(), group_id: "c1".into() }];
    let made = client.create(&new).await.unwrap();
    assert_eq!(made, client.experiment(CHOSEN).await.unwrap());
    assert_eq!(made.id, CHOSEN);
    assert_eq!((made.name.as_str(), made.description.as_str()), ("Math hints", "With and without"));
    assert_eq!(made.state, ExperimentState::Inactive);
    assert_eq!(made.filter_mode, FilterMode::IncludeAll);
    assert_eq!(codes(&made), [("control", 50.0), ("variant", 50.0)]);
    assert_eq!((made.inclusion, made.exclusion), (new.inclusion, new.exclusion));
    let point = &made.decision_points[0];
    assert_eq!((point.site.as_str(), point.target.as_str()), (SITE, TARGET));

    let names = client.experiment_names().await.unwrap();
    assert_eq!((names[0].id.as_str(), names[0].name.as_str()), (CHOSEN, "Math hints"));
    let all = client.experiments().await.unwrap();
    assert_eq!(all.len(), 1);
    assert_eq!(all[0].conditions, made.conditions);
}

#[tokio::test]
async fn a_group_experiment_is_consistent_per_group() {
    let (_server, client) = start().await;
    let made = client.create(&hints().per_group("classId")).await.unwrap();
    assert_eq!(made.assignment_unit, AssignmentUnit::Group);
    assert_eq!(made.consistency_rule, Some(ConsistencyRule::Group));
    assert_eq!(made.group_type.as_deref(), Some("classId"));
}

#[tokio::test]
async fn a_create_over_an_existing_id_is_refused_and_changes_nothing() {
    let (_server, client) = start().await;
    client.create(&hints().id(CHOSEN)).await.unwrap();
    let before = client.experiment(CHOSEN).await.unwrap();
    let mut other = hints().id(CHOSEN);
    other.name = "Another".into();
    let refused = client.create(&other).await.unwrap_err();
    assert_eq!((refused.kind(), refused.code()), (ErrorKind::Conflict, "E_UPGRADE_CONFLICT"));
    assert_eq!(client.experiment(CHOSEN).await.unwrap(), before);
}

#[tokio::test]
async fn the_rule_assign_is_set_although_the_create_call_ignores_it() {
    let (_server, client) = start().await;
    let made = client.create(&hints().post_rule(PostRule::assign("variant"))).await.unwrap();
    assert_eq!(made.post_rule, PostRule::assign("variant"));
    assert_eq!(client.experiment(&made.id).await.unwrap().post_rule, PostRule::assign("variant"));

    let nothing = PostRule { rule: PostExperimentRule::Assign, condition_code: None };
    let made = client.create(&hints().post_rule(nothing.clone())).await.unwrap();
    assert_eq!(made.post_rule, nothing);

    let refused = client.create(&hints().post_rule(PostRule::assign("third"))).await.unwrap_err();
    assert_eq!(refused.kind(), ErrorKind::BadRequest);
    assert_eq!(client.experiment_names().await.unwrap().len(), 2, "nothing was sent");
}

#[tokio::test]
async fn an_update_makes_the_requested_changes_and_keeps_other_ids() {
    let (_server, client) = start().await;
    let made = client.create(&hints()).await.unwrap();
    let patch = ExperimentPatch {
        name: Some("Renamed".into()),
        tags: Some(vec!["new".into()]),
        conditions: Some(vec![
            NewCondition::new("variant", 70.0),
            NewCondition::new("third", 10.0),
            NewCondition::new("control", 20.0),
        ]),
        decision_points: Some(vec![
            NewDecisionPoint::new(SITE, TARGET),
            NewDecisionPoint::new("workspace", ""),
        ]),
        ..Default::default()
    };
    let updated = client.update(&made.id, &patch).await.unwrap();
    assert_eq!(updated, client.experiment(&made.id).await.unwrap());
    assert_eq!((updated.name.as_str(), updated.description.as_str()), ("Renamed", ""));
    assert_eq!(codes(&updated), [("variant", 70.0), ("third", 10.0), ("control", 20.0)]);
    for code in ["control", "variant"] {
        assert_eq!(updated.condition(code).unwrap().id, made.condition(code).unwrap().id);
    }
    assert_eq!(updated.decision_points.len(), 2);
    assert_eq!(updated.decision_points[0].id, made.decision_points[0].id);
    assert_eq!(updated.payloads.len(), 6, "each condition has a payload at each point");

    let fewer =
        ExperimentPatch { conditions: Some(vec![NewCondition::new("variant", 100.0)]), ..Default::default() };
    let updated = client.update(&made.id, &fewer).await.unwrap();
    assert_eq!(codes(&updated), [("variant", 100.0)]);
    assert_eq!(updated.payloads.len(), 2);
}

#[tokio::test]
async fn a_unit_other_than_group_drops_the_kind_of_group() {
    let (_server, client) = start().await;
    let made = client.create(&hints().per_group("classId")).await.unwrap();
    let patch = ExperimentPatch {
        assignment_unit: Some(AssignmentUnit::Individual),
        consistency_rule: Some(ConsistencyRule::Individual),
        ..Default::default()
    };
    let updated = client.update(&made.id, &patch).await.unwrap();
    assert_eq!((updated.assignment_unit, updated.group_type), (AssignmentUnit::Individual, None));
}

#[tokio::test]
async fn the_condition_of_the_current_rule_cannot_be_removed() {
    let (_server, client) = start().await;
    let made = client.create(&hints().post_rule(PostRule::assign("variant"))).await.unwrap();
    let only_control = Some(vec![NewCondition::new("control", 100.0)]);
    let patch = ExperimentPatch { conditions: only_control, ..Default::default() };
    let refused = client.update(&made.id, &patch).await.unwrap_err();
    assert_eq!(refused.kind(), ErrorKind::BadRequest, "{refused}");
    let with_rule = ExperimentPatch { post_rule: Some(PostRule::keep()), ..patch };
    let updated = client.update(&made.id, &with_rule).await.unwrap();
    assert_eq!(codes(&updated), [("control", 100.0)]);
    assert_eq!(updated.post_rule, PostRule::keep());
}

#[tokio::test]
async fn a_change_of_state_returns_the_complete_experiment_in_one_vocabulary() {
    let (_server, client) = start().await;
    let made = client.create(&hints()).await.unwrap();
    let states = [
        ExperimentState::Enrolling,
        ExperimentState::EnrollmentComplete,
        ExperimentState::Enrolling,
        ExperimentState::Cancelled,
        ExperimentState::Archived,
    ];
    for state in &states {
        let moved = client.set_state(&made.id, state).await.unwrap();
        assert_eq!(moved.state, *state);
        assert_eq!(moved.conditions, made.conditions);
    }
    let read = client.experiment(&made.id).await.unwrap();
    let log: Vec<_> = read.state_log.iter().map(|change| change.to.clone()).collect();
    assert_eq!(log, states);
}

#[tokio::test]
async fn a_deleted_experiment_does_not_exist() {
    let (_server, client) = start().await;
    let made = client.create(&hints()).await.unwrap();
    let deleted = client.delete(&made.id).await.unwrap();
    assert_eq!((deleted.id, deleted.name.as_deref()), (made.id.clone(), Some("Math hints")));
    assert_eq!(client.delete(&made.id).await.unwrap_err().kind(), ErrorKind::NotFound);
    assert_eq!(client.experiments().await.unwrap(), []);
}

#[tokio::test]
async fn a_student_becomes_known_is_assigned_and_enrolled() {
    let (_server, client) = start().await;
    let made = client.create(&hints()).await.unwrap();
    client.set_state(&made.id, &ExperimentState::Enrolling).await.unwrap();
    let ada = client.init_user(&NewUser::new("ada").in_group("classId", "c1")).await.unwrap();
    assert_eq!(ada.groups, BTreeMap::from([("classId".into(), vec!["c1".into()])]));
    assert_eq!(client.init_user(&NewUser::new("ada")).await.unwrap(), ada, "a second call keeps the data");

    let assigned = client.assign("ada", "assign-prog").await.unwrap();
    assert_eq!((assigned[0].site.as_str(), assigned[0].target.as_str()), (SITE, TARGET));
    let code = assigned[0].conditions[0].condition_code.clone();
    assert_eq!(assigned[0].conditions[0].experiment_id.as_deref(), Some(made.id.as_str()));
    assert_eq!(client.enrollment(&made.id).await.unwrap().users, 0, "assigning does not enrol");

    let mark = Mark::of(&assigned[0]);
    let marked = client.mark("ada", &mark).await.unwrap();
    assert_eq!((marked.user_id.as_str(), &marked.condition), ("ada", &code));
    assert_eq!(client.mark("ada", &mark).await.unwrap(), marked, "a second visit changes nothing");
    let detail = client.enrollment(&made.id).await.unwrap();
    assert_eq!((detail.users, detail.users_excluded), (1, 0));
    let chosen = detail.conditions.iter().find(|condition| condition.users == 1).unwrap();
    assert_eq!(Some(&made.condition(code.as_deref().unwrap()).unwrap().id), Some(&chosen.id));
    assert_eq!(chosen.decision_points[0].users, 1);
}

#[tokio::test]
async fn a_condition_that_could_not_be_applied_excludes_the_student() {
    let (_server, client) = start().await;
    let made = client.create(&hints()).await.unwrap();
    client.set_state(&made.id, &ExperimentState::Enrolling).await.unwrap();
    client.init_user(&NewUser::new("ada")).await.unwrap();
    let status = Some(MarkStatus::NotApplied);
    client.mark("ada", &Mark { status, ..Mark::new(SITE, TARGET) }).await.unwrap();
    assert_eq!(client.assign("ada", "assign-prog").await.unwrap(), []);
    assert_eq!(client.enrollment(&made.id).await.unwrap().users_excluded, 1);
}

#[tokio::test]
async fn unknown_ids_are_not_found_although_the_server_says_500() {
    let (_server, client) = start().await;
    let rename = ExperimentPatch { name: Some("x".into()), ..Default::default() };
    let failures = [
        client.experiment(UNKNOWN_ID).await.unwrap_err(),
        client.set_state(UNKNOWN_ID, &ExperimentState::Enrolling).await.unwrap_err(),
        client.update(UNKNOWN_ID, &rename).await.unwrap_err(),
        client.enrollment(UNKNOWN_ID).await.unwrap_err(),
        client.delete(UNKNOWN_ID).await.unwrap_err(),
        client.assign("ghost", "assign-prog").await.unwrap_err(),
        client.mark("ghost", &Mark::new(SITE, TARGET)).await.unwrap_err(),
    ];
    for failure in failures {
        assert_eq!(failure.kind(), ErrorKind::NotFound, "{failure}");
    }
}

#[tokio::test]
async fn invalid_ids_never_become_part_of_a_path() {
    let (_server, client) = start().await;
    for id in ["", "..", "names", "../experiments", "a/b", "%2e%2e", "x?y#z"] {
        let failures = [
            client.experiment(id).await.unwrap_err(),
            client.delete(id).await.unwrap_err(),
            client.create(&hints().id(id)).await.unwrap_err(),
        ];
        for failure in failures {
            assert_eq!(failure.kind(), ErrorKind::BadRequest, "{id:?}: {failure}");
        }
    }
    assert_eq!(client.experiments().await.unwrap(), []);
}

#[tokio::test]
async fn a_rejection_by_the_server_is_a_bad_request_in_its_words() {
    let (_server, client) = start().await;
    let mut nowhere = hints();
    nowhere.context = "nowhere".into();
    let refused = client.create(&nowhere).await.unwrap_err();
    assert_eq!((refused.kind(), refused.status()), (ErrorKind::BadRequest, Some(400)));
    assert!(refused.message().contains("\"nowhere\" is not defined"), "{refused}");

    let made = client.create(&hints()).await.unwrap();
    client.set_state(&made.id, &ExperimentState::Enrolling).await.unwrap();
    client.init_user(&NewUser::new("ada")).await.unwrap();
    let condition_code = Some("unheard of".into());
    let unknown = Mark { condition_code, ..Mark::new(SITE, TARGET) };
    let refused = client.mark("ada", &unknown).await.unwrap_err();
    assert_eq!((refused.kind(), refused.status()), (ErrorKind::BadRequest, Some(500)), "{refused}");
    for id in ["", "  ", "a\nb", "a\0"] {
        let refused = client.init_user(&NewUser::new(id)).await.unwrap_err();
        assert_eq!(refused.kind(), ErrorKind::BadRequest, "{id:?}");
    }
}

#[tokio::test]
async fn experiments_are_read_page_by_page() {
    let (_server, client) = start().await;
    for name in ["b2", "a1", "c3", "d4", "e5"] {
        let mut new = hints();
        new.name = name.into();
        new.tags = vec![if name < "c" { "early" } else { "late" }.into()];
        client.create(&new).await.unwrap();
    }
    let names = |page: &Page| page.experiments.iter().map(|e| e.name.clone()).collect::<Vec<_>>();

    let pages: Vec<Page> = client.pages(PageQuery::new(2)).try_collect().await.unwrap();
    assert_eq!(
        pages.iter().map(|page| (page.skip, page.total)).collect::<Vec<_>>(),
        [(0, 5), (2, 5), (4, 5)]
    );
    let mut all: Vec<String> = pages.iter().flat_map(names).collect();
    all.sort();
    assert_eq!(all, ["a1", "b2", "c3", "d4", "e5"]);
    assert!(pages[0].experiments[0].conditions.is_empty(), "pages contain no conditions");
    assert_eq!(pages[0].experiments[0].decision_points.len(), 1);

    let sorted = PageQuery::new(10).sort(SortKey::Name, SortDirection::Descending);
    assert_eq!(names(&client.page(&sorted).await.unwrap()), ["e5", "d4", "c3", "b2", "a1"]);
    let early = sorted.clone().search(SearchKey::Tag, "early");
    assert_eq!(names(&client.page(&early).await.unwrap()), ["b2", "a1"]);
    let none = PageQuery::new(10).search(SearchKey::Name, "nobody");
    let none: Vec<Page> = client.pages(none).try_collect().await.unwrap();
    assert!(none.is_empty(), "{none:?}");
    assert_eq!(
        client.page(&PageQuery::new(0)).await.unwrap().experiments.len(),
        1,
        "a page has at least one entry"
    );
    let beyond: Vec<Page> = client.pages(PageQuery::new(2).skip(50)).try_collect().await.unwrap();
    assert!(beyond.is_empty());

    let unknown = PageQuery::new(10).sort(SortKey::Unknown("colour".into()), SortDirection::Ascending);
    assert_eq!(client.page(&unknown).await.unwrap_err().kind(), ErrorKind::BadRequest);
}

#[tokio::test]
async fn the_conditions_of_one_experiment_are_in_their_order() {
    let (_server, client) = start().await;
    let made = client.create(&hints()).await.unwrap();
    assert_eq!(client.conditions(&made.id).await.unwrap(), made.conditions);
    assert_eq!(client.conditions("..").await.unwrap_err().kind(), ErrorKind::BadRequest);
}

#[tokio::test]
async fn a_start_is_scheduled() {
    let (_server, client) = start().await;
    let made = client.create(&hints()).await.unwrap();
    let start = "2027-01-31T08:00:00.000Z";
    let moved = client.schedule(&made.id, start).await.unwrap();
    assert_eq!((moved.state, moved.start_on.as_deref()), (ExperimentState::Scheduled, Some(start)));
    assert_eq!(client.schedule(&made.id, "soon").await.unwrap_err().kind(), ErrorKind::BadRequest);
}

#[tokio::test]
async fn unknown_words_are_sent_and_received_unchanged() {
    let (_server, client) = start().await;
    let made = client.create(&hints()).await.unwrap();
    let frozen = ExperimentState::from("frozen");
    let refused = client.set_state(&made.id, &frozen).await.unwrap_err();
    assert_eq!(
        refused.kind(),
        ErrorKind::BadRequest,
        "the server received the word and refused it: {refused}"
    );
    assert_eq!(serde_json::to_value(&frozen).unwrap(), "frozen");
}
