//! A value or write that does not fit a derived state is an error that names the channel.

use agentgraph::checkpoint::delta::DeltaWriter;
use agentgraph::state::{StateError, StoredState};
use agentgraph::{Code, Error, State};
use serde::{Deserialize, Serialize, Serializer};

/// A number that cannot be encoded if it is zero.
#[derive(Deserialize, Clone, Copy, Debug, Default, PartialEq)]
struct NonZero(u8);

impl Serialize for NonZero {
    fn serialize<S: Serializer>(&self, out: S) -> Result<S::Ok, S::Error> {
        match self.0 {
            0 => Err(serde::ser::Error::custom("zero is not written")),
            number => out.serialize_u8(number),
        }
    }
}

#[derive(State, Serialize, Deserialize, Clone, Debug, Default, PartialEq)]
struct Triage {
    question: String,
    #[reduce(append)]
    #[channel(alias = "remarks", alias = "comments")]
    notes: Vec<String>,
    #[reduce(append)]
    numbers: Vec<NonZero>,
    #[reduce(last)]
    single: NonZero,
    #[channel(untracked)]
    cache: u8,
}

/// The state in an earlier release of the program.
mod earlier {
    use agentgraph::State;
    use serde::{Deserialize, Serialize};

    #[derive(State, Serialize, Deserialize, Clone, Debug, Default)]
    pub(crate) struct Triage {
        pub(crate) question: u32,
        #[reduce(append)]
        pub(crate) comments: Vec<String>,
        pub(crate) cache: u8,
        pub(crate) questions: String,
    }
}

fn decode(update: &earlier::TriageUpdate) -> Result<TriageUpdate, StateError> {
    Triage::decode_update(&(), &earlier::Triage::encode_update(&(), update).unwrap())
}

fn text_and_code(error: StateError) -> (String, Code) {
    (error.to_string(), Error::from(error).code())
}

#[test]
fn an_alias_is_read_as_its_channel() {
    let mut state = Triage::default();
    state.apply(&(), decode(&earlier::Triage::update().comments(["old"])).unwrap()).unwrap();
    assert_eq!(state.notes, ["old"]);
}

#[test]
fn a_stored_write_to_a_channel_that_became_untracked_is_dropped() {
    assert!(decode(&earlier::Triage::update().cache(3)).unwrap().is_empty());
}

#[test]
fn an_unknown_channel_is_named_with_the_nearest_one() {
    let error = decode(&earlier::Triage::update().questions("why?")).unwrap_err();
    assert_eq!(
        text_and_code(error),
        ("there is no channel `questions`; did you mean `question`?".to_owned(), Code::UnknownChannel)
    );
}

#[test]
fn a_write_of_another_type_names_its_channel() {
    let error = decode(&earlier::Triage::update().question(3)).unwrap_err();
    assert!(matches!(&error, StateError::BadValue { channel, .. } if channel == "question"), "{error:?}");
    assert_eq!(Error::from(error).code(), Code::BadValue);
}

#[test]
fn a_value_of_another_type_names_its_channel_and_changes_nothing() {
    let mut state = Triage { notes: vec!["kept".to_owned()], ..Triage::default() };
    let before = state.clone();
    let error = state.restore_channel(&(), 1, &[0xc3]).unwrap_err();
    assert!(matches!(&error, StateError::BadValue { channel, .. } if channel == "notes"), "{error:?}");
    assert_eq!(state, before);
}

#[test]
fn a_value_that_cannot_be_encoded_names_its_channel() {
    let expected =
        |channel| (format!("channel `{channel}` cannot be stored: zero is not written"), Code::Encode);
    let mut delta = DeltaWriter::new(5);
    let mut state = Triage::default();

    let update = Triage::update().numbers([NonZero(1), NonZero(0)]);
    assert_eq!(text_and_code(Triage::encode_update(&(), &update).unwrap_err()), expected("numbers"));
    let error = state.apply_recorded(&(), update, &mut delta).unwrap_err();
    assert_eq!(text_and_code(error), expected("numbers"));

    let error = state.apply_recorded(&(), Triage::update().single(NonZero(0)), &mut delta).unwrap_err();
    assert_eq!(text_and_code(error), expected("single"));
    let error = state.record_channel(&(), 3, &mut delta).unwrap_err();
    assert_eq!(text_and_code(error), expected("single"));
}

#[test]
fn an_update_that_is_not_a_map_is_an_error() {
    for bytes in [&[][..], &[0xc3], &[0x81], &[0x81, 0xa1, b'x'], &[0xdf, 0xff, 0xff, 0xff, 0xff]] {
        let error = Triage::decode_update(&(), bytes).unwrap_err();
        assert!(error.to_string().contains("damaged"), "{bytes:?}: {error}");
    }
}
