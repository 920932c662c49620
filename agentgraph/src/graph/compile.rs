//! From the builder's notes to a checked graph, in four passes: names, edges, reachability, dense arrays.

use std::collections::{BTreeSet, HashMap, HashSet};
use std::sync::Arc;
use std::time::Duration;

use petgraph::graph::{DiGraph, NodeIndex};
use petgraph::visit::{Dfs, Reversed};
use sha2::{Digest, Sha256};

use super::compiled::{Breaks, CompiledGraph, GraphCore, NodeEntry, Router};
use super::draw::{Drawing, Line, LineKind};
use super::joins::Join;
use super::problem::{CompileError, Problem, ProblemKind, Warning, WarningKind};
use super::sources::JoinPolicy;
use super::template::{Defaults, Template, Templates};
use super::topology::{END_ID, Exits, Rows, Topology, WIDE};
use super::{
    Break, DeclaredBreak, DeclaredEdge, DeclaredNode, DeclaredRouter, Name, Place, Sources, StateGraph,
};
use crate::context::GraphShared;
use crate::error::nearest;
use crate::migrate::{Migrate, Migrations};
use crate::policy::OnEnd;
use crate::services::SystemServices;
use crate::state::{Lifetime, State};
use crate::subgraph::AnyGraph;
use crate::subgraph::Memory;
use crate::{END, START};

