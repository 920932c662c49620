//! A list of tasks that the model keeps for itself.

use std::sync::Arc;

use async_trait::async_trait;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::{Hooks, Jump, Middleware, ModelRequest, NextModel, Turn};
use crate::error::Result;
use crate::model::ChatStream;
use crate::tool::{FnTool, Tool, ToolError};

const TOOL: &str = "write_todos";

const DESCRIPTION: &str = "\
Replaces your list of tasks. Use it for work of three or more steps: write all steps down first, keep one of them in \
progress, and mark each as completed as soon as it is done. Do not use it for simple requests.";

const PROMPT: &str = "\
You have the tool `write_todos` to plan work of several steps and to show the user how far it is. Call it once at a \
time.";

/// Gives the model a tool to write down its tasks. The list is stored with the thread.
///
/// ```
/// use agentgraph_llm::middleware::{Middleware, TodoList, TodoStatus, Turn};
/// use agentgraph_llm::{Message, Role, ToolUse};
/// use serde_json::json;
///
/// # #[tokio::main(flavor = "current_thread")]
/// # async fn main() -> agentgraph_llm::Result<()> {
/// let list = TodoList::new();
/// let input = json!({"todos": [{"content": "Buy milk", "status": "in_progress"}]});
/// let call = ToolUse::new("call-1", "write_todos", input);
/// let mut turn = Turn::detached(list.name(), [Message::new(Role::Assistant, [call])]);
/// list.after_model(&mut turn).await?;
/// assert_eq!(TodoList::todos(&mut turn)?[0].status, TodoStatus::InProgress);
/// # Ok(())
/// # }
/// ```
#[derive(Clone, Debug)]
pub struct TodoList {
    prompt: String,
}

/// One task.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Todo {
    /// What is to be done.
    pub content: String,
    /// How far it is.
    pub status: TodoStatus,
}

/// How far a task is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum TodoStatus {
    /// Not begun.
    Pending,
    /// Begun.
    InProgress,
    /// Done.
    Completed,
}

#[derive(Deserialize, JsonSchema)]
struct Todos {
    /// All tasks, in order.
    todos: Vec<Todo>,
}

impl TodoList {
    /// An empty list.
    pub fn new() -> Self {
        TodoList { prompt: PROMPT.to_owned() }
    }

    /// Sets the text that is added to the system prompt.
    pub fn prompt(mut self, prompt: impl Into<String>) -> Self {
        self.prompt = prompt.into();
        self
    }

    /// The tasks, in a turn of this middleware.
    ///
    /// # Errors
    /// `E_LLM_MIDDLEWARE` if the stored value is no list of tasks.
    pub fn todos(turn: &mut Turn) -> Result<Vec<Todo>> {
        Ok(turn.slot().get()?.unwrap_or_default())
    }
}

impl Default for TodoList {
    fn default() -> Self {
        TodoList::new()
    }
}

#[async_trait]
impl Middleware for TodoList {
    fn name(&self) -> &str {
        "todo_list"
    }

    fn hooks(&self) -> Hooks {
        Hooks::NONE.after_model()
    }

    fn tools(&self) -> Vec<Arc<dyn Tool>> {
        let write = async |list: Todos| {
            let done = list.todos.iter().filter(|todo| todo.status == TodoStatus::Completed).count();
            Ok::<_, ToolError>(format!("The list has {} tasks; {done} are completed.", list.todos.len()))
        };
        vec![Arc::new(FnTool::new(TOOL, DESCRIPTION, write))]
    }

    async fn after_model(&self, turn: &mut Turn) -> Result<Jump> {
        let written = turn.open_calls().into_iter().rev().filter(|call| call.name == TOOL);
        // Arguments that do not fit are answered by the tool.
        let list = written.filter_map(|call| call.input.json()?.parse::<Todos>().ok()).next();
        if let Some(list) = list {
            turn.slot().set(&list.todos)?;
        }
        Ok(Jump::Next)
    }

    async fn wrap_model(&self, mut request: ModelRequest, next: NextModel<'_>) -> Result<ChatStream> {
        let system = request.request.system.take().map(|system| format!("{system}\n\n{}", self.prompt));
        request.request.system = Some(system.unwrap_or_else(|| self.prompt.clone()));
        next.run(request).await
    }
}
