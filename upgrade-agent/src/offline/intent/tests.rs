//! Tables of messages and their requests, a few of each; the full table of paraphrases is in
//! `tests/offline_model_understands_paraphrases.rs`.

use super::*;

fn ask(message: &str) -> Request {
    understand(&Text::read(message)).ask
}

fn assert_all_ask(messages: &[&str], wanted: &Request) {
    for message in messages {
        assert_eq!(&ask(message), wanted, "{message}");
    }
}

fn change_to(status: &'static str) -> Request {
    Request::Do(Operation::Status(Some(status)))
}

#[test]
fn orders_are_understood_in_different_words() {
    assert_all_ask(
        &["kick off Math Hints", "can you get the Hints study going?", "I want it live, please turn it on"],
        &change_to("enrolling"),
    );
    assert_all_ask(
        &["halt Math Hints", "bring that test to an end", "Foo should be stopped"],
        &change_to("enrollmentComplete"),
    );
    assert_all_ask(
        &["get rid of Foo", "please erase experiment 'Start Here'", "I no longer need Foo, delete it"],
        &Request::Do(Operation::Delete),
    );
    assert_all_ask(
        &["set up a new study called Bar", "I'd like to make an experiment"],
        &Request::Do(Operation::Create),
    );
    assert_all_ask(
        &[
            "change the weights of Foo to 70/30",
            "make it 70/30",
            "add a condition to Foo",
            "remove the tag from Foo",
        ],
        &Request::Do(Operation::Update),
    );
    assert_all_ask(&["set the status of Foo to cancelled"], &change_to("cancelled"));
    assert_all_ask(&["make Foo inactive"], &change_to("inactive"));
    assert_all_ask(&["mark decision point SelectSection for student ada"], &Request::Do(Operation::Mark));
}

#[test]
fn a_question_about_an_action_is_not_an_order() {
    assert_all_ask(
        &[
            "how do I delete an experiment?",
            "what happens if I delete Foo?",
            "can I delete a running experiment?",
            "should we delete it?",
        ],
        &Request::HowTo(Operation::Delete),
    );
    assert!(!matches!(ask("did you delete Foo?"), Request::Do(_)));
    assert!(!matches!(ask("who deleted the hints test?"), Request::Do(_)));
    assert!(!matches!(ask("is Foo running?"), Request::Do(_)));
}

#[test]
fn a_negated_order_is_not_an_order() {
    assert_all_ask(
        &[
            "don't start it",
            "please do not delete Foo",
            "I don't want to stop the experiment",
            "never archive that one",
        ],
        &Request::Refused,
    );
    assert_eq!(ask("don't pause it, delete it"), Request::Do(Operation::Delete));
}

#[test]
fn greetings_thanks_answers_and_small_talk_are_recognized() {
    assert_all_ask(&["hi", "Hello there!", "good morning"], &Request::Greeting);
    assert_all_ask(&["thanks a lot", "Thank you so much!"], &Request::Thanks);
    assert_all_ask(&["yes", "ok, go ahead", "yes please"], &Request::Yes);
    assert_all_ask(&["no", "never mind", "forget it", "no, thanks"], &Request::No);
    assert_all_ask(&["help", "what can you do?", "who are you"], &Request::Abilities);
    assert_all_ask(&["what's the weather like?", "tell me a joke", "asdf qwer"], &Request::Unclear);
}

#[test]
fn questions_are_recognized_by_their_topic() {
    assert_all_ask(
        &["which experiments are running?", "list all tests", "how many studies do we have"],
        &Request::Experiments,
    );
    assert_all_ask(&["what contexts are there?", "which apps do you know"], &Request::Contexts);
    assert_all_ask(&["which variants can I use in mathstream?"], &Request::OfContext(Part::Conditions));
    assert_all_ask(&["show me the sites of assign-prog"], &Request::OfContext(Part::Points));
    assert_all_ask(&["group types for assign-prog?"], &Request::OfContext(Part::Groups));
    assert_all_ask(
        &["what's the status of Foo?", "is Foo running?", "how is Math Hints doing?"],
        &Request::StatusOf,
    );
    assert_all_ask(&["tell me about Math Hints", "show me experiment Foo"], &Request::Details);
    assert_all_ask(&["how many students are in Foo?", "enrollment numbers of Foo"], &Request::Enrollment);
    assert_all_ask(&["is the server up?", "which version of upgrade is this"], &Request::Health);
    assert_all_ask(
        &["what have we accomplished?", "recap please", "what did we do so far"],
        &Request::Report,
    );
}

#[test]
fn questions_about_terms_ask_for_an_explanation() {
    for (message, title) in [
        ("What is A/B testing?", "A/B testing"),
        ("what does exclude if reached mean", "Exclude if reached"),
        ("explain the consistency rule", "Consistency rule"),
        ("what's a decision point?", "Decision point"),
        ("what are weights", "Weight"),
    ] {
        let Request::Explain(terms) = ask(message) else { panic!("{message}: {:?}", ask(message)) };
        assert_eq!(terms[0].title(), title, "{message}");
    }
}

#[test]
fn questions_about_parameters_ask_for_the_schema_of_the_action() {
    assert_all_ask(
        &[
            "What parameters are required to create an experiment?",
            "which fields do I have to fill in for a new experiment?",
            "what do you need to set up a test?",
        ],
        &Request::Schema(Operation::Create),
    );
}
