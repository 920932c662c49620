//! The experiments and contexts that a message speaks of.

use super::{Flow, Gatherer, NextStep, error};
use crate::facts::Facts;
use crate::reading::{Clause, Slot};
use crate::wire::{self, ContextInfo, KnownName};

const PLACES: &[&str] =
    &["first", "second", "third", "fourth", "fifth", "sixth", "seventh", "eighth", "ninth", "tenth"];

/// A text without what people vary in names: case, spaces, hyphens.
pub(super) fn folded(text: &str) -> String {
    text.chars()
        .filter(|c| !c.is_whitespace() && !matches!(c, '-' | '_'))
        .flat_map(char::to_lowercase)
        .collect()
}

impl Gatherer<'_> {
    /// The experiment of a clause; none if the clause leaves it open.
    pub(super) fn target(&self, clause: &Clause) -> Flow<Option<KnownName>> {
        match clause.slots.iter().find(|slot| slot.name == "experiment") {
            Some(slot) => self.experiment(slot),
            None => Ok(None),
        }
    }

    pub(super) fn experiment(&self, slot: &Slot) -> Flow<Option<KnownName>> {
        let names = self.names()?;
        if slot.said {
            return self.by_name(&slot.value, &names);
        }
        let that = self.facts.situation_field("that_experiment");
        let that = wire::text(that, &["id"]).and_then(|id| names.iter().find(|known| known.id == id));
        let listed = listed(self.facts, &names);
        let place =
            |place: &str| PLACES.iter().position(|known| *known == place).and_then(|at| listed.get(at));
        let found = match slot.value.as_str() {
            "that" => that,
            "last" => listed.last().copied(),
            "other" => {
                let mut others = listed.iter().filter(|known| that.is_none_or(|that| known.id != that.id));
                others.next().copied().filter(|_| others.next().is_none())
            }
            named => place(named).copied(),
        };
        if found.is_none() && names.is_empty() {
            return Err(error("not_found", "there are no experiments yet".to_owned()));
        }
        Ok(found.cloned())
    }

    /// The experiment of this name or id. Two experiments of one name are asked about.
    fn by_name(&self, said: &str, names: &[KnownName]) -> Flow<Option<KnownName>> {
        if let Some(known) = names.iter().find(|known| is_id_of(said, &known.id)) {
            return Ok(Some(known.clone()));
        }
        let exact: Vec<&KnownName> = names.iter().filter(|known| known.name == said).collect();
        let alike = || names.iter().filter(|known| folded(&known.name) == folded(said)).collect();
        let found: Vec<&KnownName> = if exact.is_empty() { alike() } else { exact };
        match found.as_slice() {
            [known] => Ok(Some((*known).clone())),
            [] => Err(self.unknown(said, names)),
            _ => Ok(None),
        }
    }

    /// No experiment has this name. If one has its beginning, the rest was not understood.
    fn unknown(&self, said: &str, names: &[KnownName]) -> NextStep {
        if names.is_empty() {
            return error("not_found", "there are no experiments yet".to_owned());
        }
        let rest = |known: &KnownName| {
            let start =
                said.get(..known.name.len()).filter(|start| start.eq_ignore_ascii_case(&known.name))?;
            said.get(start.len()..)?.strip_prefix(' ').map(|rest| rest.trim().to_owned())
        };
        let near_start = names.iter().filter_map(|known| Some((known, rest(known)?)));
        let near_start = near_start.max_by_key(|(known, _)| known.name.len());
        let said = wire::on_one_line(said);
        if let Some((known, rest)) = near_start {
            let name = wire::on_one_line(&known.name);
            return self.left_over(format!(
                "There is no experiment called '{said}'. If you mean '{name}', I did not understand '{rest}'. I started nothing."
            ));
        }
        let mut near: Vec<&KnownName> = names.iter().collect();
        near.sort_by_key(|known| strsim::osa_distance(&folded(&said), &folded(&known.name)));
        let near: Vec<String> =
            near.iter().take(5).map(|known| format!("'{}'", wire::on_one_line(&known.name))).collect();
        error(
            "not_found",
            format!("there is no experiment called '{said}'; the nearest names are {}", near.join(", ")),
        )
    }

    /// The context of this name, in the server's spelling.
    pub(super) fn context(&self, said: &str) -> Flow<ContextInfo> {
        let contexts = self.contexts()?;
        let exact = contexts.iter().find(|context| context.name == said);
        let found = exact.or_else(|| contexts.iter().find(|context| folded(&context.name) == folded(said)));
        found.cloned().ok_or_else(|| {
            let known: Vec<&str> = contexts.iter().map(|context| context.name.as_str()).collect();
            let why = format!("there is no context `{said}`; there are {}", known.join(", "));
            // The question for it stays open.
            if self.asked == "context" {
                self.left_over(format!("T{}.", &why[1..]))
            } else {
                error("validation", why)
            }
        })
    }

    /// The context that a clause names, by its name or its place in the list.
    pub(super) fn named_context(&self, clause: &Clause) -> Flow<Option<ContextInfo>> {
        if let Some(place) = clause.slot("context_at") {
            let contexts = self.contexts()?;
            let at = PLACES.iter().position(|known| *known == place);
            let found = at.map_or_else(|| contexts.last(), |at| contexts.get(at));
            return Ok(found.cloned());
        }
        clause.slot("context").map(|said| self.context(said)).transpose()
    }
}

/// Whether a text is an id, its beginning, or an option that shows it: "Foo (id 0123abcd, assign-prog)".
fn is_id_of(said: &str, id: &str) -> bool {
    let shown = said.split_once("(id ").and_then(|(_, rest)| rest.split([',', ')', ' ']).next());
    let start = shown.unwrap_or(said);
    start.len() >= 8 && id.to_lowercase().starts_with(&start.to_lowercase())
}

/// The experiments that the last reply lists: one a line, "- Foo (inactive in assign-prog)", or in a
/// sentence.
fn listed<'n>(facts: &Facts, names: &'n [KnownName]) -> Vec<&'n KnownName> {
    let of_line = |line: &str| {
        let line = line.strip_prefix("- ")?;
        let begins = |known: &&KnownName| {
            line.strip_prefix(wire::on_one_line(&known.name).as_str())
                .is_some_and(|rest| rest.starts_with(" ("))
        };
        let mut same: Vec<&KnownName> = names.iter().filter(begins).collect();
        if same.len() > 1 {
            same.retain(|known| known.id.get(..8).is_some_and(|id| line.contains(id)));
        }
        same.first().copied()
    };
    let lines: Vec<&KnownName> = facts.before.lines().filter_map(of_line).collect();
    if !lines.is_empty() {
        return lines;
    }
    let options = facts.before.split("There are: ").nth(1).unwrap_or_default();
    let options = options.split('.').next().unwrap_or_default().split(", ");
    options.filter_map(|option| names.iter().find(|known| known.name == option)).collect()
}
