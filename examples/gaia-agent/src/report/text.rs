//! A report as text.

use super::{Report, time};

pub(super) fn write(report: &Report) -> String {
    let mut text = format!("Run {} on {}, by {}\n\n", report.run, report.source, report.model);
    for (name, value) in report.figures() {
        text += &format!("{name:16} {value}\n");
    }
    let tools = report.tools();
    if !tools.is_empty() {
        text += "\ntools\n";
        let mut tools: Vec<_> = tools.into_iter().collect();
        tools.sort_by_key(|(name, calls)| (std::cmp::Reverse(*calls), name.clone()));
        for (name, calls) in tools {
            text += &format!("{calls:6} {name}\n");
        }
    }
    text += "\nquestions\n";
    for row in &report.rows {
        let answer = row.solution.as_ref().map_or("", |solution| solution.answer.as_str());
        let took = row.solution.as_ref().map(|solution| time(solution.figures.time)).unwrap_or_default();
        let answer: String =
            answer.split_whitespace().collect::<Vec<_>>().join(" ").chars().take(60).collect();
        text += &format!("{:24} {answer} ({}; {took})\n", row.question.task_id, row.verdict());
    }
    text
}
