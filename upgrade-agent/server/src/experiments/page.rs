//! Experiments page by page.

use std::cmp::Ordering;

use serde_json::{Value, json};

use super::view;
use crate::core::{ApiRequest, Core};
use crate::wire::dialect::Dialect;
use crate::wire::fault::Fault;
use crate::wire::paging::{self, by_name};
use crate::wire::row::with;
use crate::wire::validate::{self, is_uuid};
use crate::world::model::Experiment;

const STATES: [&str; 8] =
    ["inactive", "preview", "scheduled", "enrolling", "enrollmentComplete", "cancelled", "archived", "draft"];
const RULES: [&str; 3] = ["continue", "revert", "assign"];

/// `POST /experiments/paginated`. The order of ids decides which experiments are on a page; the page itself
/// is sorted, by default by the last change.
pub(crate) fn paginated(core: &mut Core, asked: &ApiRequest) -> Result<Value, Fault> {
    let body = &asked.body;
    validate::page(core.world.dialect, body)?;
    let mut found: Vec<&Experiment> = core.world.experiments.values().collect();
    found.retain(|experiment| matches(experiment, &body["searchParams"]));
    found.sort_by(|a, b| a.columns.id.cmp(&b.columns.id));
    let filtered = found.len();
    let mut page = paging::cut_to(core.world.dialect, found, body)?;
    sort(&mut page, &body["sortParams"]);
    let nodes = page.into_iter().map(|experiment| view::node(&core.world, experiment)).collect();
    if core.world.dialect != Dialect::V62 {
        return Ok(paging::page(filtered, nodes, body));
    }
    let all = core.world.experiments.values().count();
    Ok(with(paging::page(all, nodes, body), [("filtered", json!(filtered))]))
}

/// A state matches as a whole, in either vocabulary. A text that is not an id matches all ids.
fn matches(experiment: &Experiment, search: &Value) -> bool {
    let Some(wanted) = search["string"].as_str().map(str::to_lowercase) else { return true };
    let columns = &experiment.columns;
    let holds = |text: &str| text.to_lowercase().contains(&wanted);
    let any = |texts: &[String]| holds(&texts.join(","));
    let in_state = || columns.state.as_str() == stored_state(&wanted);
    let in_points = || experiment.partitions.iter().any(|p| holds(p.place().0) || holds(p.place().1));
    match search["key"].as_str().unwrap_or("all") {
        "name" => holds(&columns.name),
        "status" => in_state(),
        "context" => any(&columns.context),
        "tag" => any(&columns.tags),
        "id" => !is_uuid(&search["string"]) || columns.id == wanted,
        _ => {
            holds(&columns.name)
                || in_state()
                || any(&columns.context)
                || any(&columns.tags)
                || in_points()
                || columns.id == wanted
        }
    }
}

fn stored_state(word: &str) -> &str {
    match word {
        "running" => "enrolling",
        "paused" => "enrollmentComplete",
        "completed" => "cancelled",
        other => other,
    }
}

/// Columns that are enums in the original's database are sorted by the order of their values.
fn sort(page: &mut [&Experiment], by: &Value) {
    let compare: fn(&Experiment, &Experiment) -> Ordering = match by["key"].as_str() {
        Some("name") => |a, b| by_name(&a.columns.name, &b.columns.name),
        Some("state") => |a, b| place(&STATES, a.columns.state.as_str(), b.columns.state.as_str()),
        Some("postExperimentRule") => |a, b| {
            let rule = |e: &Experiment| e.columns.post_experiment_rule.as_str().to_owned();
            place(&RULES, &rule(a), &rule(b))
        },
        _ => |a, b| a.columns.stamp.updated_at.cmp(&b.columns.stamp.updated_at),
    };
    let descends = by["sortAs"] == "DESC" || by["key"].is_null();
    page.sort_by_key(|experiment| std::cmp::Reverse(experiment.sequence));
    page.sort_by(|a, b| if descends { compare(b, a) } else { compare(a, b) });
}

fn place(words: &[&str], a: &str, b: &str) -> Ordering {
    let place = |word: &str| words.iter().position(|other| *other == word);
    place(a).cmp(&place(b))
}
