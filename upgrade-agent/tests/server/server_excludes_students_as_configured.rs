//! Inclusion and exclusion of students, alone or with their group, and the lasting effects.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]

use crate::stage;

use stage::{SITE, Stage, TARGET, class, plain};
use upgrade_agent::client::{
    ConsistencyRule, EnrollmentDetail, ExperimentState, GroupMember, Mark, MarkStatus, NewDecisionPoint,
    NewExperiment, NewUser, PostExperimentRule, PostRule,
};

/// Returns the numbers of enrolled students and groups, and of excluded students and groups.
fn counts(detail: &EnrollmentDetail) -> [u64; 4] {
    [detail.users, detail.groups, detail.users_excluded, detail.groups_excluded]
}

fn classes(consistency: ConsistencyRule) -> NewExperiment {
    let mut new = plain("classes").per_group("classId");
    new.consistency_rule = Some(consistency);
    new
}

fn failed() -> Mark {
    Mark { status: Some(MarkStatus::NotApplied), ..Mark::new(SITE, TARGET) }
}

#[tokio::test]
async fn a_student_who_changes_class_follows_it_only_under_group_consistency() {
    for (consistency, follows) in [(ConsistencyRule::Group, true), (ConsistencyRule::Individual, false)] {
        let stage = Stage::new().await;
        let mut new = plain("classes").per_group("classId");
        new.consistency_rule = Some(consistency.clone());
        stage.running(&new).await;
        let in_class = |student: &str, class: &str| NewUser::new(student).in_group("classId", class);
        stage.client.init_user(&in_class("ada", "home")).await.unwrap();
        stage.visit("ada").await;
        let own = stage.code("ada").await.unwrap();
        let mut other = None;
        for n in 0..40 {
            let mate = format!("mate-{n}");
            let class = format!("class-{n}");
            stage.client.init_user(&in_class(&mate, &class)).await.unwrap();
            stage.visit(&mate).await;
            let code = stage.code(&mate).await.unwrap();
            if code != own {
                other = Some((class, code));
                break;
            }
        }
        let (class, code) = other.expect("a class draws the other condition");
        stage.client.init_user(&in_class("ada", &class)).await.unwrap();
        let expected = if follows { code } else { own };
        assert_eq!(stage.code("ada").await, Some(expected), "{consistency}");
    }
}

#[tokio::test]
async fn earlier_visitors_are_excluded_if_a_point_requires_it() {
    for (consistency, unit_is_group, left_out) in [
        (ConsistencyRule::Individual, false, true),
        (ConsistencyRule::Experiment, false, false),
        (ConsistencyRule::Group, true, true),
    ] {
        let stage = Stage::new().await;
        for student in ["early", "mate", "stranger"] {
            let group = if student == "stranger" { "c2" } else { "c1" };
            let user = NewUser::new(student).in_group("classId", group);
            stage.client.init_user(&user).await.unwrap();
        }
        // The visit is before any experiment exists.
        stage.visit("early").await;
        let mut new = plain("late");
        if unit_is_group {
            new = new.per_group("classId");
        }
        new.consistency_rule = Some(consistency.clone());
        new.decision_points =
            vec![NewDecisionPoint { exclude_if_reached: true, ..NewDecisionPoint::new(SITE, TARGET) }];
        stage.running(&new).await;
        assert_eq!(stage.code("early").await.is_none(), left_out, "{consistency}");
        assert_eq!(stage.code("mate").await.is_none(), unit_is_group, "{consistency}");
        assert!(stage.code("stranger").await.is_some(), "{consistency}");
    }
}

#[tokio::test]
async fn resuming_after_a_pause_excludes_no_enrolled_student() {
    let stage = Stage::new().await;
    let mut new = plain("paused");
    new.decision_points[0].exclude_if_reached = true;
    let made = stage.running(&new).await;
    stage.student("ada").await;
    stage.visit("ada").await;
    let before = stage.code("ada").await;
    stage.moved(&made, ExperimentState::EnrollmentComplete).await;
    stage.moved(&made, ExperimentState::Enrolling).await;
    assert!(before.is_some());
    assert_eq!(stage.code("ada").await, before);
    // A start from inactive is a new start, and the earlier visit counts.
    stage.moved(&made, ExperimentState::Inactive).await;
    stage.moved(&made, ExperimentState::Enrolling).await;
    assert_eq!(stage.code("ada").await, None);
}

#[tokio::test]
async fn the_rule_assign_applies_only_to_enrolled_students() {
    let stage = Stage::new().await;
    let made = stage.running(&plain("rule").post_rule(PostRule::assign("variant"))).await;
    stage.student("ada").await;
    stage.student("eve").await;
    stage.visit("ada").await;
    stage.moved(&made, ExperimentState::EnrollmentComplete).await;
    assert_eq!(stage.code("ada").await.as_deref(), Some("variant"));
    assert_eq!(stage.code("eve").await, None);
}

