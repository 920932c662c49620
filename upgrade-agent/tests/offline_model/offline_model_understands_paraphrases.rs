//! Each of the nine flows in other words: at least five paraphrases and a misspelling. The result must
//! equal that of the plain wording.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]

use upgrade_agent::actions::ActionKind;
use upgrade_agent::agent::{Turn, UpgradeAgent};
use upgrade_agent::client::{ExperimentState, NewExperiment, UpgradeClient};
use upgrade_agent::offline::OfflineModel;
use upgrade_agent::server::{EmbeddedServer, ServerHandle};
use upgrade_agent::state::PendingSummary;

struct Desk {
    server: ServerHandle,
    agent: UpgradeAgent,
    client: UpgradeClient,
}

impl Desk {
    /// Starts a server with `Math Hints` (inactive), `Running Test` (enrolling) and `Foo` (inactive).
    async fn new() -> Self {
        let server = EmbeddedServer::builder().in_memory().seed(7).start().await.unwrap();
        let client = UpgradeClient::builder(server.url()).build().unwrap();
        for name in ["Math Hints", "Running Test", "Foo"] {
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
        let agent =
            UpgradeAgent::builder().model(OfflineModel::new()).client(client.clone()).build().unwrap();
        Desk { server, agent, client }
    }

    async fn say(&self, thread: &str, text: &str) -> Turn {
        self.agent.turn(thread, text).await.unwrap()
    }

    /// Asserts that every message, each on its own thread, gets a reply with all of these texts.
    async fn all_say(&self, messages: &[&str], wanted: &[&str]) {
        let mut wrong = Vec::new();
        for message in messages {
            let turn = self.say(message, message).await;
            if !wanted.iter().all(|text| turn.reply.contains(text)) {
                wrong.push(format!(
                    "{message:?} brought {:?}",
                    turn.reply.chars().take(160).collect::<String>()
                ));
            }
        }
        assert!(wrong.is_empty(), "{wanted:?} was wanted:\n{}", wrong.join("\n"));
    }

    /// Asserts that every message, each on its own thread, leads to a question about this action, with
    /// all of these texts.
    async fn all_ask_for(&self, action: ActionKind, messages: &[&str], wanted: &[&str]) {
        let mut wrong = Vec::new();
        for message in messages {
            let turn = self.say(message, message).await;
            let asked = matches!(&turn.pending, Some(PendingSummary::Confirmation { action: asked, .. }) if *asked == action);
            if !asked || !wanted.iter().all(|text| turn.reply.contains(text)) {
                wrong.push(format!("{message:?} brought {:?}", turn.reply));
            }
        }
        assert!(wrong.is_empty(), "{action:?} with {wanted:?} was wanted:\n{}", wrong.join("\n"));
    }

    async fn end(self) {
        self.server.shutdown().await;
    }
}

#[tokio::test]
async fn a_simple_question() {
    let desk = Desk::new().await;
    let messages = [
        "What is A/B testing?",
        "tell me about A/B tests",
        "explain A/B testign",
        "define split testing please",
    ];
    desk.all_say(&messages, &["A/B testing compares two or more versions"]).await;
    desk.end().await;
}

#[tokio::test]
async fn terms_are_explained() {
    let desk = Desk::new().await;
    for (message, wanted) in [
        ("what's the difference between a site and a target?", "made of a site"),
        ("what does consistency rule mean", "whose earlier experience counts"),
        ("can you explain the unit of assignment", "draws for each student"),
        ("what is a payload good for", "data"),
        ("define excludeIfReached", "visited"),
        ("what are segments?", "set of students and groups"),
        ("what is a decison point", "asks UpGrade which condition to show"),
        ("what do you mean by enrollment", "marks a decision point"),
    ] {
        desk.all_say(&[message], &[wanted]).await;
    }
    desk.end().await;
}

#[tokio::test]
async fn information_about_a_context() {
    let desk = Desk::new().await;
    let messages = [
        "What conditions are available for assign-prog?",
        "which variants does assign-prog offer",
        "list conditions in ASSIGN-PROG",
    ];
    desk.all_say(&messages, &["The conditions of assign-prog are: control, variant."]).await;
    let points =
        ["which decision points exist in mathstream", "what sites and targets does mathstream have?"];
    desk.all_say(&points, &["lesson-stream", "question-hint"]).await;
    let groups = ["what kinds of groups are there for assign-prog?"];
    desk.all_say(&groups, &["schoolId, classId, instructorId"]).await;
    let contexts = [
        "what contexts are there",
        "which apps can I use?",
        "list the available contxts",
        "show all app contexts",
    ];
    desk.all_say(&contexts, &["assign-prog, mathstream"]).await;
    desk.end().await;
}

#[tokio::test]
async fn information_about_experiments() {
    let desk = Desk::new().await;
    let lists = [
        "list all experiments",
        "what experiments do we have?",
        "which studies exist right now",
        "are there any experiments",
        "how many experiments are there?",
    ];
    desk.all_say(&lists, &["There are 3 experiments", "Math Hints (inactive"]).await;
    let running = ["which experiments are running?", "list the enrolling tests", "show active experiments"];
    desk.all_say(&running, &["There is 1 experiment that is enrolling:", "Running Test"]).await;
    let running = ["is anything running?", "is anythng active"];
    desk.all_say(&running, &["There is 1 experiment that is enrolling:", "Running Test"]).await;
    let paused = ["is anything paused?"];
    desk.all_say(&paused, &["There are no experiments that are enrollmentComplete"]).await;
    let status =
        ["what's the status of Running Test?", "is Running Test running?", "has Running Test started?"];
    desk.all_say(&status, &["Experiment 'Running Test' is enrolling"]).await;
    let details =
        ["tell me about Math Hints", "show me the details of math hints", "what does Math Hints look like?"];
    desk.all_say(&details, &["Experiment 'Math Hints' (", "control 50%, variant 50%"]).await;
    let enrolled = [
        "how many students are in Running Test?",
        "who is enrolled in Running Test",
        "show the enrolment of 'Running Test'",
    ];
    desk.all_say(&enrolled, &["Experiment 'Running Test' has 0 students and 0 groups enrolled"]).await;
    let health = [
        "is upgrade up?",
        "is the server alive",
        "check the health of UpGrade",
        "which version is the server",
        "are you connected to upgrade?",
    ];
    desk.all_say(&health, &["The server is up", "6.5.0"]).await;
    desk.end().await;
}

#[tokio::test]
async fn requirements_of_an_action() {
    let desk = Desk::new().await;
    let messages = ["What parameters are required to create an experiment?"];
    desk.all_say(&messages, &["To create an experiment, these parameters are required", "- context:"]).await;
    let status = ["what parameters do I need to start an experiment?"];
    desk.all_say(&status, &["To change an experiment's status, these parameters are required", "- status"])
        .await;
    desk.end().await;
}

#[tokio::test]
async fn starting() {
    let desk = Desk::new().await;
    let messages = [
        "Start the Math Hints experiment",
        "please kick off math hints",
        "could you launch \"Math Hints\"?",
        "strat math hints",
        "set the status of Math Hints to enrolling",
        "can we start Math Hints now?",
        "go ahead and begin MATH HINTS",
    ];
    desk.all_say(&messages, &["Change experiment 'Math Hints' status from 'inactive' to 'enrolling'?"]).await;
    desk.end().await;
}

#[tokio::test]
async fn stopping() {
    let desk = Desk::new().await;
    let messages = [
        "Stop the Running Test experiment",
        "halt running test",
        "please pause \"Running Test\"",
        "I'd like to put Running Test on hold",
        "Running Test should be stopped",
    ];
    desk.all_say(
        &messages,
        &["Change experiment 'Running Test' status from 'enrolling' to 'enrollmentComplete'?"],
    )
    .await;
    let over = ["cancel Running Test", "call off Running Test", "set Running Test to cancelled"];
    desk.all_say(&over, &["Change experiment 'Running Test' status from 'enrolling' to 'cancelled'?"]).await;
    desk.end().await;
}

#[tokio::test]
async fn creating_with_missing_information() {
    let desk = Desk::new().await;
    let messages = [
        "Create experiment Bar",
        "set up a new experiment called Bar",
        "I want to make a test named \"Bar\"",
        "please add the experiment Bar",
        "can you build a study called Bar for me?",
        "craete experiment Bar",
        "let's create an experiment called 'Bar'",
    ];
    desk.all_say(&messages, &["Which context should experiment 'Bar' run in?"]).await;
    for (at, (context, point, conditions)) in [
        ("assign-prog", "SelectSection / absolute_value_plot_equality", "50/50"),
        (
            "in the assign prog app please",
            "the site is selectsection and the target absolute_value_plot_equality",
            "control 50, variant 50",
        ),
        ("assign-prog", "SelectSection, absolute_value_plot_equality", "split them evenly"),
        (
            "Let's use assign-prog.",
            "absolute_value_plot_equality at SelectSection",
            "half control, half variant",
        ),
        ("the first one", "SelectSection with absolute_value_plot_equality", "both, same weight"),
    ]
    .into_iter()
    .enumerate()
    {
        let thread = format!("missing {at}");
        desk.say(&thread, "Create experiment Bar").await;
        for (message, wanted) in [
            (context, "At which decision points"),
            (point, "Which conditions"),
            (conditions, "conditions: control 50%, variant 50%"),
        ] {
            let turn = desk.say(&thread, message).await;
            assert!(turn.reply.contains(wanted), "{message:?} brought {}", turn.reply);
        }
    }
    desk.end().await;
}

#[tokio::test]
async fn creating_at_once() {
    let desk = Desk::new().await;
    let messages = [
        "create experiment Bar in assign-prog at SelectSection / absolute_value_plot_equality with control 30 and variant 70",
        "Please set up a test called Bar in the assign-prog context, site SelectSection, target absolute_value_plot_equality, 30% control and 70% variant",
    ];
    let wanted = [
        "Create experiment 'Bar' in context 'assign-prog'?",
        "SelectSection / absolute_value_plot_equality",
        "control 30%, variant 70%",
    ];
    desk.all_say(&messages, &wanted).await;
    let grouped = "create experiment Bar in assign-prog at SelectSection / absolute_value_plot_equality, control and variant \
                   evenly, per class, for everybody";
    desk.all_say(&[grouped], &["assignment unit: group (classId)", "filter mode: includeAll"]).await;
    desk.end().await;
}

#[tokio::test]
async fn deleting() {
    let desk = Desk::new().await;
    let messages = [
        "Delete experiment Foo",
        "get rid of the Foo experiment",
        "please remove Foo",
        "can you permanently delete 'Foo'?",
        "dleete foo",
    ];
    desk.all_say(&messages, &["PERMANENTLY DELETE experiment 'Foo'", "Type DELETE"]).await;
    desk.end().await;
}

#[tokio::test]
async fn a_context_that_does_not_exist() {
    let desk = Desk::new().await;
    let messages = [
        "Create experiment with invalid-context",
        "create an experiment in the moonbase context",
        "set up experiment Bar in context moonbase",
        "creat experiment Bar in moonbase",
        "please add an experiment named Bar within moonbase-app",
    ];
    desk.all_say(&messages, &["there is no context `", "assign-prog, mathstream"]).await;
    desk.end().await;
}

#[tokio::test]
async fn a_report_of_the_session() {
    let desk = Desk::new().await;
    desk.say("report", "start Math Hints").await;
    desk.say("report", "yes").await;
    let wanted = "The status of experiment 'Math Hints' is now enrolling";
    for message in ["What have we accomplished?", "what have we acomplished so far", "show me the log"] {
        let turn = desk.say("report", message).await;
        assert!(turn.reply.contains(wanted), "{message:?} brought {}", turn.reply);
        assert_eq!(turn.path, ["conversation_analyzer", "response_generator"], "{message}");
    }
    desk.end().await;
}

#[tokio::test]
async fn references_to_that_experiment() {
    for (start, change) in [
        ("Start that experiment", "Update that experiment's weights to 70/30"),
        ("now launch it", "set its weights to 70/30"),
        ("strat it", "give control 70% and variant 30% in this experiment, change it please"),
    ] {
        let desk = Desk::new().await;
        let create =
            "create experiment Bar in assign-prog at SelectSection / absolute_value_plot_equality with 50/50";
        assert!(desk.say("t", create).await.reply.contains("Create experiment 'Bar'"));
        desk.say("t", "yes").await;
        let turn = desk.say("t", change).await;
        assert!(turn.reply.contains("control 70%, variant 30%"), "{change:?} brought {}", turn.reply);
        desk.say("t", "yes").await;
        let turn = desk.say("t", start).await;
        assert!(
            turn.reply.contains("Change experiment 'Bar' status from 'inactive' to 'enrolling'?"),
            "{start:?} brought {}",
            turn.reply
        );
        desk.end().await;
    }
}

#[tokio::test]
async fn actions_that_were_not_requested_are_not_proposed() {
    let desk = Desk::new().await;
    let before = desk.client.experiments().await.unwrap();
    for message in [
        "how do I delete an experiment?",
        "How would one go about removing Foo?",
        "what happens if I delete Foo?",
        "what would deleting Foo do?",
        "can I delete a running experiment?",
        "should I stop Running Test?",
        "is it safe to delete Foo?",
        "is it possible to restart a cancelled experiment?",
        "don't start it",
        "do not start Math Hints",
        "stop! don't delete Foo",
        "I'd rather not start Foo",
        "do not under any circumstances delete Foo",
        "please don't delete Foo",
        "I don't want to stop Running Test",
        "never delete Foo",
        "I did not ask you to start Math Hints",
        "who created Foo?",
        "did you delete Foo?",
        "why was Foo deleted?",
        "when does Running Test end?",
        "has Math Hints been started?",
        "yes",
        "DELETE",
        "do it",
        "no",
        "what is the meaning of life?",
        "tell me a joke",
        "🦀",
        "???",
        "explain what stop does",
        "what's the difference between pausing and cancelling?",
    ] {
        let turn = desk.say(message, message).await;
        assert!(turn.pending.is_none(), "{message:?} brought {}", turn.reply);
        assert!(
            !turn.path.iter().any(|node| node == "confirmation_handler"),
            "{message:?} went {:?}",
            turn.path
        );
    }
    assert_eq!(desk.client.experiments().await.unwrap(), before);
    desk.end().await;
}

#[tokio::test]
async fn other_messages() {
    let desk = Desk::new().await;
    for (message, wanted) in [
        ("I want to run an A/B test in mathstream", "What should the experiment be called?"),
        ("start a new experiment", "Which context should the experiment run in?"),
        ("tag Foo with math and fractions", "- tags: math, fractions"),
        ("rename Foo to Bar", "- name: Bar"),
        ("add the description 'about hints' to Foo", "- description: about hints"),
        ("bye", "Goodbye"),
        ("what would student bob get in assign-prog?", "user 'bob' for context 'assign-prog'"),
        ("did we do anything?", "Nothing was changed in this conversation so far"),
        ("what is your name?", "I am the offline model"),
        ("which conditions does Foo have?", "The conditions of 'Foo' are: control 50%, variant 50%."),
        ("thanks!", "You're welcome"),
    ] {
        desk.all_say(&[message], &[wanted]).await;
    }
    desk.end().await;
}

#[tokio::test]
async fn questions_about_how_are_answered() {
    let desk = Desk::new().await;
    let deleting = ["how do I delete an experiment?", "what happens if I delete Foo?"];
    desk.all_say(&deleting, &["you type DELETE"]).await;
    let stopping = ["how does one pause an experiment"];
    desk.all_say(&stopping, &["nobody new is enrolled"]).await;
    desk.end().await;
}

#[tokio::test]
async fn unsupported_requests_are_refused_by_name() {
    let desk = Desk::new().await;
    for message in
        ["what's the weather like?", "tell me a joke", "asdf qwer uiop", "write me a poem about rust"]
    {
        let turn = desk.say(message, message).await;
        assert!(turn.reply.contains("offline model"), "{message:?} brought {}", turn.reply);
    }
    desk.all_say(
        &["help", "what can you do?", "who are you", "how can you help me?"],
        &["I am the offline model"],
    )
    .await;
    desk.end().await;
}

#[tokio::test]
async fn unknown_and_ambiguous_names_are_reported_and_not_guessed() {
    let desk = Desk::new().await;
    desk.all_say(&["start Quux", "tell me about \"Nothing\""], &["there is no experiment called"]).await;
    desk.all_say(&["start an experiment", "delete an experiment"], &["Which experiment do you mean?"]).await;
    desk.end().await;
}

#[tokio::test]
async fn one_student_visits() {
    let desk = Desk::new().await;
    let messages = [
        "let user ann visit SelectSection / absolute_value_plot_equality in assign-prog",
        "have student ann visit the decision point SelectSection absolute_value_plot_equality",
        "user ann goes to SelectSection, absolute_value_plot_equality",
        "vist SelectSection / absolute_value_plot_equality as user ann",
    ];
    let wanted = ["ann", "SelectSection / absolute_value_plot_equality"];
    desk.all_ask_for(ActionKind::VisitDecisionPoint, &messages, &wanted).await;
    desk.end().await;
}

#[tokio::test]
async fn the_balance_of_conditions() {
    let desk = Desk::new().await;
    let messages = [
        "test the balance of Math Hints with 200 users",
        "run a balance test for the Math Hints experiment, 200 students",
    ];
    desk.all_ask_for(ActionKind::TestConditionBalance, &messages, &["200", "Math Hints"]).await;
    let computed = ["test the balance of Running Test", "is the split of Running Test fair?"];
    desk.all_say(&computed, &["The split of experiment 'Running Test', computed"]).await;
    desk.end().await;
}

#[tokio::test]
async fn a_journey_of_students() {
    let desk = Desk::new().await;
    let messages = [
        "simulate a journey of 20 users through Math Hints",
        "let 20 learners walk through the Math Hints experiment",
        "send twenty test users through Math Hints please",
        "simluate a user jounrey for 20 students in Math Hints",
    ];
    desk.all_ask_for(ActionKind::SimulateUserJourney, &messages, &["20 simulated students"]).await;
    let told = [
        "simulate the journey of ada through Running Test: visit, then set the status to paused, then visit again",
        "simulate a journey of student ada through Running Test: visit, then pause it, then visit again",
    ];
    let steps = [
        "Simulate the journey of student 'ada'",
        "2. let them visit SelectSection / absolute_value_plot_equality",
        "3. change the status to enrollmentComplete",
        "4. let them visit SelectSection / absolute_value_plot_equality",
        "5. restore the status enrolling",
    ];
    desk.all_ask_for(ActionKind::SimulateUserJourney, &told, &steps).await;
    let lost =
        desk.say("lost", "simulate the journey of ada through Running Test: visit, then sing a song").await;
    assert!(
        lost.pending.is_none() && lost.reply.contains("did not understand 'then sing a song'"),
        "{}",
        lost.reply
    );
    let named = ["run a user journey with students ann and bob in Math Hints"];
    desk.all_ask_for(ActionKind::SimulateUserJourney, &named, &["students 'ann' and 'bob'"]).await;
    desk.end().await;
}

#[tokio::test]
async fn included_and_excluded_members_are_found() {
    let desk = Desk::new().await;
    let out = [
        "exclude user bob from Math Hints",
        "put student bob on the exclusion list of Math Hints",
        "block student bob from the Math Hints experiment",
        "exlcude user bob from Math Hints",
    ];
    desk.all_ask_for(ActionKind::UpdateExperiment, &out, &["exclu", "bob"]).await;
    let classes = ["keep class c1 out of Math Hints"];
    desk.all_ask_for(ActionKind::UpdateExperiment, &classes, &["exclu", "c1"]).await;
    let into = [
        "add class c1 to the inclusion list of Math Hints",
        "whitelist class c1 for Math Hints",
        "include class c1 in Math Hints",
        "inclued class c1 in Math Hints",
    ];
    desk.all_ask_for(ActionKind::UpdateExperiment, &into, &["inclu", "c1"]).await;
    desk.end().await;
}
