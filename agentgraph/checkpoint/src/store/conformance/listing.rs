//! Clauses: which namespaces a list shows.

use super::{Clause, Trial, Tried, listed_clauses, same, space};
use crate::store::{Namespace, NamespacePattern, Store, StoreExt};

pub(super) const CLAUSES: &[Clause] = listed_clauses![
    "a list shows the namespaces that have items, in order": all,
    "a list obeys its prefix and its suffix": patterns,
    "a list cuts namespaces to `max_depth` and shows each once": depth,
    "a list obeys `limit` and `offset`": pages,
];

async fn six(store: &dyn Store) -> Tried<[Namespace; 6]> {
    let spaces = [
        space(["a"])?,
        space(["a", "x", "facts"])?,
        space(["a", "y", "facts"])?,
        space(["a", "y", "tasks"])?,
        space(["ab"])?,
        space(["b", "*", "facts"])?,
    ];
    for at in [3, 0, 5, 1, 4, 2] {
        store.put(&spaces[at], "k", at).await?;
        store.put(&spaces[at], "l", at).await?;
    }
    Ok(spaces)
}

async fn all(Trial { store, .. }: Trial) -> Tried {
    let spaces = six(&store).await?;
    same("the list", &store.list_namespaces().await?, &spaces.to_vec())?;
    for key in ["k", "l"] {
        store.delete(&spaces[4], key).await?;
    }
    store.put(&Namespace::root(), "k", 1).await?;
    let mut wanted = spaces.to_vec();
    wanted.remove(4);
    wanted.insert(0, Namespace::root());
    same("the list", &store.list_namespaces().await?, &wanted)
}

async fn patterns(Trial { store, .. }: Trial) -> Tried {
    let [a, ax, ay, tasks, _, star] = six(&store).await?;
    let list = store.list_namespaces().prefix(["a"]).await?;
    same("those in [\"a\"]", &list, &vec![a, ax.clone(), ay.clone(), tasks.clone()])?;
    let list = store.list_namespaces().prefix(["*", "y"]).await?;
    same("those with `y` as the second", &list, &vec![ay.clone(), tasks])?;
    let list = store.list_namespaces().suffix(["facts"]).await?;
    same("those that end with `facts`", &list, &vec![ax.clone(), ay.clone(), star.clone()])?;
    let exact = NamespacePattern::default().exactly("*").exactly("facts");
    let list = store.list_namespaces().suffix(exact).await?;
    same("those that end with `*` and `facts`", &list, &vec![star])?;
    let list = store.list_namespaces().prefix(["a", "*", "*"]).suffix(["*", "facts"]).await?;
    same("those that do both", &list, &vec![ax, ay])
}

async fn depth(Trial { store, .. }: Trial) -> Tried {
    six(&store).await?;
    let list = store.list_namespaces().max_depth(1).await?;
    same("the first segments", &list, &vec![space(["a"])?, space(["ab"])?, space(["b"])?])?;
    let list = store.list_namespaces().max_depth(2).suffix(["facts"]).limit(2).offset(1).await?;
    same("two segments", &list, &vec![space(["a", "y"])?, space(["b", "*"])?])
}

async fn pages(Trial { store, .. }: Trial) -> Tried {
    let spaces = six(&store).await?;
    for (limit, offset) in [(2, 0), (2, 2), (2, 5), (2, 6), (0, 0)] {
        let list = store.list_namespaces().limit(limit).offset(offset).await?;
        let wanted: Vec<Namespace> = spaces.iter().skip(offset).take(limit).cloned().collect();
        same("the page", &list, &wanted)?;
    }
    Ok(())
}
