//! [`Content`]: a stored value that is compared by its content, since the order of a hash map or set is none.
//!
//! In MessagePack a set is a list like any other. Its order is lost when the value is decoded, so a list that
//! comes back in another order is a set.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use serde_json::Value;

use crate::reduce::derived::decode_fields;
use crate::state::Channel;
use agentgraph_checkpoint::delta::decode;
use agentgraph_checkpoint::frame::shape;

/// A value in MessagePack, its maps in the order of their keys.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Tree {
    Leaf(Vec<u8>),
    List(Vec<Tree>),
    Map(BTreeMap<Tree, Tree>),
}

impl Tree {
    /// Reads one value. Bytes that are none are a leaf.
    pub(crate) fn read(bytes: &[u8]) -> Self {
        let mut rest = bytes;
        match Self::next(&mut rest) {
            Some(tree) if rest.is_empty() => tree,
            _ => Tree::Leaf(bytes.to_vec()),
        }
    }

    fn next(bytes: &mut &[u8]) -> Option<Self> {
        let marker = *bytes.first()?;
        let (head, body, inside) = shape(marker, bytes).ok()?;
        let (value, rest) = bytes.split_at_checked(head + body)?;
        *bytes = rest;
        Some(match marker {
            0x80..=0x8f | 0xde | 0xdf => {
                let entry = |_| Some((Self::next(bytes)?, Self::next(bytes)?));
                Tree::Map((0..inside / 2).map(entry).collect::<Option<_>>()?)
            }
            0x90..=0x9f | 0xdc | 0xdd => {
                Tree::List((0..inside).map(|_| Self::next(bytes)).collect::<Option<_>>()?)
            }
            _ => Tree::Leaf(value.to_vec()),
        })
    }

    pub(crate) fn text(text: &str) -> Self {
        let mut bytes = Vec::new();
        // Writing to a Vec does not fail.
        let _ = rmp::encode::write_str(&mut bytes, text);
        Tree::Leaf(bytes)
    }

    /// A write to a merged channel, whose list of pairs is a map: later ones win.
    fn merged(self) -> Self {
        match self {
            Tree::Map(kinds) => {
                Tree::Map(kinds.into_iter().map(|(kind, write)| (kind, write.pairs())).collect())
            }
            other => other,
        }
    }

    fn pairs(self) -> Self {
        let Tree::List(items) = &self else { return self };
        let pair = |item: &Tree| match item {
            Tree::List(pair) => <[Tree; 2]>::try_from(pair.clone()).ok().map(|[key, value]| (key, value)),
            _ => None,
        };
        items.iter().map(pair).collect::<Option<_>>().map_or(self.clone(), Tree::Map)
    }

    /// The value with sorted lists.
    fn sorted(&self) -> Self {
        match self {
            Tree::Leaf(_) => self.clone(),
            Tree::List(items) => {
                let mut items: Vec<Tree> = items.iter().map(Tree::sorted).collect();
                items.sort();
                Tree::List(items)
            }
            Tree::Map(entries) => {
                Tree::Map(entries.iter().map(|(key, value)| (key.clone(), value.sorted())).collect())
            }
        }
    }

    /// The value with those lists sorted that have another order in `again`, which is the same value decoded
    /// and encoded again.
    fn settled(self, again: &Tree) -> Self {
        match (self, again) {
            (Tree::Map(entries), Tree::Map(again)) => {
                let settle = |(key, value): (Tree, Tree)| match again.get(&key) {
                    Some(again) => (key, value.settled(again)),
                    None => (key, value),
                };
                Tree::Map(entries.into_iter().map(settle).collect())
            }
            (Tree::List(items), Tree::List(again)) if items.len() == again.len() => {
                let has_order = items.iter().zip(again).all(|(item, again)| item.sorted() == again.sorted());
                if !has_order {
                    return Tree::List(items).sorted();
                }
                Tree::List(items.into_iter().zip(again).map(|(item, again)| item.settled(again)).collect())
            }
            (tree, _) => tree,
        }
    }

    /// For display.
    fn to_json(&self) -> Value {
        let name = |key: &Tree| match key.to_json() {
            Value::String(text) => text,
            other => other.to_string(),
        };
        match self {
            Tree::Leaf(bytes) => decode(bytes).unwrap_or_else(|_| Value::from(bytes.clone())),
            Tree::List(items) => items.iter().map(Tree::to_json).collect(),
            Tree::Map(entries) => {
                Value::Object(entries.iter().map(|(key, value)| (name(key), value.to_json())).collect())
            }
        }
    }
}

/// Values by name.
pub(super) type Entries = BTreeMap<String, Tree>;

