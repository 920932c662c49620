//! The answer in the text of a model, in the many forms that models give it.

use gaia_agent::answer::{clean, last_clean, marked};
use proptest::prelude::*;

/// Forms in which models mark an answer, `{}` in its place.
const FORMS: [&str; 11] = [
    "FINAL ANSWER: {}",
    "The final answer is: {}",
    "**Final Answer:** {}",
    "### Final Answer\n\n**{}**",
    "FINAL ANSWER：{}",
    "$\\boxed{{}}$",
    "<answer>{}</answer>",
    "<final_answer>{}</final_answer>",
    "{\"final_answer\": \"{}\"}",
    "{\"answer\": \"{}\"}",
    "{\"result\": \"{}\"}",
];
/// Forms that yield to those, wherever they are.
const WEAK_FORMS: [&str; 3] = ["**Answer**: {}", "The answer is: {}", "## Answer\n{}"];

/// Each form, with a number, a text and a list, alone and among other words.
#[test]
fn each_form_has_its_answer() {
    for (form, is_weak) in
        FORMS.map(|form| (form, false)).into_iter().chain(WEAK_FORMS.map(|form| (form, true)))
    {
        for answer in ["42", "Saint Petersburg", "b, e", "-3.5", "2021-03-09"] {
            let text = form.replace("{}", answer);
            for message in [
                text.clone(),
                format!("FINAL ANSWER: no\nLet me count again.\n\n{text}"),
                format!("{text}\n\nConfidence: 90%"),
                format!("```python\nprint(1)\n```\n{text}"),
            ] {
                let right = if is_weak && message.starts_with("FINAL") { "no" } else { answer };
                assert_eq!(marked(&message).as_deref(), Some(right), "{message:?}");
            }
        }
    }
}

