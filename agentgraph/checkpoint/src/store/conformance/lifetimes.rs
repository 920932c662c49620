//! Clauses: items end when their time is over, and a read begins it anew.

use std::time::Duration;

use super::{Clause, Trial, Tried, keys, listed_clauses, same, space};
use crate::services::Services;
use crate::store::{Change, Filter, Lifetime, Namespace, Store, StoreExt};

pub(super) const CLAUSES: &[Clause] = listed_clauses![
    "an item whose time has ended is not read, found or listed": ended,
    "a read with `refresh` begins the time of an item anew": refreshed,
    "a search with `refresh` begins the times of its results anew": searched,
    "a read without `refresh` leaves the time of an item": left,
    "a sweep removes the items whose time has ended, and only those": swept,
    "a later put replaces the time of an item": replaced,
    "a copied item keeps its time of creation and its end": copied,
];

const SECOND: Duration = Duration::from_secs(1);

async fn ended(Trial { store, clock }: Trial) -> Tried {
    let at = space(["a"])?;
    store.put(&at, "k", 1).lifetime(SECOND * 2).await?;
    clock.advance(SECOND * 2 - Duration::from_micros(1));
    let item = store.get(&at, "k").refresh(false).await?.ok_or("it ended too early")?;
    same("the end", &item.expires_at, &Some(clock.now() + Duration::from_micros(1)))?;
    clock.advance(Duration::from_micros(1));
    same("an ended item", &store.get(&at, "k").await?, &None)?;
    same("what is found", &keys(&store.search(&at).await?), &vec![])?;
    let found = store.search(&at).filter(Filter::eq("", 1)).await?;
    same("what a filter finds", &keys(&found), &vec![])?;
    same("what a text finds", &keys(&store.search(&at).text("a").await?), &vec![])?;
    same("what is listed", &store.list_namespaces().await?, &Vec::<Namespace>::new())?;
    store.put(&at, "k", 2).await?;
    let item = store.get(&at, "k").await?.ok_or("it is absent")?;
    same("the time of creation after the end", &item.created_at, &clock.now())
}

async fn refreshed(Trial { store, clock }: Trial) -> Tried {
    let at = space(["a"])?;
    store.put(&at, "k", 1).lifetime(SECOND * 2).await?;
    let before = store.get(&at, "k").refresh(false).await?.ok_or("it is absent")?;
    for _ in 0..3 {
        clock.advance(SECOND);
        let item = store.get(&at, "k").refresh(true).await?.ok_or("it ended")?;
        same("the new end", &item.expires_at, &Some(clock.now() + SECOND * 2))?;
        same("the rest of the item", &(item.version, item.updated_at), &(before.version, before.updated_at))?;
    }
    clock.advance(SECOND * 2);
    same("an ended item", &store.get(&at, "k").refresh(true).await?, &None)
}

async fn searched(Trial { store, clock }: Trial) -> Tried {
    let at = space(["a"])?;
    for key in ["k", "l"] {
        store.put(&at, key, "a").lifetime(SECOND * 2).await?;
    }
    clock.advance(SECOND);
    // The limit leaves `k` out, and its time goes on.
    let found = store.search(&at).limit(1).refresh(true).await?;
    same("the end of `l`", &found[0].item.expires_at, &Some(clock.now() + SECOND * 2))?;
    clock.advance(SECOND);
    let found = store.search(&at).filter(Filter::eq("", "a")).refresh(true).await?;
    same("what is left", &keys(&found), &vec!["l"])?;
    clock.advance(SECOND);
    let found = store.search(&at).text("a").refresh(true).await?;
    same("the end of `l`", &found[0].item.expires_at, &Some(clock.now() + SECOND * 2))
}

async fn left(Trial { store, clock }: Trial) -> Tried {
    let at = space(["a"])?;
    store.put(&at, "k", 1).lifetime(SECOND * 2).await?;
    clock.advance(SECOND);
    store.get(&at, "k").refresh(false).await?.ok_or("it ended too early")?;
    store.search(&at).refresh(false).await?;
    store.search(&at).filter(Filter::eq("", 1)).refresh(false).await?;
    clock.advance(SECOND);
    same("an ended item", &store.get(&at, "k").await?, &None)
}

async fn swept(Trial { store, clock }: Trial) -> Tried {
    let at = space(["a"])?;
    for n in 0..300 {
        store.put(&at, n.to_string(), "a").unindexed().lifetime(SECOND).await?;
    }
    store.put(&at, "later", 1).lifetime(SECOND * 2).await?;
    store.put(&at, "forever", 1).forever().await?;
    same("the number before the end", &store.sweep().await?, &0)?;
    clock.advance(SECOND);
    same("the number after it", &store.sweep().await?, &300)?;
    same("what stays", &keys(&store.search(&at).await?), &vec!["forever", "later"])?;
    same("the number of a second sweep", &store.sweep().await?, &0)
}

async fn replaced(Trial { store, clock }: Trial) -> Tried {
    let at = space(["a"])?;
    store.put(&at, "k", 1).lifetime(SECOND).await?;
    store.put(&at, "k", 2).forever().await?;
    store.put(&at, "l", 1).forever().await?;
    store.put(&at, "l", 2).lifetime(SECOND).await?;
    clock.advance(SECOND);
    same("what stays", &keys(&store.search(&at).await?), &vec!["k"])
}

async fn copied(Trial { store, clock }: Trial) -> Tried {
    let (from, to) = (space(["a"])?, space(["b"])?);
    store.put(&from, "k", 1).lifetime(SECOND * 5).await?;
    clock.advance(SECOND);
    let item = store.get(&from, "k").refresh(false).await?.ok_or("it is absent")?;
    let (Some(lifetime), Some(end)) = (item.lifetime, item.expires_at) else {
        return Err("an item with a time has none".into());
    };
    let copy = Change::put(&to, "k", 1).lifetime(Lifetime::Until(lifetime, end)).created_at(item.created_at);
    store.change(vec![copy]).await?;
    let copy = store.get(&to, "k").refresh(false).await?.ok_or("the copy is absent")?;
    let times = |item: &crate::store::Item| (item.created_at, item.expires_at, item.lifetime);
    same("the times of the copy", &times(&copy), &times(&item))?;
    same("the time of its value", &copy.updated_at, &clock.now())
}
