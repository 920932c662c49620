//! The line that tells what goes on, and is gone when there is something to read: a spinner with the node's
//! name, or a bar.
//!
//! Only on a terminal: elsewhere nothing of it is printed.

use super::escape::escape_line;
use super::screen::{Screen, Style};
use super::wrap::cut;

const SPIN: [&str; 10] = ["⠋", "⠙", "⠹", "⠸", "⠼", "⠴", "⠦", "⠧", "⠇", "⠏"];
const SPIN_ASCII: [&str; 4] = ["|", "/", "-", "\\"];
/// The columns of a bar at most.
const BAR: usize = 30;
/// A terminal that does not tell its width has at least this one.
const WIDTH: usize = 80;

/// The line.
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

    /// A node has begun.
    pub(super) fn node(&mut self, name: &str) {
        self.show(Activity::Node(escape_line(name).into_owned()));
    }

    /// So much of something is done.
    pub(super) fn progress(&mut self, label: &str, done: u64, total: u64) {
        self.show(Activity::Counted { label: escape_line(label).into_owned(), done, total });
    }

    /// Time has passed.
    pub(super) fn tick(&mut self) {
        self.frame += 1;
        self.draw();
    }

    /// Takes the line away.
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
        // One column less, or some terminals begin a new line.
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

/// `label [####----] 40/100`, without the bar where there is no room for one.
fn counted(label: &str, done: u64, total: u64, width: usize, unicode: bool) -> String {
    use unicode_width::UnicodeWidthStr;
    let figures = format!("{done}/{total}");
    let room = width.saturating_sub(label.width() + figures.len() + 4).min(BAR);
    if room < 5 {
        return format!("{label} {figures}");
    }
    // Shares of at most thirty columns: nothing is lost that could be seen.
    let share = if total == 0 { 1.0 } else { (done as f64 / total as f64).min(1.0) };
    let full = (share * room as f64) as usize;
    let (on, off) = if unicode { ("█", "░") } else { ("#", "-") };
    format!("{label} [{}{}] {figures}", on.repeat(full), off.repeat(room - full))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_bar_fills_with_what_is_done() {
        assert_eq!(counted("users", 0, 10, 25, false), "users [------------] 0/10");
        assert_eq!(counted("users", 5, 10, 25, false), "users [######------] 5/10");
        assert_eq!(counted("users", 10, 10, 26, true), "users [████████████] 10/10");
        assert_eq!(counted("users", 3, 0, 25, false), "users [#############] 3/0");
    }

    #[test]
    fn where_there_is_no_room_the_figures_stay() {
        assert_eq!(counted("simulating users", 5, 10, 23, false), "simulating users 5/10");
    }
}