pub(super) fn compile<S: State>(graph: StateGraph<S>) -> Result<CompiledGraph<S>, CompileError> {
    let StateGraph {
        schema,
        nodes,
        edges,
        routers,
        breaks,
        deps,
        sessions,
        siblings,
        on_limit,
        stuck_fails,
        eager,
        policies,
        on_error,
        version,
        migrations,
        templates,
    } = graph;
    let mut problems = Problems::default();
    let names = check_nodes(&nodes, &mut problems);
    for node in &nodes {
        for need in &node.node.settings.requirements {
            let (node_name, name) = (node.name.to_string(), need.name);
            if need.is_session && !sessions.iter().any(|kind| kind.id == need.id) {
                problems.add(ProblemKind::MissingSession { node: node_name, session: name }, node.place);
            } else if !need.is_session && !deps.contains_key(&need.id) {
                problems.add(ProblemKind::MissingDep { node: node_name, dep: name }, node.place);
            }
        }
    }
    let targets = resolve_command_targets(&names, &nodes, &mut problems);
    let edges = resolve_edges(&names, &edges, eager, &mut problems);
    let routes = resolve_routers(&names, &routers, &mut problems);
    let declared_breaks = breaks;
    let breaks = resolve_breaks(&names, &declared_breaks, &mut problems);
    let on_limit = on_limit.and_then(|(name, place)| {
        names.node("on_limit", &name).map_err(|kind| problems.add(kind, place)).ok()
    });
    let deferred = deferred(&nodes);
    let default_handler = default_handler(&names, on_error, &mut problems);
    let handlers = resolve_handlers(&names, &nodes, default_handler, &mut problems);
    let migrations = check_migrations(version, migrations, &mut problems);
    let templates = check_templates(templates, &mut problems);
    let shape = Shape {
        names: &names,
        edges: &edges,
        routes: &routes,
        targets: &targets,
        deferred: &deferred,
        on_limit,
        handlers: &handlers,
        eager,
        templates: templates.keys().collect(),
        keeps_output: keeps_output(&nodes),
    };
    let detached = shape.detached(&nodes);
    check_detached(&shape, &nodes, &detached, &declared_breaks, &mut problems);
    let start = names.start();
    if !edges.iter().any(|edge| edge.sources.contains(&start))
        && !routes.iter().any(|route| route.from == start)
    {
        problems.list.push(Problem { kind: ProblemKind::NoEntry, place: None });
    }
    if !problems.list.is_empty() {
        return Err(CompileError::new(problems.in_order()));
    }
    let warnings = shape.warnings(&nodes);
    let drawing = shape.drawing(&nodes);
    let graphs: Vec<_> = nodes.iter().map(|node| node.node.settings.graph.clone()).collect();
    let fingerprint = shape.fingerprint::<S>(&schema, &graphs);
    let topology = shape.topology();
    let channels = S::channels(&schema);
    let has = |lifetime| channels.iter().any(|channel| channel.lifetime == lifetime);
    let (has_ephemeral, has_run_channels) = (has(Lifetime::Ephemeral), has(Lifetime::Run));
    let secrets = secrets::<S>(&schema, &nodes);
    let names: Arc<[Arc<str>]> = names.list.into();
    let by_name =
        names.iter().enumerate().map(|(id, name)| (Arc::clone(name), id as u32)).collect::<HashMap<_, _>>();
    let keeps_outputs = nodes.iter().any(|node| node.node.settings.keeps_output);
    let nodes = nodes.into_iter().zip(targets).zip(handlers).map(|((node, targets), on_error)| NodeEntry {
        on_error,
        keeps: node.node.settings.keeps,
        graph: node.node.settings.graph,
        on_end: node.node.settings.on_end,
        keeps_output: node.node.settings.keeps_output,
        targets: match targets {
            CommandTargets::Declared(targets) => Some(targets),
            CommandTargets::None | CommandTargets::Anywhere => None,
        },
        call: node.node.call,
        policies: Some(node.node.settings.policies.or(&policies))
            .filter(|policies| !policies.is_empty())
            .map(Arc::new),
    });
    let nodes: Vec<NodeEntry<S>> = nodes.collect();
    let awaited = detached.iter().zip(&nodes).filter_map(|(detached, node)| match node.on_end {
        OnEnd::Await(limit) if *detached => Some(limit),
        _ => None,
    });
    let awaited_at_end: BTreeSet<Duration> = awaited.collect();
    let routers = routers.into_iter().zip(routes).map(|(router, route)| Router {
        decide: router.decide,
        targets: route.targets.into_iter().map(|(target, _)| target).collect(),
    });
    let core = GraphCore {
        schema,
        nodes,
        topology,
        routers: routers.collect(),
        by_name: Arc::new(by_name),
        names: Arc::clone(&names),
        fingerprint,
        warnings,
        breaks,
        has_ephemeral,
        has_run_channels,
        awaited_at_end: awaited_at_end.into_iter().collect(),
        has_graphs: graphs.iter().any(Option::is_some) || !templates.is_empty(),
        siblings,
        on_limit,
        stuck_fails,
        eager,
        detached,
        migrations,
        drawing,
        discipline: None,
        templates,
        defaults: Defaults { policies, on_error: default_handler },
        keeps_outputs,
        secrets,
    };
    let shared = GraphShared { names, deps, sessions: sessions.into(), services: Arc::new(SystemServices) };
    Ok(CompiledGraph { core: Arc::new(core), shared: Arc::new(shared), persistence: None, host: None })
}

/// The secret channels that a checkpointer would be given, those of subgraphs after the names of their nodes.
fn secrets<S: State>(schema: &S::Schema, nodes: &[DeclaredNode<S>]) -> Vec<String> {
    let own = S::channels(schema).iter().filter(|channel| channel.secret && channel.is_stored());
    let mut secrets: Vec<String> = own.map(|channel| channel.name.to_string()).collect();
    for node in nodes {
        let graph = node.node.settings.graph.iter().filter(|graph| graph.memory() != Memory::None);
        secrets
            .extend(graph.flat_map(|graph| graph.secrets()).map(|secret| format!("{}.{secret}", node.name)));
    }
    secrets
}

/// For each node whether it keeps its last output; empty if none does.
fn keeps_output<S: State>(nodes: &[DeclaredNode<S>]) -> Vec<bool> {
    let keeps: Vec<bool> = nodes.iter().map(|node| node.node.settings.keeps_output).collect();
    if keeps.contains(&true) { keeps } else { Vec::new() }
}