/// The writes of an encoded update by channel.
pub(super) fn writes(channels: &[Channel], update: &[u8]) -> Entries {
    let fields = decode_fields(update).unwrap_or_default();
    let write = |(name, bytes): (&str, &[u8])| {
        let merges = channels.iter().any(|known| known.is_called(name) && known.reducer == "merge");
        let write = Tree::read(bytes);
        (name.to_owned(), if merges { write.merged() } else { write })
    };
    fields.into_iter().map(write).collect()
}

/// Two items of a set come in the same order every second time that they are decoded.
const TIMES: usize = 20;

/// Values, and the means to find out which of their lists are sets.
#[derive(Clone)]
pub(crate) struct Content {
    entries: Entries,
    /// Decodes them and encodes them again.
    again: Arc<dyn Fn() -> Entries + Send + Sync>,
}

impl Content {
    pub(super) fn new(entries: Entries, again: impl Fn() -> Entries + Send + Sync + 'static) -> Self {
        Content { entries, again: Arc::new(again) }
    }

    /// One value whose lists all have an order.
    pub(crate) fn ordered(name: &str, tree: Tree) -> Self {
        Content::new(BTreeMap::from([(name.to_owned(), tree)]), BTreeMap::new)
    }

    pub(crate) fn and(mut self, mut other: Content) -> Self {
        self.entries.append(&mut other.entries);
        Content::new(self.entries, move || {
            let mut again = (self.again)();
            again.append(&mut (other.again)());
            again
        })
    }

    /// A value, for display.
    pub(crate) fn to_json(&self, name: &str) -> Option<Value> {
        self.entries.get(name).map(Tree::to_json)
    }

    /// The names of the values that differ from those of `other`, which are of the same types.
    pub(crate) fn differing(&self, other: &Content) -> Vec<String> {
        if self.entries == other.entries {
            return Vec::new();
        }
        let (mut own, mut others) = (self.entries.clone(), other.entries.clone());
        let names: BTreeSet<String> = own.keys().chain(others.keys()).cloned().collect();
        let mut names: Vec<String> =
            names.into_iter().filter(|name| own.get(name) != others.get(name)).collect();
        let sorted = |entries: &Entries, name: &String| entries.get(name).map(Tree::sorted);
        let mut doubtful: Vec<String> =
            names.iter().filter(|name| sorted(&own, name) == sorted(&others, name)).cloned().collect();
        for _ in 0..TIMES {
            if doubtful.is_empty() {
                break;
            }
            for (entries, again) in [(&mut own, &self.again), (&mut others, &other.again)] {
                let again = again();
                for name in &doubtful {
                    let Some(again) = again.get(name) else { continue };
                    if let Some(tree) = entries.remove(name) {
                        entries.insert(name.clone(), tree.settled(again));
                    }
                }
            }
            doubtful.retain(|name| own.get(name) != others.get(name));
        }
        names.retain(|name| own.get(name) != others.get(name));
        names
    }
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use std::collections::{HashMap, HashSet};

    use serde::Serialize;
    use serde::de::DeserializeOwned;

    use super::*;
    use agentgraph_checkpoint::delta::encode;

    fn content<T: Serialize + DeserializeOwned + Send + Sync + 'static>(value: &T) -> Content {
        let read = |value: &T| {
            let mut bytes = Vec::new();
            encode(&mut bytes, value).unwrap();
            bytes
        };
        let bytes = read(value);
        let entries = move |bytes: &[u8]| Entries::from([("value".to_owned(), Tree::read(bytes))]);
        Content::new(entries(&bytes), move || entries(&read(&decode::<T>(&bytes).unwrap())))
    }

    fn differ<T: Serialize + DeserializeOwned + Send + Sync + 'static>(one: &T, other: &T) -> bool {
        !content(one).differing(&content(other)).is_empty()
    }

    type Nested = Vec<(Vec<u32>, HashMap<u32, HashSet<u32>>)>;

    #[test]
    fn sets_and_maps_have_no_order_and_lists_beside_them_do() {
        let value = |list: [u32; 2], set: u32| -> Nested {
            let maps = (0..3).map(|n| (n, (0..set).collect())).collect();
            vec![(vec![7, 8], HashMap::new()), (list.to_vec(), maps)]
        };
        for set in [2, 3, 40] {
            assert!(!differ(&value([1, 2], set), &value([1, 2], set)), "{set}");
            assert!(differ(&value([1, 2], set), &value([2, 1], set)), "{set}");
            assert!(differ(&value([1, 2], set), &value([1, 2], set + 1)), "{set}");
        }
        assert!(differ(&vec![1, 2], &vec![2, 1]));
    }
}
