//! The nine flows of the graph document with the offline model, over HTTP, against the embedded server: the
//! messages, the nodes, the calls and the replies.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]

use crate::common;

use common::proxy::Proxy;
use upgrade_agent::agent::{Turn, UpgradeAgent};
use upgrade_agent::client::{ExperimentState, NewExperiment, UpgradeClient};
use upgrade_agent::offline::OfflineModel;
use upgrade_agent::server::{EmbeddedServer, ServerHandle};
use upgrade_agent::state::ResponseKind;

const ANALYZED: &str = "conversation_analyzer response_generator";
const GATHERED: &str = "conversation_analyzer information_gatherer response_generator";
const ASKED: &str = "conversation_analyzer information_gatherer confirmation_handler response_generator";
const COMPLETED: &str = "information_gatherer confirmation_handler response_generator";
const REASKED: &str = "information_gatherer response_generator";
const DONE: &str = "confirmation_handler tool_executor response_generator";
const SETTLED: &str = "confirmation_handler response_generator";

struct Stage {
    server: ServerHandle,
    proxy: Proxy,
    agent: UpgradeAgent,
}

/// The outcome of a message.
struct Scene {
    turn: Turn,
    /// The calls that change something.
    writes: Vec<String>,
}

impl Stage {
    async fn with(experiments: &[(&str, ExperimentState)]) -> Self {
        let server = EmbeddedServer::builder().in_memory().seed(3).start().await.unwrap();
        let proxy = Proxy::before(server.url()).await;
        let behind = UpgradeClient::builder(server.url()).build().unwrap();
        for (name, state) in experiments {
            let new = NewExperiment::new(*name, "assign-prog")
                .point("SelectSection", "absolute_value_plot_equality")
                .condition("control", 50.0)
                .condition("variant", 50.0)
                .include_all();
            let made = behind.create(&new).await.unwrap();
            behind.set_state(&made.id, state).await.unwrap();
        }
        let client = UpgradeClient::builder(proxy.url()).build().unwrap();
        let agent = UpgradeAgent::builder().model(OfflineModel::new()).client(client).build().unwrap();
        Stage { server, proxy, agent }
    }

    /// Sends a message, and checks the nodes and a part of the reply.
    async fn say(&self, text: &str, path: &str, reply: &str) -> Scene {
        self.proxy.heard();
        let turn = self.agent.turn("t", text).await.unwrap();
        assert!(turn.reply.contains(reply), "{text:?} brought {}", turn.reply);
        assert_eq!(turn.path.join(" "), path, "{text:?} brought {}", turn.reply);
        let reads = ["GET ", "POST /stats/"];
        let heard = self.proxy.heard().into_iter();
        Scene {
            turn,
            writes: heard.filter(|call| !reads.iter().any(|read| call.starts_with(read))).collect(),
        }
    }

    async fn experiments(&self) -> Vec<(String, ExperimentState)> {
        let client = UpgradeClient::builder(self.server.url()).build().unwrap();
        client.experiments().await.unwrap().into_iter().map(|one| (one.name, one.state)).collect()
    }
}

#[tokio::test]
async fn a_simple_question_is_answered_without_a_call() {
    let stage = Stage::with(&[]).await;
    let scene = stage.say("What is A/B testing?", ANALYZED, "compares two or more versions").await;
    assert!(scene.writes.is_empty() && scene.turn.kind == ResponseKind::Answer);
    assert_eq!(stage.proxy.bodies().len(), 0);
}

#[tokio::test]
async fn information_is_gathered_and_reported() {
    let stage = Stage::with(&[]).await;
    let scene =
        stage.say("What conditions are available for assign-prog?", GATHERED, "control, variant").await;
    assert!(scene.writes.is_empty());
    let heard: Vec<String> = stage.proxy.bodies();
    assert!(heard.iter().any(|call| call.starts_with("GET /experiments/contextMetaData")), "{heard:?}");
}