/// The deferred nodes; empty if there are none.
fn deferred<S: State>(nodes: &[DeclaredNode<S>]) -> Vec<bool> {
    let deferred: Vec<bool> = nodes.iter().map(|node| node.node.settings.deferred).collect();
    if deferred.contains(&true) { deferred } else { Vec::new() }
}

fn check_migrations(
    version: u32,
    declared: Vec<(u32, Migrate, Place)>,
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

fn default_handler(names: &Names, declared: Option<(Name, Place)>, problems: &mut Problems) -> Option<u32> {
    let (name, place) = declared?;
    names.node("on_error", &name).map_err(|kind| problems.add(kind, place)).ok()
}

fn check_templates<S: State>(
    declared: Vec<(Name, Template<S>, Place)>,
    problems: &mut Problems,
) -> Templates<S> {
    let mut templates = Templates::with_capacity(declared.len());
    for (name, template, place) in declared {
        if templates.insert(Arc::from(&*name), template).is_some() {
            problems.add(ProblemKind::DuplicateTemplate { name: name.to_string() }, place);
        }
    }
    templates
}

/// For each node the one that handles its failures. A handler by default does not handle its own.
fn resolve_handlers<S: State>(
    names: &Names,
    nodes: &[DeclaredNode<S>],
    default: Option<u32>,
    problems: &mut Problems,
) -> Vec<Option<u32>> {
    let mut look_up =
        |name: &str, place| names.node("on_error", name).map_err(|kind| problems.add(kind, place)).ok();
    let handlers = (0..).zip(nodes).map(|(id, node)| match &node.node.settings.on_error {
        Some(own) => look_up(own, node.place),
        None => default.filter(|handler| *handler != id),
    });
    handlers.collect()
}

#[derive(Default)]
struct Problems {
    list: Vec<Problem>,
}

impl Problems {
    fn add(&mut self, kind: ProblemKind, place: Place) {
        self.list.push(Problem { kind, place: Some(place) });
    }

    /// By place, so that they read like the code; those without a place first.
    fn in_order(mut self) -> Vec<Problem> {
        self.list
            .sort_by_key(|problem| problem.place.map(|place| (place.file(), place.line(), place.column())));
        self.list
    }
}

/// The nodes' names and their ids.
struct Names {
    list: Vec<Arc<str>>,
    ids: HashMap<Arc<str>, u32>,
}

impl Names {
    fn start(&self) -> u32 {
        self.list.len() as u32
    }

    fn name(&self, id: u32) -> &str {
        match self.list.get(id as usize) {
            Some(name) => name,
            None if id == END_ID => END,
            None => START,
        }
    }

    fn node(&self, what: &'static str, name: &str) -> Result<u32, ProblemKind> {
        self.ids.get(name).copied().ok_or_else(|| ProblemKind::UnknownNode {
            what,
            name: name.to_owned(),
            nearest: nearest(name, self.list.iter().map(|known| &**known)).map(str::to_owned),
        })
    }

    fn source(&self, what: &'static str, name: &str) -> Result<u32, ProblemKind> {
        match name {
            START => Ok(self.start()),
            END => Err(ProblemKind::OutOfEnd),
            _ => self.node(what, name),
        }
    }

    fn target(&self, what: &'static str, name: &str) -> Result<u32, ProblemKind> {
        match name {
            START => Err(ProblemKind::IntoStart),
            END => Ok(END_ID),
            _ => self.node(what, name),
        }
    }
}

fn check_nodes<S: State>(nodes: &[DeclaredNode<S>], problems: &mut Problems) -> Names {
    let mut names = Names { list: Vec::with_capacity(nodes.len()), ids: HashMap::with_capacity(nodes.len()) };
    for node in nodes {
        let name: Arc<str> = Arc::from(&*node.name);
        if name.is_empty() || name.starts_with("__") {
            problems.add(ProblemKind::ReservedName { name: name.to_string() }, node.place);
        }
        let timeouts = node.node.settings.policies.timeouts;
        if [timeouts.run, timeouts.idle].into_iter().flatten().any(|limit| limit.is_zero()) {
            problems.add(ProblemKind::ZeroTimeout { node: name.to_string() }, node.place);
        }
        if names.ids.insert(Arc::clone(&name), names.list.len() as u32).is_some() {
            problems.add(ProblemKind::DuplicateNode { name: name.to_string() }, node.place);
        }
        names.list.push(name);
    }
    names
}

/// Where the commands of a node may go.
enum CommandTargets {
    /// The node returns no commands.
    None,
    /// It said where.
    Declared(Vec<u32>),
    /// It did not, so it may go anywhere.
    Anywhere,
}

fn resolve_command_targets<S: State>(
    names: &Names,
    nodes: &[DeclaredNode<S>],
    problems: &mut Problems,
) -> Vec<CommandTargets> {
    let resolve = |node: &DeclaredNode<S>, problems: &mut Problems| match &node.node.settings.targets {
        None if node.node.settings.commands => CommandTargets::Anywhere,
        None => CommandTargets::None,
        Some(targets) => {
            let known = targets.iter().filter_map(|name| {
                names.target("targets", name).map_err(|kind| problems.add(kind, node.place)).ok()
            });
            CommandTargets::Declared(known.collect())
        }
    };
    nodes.iter().map(|node| resolve(node, problems)).collect()
}

struct Edge {
    sources: Vec<u32>,
    needed: u32,
    timeout: Option<Duration>,
    target: u32,
    /// A list of one source is a join only where it has something to wait for.
    joins: bool,
    place: Place,
}

impl Edge {
    fn is_join(&self) -> bool {
        self.joins
    }
}

fn resolve_edges(
    names: &Names,
    declared: &[DeclaredEdge],
    eager: bool,
    problems: &mut Problems,
) -> Vec<Edge> {
    let mut edges: Vec<Edge> = Vec::with_capacity(declared.len());
    let mut seen = HashSet::new();
    for edge in declared {
        let declared = &edge.from;
        let what = if declared.joins { "join" } else { "edge" };
        let resolved: Vec<_> = declared.names.iter().map(|name| names.source(what, name)).collect();
        let target = names.target(what, &edge.target);
        let mut sources = Vec::with_capacity(resolved.len());
        for source in resolved {
            match source {
                Ok(source) => sources.push(source),
                Err(kind) => problems.add(kind, edge.place),
            }
        }
        let Ok(target) = target.map_err(|kind| problems.add(kind, edge.place)) else { continue };
        if sources.len() < declared.names.len() {
            continue;
        }
        if let Some(problem) = join_problem(&sources, declared) {
            problems.add(ProblemKind::BadJoin { to: edge.target.to_string(), problem }, edge.place);
            continue;
        }
        let mut key = sources.clone();
        key.sort_unstable();
        if !seen.insert((key, target)) {
            let from: Vec<String> = declared.names.iter().map(|name| format!("`{name}`")).collect();
            let kind = ProblemKind::DuplicateEdge { from: from.join(" + "), to: edge.target.to_string() };
            problems.add(kind, edge.place);
            continue;
        }
        let needed = match declared.policy {
            JoinPolicy::All => sources.len(),
            JoinPolicy::AtLeast(sources) => sources,
        };
        let (needed, timeout) = (needed as u32, declared.timeout);
        let joins = sources.len() > 1 || (eager && declared.joins);
        edges.push(Edge { sources, needed, timeout, target, joins, place: edge.place });
    }
    edges
}

fn join_problem(sources: &[u32], declared: &Sources) -> Option<&'static str> {
    let distinct: HashSet<_> = sources.iter().collect();
    if let JoinPolicy::AtLeast(needed) = declared.policy
        && !(1..=sources.len().max(1)).contains(&needed)
    {
        return Some("waits for a number of sources that it cannot have: from 1 to as many as it names");
    }
    if declared.timeout.is_some_and(|limit| limit.is_zero()) {
        return Some("has a timeout of zero: it would never wait");
    }
    match sources.len() {
        0 => Some("has no sources: name the nodes it waits for"),
        count if distinct.len() < count => Some("names a source twice: it waits for each once"),
        _ => None,
    }
}

