//! Feature flags: created, changed, and assigned to students by lists.

use std::collections::HashMap;

use crate::recording::{Answered, http, send};
use serde_json::{Value, json};
use upgrade_simulator::{EmbeddedServer, ServerHandle};

const UNKNOWN_ID: &str = "00000000-0000-4000-8000-000000000000";

struct Flags {
    server: ServerHandle,
    http: reqwest::Client,
}

impl Flags {
    async fn new() -> Self {
        let server = EmbeddedServer::builder().in_memory().start().await.unwrap();
        Self { server, http: http() }
    }

    async fn ask(&self, method: &str, path: &str, body: Value) -> Answered {
        self.send(method, path, None, body).await
    }

    async fn send(&self, method: &str, path: &str, student: Option<&str>, body: Value) -> Answered {
        let header = student.map(|student| ("User-Id".to_owned(), student.to_owned()));
        let headers: HashMap<_, _> = header.into_iter().collect();
        send(&self.http, self.server.url(), method, &format!("/api/{path}"), &headers, &body).await
    }

    async fn made(&self, body: Value) -> Value {
        let made = self.ask("POST", "flags", body).await;
        assert_eq!(made.status, 200, "{}", made.body);
        made.body
    }

    /// Adds a list with one student to a flag.
    async fn listed(&self, side: &str, flag: &Value, student: &str) -> Value {
        let body = json!({ "id": flag["id"], "enabled": true, "listType": "Individual",
            "segment": segment(json!([student]), json!([])) });
        let made = self.ask("POST", &format!("flags/{side}List"), body).await;
        assert_eq!(made.status, 200, "{}", made.body);
        made.body
    }

    async fn known(&self, student: &str, classes: Value) {
        let body = json!({ "group": { "classId": classes } });
        assert_eq!(self.send("POST", "v6/init", Some(student), body).await.status, 200);
    }

    async fn keys(&self, student: &str) -> Value {
        let told =
            self.send("POST", "v6/featureflag", Some(student), json!({ "context": "assign-prog" })).await;
        assert_eq!(told.status, 200, "{}", told.body);
        told.body
    }
}

fn segment(users: Value, groups: Value) -> Value {
    json!({ "name": "list", "context": "assign-prog", "type": "private", "userIds": users,
            "groups": groups, "subSegmentIds": [] })
}

fn flag(key: &str, filter: &str) -> Value {
    json!({ "name": format!("flag {key}"), "key": key, "description": "", "status": "enabled",
            "context": ["assign-prog"], "tags": ["t"], "filterMode": filter })
}

fn why(answer: &Answered) -> (u16, &str) {
    (answer.status, answer.body["message"].as_str().unwrap_or_default())
}

#[tokio::test]
async fn a_flag_is_made_read_changed_and_deleted() {
    let flags = Flags::new().await;
    let mut body = flag("HINTS", "includeAll");
    body["id"] = json!(UNKNOWN_ID);
    let made = flags.made(body.clone()).await;
    assert_ne!(made["id"], UNKNOWN_ID, "the server chooses the id");
    assert_eq!((&made["versionNumber"], &made["status"]), (&json!(1), &json!("enabled")));
    let id = made["id"].as_str().unwrap();
    let all = flags.ask("GET", "flags", Value::Null).await.body;
    assert_eq!(all, json!([made]));
    let single = flags.ask("GET", &format!("flags/{id}"), Value::Null).await.body;
    assert_eq!(single["featureFlagSegmentInclusion"], json!([]));

    let status = json!({ "flagId": id, "status": "disabled" });
    let changed = flags.ask("PATCH", "flags/status", status).await.body;
    assert_eq!((&changed["status"], &changed["versionNumber"]), (&json!("disabled"), &json!(2)));
    let filter = json!({ "flagId": id, "filterMode": "excludeAll" });
    assert_eq!(flags.ask("PATCH", "flags/filterMode", filter).await.body["filterMode"], "excludeAll");
    body["name"] = json!("other");
    let put = flags.ask("PUT", &format!("flags/{id}"), body).await;
    assert_eq!(
        (put.status, &put.body["name"], &put.body["versionNumber"]),
        (200, &json!("other"), &json!(4))
    );

    let deeds = flags.ask("POST", "audit", json!({ "skip": 0, "take": 9 })).await.body;
    let kinds: Vec<&str> =
        deeds["nodes"].as_array().unwrap().iter().map(|d| d["type"].as_str().unwrap()).collect();
    let expected =
        ["featureFlagUpdated", "featureFlagUpdated", "featureFlagStatusChanged", "featureFlagCreated"];
    assert_eq!(kinds, expected);
    let gone = flags.ask("DELETE", &format!("flags/{id}"), Value::Null).await;
    assert_eq!((gone.status, &gone.body[0]["id"]), (200, &json!(id)));
    assert_eq!(flags.ask("GET", &format!("flags/{id}"), Value::Null).await.status, 204);
    assert_eq!(flags.ask("DELETE", &format!("flags/{id}"), Value::Null).await.status, 404);
}

