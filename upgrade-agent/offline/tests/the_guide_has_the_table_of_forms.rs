//! `docs/upgrade-agent.md` has the table of forms that the grammar makes.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]

use std::path::PathBuf;

#[test]
fn the_table_of_the_guide_is_made_from_the_grammar() {
    let page = PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("../../docs/upgrade-agent.md");
    let page = std::fs::read_to_string(page).unwrap().replace("\r\n", "\n");
    let table = upgrade_offline_model::forms_table();
    assert!(table.lines().count() > 80);
    assert!(page.contains(&table), "the table of the guide should be:\n{table}");
}
