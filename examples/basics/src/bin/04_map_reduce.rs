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

#[tokio::main(flavor = "current_thread")]
async fn main() -> Result<()> {
    let graph = StateGraph::new()
        .node("count", count)
        .node("add", add)
        .route(START, |book: &Book| book.pages.iter().cloned().map(Pages::Count).collect::<Vec<_>>())
        .edge("count", "add") // all dispatches run in one superstep, so this runs once
        .compile()?;

    let pages = ["a graph is", "a set of", "nodes and the edges between them"];
    let book = graph.invoke(Book::update().pages(pages)).await?.into_finished()?;
    println!("{:?} = {}", book.words, book.total);
    assert_eq!(book.words, [3, 3, 6]);
    assert_eq!(book.total, 12);
    Ok(())
}
