//! [`Filter`]: which values a search finds. This file defines the meaning; every store uses it.

mod compare;
mod json;
mod path;

pub(crate) use path::FieldPath;

use std::cmp::Ordering;

use serde_json::Value;

use self::compare::{equal, order};
use super::value::check_depth;
use crate::error::{StoreCode, StoreError};

/// A condition on the value of an item.
///
/// A path names a field: `"a.b"` is the field `b` of the object in the field `a`; a number is the position
/// in a list, from 0. A path that begins with `/` is a JSON pointer, for names with dots: `"/a.b/c~1d"`. The
/// empty path is the whole value.
///
/// ```
/// use agentgraph_checkpoint::Filter;
/// use serde_json::json;
///
/// let adults = Filter::gte("age", 18).and(Filter::ne("address.city", "Paris"));
/// assert!(adults.matches(&json!({"age": 18.5, "address": {"city": "Rome"}})));
/// assert!(adults.matches(&json!({"age": 20})));
/// assert!(!adults.matches(&json!({"age": "20"})));
/// ```
///
/// # Meaning
///
/// - Numbers are compared by their mathematical value, whatever their size and notation: 1 equals 1.0, and
///   integers above 2^53 are exact. A number never equals a text.
/// - Texts are ordered by their Unicode code points. Only two numbers, or two texts, have an order: for all
///   others `gt`, `gte`, `lt` and `lte` do not match.
/// - Lists are equal if their elements are, objects if they have the same fields with equal values.
/// - A missing field is not null: it equals nothing, so `eq`, `is_in`, `contains` and all comparisons do not
///   match, and `ne` does.
///
/// # Limits
///
/// 16 levels of `and`, `or` and `not`, 256 conditions, paths of 16 names and 1,024 bytes. A filter beyond
/// them makes a search fail with [`StoreCode::ItemQuery`].
#[derive(Clone, Debug, PartialEq)]
pub struct Filter {
    node: Node,
    depth: usize,
    size: usize,
}

#[derive(Clone, Debug, PartialEq)]
enum Node {
    Compare(FieldPath, Comparison, Value),
    In(FieldPath, Vec<Value>),
    Contains(FieldPath, Value),
    Exists(FieldPath),
    All(Vec<Node>),
    Any(Vec<Node>),
    Not(Box<Node>),
    /// Cannot be evaluated, for this reason.
    Invalid(String),
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Comparison {
    Equal,
    NotEqual,
    Greater,
    GreaterOrEqual,
    Less,
    LessOrEqual,
}

const MAX_DEPTH: usize = 16;
const MAX_SIZE: usize = 256;

impl Filter {
    /// The field equals `value`.
    pub fn eq(path: impl AsRef<str>, value: impl Into<Value>) -> Self {
        Self::compare(path.as_ref(), Comparison::Equal, value.into())
    }

    /// The field does not equal `value`, or is missing.
    pub fn ne(path: impl AsRef<str>, value: impl Into<Value>) -> Self {
        Self::compare(path.as_ref(), Comparison::NotEqual, value.into())
    }

    /// The field is greater than `value`: both are numbers, or both are texts.
    pub fn gt(path: impl AsRef<str>, value: impl Into<Value>) -> Self {
        Self::compare(path.as_ref(), Comparison::Greater, value.into())
    }

    /// The field is greater than `value`, or equal.
    pub fn gte(path: impl AsRef<str>, value: impl Into<Value>) -> Self {
        Self::compare(path.as_ref(), Comparison::GreaterOrEqual, value.into())
    }

    /// The field is less than `value`: both are numbers, or both are texts.
    pub fn lt(path: impl AsRef<str>, value: impl Into<Value>) -> Self {
        Self::compare(path.as_ref(), Comparison::Less, value.into())
    }

    /// The field is less than `value`, or equal.
    pub fn lte(path: impl AsRef<str>, value: impl Into<Value>) -> Self {
        Self::compare(path.as_ref(), Comparison::LessOrEqual, value.into())
    }

