//! `/users` and `/login/user`: the accounts of administrators. No mail is sent.

pub(crate) mod audit;
pub(crate) mod gate;
pub(crate) mod jobs;
pub(crate) mod settings;

use serde_json::{Value, json};

use crate::core::{ApiRequest, Core};
use crate::wire::body::text as given;
use crate::wire::fault::Fault;
use crate::wire::paging::{self, by_name};
use crate::wire::row::row;
use crate::wire::shape::{filled, has, number, one_of, optional, text};
use crate::world::model::{Account, Stamp};
use crate::world::table::key;

/// The account that exists from the start.
const FIRST: &str = "admin@example.com";
const ROLES: [&str; 4] = ["admin", "creator", "user manager", "reader"];
const KEYS: [&str; 5] = ["all", "firstName", "lastName", "email", "role"];

/// `POST /users/paginated`.
pub(crate) fn paginated(core: &mut Core, asked: &ApiRequest) -> Result<Value, Fault> {
    let body = &asked.body;
    if !is_page(body) {
        return Err(Fault::body());
    }
    let mut found: Vec<&Account> = core.world.accounts.values().collect();
    found.retain(|account| matches(account, &body["searchParams"]));
    let sort = &body["sortParams"];
    if let Some(column) = sort["key"].as_str() {
        found.sort_by(|a, b| by_name(&column_of(a, column), &column_of(b, column)));
        if sort["sortAs"] == "DESC" {
            found.reverse();
        }
    }
    let total = found.len();
    let nodes = paging::cut(found, body)?.into_iter().map(row).collect();
    Ok(paging::page(total, nodes, body))
}

fn is_page(body: &Value) -> bool {
    let is_search = |search: &Value| has(search, "key", one_of(&KEYS)) && has(search, "string", text);
    let is_sort =
        |sort: &Value| has(sort, "key", one_of(&KEYS)) && has(sort, "sortAs", one_of(&["ASC", "DESC"]));
    has(body, "skip", number)
        && has(body, "take", number)
        && has(body, "searchParams", optional(is_search))
        && has(body, "sortParams", optional(is_sort))
}

fn matches(account: &Account, search: &Value) -> bool {
    let Some(wanted) = search["string"].as_str().map(str::to_lowercase) else { return true };
    let holds = |column: &&str| column_of(account, column).to_lowercase().contains(&wanted);
    match search["key"].as_str() {
        Some("all") | None => KEYS[1..].iter().any(holds),
        Some(column) => holds(&column),
    }
}

fn column_of(account: &Account, column: &str) -> String {
    row(account)[column].as_str().unwrap_or_default().to_owned()
}

/// `GET /users/:email`.
pub(crate) fn single(core: &mut Core, asked: &ApiRequest) -> Result<Value, Fault> {
    Ok(core.world.accounts.get(&key(&[&asked.id])).into_iter().map(row).collect())
}

/// `POST /users`.
pub(crate) fn upsert(core: &mut Core, asked: &ApiRequest) -> Result<Value, Fault> {
    if !is_account(&asked.body) {
        return Err(Fault::body());
    }
    Ok(save(core, &asked.body))
}

/// `POST /login/user`: the role in the body is ignored.
pub(crate) fn login(core: &mut Core, asked: &ApiRequest) -> Result<Value, Fault> {
    if !is_account(&asked.body) {
        return Err(Fault::body());
    }
    let mut body = asked.body.clone();
    body["role"] = Value::Null;
    Ok(save(core, &body))
}

/// `POST /users/details`: changes a known account.
pub(crate) fn details(core: &mut Core, asked: &ApiRequest) -> Result<Value, Fault> {
    if !is_account(&asked.body) {
        return Err(Fault::body());
    }
    let email = given(&asked.body, "email").unwrap_or_default();
    if !core.world.accounts.contains(&key(&[&email])) {
        return Ok(json!([]));
    }
    Ok(json!([save(core, &asked.body)]))
}

/// `DELETE /users/:email`: returns the deleted rows.
pub(crate) fn delete(core: &mut Core, asked: &ApiRequest) -> Result<Value, Fault> {
    Ok(core.world.accounts.remove(&key(&[&asked.id])).iter().map(row).collect())
}

fn save(core: &mut Core, body: &Value) -> Value {
    let now = core.now();
    let email = given(body, "email").unwrap_or_default();
    let at = key(&[&email]);
    let old = core.world.accounts.get(&at).cloned().unwrap_or_else(|| blank(email, &now));
    let or = |field: &str, old: Option<String>| given(body, field).or(old);
    let account = Account {
        stamp: Stamp { updated_at: now, ..old.stamp },
        first_name: or("firstName", old.first_name),
        last_name: or("lastName", old.last_name),
        role: or("role", None).unwrap_or(old.role),
        image_url: or("imageUrl", old.image_url),
        local_time_zone: or("localTimeZone", old.local_time_zone),
        email: old.email,
    };
    let answer = row(&account);
    core.world.accounts.insert(at, account);
    answer
}

fn blank(email: String, now: &str) -> Account {
    Account {
        stamp: Stamp::new(now),
        email,
        first_name: None,
        last_name: None,
        role: "reader".to_owned(),
        image_url: None,
        local_time_zone: None,
    }
}

fn is_account(body: &Value) -> bool {
    has(body, "email", |email| filled(email) && email.as_str().is_some_and(is_email))
        && ["firstName", "lastName", "localTimeZone"].iter().all(|field| has(body, field, optional(text)))
        && has(body, "role", optional(one_of(&ROLES)))
        && has(body, "imageUrl", optional(|url| url.as_str().is_some_and(is_url)))
}

fn is_email(text: &str) -> bool {
    let parts = text.split_once('@');
    parts.is_some_and(|(name, host)| !name.is_empty() && host.contains('.') && !text.contains(' '))
}

fn is_url(text: &str) -> bool {
    let rest = text.strip_prefix("https://").or_else(|| text.strip_prefix("http://")).unwrap_or(text);
    rest.split('/').next().is_some_and(|host| host.contains('.') && !rest.contains(' '))
}

/// Makes sure that there is an account.
pub(crate) fn ensure_account(core: &mut Core) {
    let account = Account { role: "admin".to_owned(), ..blank(FIRST.to_owned(), &core.now()) };
    core.world.accounts.insert_first(key(&[FIRST]), account);
}
