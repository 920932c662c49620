//! All data of the server, in memory. Rules read it, changes are made through it, and the journal stores the
//! changes. Knows neither HTTP nor disk.

pub(crate) mod journal;
mod migrate;
pub(crate) mod model;
pub(crate) mod sources;
pub(crate) mod table;

use crate::wire::dialect::Dialect;
use model::{
    Account, AuditEntry, Exclusion, Experiment, Flag, GroupEnrollment, Log, Metric, PreviewUser,
    RepeatedEnrollment, Segment, Setting, StratificationFactor, Stratum, User, UserEnrollment, Visit,
};
use table::{Change, Table, key, parts};

/// The tables. One field per table.
#[derive(Debug)]
pub(crate) struct World {
    /// The dialect whose rules apply.
    pub(crate) dialect: Dialect,
    pub(crate) experiments: Table<Experiment>,
    pub(crate) segments: Table<Segment>,
    pub(crate) preview_users: Table<PreviewUser>,
    /// By the single key.
    pub(crate) settings: Table<Setting>,
    /// By email.
    pub(crate) accounts: Table<Account>,
    /// By number, in order.
    pub(crate) deeds: Table<AuditEntry>,
    pub(crate) users: Table<User>,
    /// From an alias to the id of the student.
    pub(crate) aliases: Table<String>,
    /// By site, target and student.
    pub(crate) visits: Table<Visit>,
    /// By experiment, student and decision point.
    pub(crate) enrolled: Table<UserEnrollment>,
    /// By experiment, student, decision point and number.
    pub(crate) repeated: Table<RepeatedEnrollment>,
    /// By experiment and group.
    pub(crate) enrolled_groups: Table<GroupEnrollment>,
    /// By experiment and student.
    pub(crate) excluded: Table<Exclusion>,
    /// By experiment and group.
    pub(crate) excluded_groups: Table<Exclusion>,
    /// By name.
    pub(crate) stratification_factors: Table<StratificationFactor>,
    /// By the factor's name and student.
    pub(crate) strata: Table<Stratum>,
    /// By key.
    pub(crate) metrics: Table<Metric>,
    /// By student and number.
    pub(crate) logs: Table<Log>,
    /// By id.
    pub(crate) flags: Table<Flag>,
}

/// Does the same with every table.
macro_rules! each_table {
    ($world:ident, $table:ident => $what:expr) => {
        each_table!(
            $world, $table => $what;
            experiments, segments, preview_users, settings, accounts, deeds, users, aliases, visits, enrolled,
            repeated, enrolled_groups, excluded, excluded_groups, stratification_factors, strata, metrics, logs,
            flags
        )
    };
    ($world:ident, $table:ident => $what:expr; $($name:ident),+) => {
        $({
            let $table = &mut $world.$name;
            $what;
        })+
    };
}

impl World {
    pub(crate) fn new(dialect: Dialect) -> Self {
        Self {
            dialect,
            experiments: Table::new("experiment"),
            segments: Table::new("segment"),
            preview_users: Table::new("preview_user"),
            settings: Table::new("setting"),
            accounts: Table::new("account"),
            deeds: Table::new("deed"),
            users: Table::new("user"),
            aliases: Table::new("alias"),
            visits: Table::new("visit"),
            enrolled: Table::new("enrolled"),
            repeated: Table::new("repeated"),
            enrolled_groups: Table::new("enrolled_group"),
            excluded: Table::new("excluded"),
            excluded_groups: Table::new("excluded_group"),
            stratification_factors: Table::new("stratification_factor"),
            strata: Table::new("stratum"),
            metrics: Table::new("metric"),
            logs: Table::new("log"),
            flags: Table::new("flag"),
        }
    }

    /// The experiments in the order of their creation.
    pub(crate) fn experiments_in_order(&self) -> Vec<&Experiment> {
        let mut all: Vec<&Experiment> = self.experiments.values().collect();
        all.sort_by_key(|experiment| experiment.sequence);
        all
    }

