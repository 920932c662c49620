//! From the builder's notes to a checked graph, in four passes: names, edges, reachability, dense arrays.

mod exclusive;
mod fingerprint;
mod inputs;
mod names;
mod order;
mod resolve;
mod shape;

use std::collections::{BTreeSet, HashMap};
use std::mem::take;
use std::sync::Arc;
use std::time::Duration;

use inputs::check_inputs;
pub(crate) use names::Problems;
use names::{Names, check_nodes};
use resolve::{
    CommandTargets, resolve_breaks, resolve_command_targets, resolve_edges, resolve_handlers, resolve_routers,
};
use shape::{Shape, check_detached};

use super::core::{
    About, DetachedNodes, Discipline, GraphCore, NodeEntry, Router, Rules, StoredForm, TemporaryNodes, Uses,
};
use super::problem::{CompileError, ProblemKind};
use super::template::{Defaults, Templates};
use super::{CodePlace, Declared, DeclaredNode, Name};
use crate::context::{GraphShared, RequiredContext, ValuesByType};
use crate::extract::RequirementKind;
use crate::node::NodeSettings;
use crate::policy::{OnEnd, Policies};
use crate::record::migrate::{Migrate, Migrations, UnknownFields};
use crate::session::SessionKind;
use crate::state::{Channel, Lifetime, StateError};
use crate::typed::AnySchema;
use crate::words::Memory;
use agentgraph_checkpoint::services::SystemServices;

/// A checked graph, and the parts that all its runs share.
pub(crate) struct Compiled {
    pub(crate) core: GraphCore,
    pub(crate) shared: GraphShared,
}

impl Compiled {
    pub(crate) fn new(core: GraphCore, deps: ValuesByType, sessions: Vec<SessionKind>) -> Self {
        let shared = GraphShared {
            names: Arc::clone(&core.names),
            schema: core.schema.clone(),
            deps,
            sessions: sessions.into(),
            services: Arc::new(SystemServices),
            store: None,
            agent: None,
            slow_polls: Arc::default(),
        };
        Compiled { core, shared }
    }
}

pub(super) fn compile(mut graph: Declared) -> Result<Compiled, CompileError> {
    let mut problems = Problems::default();
    let shape = resolve(&graph, &mut problems);
    check_schema(&graph.schema, graph.schema_place, &mut problems);
    check_requirements(&graph.nodes, &graph.sessions, &graph.deps, &mut problems);
    check_settings(&graph.nodes, graph.schema.channels(), &mut problems);
    let detached = shape.detached(&graph.nodes);
    check_detached(&shape, &graph.nodes, &detached, &graph.breaks, &mut problems);
    if !shape.has_entry() {
        problems.add_at(ProblemKind::NoEntry, None);
    }
    let stored = StoredForm {
        migrations: check_migrations(graph.stored.version, take(&mut graph.stored.migrations), &mut problems),
        unknown_fields: UnknownFields {
            drops: check_drops(&graph.schema, take(&mut graph.stored.drops), &mut problems),
            keeps: graph.stored.keeps_unknown_fields,
        },
        ..StoredForm::default()
    };
    let templates = check_templates(take(&mut graph.templates), &mut problems);
    if problems.is_empty() {
        Ok(lay_out(graph, shape, detached, stored, templates))
    } else {
        Err(problems.into_error())
    }
}

/// Resolves all names of the builder's records to nodes.
fn resolve(graph: &Declared, problems: &mut Problems) -> Shape {
    let nodes = &graph.nodes;
    let names = check_nodes(nodes, problems);
    let targets = resolve_command_targets(&names, nodes, problems);
    let edges = resolve_edges(&names, &graph.edges, graph.rules.eager, problems);
    let routes = resolve_routers(&names, &graph.routers, problems);
    let breaks = resolve_breaks(&names, &graph.breaks, problems);
    let on_limit = graph.rules.on_limit.as_ref().and_then(|(name, place)| {
        let node = names.node("on_limit", name).map_err(|kind| problems.add(kind, place)).ok();
        node.map(|node| (node, *place))
    });
    check_inputs(&names, nodes, (&edges, &routes, on_limit), problems);
    let default_handler = default_handler(&names, graph.rules.on_error.as_ref(), problems);
    let handlers = resolve_handlers(&names, nodes, default_handler, problems);
    Shape {
        names,
        edges,
        routes,
        targets,
        breaks,
        deferred: marked(nodes, |settings| settings.deferred),
        on_limit: on_limit.map(|(node, _)| node),
        default_handler,
        handlers,
        eager: graph.rules.eager,
        templates: graph.templates.iter().map(|(name, ..)| Arc::from(&**name)).collect(),
        keeps_output: marked(nodes, |settings| settings.keeps_output),
    }
}

