//! One task for each item: a route dispatches, and a node reads its own input. Results come in the order
//! of the dispatches.

use agentgraph::prelude::*;

#[derive(State, Clone, Debug, Default)]
struct Book {
    #[reduce(append)]
    pages: Vec<String>,
    #[reduce(append)]
    words: Vec<usize>,
    total: usize,
}

#[derive(Route)]
enum Pages {
    Count(String),
}

async fn count(Input(page): Input<String>) -> BookUpdate {
    Book::update().words([page.split_whitespace().count()])
}

async fn add(state: Snapshot<Book>) -> BookUpdate {
    Book::update().total(state.words.iter().sum())
}

fn graph() -> Result<CompiledGraph<Book>> {
    let graph = StateGraph::new()
        .node("count", count)
        .node("add", add)
        .route(START, |book: &Book| book.pages.iter().cloned().map(Pages::Count).collect::<Vec<_>>())
        .edge("count", "add"); // all dispatches run in one superstep, so this runs once
    Ok(graph.compile()?)
}

#[tokio::main(flavor = "current_thread")]
async fn main() -> Result<()> {
    let pages = ["a graph is", "a set of", "nodes and the edges between them"];
    let book = graph()?.invoke(Book::update().pages(pages)).finish().await?;
    println!("{:?} = {}", book.words, book.total);
    assert_eq!(book.words, [3, 3, 6]);
    assert_eq!(book.total, 12);
    Ok(())
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use agentgraph::testing::TestGraph;

    use super::*;

    #[tokio::test]
    async fn words_are_counted_in_every_order_and_after_every_kill() -> Result<()> {
        let test = TestGraph::of(graph()?).delay("count", Duration::from_secs(1));
        let book = Book::update().pages(["one", "two words", "three more words"]);
        let trace = test.trace(book.clone()).await;
        assert_eq!(trace.ran(), ["count", "count", "count", "add"]);
        assert_eq!((trace.state().total, trace.elapsed()), (6, Duration::from_secs(1)));
        test.every_order(book.clone()).await.assert_none();
        test.every_kill(book).await.assert_none();
        Ok(())
    }
}
