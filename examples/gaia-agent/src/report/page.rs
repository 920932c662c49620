//! A report as a page: HTML without scripts, with its chart as SVG. All foreign text is escaped.

use super::{Report, time};

const STYLE: &str = "body{font:15px/1.45 system-ui,sans-serif;margin:2rem auto;max-width:60rem;padding:0 1rem;color:#1c2430}\
table{border-collapse:collapse;width:100%}td,th{text-align:left;padding:.3rem .6rem;border-bottom:1px solid #dde3ea;vertical-align:top}\
.right{color:#1a7f37}.wrong{color:#b42318}svg{width:100%;height:auto}text{font:12px system-ui,sans-serif;fill:#1c2430}";

/// Pixels.
const ROW: usize = 22;
const LABEL: usize = 190;
const WIDTH: usize = 900;

pub(super) fn write(report: &Report) -> String {
    let title = format!("GAIA run {}", report.run);
    let figures: String = report
        .figures()
        .into_iter()
        .map(|(name, value)| format!("<tr><th>{name}</th><td>{}</td></tr>\n", escaped(&value)))
        .collect();
    let tools: Vec<(String, f64, String)> =
        report.tools().into_iter().map(|(name, calls)| (name, calls as f64, calls.to_string())).collect();
    let times: Vec<(String, f64, String)> = report
        .rows
        .iter()
        .filter_map(|row| Some((row.question.task_id.clone(), row.solution.as_ref()?.figures.time)))
        .map(|(task, took)| (task, took.as_secs_f64(), time(took)))
        .collect();
    format!(
        "<!doctype html>\n<html lang=\"en\"><head><meta charset=\"utf-8\"><title>{title}</title><style>{STYLE}</style></head><body>\n\
         <h1>{title}</h1>\n<p>Questions of {source}, answered by {model}.</p>\n<table>\n{figures}</table>\n\
         <h2>Time a question</h2>\n{times}\n<h2>Calls of tools</h2>\n{tools}\n<h2>Questions</h2>\n\
         <table>\n<tr><th>task</th><th>level</th><th>question</th><th>answer</th><th></th></tr>\n{rows}</table>\n</body></html>\n",
        title = escaped(&title),
        source = escaped(&report.source),
        model = escaped(&report.model),
        times = chart(&times),
        tools = chart(&tools),
        rows = rows(report),
    )
}

/// Bars with a label before and a figure behind each.
fn chart(bars: &[(String, f64, String)]) -> String {
    if bars.is_empty() {
        return "<p>none</p>".to_owned();
    }
    let most = bars.iter().map(|(_, value, _)| *value).fold(0.0, f64::max);
    let room = (WIDTH - LABEL - 90) as f64;
    let bar = |(at, (label, value, figure)): (usize, &(String, f64, String))| {
        let length = if most > 0.0 { (value / most * room).max(1.0) } else { 1.0 };
        let (top, middle) = (at * ROW + 4, at * ROW + 15);
        format!(
            "<text x=\"0\" y=\"{middle}\">{}</text><rect x=\"{LABEL}\" y=\"{top}\" width=\"{length:.1}\" height=\"14\" fill=\"#3b6fb6\"/>\
             <text x=\"{:.1}\" y=\"{middle}\">{}</text>",
            escaped(&label.chars().take(26).collect::<String>()),
            LABEL as f64 + length + 6.0,
            escaped(figure)
        )
    };
    let drawn: String = bars.iter().enumerate().map(bar).collect();
    format!("<svg viewBox=\"0 0 {WIDTH} {}\" role=\"img\">{drawn}</svg>", bars.len() * ROW)
}

fn rows(report: &Report) -> String {
    let row = |row: &super::Row| {
        let answer = row.solution.as_ref().map_or("", |solution| solution.answer.as_str());
        let class = match row.is_right {
            Some(true) => "right",
            Some(false) => "wrong",
            None => "",
        };
        format!(
            "<tr><td>{}</td><td>{}</td><td>{}</td><td>{}</td><td class=\"{class}\">{}</td></tr>\n",
            escaped(&row.question.task_id),
            row.question.level,
            escaped(&row.question.question),
            escaped(answer),
            escaped(&row.verdict())
        )
    };
    report.rows.iter().map(row).collect()
}

fn escaped(text: &str) -> String {
    let text: String = text.chars().map(|letter| if letter.is_control() { ' ' } else { letter }).collect();
    text.replace('&', "&amp;").replace('<', "&lt;").replace('>', "&gt;").replace('"', "&quot;")
}
