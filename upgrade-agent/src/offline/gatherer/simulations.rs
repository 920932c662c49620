//! Actions with simulated students: a visit, a balance test, a journey.

use serde_json::{Value, json};

use super::super::lexicon::{self, Concept as C};
use super::super::slots::{self, names, points, students};
use super::super::text::{Text, Word};
use super::super::wire::{self, ContextInfo};
use super::create::is_absent;
use super::subject::Subject;
use super::{Draft, Flow, Gatherer, Params};

impl Gatherer<'_> {
    pub(super) fn visit(&self, draft: Option<&Draft>) -> Flow<(Params, Vec<&'static str>)> {
        let mut params = draft.map(|draft| draft.params.clone()).unwrap_or_default();
        let contexts = self.contexts()?;
        self.take_user(&mut params, draft, &contexts)?;
        self.take_groups(&mut params, &contexts);
        let experiment = self.simulated_experiment(&contexts, false)?;
        if let Some(context) = self.context_of(&contexts, experiment.as_ref()) {
            params.insert("context".into(), json!(context.name));
        }
        self.take_place(&mut params, &contexts, experiment.as_ref())?;
        let needed = ["user_id", "context", "site", "target"];
        let missing = needed.into_iter().filter(|name| is_absent(&params, name)).collect();
        Ok((params, missing))
    }

    pub(super) fn balance(&self, draft: Option<&Draft>) -> Flow<(Params, Vec<&'static str>)> {
        let mut params = draft.map(|draft| draft.params.clone()).unwrap_or_default();
        let contexts = self.contexts()?;
        if is_absent(&params, "experiment_id") {
            let experiment = if draft.is_some() {
                self.answered_experiment()?
            } else {
                self.simulated_experiment(&contexts, true)?
            };
            params.extend(
                experiment.and_then(|one| Some(("experiment_id".to_owned(), one.get("id")?.clone()))),
            );
        }
        let text = self.without_known(&contexts)?;
        params.extend(students::count(&text).map(|count| ("num_users".to_owned(), json!(count))));
        params.extend(mode(self.text).map(|mode| ("mode".to_owned(), json!(mode))));
        self.take_groups(&mut params, &contexts);
        if let (Some(site), Some(target)) = self.any_place(&contexts) {
            params.insert("site".into(), json!(site));
            params.insert("target".into(), json!(target));
        }
        let missing = ["experiment_id"].into_iter().filter(|name| is_absent(&params, name)).collect();
        Ok((params, missing))
    }

    pub(super) fn journey(&self, draft: Option<&Draft>) -> Flow<(Params, Vec<&'static str>)> {
        let mut params = draft.map(|draft| draft.params.clone()).unwrap_or_default();
        let contexts = self.contexts()?;
        let experiment = match (self.simulated_experiment(&contexts, true)?, params.get("experiment_id")) {
            (None, Some(id)) => {
                Some(self.need("get_experiment_details", json!({ "experiment_id": id }))?.clone())
            }
            (named, _) => named,
        };
        params.extend(
            experiment.as_ref().and_then(|one| Some(("experiment_id".to_owned(), one.get("id")?.clone()))),
        );
        if let Some(context) = self.context_of(&contexts, experiment.as_ref()) {
            params.insert("context".into(), json!(context.name));
        }
        let mut ids = self.students(&contexts)?;
        if ids.is_empty() {
            ids.extend(self.student_of_journey(&contexts, experiment.as_ref()));
        }
        if !ids.is_empty() {
            params.insert("user_ids".into(), json!(ids));
        } else if let Some(count) = students::count(&self.without_known(&contexts)?) {
            params.insert("num_users".into(), json!(count));
        }
        self.take_groups(&mut params, &contexts);
        let steps = self.steps(&contexts, experiment.as_ref());
        if !steps.is_empty() {
            params.insert("steps".into(), json!(steps));
        }
        if self.insists() {
            params.insert("force".into(), json!(true));
        }
        let mut missing: Vec<_> = ["context"].into_iter().filter(|name| is_absent(&params, name)).collect();
        // Steps of a journey that were not understood are asked for, because a shorter journey is a different
        // one.
        let asked = draft.and_then(Draft::asked_for) == Some("steps");
        if self.loses_steps(&contexts, experiment.as_ref()) || asked && steps.is_empty() {
            params.remove("steps");
            missing.push("steps");
        }
        Ok((params, missing))
    }

    /// "The journey of ada".
    fn student_of_journey(&self, contexts: &[ContextInfo], experiment: Option<&Value>) -> Option<String> {
        let is_journey = |word: &Word| lexicon::concepts(word).contains(&C::Journey);
        let at = self.text.words.iter().position(is_journey)?;
        self.text.words.get(at + 1).filter(|word| word.is(&["of", "for", "by"]))?;
        let id = self.text.words.get(at + 2)?;
        let own = experiment.and_then(|one| one.get("name")?.as_str());
        let free = slots::is_free(id) && !is_place(contexts, &id.raw) && id.raw.parse::<u32>().is_err();
        (free && !own.is_some_and(|name| names::has_word(name, &id.low))).then(|| id.raw.clone())
    }

    /// Whether the text after a "then" did not become a step.
    fn loses_steps(&self, contexts: &[ContextInfo], experiment: Option<&Value>) -> bool {
        let Some(then) = self.text.words.iter().position(|word| !word.quoted && word.is(&["then"])) else {
            return false;
        };
        let after =
            Text { words: self.text.words[then..].to_vec(), quotes: Vec::new(), asks: self.text.asks };
        let context = self.context_of(contexts, experiment);
        clauses(&after).iter().any(|clause| step(clause, context, experiment, true).is_none())
    }

    /// The experiment of the simulation, with its details.
    fn simulated_experiment(&self, contexts: &[ContextInfo], needed: bool) -> Flow<Option<Value>> {
        let text = self.without_known(contexts)?;
        match self.subject_in(&text)? {
            Subject::One(named) => {
                Ok(Some(self.need("get_experiment_details", json!({ "experiment_id": named.id }))?.clone()))
            }
            Subject::Several(all) if needed => Err(self.ambiguous(&all)),
            Subject::Unknown(name) if slots::is_written_as_name(&text, &name) => Err(self.unknown(&name)?),
            _ => Ok(None),
        }
    }

    fn answered_experiment(&self) -> Flow<Option<Value>> {
        match self.answered()? {
            Subject::One(named) => Ok(Some(json!({ "id": named.id }))),
            Subject::Unknown(name) => Err(self.unknown(&name)?),
            Subject::Several(all) => Err(self.ambiguous(&all)),
            Subject::Unsaid => Ok(None),
        }
    }

    /// The message without words that name other things than an experiment.
    pub(super) fn without_known(&self, contexts: &[ContextInfo]) -> Flow<Text> {
        let experiments = wire::names(self.need("get_experiment_names", json!({}))?);
        let students = self.students(contexts)?;
        let kinds: Vec<String> = contexts.iter().flat_map(|context| context.groups.clone()).collect();
        let groups = students::groups(self.text, &kinds);
        let is_experiment = |word: &str| experiments.iter().any(|named| names::has_word(&named.name, word));
        let mut text = self.text.clone();
        text.words.retain(|word| {
            let student = students.contains(&word.raw) || groups.iter().any(|(_, id)| *id == word.raw);
            let kind = students::kind_of(&word.raw, &kinds).is_some();
            let place = is_place(contexts, &word.raw) && !is_experiment(&word.low);
            !(student || kind || place)
        });
        text.quotes.retain(|quote| !students.contains(quote) && !is_place(contexts, quote));
        Ok(text)
    }

    /// The students that the message names.
    fn students(&self, contexts: &[ContextInfo]) -> Flow<Vec<String>> {
        let experiments = wire::names(self.need("get_experiment_names", json!({}))?);
        let kinds: Vec<String> = contexts.iter().flat_map(|context| context.groups.clone()).collect();
        let other = |id: &String| {
            let experiment = experiments.iter().any(|named| names::has_word(&named.name, id));
            experiment || is_place(contexts, id) || students::kind_of(id, &kinds).is_some()
        };
        let mut named = students::users(self.text);
        let announced = students::announced(self.text);
        named.retain(|id| !other(id) || announced.contains(id));
        if named.is_empty() {
            let led = students::after_a_lead(self.text);
            named = led.map(|(at, _)| students::listed(self.text, at)).unwrap_or_default();
            named.retain(|id| !other(id));
        }
        Ok(named)
    }

    fn take_user(&self, params: &mut Params, draft: Option<&Draft>, contexts: &[ContextInfo]) -> Flow<()> {
        let asked = draft.and_then(Draft::asked_for) == Some("user_id");
        let named = self.students(contexts)?.into_iter().next();
        let named = named.or_else(|| self.before_the_verb(contexts)).filter(|_| draft.is_none() || asked);
        let whole = || asked.then(|| self.facts.message.trim().to_owned());
        params.extend(named.or_else(whole).map(|user| ("user_id".to_owned(), json!(user))));
        Ok(())
    }

    /// "Bob visits SelectSection", "a visit of bob".
    fn before_the_verb(&self, contexts: &[ContextInfo]) -> Option<String> {
        let visits = |word: &Word| lexicon::concepts(word).contains(&C::Visit);
        let at = self.text.words.iter().position(visits)?;
        let of = self.text.words.get(at + 1).filter(|word| word.is(&["of", "by", "from", "for"]));
        let before = match of {
            Some(_) => self.text.words.get(at + 2)?,
            None => self.text.words.get(at.checked_sub(1)?)?,
        };
        let id = slots::is_free(before) && !is_place(contexts, &before.raw);
        id.then(|| before.raw.clone())
    }

    fn take_groups(&self, params: &mut Params, contexts: &[ContextInfo]) {
        let kinds: Vec<String> = contexts.iter().flat_map(|context| context.groups.clone()).collect();
        let mut of = serde_json::Map::new();
        let mut at = serde_json::Map::new();
        for (kind, id) in students::groups(&self.text_before_then(), &kinds) {
            at.entry(kind.clone()).or_insert_with(|| json!(id));
            if let Value::Array(ids) = of.entry(kind).or_insert_with(|| json!([])) {
                ids.push(json!(id));
            }
        }
        if !of.is_empty() {
            params.insert("group".into(), of.into());
            params.insert("working_group".into(), at.into());
        }
    }

    /// The students' description before their first step.
    fn text_before_then(&self) -> Text {
        let end = self.text.words.iter().position(|word| word.is(&["then"])).unwrap_or(self.text.words.len());
        Text { words: self.text.words[..end].to_vec(), quotes: Vec::new(), asks: self.text.asks }
    }

    fn context_of<'c>(
        &self,
        contexts: &'c [ContextInfo],
        experiment: Option<&Value>,
    ) -> Option<&'c ContextInfo> {
        let own = experiment.and_then(wire::context_of);
        let named = || {
            self.named_context(contexts)
                .filter(|context| own.is_none() || own.as_ref() == Some(&context.name))
        };
        let of_place = || {
            let offers = |context: &&ContextInfo| self.place_of(context) != (None, None);
            let mut fitting = contexts.iter().filter(offers);
            fitting.next().filter(|_| fitting.next().is_none())
        };
        let only = || contexts.first().filter(|_| contexts.len() == 1);
        named()
            .or_else(|| contexts.iter().find(|context| own.as_ref() == Some(&context.name)))
            .or_else(of_place)
            .or_else(only)
    }

    fn place_of(&self, context: &ContextInfo) -> (Option<String>, Option<String>) {
        points::point(self.text, &context.sites, &context.targets)
    }

    fn any_place(&self, contexts: &[ContextInfo]) -> (Option<String>, Option<String>) {
        let mut places = contexts.iter().map(|context| self.place_of(context));
        places.find(|place| place.0.is_some() && place.1.is_some()).unwrap_or_default()
    }

    /// The place in the message; for a site alone, its only target in experiments.
    fn take_place(
        &self,
        params: &mut Params,
        contexts: &[ContextInfo],
        experiment: Option<&Value>,
    ) -> Flow<()> {
        let name = params.get("context").and_then(Value::as_str).unwrap_or_default().to_owned();
        let context = contexts.iter().find(|context| context.name == name);
        let (site, target) = context.map(|context| self.place_of(context)).unwrap_or_default();
        let mut known = experiment.map(wire::points).unwrap_or_default();
        if experiment.is_none()
            && (site.is_some() || target.is_some())
            && !(site.is_some() && target.is_some())
        {
            let all = self.need("get_all_experiments", json!({}))?;
            let here = wire::experiments(all)
                .into_iter()
                .filter(|one| wire::context_of(one).as_ref() == Some(&name));
            known = here.flat_map(wire::points).collect();
        }
        known.retain(|(at, what)| {
            site.as_ref().is_none_or(|site| site == at) && target.as_ref().is_none_or(|target| target == what)
        });
        known.sort();
        known.dedup();
        let only = known.first().filter(|_| known.len() == 1);
        let site = site.or_else(|| only.map(|(site, _)| site.clone()));
        let target = target.or_else(|| only.map(|(_, target)| target.clone()));
        params.extend(site.map(|site| ("site".to_owned(), json!(site))));
        params.extend(target.map(|target| ("target".to_owned(), json!(target))));
        Ok(())
    }

    /// The steps of the students, one per clause; none if the message has no steps.
    fn steps(&self, contexts: &[ContextInfo], experiment: Option<&Value>) -> Vec<Value> {
        let clauses = clauses(self.text);
        let context = self.context_of(contexts, experiment);
        let steps: Vec<Value> = clauses
            .iter()
            .enumerate()
            .filter_map(|(at, clause)| step(clause, context, experiment, at > 0))
            .collect();
        let tells = steps.iter().any(|step| step["do"] == "visit") || steps.len() > 1;
        if tells { steps } else { Vec::new() }
    }
}

