//! An LLM node runs its own code after the model has answered, and that code may edit the graph: add a node
//! for a yes or a no, skip the planners while the plan holds, remove the edge to the branch not taken. The
//! next pass starts with the compiled graph. The models are scripts; `--model anthropic:claude-...` names
//! another one, whose answers decide.

use std::sync::Arc;

use agentgraph::prelude::*;
use agentgraph_llm::prelude::*;
use agentgraph_llm::{Answer, CheckedAnswer, Database, JsonCheck, LlmNode, Refusal, Template};
use serde_json::json;

/// Returns the model that is named, or one that gives the same answer to every request.
fn says(text: &'static str) -> agentgraph_llm::Result<Arc<dyn ChatModel>> {
    or_named(ScriptedModel::from_fn(move |_| Reply::text(text)))
}

fn is_script() -> agentgraph_llm::Result<bool> {
    Ok(example_model::from_args()?.is_none())
}

fn or_named(script: ScriptedModel) -> agentgraph_llm::Result<Arc<dyn ChatModel>> {
    Ok(example_model::from_args()?.unwrap_or_else(|| Arc::new(script)))
}

/// Returns a node whose answer must be `{"<key>": ..}`, without other keys.
fn asks_for(key: &str, model: Arc<dyn ChatModel>, prompt: Template) -> LlmNode {
    LlmNode::new(model, prompt).json(JsonCheck::object().required([key]).length(1))
}

fn is_yes(after: &CheckedAnswer<Answer>, key: &str) -> Result<bool, Refusal> {
    let json = after.json()?;
    let word = json[key].as_str().ok_or(Refusal::again("Answer \"yes\" or \"no\"."))?;
    Ok(word.to_lowercase().contains("yes"))
}

/// Adds the next node once the model has answered: the answer decides which one.
async fn add_a_branch(answer: &'static str) -> Result<Vec<String>> {
    let db = Database::new(json!({
        "goal": "the harbour",
        "prompts": {"yes": "Say how to enter $db.goal$.", "no": "Say what keeps us from $db.goal$."},
    }));
    let question = Template::parse("Can we reach $db.goal$ today?")?;
    let decide = asks_for("answer", says(answer)?, question).db(db.clone()).after(move |after| {
        let branch = if is_yes(after, "answer")? { "yes" } else { "no" };
        let prompt = after.db(|db| db["prompts"][branch].as_str().unwrap_or_default().to_owned());
        let edits = after.edits();
        edits.add_fn(
            branch,
            LlmNode::new(says("Because of the tide.")?, Template::parse(&prompt)?).db(db.clone()),
        )?;
        edits.add_edge(after.node(), branch)?;
        edits.add_edge(branch, "report")?;
        Ok(())
    });
    let graph = DependencyGraph::<Answer>::new()
        .node("decide", decide)
        .node("report", LlmNode::new(says("Noted.")?, "Sum it up."))
        .edge("decide", "report")
        .compile()?;

    let outputs = graph.invoke(()).finish().await?;
    Ok(outputs.iter().map(|(name, answer)| format!("{name}: {}", answer.prompt)).collect())
}

/// Skips the planners while the plan holds. Their last answers are used again.
async fn skip_the_planners() -> Result<()> {
    let planner = ScriptedModel::from_fn(|_| Reply::text("Sail at dawn."));
    let reflections = ScriptedModel::new([
        r#"{"update_plan": "yes"}"#,
        r#"{"update_plan": "no"}"#,
        r#"{"update_plan": "Yes."}"#,
    ]);
    let reflect =
        asks_for("update_plan", or_named(reflections)?, "Must the plan change?".into()).after(|after| {
            if !is_yes(after, "update_plan")? {
                after.edits().skip(["goals", "plan"])?;
            }
            Ok(())
        });
    let graph = DependencyGraph::<Answer>::new()
        .node("reflect", reflect)
        .node("goals", LlmNode::new(or_named(planner.clone())?, "Which goals?"))
        .node("plan", LlmNode::new(or_named(planner.clone())?, "Which plan?"))
        .node("act", LlmNode::new(says("Hoisting the sail.")?, "Act."))
        .edge("reflect", "goals")
        .edge("goals", "plan")
        .edge("plan", "act")
        .compile()?;

    let mut passes = graph.passes();
    for asked_so_far in [2, 2, 4] {
        let outputs = passes.invoke(()).await?.into_finished()?;
        if !is_script()? {
            continue;
        }
        assert_eq!(planner.requests().len(), asked_so_far);
        assert_eq!(
            (outputs["plan"].text.as_str(), outputs["act"].text.as_str()),
            ("Sail at dawn.", "Hoisting the sail.")
        );
    }
    Ok(())
}

/// Removes the edge to the branch not taken: the nodes that are only behind it do not run.
async fn cut_an_edge(answer: &'static str) -> Result<Vec<String>> {
    let decide = asks_for("answer", says(answer)?, "Is it safe?".into()).after(|after| {
        let not_taken = if is_yes(after, "answer")? { "wait" } else { "sail" };
        Ok(after.edits().remove_edge(after.node(), not_taken)?)
    });
    let graph = DependencyGraph::<Answer>::new()
        .node("decide", decide)
        .node("sail", LlmNode::new(says("We sail.")?, "How?"))
        .node("wait", LlmNode::new(says("We wait.")?, "How long?"))
        .node("tea", LlmNode::new(says("Tea.")?, "What meanwhile?"))
        .edge("decide", "sail")
        .edge("decide", "wait")
        .edge("wait", "tea")
        .compile()?;

    let outputs = graph.invoke(()).finish().await?;
    for node in outputs.not_run() {
        println!("  not run: {node}");
    }
    Ok(outputs.names().map(str::to_owned).collect())
}

#[tokio::main(flavor = "current_thread")]
async fn main() -> Result<()> {
    let yes = add_a_branch(r#"{"answer": "Yes, by noon"}"#).await?;
    println!("{yes:#?}");
    let no = add_a_branch("I doubt it [sic]:\n```json\n{\"answer\": \"no\"}\n```").await?;
    skip_the_planners().await?;
    let sails = cut_an_edge(r#"{"answer": "yes"}"#).await?;
    let waits = cut_an_edge(r#"{"answer": "no"}"#).await?;

    if is_script()? {
        assert_eq!(yes[1], "yes: Say how to enter the harbour.");
        assert_eq!(
            no,
            [
                "decide: Can we reach the harbour today?",
                "no: Say what keeps us from the harbour.",
                "report: Sum it up."
            ]
        );
        assert_eq!(sails, ["decide", "sail"]);
        assert_eq!(waits, ["decide", "wait", "tea"]);
    }
    Ok(())
}
