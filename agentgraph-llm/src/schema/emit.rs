//! The walk over a schema that writes it for one profile.

mod array;
mod literal;
mod node;
mod object;
mod union;

use std::collections::BTreeSet;

use serde_json::{Map, Value};

use super::SchemaProfile;
use super::fold::{Pair, intersection};
use super::refs::{self, ROOT, Reach};
use super::report::{Obstacle, ObstacleKind, Unenforced};
use super::rules::is_annotation;

type Fields = Map<String, Value>;

/// The most schemas that are written for one. References that are replaced by their targets multiply.
const MAX_SCHEMAS: usize = 20_000;

/// Writes a schema for a profile, once.
pub(super) struct Emitter<'a> {
    root: &'a Value,
    profile: SchemaProfile,
    /// The transformed definitions, by name.
    definitions: Fields,
    /// References to definitions that are not transformed yet.
    pending: Vec<String>,
    checks: Vec<Check>,
    schemas: usize,
    obstacles: Vec<Obstacle>,
    unenforced: Vec<Unenforced>,
}

/// A check that needs all definitions.
enum Check {
    /// The branches of a former `oneOf` share no value.
    Disjoint { at: String, branches: Vec<Branch> },
    /// An optional property that became required accepts null.
    Nullable { at: String, schema: Value },
}

/// A branch of a union, before and after.
struct Branch {
    original: Value,
    written: Value,
}

/// Where the walk is: the place in the original, and the references that were replaced on the way there.
#[derive(Clone, Default)]
struct Place {
    at: String,
    replaced: Vec<String>,
}

impl Place {
    fn child(&self, path: &str) -> Place {
        Place { at: format!("{}/{path}", self.at), replaced: self.replaced.clone() }
    }

    fn named(&self, keyword: &str, name: &str) -> Place {
        self.child(&format!("{keyword}/{}", name.replace('~', "~0").replace('/', "~1")))
    }
}

impl<'a> Emitter<'a> {
    pub(super) fn new(root: &'a Value, profile: SchemaProfile) -> Self {
        Emitter {
            root,
            profile,
            definitions: Fields::new(),
            pending: Vec::new(),
            checks: Vec::new(),
            schemas: 0,
            obstacles: Vec::new(),
            unenforced: Vec::new(),
        }
    }

    pub(super) fn into_report(self) -> (Vec<Obstacle>, Vec<Unenforced>) {
        (self.obstacles, self.unenforced)
    }

    /// The whole schema. Its definitions are those that something refers to.
    pub(super) fn run(&mut self) -> Value {
        let mut root = self.root_schema();
        while let Some(target) = self.pending.pop() {
            self.define(&target);
        }
        self.check();
        self.limit_recursion(&mut root);
        let used = used_definitions(&root, &self.definitions);
        let definitions: Fields =
            self.definitions.clone().into_iter().filter(|(name, _)| used.contains(name)).collect();
        if let (Some(fields), false) = (root.as_object_mut(), definitions.is_empty()) {
            fields.insert("$defs".to_owned(), Value::Object(definitions));
        }
        root
    }

    /// A root that is only a reference is replaced by its target: providers want to see an object.
    fn root_schema(&mut self) -> Value {
        let mut place = Place::default();
        let mut schema = self.root.clone();
        if let Some(fields) = schema.as_object_mut() {
            fields.retain(|keyword, _| !matches!(keyword.as_str(), "$defs" | "definitions" | "$schema"));
        }
        while let Some(target) = only_reference(&schema) {
            let target = target.to_owned();
            match refs::resolve(self.root, &target) {
                Some(found) if !place.replaced.contains(&target) && target != "#" => schema = found.clone(),
                _ => {
                    self.obstacle(&place, ObstacleKind::UnknownRef(target));
                    break;
                }
            }
            place.replaced.push(target);
        }
        self.schema(&schema, &place)
    }

    fn define(&mut self, target: &str) {
        let Some(name) = refs::definition_name(target) else { return };
        if self.definitions.contains_key(&name) {
            return;
        }
        let at = target.trim_start_matches('#').to_owned();
        let place = Place { at, replaced: vec![target.to_owned()] };
        match refs::resolve(self.root, target) {
            Some(schema) => {
                // Known before it is complete, so that it may contain itself.
                self.definitions.insert(name.clone(), Value::Null);
                let schema = self.schema(schema, &place);
                self.definitions.insert(name, schema);
            }
            None => self.obstacle(&place, ObstacleKind::UnknownRef(target.to_owned())),
        }
    }