/// The message split at "then", commas and "and".
fn clauses(text: &Text) -> Vec<Text> {
    let mut clauses = vec![Text::default()];
    for word in &text.words {
        let cuts = word.new_clause || word.is(&["then", "and", "afterwards", "while"]);
        if cuts && clauses.last().is_some_and(|clause| !clause.words.is_empty()) {
            clauses.push(Text::default());
        }
        if let Some(clause) = clauses.last_mut().filter(|_| !word.is(&["then", "and"])) {
            clause.words.push(word.clone());
        }
    }
    clauses
}

fn step(
    clause: &Text,
    context: Option<&ContextInfo>,
    experiment: Option<&Value>,
    later: bool,
) -> Option<Value> {
    let context = context?;
    let only = |all: &[String]| all.first().filter(|_| all.len() == 1).cloned();
    let (site, target) = points::point(clause, &context.sites, &context.targets);
    if site.is_some() || target.is_some() {
        let known = experiment.map(wire::points).unwrap_or_default();
        let fits = |place: &&(String, String)| {
            site.as_ref().is_none_or(|site| *site == place.0)
                && target.as_ref().is_none_or(|target| *target == place.1)
        };
        let place = known.iter().find(fits);
        let site =
            site.clone().or_else(|| place.map(|place| place.0.clone())).or_else(|| only(&context.sites))?;
        let target = target
            .clone()
            .or_else(|| place.map(|place| place.1.clone()))
            .or_else(|| only(&context.targets))?;
        return Some(json!({ "do": "visit", "site": site, "target": target }));
    }
    if let (true, Some((kind, id))) = (later, students::groups(clause, &context.groups).into_iter().next()) {
        return Some(json!({ "do": "set_working_group", "working_group": { kind: id } }));
    }
    let status = later.then(|| status_verb(clause).or_else(|| set_status(clause))).flatten();
    if let Some(status) = status.filter(|_| experiment.is_some()) {
        return Some(json!({ "do": "set_status", "status": status }));
    }
    // "Visit", "come back": the only place.
    let points = experiment.map(wire::points).unwrap_or_default();
    if let (true, [(site, target)]) = (visits(clause), &points[..]) {
        return Some(json!({ "do": "visit", "site": site, "target": target }));
    }
    let looks = later
        && (clause.has(&["assigned", "assignments", "assignment"]) || clause.has_phrase("they get|got"));
    looks.then(|| json!({ "do": "assign" }))
}

