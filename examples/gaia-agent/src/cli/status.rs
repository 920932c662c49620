//! The progress of a run: a bar on a terminal, and a line for each question.

use super::screen::Screen;

/// The widest bar.
const BAR: usize = 30;

pub(super) struct Status {
    screen: Screen,
    done: usize,
    total: usize,
}

impl Status {
    pub(super) fn new(screen: Screen, total: usize) -> Self {
        let status = Status { screen, done: 0, total };
        status.draw();
        status
    }

    /// Prints a line about a question, which counts as done.
    pub(super) fn done(&mut self, line: &str) {
        self.done += 1;
        self.screen.status("");
        self.screen.line(line);
        self.draw();
    }

    fn draw(&self) {
        self.screen.status(&bar(self.done, self.total, self.screen.width().saturating_sub(1)));
    }
}

impl Drop for Status {
    fn drop(&mut self) {
        self.screen.status("");
    }
}

/// `[####------] 8/20`, without the bar if there is no room.
pub(super) fn bar(done: usize, total: usize, width: usize) -> String {
    let figures = format!("{done}/{total}");
    let room = width.saturating_sub(figures.len() + 3).min(BAR);
    if room < 5 {
        return figures;
    }
    let full = (done.min(total) * room).checked_div(total).unwrap_or(room);
    format!("[{}{}] {figures}", "#".repeat(full), "-".repeat(room - full))
}
