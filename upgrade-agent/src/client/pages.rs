//! Experiments page by page, searched and sorted by the server.

use futures_util::Stream;
use futures_util::stream;
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};

use super::call::Call;
use super::error::ClientError;
use super::experiments::unexpected_answer;
use super::model::Experiment;
use super::session::UpgradeClient;
use super::wire;
use super::words::{SearchKey, SortDirection, SortKey};

const CALL: &str = "POST /experiments/paginated";

/// A query for experiments: a search, an order, and a page.
///
/// ```
/// use upgrade_agent::client::{PageQuery, SearchKey, SortDirection, SortKey};
///
/// let query = PageQuery::new(20).search(SearchKey::Tag, "algebra").sort(SortKey::Name, SortDirection::Ascending);
/// assert_eq!((query.skip, query.take), (0, 20));
/// ```
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct PageQuery {
    /// The number of experiments to skip.
    pub skip: u64,
    /// The page size, at least 1.
    pub take: u64,
    /// The field to search and the text to find. A state must match as a whole.
    pub search: Option<(SearchKey, String)>,
    /// The order within the page. The server chooses the experiments of the page independently of it.
    pub sort: Option<(SortKey, SortDirection)>,
}

impl PageQuery {
    /// The first page of this size, of all experiments.
    pub fn new(take: u64) -> Self {
        Self { skip: 0, take, search: None, sort: None }
    }

    /// Only experiments with this text.
    pub fn search(mut self, key: SearchKey, text: impl Into<String>) -> Self {
        self.search = Some((key, text.into()));
        self
    }

    /// Sorts the page.
    pub fn sort(mut self, key: SortKey, direction: SortDirection) -> Self {
        self.sort = Some((key, direction));
        self
    }

    /// Skips experiments.
    pub fn skip(mut self, skip: u64) -> Self {
        self.skip = skip;
        self
    }

    fn body(&self) -> Value {
        let mut body = json!({ "skip": self.skip, "take": self.take.max(1) });
        if let Some((key, text)) = &self.search {
            body["searchParams"] = json!({ "key": key, "string": text });
        }
        if let Some((key, direction)) = &self.sort {
            body["sortParams"] = json!({ "key": key, "sortAs": direction });
        }
        body
    }
}

/// A page of experiments.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Page {
    /// The number of experiments on all pages.
    pub total: u64,
    /// The number of experiments before this page.
    pub skip: u64,
    /// The experiments, which the server returns without their conditions.
    pub experiments: Vec<Experiment>,
}

impl UpgradeClient {
    /// One page of experiments.
    ///
    /// # Errors
    ///
    /// Those of any call.
    pub async fn page(&self, query: &PageQuery) -> Result<Page, ClientError> {
        self.page_of(query).await.map(|(page, _)| page)
    }

    /// All pages in order, from the first one of the query, until none is left or a call fails. An experiment
    /// that is created or deleted meanwhile may be missing or appear twice.
    ///
    /// ```
    /// # tokio::runtime::Runtime::new().unwrap().block_on(async {
    /// use std::pin::pin;
    ///
    /// use futures_util::TryStreamExt;
    /// use upgrade_agent::client::{NewExperiment, PageQuery, UpgradeClient};
    /// use upgrade_agent::server::EmbeddedServer;
    ///
    /// let server = EmbeddedServer::builder().in_memory().start().await?;
    /// let client = UpgradeClient::builder(server.url()).build()?;
    /// for name in ["one", "two", "three"] {
    ///     client.create(&NewExperiment::new(name, "assign-prog")).await?;
    /// }
    /// let mut pages = pin!(client.pages(PageQuery::new(2)));
    /// let mut sizes = Vec::new();
    /// while let Some(page) = pages.try_next().await? {
    ///     sizes.push(page.experiments.len());
    /// }
    /// assert_eq!(sizes, [2, 1]);
    /// # server.shutdown().await;
    /// # Ok::<(), Box<dyn std::error::Error>>(()) }).unwrap();
    /// ```
    pub fn pages(&self, query: PageQuery) -> impl Stream<Item = Result<Page, ClientError>> + Send + 'static {
        let client = self.clone();
        stream::try_unfold(Some(query), move |next| {
            let client = client.clone();
            async move {
                let Some(query) = next else { return Ok(None) };
                let (page, came) = client.page_of(&query).await?;
                if came == 0 {
                    return Ok(None);
                }
                let skip = query.skip.saturating_add(came);
                let next = (skip < page.total).then_some(PageQuery { skip, ..query });
                Ok(Some((page, next)))
            }
        })
    }

    /// A page, and the number of its entries including unreadable ones.
    async fn page_of(&self, query: &PageQuery) -> Result<(Page, u64), ClientError> {
        let call = Call::post(&["experiments", "paginated"], query.body()).repeatable();
        let answer = self.call(call).await?;
        let page = wire::page(&answer, query.skip).ok_or_else(|| unexpected_answer(CALL))?;
        let came = answer["nodes"].as_array().map_or(0, Vec::len);
        Ok((page, u64::try_from(came).unwrap_or(u64::MAX)))
    }
}