#[tokio::test]
async fn invalid_and_duplicate_flags_are_refused() {
    let flags = Flags::new().await;
    let made = flags.made(flag("HINTS", "includeAll")).await;
    let twice = flags.ask("POST", "flags", flag("HINTS", "includeAll")).await;
    assert_eq!(why(&twice), (409, "A flag with this key already exists for this app-context"));
    assert_eq!(twice.body["type"], "Feature Flag with same key already exists for this app-context");
    let mut again = made.clone();
    again["id"] = made["id"].clone();
    let path = format!("flags/{}", made["id"].as_str().unwrap());
    assert_eq!(flags.ask("PUT", &path, again).await.status, 200, "its own key is not another's");
    for (field, value) in [
        ("name", json!("")),
        ("key", Value::Null),
        ("status", json!("on")),
        ("context", json!([])),
        ("filterMode", json!("some")),
        ("tags", json!([1])),
    ] {
        let mut body = flag("OTHER", "includeAll");
        body[field] = value;
        assert_eq!(flags.ask("POST", "flags", body).await.status, 400, "{field}");
    }
    let mut elsewhere = flag("OTHER", "includeAll");
    elsewhere["context"] = json!(["nowhere"]);
    let told = "The app context \"nowhere\" is not defined in CONTEXT_METADATA.";
    assert_eq!(why(&flags.ask("POST", "flags", elsewhere).await), (400, told));
    assert_eq!(flags.ask("GET", "flags/x", Value::Null).await.status, 400);
    let unknown = json!({ "flagId": UNKNOWN_ID, "status": "enabled" });
    let told = "Cannot read properties of null (reading 'context')";
    assert_eq!(why(&flags.ask("PATCH", "flags/status", unknown).await), (500, told));
}

