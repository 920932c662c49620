//! Stored fields that the state of the program does not have: refused, dropped or kept.
//!
//! A program that continues a thread sooner or later writes a full, with only the fields that it knows. So it
//! is refused before it stores anything if a stored value would be lost. A program that only reads the thread
//! is not refused.

use std::borrow::Cow;

use crate::engine::left_over::Leftovers;
use crate::engine::load::finished_step;
use crate::engine::stored::StoredStep;
use crate::error::{Code, Error};
use crate::graph::{Discipline, GraphCore};
use crate::record::bytes::Bytes;
use crate::record::codec::Codec;
use crate::record::header::StoredState;
use crate::record::migrate::StoredFields;
use crate::reduce::derived::{decode_fields, encode_field, encode_fields};
use crate::state::Channel;
use crate::words::quoted;
use agentgraph_checkpoint::{CheckpointId, Place};

/// The stored value of a field that the state does not have.
#[derive(Clone, Debug)]
pub(super) struct UnknownField {
    pub(in crate::engine) name: String,
    pub(in crate::engine) value: Vec<u8>,
    /// The record that contains it whole, by the field number that it keeps.
    pub(in crate::engine) whole_at: Option<CheckpointId>,
}

/// Whether a stored name is neither a present or former channel nor one that the graph drops. The outputs of
/// a pass are reset when the next pass starts, so no name in them counts as unknown.
pub(crate) fn is_unknown(core: &GraphCore, name: &str) -> bool {
    core.rules.discipline != Discipline::Dependency
        && channel_called(core.schema.channels(), name).is_none()
        && !core.stored.unknown_fields.drops(name)
}

fn channel_called<'a>(channels: &'a [Channel], name: &str) -> Option<&'a Channel> {
    channels.iter().find(|channel| channel.is_called(name))
}

/// Refuses to continue if these fields would be lost.
///
/// # Errors
/// [`Code::GraphChanged`] with the names and the remedies.
pub(super) fn refuse<'a>(
    place: Place<'_>,
    holder: &str,
    names: impl IntoIterator<Item = &'a str>,
) -> Result<(), Error> {
    let names: Vec<&str> = names.into_iter().collect();
    let Some(first) = names.first() else { return Ok(()) };
    let inside = match place.namespace {
        "" => String::new(),
        namespace => format!(" (in the subgraph `{namespace}`)"),
    };
    let problem = format!(
        "{}, and {holder}{inside} contains values that continuing would lose: {}, or keep them with `.keeps_unknown_fields()`; nothing was stored",
        there_is_none(&names),
        remedies(first)
    );
    Err(Error::new(Code::GraphChanged, problem).on_thread(Some(place.thread)))
}

fn there_is_none(names: &[&str]) -> String {
    let listed = quoted(names, ", ");
    match names.len() {
        1 => format!("there is no channel {listed} in this graph's state"),
        _ => format!("there are no channels {listed} in this graph's state"),
    }
}

fn remedies(name: &str) -> String {
    format!(
        "bring the channel back, say `#[channel(alias = \"{name}\")]` if it has another name now, move the value with \
         `.migration(..)`, drop it with `.drops(\"{name}\")`"
    )
}

/// Checks that the states kept for open activations can be used.
pub(crate) fn check_kept_states(
    core: &GraphCore,
    place: Place<'_>,
    kept: &[StoredState],
) -> Result<(), Error> {
    if core.stored.unknown_fields.keeps {
        return Ok(());
    }
    for state in kept {
        let fields = migrated(core, state).map_err(|error| error.on_thread(Some(place.thread)))?;
        let unknown = fields.names().filter(|name| is_unknown(core, name));
        refuse(place, "the state that an open task reads", unknown)?;
    }
    Ok(())
}

/// The fields of a kept state, in the current version.
pub(super) fn migrated(core: &GraphCore, kept: &StoredState) -> Result<StoredFields, Error> {
    let values = kept.channels.iter().map(|(name, value)| (name.clone(), value.0.clone()));
    let mut fields = StoredFields::of_state(values.collect::<Vec<_>>());
    if kept.version != core.stored.migrations.version {
        core.stored.migrations.state(kept.version, &mut fields)?;
    }
    Ok(fields)
}

/// Checks that stored results of finished tasks can be merged into the current state, before anything is
/// stored on top of them. Damaged results are reported where they are used.
pub(crate) fn check_results(
    core: &GraphCore,
    codec: &Codec,
    place: Place<'_>,
    left: &Leftovers,
) -> Result<(), Error> {
    if core.rules.discipline == Discipline::Dependency {
        return Ok(());
    }
    for result in left.values().filter_map(|left| left.result.as_deref()) {
        match finished_step(core, codec, place.thread, result) {
            Err(error) if error.code() == Code::GraphChanged => return Err(error),
            _ => {}
        }
    }
    Ok(())
}

/// The fields of open work beside a state (results of finished tasks, states that activations read) that the
/// state does not have and the graph does not drop. Bytes that cannot be read are judged elsewhere.
pub(crate) fn unknown_in_open_work(core: &GraphCore, kept: &[StoredState], left: &Leftovers) -> Vec<String> {
    let of_kept = kept.iter().filter_map(|kept| migrated(core, kept).ok());
    let mut names: Vec<String> =
        of_kept.flat_map(|fields| fields.names().map(str::to_owned).collect::<Vec<_>>()).collect();
    for result in left.values().filter_map(|left| left.result.as_deref()) {
        let step = StoredStep::from_bytes(result).and_then(|step| step.migrated(&core.stored.migrations));
        let Ok(StoredStep { update: Some(Bytes(update)), .. }) = step else { continue };
        names.extend(decode_fields(&update).into_iter().flatten().map(|(name, _)| name.to_owned()));
    }
    names.retain(|name| is_unknown(core, name));
    names
}