    fn schema(&mut self, schema: &Value, place: &Place) -> Value {
        self.schemas += 1;
        if self.schemas > MAX_SCHEMAS {
            if self.schemas == MAX_SCHEMAS + 1 {
                self.obstacle(place, ObstacleKind::TooLarge);
            }
            return Value::Object(Fields::new());
        }
        match schema {
            Value::Object(fields) => self.folded_schema(fields.clone(), place),
            Value::Bool(false) => {
                self.obstacle(place, ObstacleKind::NoValue);
                schema.clone()
            }
            _ => self.folded_schema(Fields::new(), place),
        }
    }

    fn folded_schema(&mut self, fields: Fields, place: &Place) -> Value {
        let Some((fields, place)) = self.fold(fields, place, false) else {
            self.obstacle(place, ObstacleKind::Unfoldable);
            return Value::Object(Fields::new());
        };
        if let Some(target) = fields.get("$ref").and_then(Value::as_str) {
            return self.reference(target);
        }
        if fields.contains_key("anyOf") || fields.contains_key("oneOf") {
            return self.union(fields, &place);
        }
        Value::Object(self.node(fields, &place))
    }

    fn reference(&mut self, target: &str) -> Value {
        self.pending.push(target.to_owned());
        let target = match refs::definition_name(target) {
            Some(_) => target.replacen("#/definitions/", "#/$defs/", 1),
            None => target.to_owned(),
        };
        Value::Object(Fields::from_iter([("$ref".to_owned(), Value::String(target))]))
    }

    /// One object of keywords without `allOf`, and without siblings of a `$ref`. A `$ref` alone stays, unless
    /// its content is wanted. `None` if that is impossible.
    fn fold(&mut self, mut fields: Fields, place: &Place, wants_content: bool) -> Option<(Fields, Place)> {
        let mut place = place.clone();
        loop {
            if let Some(Value::String(target)) = fields.get("$ref") {
                let target = target.clone();
                let is_alone = fields.keys().all(|keyword| keyword == "$ref");
                let is_named = refs::definition_name(&target).is_some() || target == "#";
                if is_alone && is_named && !wants_content {
                    return Some((fields, place));
                }
                fields.remove("$ref");
                if place.replaced.contains(&target) || target == "#" {
                    // Only the description of one use of a recursive type is lost.
                    let has_rules = fields.keys().any(|keyword| !is_annotation(keyword));
                    if has_rules || wants_content || !is_named {
                        return None;
                    }
                    return Some((Fields::from_iter([("$ref".to_owned(), Value::String(target))]), place));
                }
                let found = match refs::resolve(self.root, &target) {
                    Some(Value::Object(found)) => found.clone(),
                    Some(_) => Fields::new(),
                    None => {
                        self.obstacle(&place, ObstacleKind::UnknownRef(target));
                        return Some((Fields::new(), place));
                    }
                };
                place.replaced.push(target);
                fields = intersection(&fields, &found)?;
            } else if let Some(parts) = fields.remove("allOf") {
                for part in parts.as_array()? {
                    let part = match part {
                        Value::Object(part) => part.clone(),
                        Value::Bool(true) => continue,
                        _ => return None,
                    };
                    let (part, inner) = self.fold(part, &place, true)?;
                    place.replaced = inner.replaced;
                    fields = intersection(&fields, &part)?;
                }
            } else {
                return Some((fields, place));
            }
        }
    }

    fn check(&mut self) {
        for check in std::mem::take(&mut self.checks) {
            match check {
                Check::Disjoint { at, branches } => {
                    if !self.are_all_disjoint(&branches) {
                        self.unenforced.push(Unenforced { at, keyword: "oneOf".to_owned() });
                    }
                }
                Check::Nullable { at, schema } => {
                    if !self.accepts_null(&schema, &mut BTreeSet::new()) {
                        self.obstacles.push(Obstacle::new(&at, ObstacleKind::Optional));
                    }
                }
            }
        }
    }

