//! The evaluation of forms, like in the original's validator: every violated rule is reported under its
//! property. The forms themselves are elsewhere.

use serde_json::{Map, Value, json};

use crate::wire::shape;

/// The properties of an object.
pub(super) struct Form {
    pub(super) fields: &'static [&'static [Field]],
    /// Whether unknown properties are rejected.
    pub(super) closed: bool,
}

impl Form {
    pub(super) const fn of(fields: &'static [&'static [Field]]) -> Self {
        Self { fields, closed: false }
    }
}

/// A property. Its checks are in the order of the original.
pub(super) struct Field {
    name: &'static str,
    when: Applicability,
    checks: &'static [Check],
    inner: Option<NestedForm>,
}

/// The condition under which a property is checked.
enum Applicability {
    Always,
    /// If it is present and not null.
    Given,
    /// If this holds for the whole object.
    If(fn(&Value) -> bool),
}

/// The form of the object in a property, or of every object in its array.
struct NestedForm {
    form: &'static Form,
    each: bool,
}

/// A required property.
pub(super) const fn must(name: &'static str, checks: &'static [Check]) -> Field {
    Field { name, when: Applicability::Always, checks, inner: None }
}

/// An optional property.
pub(super) const fn may(name: &'static str, checks: &'static [Check]) -> Field {
    Field { name, when: Applicability::Given, checks, inner: None }
}

impl Field {
    pub(super) const fn only_if(self, holds: fn(&Value) -> bool) -> Self {
        Self { when: Applicability::If(holds), name: self.name, checks: self.checks, inner: self.inner }
    }

    pub(super) const fn form(self, form: &'static Form) -> Self {
        let inner = Some(NestedForm { form, each: false });
        Self { inner, name: self.name, checks: self.checks, when: self.when }
    }

    pub(super) const fn each(self, form: &'static Form) -> Self {
        let inner = Some(NestedForm { form, each: true });
        Self { inner, name: self.name, checks: self.checks, when: self.when }
    }
}

/// A rule for one value.
pub(super) enum Check {
    Defined,
    Filled,
    Text,
    Texts,
    Flag,
    Number,
    Integer,
    Array,
    /// A non-empty array.
    Some,
    OneOf(&'static [&'static str]),
    Date,
    Object,
    Uuid,
    Uuids,
    Alphanumeric,
    AtLeastTwo,
    AtMostTwo,
    /// A special rule on the value and its object: name, message, test.
    Own(&'static str, &'static str, fn(&Value, &Value) -> bool),
}

impl Check {
    fn passes(&self, value: &Value, object: &Value) -> bool {
        let length = || value.as_str().map(|text| text.chars().count());
        match self {
            Self::Defined => !value.is_null(),
            Self::Filled => !value.is_null() && *value != "",
            Self::Text => value.is_string(),
            Self::Texts => each(value, Value::is_string),
            Self::Flag => value.is_boolean(),
            Self::Number => value.is_number(),
            Self::Integer => shape::integer(value),
            Self::Array => value.is_array(),
            Self::Some => value.as_array().is_some_and(|entries| !entries.is_empty()),
            Self::OneOf(words) => shape::one_of(words)(value),
            Self::Date => shape::date(value),
            Self::Object => value.is_object(),
            Self::Uuid => super::is_uuid(value),
            Self::Uuids => each(value, super::is_uuid),
            Self::Alphanumeric => {
                let plain = |text: &str| !text.is_empty() && text.bytes().all(|b| b.is_ascii_alphanumeric());
                value.as_str().is_some_and(plain)
            }
            Self::AtLeastTwo => length().is_some_and(|length| length >= 2),
            Self::AtMostTwo => length().is_some_and(|length| length <= 2),
            Self::Own(_, _, test) => test(value, object),
        }
    }