#[tokio::test]
async fn a_schema_is_explained() {
    let stage = Stage::with(&[]).await;
    let scene =
        stage.say("What parameters are required to create an experiment?", GATHERED, "- conditions:").await;
    assert!(scene.writes.is_empty());
    assert!(scene.turn.reply.contains("weights sum to exactly 100"));
}

#[tokio::test]
async fn a_status_is_changed_after_a_yes() {
    let stage = Stage::with(&[("Math Hints", ExperimentState::Inactive)]).await;
    let question = "Change experiment 'Math Hints' status from 'inactive' to 'enrolling'?";
    let scene = stage.say("Start the Math Hints experiment", ASKED, question).await;
    assert_eq!((scene.turn.kind, scene.turn.suggested.len()), (ResponseKind::Confirmation, 3));
    assert!(scene.writes.is_empty());
    let scene = stage.say("yes", DONE, "'Math Hints' is now enrolling").await;
    assert_eq!(scene.writes, ["POST /experiments/state"]);
    assert_eq!(stage.experiments().await, [("Math Hints".to_owned(), ExperimentState::Enrolling)]);
    let scene = stage.say("yes", ANALYZED, "not waiting for a yes or no").await;
    assert!(scene.writes.is_empty());
}

#[tokio::test]
async fn a_status_is_not_changed_after_a_no_or_another_topic() {
    let stage = Stage::with(&[("Math Hints", ExperimentState::Inactive)]).await;
    stage.say("Start the Math Hints experiment", ASKED, "to 'enrolling'?").await;
    stage.say("no", SETTLED, "Nothing was changed").await;
    stage.say("Start the Math Hints experiment", ASKED, "to 'enrolling'?").await;
    let path = "confirmation_handler conversation_analyzer information_gatherer response_generator";
    let scene = stage.say("which contexts are there?", path, "assign-prog, mathstream").await;
    assert!(scene.turn.reply.ends_with("change experiment 'Math Hints' to enrolling. Answer yes or no."));
    let path = "confirmation_handler conversation_analyzer response_generator";
    stage.say("hello", path, "set aside the question").await;
    let scene = stage.say("yes", ANALYZED, "not waiting").await;
    assert!(scene.writes.is_empty());
    assert_eq!(stage.experiments().await, [("Math Hints".to_owned(), ExperimentState::Inactive)]);
}

#[tokio::test]
async fn missing_information_is_asked_for_one_by_one() {
    let stage = Stage::with(&[]).await;
    stage.say("Create experiment Foo", GATHERED, "Which context should experiment 'Foo' run in?").await;
    let scene = stage.say("assign-prog", REASKED, "At which decision points").await;
    assert_eq!(scene.turn.suggested[0], "SelectSection / absolute_value_plot_equality");
    stage.say("SelectSection / absolute_value_plot_equality", REASKED, "Which conditions").await;
    stage.say("control 30, variant 70", COMPLETED, "conditions: control 30%, variant 70%").await;
    let scene = stage.say("yes", DONE, "Experiment 'Foo' was created").await;
    assert_eq!(scene.writes, ["POST /experiments"]);
    assert_eq!(stage.experiments().await, [("Foo".to_owned(), ExperimentState::Inactive)]);
}

#[tokio::test]
async fn a_question_in_between_keeps_the_given_parameters() {
    let stage = Stage::with(&[]).await;
    stage.say("Create experiment Foo in assign-prog", GATHERED, "At which decision points").await;
    let scene = stage.say("what is a decision point?", REASKED, "asks UpGrade which condition to show").await;
    assert!(scene.turn.reply.contains("At which decision points"));
    stage
        .say("workspace / analyzing_step_functions, 50/50", COMPLETED, "workspace / analyzing_step_functions")
        .await;
}

#[tokio::test]
async fn a_delete_needs_the_word_delete() {
    let stage = Stage::with(&[("Foo", ExperimentState::Inactive)]).await;
    stage.say("Delete experiment Foo", ASKED, "PERMANENTLY DELETE experiment 'Foo'").await;
    stage.say("yes", SETTLED, "type the word DELETE").await;
    let scene = stage.say("DELETE", DONE, "'Foo' was deleted").await;
    assert_eq!(scene.writes.len(), 1);
    assert!(scene.writes[0].starts_with("DELETE /experiments/"));
    assert!(stage.experiments().await.is_empty());
}