struct RouteShape {
    from: u32,
    /// Target and whether it is dispatched.
    targets: Vec<(u32, bool)>,
    word: &'static str,
}

fn resolve_routers<S: State>(
    names: &Names,
    declared: &[DeclaredRouter<S>],
    problems: &mut Problems,
) -> Vec<RouteShape> {
    let mut routes = Vec::with_capacity(declared.len());
    for router in declared {
        let from = names.source(router.word, &router.from).map_err(|kind| problems.add(kind, router.place));
        let targets = router.targets.iter().map(|target| {
            let id = names.target(router.word, &target.name).map_err(|kind| problems.add(kind, router.place));
            (id.unwrap_or(END_ID), target.dispatches)
        });
        let targets = targets.collect();
        routes.push(RouteShape { from: from.unwrap_or(END_ID), targets, word: router.word });
    }
    routes
}

fn resolve_breaks(names: &Names, declared: &[DeclaredBreak], problems: &mut Problems) -> Option<Breaks> {
    if declared.is_empty() {
        return None;
    }
    let none = vec![false; names.list.len()];
    let mut breaks = Breaks { before: none.clone(), after: none };
    for declared in declared {
        let (what, marks) = match declared.when {
            Break::Before => ("interrupt_before", &mut breaks.before),
            Break::After => ("interrupt_after", &mut breaks.after),
        };
        match names.node(what, &declared.node) {
            Ok(node) => marks[node as usize] = true,
            Err(kind) => problems.add(kind, declared.place),
        }
    }
    Some(breaks)
}