#[tokio::test]
async fn only_experiment_consistency_ignores_an_exclusion_of_an_enrolled_student() {
    for (consistency, keeps) in [(ConsistencyRule::Experiment, true), (ConsistencyRule::Individual, false)] {
        let stage = Stage::new().await;
        let mut new = plain("overlooked");
        new.consistency_rule = Some(consistency.clone());
        stage.running(&new).await;
        stage.student("ada").await;
        stage.visit("ada").await;
        stage.client.mark("ada", &failed()).await.unwrap();
        assert_eq!(stage.code("ada").await.is_some(), keeps, "{consistency}");
    }
}

#[tokio::test]
async fn an_excluded_student_is_not_enrolled_with_the_group() {
    let stage = Stage::new().await;
    let made = stage.running(&classes(ConsistencyRule::Experiment)).await;
    stage.client.init_user(&NewUser::new("ada").in_group("classId", "c1")).await.unwrap();
    stage.client.mark("ada", &failed()).await.unwrap();
    stage.visit("ada").await;
    // A group counts by its enrolled students, and this one has none.
    assert_eq!(counts(&stage.client.enrollment(&made.id).await.unwrap()), [0, 0, 1, 0]);
    stage.client.init_user(&NewUser::new("mate").in_group("classId", "c1")).await.unwrap();
    stage.visit("mate").await;
    assert_eq!(counts(&stage.client.enrollment(&made.id).await.unwrap()), [1, 1, 1, 0]);
}

#[tokio::test]
async fn a_paused_experiment_that_assigns_nothing_frees_its_point_for_another() {
    let stage = Stage::new().await;
    let nothing = PostRule { rule: PostExperimentRule::Assign, condition_code: None };
    let first = stage.running(&plain("first").post_rule(nothing)).await;
    stage.student("ada").await;
    stage.visit("ada").await;
    let second = stage.running(&plain("second")).await;
    assert!(stage.codes("ada").await.contains_key(&first.id));
    stage.moved(&first, ExperimentState::EnrollmentComplete).await;
    assert!(stage.codes("ada").await.contains_key(&second.id));
}

#[tokio::test]
async fn a_latecomer_is_excluded_unless_the_group_is_enrolled() {
    let stage = Stage::new().await;
    let made = stage.running(&classes(ConsistencyRule::Individual)).await;
    for (student, class) in [("ada", "c1"), ("mate", "c1"), ("stranger", "c2")] {
        stage.client.init_user(&NewUser::new(student).in_group("classId", class)).await.unwrap();
    }
    stage.visit("ada").await;
    stage.moved(&made, ExperimentState::EnrollmentComplete).await;
    stage.visit("mate").await;
    assert_eq!(counts(&stage.client.enrollment(&made.id).await.unwrap()), [1, 1, 0, 0]);
    stage.visit("stranger").await;
    assert_eq!(counts(&stage.client.enrollment(&made.id).await.unwrap()), [1, 1, 1, 1]);
    assert_eq!(stage.code("mate").await, stage.code("ada").await);
    assert_eq!(stage.code("stranger").await, None);
}

#[tokio::test]
async fn a_listed_group_is_excluded_with_its_students() {
    let stage = Stage::new().await;
    let mut new = classes(ConsistencyRule::Group);
    new.exclusion.groups.push(class("c1"));
    let made = stage.running(&new).await;
    stage.client.init_user(&NewUser::new("ada").in_group("classId", "c1")).await.unwrap();
    stage.visit("ada").await;
    assert_eq!(counts(&stage.client.enrollment(&made.id).await.unwrap()), [0, 0, 1, 1]);
}

#[tokio::test]
async fn a_listed_group_of_another_kind_excludes_every_group_of_its_students() {
    let stage = Stage::new().await;
    let mut new = classes(ConsistencyRule::Group);
    new.exclusion.groups = vec![GroupMember { group_type: "schoolId".into(), group_id: "s1".into() }];
    let made = stage.running(&new).await;
    let ada = NewUser::new("ada").in_group("classId", "c1").in_group("schoolId", "s1");
    stage.client.init_user(&ada).await.unwrap();
    stage.client.init_user(&NewUser::new("mate").in_group("classId", "c1")).await.unwrap();
    assert!(stage.code("mate").await.is_some());
    stage.visit("ada").await;
    assert_eq!(counts(&stage.client.enrollment(&made.id).await.unwrap()), [0, 0, 1, 2]);
    assert_eq!(stage.code("mate").await, None, "the class is excluded because of one pupil's school");
}