    fn name(&self) -> &'static str {
        match self {
            Self::Defined => "isDefined",
            Self::Filled => "isNotEmpty",
            Self::Text | Self::Texts => "isString",
            Self::Flag => "isBoolean",
            Self::Number => "isNumber",
            Self::Integer => "isInt",
            Self::Array => "isArray",
            Self::Some => "arrayMinSize",
            Self::OneOf(_) => "isEnum",
            Self::Date => "isDateString",
            Self::Object => "isObject",
            Self::Uuid | Self::Uuids => "isUuid",
            Self::Alphanumeric => "isAlphanumeric",
            Self::AtLeastTwo => "minLength",
            Self::AtMostTwo => "maxLength",
            Self::Own(name, ..) => name,
        }
    }

    fn message(&self, property: &str) -> String {
        let is = |what: &str| format!("{property} must be {what}");
        match self {
            Self::Defined => format!("{property} should not be null or undefined"),
            Self::Filled => format!("{property} should not be empty"),
            Self::Text => is("a string"),
            Self::Texts => format!("each value in {}", is("a string")),
            Self::Flag => is("a boolean value"),
            Self::Number => is("a number conforming to the specified constraints"),
            Self::Integer => is("an integer number"),
            Self::Array => is("an array"),
            Self::Some => format!("{property} must contain at least 1 elements"),
            Self::OneOf(words) => is(&format!("one of the following values: {}", words.join(", "))),
            Self::Date => is("a valid ISO 8601 date string"),
            Self::Object => is("an object"),
            Self::Uuid => is("a UUID"),
            Self::Uuids => format!("each value in {}", is("a UUID")),
            Self::Alphanumeric => format!("{property} must contain only letters and numbers"),
            Self::AtLeastTwo => is("longer than or equal to 2 characters"),
            Self::AtMostTwo => is("shorter than or equal to 2 characters"),
            Self::Own(_, message, _) => (*message).to_owned(),
        }
    }
}

/// A value that is not an array fails as a whole.
fn each(value: &Value, test: fn(&Value) -> bool) -> bool {
    value.as_array().is_some_and(|entries| entries.iter().all(test))
}

/// The complaint about a property, or about the properties below it.
#[derive(Debug)]
pub(crate) struct Complaint {
    property: String,
    constraints: Vec<(&'static str, String)>,
    children: Vec<Complaint>,
    /// Whether the form does not have the property. The original gives such a complaint no children.
    is_unknown: bool,
}

impl Complaint {
    fn new(property: impl Into<String>) -> Self {
        Self { property: property.into(), constraints: Vec::new(), children: Vec::new(), is_unknown: false }
    }

    fn is_void(&self) -> bool {
        self.constraints.is_empty() && self.children.is_empty()
    }

    /// In the form of the wire.
    pub(crate) fn to_json(&self) -> Value {
        let mut told = json!({ "property": self.property });
        if !self.is_unknown {
            told["children"] = self.children.iter().map(Self::to_json).collect();
        }
        if !self.constraints.is_empty() {
            let constraints = self.constraints.iter();
            let constraints = constraints.map(|(name, message)| ((*name).to_owned(), json!(message)));
            told["constraints"] = Value::Object(constraints.collect::<Map<_, _>>());
        }
        told
    }

    /// The paths of the violating properties, each with the names of the rules.
    pub(super) fn failures(&self) -> Vec<(String, String)> {
        let mut all = Vec::new();
        self.fail_below("", &mut all);
        all
    }