    pub(crate) fn next_sequence(&self) -> u64 {
        self.experiments.values().map(|e| e.sequence + 1).max().unwrap_or(0)
    }

    pub(crate) fn segment(&self, id: &str) -> Option<&Segment> {
        self.segments.get(&key(&[id]))
    }

    /// The segments in the order of their creation.
    pub(crate) fn segments_in_order(&self) -> Vec<&Segment> {
        let mut all: Vec<&Segment> = self.segments.values().collect();
        all.sort_by_key(|segment| segment.sequence);
        all
    }

    pub(crate) fn next_segment(&self) -> u64 {
        self.segments.values().map(|segment| segment.sequence + 1).max().unwrap_or(0)
    }

    /// The flags in the order of their creation.
    pub(crate) fn flags_in_order(&self) -> Vec<&Flag> {
        let mut all: Vec<&Flag> = self.flags.values().collect();
        all.sort_by_key(|flag| flag.sequence);
        all
    }

    /// Whether a student is a preview user.
    pub(crate) fn is_preview_user(&self, id: &str) -> bool {
        self.preview_users.contains(&key(&[id]))
    }

    /// The student with this id or alias.
    pub(crate) fn user(&self, id: &str) -> Option<&User> {
        let id = self.aliases.get(id).map_or(id, String::as_str);
        self.users.get(id)
    }

    /// A student's enrolment at any point of an experiment.
    pub(crate) fn enrollment(&self, experiment: &str, user: &str) -> Option<&UserEnrollment> {
        self.enrolled.under(&[experiment, user]).map(|(_, row)| row).next()
    }

    /// Deletes all visits within subjects at an experiment's point.
    pub(crate) fn forget_visits(&mut self, experiment: &str, point: &str) {
        let visits = self.repeated.under(&[experiment]).map(|(at, _)| at.to_owned());
        let there: Vec<String> = visits.filter(|at| parts(at).get(2).is_some_and(|p| p == point)).collect();
        for at in there {
            self.repeated.remove(&at);
        }
    }

    pub(crate) fn enrollment_at(
        &self,
        experiment: &str,
        user: &str,
        partition: &str,
    ) -> Option<&UserEnrollment> {
        self.enrolled.get(&key(&[experiment, user, partition]))
    }

    pub(crate) fn group_enrollment(&self, experiment: &str, group: Option<&str>) -> Option<&GroupEnrollment> {
        self.enrolled_groups.get(&key(&[experiment, group?]))
    }

    pub(crate) fn is_excluded(&self, experiment: &str, user: &str) -> bool {
        self.excluded.contains(&key(&[experiment, user]))
    }

    pub(crate) fn is_group_excluded(&self, experiment: &str, group: Option<&str>) -> bool {
        group.is_some_and(|group| self.excluded_groups.contains(&key(&[experiment, group])))
    }

    pub(crate) fn exclude(&mut self, experiment: &str, user: &str, why: Exclusion) {
        self.excluded.insert_first(key(&[experiment, user]), why);
    }

    pub(crate) fn exclude_group(&mut self, experiment: &str, group: &str, why: Exclusion) {
        self.excluded_groups.insert_first(key(&[experiment, group]), why);
    }

    /// Restores a row from disk. Returns whether the table exists.
    pub(crate) fn restore(&mut self, table: &str, key: String, row: &str) -> Result<bool, serde_json::Error> {
        each_table!(self, one => if table == one.name() {
            one.restore(key, row)?;
            return Ok(true);
        });
        Ok(false)
    }

    /// All changed rows.
    pub(crate) fn changes(&mut self) -> Result<Vec<Change>, serde_json::Error> {
        let mut all = Vec::new();
        each_table!(self, one => for change in one.changes() {
            all.push(change?);
        });
        Ok(all)
    }

    /// Keeps the changes.
    pub(crate) fn keep_changes(&mut self) {
        each_table!(self, one => one.keep_changes());
    }

    /// Reverts the changes.
    pub(crate) fn undo_changes(&mut self) {
        each_table!(self, one => one.undo_changes());
    }
}
