//! The command line and the screen.

use clap::CommandFactory;

use super::Cli;
use super::screen::escape;
use super::status::bar;

#[test]
fn the_definition_of_the_command_line_is_valid() {
    Cli::command().debug_assert();
}

#[test]
fn no_text_moves_the_cursor_or_turns_the_line_round() {
    assert_eq!(escape("a\u{1b}[2Jb\r\u{202e}c\nd\te"), "a\\u{1b}[2Jb\\u{d}\\u{202e}c\nd\te");
}

#[test]
fn the_bar_fills_with_the_questions_and_fits_the_line() {
    assert_eq!(bar(0, 20, 18), "[-----------] 0/20");
    assert_eq!(bar(10, 20, 100), format!("[{}{}] 10/20", "#".repeat(15), "-".repeat(15)));
    assert_eq!(bar(20, 20, 19), "[###########] 20/20");
    assert_eq!(bar(3, 20, 9), "3/20");
    assert_eq!(bar(0, 0, 18), "[############] 0/0");
}