/// The kinds of the reducers that an encoded update was written for, in its order.
pub(super) fn kinds_of(core: &GraphCore, update: &[u8]) -> Vec<Cow<'static, str>> {
    let channels = core.schema.channels();
    let fields = decode_fields(update).unwrap_or_default().into_iter();
    let kinds = fields.map(|(name, _)| channel_called(channels, name).map(|channel| channel.reducer.clone()));
    kinds.collect::<Option<_>>().unwrap_or_default()
}

/// The treatment of a finished task's update that does not fit the current state.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum Misfit {
    /// It is refused.
    Refuse,
    /// The unfit writes are left out, for a reader of the thread.
    LeaveOut,
}

/// Removes the fields that the graph drops from a stored step, and refuses or leaves out unknown ones.
pub(crate) fn fit(
    core: &GraphCore,
    thread: &str,
    step: &mut StoredStep,
    misfit: Misfit,
) -> Result<(), Error> {
    if core.rules.discipline == Discipline::Dependency {
        return Ok(());
    }
    let StoredStep { update: Some(Bytes(update)), kinds, .. } = step else { return Ok(()) };
    // The state itself judges updates that are not a map of fields.
    let Ok(fields) = decode_fields(update) else { return Ok(()) };
    let channels = core.schema.channels();
    let changed = |at: usize, name: &str| {
        let kind = kinds.get(at).filter(|_| kinds.len() == fields.len())?;
        let now = &channel_called(channels, name)?.reducer;
        (now != kind).then(|| (name.to_owned(), kind.to_string(), now.to_string()))
    };
    let unknown = fields.iter().map(|(name, _)| *name).filter(|name| is_unknown(core, name));
    let mut other_kinds = fields.iter().enumerate().filter_map(|(at, (name, _))| changed(at, name));
    if misfit == Misfit::Refuse {
        refuse_results(thread, unknown)?;
        if let Some((name, before, now)) = other_kinds.next() {
            return Err(other_reducer(thread, &name, &before, &now));
        }
    }
    let fits = |(at, (name, _)): &(usize, (&str, &[u8]))| {
        channel_called(channels, name).is_some() && changed(*at, name).is_none()
    };
    let left: Vec<_> = fields.iter().copied().enumerate().filter(fits).map(|(_, field)| field).collect();
    if left.len() < fields.len() {
        let mut bytes = encode_fields(left.len());
        left.iter().for_each(|(name, write)| encode_field(&mut bytes, name, write));
        *update = bytes;
    }
    Ok(())
}

/// Refuses unknown writes of a finished task. A write without its reducer cannot be merged and the next
/// commit makes it obsolete, so it cannot be carried on.
fn refuse_results<'a>(thread: &str, names: impl Iterator<Item = &'a str>) -> Result<(), Error> {
    let names: Vec<&str> = names.collect();
    let Some(first) = names.first() else { return Ok(()) };
    let problem = format!(
        "the stored result of a finished task cannot be used: {}: {}, or finish the superstep with the program that began it; nothing \
         was stored",
        there_is_none(&names),
        remedies(first)
    );
    Err(Error::new(Code::GraphChanged, problem).on_thread(Some(thread)))
}

fn other_reducer(thread: &str, name: &str, before: &str, now: &str) -> Error {
    let problem = format!(
        "the stored result of a finished task cannot be used: it writes `{name}` for the reducer `{before}`, and the channel has \
         `{now}` now: bring the reducer back until the run is finished, raise `.schema_version(..)` and say with `.migration(..)` \
         what becomes of it, or give the run up with `.abandon()`; nothing was stored"
    );
    Error::new(Code::GraphChanged, problem).on_thread(Some(thread))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Command;
    use crate::graph::StateGraph;
    use crate::json_state::{JsonChannels, JsonReducer, JsonState};
    use crate::words::START;

    fn graph() -> StateGraph<JsonState> {
        let schema = JsonChannels::new().channel("title", serde_json::Value::Null, JsonReducer::Once);
        let graph = StateGraph::with_schema(schema).node("a", || async { Command::<JsonState>::new() });
        graph.edge(START, "a").schema_version(1).migration(0, |fields| {
            fields.remove("old");
            Ok(())
        })
    }

    fn checked(graph: StateGraph<JsonState>, version: u32, names: &[&str]) -> Result<(), Error> {
        let value = || Bytes(vec![0xa1, b'x']);
        let channels = names.iter().map(|name| ((*name).to_owned(), value())).collect();
        let kept = StoredState { made: 1, version, channels };
        let graph = graph.compile().unwrap();
        check_kept_states(graph.into_any().core(), Place::root("t"), &[kept])
    }

    #[test]
    fn unknown_fields_of_a_kept_state_are_refused_unless_allowed() {
        assert!(checked(graph(), 1, &["title"]).is_ok());
        assert!(checked(graph(), 0, &["title", "old"]).is_ok(), "migrations come first");
        for (version, names) in [(1, &["title", "text"][..]), (0, &["text"]), (1, &["old"])] {
            let error = checked(graph(), version, names).unwrap_err();
            assert_eq!((error.code(), error.thread()), (Code::GraphChanged, Some("t")));
            assert!(error.to_string().contains(&format!("`{}`", names[names.len() - 1])), "{error}");
        }
        assert!(checked(graph().drops("text"), 1, &["title", "text"]).is_ok());
        assert!(checked(graph().keeps_unknown_fields(), 1, &["title", "text"]).is_ok());
    }
}