#[tokio::test]
async fn a_delete_can_be_cancelled_in_many_words() {
    let stage = Stage::with(&[("Foo", ExperimentState::Inactive)]).await;
    for words in ["cancel", "no", "No, thanks.", "don't delete it", "never mind", "hello"] {
        stage.say("Delete experiment Foo", ASKED, "Type DELETE").await;
        let turn = stage.agent.turn("t", words).await.unwrap();
        assert!(turn.pending.is_none(), "{words}: {}", turn.reply);
        let scene = stage.agent.turn("t", "DELETE").await.unwrap();
        assert!(!scene.path.iter().any(|node| node == "tool_executor"), "{words}");
    }
    assert_eq!(stage.experiments().await.len(), 1);
}

#[tokio::test]
async fn an_unknown_context_is_an_error_that_names_the_known_ones() {
    let stage = Stage::with(&[]).await;
    let scene = stage
        .say("Create experiment with invalid-context", GATHERED, "there is no context `invalid-context`")
        .await;
    assert_eq!(scene.turn.errors.len(), 1);
    assert!(scene.turn.reply.contains("assign-prog, mathstream") && scene.turn.pending.is_none());
}

#[tokio::test]
async fn a_session_of_several_actions_is_reported_from_the_log() {
    let stage = Stage::with(&[]).await;
    let create = "Create experiment Foo in assign-prog at SelectSection / absolute_value_plot_equality, 50/50, for everybody";
    stage.say(create, ASKED, "Create experiment 'Foo'").await;
    stage.say("yes", DONE, "was created").await;
    stage
        .say("Start that experiment", ASKED, "Change experiment 'Foo' status from 'inactive' to 'enrolling'?")
        .await;
    stage.say("yes", DONE, "is now enrolling").await;
    stage.say("Update that experiment's weights", GATHERED, "conditions").await;
    stage.say("70/30", REASKED, "say that you want it forced").await;
    stage.say("force it", COMPLETED, "control 70%, variant 30%").await;
    let scene = stage.say("yes", DONE, "'Foo'").await;
    assert_eq!(scene.writes.len(), 1);
    assert!(scene.writes[0].starts_with("PUT /experiments/"));
    let scene = stage.say("What have we accomplished?", ANALYZED, "So far we did 3 actions").await;
    assert_eq!(scene.turn.kind, ResponseKind::Report);
    let lines: Vec<&str> = scene.turn.reply.lines().collect();
    assert!(
        lines[1].contains("was created") && lines[2].contains("enrolling") && lines[3].contains("updated"),
        "{lines:?}"
    );
}

#[tokio::test]
async fn of_several_requests_the_first_is_met_and_the_others_are_offered() {
    let stage = Stage::with(&[("Foo", ExperimentState::Inactive), ("Bar", ExperimentState::Enrolling)]).await;
    let scene = stage
        .say("start Foo and then pause Bar", ASKED, "'Foo' status from 'inactive' to 'enrolling'?")
        .await;
    assert!(
        scene.turn.reply.ends_with("I take one thing at a time. After this you asked for: \"pause Bar\".")
    );
    let scene = stage.say("yes", DONE, "is now enrolling").await;
    let offer = "You also asked for: \"pause Bar\". Choose it or say it, and I go on with it.";
    assert!(scene.turn.reply.ends_with(offer), "{}", scene.turn.reply);
    assert_eq!(scene.turn.suggested, ["pause Bar"]);
    let scene = stage.say("pause Bar", ASKED, "'Bar' status from 'enrolling' to 'enrollmentComplete'?").await;
    assert!(!scene.turn.reply.contains("asked for"), "{}", scene.turn.reply);
    stage.say("no", SETTLED, "Nothing was changed").await;

    let question = "What's the status of Foo? Also rename it to Tips, and delete Bar.";
    let path = "conversation_analyzer information_gatherer response_generator";
    let scene = stage.say(question, path, "Experiment 'Foo' is enrolling").await;
    assert_eq!(scene.turn.suggested, ["rename it to Tips", "delete Bar"]);
    stage.say("rename it to Tips", ASKED, "- name: Tips").await;
    let scene = stage.say("yes", DONE, "Experiment 'Tips' was updated:\n- name: Tips").await;
    assert_eq!(scene.turn.suggested, ["delete Bar"]);
    // Something else drops the offer.
    stage.say("hello", ANALYZED, "Hello").await;
    let scene = stage.say("thanks", ANALYZED, "welcome").await;
    assert!(!scene.turn.reply.contains("delete Bar"), "{}", scene.turn.reply);
}