/// Lays out a graph without problems for running.
fn lay_out(
    graph: Declared,
    shape: Shape,
    detached: Vec<bool>,
    stored: StoredForm,
    templates: Templates,
) -> Compiled {
    let Declared { schema, nodes, routers, deps, sessions, rules: declared, .. } = graph;
    let graphs: Vec<_> = nodes.iter().map(|node| node.node.settings.graph.clone()).collect();
    let fingerprint = shape.fingerprint(&schema, &graphs);
    let (deferred_order, deferred_loops) = shape.deferred_order(&detached);
    let about = about(&shape, &schema, &nodes, deferred_loops);
    let topology = shape.topology(deferred_order);
    let channels = schema.channels();
    let has = |lifetime| channels.iter().any(|channel| channel.lifetime == lifetime);
    let uses = Uses {
        ephemeral: has(Lifetime::Ephemeral),
        run_channels: has(Lifetime::Run),
        graphs: graphs.iter().any(Option::is_some) || !templates.is_empty(),
        kept_outputs: shape.keeps_output.contains(&true),
    };
    let rules = Rules {
        discipline: if shape.eager { Discipline::Eager } else { Discipline::Superstep },
        breaks: shape.breaks,
        siblings: declared.siblings,
        on_limit: shape.on_limit,
        stuck_fails: declared.stuck_fails,
    };
    let nodes = nodes.into_iter().zip(shape.targets).zip(shape.handlers);
    let nodes: Vec<NodeEntry> =
        nodes.map(|((node, targets), on_error)| entry(node, targets, on_error, &declared.policies)).collect();
    let routers = routers.into_iter().zip(shape.routes).map(|(router, route)| Router {
        decide: router.decide,
        targets: route.targets.into_iter().map(|(target, _)| target).collect(),
    });
    let core = GraphCore {
        schema,
        detached: DetachedNodes { awaited: awaited_at_end(&detached, &nodes), nodes: detached },
        nodes,
        topology,
        routers: routers.collect(),
        names: Arc::new(shape.names.0),
        rules,
        uses,
        about,
        stored: StoredForm { fingerprint, ..stored },
        temporary: TemporaryNodes {
            templates,
            defaults: Defaults { policies: declared.policies, on_error: shape.default_handler },
        },
    };
    Compiled::new(core, deps, sessions)
}

/// What a program can ask the graph about itself.
fn about(shape: &Shape, schema: &AnySchema, nodes: &[DeclaredNode], deferred_loops: Vec<Vec<u32>>) -> About {
    let mut warnings = shape.warnings(nodes);
    warnings.extend(shape.loop_warnings(nodes, deferred_loops));
    warnings.extend(shape.chain_warning(nodes));
    About {
        warnings,
        drawing: shape.drawing(nodes),
        secrets: secrets(schema, nodes),
        durable_nodes: durable_nodes(nodes),
        contexts: contexts(nodes),
    }
}

/// Checks that the settings of each node fit it.
fn check_settings(nodes: &[DeclaredNode], channels: &[Channel], problems: &mut Problems) {
    for node in nodes {
        if let Some((setting, why)) = node.node.settings.misfit(channels) {
            problems.add(ProblemKind::Misfit { node: node.name.to_string(), setting, why }, node.place);
        }
    }
}

/// Checks that the graph has everything that its nodes require.
fn check_requirements(
    nodes: &[DeclaredNode],
    sessions: &[SessionKind],
    deps: &ValuesByType,
    problems: &mut Problems,
) {
    for node in nodes {
        for need in &node.node.settings.requirements {
            let node_name = node.name.to_string();
            let name = need.name;
            match need.kind {
                RequirementKind::Session if !sessions.iter().any(|kind| kind.id == need.id) => {
                    problems.add(ProblemKind::MissingSession { node: node_name, session: name }, node.place);
                }
                RequirementKind::Dep if !deps.contains(need.id) => {
                    problems.add(ProblemKind::MissingDep { node: node_name, dep: name }, node.place);
                }
                RequirementKind::Session
                | RequirementKind::Dep
                | RequirementKind::Input
                | RequirementKind::Context => {}
            }
        }
    }
}

fn entry(
    node: DeclaredNode,
    targets: CommandTargets,
    on_error: Option<u32>,
    defaults: &Policies,
) -> NodeEntry {
    NodeEntry {
        on_error,
        keeps_output: node.node.settings.keeps_output,
        anywhere: matches!(targets, CommandTargets::Anywhere),
        targets: match targets {
            CommandTargets::Declared(targets) => Some(targets),
            CommandTargets::None | CommandTargets::Anywhere => None,
        },
        ..NodeEntry::of(&node.node, defaults)
    }
}

