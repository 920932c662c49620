//! An answer to a confirmation counts as a yes or a no only if the whole message is one.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]

use proptest::prelude::*;
use upgrade_agent::reply::{ConfirmKind, Verdict, is_cancel, read};

const YES: &[&str] = &["yes", "y", "ok", "okay", "sure", "confirm", "proceed", "go ahead", "do it"];
const NO: &[&str] = &["no", "n", "cancel", "abort", "stop", "nevermind", "never mind", "don't"];

#[test]
fn answers_are_judged_as_in_the_table_of_yes_and_no() {
    let table = "\
        yes | Yes
        YES | Yes
        Y | Yes
        ok | Yes
        okay. | Yes
        sure! | Yes
        confirm | Yes
        proceed | Yes
        go ahead | Yes
        Go-ahead | Yes
        do it | Yes
        yeah | Yes
        Yup! | Yes
        yep, of course | Yes
        of course, please | Yes
        sounds good, go for it | Yes
        of | Other
        by all | Other
        yeah no | Other
        yeah right | Other
        why? | Doubt
        Why | Doubt
        are you sure? | Doubt
        Hmm, are you sure?? | Doubt
        what happens then? | Doubt
        are you sure it is Foo? | Other
        sure? | Other
        1 | Other
        yes please | Yes
        Yes, please! | Yes
        please, yes, thank you | Yes
        ok thanks | Yes
        yes, go ahead | Yes
        'yes' | Yes
        “yes” | Yes
        no | No
        n | No
        No, thanks. | No
        no thank you | No
        cancel | No
        abort | No
        stop | No
        nevermind | No
        never mind, please | No
        don't | No
        don’t | No
        no, cancel | No
        nope | No
        stop that | No
        Don't do it! | No
        no, do not | No
        never mind that, thanks | No
        forget about it | No
        stop that experiment | Other
        don't stop it | No
        cancel the second one | Other
        modify | Modify
        Modify it, please | Modify
        change it | Modify
        don't delete it | Other
        no, do not delete! | Other
        undeleted | Other
        yesterday we tried | Other
        yes but no | Other
        yes but only half | Other
        yes, if it is paused | Other
        yes and no | Other
        yes/no | Other
        y/n | Other
        now proceed | Other
        I don't know | Other
        not now | Other
        not ok | Other
        no ok | Other
        is it ok? | Other
        yes? | Other
        yes 👎 | Other
        yes :( | Other
        yes :) | Other
        yes:-( | Other
        yes :/ | Other
        yes :'( | Other
        yes =( | Other
        yes ( | Other
        yes ) | Other
        yes ^^ | Other
        yes -_- | Other
        yes >:-[ | Other
        yes (: | Other
        yes :(please) | Other
        yes !? | Other
        yes!!! | Yes
        yes... | Yes
        (yes) | Yes
        (“yes”) | Yes
        yes (please!) | Yes
        *yes* | Yes
        yes - go ahead | Yes
        no :( | No
        never mind :-) | No
        yeś | Other
        y e s | Other
        please | Other
        thanks | Other
        ... | Other
        stop the experiment | Other
        delete | Other
        DELETE | Other";
    for line in table.lines() {
        let (text, verdict) = line.trim().split_once(" | ").unwrap();
        assert_eq!(format!("{:?}", read(text, ConfirmKind::YesNo)), verdict, "{text}");
    }
}

#[test]
fn answers_are_judged_as_in_the_table_of_delete() {
    let table = [
        ("DELETE", Verdict::Yes),
        ("  DELETE \n", Verdict::Yes),
        ("\"DELETE\"", Verdict::Yes),
        ("'DELETE'", Verdict::Yes),
        ("`DELETE`", Verdict::Yes),
        ("“DELETE”", Verdict::Yes),
        ("delete", Verdict::NotTheWord),
        ("Delete", Verdict::NotTheWord),
        ("DELETE.", Verdict::NotTheWord),
        ("please DELETE", Verdict::NotTheWord),
        ("delete it", Verdict::NotTheWord),
        ("yes", Verdict::NotTheWord),
        ("y", Verdict::NotTheWord),
        ("ok", Verdict::NotTheWord),
        ("yes, delete it", Verdict::NotTheWord),
        ("cancel", Verdict::No),
        ("no", Verdict::No),
        ("No, thanks", Verdict::No),
        ("modify", Verdict::Modify),
        ("1", Verdict::NotTheWord),
        ("1)", Verdict::NotTheWord),
        ("#1", Verdict::NotTheWord),
        ("the first one", Verdict::NotTheWord),
        ("option 1, please", Verdict::NotTheWord),
        ("2", Verdict::NotTheWord),
        ("yeah", Verdict::NotTheWord),
        ("of course", Verdict::NotTheWord),
        ("why?", Verdict::Doubt),
        ("are you sure?", Verdict::Doubt),
        ("the one", Verdict::NotTheWord),
        ("the", Verdict::Other),
        ("1 DELETE", Verdict::Other),
        ("don't delete it", Verdict::Other),
        ("no, do not delete!", Verdict::Other),
        ("DELETE Foo", Verdict::Other),
        ("DELETE DELETE?", Verdict::Other),
        ("undeleted", Verdict::Other),
        ("DЕLETE", Verdict::Other),
        ("", Verdict::Other),
        ("what happens to the students?", Verdict::Other),
    ];
    for (text, verdict) in table {
        assert_eq!(read(text, ConfirmKind::TypeDelete), verdict, "{text}");
    }
}

#[test]
fn only_cancelling_words_cancel_the_pending_action() {
    for text in [
        "cancel",
        "Stop.",
        "never mind",
        "nevermind, thanks",
        "abort",
        "forget it",
        "don't",
        "Stop that!",
        "cancel this please",
        "do not do that",
        "drop it",
    ] {
        assert!(is_cancel(text), "{text}");
    }
    for text in [
        "no",
        "nope",
        "stop the experiment",
        "don't start it",
        "stop that test",
        "cancelled",
        "",
        "cancel?",
        "control",
    ] {
        assert!(!is_cancel(text), "{text}");
    }
}

proptest! {
    #[test]
    fn every_text_has_a_verdict(text in "\\PC*") {
        read(&text, ConfirmKind::YesNo);
        read(&text, ConfirmKind::TypeDelete);
        is_cancel(&text);
    }

    #[test]
    fn a_word_that_is_none_of_ours_spoils_any_answer(
        word in "[a-z]{2,9}",
        answer in prop::sample::select([YES, NO].concat()),
        before in any::<bool>(),
    ) {
        let ours = [YES, NO, &["please", "pls", "thanks", "thx", "kindly", "dont", "modify", "change", "edit"]].concat();
        // Some words count only together: "stop that", "don't do it".
        let parts = ["it", "that", "this", "do", "nope"];
        prop_assume!(!ours.contains(&word.as_str()) && !parts.contains(&word.as_str()));
        let text = if before { format!("{word} {answer}") } else { format!("{answer}, {word}") };
        prop_assert_eq!(read(&text, ConfirmKind::YesNo), Verdict::Other, "{}", text);
    }

    #[test]
    fn a_negation_anywhere_spoils_a_yes(
        yes in prop::sample::select(YES),
        no in prop::sample::select(&["no", "not", "don't", "never", "but", "if", "unless", "wait"][..]),
        before in any::<bool>(),
    ) {
        let text = if before { format!("{no} {yes}") } else { format!("{yes} {no}") };
        prop_assert_ne!(read(&text, ConfirmKind::YesNo), Verdict::Yes, "{}", text);
    }

    #[test]
    fn delete_is_said_by_one_word_only(text in "[DELETdelt .'\"!]{0,9}") {
        let said = text.trim_matches(|c: char| c.is_whitespace() || c == '\'' || c == '"');
        prop_assert_eq!(read(&text, ConfirmKind::TypeDelete) == Verdict::Yes, said == "DELETE", "{}", text);
    }

    #[test]
    fn politeness_and_punctuation_change_nothing(
        answer in prop::sample::select([YES, NO].concat()),
        before in prop::sample::select(&["", "please, ", "Thanks! "][..]),
        after in prop::sample::select(&["", " please", ", thank you.", "!!", " ..."][..]),
    ) {
        let text = format!("{before}{}{after}", answer.to_uppercase());
        let plain = if YES.contains(&answer) { Verdict::Yes } else { Verdict::No };
        prop_assert_eq!(read(&text, ConfirmKind::YesNo), plain, "{}", text);
    }
}