    /// The field equals one of `values`.
    ///
    /// ```
    /// use agentgraph_checkpoint::Filter;
    /// let warm = Filter::is_in("colour", ["red", "orange"]);
    /// assert!(warm.matches(&serde_json::json!({"colour": "red"})));
    /// ```
    pub fn is_in<T: Into<Value>>(path: impl AsRef<str>, values: impl IntoIterator<Item = T>) -> Self {
        let values: Vec<Value> = values.into_iter().take(MAX_SIZE + 1).map(Into::into).collect();
        let size = values.len().max(1);
        Self::at(path.as_ref(), size, |path| Node::In(path, values))
    }

    /// The field is a list with an element that equals `value`.
    ///
    /// ```
    /// use agentgraph_checkpoint::Filter;
    /// let urgent = Filter::contains("tags", "urgent");
    /// assert!(urgent.matches(&serde_json::json!({"tags": ["new", "urgent"]})));
    /// ```
    pub fn contains(path: impl AsRef<str>, value: impl Into<Value>) -> Self {
        Self::at(path.as_ref(), 1, |path| Node::Contains(path, value.into()))
    }

    /// The field is there; it may be null.
    pub fn exists(path: impl AsRef<str>) -> Self {
        Self::at(path.as_ref(), 1, Node::Exists)
    }

    /// All of `filters` match. True for none.
    pub fn all(filters: impl IntoIterator<Item = Filter>) -> Self {
        Self::many(filters, Node::All)
    }

    /// At least one of `filters` matches. False for none.
    pub fn any(filters: impl IntoIterator<Item = Filter>) -> Self {
        Self::many(filters, Node::Any)
    }

    /// Both match.
    #[must_use]
    pub fn and(self, other: Filter) -> Self {
        Self::all([self, other])
    }

    /// One of both matches.
    #[must_use]
    pub fn or(self, other: Filter) -> Self {
        Self::any([self, other])
    }

    /// Matches what `filter` does not.
    #[expect(clippy::should_implement_trait, reason = "`Filter::not(..)` reads like its sisters")]
    pub fn not(filter: Filter) -> Self {
        let Filter { node, depth, size } = filter;
        match node {
            Node::Invalid(_) => Filter { node, depth, size },
            node => Self::bounded(Node::Not(Box::new(node)), depth + 1, size + 1),
        }
    }

    /// The filter that a JSON object describes, for filters that a model or another program writes:
    /// `{"age": {"$gte": 18}, "address": {"city": "Rome"}}`.
    ///
    /// A field has a value that it equals, an object whose fields must match, or operators: `$eq`, `$ne`,
    /// `$gt`, `$gte`, `$lt`, `$lte`, `$in`, `$contains` and `$exists`. `$and` and `$or` have a list of
    /// filters, `$not` has one. Names of fields are taken as they are; a dot in them has no meaning.
    ///
    /// ```
    /// use agentgraph_checkpoint::Filter;
    /// use serde_json::json;
    ///
    /// let filter = Filter::from_json(&json!({"age": {"$gte": 18, "$lt": 65}, "$not": {"name": "Ada"}}))?;
    /// assert!(filter.matches(&json!({"age": 40, "name": "Bo"})));
    /// assert!(Filter::from_json(&json!({"age": {"$regex": ".*"}})).is_err());
    /// # Ok::<(), agentgraph_checkpoint::StoreError>(())
    /// ```
    ///
    /// # Errors
    /// [`StoreCode::ItemQuery`] if it is no filter, or beyond the limits.
    pub fn from_json(json: &Value) -> Result<Self, StoreError> {
        json::read(json)
    }

    /// Whether it matches a value. A filter that fails [`check`](Self::check) matches none.
    pub fn matches(&self, value: &Value) -> bool {
        self.node.matches(value)
    }

    /// Fails unless it is valid.
    ///
    /// # Errors
    /// [`StoreCode::ItemQuery`] if a path is not valid, or if it is beyond the limits.
    pub fn check(&self) -> Result<(), StoreError> {
        match &self.node {
            Node::Invalid(problem) => Err(StoreError::new(StoreCode::ItemQuery, problem.clone())),
            _ => Ok(()),
        }
    }