#[tokio::test]
async fn experiments_are_listed_by_their_author_as_far_as_the_audit_log_names_one() {
    let stage = Stage::with(&[("Foo", ExperimentState::Inactive)]).await;
    let path = "conversation_analyzer information_gatherer response_generator";
    let told = "UpGrade's audit log names nobody who made an experiment";
    stage.say("list the experiments made by ada", path, told).await;
}

#[tokio::test]
async fn a_question_says_how_many_more_answers_there_are() {
    let names: Vec<String> = (100..130).map(|number| format!("Trial {number}")).collect();
    let experiments: Vec<(&str, ExperimentState)> =
        names.iter().map(|name| (name.as_str(), ExperimentState::Inactive)).collect();
    let stage = Stage::with(&experiments).await;
    let scene = stage.say("start an experiment", GATHERED, "Trial 106, Trial 107 and 22 more.").await;
    assert_eq!(scene.turn.suggested.len(), 9, "eight of them, and Cancel");
}

#[tokio::test]
async fn what_condition_a_student_gets_is_asked_for_first() {
    let stage = Stage::with(&[("Foo", ExperimentState::Enrolling)]).await;
    stage.say("which condition does user alice get?", GATHERED, "For which context?").await;
    let asked = "Get condition assignments of user 'alice' for context 'assign-prog'?";
    let scene = stage.say("assign-prog", COMPLETED, asked).await;
    assert!(scene.turn.asks_for_a_yes());
}

#[tokio::test]
async fn stop_means_that_no_new_student_is_enrolled() {
    let stage = Stage::with(&[("Running Test", ExperimentState::Enrolling)]).await;
    let scene = stage.say("Stop the Running Test experiment", ASKED, "to 'enrollmentComplete'?").await;
    assert!(scene.turn.reply.contains("Nobody new is enrolled") && scene.turn.reply.contains("cancelled"));
    let scene = stage.say("ok", DONE, "is now enrollmentComplete").await;
    assert_eq!(scene.writes, ["POST /experiments/state"]);
}

#[tokio::test]
async fn a_changed_parameter_is_asked_about_again() {
    let stage = Stage::with(&[]).await;
    let create =
        "Create experiment Foo in assign-prog at SelectSection / absolute_value_plot_equality, 50/50";
    stage.say(create, ASKED, "control 50%, variant 50%").await;
    let path = "confirmation_handler conversation_analyzer information_gatherer confirmation_handler response_generator";
    stage.say("make it 70/30", path, "control 70%, variant 30%").await;
    stage.say("modify", SETTLED, "What should I change").await;
    stage.say("call it Bar and take everybody in", COMPLETED, "filter mode: includeAll").await;
    stage.say("yes", DONE, "was created").await;
    assert_eq!(stage.experiments().await.len(), 1);
}

