//! [`Report`]: the figures of a run, as text and as a page. Pure.

mod page;
mod text;

use std::collections::BTreeMap;
use std::time::Duration;

use agentgraph_llm::middleware::{Bill, Money, Price, PriceTable};
use serde::{Deserialize, Serialize};

use crate::agent::{AnswerKind, Solution};
use crate::question::Question;
use crate::run::Run;
use crate::score::is_right;

/// The figures of a run.
#[derive(Clone, Debug)]
pub struct Report {
    /// The name of the run.
    pub run: String,
    /// Where the questions are from.
    pub source: String,
    /// The primary model.
    pub model: String,
    /// The questions, in order.
    pub rows: Vec<Row>,
    prices: PriceTable,
}

/// A question in a report.
#[derive(Clone, Debug)]
pub struct Row {
    /// The question.
    pub question: Question,
    /// Its answer; `None` while it has none.
    pub solution: Option<Solution>,
    /// Whether the answer is right; `None` if the truth is not known.
    pub is_right: Option<bool>,
}

impl Row {
    /// The state of a question in a few words.
    pub fn verdict(&self) -> String {
        let Some(solution) = &self.solution else { return "not answered yet".to_owned() };
        let right = match self.is_right {
            Some(true) => "right, ",
            Some(false) => "wrong, ",
            None => "",
        };
        let failed = if solution.is_done { "" } else { ", the models failed" };
        format!("{right}{}{failed}", solution.in_words())
    }
}

/// The price of a model in a file of settings: thousandths of a dollar for a million tokens.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct PriceSetting {
    /// Input that was not in a cache.
    pub input: u64,
    /// Output.
    pub output: u64,
    /// Input from a cache; as other input if it is left out.
    #[serde(default)]
    pub cached: Option<u64>,
}

/// The prices of models: list prices of the models that the document names, and those of the settings.
/// Gemini's model for media, and all others, have a price only if the settings have one.
pub fn prices(settings: &BTreeMap<String, PriceSetting>) -> PriceTable {
    let listed = PriceTable::new()
        .with("gpt-4o", Price::new(2_500, 10_000).with_cache(1_250, 2_500))
        .with("gpt-4o-mini", Price::new(150, 600).with_cache(75, 150))
        .with("offline", Price::new(0, 0));
    settings.iter().fold(listed, |prices, (model, price)| {
        let cached = price.cached.unwrap_or(price.input);
        prices.with(model, Price::new(price.input, price.output).with_cache(cached, price.input))
    })
}

impl Report {
    /// The report of a run, with the solutions that it has and the answers that are known.
    pub fn new(
        run: &Run,
        solutions: impl IntoIterator<Item = Solution>,
        truths: &BTreeMap<String, String>,
        prices: PriceTable,
    ) -> Self {
        let mut solutions: BTreeMap<String, Solution> =
            solutions.into_iter().map(|solution| (solution.task_id.clone(), solution)).collect();
        let row = |question: &Question| {
            let solution = solutions.remove(&question.task_id);
            let truth = question.truth.as_ref().or_else(|| truths.get(&question.task_id));
            let is_right = truth.zip(solution.as_ref()).map(|(truth, found)| is_right(&found.answer, truth));
            let is_right = is_right.or(truth.map(|_| false));
            Row { question: question.clone(), solution, is_right }
        };
        Report {
            run: run.id.clone(),
            source: run.plan.source.clone(),
            model: run.plan.model.clone(),
            rows: run.questions.iter().map(row).collect(),
            prices,
        }
    }

    fn solutions(&self) -> impl Iterator<Item = &Solution> {
        self.rows.iter().filter_map(|row| row.solution.as_ref())
    }

    /// The questions that have an answer of their own, or one of the cache.
    pub fn answered(&self) -> usize {
        self.solutions().filter(|solution| solution.kind != AnswerKind::Unknown && solution.is_done).count()
    }

    /// The share of questions without an answer, from 0 to 1.
    pub fn error_rate(&self) -> f64 {
        share(self.rows.len() - self.answered(), self.rows.len())
    }

    /// The share of questions that the cache answered.
    pub fn hit_rate(&self) -> f64 {
        let hits = self.solutions().filter(|solution| solution.kind == AnswerKind::Cached).count();
        share(hits, self.rows.len())
    }

    /// The questions whose truth is known here.
    pub fn known(&self) -> usize {
        self.rows.iter().filter(|row| row.is_right.is_some()).count()
    }

    /// The right answers; `None` if no truth is known.
    pub fn right(&self) -> Option<usize> {
        (self.known() > 0).then(|| self.rows.iter().filter(|row| row.is_right == Some(true)).count())
    }

