//! Aliases: other ids of the same student.

use std::collections::HashSet;

use serde_json::{Value, json};

use crate::core::Core;
use crate::wire::body::entries;
use crate::wire::fault::Fault;
use crate::world::model::User;

/// Adds aliases to a student who may be named by one. Returns those that existed, then the new ones.
pub(super) fn add(core: &mut Core, user: &User, called: &str, body: &Value) -> Result<Value, Fault> {
    let given: Vec<&str> = entries(body, "aliases").filter_map(Value::as_str).collect();
    let mut met = HashSet::new();
    let asked: Vec<&str> = given.iter().copied().filter(|name| met.insert(*name)).collect();
    let world = &mut core.world;
    let mut own = Vec::new();
    let mut free = Vec::new();
    let mut others = Vec::new();
    let mut roots = Vec::new();
    for (at, &name) in asked.iter().enumerate() {
        match world.aliases.get(name) {
            Some(root) if root == called => own.push(name),
            Some(root) => others.push(json!({ "userId": name, "linkedTo": root })),
            None if world.users.contains(name) => roots.extend(world.users.get(name).map(whole)),
            // The original uses the index from before duplicates were removed.
            None => free.push(given.get(at).copied().unwrap_or(name)),
        }
    }
    if !others.is_empty() {
        let others = pretty(&json!(others));
        return Err(Fault::query(format!(
            "Users already associated with other users {others} and cannot be made alias of {}",
            user.id
        )));
    }
    if !roots.is_empty() {
        let roots = pretty(&json!(roots));
        return Err(Fault::query(format!(
            "Users with ids {roots} are root user and should not be converted to an alias of {}",
            user.id
        )));
    }
    // Because of a duplicate the original stores nothing, without an error.
    met.clear();
    let is_repeated = !free.iter().all(|name| met.insert(*name));
    if !is_repeated {
        for name in &free {
            world.aliases.insert((*name).to_owned(), user.id.clone());
        }
        own.extend(free);
    }
    Ok(json!({ "userId": user.id, "aliases": own }))
}

fn whole(user: &User) -> Value {
    json!({ "id": user.id, "group": user.group, "workingGroup": user.working_group, "originalUser": null })
}

/// JSON indented by two, as in JavaScript.
fn pretty(value: &Value) -> String {
    serde_json::to_string_pretty(value).unwrap_or_default()
}