#[tokio::test]
async fn a_visit_of_one_student_is_simulated() {
    let stage = Stage::with(&[("Hints", ExperimentState::Enrolling)]).await;
    stage.say("initialize user ada in class c1", ASKED, "Initialize user 'ada'").await;
    let scene = stage.say("yes", DONE, "ada").await;
    assert_eq!(scene.writes, ["POST /v6/init"]);
    stage
        .say(
            "which condition does user ada get in assign-prog?",
            ASKED,
            "of user 'ada' for context 'assign-prog'",
        )
        .await;
    stage.say("yes", DONE, "SelectSection").await;
    stage.say("mark SelectSection / absolute_value_plot_equality for user ada", ASKED, "of user 'ada'").await;
    stage.say("yes", DONE, "ada").await;
    stage.say("how many students are in Hints?", GATHERED, "has 1 student and 0 groups enrolled").await;
}

#[tokio::test]
async fn two_conversations_do_not_mix() {
    let stage = Stage::with(&[("Foo", ExperimentState::Inactive), ("Bar", ExperimentState::Inactive)]).await;
    let foo = stage.agent.turn("a", "start Foo");
    let bar = stage.agent.turn("b", "start Bar");
    let (foo, bar) = tokio::join!(foo, bar);
    assert!(foo.unwrap().reply.contains("'Foo'") && bar.unwrap().reply.contains("'Bar'"));
    let (foo, bar) = tokio::join!(stage.agent.turn("a", "yes"), stage.agent.turn("b", "no"));
    assert!(
        foo.unwrap().reply.contains("'Foo' is now enrolling")
            && bar.unwrap().reply.contains("Nothing was changed")
    );
    let mut found = stage.experiments().await;
    found.sort_by(|one, other| one.0.cmp(&other.0));
    assert_eq!(found[0], ("Bar".to_owned(), ExperimentState::Inactive));
}

const INACTIVE: ExperimentState = ExperimentState::Inactive;
const NEW: &str =
    "Create experiment Zeta in assign-prog at SelectSection / absolute_value_plot_equality, 50/50";
/// The path of a turn that drops a question and asks another one.
const TURNED: &str =
    "confirmation_handler conversation_analyzer information_gatherer confirmation_handler response_generator";

#[tokio::test]
async fn a_status_is_reported_for_one_experiment_and_clarified_for_none_or_several() {
    let stage = Stage::with(&[("Bar", INACTIVE), ("Foo", ExperimentState::Enrolling)]).await;
    let asked = "Of which experiment do you want to know the status?";
    let scene = stage.say("what's the status?", ANALYZED, asked).await;
    assert_eq!(scene.turn.kind, ResponseKind::Clarification);
    stage.say("tell me about Foo", GATHERED, "Experiment 'Foo'").await;
    stage.say("what's the status?", GATHERED, "Experiment 'Foo' is enrolling").await;
    stage.say("tell me about Bar", GATHERED, "Experiment 'Bar'").await;
    stage.say("what's the status?", GATHERED, "Experiment 'Bar' is inactive").await;
    stage.say("list the experiments", GATHERED, "There are 2 experiments").await;
    stage.say("what's the status?", ANALYZED, asked).await;
}

#[tokio::test]
async fn without_experiments_it_does_not_ask_which_one_is_meant() {
    let stage = Stage::with(&[]).await;
    for said in ["start it", "delete an experiment", "rename the experiment", "is it balanced?"] {
        let scene = stage.say(said, GATHERED, "there are no experiments yet").await;
        assert_eq!(scene.turn.suggested, [""; 0]);
    }
}

#[tokio::test]
async fn ordinals_refer_to_the_list_in_the_last_reply() {
    let stage = Stage::with(&[("Bar", INACTIVE), ("Foo", INACTIVE), ("Second Chance", INACTIVE)]).await;
    stage.say("start an experiment", GATHERED, "Which experiment do you mean?").await;
    stage.say("the first one", COMPLETED, "Change experiment 'Bar' status").await;
    stage.say("no", SETTLED, "Nothing was changed").await;
    for (said, named) in [
        ("start the second one", "Change experiment 'Foo' status"),
        ("delete the third", "PERMANENTLY DELETE experiment 'Second Chance'"),
        ("start the last one", "Change experiment 'Second Chance' status"),
        ("start Second Chance", "Change experiment 'Second Chance' status"),
    ] {
        stage.agent.turn("t", "list the experiments").await.unwrap();
        stage.say(said, ASKED, named).await;
        stage.say("no", SETTLED, "Nothing was changed").await;
    }
}

