//! The fingerprint, which distinguishes graphs.

use std::sync::Arc;

use sha2::{Digest, Sha256};

use super::shape::Shape;
use crate::node::inner::AnyGraph;
use crate::typed::AnySchema;

impl Shape {
    /// SHA-256, cut to 128 bits, over lines of text sorted by themselves, so that the order of the builder's
    /// calls does not matter: `node N`, `edge A -> B`, `join A + B -> C` (sources sorted), `route A -> B`,
    /// `branch A -> B`, `discipline eager`, `error A -> B`, `graph N F M` (a subgraph's fingerprint and
    /// memory), `deferred N`, `limit N`, `template N`, `keeps N`, `channel N R L`. Names are written with
    /// their length before them, so that no two graphs give one text.
    pub(super) fn fingerprint(&self, schema: &AnySchema, graphs: &[Option<Arc<dyn AnyGraph>>]) -> String {
        let name = |id: u32| {
            let name = self.names.name(id);
            format!("{}:{name}", name.len())
        };
        let mut lines: Vec<String> = (0..self.names.start()).map(|id| format!("node {}", name(id))).collect();
        for edge in &self.edges {
            let mut sources: Vec<String> = edge.sources.iter().map(|source| name(*source)).collect();
            sources.sort();
            let word = if edge.is_join { "join" } else { "edge" };
            let mut line = format!("{word} {} -> {}", sources.join(" + "), name(edge.target));
            if edge.is_join && edge.needed as usize != edge.sources.len() {
                line.push_str(&format!(" at least {}", edge.needed));
            }
            if let Some(limit) = edge.timeout {
                line.push_str(&format!(" within {}", limit.as_micros()));
            }
            lines.push(line);
        }
        for route in &self.routes {
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
        lines.extend(schema.channels().iter().map(|channel| {
            let name = &channel.name;
            let reducer = &channel.reducer;
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
}
