//! The shape of a compiled graph, by dense ids: what a step looks at.
//!
//! Nodes have the ids 0, 1, .. in order of declaration; START comes after the last. Nothing here is of the size of the
//! graph at run time except the arrays themselves, which are only read.

/// The id of END, as a target.
pub(crate) const END_ID: u32 = u32::MAX;

/// Lists of numbers, one per row, in two flat arrays.
#[derive(Debug, Default)]
pub(crate) struct Rows<T> {
    starts: Vec<u32>,
    items: Vec<T>,
}

impl<T: Copy> Rows<T> {
    pub(crate) fn of(rows: Vec<Vec<T>>) -> Self {
        let mut starts = Vec::with_capacity(rows.len() + 1);
        let mut items = Vec::with_capacity(rows.iter().map(Vec::len).sum());
        starts.push(0);
        for row in rows {
            items.extend(row);
            starts.push(items.len() as u32);
        }
        Rows { starts, items }
    }

    #[inline]
    pub(crate) fn row(&self, row: u32) -> &[T] {
        let row = row as usize;
        match (self.starts.get(row), self.starts.get(row + 1)) {
            (Some(start), Some(end)) => &self.items[*start as usize..*end as usize],
            _ => &[],
        }
    }
}

/// A join: its target, its sources, and where its bits stand in the run's table.
#[derive(Clone, Debug)]
pub(crate) struct Join {
    pub(crate) sources: Vec<u32>,
    pub(crate) target: u32,
    pub(crate) first_word: u32,
}

/// Plain edges, joins and the places of the routers.
#[derive(Debug, Default)]
pub(crate) struct Topology {
    /// How many nodes; also the id of START.
    pub(crate) nodes: u32,
    /// The targets of plain edges; END is left out, since it asks for nothing.
    pub(crate) successors: Rows<u32>,
    /// For each source: the join and the source's place in it.
    pub(crate) join_sources: Rows<(u32, u32)>,
    pub(crate) joins: Vec<Join>,
    pub(crate) join_words: u32,
    /// For each source: its routers.
    pub(crate) routers: Rows<u32>,
    /// For each source: what it has beside plain edges.
    pub(crate) exits: Vec<Exits>,
}

/// What leaves a node beside plain edges: most nodes have nothing, and a step asks this once.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Exits {
    pub(crate) joins: bool,
    pub(crate) routers: bool,
    /// A router that names its targets, which may be wrong ones.
    pub(crate) fallible_routers: bool,
}

impl Topology {
    pub(crate) fn start(&self) -> u32 {
        self.nodes
    }

    #[inline]
    pub(crate) fn exits(&self, node: u32) -> Exits {
        self.exits.get(node as usize).copied().unwrap_or_default()
    }
}

/// How far the joins of one run have come. Two allocations for a graph with joins, none for one without.
#[derive(Clone, Debug, Default)]
pub(crate) struct Joins {
    arrived: Vec<u64>,
    missing: Vec<u32>,
    /// The half-full ones, so that a commit looks at no other.
    open: Vec<u32>,
}

impl Joins {
    pub(crate) fn of(topology: &Topology) -> Self {
        Joins {
            arrived: vec![0; topology.join_words as usize],
            missing: topology.joins.iter().map(|join| join.sources.len() as u32).collect(),
            open: Vec::new(),
        }
    }

    /// Notes that a source arrived. True if that was the last one missing: then the join has fired and begins anew.
    pub(crate) fn arrive(&mut self, topology: &Topology, join: u32, place: u32) -> bool {
        let shape = &topology.joins[join as usize];
        let word = &mut self.arrived[(shape.first_word + place / 64) as usize];
        let bit = 1_u64 << (place % 64);
        if *word & bit != 0 {
            return false;
        }
        *word |= bit;
        let missing = &mut self.missing[join as usize];
        if *missing == shape.sources.len() as u32 {
            self.open.push(join);
        }
        *missing -= 1;
        if *missing > 0 {
            return false;
        }
        self.open.retain(|open| *open != join);
        *missing = shape.sources.len() as u32;
        let words = shape.sources.len().div_ceil(64);
        self.arrived[shape.first_word as usize..][..words].fill(0);
        true
    }

    /// Whether any join is half full.
    pub(crate) fn any_open(&self) -> bool {
        !self.open.is_empty()
    }

    /// The joins that some sources have reached and others not, in order of declaration: the join, and the places of
    /// those that arrived.
    pub(crate) fn half_full<'a>(
        &'a self,
        topology: &'a Topology,
    ) -> impl Iterator<Item = (&'a Join, Vec<u32>)> {
        let mut open = self.open.clone();
        open.sort_unstable();
        open.into_iter().map(|join| {
            let join = &topology.joins[join as usize];
            let arrived = (0..join.sources.len() as u32).filter(|place| {
                let word = self.arrived[(join.first_word + place / 64) as usize];
                word & (1 << (place % 64)) != 0
            });
            (join, arrived.collect())
        })
    }
}
