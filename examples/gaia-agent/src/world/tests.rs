//! What is drawn and sent, and what the server of media makes of it.

use proptest::prelude::*;

use super::media::{read_picture, read_recording};
use super::{picture, recording};

proptest! {
    #![proptest_config(ProptestConfig::with_cases(32))]

    #[test]
    fn what_is_drawn_is_seen_and_what_is_sent_is_heard(text in "[A-Z0-9]{1,6}( [A-Z0-9]{1,6}){0,2}") {
        let (drawn, sent) = (picture(&text).unwrap(), recording(&text).unwrap());
        let (seen, heard) = (read_picture(&drawn), read_recording(&sent));
        prop_assert_eq!(seen.as_deref(), Some(text.as_str()));
        prop_assert_eq!(heard.as_deref(), Some(text.as_str()));
    }

    #[test]
    fn broken_files_are_not_made_out(bytes in prop::collection::vec(any::<u8>(), 0..200), cut in 0_usize..200) {
        read_picture(&bytes);
        read_recording(&bytes);
        let (drawn, sent) = (picture("A 1").unwrap(), recording("A").unwrap());
        read_picture(&drawn[..cut.min(drawn.len())]);
        read_recording(&sent[..cut.min(sent.len())]);
    }
}
