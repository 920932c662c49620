//! A copy of a checked graph whose nodes and routes are observed by a test.

use std::sync::Arc;

use super::core::{GraphCore, NodeEntry, Router, RouterFn, TemporaryNodes};
use super::template::{Template, Templates};
use crate::erased::observed::{DecideLater, ObservedNode, Observer, ShowStep, path_in};
use crate::record::codec::Codec;
use crate::record::content::{Content, Tree};
use crate::route::Pick;
use crate::step::{Dispatch, Goto, InputValue, Step};
use crate::typed::Seen;

impl GraphCore {
    /// The same graph, observed; `around` is the path of the node that it is, empty for a root graph.
    pub(crate) fn observed(self: &Arc<Self>, by: &Arc<dyn Observer>, around: &str, codec: &Codec) -> Self {
        let nodes = self.names.iter().zip(&self.nodes);
        let show = &self.show(*codec);
        GraphCore {
            schema: self.schema.clone(),
            nodes: nodes.map(|(name, node)| node.observed(by, around, name, show)).collect(),
            topology: self.topology.clone(),
            routers: self.observed_routers(by, around, codec),
            names: Arc::clone(&self.names),
            rules: self.rules.clone(),
            uses: self.uses,
            about: self.about.clone(),
            detached: self.detached.clone(),
            stored: self.stored.clone(),
            temporary: TemporaryNodes {
                templates: self.observed_templates(by, around, show),
                defaults: self.temporary.defaults.clone(),
            },
        }
    }

    /// The update of a step, and where it goes.
    fn show(self: &Arc<Self>, codec: Codec) -> ShowStep {
        let core = Arc::clone(self);
        Arc::new(move |step| {
            let (update, targets, replaces_edges) = match step {
                Step::None => (None, &[][..], false),
                Step::Update(update) => (Some(update), &[][..], false),
                Step::Command(command) => {
                    (command.update.as_ref(), &command.targets[..], command.replaces_edges)
                }
            };
            let targets = targets.iter().map(Goto::tree).chain([Tree::text(&replaces_edges.to_string())]);
            let targets = Content::ordered("", Tree::List(targets.collect()));
            match update {
                Some(update) => targets.and(codec.content_of_update(&core.schema, update)),
                None => targets,
            }
        })
    }

    fn observed_templates(&self, by: &Arc<dyn Observer>, around: &str, show: &ShowStep) -> Templates {
        let observed = |(name, template): (&Arc<str>, &Template)| {
            let (template, by, show) = (Arc::clone(template), Arc::clone(by), Arc::clone(show));
            let (around, template_name) = (Arc::<str>::from(around), Arc::clone(name));
            let observed: Template = Arc::new(move |args| {
                let mut node = template(args)?;
                node.call = Arc::new(ObservedNode::new(&node.call, &around, &template_name, &by, &show));
                Ok(node)
            });
            (Arc::clone(name), observed)
        };
        self.temporary.templates.iter().map(observed).collect()
    }

    /// Routers that call those of the original graph, which owns the functions.
    fn observed_routers(
        self: &Arc<Self>,
        by: &Arc<dyn Observer>,
        around: &str,
        codec: &Codec,
    ) -> Vec<Router> {
        let mut sources = vec![self.topology.start(); self.routers.len()];
        for node in 0..=self.topology.start() {
            self.topology.routers.row(node).iter().for_each(|router| sources[*router as usize] = node);
        }
        let observed = |(at, router): (usize, &Router)| {
            let (original, codec) = (Arc::clone(self), *codec);
            let (by, path) = (Arc::clone(by), path_in(around, self.name(sources[at])));
            let decide = match &router.decide {
                RouterFn::Typed(_) => RouterFn::Typed(Box::new(move |state, take| {
                    let mut picks: Option<Vec<Pick>> = None;
                    let decide = &mut || {
                        let (made, text) = original.routers[at].picks(state);
                        picks.get_or_insert(made);
                        text
                    };
                    by.decides(&path, decide, original.later(at, codec, state));
                    picks.into_iter().flatten().for_each(take);
                })),
                RouterFn::Named(_) => RouterFn::Named(Box::new(move |state, targets| {
                    let mut gotos: Option<Vec<Goto>> = None;
                    let decide = &mut || {
                        let (made, text) = original.routers[at].gotos(state);
                        gotos.get_or_insert(made);
                        text
                    };
                    by.decides(&path, decide, original.later(at, codec, state));
                    targets.extend(gotos.into_iter().flatten());
                })),
            };
            Router { decide, targets: router.targets.clone() }
        };
        self.routers.iter().enumerate().map(observed).collect()
    }
}

impl GraphCore {
    /// Decides again on a copy of a state.
    fn later(self: &Arc<Self>, router: usize, codec: Codec, state: Seen<'_>) -> DecideLater {
        let (core, state) = (Arc::clone(self), self.schema.copy_of(state));
        Box::new(move || {
            let state = codec.reread(&core.schema, &state);
            let router = &core.routers[router];
            router.picks(state.seen()).1 + &router.gotos(state.seen()).1
        })
    }
}

impl Router {
    /// The targets of a typed route, and as text.
    fn picks(&self, state: Seen<'_>) -> (Vec<Pick>, String) {
        let mut made = Vec::new();
        if let RouterFn::Typed(decide) = &self.decide {
            decide(state, &mut |pick| made.push(pick));
        }
        let text = made.iter().map(Pick::text).collect();
        (made, text)
    }

    /// The targets of a branch, and as text.
    fn gotos(&self, state: Seen<'_>) -> (Vec<Goto>, String) {
        let mut made = Vec::new();
        if let RouterFn::Named(decide) = &self.decide {
            decide(state, &mut made);
        }
        let text = made.iter().map(|goto| format!("{:?}", goto.tree())).collect();
        (made, text)
    }
}

impl NodeEntry {
    fn observed(&self, by: &Arc<dyn Observer>, around: &str, name: &str, show: &ShowStep) -> Self {
        NodeEntry { call: Arc::new(ObservedNode::new(&self.call, around, name, by, show)), ..self.clone() }
    }
}

impl Pick {
    /// The decision as text, to be compared with another one of the same route.
    fn text(&self) -> String {
        match &self.input {
            None => format!("{};", self.target),
            Some(input) => format!("{}({:?});", self.target, input.tree()),
        }
    }
}

impl Goto {
    /// The target, to be compared with another one.
    fn tree(&self) -> Tree {
        match self {
            Goto::Node(name) => Tree::text(name),
            Goto::Dispatch(Dispatch { node, input }) => Tree::List(vec![Tree::text(node), input.tree()]),
        }
    }
}

impl InputValue {
    fn tree(&self) -> Tree {
        Tree::read(&self.encode().unwrap_or_default())
    }
}
