//! Conversations as data: the messages of each turn, and texts of the last reply. Each has its own
//! server and thread.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]

use upgrade_agent::agent::UpgradeAgent;
use upgrade_agent::client::{ExperimentState, NewExperiment, UpgradeClient};
use upgrade_agent::offline::OfflineModel;
use upgrade_agent::server::EmbeddedServer;

/// Returns the last reply of a conversation on a server with `Hints`, `Math Hints`, `Foo` (inactive) and
/// `Running Test`.
async fn last_reply(conversation: &[&str]) -> String {
    let server = EmbeddedServer::builder().in_memory().seed(7).start().await.unwrap();
    let client = UpgradeClient::builder(server.url()).build().unwrap();
    for name in ["Math Hints", "Running Test", "Foo", "Hints"] {
        let new = NewExperiment::new(name, "assign-prog")
            .point("SelectSection", "absolute_value_plot_equality")
            .condition("control", 50.0)
            .condition("variant", 50.0)
            .include_all();
        let made = client.create(&new).await.unwrap();
        if name == "Running Test" {
            client.set_state(&made.id, &ExperimentState::Enrolling).await.unwrap();
        }
    }
    let agent = UpgradeAgent::builder().model(OfflineModel::new()).client(client).build().unwrap();
    let mut reply = String::new();
    for said in conversation {
        reply = agent.turn("thread", said).await.unwrap().reply;
    }
    server.shutdown().await;
    reply
}

