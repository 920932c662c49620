//! The inclusion and exclusion lists of an experiment. The actions take whole lists, so the present ones are
//! read first.

use serde_json::{Value, json};

use super::super::slots::lists::{self, Change, Side};
use super::super::slots::{names, students};
use super::super::text::{Text, Word};
use super::super::wire::{self, ContextInfo};
use super::{Flow, Gatherer, Params};

impl Gatherer<'_> {
    /// Adds the requested changes of lists to the parameters, based on the present lists.
    pub(super) fn take_lists(
        &self,
        params: &mut Params,
        experiment: Option<&Value>,
        context: &ContextInfo,
    ) -> Flow<()> {
        let own = wire::names(self.need("get_experiment_names", json!({}))?);
        let is_known = |word: &str| {
            own.iter().any(|named| names::has_word(&named.name, word))
                || word.eq_ignore_ascii_case(&context.name)
        };
        for change in lists::changes(self.text, &context.groups, &is_known) {
            let side = change.side.unwrap_or_else(|| side_of(&change, experiment));
            let change = Change {
                removes: change.removes || (change.side.is_none() && side == Side::Inclusion),
                ..change
            };
            write(params, experiment, side, &change);
            if change.only && side == Side::Inclusion {
                params.insert("filter_mode".into(), json!("excludeAll"));
            }
        }
        Ok(())
    }

    /// The message without the members of lists; none if it mentions no list.
    pub(super) fn without_members(&self) -> Flow<Option<Text>> {
        let own = wire::names(self.need("get_experiment_names", json!({}))?);
        let contexts = self.contexts()?;
        let kinds: Vec<String> = contexts.into_iter().flat_map(|context| context.groups).collect();
        let is_known = |word: &str| {
            own.iter().any(|named| names::has_word(&named.name, word) || named.id.eq_ignore_ascii_case(word))
        };
        let changes = lists::changes(self.text, &kinds, &is_known);
        if changes.is_empty() {
            return Ok(None);
        }
        let listed = |word: &Word| {
            changes.iter().any(|change| {
                change.users.contains(&word.raw) || change.groups.iter().any(|(_, id)| *id == word.raw)
            })
        };
        let mut text = self.text.clone();
        text.words.retain(|word| !listed(word) && students::kind_of(&word.raw, &kinds).is_none());
        text.quotes.retain(|quote| !changes.iter().any(|change| change.users.contains(quote)));
        Ok(Some(text))
    }
}

/// "Remove bob": from the inclusion list, or else to the exclusion list.
fn side_of(change: &Change, experiment: Option<&Value>) -> Side {
    let Some(experiment) = experiment else { return Side::Exclusion };
    let users = listed(experiment, Side::Inclusion, "users");
    let included = change.users.iter().any(|user| users.contains(&json!(user)));
    if included { Side::Inclusion } else { Side::Exclusion }
}

fn write(params: &mut Params, experiment: Option<&Value>, side: Side, change: &Change) {
    let word = match side {
        Side::Inclusion => "inclusion",
        Side::Exclusion => "exclusion",
    };
    let users = change.users.iter().map(|user| json!(user)).collect();
    let groups = change.groups.iter().map(|(kind, id)| json!({ "type": kind, "group_id": id })).collect();
    for (what, members) in [("users", users), ("groups", groups)] {
        let members: Vec<Value> = members;
        if members.is_empty() {
            continue;
        }
        let name = format!("{word}_{what}");
        let there = params.get(&name).and_then(Value::as_array).cloned();
        let mut all = there.or_else(|| Some(listed(experiment?, side, what))).unwrap_or_default();
        all.retain(|one| !members.contains(one));
        if !change.removes {
            all.extend(members);
        }
        params.insert(name, json!(all));
    }
}

/// The members of a list in the parameters.
fn listed(experiment: &Value, side: Side, what: &str) -> Vec<Value> {
    let names: &[&str] = match side {
        Side::Inclusion => &["inclusion"],
        Side::Exclusion => &["exclusion"],
    };
    let list = wire::field(wire::field(experiment, names), &[what]).as_array().cloned().unwrap_or_default();
    let group = |one: &Value| {
        let kind = wire::text(one, &["group_type", "type"])?;
        Some(json!({ "type": kind, "group_id": wire::text(one, &["group_id", "id"])? }))
    };
    match what {
        "groups" => list.iter().filter_map(group).collect(),
        _ => list,
    }
}
