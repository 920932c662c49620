//! `anyOf` and `oneOf`, both written as `anyOf`.

use serde_json::Value;

use super::{Branch, Check, Emitter, Fields, Place};
use crate::schema::fold::intersection;
use crate::schema::report::ObstacleKind;
use crate::schema::rules::is_annotation;

impl Emitter<'_> {
    pub(super) fn union(&mut self, mut fields: Fields, place: &Place) -> Value {
        let (keyword, branches) = match (fields.remove("anyOf"), fields.remove("oneOf")) {
            (Some(Value::Array(branches)), None) => ("anyOf", branches),
            (None, Some(Value::Array(branches))) => ("oneOf", branches),
            _ => {
                self.obstacle(place, ObstacleKind::Unfoldable);
                return Value::Object(fields);
            }
        };
        let (annotations, shared): (Fields, Fields) =
            fields.into_iter().partition(|(keyword, _)| is_annotation(keyword));
        let mut all = Vec::new();
        for (at, branch) in branches.iter().enumerate() {
            let place = place.child(&format!("{keyword}/{at}"));
            all.push(self.branch(branch, &shared, &place));
        }
        let written: Vec<_> = all.iter().map(|branch| branch.written.clone()).collect();
        if keyword == "oneOf" {
            self.checks.push(Check::Disjoint { at: place.at.clone(), branches: all });
        }
        if written.is_empty() {
            self.obstacle(place, ObstacleKind::NoValue);
        }
        // The annotations follow the rules of any other schema.
        let mut union = self.annotated(annotations, place);
        union.insert("anyOf".to_owned(), Value::Array(written));
        Value::Object(union)
    }

    /// A branch together with the rules beside the union, such as the fields that all variants share.
    fn branch(&mut self, branch: &Value, shared: &Fields, place: &Place) -> Branch {
        if shared.is_empty() {
            return Branch { original: branch.clone(), written: self.schema(branch, place) };
        }
        let content = match branch {
            Value::Object(fields) => fields.clone(),
            _ => Fields::new(),
        };
        let whole = self
            .fold(content, place, true)
            .and_then(|(content, place)| Some((intersection(&content, shared)?, place)));
        match whole {
            Some((whole, place)) => {
                let original = Value::Object(whole);
                Branch { written: self.schema(&original, &place), original }
            }
            None => {
                self.obstacle(place, ObstacleKind::Unfoldable);
                Branch { original: branch.clone(), written: Value::Object(Fields::new()) }
            }
        }
    }

    fn annotated(&mut self, annotations: Fields, place: &Place) -> Fields {
        use crate::schema::describe::describe;
        use crate::schema::rules::{Rule, rule};

        let (mut out, mut told) = (Fields::new(), Vec::new());
        for (keyword, value) in annotations {
            match rule(self.profile, &keyword) {
                Rule::Keep => {
                    out.insert(keyword, value);
                }
                Rule::Describe if !value.is_null() => self.describe(&keyword, &value, place, &mut told),
                _ => {}
            }
        }
        describe(&mut out, &told);
        out
    }
}
