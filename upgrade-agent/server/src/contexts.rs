//! The contexts of the server: the vocabularies of applications.

use std::collections::BTreeMap;

/// The contexts (applications) that a server knows, by name.
///
/// ```
/// use upgrade_simulator::{Context, Contexts, EmbeddedServer};
///
/// let shop = Context { sites: vec!["cart".into()], targets: vec!["button".into()], ..Context::default() };
/// let contexts: Contexts = [("shop".to_owned(), shop)].into_iter().collect();
/// assert_eq!(contexts.names().collect::<Vec<_>>(), ["shop"]);
/// assert_eq!(Contexts::default().names().collect::<Vec<_>>(), ["assign-prog", "mathstream"]);
/// let server = EmbeddedServer::builder().contexts(contexts);
/// ```
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Contexts(BTreeMap<String, Context>);

/// The vocabulary of an application. It does not define which target belongs to which site.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Context {
    /// The codes of conditions that the application supports (`CONDITIONS`).
    pub conditions: Vec<String>,
    /// The kinds of groups that it reports for students (`GROUP_TYPES`).
    pub group_types: Vec<String>,
    /// The sites of decision points (`EXP_POINTS`).
    pub sites: Vec<String>,
    /// The targets of decision points (`EXP_IDS`).
    pub targets: Vec<String>,
}

impl Contexts {
    /// The context of exactly this name (names are case-sensitive).
    pub fn get(&self, name: &str) -> Option<&Context> {
        self.0.get(name)
    }

    /// The names in order.
    pub fn names(&self) -> impl Iterator<Item = &str> {
        self.0.keys().map(String::as_str)
    }

    /// The contexts with their names, in order.
    pub fn iter(&self) -> impl Iterator<Item = (&str, &Context)> {
        self.0.iter().map(|(name, context)| (name.as_str(), context))
    }
}

impl FromIterator<(String, Context)> for Contexts {
    fn from_iter<I: IntoIterator<Item = (String, Context)>>(all: I) -> Self {
        Self(all.into_iter().collect())
    }
}

/// `assign-prog` and `mathstream`.
impl Default for Contexts {
    fn default() -> Self {
        let assign_prog = context(
            &["control", "variant"],
            &["schoolId", "classId", "instructorId"],
            &["SelectSection", "workspace"],
            &["absolute_value_plot_equality", "analyzing_step_functions"],
        );
        let mathstream = context(
            &["question-hint-default", "question-hint-tutorbot"],
            &["classId"],
            &["lesson-stream"],
            &["question-hint"],
        );
        [("assign-prog".to_owned(), assign_prog), ("mathstream".to_owned(), mathstream)].into_iter().collect()
    }
}

fn context(conditions: &[&str], groups: &[&str], sites: &[&str], targets: &[&str]) -> Context {
    let owned = |words: &[&str]| words.iter().map(|&word| word.to_owned()).collect();
    Context {
        conditions: owned(conditions),
        group_types: owned(groups),
        sites: owned(sites),
        targets: owned(targets),
    }
}