    fn fail_below(&self, above: &str, all: &mut Vec<(String, String)>) {
        let path = match self.property.parse::<usize>() {
            Ok(index) => format!("{above}[{index}]"),
            Err(_) if above.is_empty() => self.property.clone(),
            Err(_) => format!("{above}.{}", self.property),
        };
        if !self.constraints.is_empty() {
            let names: Vec<&str> = self.constraints.iter().map(|(name, _)| *name).collect();
            all.push((path.clone(), names.join(", ")));
        }
        self.children.iter().for_each(|child| child.fail_below(&path, all));
    }
}

/// All complaints about an object.
pub(super) fn judge(form: &Form, object: &Value) -> Vec<Complaint> {
    let fields = || form.fields.iter().copied().flatten();
    // The original looks for unknown properties first.
    let given = object.as_object().filter(|_| form.closed).into_iter().flat_map(Map::keys);
    let unknown = given.filter(|name| fields().all(|field| field.name != name.as_str()));
    let unknown = unknown.map(|name| unknown_property(name));
    let told = fields().map(|field| judge_field(field, object));
    unknown.chain(told.filter(|complaint| !complaint.is_void())).collect()
}

fn unknown_property(name: &str) -> Complaint {
    let message = format!("property {name} should not exist");
    let constraints = vec![("whitelistValidation", message)];
    Complaint { constraints, is_unknown: true, ..Complaint::new(name) }
}

fn judge_field(field: &Field, object: &Value) -> Complaint {
    let value = object.get(field.name).unwrap_or(&Value::Null);
    let mut complaint = Complaint::new(field.name);
    let counts = match field.when {
        Applicability::Always => true,
        Applicability::Given => !value.is_null(),
        Applicability::If(holds) => holds(object),
    };
    if !counts {
        return complaint;
    }
    let failing = field.checks.iter().filter(|check| !check.passes(value, object));
    complaint.constraints = failing.map(|check| (check.name(), check.message(field.name))).collect();
    if let Some(inner) = field.inner.as_ref().filter(|_| !value.is_null()) {
        look_inside(inner, value, &mut complaint);
    }
    complaint
}

fn look_inside(inner: &NestedForm, value: &Value, complaint: &mut Complaint) {
    match value {
        Value::Array(entries) => {
            let told = entries.iter().enumerate().map(|(index, entry)| {
                let mut child = Complaint::new(index.to_string());
                if !entry.is_null() {
                    look_inside(inner, entry, &mut child);
                }
                child
            });
            complaint.children = told.filter(|child| !child.is_void()).collect();
        }
        Value::Object(_) => complaint.children = judge(inner.form, value),
        _ => {
            let which = if inner.each { "each value in nested property" } else { "nested property" };
            let message = format!("{which} {} must be either object or array", complaint.property);
            complaint.constraints.push(("nestedValidation", message));
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::wire::validate::forms;

    const ENTRY: Form = Form::of(&[&[must("id", &[Check::Text, Check::Filled])]]);
    const WHOLE: Form = Form::of(&[&[
        must("name", &[Check::Filled, Check::Text]),
        may("state", &[Check::OneOf(&["on", "off"])]),
        must("entries", &[Check::Array]).each(&ENTRY),
    ]]);

    fn complaints(body: Value) -> Value {
        judge(&WHOLE, &body).iter().map(Complaint::to_json).collect()
    }

    #[test]
    fn valid_bodies_have_no_complaints() {
        assert_eq!(complaints(json!({ "name": "n", "state": null, "entries": [{ "id": "1" }] })), json!([]));
    }

    #[test]
    fn every_violated_rule_is_reported_at_its_property() {
        let entries = json!([{ "id": "1" }, { "id": 2 }, 3]);
        let expected = json!([
            {
                "property": "name",
                "children": [],
                "constraints": { "isNotEmpty": "name should not be empty", "isString": "name must be a string" },
            },
            {
                "property": "state",
                "children": [],
                "constraints": { "isEnum": "state must be one of the following values: on, off" },
            },
            {
                "property": "entries",
                "children": [
                    {
                        "property": "1",
                        "children": [{
                            "property": "id",
                            "children": [],
                            "constraints": { "isString": "id must be a string" },
                        }],
                    },
                    {
                        "property": "2",
                        "children": [],
                        "constraints": {
                            "nestedValidation": "each value in nested property 2 must be either object or array",
                        },
                    },
                ],
            },
        ]);
        assert_eq!(complaints(json!({ "state": "half", "entries": entries })), expected);
    }

    #[test]
    fn an_unknown_property_of_a_closed_form_is_reported_first_and_without_children() {
        let body = json!({ "group": 1, "id": "x" });
        let told: Vec<Value> = judge(&forms::INIT, &body).iter().map(Complaint::to_json).collect();
        let unknown = json!({ "property": "id",
            "constraints": { "whitelistValidation": "property id should not exist" } });
        let known = json!({ "property": "group", "children": [],
            "constraints": { "IsGroupRecord": "The Group is not a valid Record<string, string[]>" } });
        assert_eq!(told, [unknown, known]);
    }

    #[test]
    fn failures_have_the_path_of_their_property() {
        let all = judge(&WHOLE, &json!({ "name": "n", "entries": [{ "id": 2 }] }));
        let failures: Vec<_> = all.iter().flat_map(Complaint::failures).collect();
        assert_eq!(failures, [("entries[0].id".to_owned(), "isString".to_owned())]);
    }
}
