//! [`Prompt`]: the instructions to the model.

use crate::task::{Attachment, Task, hash};
use crate::tools::{Services, about_file};

const A: &str = "You answer questions of a benchmark that compares answers exactly. Work step by step, and use the tools for \
everything that you cannot be sure of: arithmetic, facts, files, pages, recordings. Several tools may be called at once. If a tool fails, \
try another way. Never make up what a tool did not say.

End with a line of this form, and nothing after it:
FINAL ANSWER: [the answer]

The answer is a number, as few words as possible, or a list of these with commas between them.
- A number has digits only, without thousands separators and without a unit such as $ or %, unless the question asks for one.
- A text has no article and no abbreviation, unless the question asks for one.
- A list follows these rules for each element, in the order that the question asks for.";

const B: &str = "You answer one question of a benchmark that compares answers exactly.

First write a plan: which facts are missing, and which tool finds each. Then carry it out. Then check the result against the \
question once more: its unit, its form, its order. Facts come from tools, not from memory.

The last line is `FINAL ANSWER: ` and the answer alone: a number in digits without separators and units, or as few words as possible, or such \
elements with commas between them.";

/// Where code finds files.
const IN_ITS_FOLDER: &str = "Its folder has the files that `list_files` shows, under the same paths and read-only; \
it can write other files there, and has no network.";

/// The instructions to the model, in one of two forms.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Prompt {
    /// Rules, and freedom how to work.
    #[default]
    A,
    /// A plan first, and a check at the end.
    B,
}

impl Prompt {
    /// The name.
    pub fn name(self) -> &'static str {
        match self {
            Prompt::A => "a",
            Prompt::B => "b",
        }
    }

    /// The name and a hash of the text, so that answers to another text are not taken for answers to this
    /// one.
    pub fn version(self) -> String {
        format!("{}-{}", self.name(), &hash(self.rules().as_bytes())[..8])
    }

    fn rules(self) -> &'static str {
        match self {
            Prompt::A => A,
            Prompt::B => B,
        }
    }

    /// The instructions for a question, with the facts of its file and of Python.
    pub(crate) fn text(self, task: &Task, services: &Services) -> String {
        let text = format!("{}\n\n{}", self.rules(), facts(&task.attachment, services));
        match &services.python {
            None => text,
            Some(python) => format!("{text}\n\n{} {IN_ITS_FOLDER}", python.introduction()),
        }
    }
}

/// The facts of the file, for the model.
pub(super) fn facts(attachment: &Attachment, services: &Services) -> String {
    match attachment {
        Attachment::None => "The question has no file.".to_owned(),
        Attachment::File { name, size, .. } => {
            format!(
                "The question has a file: `downloads/{name}` ({size} bytes). {}",
                about_file(name, services)
            )
        }
        Attachment::Missing { name, why } => format!(
            "The question has a file, `{name}`, but it could not be downloaded: {why}. Answer without it if that is \
             possible, and do not make up what is in it."
        ),
    }
}

/// Which prompt a question gets.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum PromptChoice {
    /// The first form, for all.
    #[default]
    A,
    /// The second form, for all.
    B,
    /// Half of the questions each, by their ids, to compare the two.
    AB,
}

impl PromptChoice {
    /// The prompt of a question. It depends on the id alone.
    pub fn of(self, task_id: &str) -> Prompt {
        match self {
            PromptChoice::A => Prompt::A,
            PromptChoice::B => Prompt::B,
            PromptChoice::AB => match hash(task_id.as_bytes()).bytes().last() {
                Some(b'0'..=b'7') => Prompt::A,
                _ => Prompt::B,
            },
        }
    }
}