/// A visit, and not the subject of a journey.
fn visits(clause: &Text) -> bool {
    let is_visit = |word: &Word| lexicon::concepts(word).contains(&C::Visit);
    let leads = clause.words.iter().take(2).any(is_visit);
    leads && !clause.words.iter().any(|word| lexicon::concepts(word).contains(&C::Journey))
}

/// "Set the status to inactive".
fn set_status(clause: &Text) -> Option<&'static str> {
    let changes = |word: &Word| {
        word.is(&["set", "put", "make", "move"]) || lexicon::concepts(word).contains(&C::Change)
    };
    clause.words.iter().take(2).any(changes).then(|| slots::target_status(clause)).flatten()
}

/// "Then pause it".
fn status_verb(clause: &Text) -> Option<&'static str> {
    let verb = clause.words.iter().take(3).flat_map(lexicon::concepts).next()?;
    match verb {
        C::Start | C::Resume => Some("enrolling"),
        C::Stop | C::Pause => Some("enrollmentComplete"),
        C::Cancel => Some("cancelled"),
        _ => None,
    }
}

/// Whether a word is a context, a site or a target.
fn is_place(contexts: &[ContextInfo], word: &str) -> bool {
    let same = |known: &String| known.eq_ignore_ascii_case(word);
    contexts.iter().any(|context| {
        same(&context.name) || context.sites.iter().any(same) || context.targets.iter().any(same)
    })
}

/// "Live" and "offline", if the message mentions the mode.
fn mode(text: &Text) -> Option<&'static str> {
    let offline =
        text.has(&["offline", "theoretically", "theoretical", "dry", "compute", "calculate", "locally"])
            || text.has_phrase("without touching|changing|writing|enrolling|using")
            || text.has_phrase("on paper");
    if offline && !text.has_phrase("not offline") {
        return Some("offline");
    }
    let live = text.has_phrase("live test|balance|check|run|mode|simulation|students|users")
        || text.has_phrase("it|test|mode|run|balance live")
        || text.words.last().is_some_and(|word| word.low == "live")
        || text.has_phrase("for real")
        || text.has_phrase("on the server")
        || text.has_phrase("real|actual server");
    live.then_some("live")
}