/// The checked graph, before it is laid out for running.
struct Shape<'a> {
    names: &'a Names,
    edges: &'a [Edge],
    routes: &'a [RouteShape],
    targets: &'a [CommandTargets],
    deferred: &'a [bool],
    on_limit: Option<u32>,
    handlers: &'a [Option<u32>],
    eager: bool,
    templates: Vec<&'a Arc<str>>,
    /// By node.
    keeps_output: Vec<bool>,
}

impl Shape<'_> {
    /// Every way from one node to another, as petgraph sees it. END has an index of its own; nodes without a way out
    /// lead there.
    fn ways(&self) -> (DiGraph<(), ()>, NodeIndex, NodeIndex) {
        let start = self.names.start();
        let end = start + 1;
        let mut ways = DiGraph::with_capacity(end as usize + 1, self.edges.len());
        for _ in 0..=end {
            ways.add_node(());
        }
        let index = |id: u32| NodeIndex::new(if id == END_ID { end as usize } else { id as usize });
        for edge in self.edges {
            for source in &edge.sources {
                ways.add_edge(index(*source), index(edge.target), ());
            }
        }
        for route in self.routes {
            for (target, _) in &route.targets {
                ways.add_edge(index(route.from), index(*target), ());
            }
        }
        for (node, targets) in self.targets.iter().enumerate() {
            if let CommandTargets::Declared(targets) = targets {
                for target in targets {
                    ways.add_edge(NodeIndex::new(node), index(*target), ());
                }
            }
        }
        for (node, handler) in self.handled() {
            ways.add_edge(NodeIndex::new(node), index(handler), ());
        }
        if let Some(node) = self.on_limit {
            ways.add_edge(index(start), index(node), ());
        }
        for node in 0..start as usize {
            if ways.neighbors(NodeIndex::new(node)).next().is_none() {
                ways.add_edge(NodeIndex::new(node), index(END_ID), ());
            }
        }
        (ways, NodeIndex::new(start as usize), NodeIndex::new(end as usize))
    }

    /// The nodes that were declared detached, and those that are reached only through them; empty if there are none.
    fn detached<S: State>(&self, nodes: &[DeclaredNode<S>]) -> Vec<bool> {
        let declared = |node: usize| nodes.get(node).is_some_and(|node| node.node.settings.detached);
        if !(0..nodes.len()).any(declared) {
            return Vec::new();
        }
        let (ways, start, _) = self.ways();
        let goes_anywhere =
            |node: usize| matches!(self.targets.get(node), Some(CommandTargets::Anywhere)) && !declared(node);
        let (mut normal, mut reached) = (HashSet::from([start.index()]), HashSet::new());
        let mut next = vec![start];
        while let Some(node) = next.pop() {
            let targets: Vec<_> = match goes_anywhere(node.index()) {
                true => (0..nodes.len()).map(NodeIndex::new).collect(),
                false => ways.neighbors(node).collect(),
            };
            let targets = targets.into_iter().filter(|target| !declared(target.index()));
            next.extend(targets.filter(|target| normal.insert(target.index())));
        }
        let mut search = Dfs::new(&ways, start);
        while let Some(node) = search.next(&ways) {
            reached.insert(node.index());
        }
        let detached = |node: usize| declared(node) || (reached.contains(&node) && !normal.contains(&node));
        (0..nodes.len()).map(detached).collect()
    }

    fn warnings<S: State>(&self, nodes: &[DeclaredNode<S>]) -> Vec<Warning> {
        let undeclared =
            nodes.iter().zip(self.targets).find(|(_, targets)| matches!(targets, CommandTargets::Anywhere));
        if let Some((node, _)) = undeclared {
            let kind = WarningKind::UndeclaredTargets { node: node.name.to_string() };
            return vec![Warning { kind, place: Some(node.place) }];
        }
        let (ways, start, end) = self.ways();
        let reached = reach(Dfs::new(&ways, start), |dfs| dfs.next(&ways));
        let back = Reversed(&ways);
        let ends = reach(Dfs::new(back, end), |dfs| dfs.next(back));
        let mut warnings = Vec::new();
        for (id, node) in nodes.iter().enumerate() {
            let name = node.name.to_string();
            if !reached.contains(&id) {
                warnings
                    .push(Warning { kind: WarningKind::Unreachable { node: name }, place: Some(node.place) });
            } else if !ends.contains(&id) {
                warnings
                    .push(Warning { kind: WarningKind::NoWayToEnd { node: name }, place: Some(node.place) });
            }
        }
        for edge in self.edges.iter().filter(|edge| edge.is_join()) {
            if let Some(source) = edge.sources.iter().find(|source| !reached.contains(&(**source as usize))) {
                let to = self.names.name(edge.target).to_owned();
                let source_node = self.names.name(*source).to_owned();
                let kind = WarningKind::JoinNeverFires { to, source_node };
                warnings.push(Warning { kind, place: Some(edge.place) });
            }
        }
        warnings
    }

    /// Nodes whose failures are handled, and by whom.
    fn handled(&self) -> impl Iterator<Item = (usize, u32)> {
        self.handlers.iter().enumerate().filter_map(|(node, handler)| Some((node, (*handler)?)))
    }

    fn drawing<S: State>(&self, nodes: &[DeclaredNode<S>]) -> Drawing {
        let mut lines = Vec::new();
        for edge in self.edges {
            let kind = if edge.is_join() { LineKind::Join } else { LineKind::Edge };
            lines.extend(edge.sources.iter().map(|source| Line {
                from: *source,
                to: Some(edge.target),
                kind,
            }));
        }
        for route in self.routes {
            let targets = route.targets.iter();
            lines.extend(targets.map(|(target, dispatches)| {
                let kind = if *dispatches { LineKind::Dispatch } else { LineKind::Route };
                Line { from: route.from, to: Some(*target), kind }
            }));
        }
        for (node, targets) in self.targets.iter().enumerate() {
            let from = node as u32;
            match targets {
                CommandTargets::None => {}
                CommandTargets::Declared(targets) => {
                    lines.extend(targets.iter().map(|to| Line {
                        from,
                        to: Some(*to),
                        kind: LineKind::Command,
                    }));
                }
                CommandTargets::Anywhere => lines.push(Line { from, to: None, kind: LineKind::Command }),
            }
        }
        lines.extend(self.handled().map(|(node, handler)| Line {
            from: node as u32,
            to: Some(handler),
            kind: LineKind::Error,
        }));
        let graphs = nodes.iter().map(|node| node.node.settings.graph.is_some()).collect();
        Drawing { names: self.names.list.clone(), graphs, lines }
    }

    /// SHA-256, cut to 128 bits, over lines of text sorted by themselves, so that the order of the builder's calls does
    /// not matter: `node N`, `edge A -> B`, `join A + B -> C` (sources sorted), `route A -> B`, `branch A -> B`,
    /// `discipline eager`, `error A -> B`, `graph N F M` (a subgraph's fingerprint and memory), `deferred N`, `limit N`, `template N`, `keeps N`, `channel N R L`. Names are written with their length before them, so that no two graphs give one text.
    fn fingerprint<S: State>(&self, schema: &S::Schema, graphs: &[Option<Arc<dyn AnyGraph>>]) -> String {
        let name = |id: u32| {
            let name = self.names.name(id);
            format!("{}:{name}", name.len())
        };
        let mut lines: Vec<String> = (0..self.names.start()).map(|id| format!("node {}", name(id))).collect();
        for edge in self.edges {
            let mut sources: Vec<String> = edge.sources.iter().map(|source| name(*source)).collect();
            sources.sort();
            let word = if edge.is_join() { "join" } else { "edge" };
            let mut line = format!("{word} {} -> {}", sources.join(" + "), name(edge.target));
            if edge.is_join() && edge.needed as usize != edge.sources.len() {
                line.push_str(&format!(" at least {}", edge.needed));
            }
            if let Some(limit) = edge.timeout {
                line.push_str(&format!(" within {}", limit.as_micros()));
            }
            lines.push(line);
        }
        for route in self.routes {
            let targets = route.targets.iter();
            lines.extend(
                targets.map(|(to, _)| format!("{} {} -> {}", route.word, name(route.from), name(*to))),
            );
        }
        if self.eager {
            lines.push("discipline eager".to_owned());
        }
        let deferred = self.deferred.iter().enumerate().filter(|(_, deferred)| **deferred);
        lines.extend(deferred.map(|(id, _)| format!("deferred {}", name(id as u32))));
        lines.extend(
            self.handled().map(|(id, handler)| format!("error {} -> {}", name(id as u32), name(handler))),
        );
        let graphs = graphs.iter().enumerate().filter_map(|(id, graph)| Some((id as u32, graph.as_ref()?)));
        lines.extend(
            graphs.map(|(id, graph)| {
                format!("graph {} {} {:?}", name(id), graph.fingerprint(), graph.memory())
            }),
        );
        let sized = |name: &str| format!("{}:{name}", name.len());
        lines.extend(self.templates.iter().map(|name| format!("template {}", sized(name))));
        let keeps = self.keeps_output.iter().enumerate().filter(|(_, keeps)| **keeps);
        lines.extend(keeps.map(|(id, _)| format!("keeps {}", name(id as u32))));
        lines.extend(self.on_limit.map(|id| format!("limit {}", name(id))));
        lines.extend(S::channels(schema).iter().map(|channel| {
            let (name, reducer) = (&channel.name, &channel.reducer);
            format!("channel {}:{name} {}:{reducer} {:?}", name.len(), reducer.len(), channel.lifetime)
        }));
        lines.sort();
        lines.dedup();
        let mut hash = Sha256::new();
        hash.update(b"agentgraph fingerprint 1\n");
        for line in lines {
            hash.update(line);
            hash.update(b"\n");
        }
        hash.finalize()[..16].iter().map(|byte| format!("{byte:02x}")).collect()
    }

    fn topology(&self) -> Topology {
        let rows = self.names.list.len() + 1;
        let mut successors = vec![Vec::new(); rows];
        let mut join_sources = vec![Vec::new(); rows];
        let mut routers = vec![Vec::new(); rows];
        let mut exits = vec![Exits::default(); rows];
        let mut joins = Vec::new();
        let mut join_words = 0;
        for edge in self.edges {
            match &edge.sources[..] {
                [source] if !edge.joins && edge.target != END_ID => {
                    successors[*source as usize].push(edge.target);
                }
                [source] if !edge.joins => exits[*source as usize].ends = true,
                sources => {
                    for (place, source) in sources.iter().enumerate() {
                        join_sources[*source as usize].push((joins.len() as u32, place as u32));
                    }
                    joins.push(Join {
                        sources: sources.to_vec(),
                        target: edge.target,
                        needed: edge.needed,
                        timeout: edge.timeout,
                        deferred: self.deferred.get(edge.target as usize).copied().unwrap_or(false),
                        first_word: join_words,
                    });
                    join_words += sources.len().div_ceil(64) as u32;
                }
            }
        }
        for (router, route) in self.routes.iter().enumerate() {
            routers[route.from as usize].push(router as u32);
            exits[route.from as usize].routers = true;
            exits[route.from as usize].fallible_routers |= route.word == "branch";
        }
        for (source, joins) in join_sources.iter().enumerate() {
            exits[source].joins = !joins.is_empty();
        }
        for (exits, keeps) in exits.iter_mut().zip(&self.keeps_output) {
            exits.keeps_output = *keeps;
        }
        for exits in &mut exits {
            exits.special = exits.fallible_routers || exits.keeps_output;
        }
        let wide = successors.iter().enumerate().filter(|(_, row)| row.len() > WIDE);
        let wide = wide.map(|(source, row)| (source as u32, row.iter().copied().collect()));
        Topology {
            nodes: self.names.start(),
            wide: wide.collect(),
            successors: Rows::of(successors),
            join_sources: Rows::of(join_sources),
            times_joins: joins.iter().any(|join: &Join| join.timeout.is_some()),
            joins,
            join_words,
            deferred: self.deferred.to_vec(),
            routers: Rows::of(routers),
            exits,
        }
    }
}

