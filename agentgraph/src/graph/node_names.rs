//! [`NodeNames`]: the names of a graph's nodes.

use std::hash::{BuildHasher, RandomState};
use std::ops::Deref;
use std::sync::Arc;

use hashbrown::HashTable;

/// The names of a graph's nodes in the order of their ids, and the ids by name.
///
/// The table holds ids and no second copy of the names: a graph may have a million nodes.
#[derive(Clone, Debug, Default)]
pub(crate) struct NodeNames {
    list: Vec<Arc<str>>,
    ids: HashTable<u32>,
    hasher: RandomState,
}

impl NodeNames {
    /// The node of that name.
    pub(crate) fn id(&self, name: &str) -> Option<u32> {
        self.ids.find(self.hasher.hash_one(name), |id| *self.list[*id as usize] == *name).copied()
    }

    /// Names the next node. Two nodes of one name are a problem of their graph: [`id`](NodeNames::id) is then
    /// that of either.
    pub(crate) fn push(&mut self, name: Arc<str>) {
        let (list, hasher) = (&self.list, &self.hasher);
        let hash_of = |id: &u32| hasher.hash_one(&*list[*id as usize]);
        self.ids.insert_unique(hasher.hash_one(&*name), list.len() as u32, hash_of);
        self.list.push(name);
    }
}

impl Deref for NodeNames {
    type Target = [Arc<str>];

    fn deref(&self) -> &[Arc<str>] {
        &self.list
    }
}

impl FromIterator<Arc<str>> for NodeNames {
    fn from_iter<I: IntoIterator<Item = Arc<str>>>(names: I) -> Self {
        let mut all = NodeNames::default();
        names.into_iter().for_each(|name| all.push(name));
        all
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_name_has_its_id_and_no_other_name_has_one() {
        let names: NodeNames = (0..1000).map(|id| Arc::from(format!("node {id}"))).collect();
        for id in 0..1000 {
            assert_eq!(names.id(&format!("node {id}")), Some(id));
        }
        assert_eq!((names.len(), names.id("node 1000")), (1000, None));
    }
}