#[test]
fn an_answer_goes_through_the_steps_in_their_order() {
    let cases = [
        // 1. White space.
        ("  Oslo \n", "Oslo"),
        ("", ""),
        (" \n\t ", ""),
        // 2. JSON.
        (r#"{"answer": "Oslo"}"#, "Oslo"),
        (r#"{"final_answer": 3.5, "confidence": 1}"#, "3.5"),
        (r#"{"result": ["b", "e"]}"#, "b, e"),
        (r#"{"answer": null}"#, ""),
        (r#"{"answer": true}"#, "true"),
        ("Here it is:\n```json\n{\"answer\": \"right\"}\n```", "right"),
        (r#"I think {"answer": "Oslo"} is right."#, "Oslo"),
        (r#"{"answer": "FINAL ANSWER: Oslo."}"#, "Oslo"),
        // The last of several counts.
        (r#"{"answer": 1} or {"answer": 2}"#, "2"),
        (r#"{"city": "Oslo"}"#, r#"{"city": "Oslo"}"#),
        (r#"{"answer": "Os"#, r#"{"answer": "Os"#),
        // 3. Fences.
        ("```\n42\n```", "42"),
        ("```python\nprint(1)\n```\n42", "42"),
        ("```", ""),
        // 4. Markers.
        ("FINAL ANSWER: 7", "7"),
        ("Final answer: 6\nNo.\nFINAL ANSWER: 7", "7"),
        ("The answer: none yet.\nAnswer: 12", "12"),
        ("Answer: see below\n\nFinal answer: right", "right"),
        ("**FINAL ANSWER:** **Saint Petersburg**", "Saint Petersburg"),
        ("FINAL ANSWER:", ""),
        ("FINAL ANSWER:\n\n42", "42"),
        ("The nonanswer: 5", "The nonanswer: 5"),
        // 5. Explanations.
        ("42\n\nThe table has six rows of seven.", "42"),
        ("42\nBecause six times seven is that.", "42"),
        ("Oslo\nNorway has one capital and it lies on a fjord", "Oslo"),
        ("red\ngreen\nblue", "red\ngreen\nblue"),
        // 6. Quotes, full stops, emphasis, numbers.
        ("\"Oslo\".", "Oslo"),
        ("'Oslo.'", "Oslo"),
        ("**Oslo**.", "Oslo"),
        ("*Oslo*", "Oslo"),
        ("`x = 3`", "x = 3"),
        ("“Oslo”", "Oslo"),
        ("it's", "it's"),
        ("U.S.", "U.S."),
        ("3.5.", "3.5"),
        ("12.", "12"),
        ("$1,234.50", "1234.50"),
        ("1,234,567", "1234567"),
        ("-1,000", "-1000"),
        ("17 %", "17"),
        ("17%", "17"),
        ("1, 2, 3", "1, 2, 3"),
        ("12,34", "12,34"),
        ("1,2", "1,2"),
        ("1234,567", "1234,567"),
        ("42 km", "42 km"),
        ("$", "$"),
        ("%", "%"),
        ("-", "-"),
        ("1.2.3", "1.2.3"),
        ("b, e", "b, e"),
    ];
    for (text, answer) in cases {
        assert_eq!(clean(text), answer, "{text:?}");
    }
}

#[test]
fn marks_are_found_in_the_company_that_models_give_them() {
    for (text, answer) in [
        ("**Final Answer:**\n\n**42**", "42"),
        ("I see 3 birds.\n\n**Final answer**\n\n3", "3"),
        ("FINAL ANSWER: **a**, **b**", "a, b"),
        ("FINAL ANSWER: \"a\", \"b\"", "a, b"),
        ("FINAL ANSWER: **a, b**", "a, b"),
        ("FINAL ANSWER: [42]", "42"),
        ("FINAL ANSWER: [a, b]", "a, b"),
        ("So the final answer is 42.", "42"),
        ("Final answer:\n- **a**\n- **b**\n\nThat is all.", "a, b"),
        ("FINAL ANSWER: $\\boxed{\\text{Oslo}}$", "Oslo"),
        ("FINAL ANSWER: \\boxed{f(x) = {1}}", "f(x) = {1}"),
        ("FINAL ANSWER: 42 (confidence: 90%)", "42"),
        ("FINAL ANSWER:\n```\n42\n```", "42"),
        ("FINAL ANSWER: 42\nI hope the final answer is right.", "42"),
        ("FINAL ANSWER: 42\n\nFINAL ANSWER: [the answer]", "42"),
        ("The final answer: 6. No, wait.\nFINAL ANSWER: 7", "7"),
        ("**Answer:** 42", "42"),
        ("The answer is: **42**.", "42"),
    ] {
        assert_eq!(marked(text).as_deref(), Some(answer), "{text:?}");
    }
}

#[test]
fn a_text_without_a_mark_is_no_final_answer() {
    for text in [
        "I will now look at the file.",
        "42",
        "",
        "The answer lies in the file.",
        "I need the final answer",
        "{\"city\": 1}",
    ] {
        assert_eq!(marked(text), None, "{text:?}");
    }
}

#[test]
fn the_last_text_with_an_answer_counts() {
    assert_eq!(last_clean(["1", "2", "FINAL ANSWER:", ""]).as_deref(), Some("2"));
    assert_eq!(last_clean([]), None);
}

proptest! {
    /// Whatever a model writes, an answer has no white space around it.
    #[test]
    fn any_text_has_an_answer_without_white_space_around_it(text in "(\\PC|[\\n\"'`*._$%,:{}\\[\\] ]|answer:|FINAL ANSWER:|```){0,40}") {
        let answer = clean(&text);
        prop_assert_eq!(answer.trim(), &answer);
    }

    /// A plain answer stays as it is, whatever is around it.
    #[test]
    fn a_marked_answer_is_found(answer in "[A-Za-z][a-z]{0,8}( [A-Z][a-z]{1,8}){0,3}", before in "[a-z .\\n]{0,30}") {
        let text = format!("{before}\nFINAL ANSWER: **{answer}**.\n\nThis follows.");
        prop_assert_eq!(clean(&text), answer);
    }
}