    /// The calls of each tool.
    pub fn tools(&self) -> BTreeMap<String, u64> {
        let mut tools = BTreeMap::new();
        for (tool, calls) in self.solutions().flat_map(|solution| &solution.figures.tools) {
            *tools.entry(tool.clone()).or_default() += calls;
        }
        tools
    }

    /// The answers of models, over all questions.
    pub fn model_calls(&self) -> u64 {
        self.solutions().map(|solution| solution.figures.rounds).sum()
    }

    /// The tokens of all models.
    pub fn bill(&self) -> Bill {
        let mut bill = Bill::default();
        self.solutions().for_each(|solution| bill.add_all(&solution.figures.bill));
        bill
    }

    /// The cost in thousandths of a dollar, and the models that have no price.
    pub fn cost(&self) -> (Money, Vec<String>) {
        let (mut cost, mut unknown) = (Money::default(), Vec::new());
        for (model, usage) in self.bill().iter() {
            match self.prices.of(model) {
                Ok(price) => cost = cost.plus(price.cost(&usage)),
                Err(_) => unknown.push(model.to_owned()),
            }
        }
        (cost, unknown)
    }

    /// The time of the questions that took some, in order.
    pub fn times(&self) -> Vec<Duration> {
        let mut times: Vec<_> = self.solutions().map(|solution| solution.figures.time).collect();
        times.sort();
        times
    }

    /// The right answers and the questions of each prompt, if several were tried.
    pub fn by_prompt(&self) -> BTreeMap<String, (usize, usize)> {
        let mut prompts: BTreeMap<String, (usize, usize)> = BTreeMap::new();
        for row in &self.rows {
            if let Some(solution) = &row.solution {
                let (right, all) = prompts.entry(solution.prompt.clone()).or_default();
                *right += usize::from(row.is_right == Some(true));
                *all += 1;
            }
        }
        if prompts.len() > 1 { prompts } else { BTreeMap::new() }
    }

    /// The figures of the head, by name, the same in all forms.
    pub fn figures(&self) -> Vec<(&'static str, String)> {
        let count = self.rows.len();
        let bill = self.bill().total();
        let (cost, unknown) = self.cost();
        let cost = match unknown.as_slice() {
            [] => dollars(cost),
            models => {
                format!("{}, without {}, for which no price is known", dollars(cost), models.join(", "))
            }
        };
        let times = self.times();
        let mut figures = vec![
            ("questions", count.to_string()),
            ("answered", self.answered().to_string()),
            ("error rate", format!("{:.0} %", 100.0 * self.error_rate())),
            ("cache hits", format!("{:.0} %", 100.0 * self.hit_rate())),
            (
                "model calls",
                format!(
                    "{} ({:.1} a question)",
                    self.model_calls(),
                    share(self.model_calls() as usize, count)
                ),
            ),
            ("tokens", format!("{} in, {} out", bill.input_total, bill.output_total)),
            ("cost", cost),
            (
                "time a question",
                format!(
                    "{} median, {} longest",
                    time(median(&times)),
                    time(times.last().copied().unwrap_or_default())
                ),
            ),
        ];
        if let Some(right) = self.right() {
            let known = self.known();
            let text = format!("{right} of {known} ({:.0} %)", 100.0 * share(right, known));
            figures.insert(0, ("right answers", text));
            for (prompt, (right, all)) in self.by_prompt() {
                figures.push(("prompt", format!("{prompt}: {right} of {all} right")));
            }
        }
        figures
    }

    /// The report as text.
    pub fn to_text(&self) -> String {
        text::write(self)
    }

    /// The report as a page that needs nothing else.
    pub fn to_html(&self) -> String {
        page::write(self)
    }
}

fn share(part: usize, whole: usize) -> f64 {
    if whole == 0 { 0.0 } else { part as f64 / whole as f64 }
}

/// Dollars, to a hundredth of a cent.
fn dollars(cost: Money) -> String {
    // The unit is a thousandth of a dollar.
    format!("${:.4}", cost.as_millionths() as f64 / 1e9)
}

/// A time as people read it.
fn time(time: Duration) -> String {
    match time.as_secs_f64() {
        seconds if seconds < 1.0 => format!("{:.0} ms", seconds * 1000.0),
        seconds if seconds < 120.0 => format!("{seconds:.1} s"),
        seconds => format!("{:.0} min", seconds / 60.0),
    }
}

fn median(times: &[Duration]) -> Duration {
    times.get(times.len() / 2).copied().unwrap_or_default()
}
