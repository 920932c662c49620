//! For any sequence of updates, the experiment and the responses match a small independent model of UpGrade's
//! rules. Only a start excludes early visitors, an update never does.

use std::collections::{BTreeMap, HashMap};

use crate::recording::{Answered, http, send};
use crate::update_model::{COLUMNS, Model, Payload};
use proptest::prelude::*;
use proptest::sample::select;
use serde_json::{Value, json};
use upgrade_simulator::{Dialect, EmbeddedServer, ServerHandle};

const ID: &str = "0a0a0a0a-0000-4000-8000-000000000001";
const SITE: &str = "Algebra";

/// A difference of a body from the data that was read.
#[derive(Clone, Debug)]
enum Change {
    Column(&'static str, usize),
    Code(usize, usize),
    Label(usize),
    MoreConditions,
    FewerConditions(usize),
    MorePoints,
    FewerPoints(usize),
    Site(usize, usize),
    Early(usize, bool),
    PayloadValue(usize, usize),
    PayloadKind(usize, &'static str),
    PayloadPoint(usize, usize),
    PayloadCondition(usize, usize),
    MorePayloads(usize, usize),
    FewerPayloads(usize),
    Left(&'static str),
    Log(usize),
    Version(i64),
}

#[derive(Clone, Debug)]
enum Step {
    /// An update with changes. If the flag is set, its body is based on an older read.
    Put(Vec<Change>, bool),
    Move(&'static str),
}

fn change() -> impl Strategy<Value = Change> {
    let at = 0..4usize;
    let text = 0..3usize;
    let left = vec![
        "description",
        "startOn",
        "createdAt",
        "updatedAt",
        "versionNumber",
        "stratificationFactor",
        "stateTimeLogs",
        "backendVersion",
    ];
    prop_oneof![
        3 => (select(COLUMNS.to_vec()), 0..5usize).prop_map(|(name, to)| Change::Column(name, to)),
        2 => (at.clone(), text.clone()).prop_map(|(at, to)| Change::Code(at, to)),
        1 => at.clone().prop_map(Change::Label),
        1 => Just(Change::MoreConditions),
        1 => at.clone().prop_map(Change::FewerConditions),
        1 => Just(Change::MorePoints),
        1 => at.clone().prop_map(Change::FewerPoints),
        2 => (at.clone(), text.clone()).prop_map(|(at, to)| Change::Site(at, to)),
        2 => (at.clone(), any::<bool>()).prop_map(|(at, to)| Change::Early(at, to)),
        2 => (at.clone(), text).prop_map(|(at, to)| Change::PayloadValue(at, to)),
        2 => (at.clone(), select(vec!["string", "json", "csv"])).prop_map(|(at, to)| Change::PayloadKind(at, to)),
        2 => (at.clone(), at.clone()).prop_map(|(at, to)| Change::PayloadPoint(at, to)),
        1 => (at.clone(), at.clone()).prop_map(|(at, to)| Change::PayloadCondition(at, to)),
        2 => (at.clone(), at.clone()).prop_map(|(condition, point)| Change::MorePayloads(condition, point)),
        2 => at.clone().prop_map(Change::FewerPayloads),
        3 => select(left).prop_map(Change::Left),
        1 => at.prop_map(Change::Log),
        1 => (0..6i64).prop_map(Change::Version),
    ]
}

fn step() -> impl Strategy<Value = Step> {
    prop_oneof![
        5 => (prop::collection::vec(change(), 0..4), prop::bool::weighted(0.15))
            .prop_map(|(changes, is_old)| Step::Put(changes, is_old)),
        1 => select(vec!["inactive", "enrolling", "enrollmentComplete", "cancelled"]).prop_map(Step::Move),
    ]
}

/// The server and the model beside it.
struct Pair {
    server: ServerHandle,
    http: reqwest::Client,
    model: Model,
    /// Whether the early visitor is excluded.
    is_out: bool,
    /// The data that was read before an earlier update.
    old: Option<Value>,
    made: u32,
}

impl Pair {
    async fn new(dialect: Dialect, http: reqwest::Client) -> Self {
        let server = EmbeddedServer::builder().dialect(dialect).lasting_connections().start().await.unwrap();
        let model = Model {
            dialect,
            columns: BTreeMap::from([
                ("name".to_owned(), json!("Hints")),
                ("description".to_owned(), json!("")),
                ("tags".to_owned(), json!([])),
                ("startOn".to_owned(), Value::Null),
                ("state".to_owned(), json!("inactive")),
            ]),
            version: 1,
            conditions: Vec::new(),
            points: Vec::new(),
            payloads: Vec::new(),
            log: Vec::new(),
        };
        let mut pair = Self { server, http, model, is_out: false, old: None, made: 0 };
        pair.set_up().await;
        pair
    }

    /// Creates the experiment, and an early visitor of its first point.
    async fn set_up(&mut self) {
        let mut body = json!({
            "id": ID, "context": ["assign-prog"], "consistencyRule": "individual", "assignmentUnit": "individual",
            "postExperimentRule": "continue", "assignmentAlgorithm": "random", "filterMode": "includeAll",
            "type": "Simple", "queries": [], "factors": [], "conditionPayloads": [],
            "conditions": [self.condition("control"), self.condition("variant")],
            "partitions": [self.point(0)],
        });
        for (name, value) in &self.model.columns {
            body[name] = value.clone();
        }
        for list in ["experimentSegmentInclusion", "experimentSegmentExclusion"] {
            let none = json!({ "type": "private", "individualForSegment": [], "groupForSegment": [], "subSegments": [] });
            body[list] =
                if self.model.dialect == Dialect::V62 { json!({ "segment": none }) } else { json!([]) };
        }
        let made = self.call("POST", "/api/experiments", &body).await;
        assert_eq!(made.status, 200, "{}", made.body);
        let parts = |field: &str| made.body[field].as_array().unwrap().clone();
        let text = |part: &Value, field: &str| part[field].as_str().unwrap().to_owned();
        self.model.conditions = parts("conditions")
            .iter()
            .map(|c| (text(c, "id"), text(c, "conditionCode"), text(c, "twoCharacterId")))
            .collect();
        self.model.points = parts("partitions")
            .iter()
            .map(|p| (text(p, "id"), text(p, "site"), text(p, "target"), false))
            .collect();
        assert_eq!(self.says("init", &json!({})).await.status, 200);
        let visit = json!({ "data": { "site": SITE, "target": "t0" }, "status": "condition applied" });
        assert_eq!(self.says("mark", &visit).await.status, 200);
    }

    fn id(&mut self) -> String {
        self.made += 1;
        format!("0b0b0b0b-0000-4000-8000-{:012}", self.made)
    }

    fn condition(&mut self, code: &str) -> Value {
        let label = format!("C{}", self.made % 10);
        json!({ "id": self.id(), "conditionCode": code, "assignmentWeight": 50, "order": self.made, "twoCharacterId": label })
    }

    fn point(&mut self, at: u32) -> Value {
        json!({
            "id": self.id(), "site": SITE, "target": format!("t{at}"), "order": self.made, "excludeIfReached": false,
            "twoCharacterId": "P0",
        })
    }

    async fn call(&self, method: &str, path: &str, body: &Value) -> Answered {
        send(&self.http, self.server.url(), method, path, &HashMap::new(), body).await
    }

    async fn says(&self, call: &str, body: &Value) -> Answered {
        let headers = HashMap::from([("User-Id".to_owned(), "ada".to_owned())]);
        send(&self.http, self.server.url(), "POST", &format!("/api/v6/{call}"), &headers, body).await
    }

    async fn read(&self) -> Value {
        self.call("GET", &format!("/api/experiments/single/{ID}"), &Value::Null).await.body
    }

    async fn take(&mut self, step: &Step) -> Result<(), String> {
        match step {
            Step::Put(changes, is_old) => self.put(changes, *is_old).await?,
            Step::Move(to) => self.start_or_end(to).await,
        }
        self.compare().await
    }

    async fn start_or_end(&mut self, to: &str) {
        let starts = to == "enrolling" && self.model.state() != "enrollmentComplete";
        let early = |target: &str| self.model.points.iter().any(|p| p.3 && p.2 == target);
        // The original combines every site of such points with every target; here all points have one site.
        self.is_out |= starts && early("t0");
        let body = json!({ "experimentId": ID, "state": to });
        assert_eq!(self.call("POST", "/api/experiments/state", &body).await.status, 200);
        let from = self.model.state();
        self.model.log.push((None, from, to.to_owned()));
        self.model.columns.insert("state".into(), json!(to));
        self.model.version += 1;
    }

    async fn put(&mut self, changes: &[Change], is_old: bool) -> Result<(), String> {
        let read = self.read().await;
        let mut body = match &self.old {
            Some(old) if is_old => old.clone(),
            _ => read.clone(),
        };
        self.old = Some(read);
        // The server would store an older date as the new one.
        body.as_object_mut().unwrap().remove("updatedAt");
        for change in changes {
            self.apply(change, &mut body);
        }
        let is_taken = self.model.put(&body);
        let answer = self.call("PUT", &format!("/api/experiments/{ID}"), &body).await;
        if (answer.status == 200) != is_taken {
            return Err(format!("taken by the model: {is_taken}, but {}: {}", answer.status, answer.body));
        }
        if is_taken { self.compare_answer(&body, &answer.body) } else { Ok(()) }
    }

    fn apply(&mut self, change: &Change, body: &mut Value) {
        let count = |body: &Value, field: &str| body[field].as_array().map_or(0, Vec::len);
        let conditions = count(body, "conditions");
        let points = count(body, "partitions");
        let payloads = count(body, "conditionPayloads");
        let payload = |at: usize| at % payloads.max(1);
        match change {
            Change::Column(name, to) => body[*name] = column(self.model.dialect, name, *to),
            Change::Code(at, to) => {
                body["conditions"][at % conditions]["conditionCode"] = json!(format!("code{to}"))
            }
            Change::Label(at) => body["conditions"][at % conditions]["twoCharacterId"] = json!("ZZ"),
            Change::MoreConditions => {
                let made = self.condition("more");
                body["conditions"].as_array_mut().unwrap().push(made);
            }
            Change::FewerConditions(at) if conditions > 1 => {
                body["conditions"].as_array_mut().unwrap().remove(at % conditions);
            }
            Change::MorePoints => {
                let made = self.point(self.made);
                body["partitions"].as_array_mut().unwrap().push(made);
            }
            Change::FewerPoints(at) if points > 1 => {
                body["partitions"].as_array_mut().unwrap().remove(at % points);
            }
            Change::Site(at, to) => body["partitions"][at % points]["target"] = json!(format!("t{to}")),
            Change::Early(at, to) => body["partitions"][at % points]["excludeIfReached"] = json!(to),
            Change::PayloadValue(at, to) if payloads > 0 => {
                body["conditionPayloads"][payload(*at)]["payload"]["value"] = json!(format!("code{to}"));
            }
            Change::PayloadKind(at, to) if payloads > 0 => {
                body["conditionPayloads"][payload(*at)]["payload"]["type"] = json!(to);
            }
            Change::PayloadPoint(at, to) if payloads > 0 => {
                body["conditionPayloads"][payload(*at)]["decisionPoint"] =
                    body["partitions"][to % points]["id"].clone();
            }
            Change::PayloadCondition(at, to) if payloads > 0 => {
                let to = body["conditions"][to % conditions]["id"].clone();
                body["conditionPayloads"][payload(*at)]["parentCondition"] = to;
            }
            Change::MorePayloads(condition, point) => {
                let condition = body["conditions"][condition % conditions]["id"].clone();
                let point = body["partitions"][point % points]["id"].clone();
                let id = self.id();
                body["conditionPayloads"].as_array_mut().unwrap().push(json!({
                    "id": id, "parentCondition": condition, "decisionPoint": point,
                    "payload": { "type": "json", "value": "{}" },
                }));
            }
            Change::FewerPayloads(at) if payloads > 0 => {
                body["conditionPayloads"].as_array_mut().unwrap().remove(payload(*at));
            }
            Change::Left(name) => {
                body.as_object_mut().unwrap().remove(*name);
            }
            Change::Log(length) => {
                if let Some(log) = body.get_mut("stateTimeLogs").and_then(Value::as_array_mut) {
                    log.truncate(*length);
                }
            }
            Change::Version(to) => body["versionNumber"] = json!(to),
            _ => {}
        }
    }

    /// Compares the response: it shows the stored data, but the log of the request's body.
    fn compare_answer(&mut self, body: &Value, answer: &Value) -> Result<(), String> {
        let asked = match body.get("stateTimeLogs") {
            None if self.model.dialect == Dialect::V62 => None,
            given => Some(given.and_then(Value::as_array).map_or(0, Vec::len)),
        };
        let told = answer.get("stateTimeLogs").map(|log| log.as_array().map_or(0, Vec::len));
        same("the log of the answer", &told, &asked)?;
        // If the version does not rise, the response has the version of the body, if there is one.
        let version = answer["versionNumber"].as_i64();
        same("the version of the answer", &version.unwrap_or(self.model.version), &self.model.version)?;
        same("the payloads of the answer", &payloads(answer), &without_ids(&self.model.payloads))
    }

    async fn compare(&mut self) -> Result<(), String> {
        let read = self.read().await;
        for name in COLUMNS {
            let told = match (name, read[name].as_str()) {
                ("state", Some(state)) if self.model.dialect != Dialect::V62 => json!(stored(state)),
                _ => read[name].clone(),
            };
            same(name, &told, &self.model.columns[name])?;
        }
        same("versionNumber", &read["versionNumber"], &json!(self.model.version))?;
        let text = |part: &Value, field: &str| part[field].as_str().unwrap_or_default().to_owned();
        let rows = |field: &str| read[field].as_array().cloned().unwrap_or_default();
        let mut conditions: Vec<_> = rows("conditions")
            .iter()
            .map(|c| (text(c, "id"), text(c, "conditionCode"), text(c, "twoCharacterId")))
            .collect();
        conditions.sort();
        let mut modelled = self.model.conditions.clone();
        modelled.sort();
        same("conditions", &conditions, &modelled)?;
        let mut points: Vec<_> = rows("partitions")
            .iter()
            .map(|p| (text(p, "id"), text(p, "site"), text(p, "target"), p["excludeIfReached"] == true))
            .collect();
        points.sort();
        let mut modelled = self.model.points.clone();
        modelled.sort();
        same("points", &points, &modelled)?;
        same("payloads", &payloads(&read), &without_ids(&self.model.payloads))?;
        self.learn(&read);
        let log: Vec<_> = rows("stateTimeLogs")
            .iter()
            .map(|l| (stored(&text(l, "fromState")), stored(&text(l, "toState"))))
            .collect();
        let modelled: Vec<_> = self.model.log.iter().map(|l| (l.1.clone(), l.2.clone())).collect();
        same("the log", &log, &modelled)?;
        self.compare_visitor().await
    }

    /// Takes over the ids that the server made.
    fn learn(&mut self, read: &Value) {
        let known: Vec<String> = self.model.payloads.iter().filter_map(|p| p.id.clone()).collect();
        for entry in read["conditionPayloads"].as_array().unwrap() {
            let id = entry["id"].as_str().unwrap();
            let place = |p: &&mut Payload| {
                p.id.is_none()
                    && entry["parentCondition"] == *p.condition
                    && entry["decisionPoint"] == *p.point
            };
            if !known.iter().any(|known| known == id)
                && let Some(unread) = self.model.payloads.iter_mut().find(place)
            {
                unread.id = Some(id.to_owned());
            }
        }
        for (log, entry) in self.model.log.iter_mut().zip(read["stateTimeLogs"].as_array().unwrap()) {
            log.0 = entry["id"].as_str().map(str::to_owned);
        }
    }

    async fn compare_visitor(&self) -> Result<(), String> {
        let assigned = self.says("assign", &json!({ "context": "assign-prog" })).await;
        let takes_part = assigned.body.as_array().is_some_and(|points| !points.is_empty());
        same("whether ada takes part", &takes_part, &(self.model.state() == "enrolling" && !self.is_out))
    }
}

fn stored(state: &str) -> String {
    match state {
        "running" => "enrolling",
        "paused" => "enrollmentComplete",
        "completed" => "cancelled",
        other => other,
    }
    .to_owned()
}

fn column(dialect: Dialect, name: &str, to: usize) -> Value {
    match name {
        "tags" => json!([format!("tag{}", to % 2)]),
        "startOn" if to == 0 => Value::Null,
        "startOn" => json!(format!("203{to}-01-01T00:00:00.000Z")),
        "state" if dialect == Dialect::V62 => {
            json!(["inactive", "enrolling", "enrollmentComplete", "cancelled", "enrolling"][to])
        }
        "state" => json!(["inactive", "running", "paused", "completed", "enrolling"][to]),
        _ => json!(format!("{name}{to}")),
    }
}

fn payloads(told: &Value) -> Vec<Payload> {
    let text = |value: &Value| value.as_str().unwrap_or_default().to_owned();
    let all = told["conditionPayloads"].as_array().unwrap().iter();
    let mut all: Vec<Payload> = all
        .map(|p| Payload {
            id: None,
            condition: text(&p["parentCondition"]),
            point: text(&p["decisionPoint"]),
            kind: text(&p["payload"]["type"]),
            value: text(&p["payload"]["value"]),
        })
        .collect();
    all.sort();
    all
}

fn without_ids(payloads: &[Payload]) -> Vec<Payload> {
    let mut all: Vec<Payload> = payloads.iter().map(|p| Payload { id: None, ..p.clone() }).collect();
    all.sort();
    all
}

fn same<T: PartialEq + std::fmt::Debug>(what: &str, ours: &T, modelled: &T) -> Result<(), String> {
    if ours == modelled {
        return Ok(());
    }
    Err(format!("{what}: {ours:?}, by the model {modelled:?}"))
}

/// Returns a configuration with few cases, unless the environment sets a number.
fn config() -> ProptestConfig {
    let config = match std::env::var_os("PROPTEST_CASES") {
        Some(_) => ProptestConfig::default(),
        None => ProptestConfig::with_cases(32),
    };
    ProptestConfig { failure_persistence: None, ..config }
}

#[test]
fn any_updates_give_the_experiment_of_the_model() {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
    let http = http();
    let dialect = select(vec![Dialect::V65, Dialect::V62]);
    let steps = prop::collection::vec(step(), 1..14);
    proptest!(config(), |(dialect in dialect, steps in steps)| {
        let differs = runtime.block_on(async {
            let mut pair = Pair::new(dialect, http.clone()).await;
            for (at, step) in steps.iter().enumerate() {
                if let Err(why) = pair.take(step).await {
                    return Some(format!("after step {at}, {step:?}: {why}"));
                }
            }
            pair.server.shutdown().await;
            None
        });
        prop_assert!(differs.is_none(), "{}", differs.unwrap_or_default());
    });
}