/// Asserts the last replies of conversations. `;;` separates turns. The last reply must contain each
/// text, or must not if the text starts with `!`.
async fn all_end_in(table: &[(&str, &[&str])]) {
    let mut wrong = Vec::new();
    for (said, wanted) in table {
        let turns: Vec<&str> = said.split(";;").map(str::trim).collect();
        let reply = last_reply(&turns).await;
        let fits = |text: &&str| match text.strip_prefix('!') {
            Some(forbidden) => !reply.contains(forbidden),
            None => reply.contains(text),
        };
        if !wanted.iter().all(fits) {
            wrong.push(format!("{said:?} should bring {wanted:?} and brought {reply:?}"));
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

#[tokio::test]
async fn participants_can_be_given_as_bare_ids() {
    all_end_in(&[
        ("zoe should not be in Hints", &["'Hints'", "excluded students: zoe\n"]),
        ("blacklist zoe for Hints", &["'Hints'", "excluded students: zoe\n"]),
        ("kim must be in Hints", &["included students: kim\n"]),
        ("should zoe be in Hints?", &["!Update experiment"]),
        (
            "exclude class c7 and student dan from Hints",
            &["excluded students: dan\n", "excluded groups: classId c7\n"],
        ),
    ])
    .await;
}

#[tokio::test]
async fn an_experiment_is_simulated_for_a_given_student() {
    all_end_in(&[]).await;
}

#[tokio::test]
async fn a_doubt_about_the_split_is_a_request_to_test_it() {
    all_end_in(&[
        ("does Hints split the students evenly?", &["Test the balance of experiment 'Hints'"]),
        ("can you make Hints 70/30?", &["Update experiment 'Hints'", "control 70%"]),
    ])
    .await;
}

#[tokio::test]
async fn no_experiment_is_chosen_from_several() {
    for said in ["delete all experiments", "delete everything", "stop every experiment", "remove all of them"]
    {
        let after_a_look = format!("tell me about Hints;;{said}");
        for said in [said, after_a_look.as_str()] {
            all_end_in(&[(said, &["one experiment at a time", "Foo, Hints, Math Hints, Running Test"])])
                .await;
        }
    }
    all_end_in(&[("rename Foo to Hints Two", &["Update experiment 'Foo'", "name: Hints Two"])]).await;
}

#[tokio::test]
async fn a_name_ends_where_a_clause_begins() {
    all_end_in(&[
        ("create an experiment called Foo9 assigned by group in assign-prog", &["'Foo9'", "group type"]),
        ("create experiment Zed comparing control and variant in assign-prog", &["'Zed'"]),
        ("create an experiment called math reading test in assign-prog", &["'math reading test'"]),
        ("create an experiment called Nova described as \"a test\" in assign-prog", &["'Nova'"]),
    ])
    .await;
}

#[tokio::test]
async fn another_creation_starts_without_the_parameters_of_the_first() {
    all_end_in(&[
        (
            "create an experiment called Foo9;;create experiment Foo11 in assign-prog",
            &["I will not create experiment 'Foo9', then", "'Foo11'"],
        ),
        (
            "create an experiment called Foo9;;create another experiment",
            &["I will not create experiment 'Foo9', then", "name, decision points"],
        ),
        ("create an experiment called Foo9;;create it in assign-prog", &["'Foo9' run?", "!I will not"]),
        ("create Lyra in assign-prog;;hmm, forget it", &["I will not create the experiment"]),
    ])
    .await;
}

#[tokio::test]
async fn site_and_target_may_be_given_in_separate_messages() {
    all_end_in(&[
        (
            "create an experiment called Foo9 in assign-prog;;SelectSection",
            &["Which target at the site SelectSection? There are: absolute_value_plot_equality, analyzing"],
        ),
        (
            "create Foo9 in assign-prog;;the target is analyzing_step_functions;;workspace;;50/50",
            &["Create experiment 'Foo9'", "decision points: workspace / analyzing_step_functions"],
        ),
        (
            "mark a decision point for user kim;;SelectSection;;absolute_value_plot_equality",
            &["Mark decision point visit of user 'kim' at SelectSection / absolute_value_plot_equality?"],
        ),
        (
            "let user kim visit a place in assign-prog;;workspace;;analyzing_step_functions",
            &["Let user 'kim' visit workspace / analyzing_step_functions"],
        ),
    ])
    .await;
}

#[tokio::test]
async fn statuses_have_many_names() {
    all_end_in(&[]).await;
}

#[tokio::test]
async fn incidental_questions_and_requests() {
    all_end_in(&[
        (
            "I'd like to set up a trial in assign-prog;;call it Titan;;workspace;;absolute_value_plot_equality;;two thirds control",
            &["Create experiment 'Titan'", "control 66.67%, variant 33.33%"],
        ),
        ("whatever you do, don't remove Foo", &["!DELETE"]),
    ])
    .await;
}

const DESIGN: &str =
    "create an experiment called Boost in assign-prog at SelectSection / absolute_value_plot_equality";

#[tokio::test]
async fn every_part_of_a_design_is_taken_from_one_message() {
    let with = |rest: &str| format!("{DESIGN} {rest}");
    let full = with(
        "with conditions control 30% and variant 70%, unit of assignment group schoolId, consistency rule group, post rule assign \
         variant, exclude if reached, tags algebra, pilot; include user ada and bob",
    );
    let tagged = with("50/50 for everybody with tags x, y and description \"for the pilot\"");
    let individual = with("50/50 for everybody, individual consistency, post-experiment rule: continue");
    all_end_in(&[
        (
            &full,
            &[
                "conditions: control 30%, variant 70%\n",
                "assignment unit: group (schoolId)\n",
                "consistency rule: group\n",
                "after enrolment: assign variant\n",
                "early visitors left out",
                "tags: algebra, pilot\n",
                "included: ada, bob\n",
                "!excluded:",
            ],
        ),
        (&tagged, &["tags: x, y\n", "description: for the pilot\n"]),
        (&individual, &["consistency rule: individual\n", "after enrolment: continue\n"]),
    ])
    .await;
}

#[tokio::test]
async fn an_unknown_condition_is_not_replaced_by_another() {
    let with = |rest: &str| format!("{DESIGN} {rest}");
    let asks: &[&str] =
        &["Which conditions should experiment 'Boost' compare", "There are: control, variant."];
    for rest in ["with red 50 and blue 50", "with control 30% and treatment 70%"] {
        all_end_in(&[(&with(rest), asks)]).await;
    }
    let then = with("with red 50 and blue 50;;control 40, variant 60");
    all_end_in(&[
        (&then, &["conditions: control 40%, variant 60%\n"]),
        ("set the conditions of Hints to red 50 and blue 50", &["What should change, and to what?"]),
    ])
    .await;
}

#[tokio::test]
async fn tags_are_added_and_removed() {
    all_end_in(&[
        ("add the tag pilot to Hints", &["Update experiment 'Hints'", "tags: pilot\n", "!included"]),
        ("tag Foo with pilot and grade7", &["Update experiment 'Foo'", "tags: pilot, grade7\n"]),
        ("add pilot to the tags of Hints", &["Update experiment 'Hints'", "tags: pilot\n", "!included"]),
    ])
    .await;
}

#[tokio::test]
async fn a_name_that_gets_a_condition_is_a_student() {
    all_end_in(&[
        ("which condition does ada get?", &["For which context?"]),
        (
            "which condition does ada get?;;assign-prog",
            &["assignments of user 'ada' for context 'assign-prog'"],
        ),
        (
            "what condition does user ada get in assign-prog",
            &["assignments of user 'ada' for context 'assign-prog'"],
        ),
        ("which condition would zoe see in Hints?", &["assignments of user 'zoe' for context 'assign-prog'"]),
        (
            "which condition does student ada get in Hints?;;yes",
            &["User not found", "make him known first by initializing the user", "!list of experiments"],
        ),
        ("which conditions does Hints have?", &["The conditions of 'Hints' are"]),
        ("what is a condition?", &["A condition is one of the versions"]),
    ])
    .await;
}

#[tokio::test]
async fn an_answer_contains_the_requested_data_only() {
    all_end_in(&[
        ("rename Hints", &["Which name should it get?"]),
        ("rename Hints;;Tips", &["Update experiment 'Hints'", "name: Tips\n"]),
        (
            "create an experiment in assign-prog;;SelectSection / absolute_value_plot_equality",
            &["What should the experiment be called?", "!decision points,"],
        ),
        (
            "create an experiment in assign-prog;;SelectSection / absolute_value_plot_equality;;Nova;;50/50",
            &["Create experiment 'Nova'", "decision points: SelectSection / absolute_value_plot_equality"],
        ),
        (
            "create an experiment in assign-prog at SelectSection / absolute_value_plot_equality, 50/50",
            &["What should the experiment be called?"],
        ),
    ])
    .await;
}

#[tokio::test]
async fn a_no_cancels_any_pending_action() {
    for no in ["no", "cancle", "no, wait", "hmm, actually no"] {
        let asked = format!("create an experiment called Nova;;{no}");
        all_end_in(&[(&asked, &["I will not create the experiment. Nothing was changed."])]).await;
    }
    for no in ["no wait", "cancle", "oh no, sorry", "wait, no"] {
        let asked = format!("start Foo;;{no}");
        all_end_in(&[(&asked, &["I did not change experiment 'Foo' to enrolling. Nothing was changed."])])
            .await;
    }
    all_end_in(&[
        ("delete Foo;;cancle", &["I did not delete experiment 'Foo'. Nothing was changed."]),
        ("start Foo;;wait", &["set aside", "!is now enrolling"]),
        ("start Foo;;yes wait", &["set aside", "!is now enrolling"]),
    ])
    .await;
}

#[tokio::test]
async fn finished_actions_cannot_be_undone_and_the_reply_says_so() {
    for said in
        ["undo that", "undo the last change", "can you roll back the rename?", "revert it", "take that back"]
    {
        let asked = format!("rename Hints to Tips;;yes;;{said}");
        all_end_in(&[(&asked, &["I cannot take back what was done", "!Update experiment"])]).await;
    }
}

#[tokio::test]
async fn a_question_about_experiments_in_general_is_about_none() {
    for said in
        ["can you delete experiments?", "could you start experiments", "are you able to delete experiments?"]
    {
        let asked = format!("tell me about Hints;;{said}");
        all_end_in(&[(&asked, &["did not understand", "!PERMANENTLY", "!Change experiment"])]).await;
    }
    all_end_in(&[
        ("can you create an experiment called Nova?", &["Which context should experiment 'Nova' run in?"]),
        ("can you delete Foo?", &["DELETE experiment 'Foo'"]),
    ])
    .await;
}

#[tokio::test]
async fn a_message_in_another_language_is_reported_as_such() {
    for said in ["nein", "Lösche Foo bitte"] {
        all_end_in(&[(said, &["in English"])]).await;
    }
    all_end_in(&[(
        "create an experiment in assign-prog;;Gracias",
        &["At which decision points", "'Gracias'"],
    )])
    .await;
}

#[tokio::test]
async fn participants_can_be_changed_while_the_question_is_open() {
    let asked = format!("{DESIGN} 50/50;;everybody");
    let modified = format!("{DESIGN} 50/50;;modify;;includeAll");
    let excluded = format!("{DESIGN} 50/50 for everybody;;and exclude bob;;make it 60/40;;include class c1");
    all_end_in(&[
        (
            &excluded,
            &[
                "Create experiment 'Boost'",
                "conditions: control 60%, variant 40%\n",
                "included: classId c1\n",
                "excluded: bob\n",
            ],
        ),
        (&asked, &["Create experiment 'Boost'", "filter mode: includeAll\n"]),
        (&modified, &["Create experiment 'Boost'", "filter mode: includeAll\n"]),
    ])
    .await;
}

#[tokio::test]
async fn numbers_of_students_match_the_message() {
    for (count, told) in [
        ("-5", "num_users is -5, and it must be from 1 to 1000"),
        ("one million", "num_users is 1000000, and"),
        ("99999999999", "num_users is 99999999999, and it must be from 1 to 1000"),
    ] {
        let said = format!("test the balance of Running Test with {count} users");
        all_end_in(&[(&said, &[told, "!The split"])]).await;
    }
    all_end_in(&[
        (
            "test the balance of Running Test with 100 users;;live test with 20 users",
            &["Test the balance of experiment 'Running Test'", "20 simulated students"],
        ),
        (
            "test the balance of Running Test with 100 users;;I want a live test",
            &["Test the balance of experiment 'Running Test'"],
        ),
    ])
    .await;
}

#[tokio::test]
async fn another_request_is_not_an_answer_to_the_last_question() {
    all_end_in(&[
        (
            "start Foo;;make it 30/70 instead",
            &["Update experiment 'Foo'", "control 30%, variant 70%", "!from 'inactive' to 'enrolling'"],
        ),
        ("delete Foo;;make it 30/70", &["Update experiment 'Foo'", "!PERMANENTLY"]),
        ("start Foo;;cancelled instead", &["from 'inactive' to 'cancelled'"]),
        (
            "start Foo;;no, first rename it to Tips",
            &["Update experiment 'Foo'", "name: Tips\n", "!from 'inactive' to 'enrolling'"],
        ),
        ("delete Foo;;rename it to Tips", &["Update experiment 'Foo'", "name: Tips\n", "!PERMANENTLY"]),
        (
            "delete Foo and Hints;;rename Hints to Tips",
            &["Update experiment 'Hints'", "name: Tips\n", "!PERMANENTLY"],
        ),
        ("delete Tips", &["there is no experiment called 'Tips'"]),
        ("exit", &["Goodbye"]),
    ])
    .await;
}

#[tokio::test]
async fn an_experiment_is_returned_with_its_lists() {
    all_end_in(&[
        (
            "exclude bob and class c7 from Hints;;yes;;include student ada in Hints;;yes;;who is excluded from Hints?",
            &["- included: ada\n", "- excluded: bob, classId c7"],
        ),
        ("tell me about Foo", &["!included", "!excluded", "after enrolment: continue\n"]),
        (
            "change the post experiment rule of Foo to assign variant;;yes;;tell me about Foo",
            &["after enrolment: assign variant\n"],
        ),
    ])
    .await;
}

#[tokio::test]
async fn decision_points_are_added_and_removed() {
    let old = "SelectSection / absolute_value_plot_equality";
    let new = "workspace / analyzing_step_functions";
    let both = format!("decision points: {old}, {new}\n");
    for said in ["add the decision point", "add a second decision point"] {
        let said = format!("tell me about Hints;;{said} {new} to it");
        all_end_in(&[(&said, &["Update experiment 'Hints'", &both, "!included"])]).await;
    }
    let replaced = format!("change the decision point of Hints to {new}");
    let taken =
        format!("add the decision point {new} to Hints;;yes;;remove the decision point {old} from Hints");
    let one = format!("decision points: {new}\n");
    all_end_in(&[
        (&replaced, &[&one, "!included"]),
        (&taken, &["Update experiment 'Hints'", &one, "!excluded"]),
    ])
    .await;
}

#[tokio::test]
async fn every_setting_can_be_changed_by_its_name() {
    all_end_in(&[
        (
            "change the context of Hints to mathstream",
            &["mathstream", "!I need: conditions", "!What should change"],
        ),
        ("change the description of Hints", &["Which description should it get?"]),
        (
            "change the description of Hints;;for class 7",
            &["Update experiment 'Hints'", "description: for class 7\n"],
        ),
        (
            "tell me about Hints;;set its filter mode to exclude all",
            &["Update experiment 'Hints'", "filter mode: excludeAll\n"],
        ),
    ])
    .await;
}

#[tokio::test]
async fn students_are_made_known_by_their_bare_ids() {
    all_end_in(&[
        ("initialize ada", &["Initialize user 'ada'"]),
        ("initialise user ada in class c1", &["Initialize user 'ada'", "classId: c1"]),
        ("initialize a user;;yes", &["Which user (id) do you mean?", "!user 'yes'"]),
        ("initialize a user;;42", &["Initialize user '42'"]),
    ])
    .await;
}

#[tokio::test]
async fn requests_for_later_are_not_run_now() {
    for said in ["start Foo tomorrow", "stop Running Test on Friday", "can you start Foo next week?"] {
        all_end_in(&[(said, &["did not understand", "!Change experiment"])]).await;
    }
}

#[tokio::test]
async fn nothing_is_explained_twice_in_one_reply() {
    let reply = last_reply(&["what is the difference between a payload and a payload?"]).await;
    assert_eq!(reply.matches("A payload is data").count(), 1, "{reply}");
    let reply = last_reply(&["what is a payload and what is a segment?"]).await;
    assert!(reply.contains("A payload is data") && reply.contains("A segment is"), "{reply}");
}