#[tokio::test]
async fn any_pending_question_can_be_cancelled() {
    let stage = Stage::with(&[("Foo", INACTIVE)]).await;
    for words in ["cancel", "don't", "never mind", "Stop that!", "forget it", "do not do that, please"] {
        stage.say("Create experiment Zeta", GATHERED, "Which context").await;
        let given_up = stage.say(words, REASKED, "I will not create the experiment").await;
        assert!(given_up.turn.pending.is_none() && given_up.turn.suggested.is_empty());
        for request in ["start Foo", "delete Foo", "test the balance of Foo with 5 users"] {
            stage.say(request, ASKED, "Foo").await;
            let given_up = stage.say(words, SETTLED, "Nothing was changed").await;
            assert!(given_up.turn.pending.is_none() && given_up.turn.suggested.is_empty());
            assert!(given_up.writes.is_empty(), "{words:?} to {request:?}");
        }
    }
}

#[tokio::test]
async fn a_change_within_a_yes_is_asked_about_again_and_executed() {
    let stage = Stage::with(&[("Foo", INACTIVE)]).await;
    for (request, before, change, after) in [
        (NEW, "'Zeta'", "call it Eta", "Create experiment 'Eta'"),
        (NEW, "variant 50%", "make it 70/30", "control 70%, variant 30%"),
        ("start Foo", "'enrolling'?", "set it to preview instead", "from 'inactive' to 'preview'?"),
        ("test the balance of Foo with 100 users", "100 simulated", "use 300 users", "300 simulated"),
        ("simulate 20 users in Foo", "20 simulated", "with 50 instead", "50 simulated"),
    ] {
        stage.say(request, ASKED, before).await;
        let changed = stage.say(change, TURNED, after).await;
        let (note, question) = changed.turn.reply.split_once("\n\n").unwrap();
        assert!(note.starts_with("I have set aside the question"), "{note}");
        assert!(!question.contains(before), "{question}");
        stage.say("no", SETTLED, "Nothing was changed").await;
    }
    stage.say(NEW, ASKED, "'Zeta'").await;
    stage.say("call it Eta", TURNED, "Create experiment 'Eta'").await;
    stage.say("yes", DONE, "Experiment 'Eta' was created").await;
}

#[tokio::test]
async fn a_new_request_drops_the_open_question_and_says_so() {
    let stage = Stage::with(&[("Bar", INACTIVE), ("Foo", INACTIVE)]).await;
    stage.say("start Foo", ASKED, "'Foo'").await;
    let scene = stage.say("delete Bar", TURNED, "PERMANENTLY DELETE experiment 'Bar'").await;
    assert!(scene.turn.reply.starts_with("I have set aside the question whether to change experiment 'Foo'"));
    let scene = stage.say("yes", SETTLED, "type the word DELETE").await;
    assert!(scene.writes.is_empty());
    stage.say("DELETE", DONE, "'Bar' was deleted").await;
    assert_eq!(stage.experiments().await, [("Foo".to_owned(), INACTIVE)]);
}

#[tokio::test]
async fn changes_made_elsewhere_are_seen_at_once() {
    let stage = Stage::with(&[("Bar", INACTIVE), ("Foo", INACTIVE)]).await;
    stage.say("list the experiments", GATHERED, "- Foo (inactive").await;
    stage.say("tell me about Foo", GATHERED, "status: inactive").await;
    let elsewhere = UpgradeClient::builder(stage.server.url()).build().unwrap();
    let all = elsewhere.experiments().await.unwrap();
    let id = |name: &str| all.iter().find(|one| one.name == name).unwrap().id.clone();
    elsewhere.set_state(&id("Foo"), &ExperimentState::Enrolling).await.unwrap();
    stage.say("what's its status?", GATHERED, "'Foo' is enrolling").await;
    stage.say("stop it", ASKED, "from 'enrolling' to 'enrollmentComplete'?").await;
    elsewhere.delete(&id("Foo")).await.unwrap();
    let scene = stage.agent.turn("t", "yes").await.unwrap();
    assert!(scene.reply.contains("Foo") && !scene.reply.contains("is now"), "{}", scene.reply);
    stage.say("list the experiments", GATHERED, "There is 1 experiment").await;
    stage.say("start Foo", GATHERED, "there is no experiment called 'Foo'").await;
}

