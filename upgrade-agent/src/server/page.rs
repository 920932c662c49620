//! Experiments page by page, newest first unless asked otherwise.

use std::cmp::Ordering;

use serde_json::{Value, json};

use super::core::{Asked, Core};
use super::fault::Fault;
use super::model::Experiment;
use super::validate;
use super::view;

/// `POST /experiments/paginated`. The total counts all experiments, found or not.
pub(super) fn paginated(core: &mut Core, asked: &Asked) -> Result<Value, Fault> {
    let body = &asked.body;
    if !validate::is_page(body) {
        return Err(Fault::body());
    }
    let mut found = core.world.experiments_in_order();
    let total = found.len();
    found.retain(|experiment| matches(experiment, &body["searchParams"]));
    found.reverse();
    sort(&mut found, &body["sortParams"]);
    let number = |field: &str| body[field].as_f64().unwrap_or(0.0) as usize;
    let page = found.into_iter().skip(number("skip")).take(number("take"));
    let mut answer = json!({
        "total": total,
        "nodes": page.map(view::node).collect::<Vec<_>>(),
        "skip": body["skip"],
        "take": body["take"],
    });
    for field in ["searchParams", "sortParams"] {
        if !body[field].is_null() {
            answer[field] = body[field].clone();
        }
    }
    Ok(answer)
}

fn matches(experiment: &Experiment, search: &Value) -> bool {
    let Some(wanted) = search["string"].as_str().map(str::to_lowercase) else { return true };
    let columns = &experiment.columns;
    let holds = |text: &str| text.to_lowercase().contains(&wanted);
    let any = |texts: &[String]| holds(&texts.join(","));
    let in_points = || experiment.partitions.iter().any(|p| holds(p.place().0) || holds(p.place().1));
    match search["key"].as_str().unwrap_or("all") {
        "name" => holds(&columns.name),
        "status" => holds(columns.state.as_str()),
        "context" => any(&columns.context),
        "tag" => any(&columns.tags),
        _ => {
            holds(&columns.name)
                || holds(columns.state.as_str())
                || any(&columns.context)
                || any(&columns.tags)
                || in_points()
        }
    }
}

fn sort(found: &mut [&Experiment], by: &Value) {
    let compare: fn(&Experiment, &Experiment) -> Ordering = match by["key"].as_str() {
        Some("name") => |a, b| a.columns.name.cmp(&b.columns.name),
        Some("state") => |a, b| a.columns.state.as_str().cmp(b.columns.state.as_str()),
        Some("updatedAt") => |a, b| a.columns.stamp.updated_at.cmp(&b.columns.stamp.updated_at),
        Some("postExperimentRule") => {
            |a, b| a.columns.post_experiment_rule.as_str().cmp(b.columns.post_experiment_rule.as_str())
        }
        _ => return,
    };
    let descends = by["sortAs"] == "DESC";
    found.sort_by(|a, b| if descends { compare(b, a) } else { compare(a, b) });
}
