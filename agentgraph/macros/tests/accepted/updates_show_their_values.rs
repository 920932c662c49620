use std::collections::BTreeMap;

use agentgraph::prelude::*;
use serde::{Deserialize, Serialize};

/// A type without `Debug`.
#[derive(Serialize, Deserialize, Clone, Default)]
struct Plan;

#[derive(State, Serialize, Deserialize, Clone, Default)]
struct Triage {
    question: String,
    #[reduce(append)]
    notes: Vec<String>,
    #[reduce(merge)]
    prices: BTreeMap<String, u32>,
    #[reduce(sum)]
    spent: u32,
    #[reduce(max)]
    risk: u8,
    plan: Plan,
    #[channel(secret)]
    token: String,
    #[reduce(append)]
    #[channel(secret)]
    keys: Vec<String>,
    r#type: u8,
}

#[test]
fn an_update_shows_its_values() {
    let update =
        Triage::update().question("why?").notes(["x"]).prices([("tea", 3)]).spent(1).spent(2).risk(3);
    let shown = format!("{update:?}");
    assert_eq!(
        shown,
        r#"TriageUpdate { question: "why?", notes: append ["x"], prices: merge [("tea", 3)], spent: sum [1, 2], risk: max 3 }"#
    );
    let update = Triage::update().plan(Plan).token("s3cret").overwrite_keys(vec!["s3cret".into()]).r#type(1);
    let shown = format!("{update:?}");
    assert_eq!(shown, "TriageUpdate { plan: .., token: [secret], keys: overwrite [secret], type: 1 }");
}