#[tokio::test]
async fn lists_decide_which_students_get_a_flag() {
    let flags = Flags::new().await;
    for (student, classes) in [("ada", json!(["c1"])), ("bob", json!(["c2"])), ("cleo", json!([]))] {
        flags.known(student, classes).await;
    }
    let (some, all) =
        (flags.made(flag("SOME", "excludeAll")).await, flags.made(flag("ALL", "includeAll")).await);
    let list = flags.listed("inclusion", &some, "ada").await;
    flags.listed("exclusion", &all, "bob").await;
    assert_eq!(list["featureFlag"]["key"], "SOME");
    assert_eq!(list["segment"]["individualForSegment"][0]["userId"], "ada");
    assert_eq!(flags.keys("ada").await, json!(["ALL", "SOME"]), "those for all come first");
    assert_eq!(flags.keys("bob").await, json!([]));
    assert_eq!(flags.keys("cleo").await, json!(["ALL"]));

    let id = list["segment"]["id"].as_str().unwrap();
    let mut segment = segment(json!([]), json!([{ "type": "classId", "groupId": "c2" }]));
    segment["id"] = json!(id);
    let mut body = json!({ "id": some["id"], "enabled": true, "listType": "classId", "segment": segment });
    let path = format!("flags/inclusionList/{id}");
    assert_eq!(flags.ask("PUT", &path, body.clone()).await.body["listType"], "classId");
    assert_eq!((flags.keys("ada").await, flags.keys("bob").await), (json!(["ALL"]), json!(["SOME"])));
    body["enabled"] = json!(false);
    assert_eq!(flags.ask("PUT", &path, body.clone()).await.body["enabled"], false);
    assert_eq!(flags.keys("bob").await, json!([]), "a list that is not enabled is none");
    let strange = flags.ask("PUT", &format!("flags/inclusionList/{UNKNOWN_ID}"), body).await;
    assert_eq!(strange.status, 500);

    let told = flags.ask("DELETE", &path, Value::Null).await;
    assert_eq!((told.status, &told.body["id"]), (200, &json!(id)));
    let gone = flags.ask("DELETE", &path, Value::Null).await;
    assert_eq!(why(&gone), (500, format!("Segment with ID {id} not found for inclusion").as_str()));
    let body = json!({ "id": UNKNOWN_ID, "enabled": true, "listType": "Individual",
        "segment": self::segment(json!([]), json!([])) });
    assert_eq!(flags.ask("POST", "flags/inclusionList", body).await.status, 500);
}

#[tokio::test]
async fn a_segment_in_a_list_of_a_flag_is_used() {
    let flags = Flags::new().await;
    let mut public = segment(json!(["ada"]), json!([]));
    (public["type"], public["name"]) = (json!("public"), json!("club"));
    let club = flags.ask("POST", "segments", public).await.body;
    let made = flags.made(flag("CLUB", "excludeAll")).await;
    let mut list = segment(json!([]), json!([]));
    list["subSegmentIds"] = json!([club["id"]]);
    let body = json!({ "id": made["id"], "enabled": true, "listType": "Segment", "segment": list });
    assert_eq!(flags.ask("POST", "flags/inclusionList", body).await.status, 200);
    flags.known("ada", json!([])).await;
    assert_eq!(flags.keys("ada").await, json!(["CLUB"]));
    let all = flags.ask("GET", "segments", Value::Null).await.body;
    let shown = all["segmentsData"].as_array().unwrap().iter().find(|one| one["id"] == club["id"]).unwrap();
    assert_eq!(shown["status"], "used");
    let tie = &all["featureFlagSegmentInclusionData"][0];
    assert_eq!(
        (&tie["featureFlag"]["name"], &tie["segment"]["subSegments"][0]["id"]),
        (&made["name"], &club["id"])
    );
}

#[tokio::test]
async fn groups_of_a_call_replace_the_stored_groups_or_are_added_to_them() {
    let flags = Flags::new().await;
    flags.known("ada", json!(["c1"])).await;
    for (key, class) in [("ONE", "c1"), ("TWO", "c2")] {
        let made = flags.made(flag(key, "excludeAll")).await;
        let groups = json!([{ "type": "classId", "groupId": class }]);
        let body = json!({ "id": made["id"], "enabled": true, "listType": "classId", "segment": segment(json!([]), groups) });
        assert_eq!(flags.ask("POST", "flags/inclusionList", body).await.status, 200);
    }
    let with = |student: &'static str, stored: bool| {
        let body = json!({ "context": "assign-prog", "groupsForSession": { "classId": ["c2"] },
            "includeStoredUserGroups": stored });
        flags.send("POST", "v6/featureflag", Some(student), body)
    };
    assert_eq!(flags.keys("ada").await, json!(["ONE"]));
    assert_eq!(with("ada", true).await.body, json!(["ONE", "TWO"]));
    assert_eq!(with("ada", false).await.body, json!(["TWO"]));
    assert_eq!(with("stranger", false).await.body, json!(["TWO"]));
    assert_eq!(flags.keys("ada").await, json!(["ONE"]), "the groups of the call are not stored");
}