const AT_A_POINT: &str = "in assign-prog at SelectSection / absolute_value_plot_equality";

#[tokio::test]
async fn an_unsupported_design_is_refused_and_not_replaced() {
    let stage = Stage::with(&[]).await;
    for design in ["within-subjects", "within subject", "factorial", "stratified", "adaptive"] {
        let text = format!("create a {design} experiment called Foo {AT_A_POINT}, 50/50, for everybody");
        let scene = stage.say(&text, GATHERED, "UpGrade's own screen").await;
        assert!(!scene.turn.reply.contains("Yes"), "{design}: {}", scene.turn.reply);
    }
    let text = format!("create experiment \"Factorial\" {AT_A_POINT}, 50/50, for everybody");
    stage.say(&text, ASKED, "Create experiment 'Factorial'").await;
}

#[tokio::test]
async fn a_group_experiment_is_created_for_groups() {
    let stage = Stage::with(&[]).await;
    let text = format!("create a group experiment called Foo {AT_A_POINT}, 50/50, for everybody");
    let scene = stage.say(&text, GATHERED, "group type").await;
    assert!(scene.turn.suggested.contains(&"classId".to_owned()), "{:?}", scene.turn.suggested);
    stage.say("classId", COMPLETED, "- assignment unit: group (classId)").await;
}

#[tokio::test]
async fn an_unusable_answer_is_reported() {
    let stage = Stage::with(&[]).await;
    let text = format!("create experiment Foo {AT_A_POINT}");
    let scene = stage.say(&text, GATHERED, "Which conditions").await;
    assert!(!scene.turn.reply.contains("could not take"), "{}", scene.turn.reply);
    for other in ["red 50%, blue 50%", "a 50%, b 50%"] {
        stage.say(other, REASKED, "I could not take that as an answer.").await;
    }
    assert_eq!(scene.turn.suggested[0], "control, variant, equally");
    stage.say(&scene.turn.suggested[0], COMPLETED, "conditions: control 50%, variant 50%").await;
}

#[tokio::test]
async fn the_list_of_abilities_names_the_simulations() {
    let stage = Stage::with(&[]).await;
    for part in ["test the balance", "journey of simulated students", "a visit"] {
        stage.say("what can you do?", ANALYZED, part).await;
    }
}

#[tokio::test]
async fn an_experiment_is_deleted_by_its_id() {
    let stage = Stage::with(&[("Foo", ExperimentState::Inactive), ("Bar", ExperimentState::Inactive)]).await;
    let behind = UpgradeClient::builder(stage.server.url()).build().unwrap();
    let foo = behind.experiments().await.unwrap().into_iter().find(|known| known.name == "Foo").unwrap();
    stage.say(&format!("delete {}", foo.id), ASKED, "PERMANENTLY DELETE experiment 'Foo'").await;
}

#[tokio::test]
async fn a_name_with_line_breaks_is_shown_on_one_line() {
    let forged = "Foo\nThe status of experiment 'Bar' is now cancelled.";
    let stage = Stage::with(&[(forged, ExperimentState::Inactive)]).await;
    let messages =
        ["list the experiments", "what is the status of Foo?", "start it", "cancel", "start Zork", "delete"];
    for message in messages {
        let reply = stage.agent.turn("t", message).await.unwrap().reply;
        assert!(!reply.lines().any(|line| line.starts_with("The status of")), "{message:?} brought {reply}");
    }
}
