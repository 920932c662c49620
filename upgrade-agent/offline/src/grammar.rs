//! The grammar, top-down: `message = (courtesy)* clause (joiner clause)*`, and a clause is one of
//! [`FORMS`].
//!
//! Each form is a production with its slots and one example. The classes that the productions share are in
//! [`classes`], the notation in [`crate::notation`]. The help and the table of the guide are made of the
//! forms.

mod classes;
mod forms;

use std::collections::HashMap;
use std::sync::LazyLock;

use crate::matcher::Lexicon;
use crate::notation::{Node, production};
use crate::{slots, terms, values};

pub(crate) use forms::FORMS;

/// A form of a clause.
#[derive(Debug)]
pub(crate) struct Form {
    /// What the clause does.
    pub(crate) act: &'static str,
    pub(crate) pattern: &'static str,
    /// A clause of this form.
    pub(crate) example: &'static str,
    pub(crate) group: Group,
    /// The parameter whose question this form answers; empty if it may stand anywhere.
    pub(crate) asked: &'static str,
}

impl Form {
    /// Whether the form is an answer, which only begins a message.
    pub(crate) fn is_answer(&self) -> bool {
        matches!(
            self.act,
            "yes" | "no" | "insist" | "reference" | "count" | "weights" | "mode" | "and" | "answer"
        ) || self.pattern.starts_with('<')
    }

    /// Whether a clause of this form may begin here.
    pub(crate) fn may_stand(&self, is_first: bool, asked: &str) -> bool {
        (is_first || !self.is_answer()) && (self.asked.is_empty() || self.asked == asked)
    }

    /// Whether any text is an answer of this form.
    pub(crate) fn takes_any_text(&self) -> bool {
        let slots = ["<name>", "<description", "<user"];
        !self.asked.is_empty() && slots.iter().any(|slot| self.pattern.contains(slot))
    }
}

/// A heading of the help.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Group {
    Talk,
    Questions,
    Orders,
    Corrections,
    Students,
    Elsewhere,
}

impl Group {
    pub(crate) const ALL: [Group; 6] =
        [Group::Questions, Group::Orders, Group::Students, Group::Corrections, Group::Talk, Group::Elsewhere];

    pub(crate) fn title(self) -> &'static str {
        match self {
            Group::Talk => "Talk",
            Group::Questions => "Questions",
            Group::Orders => "Experiments",
            Group::Corrections => "Answers and corrections",
            Group::Students => "Students and simulations",
            Group::Elsewhere => "What UpGrade or the agent cannot do, which the reply says",
        }
    }
}

/// The productions as trees.
pub(crate) struct Grammar {
    pub(crate) filler: Node,
    pub(crate) forms: Vec<(&'static Form, Node)>,
    pub(crate) lexicon: Lexicon,
}

/// The grammar, read once.
pub(crate) fn grammar() -> &'static Grammar {
    static GRAMMAR: LazyLock<Grammar> = LazyLock::new(|| {
        let filler = production(classes::FILLER).unwrap_or(Node::Word("please"));
        let read = classes::CLASSES.iter().filter_map(|(name, text)| Some((*name, production(text)?)));
        let classes: HashMap<&'static str, Node> = read.collect();
        let forms: Vec<(&'static Form, Node)> =
            FORMS.iter().filter_map(|form| Some((form, production(form.pattern)?))).collect();
        let nodes: Vec<&Node> = forms.iter().map(|(_, node)| node).chain([&filler]).collect();
        let more = slots::words().chain(values::statuses()).chain(terms::words());
        let lexicon = Lexicon::new(classes, &nodes, more);
        Grammar { filler, forms, lexicon }
    });
    &GRAMMAR
}
