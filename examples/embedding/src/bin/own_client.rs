//! The UpGrade client without the agent: an administrator creates and schedules an experiment, and an
//! application reports a student's groups and aliases.

use std::collections::BTreeMap;
use std::time::Duration;

use futures_util::TryStreamExt;
use upgrade_agent::client::{
    ClientError, Experiment, ExperimentState, NewExperiment, NewUser, PageQuery, SearchKey, SortDirection,
    SortKey, UpgradeClient,
};
use upgrade_agent::server::EmbeddedServer;

#[tokio::main]
async fn main() -> Result<(), Box<dyn std::error::Error>> {
    let server = EmbeddedServer::builder().in_memory().start().await?;
    let client = UpgradeClient::builder(server.url())
        .connect_timeout(Duration::from_secs(5))
        .deadline(Duration::from_secs(30))
        .retries(3)
        .retry_pause(Duration::from_millis(100))
        .build()?;
    println!("an UpGrade server with the {:?} dialect", client.dialect().await?);

    let hints = create(&client).await?;
    list(&client).await?;
    report(&client).await?;

    let scheduled = client.schedule(&hints.id, "2099-01-31T08:00:00.000Z").await?;
    assert_eq!(scheduled.state, ExperimentState::Scheduled);
    println!("{} starts on {}", scheduled.name, scheduled.start_on.unwrap_or_default());
    server.shutdown().await;
    Ok(())
}

/// Creates an experiment that only preview users see.
async fn create(client: &UpgradeClient) -> Result<Experiment, ClientError> {
    let hints = NewExperiment::new("Hints", "assign-prog")
        .point("SelectSection", "absolute_value_plot_equality")
        .condition("control", 50.0)
        .condition("variant", 50.0);
    let hints = client.create(&hints).await?;
    let conditions = client.conditions(&hints.id).await?;
    println!("its second condition is {}", conditions[1].code);
    client.set_state(&hints.id, &ExperimentState::Preview).await
}

/// Lists experiments page by page. The server searches all of them, and sorts within a page.
async fn list(client: &UpgradeClient) -> Result<(), ClientError> {
    client.create(&NewExperiment::new("More hints", "assign-prog").per_group("classId")).await?;
    let by_name = PageQuery::new(10).sort(SortKey::Name, SortDirection::Ascending);
    let pages: Vec<_> = client.pages(by_name).try_collect().await?;
    let names: Vec<_> =
        pages.iter().flat_map(|page| &page.experiments).map(|found| found.name.as_str()).collect();
    assert_eq!(names, ["Hints", "More hints"]);

    let more = client.page(&PageQuery::new(10).search(SearchKey::Name, "more")).await?;
    println!("{} experiments, {} with \"more\" in its name", names.len(), more.experiments.len());
    Ok(())
}

/// Makes a student known, as a student's application does.
async fn report(client: &UpgradeClient) -> Result<(), ClientError> {
    client.init_user(&NewUser::new("ada").in_group("classId", "c1")).await?;
    let classes = BTreeMap::from([("classId".to_owned(), vec!["c1".to_owned(), "c2".to_owned()])]);
    let ada = client.set_groups("ada", &classes).await?;
    assert_eq!(ada.groups, classes);
    assert_eq!(client.set_aliases("ada", &["ada@school"]).await?, ["ada@school"]);
    Ok(())
}