    /// Whether no value that a branch accepts now is one that another branch accepted before.
    fn are_all_disjoint(&self, branches: &[Branch]) -> bool {
        let pair = Pair {
            first: &|target| self.definitions.get(&refs::definition_name(target)?).cloned(),
            second: &|target| refs::resolve(self.root, target).cloned(),
        };
        branches.iter().enumerate().all(|(at, one)| {
            let others = branches.iter().enumerate().filter(|(other, _)| *other != at);
            others.into_iter().all(|(_, other)| pair.are_disjoint(&one.written, &other.original))
        })
    }

    fn accepts_null(&self, schema: &Value, seen: &mut BTreeSet<String>) -> bool {
        if let Some(target) = schema.get("$ref").and_then(Value::as_str) {
            let name = refs::definition_name(target).filter(|name| seen.insert(name.clone()));
            let found = name.and_then(|name| self.definitions.get(&name));
            return found.is_some_and(|schema| self.accepts_null(schema, seen));
        }
        if let Some(branches) = schema.get("anyOf").and_then(Value::as_array) {
            return branches.iter().any(|branch| self.accepts_null(branch, seen));
        }
        schema.get("type").is_some_and(|kind| super::fold::types(kind).contains(&"null"))
    }

    fn limit_recursion(&mut self, root: &mut Value) {
        match self.profile {
            SchemaProfile::OpenAi | SchemaProfile::Plain => return,
            SchemaProfile::Anthropic => {}
            SchemaProfile::Gemini => self.make_recursion_optional(root),
        }
        let references = match self.profile {
            SchemaProfile::Gemini => refs::required_references,
            _ => refs::references,
        };
        for name in Reach::of(root, &self.definitions, references).recursive() {
            let at = if name == ROOT { String::new() } else { format!("/$defs/{name}") };
            self.obstacles.push(Obstacle::new(&at, ObstacleKind::Recursion));
        }
    }

    /// Gemini follows a recursion only through properties that are not required.
    fn make_recursion_optional(&mut self, root: &mut Value) {
        let reach = Reach::of(root, &self.definitions, refs::references);
        self.relax(root, ROOT, "", &reach);
        let mut definitions = std::mem::take(&mut self.definitions);
        for (name, schema) in &mut definitions {
            self.relax(schema, name, &format!("/$defs/{name}"), &reach);
        }
        self.definitions = definitions;
    }

    fn relax(&mut self, schema: &mut Value, owner: &str, at: &str, reach: &Reach) {
        let children: Vec<&mut Value> = match schema {
            Value::Object(fields) => {
                let recursive = recursive_properties(fields, owner, reach);
                if let (false, Some(Value::Array(required))) =
                    (recursive.is_empty(), fields.get_mut("required"))
                {
                    required.retain(|name| !recursive.iter().any(|recursive| name == recursive));
                    let rules = [format!("required: {}", recursive.join(", "))];
                    super::describe::describe(fields, &rules);
                    self.unenforced.push(Unenforced { at: at.to_owned(), keyword: "required".to_owned() });
                }
                fields.values_mut().collect()
            }
            Value::Array(items) => items.iter_mut().collect(),
            _ => return,
        };
        for child in children {
            self.relax(child, owner, at, reach);
        }
    }

    fn obstacle(&mut self, place: &Place, kind: ObstacleKind) {
        self.obstacles.push(Obstacle::new(&place.at, kind));
    }

    fn unenforced(&mut self, place: &Place, keyword: &str) {
        self.unenforced.push(Unenforced { at: place.at.clone(), keyword: keyword.to_owned() });
    }
}

fn only_reference(schema: &Value) -> Option<&str> {
    let fields = schema.as_object()?;
    let target = fields.get("$ref")?.as_str()?;
    fields.keys().all(|keyword| keyword == "$ref").then_some(target)
}

fn recursive_properties(fields: &Fields, owner: &str, reach: &Reach) -> Vec<String> {
    let Some(properties) = fields.get("properties").and_then(Value::as_object) else { return Vec::new() };
    let required = fields.get("required").and_then(Value::as_array).into_iter().flatten();
    let recurs = |schema: &Value| {
        let targets = refs::references(schema);
        targets.iter().any(|target| target == owner || reach.reaches(target, owner))
    };
    let names = required.filter_map(Value::as_str);
    names.filter(|name| properties.get(*name).is_some_and(recurs)).map(str::to_owned).collect()
}

fn used_definitions(root: &Value, definitions: &Fields) -> BTreeSet<String> {
    let reach = Reach::of(root, definitions, refs::references);
    definitions.keys().filter(|name| reach.reaches(ROOT, name)).cloned().collect()
}
