//! One schema that is neither a reference nor a union.

use serde_json::{Value, json};

use super::{Emitter, Fields, Place};
use crate::schema::SchemaProfile;
use crate::schema::describe::{describe, rule_text};
use crate::schema::fold::types;
use crate::schema::report::ObstacleKind;
use crate::schema::rules::{Rule, format_rule, is_annotation, rule};

impl Emitter<'_> {
    pub(super) fn node(&mut self, mut fields: Fields, place: &Place) -> Fields {
        add_type(&mut fields);
        let mut out = Fields::new();
        let mut told = Vec::new();
        if let Some(kind) = fields.get("type") {
            out.insert("type".to_owned(), kind.clone());
        }
        self.object(&fields, place, &mut out);
        self.array(&fields, place, &mut out);
        self.literals(&fields, place, &mut out, &mut told);
        for (keyword, value) in &fields {
            match self.rule_of(keyword, value) {
                Rule::Keep => {
                    out.insert(keyword.clone(), value.clone());
                }
                Rule::Drop => {}
                Rule::Describe => self.describe(keyword, value, place, &mut told),
                Rule::Obstacle => self.obstacle(place, ObstacleKind::Keyword(keyword.clone())),
            }
        }
        if self.profile != SchemaProfile::Gemini
            && !["type", "enum", "const"].iter().any(|key| out.contains_key(*key))
        {
            self.obstacle(place, ObstacleKind::AnyValue);
        }
        describe(&mut out, &told);
        if self.profile == SchemaProfile::Anthropic { with_single_types(out) } else { out }
    }

    fn rule_of(&self, keyword: &str, value: &Value) -> Rule {
        match keyword {
            // Written by the functions of their types.
            "type"
            | "properties"
            | "required"
            | "additionalProperties"
            | "items"
            | "prefixItems"
            | "enum"
            | "const" => Rule::Drop,
            "unevaluatedProperties" if value.is_boolean() => Rule::Drop,
            "default" if value.is_null() => Rule::Drop,
            "uniqueItems" if *value == json!(false) => Rule::Drop,
            "minItems" if matches!(value.as_u64(), Some(0 | 1)) => Rule::Keep,
            "format" => format_rule(self.profile, value.as_str().unwrap_or_default()),
            _ => rule(self.profile, keyword),
        }
    }

    pub(super) fn describe(&mut self, keyword: &str, value: &Value, place: &Place, told: &mut Vec<String>) {
        told.push(rule_text(keyword, value));
        if !is_annotation(keyword) && keyword != "format" {
            self.unenforced(place, keyword);
        }
    }
}

/// The type, where other keywords imply it: strict providers ask for one.
fn add_type(fields: &mut Fields) {
    if fields.contains_key("type") {
        return;
    }
    let is_object = ["properties", "required", "additionalProperties", "unevaluatedProperties"];
    let implied = if is_object.iter().any(|keyword| fields.contains_key(*keyword)) {
        json!("object")
    } else if fields.contains_key("items") || fields.contains_key("prefixItems") {
        json!("array")
    } else {
        let constant = fields.get("const").into_iter();
        let listed = fields.get("enum").and_then(Value::as_array).into_iter().flatten();
        let mut names: Vec<_> = constant.chain(listed).map(type_of).collect();
        names.sort_unstable();
        names.dedup();
        match names[..] {
            [] => return,
            [name] => json!(name),
            _ => json!(names),
        }
    };
    fields.insert("type".to_owned(), implied);
}

pub(super) fn type_of(value: &Value) -> &'static str {
    match value {
        Value::Null => "null",
        Value::Bool(_) => "boolean",
        Value::Number(number) if number.is_f64() => "number",
        Value::Number(_) => "integer",
        Value::String(_) => "string",
        Value::Array(_) => "array",
        Value::Object(_) => "object",
    }
}

/// Anthropic's schemas have one type each: several become a union, and those of literals are left out.
fn with_single_types(mut fields: Fields) -> Fields {
    let Some(Value::Array(_)) = fields.get("type") else { return fields };
    let kinds = fields.remove("type").unwrap_or_default();
    if fields.contains_key("enum") || fields.contains_key("const") {
        return fields;
    }
    let (annotations, rules): (Fields, Fields) =
        fields.into_iter().partition(|(keyword, _)| is_annotation(keyword));
    let branch = |kind: &str| {
        let mut branch: Fields =
            rules.clone().into_iter().filter(|(keyword, _)| applies(keyword, kind)).collect();
        branch.insert("type".to_owned(), json!(kind));
        Value::Object(branch)
    };
    let mut union = annotations;
    union.insert("anyOf".to_owned(), types(&kinds).into_iter().map(branch).collect());
    union
}

fn applies(keyword: &str, kind: &str) -> bool {
    match keyword {
        "properties" | "required" | "additionalProperties" => kind == "object",
        "items" | "minItems" => kind == "array",
        "format" => kind == "string",
        _ => true,
    }
}
