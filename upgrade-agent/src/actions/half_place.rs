//! Decision points with only a site or only a target. Such a place is neither complete nor wrong, so the
//! agent asks for the other half.

use serde_json::Value;

use crate::state::Params;

/// The known half of a place.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum HalfPlace<'p> {
    Site(&'p str),
    Target(&'p str),
}

/// The parameters with a half place.
pub(super) fn places(params: &Params) -> Vec<String> {
    let names = ["decision_points", "decision_point"].into_iter();
    names.filter(|name| of(params, name).is_some()).map(str::to_owned).collect()
}

/// The first half place of a parameter.
pub(crate) fn of<'p>(params: &'p Params, name: &str) -> Option<HalfPlace<'p>> {
    match params.get(name)? {
        Value::Array(all) => all.iter().find_map(of_place),
        place => of_place(place),
    }
}

fn of_place(place: &Value) -> Option<HalfPlace<'_>> {
    // An empty target is valid: some places have only a site.
    let unsaid = |name: &str| place.get(name).is_none_or(Value::is_null);
    let said = |name: &str| place.get(name)?.as_str().filter(|text| !text.trim().is_empty());
    match (said("site"), said("target")) {
        (Some(site), None) if unsaid("target") => Some(HalfPlace::Site(site)),
        (None, Some(target)) if unsaid("site") => Some(HalfPlace::Target(target)),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::super::{ActionKind, DecodeError, decode};
    use super::*;

    fn params(value: Value) -> Params {
        serde_json::from_value(value).unwrap()
    }

    #[test]
    fn a_decision_point_with_only_site_or_target_is_missing_and_not_invalid() {
        let whole = params(json!({
            "name": "Foo", "context": "c", "conditions": [{ "code": "a", "weight": 100.0 }],
            "decision_points": [{ "site": "s", "target": "t" }],
        }));
        assert!(decode(ActionKind::CreateExperiment, &whole).is_ok());
        for half in [json!([{ "site": "s" }]), json!([{ "target": "t", "site": null }])] {
            let mut given = whole.clone();
            given.insert("decision_points".into(), half);
            let missing = DecodeError::Missing(vec!["decision_points".into()]);
            assert_eq!(decode(ActionKind::CreateExperiment, &given), Err(missing));
        }
    }

    #[test]
    fn invalid_or_complete_places_are_not_half_places() {
        let at = |place: Value| places(&params(json!({ "decision_point": place })));
        assert_eq!(at(json!({ "site": "s" })), ["decision_point"]);
        for place in [
            json!({ "site": "s", "target": 7 }),
            json!({ "site": "s", "target": "" }),
            json!({}),
            json!("s"),
            json!({ "site": "s", "target": "t" }),
        ] {
            assert!(at(place.clone()).is_empty(), "{place}");
        }
    }
}
