//! The status line: a spinner with the name of the node, or a progress bar. It is removed before other
//! output.
//!
//! Printed on a terminal only.

use super::escape::escape_line;
use super::screen::{Screen, Style};
use super::wrap::cut;

const SPIN: [&str; 10] = ["⠋", "⠙", "⠹", "⠸", "⠼", "⠴", "⠦", "⠧", "⠇", "⠏"];
const SPIN_ASCII: [&str; 4] = ["|", "/", "-", "\\"];
/// The maximum width of a bar.
const BAR: usize = 30;
/// The assumed width of a terminal that does not report one.
const WIDTH: usize = 80;

/// The status line.
#[derive(Debug)]
pub(super) struct Status {
    screen: Screen,
    frame: usize,
    doing: Option<Activity>,
    drawn: bool,
}

#[derive(Debug)]
enum Activity {
    Node(String),
    Counted { label: String, done: u64, total: u64 },
}

impl Status {
    pub(super) fn new(screen: Screen) -> Self {
        Status { screen, frame: 0, doing: None, drawn: false }
    }

    /// Shows a node.
    pub(super) fn node(&mut self, name: &str) {
        self.show(Activity::Node(escape_line(name).into_owned()));
    }

    /// Shows progress.
    pub(super) fn progress(&mut self, label: &str, done: u64, total: u64) {
        self.show(Activity::Counted { label: escape_line(label).into_owned(), done, total });
    }

    /// Advances the spinner.
    pub(super) fn tick(&mut self) {
        self.frame += 1;
        self.draw();
    }

    /// Removes the line.
    pub(super) fn clear(&mut self) {
        self.doing = None;
        if std::mem::take(&mut self.drawn) {
            self.screen.raw("\r\u{1b}[K");
        }
    }

    fn show(&mut self, doing: Activity) {
        self.doing = Some(doing);
        self.draw();
    }

    fn draw(&mut self) {
        let Some(doing) = self.doing.as_ref().filter(|_| self.screen.is_watched()) else { return };
        // One column less, because some terminals would start a new line.
        let width = self.screen.width().unwrap_or(WIDTH).saturating_sub(1);
        let text = match doing {
            Activity::Node(name) => format!("{} {name}", self.spinner()),
            Activity::Counted { label, done, total } => {
                counted(label, *done, *total, width, self.screen.unicode)
            }
        };
        let text = cut(&text, width);
        self.screen.raw(&format!("\r{}\u{1b}[K", self.screen.paint(Style::Faint, &text)));
        self.drawn = true;
    }

    fn spinner(&self) -> &'static str {
        let frames: &[&str] = if self.screen.unicode { &SPIN } else { &SPIN_ASCII };
        frames[self.frame % frames.len()]
    }
}

impl Drop for Status {
    fn drop(&mut self) {
        self.clear();
    }
}

/// `label [####----] 40/100`, without the bar if there is no room.
fn counted(label: &str, done: u64, total: u64, width: usize, unicode: bool) -> String {
    use unicode_width::UnicodeWidthStr;
    let figures = format!("{done}/{total}");
    let room = width.saturating_sub(label.width() + figures.len() + 4).min(BAR);
    if room < 5 {
        return format!("{label} {figures}");
    }
    // A share of at most thirty columns, so the conversion loses nothing visible.
    let share = if total == 0 { 1.0 } else { (done as f64 / total as f64).min(1.0) };
    let full = (share * room as f64) as usize;
    let (on, off) = if unicode { ("█", "░") } else { ("#", "-") };
    format!("{label} [{}{}] {figures}", on.repeat(full), off.repeat(room - full))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_bar_fills_in_proportion_to_the_progress() {
        assert_eq!(counted("users", 0, 10, 25, false), "users [------------] 0/10");
        assert_eq!(counted("users", 5, 10, 25, false), "users [######------] 5/10");
        assert_eq!(counted("users", 10, 10, 26, true), "users [████████████] 10/10");
        assert_eq!(counted("users", 3, 0, 25, false), "users [#############] 3/0");
    }

    #[test]
    fn only_the_numbers_are_shown_if_there_is_no_room_for_a_bar() {
        assert_eq!(counted("simulating users", 5, 10, 23, false), "simulating users 5/10");
    }
}