fn check_detached<S: State>(
    shape: &Shape<'_>,
    nodes: &[DeclaredNode<S>],
    detached: &[bool],
    breaks: &[DeclaredBreak],
    problems: &mut Problems,
) {
    let is_detached = |node: u32| detached.get(node as usize).copied().unwrap_or(false);
    let mut add = |node: u32, problem, place| {
        problems.add(ProblemKind::Detached { node: shape.names.name(node).to_owned(), problem }, place);
    };
    for (id, node) in (0..).zip(nodes) {
        if node.node.settings.detached && !shape.eager {
            add(id, "which only a node of an eager graph can be: add `.eager()` to the builder", node.place);
        }
    }
    for edge in shape.edges.iter().filter(|edge| edge.is_join()) {
        let (detached, normal): (Vec<u32>, Vec<u32>) =
            edge.sources.iter().partition(|node| is_detached(**node));
        if let (Some(node), false) = (detached.first(), normal.is_empty()) {
            add(*node, "and a join would wait for it beside nodes that are not", edge.place);
        }
    }
    for declared in breaks {
        match shape.names.ids.get(&*declared.node) {
            Some(node) if is_detached(*node) => {
                add(
                    *node,
                    "so nobody waits for it, and an interrupt there would wait for somebody",
                    declared.place,
                );
            }
            _ => {}
        }
    }
}

fn reach<D>(mut search: D, mut next: impl FnMut(&mut D) -> Option<NodeIndex>) -> HashSet<usize> {
    let mut found = HashSet::new();
    while let Some(node) = next(&mut search) {
        found.insert(node.index());
    }
    found
}
