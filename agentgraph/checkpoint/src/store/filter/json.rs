//! Filters written as JSON objects.

use serde_json::{Map, Value};

use super::{Comparison, FieldPath, Filter, MAX_DEPTH, Node};
use crate::error::{StoreCode, StoreError};

pub(super) fn read(json: &Value) -> Result<Filter, StoreError> {
    let filter = group(json, &FieldPath::default(), 0).map_err(|problem| {
        StoreError::new(StoreCode::ItemQuery, format!("a filter cannot be read: {problem}"))
    })?;
    filter.check()?;
    Ok(filter)
}

/// An object whose fields must match.
fn group(json: &Value, at: &FieldPath, depth: usize) -> Result<Filter, String> {
    let Value::Object(fields) = json else { return Err("it must be an object".to_owned()) };
    if depth > MAX_DEPTH {
        return Err("it is nested deeper than 16 levels".to_owned());
    }
    let conditions = fields.iter().map(|(name, wanted)| match (&**name, wanted) {
        ("$and", wanted) => Ok(Filter::all(list(wanted, at, depth)?)),
        ("$or", wanted) => Ok(Filter::any(list(wanted, at, depth)?)),
        ("$not", wanted) => Ok(Filter::not(group(wanted, at, depth + 1)?)),
        (name, _) if name.starts_with('$') => Err(format!("{name:?} is not one of `$and`, `$or`, `$not`")),
        (name, wanted) => field(&at.child(name)?, wanted, depth + 1),
    });
    Ok(Filter::all(conditions.collect::<Result<Vec<_>, String>>()?))
}

fn list(json: &Value, at: &FieldPath, depth: usize) -> Result<Vec<Filter>, String> {
    let Value::Array(filters) = json else { return Err("`$and` and `$or` have a list".to_owned()) };
    filters.iter().map(|filter| group(filter, at, depth + 1)).collect()
}

fn field(at: &FieldPath, wanted: &Value, depth: usize) -> Result<Filter, String> {
    match wanted {
        Value::Object(fields) if fields.keys().any(|name| name.starts_with('$')) => operators(at, fields),
        Value::Object(fields) if fields.is_empty() => {
            // Any object has all of no fields.
            let is_object = Node::Compare(at.clone(), Comparison::Equal, wanted.clone());
            Ok(Filter::bounded(is_object, 1, 1))
        }
        Value::Object(_) => group(wanted, at, depth),
        wanted => Ok(compare(at, Comparison::Equal, wanted)),
    }
}

fn operators(at: &FieldPath, fields: &Map<String, Value>) -> Result<Filter, String> {
    let conditions = fields.iter().map(|(name, operand)| {
        let node = match (&**name, operand) {
            ("$eq", operand) => return Ok(compare(at, Comparison::Equal, operand)),
            ("$ne", operand) => return Ok(compare(at, Comparison::NotEqual, operand)),
            ("$gt", operand) => return Ok(compare(at, Comparison::Greater, operand)),
            ("$gte", operand) => return Ok(compare(at, Comparison::GreaterOrEqual, operand)),
            ("$lt", operand) => return Ok(compare(at, Comparison::Less, operand)),
            ("$lte", operand) => return Ok(compare(at, Comparison::LessOrEqual, operand)),
            ("$in", Value::Array(operands)) => {
                return Ok(Filter::bounded(Node::In(at.clone(), operands.clone()), 1, operands.len().max(1)));
            }
            ("$contains", operand) => Node::Contains(at.clone(), operand.clone()),
            ("$exists", Value::Bool(true)) => Node::Exists(at.clone()),
            ("$exists", Value::Bool(false)) => Node::Not(Box::new(Node::Exists(at.clone()))),
            (name, _) => {
                return Err(format!(
                    "{name:?} is no operator, or its operand is of the wrong type; there are `$eq`, `$ne`, `$gt`, `$gte`, \
                     `$lt`, `$lte`, `$in` with a list, `$contains`, and `$exists` with true or false"
                ));
            }
        };
        Ok(Filter::bounded(node, 2, 1))
    });
    Ok(Filter::all(conditions.collect::<Result<Vec<_>, String>>()?))
}

fn compare(at: &FieldPath, comparison: Comparison, operand: &Value) -> Filter {
    Filter::bounded(Node::Compare(at.clone(), comparison, operand.clone()), 1, 1)
}