    fn compare(path: &str, comparison: Comparison, value: Value) -> Self {
        Self::at(path, 1, |path| Node::Compare(path, comparison, value))
    }

    fn at(path: &str, size: usize, node: impl FnOnce(FieldPath) -> Node) -> Self {
        match FieldPath::parse(path) {
            Ok(path) if !path.has_wildcard() => Self::bounded(node(path), 1, size),
            Ok(_) => Self::invalid("a filter's path has a `*`: name the position, or use `Filter::contains`"),
            Err(problem) => Self::invalid(problem),
        }
    }

    fn many(filters: impl IntoIterator<Item = Filter>, node: fn(Vec<Node>) -> Node) -> Self {
        let (mut nodes, mut depth, mut size) = (Vec::new(), 0, 1);
        for filter in filters {
            if let Node::Invalid(_) = &filter.node {
                return filter;
            }
            depth = depth.max(filter.depth);
            size += filter.size;
            nodes.push(filter.node);
            if size > MAX_SIZE {
                break;
            }
        }
        Self::bounded(node(nodes), depth + 1, size)
    }

    /// Never deeper than the limit, so that nothing that walks a filter can overflow the stack.
    fn bounded(node: Node, depth: usize, size: usize) -> Self {
        if depth > MAX_DEPTH {
            return Self::invalid(
                "a filter is nested deeper than 16 levels: join its conditions in one list",
            );
        }
        if size > MAX_SIZE {
            return Self::invalid(
                "a filter has more than 256 conditions: search several times, or group the values",
            );
        }
        if node.operands().any(|operand| check_depth(operand).is_err()) {
            return Self::invalid(
                "a value in a filter is nested deeper than 100 levels, and no stored value is",
            );
        }
        Filter { node, depth, size }
    }

    fn invalid(problem: impl Into<String>) -> Self {
        Filter { node: Node::Invalid(problem.into()), depth: 1, size: 1 }
    }
}

impl Node {
    fn matches(&self, value: &Value) -> bool {
        match self {
            Node::Compare(path, comparison, operand) => {
                let field = path.find(value);
                match comparison {
                    Comparison::NotEqual => !field.is_some_and(|field| equal(field, operand)),
                    Comparison::Equal => field.is_some_and(|field| equal(field, operand)),
                    comparison => field
                        .and_then(|field| order(field, operand))
                        .is_some_and(|order| comparison.allows(order)),
                }
            }
            Node::In(path, operands) => {
                path.find(value).is_some_and(|field| operands.iter().any(|operand| equal(field, operand)))
            }
            Node::Contains(path, operand) => {
                let elements = path.find(value).and_then(Value::as_array);
                elements.is_some_and(|elements| elements.iter().any(|element| equal(element, operand)))
            }
            Node::Exists(path) => path.find(value).is_some(),
            Node::All(nodes) => nodes.iter().all(|node| node.matches(value)),
            Node::Any(nodes) => nodes.iter().any(|node| node.matches(value)),
            Node::Not(node) => !node.matches(value),
            Node::Invalid(_) => false,
        }
    }

    /// The values of its own condition.
    fn operands(&self) -> impl Iterator<Item = &Value> {
        match self {
            Node::Compare(_, _, operand) | Node::Contains(_, operand) => std::slice::from_ref(operand).iter(),
            Node::In(_, operands) => operands.iter(),
            _ => [].iter(),
        }
    }
}

impl Comparison {
    fn allows(self, order: Ordering) -> bool {
        match self {
            Comparison::Greater => order.is_gt(),
            Comparison::GreaterOrEqual => order.is_ge(),
            Comparison::Less => order.is_lt(),
            Comparison::LessOrEqual => order.is_le(),
            Comparison::Equal => order.is_eq(),
            Comparison::NotEqual => order.is_ne(),
        }
    }
}