/// The times that the end of a run waits for detached tasks: each once, the shortest first.
fn awaited_at_end(detached: &[bool], nodes: &[NodeEntry]) -> Vec<Duration> {
    let awaited = detached.iter().zip(nodes).filter_map(|(detached, node)| match node.on_end {
        OnEnd::Await(limit) if *detached => Some(limit),
        _ => None,
    });
    awaited.collect::<BTreeSet<_>>().into_iter().collect()
}

/// The secret channels that a checkpointer would receive; those of subgraphs are prefixed with their node.
fn secrets(schema: &AnySchema, nodes: &[DeclaredNode]) -> Vec<String> {
    let own = schema.channels().iter().filter(|channel| channel.secret && channel.is_stored());
    let mut secrets: Vec<String> = own.map(|channel| channel.name.to_string()).collect();
    for node in nodes {
        let graph = node.node.settings.graph.iter().filter(|graph| graph.memory() != Memory::None);
        secrets
            .extend(graph.flat_map(|graph| graph.secrets()).map(|secret| format!("{}.{secret}", node.name)));
    }
    secrets
}

/// The nodes that make durable steps; those of subgraphs are prefixed with their node.
fn durable_nodes(nodes: &[DeclaredNode]) -> Vec<String> {
    let of_node = |node: &DeclaredNode| {
        let settings = &node.node.settings;
        let own = settings.durable_steps.then(|| node.name.to_string());
        let inner = settings.graph.iter().flat_map(|graph| graph.durable_nodes());
        own.into_iter().chain(inner.map(|inner| format!("{}.{inner}", node.name))).collect::<Vec<_>>()
    };
    nodes.iter().flat_map(of_node).collect()
}

/// The contexts that nodes require from a caller. Some may occur twice.
fn contexts(nodes: &[DeclaredNode]) -> Vec<RequiredContext> {
    let mut contexts = Vec::new();
    for node in nodes {
        let own = node.node.settings.requirements.iter();
        let own = own.filter(|need| need.kind == RequirementKind::Context);
        contexts.extend(own.map(|need| RequiredContext::new(need.id, need.name, &node.name)));
        let graph = node.node.settings.graph.iter().flat_map(|graph| graph.contexts());
        contexts.extend(graph.map(|inner| inner.within(&node.name)));
    }
    contexts
}

/// Whether each node has a setting; empty if none has.
fn marked(nodes: &[DeclaredNode], has: impl Fn(&NodeSettings) -> bool) -> Vec<bool> {
    let marks: Vec<bool> = nodes.iter().map(|node| has(&node.node.settings)).collect();
    if marks.contains(&true) { marks } else { Vec::new() }
}

fn check_schema(schema: &AnySchema, place: CodePlace, problems: &mut Problems) {
    for error in schema.problems() {
        let (StateError::BadValue { channel, problem } | StateError::Encode { channel, problem }) = error
        else {
            continue;
        };
        problems.add(ProblemKind::BadKey { key: channel, problem }, place);
    }
}

fn check_migrations(
    version: u32,
    declared: Vec<(u32, Migrate, CodePlace)>,
    problems: &mut Problems,
) -> Migrations {
    let mut migrations = Migrations { version, steps: Vec::new() };
    for (from, migrate, place) in declared {
        if from >= version {
            problems.add(
                ProblemKind::BadMigration { from, problem: "leads beyond `.schema_version(..)`" },
                place,
            );
        } else if migrations.steps.iter().any(|(known, _)| *known == from) {
            problems.add(ProblemKind::BadMigration { from, problem: "is there twice" }, place);
        }
        migrations.steps.push((from, migrate));
    }
    migrations
}

fn check_drops(schema: &AnySchema, declared: Vec<(Name, CodePlace)>, problems: &mut Problems) -> Vec<Name> {
    let channels = schema.channels();
    let mut drops = Vec::new();
    for (field, place) in declared {
        if channels.iter().any(|channel| channel.is_called(&field)) {
            problems.add(ProblemKind::DropsChannel { field: field.into_owned() }, place)
        } else {
            drops.push(field)
        }
    }
    drops
}

fn default_handler(
    names: &Names,
    declared: Option<&(Name, CodePlace)>,
    problems: &mut Problems,
) -> Option<u32> {
    let (name, place) = declared?;
    names.node("on_error", name).map_err(|kind| problems.add(kind, place)).ok()
}

/// The templates by name.
pub(crate) fn check_templates<N: Into<Arc<str>>, T>(
    declared: Vec<(N, T, CodePlace)>,
    problems: &mut Problems,
) -> HashMap<Arc<str>, T> {
    let mut templates = HashMap::with_capacity(declared.len());
    for (name, template, place) in declared {
        let name: Arc<str> = name.into();
        if templates.insert(Arc::clone(&name), template).is_some() {
            problems.add(ProblemKind::DuplicateTemplate { name: name.to_string() }, place);
        }
    }
    templates
}
