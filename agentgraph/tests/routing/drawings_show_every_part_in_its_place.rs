//! Drawings as SVG and as text. An XML parser reads the documents; what a graph consists of is told by
//! `topology()`.
//!
//! Shown to fail when two nets share a track, when a net in a circle takes no detour, when a box does not
//! grow with its ports, when a self loop gets no room, and when names are not escaped.

use agentgraph::graph::EdgeKind;
use agentgraph::prelude::*;
use proptest::prelude::*;
use quick_xml::events::Event;
use quick_xml::{Reader, XmlVersion};

use crate::common::words::{Words, says};

/// Left, top, right and bottom.
type Area = [i32; 4];

pub struct Node {
    pub path: String,
    pub classes: Vec<String>,
    pub area: Area,
}

pub struct Edge {
    pub from: String,
    pub to: Option<String>,
    pub classes: Vec<String>,
    points: Vec<(i32, i32)>,
    label: Option<Area>,
}

#[derive(Default)]
pub struct Document {
    view: (i32, i32),
    pub nodes: Vec<Node>,
    pub edges: Vec<Edge>,
    any: Vec<Area>,
    titles: Vec<String>,
    texts: Vec<String>,
}

const ELEMENTS: [&str; 7] = ["svg", "style", "g", "title", "rect", "text", "path"];

impl Document {
    /// Reads a document, and checks that it has nothing but known elements and attributes.
    pub fn of(svg: &str) -> Self {
        let mut reader = Reader::from_str(svg);
        let mut document = Document::default();
        let (mut open, mut in_node, mut text) = (Vec::new(), false, String::new());
        loop {
            match reader.read_event().unwrap() {
                Event::Start(start) => {
                    open.push(start.name().as_ref().to_owned());
                    document.element(&start, &mut in_node);
                    text.clear();
                }
                Event::Empty(start) => document.element(&start, &mut in_node),
                Event::Text(piece) => text += &piece.xml10_content(),
                Event::GeneralRef(reference) => text += &resolved(&reference),
                Event::End(_) => match open.pop().as_deref() {
                    Some("title") => document.titles.push(std::mem::take(&mut text)),
                    Some("text") => {
                        if !in_node
                            && let Some(label) =
                                document.edges.last_mut().and_then(|edge| edge.label.as_mut())
                        {
                            label[2] = label[0] + 7 * text.chars().count() as i32;
                        }
                        document.texts.push(std::mem::take(&mut text));
                    }
                    _ => {}
                },
                Event::Eof => break,
                other => panic!("{other:?}"),
            }
        }
        assert!(open.is_empty());
        document
    }

    fn element(&mut self, start: &quick_xml::events::BytesStart<'_>, in_node: &mut bool) {
        let name = start.name().as_ref().to_owned();
        assert!(ELEMENTS.contains(&&*name), "{name}");
        let value = |key: &str| {
            let found = start.attributes().map(Result::unwrap).find(|one| one.key.as_ref() == key);
            found.map(|one| one.normalized_value(XmlVersion::Implicit1_0).unwrap().into_owned())
        };
        for attribute in start.attributes() {
            let key = attribute.unwrap().key.as_ref().to_owned();
            assert!(!key.starts_with("on") && !key.contains("href") && key != "style", "{key}");
        }
        let number = |key: &str| value(key).unwrap().parse::<i32>().unwrap();
        let classes = || value("class").unwrap_or_default().split(' ').map(str::to_owned).collect::<Vec<_>>();
        match &*name {
            "svg" => {
                let view = value("viewBox").unwrap();
                let view: Vec<i32> = view.split(' ').map(|one| one.parse().unwrap()).collect();
                assert_eq!((view[0], view[1]), (0, 0));
                self.view = (view[2], view[3]);
            }
            "g" => {
                let classes = classes();
                *in_node = classes[0] != "edge";
                match &*classes[0] {
                    "node" => {
                        self.nodes.push(Node { path: value("data-node").unwrap(), classes, area: [0; 4] })
                    }
                    "any" => self.any.push([0; 4]),
                    _ => self.edges.push(Edge {
                        from: value("data-from").unwrap(),
                        to: value("data-to"),
                        classes,
                        points: Vec::new(),
                        label: None,
                    }),
                }
            }
            "rect" => {
                let (x, y) = (number("x"), number("y"));
                let area = [x, y, x + number("width"), y + number("height")];
                let known = self.nodes.last_mut().map(|node| &mut node.area).filter(|area| **area == [0; 4]);
                if let Some(known) = self.any.last_mut().filter(|area| **area == [0; 4]).or(known) {
                    *known = area;
                }
            }
            "path" if classes() == ["line"] => {
                self.edges.last_mut().unwrap().points = points(&value("d").unwrap())
            }
            "path" => {
                let edge = self.edges.last_mut().unwrap();
                edge.points.push(points(&value("d").unwrap())[0]);
            }
            "text" if !*in_node => {
                let (x, y) = (number("x"), number("y"));
                self.edges.last_mut().unwrap().label = Some([x, y - 6, x, y + 6]);
            }
            _ => {}
        }
    }

    pub fn node(&self, path: &str) -> &Node {
        self.nodes.iter().find(|node| node.path == path).unwrap_or_else(|| panic!("{path}"))
    }

    pub fn edge(&self, from: &str, to: &str) -> &Edge {
        let found = self.edges.iter().find(|edge| edge.from == from && edge.to.as_deref() == Some(to));
        found.unwrap_or_else(|| panic!("{from} {to}"))
    }

    /// Checks that nothing covers anything else.
    fn check(&self) {
        let (width, height) = self.view;
        let boxes: Vec<(&str, Area)> = (self.nodes.iter().map(|node| (&*node.path, node.area)))
            .chain(self.any.iter().map(|area| ("any node", *area)))
            .collect();
        for (path, [left, top, right, bottom]) in &boxes {
            assert!(0 <= *left && left < right && *right <= width, "{path}");
            assert!(0 <= *top && top < bottom && *bottom <= height, "{path}");
        }
        for (at, (path, area)) in boxes.iter().enumerate() {
            for (other, covered) in &boxes[at + 1..] {
                let inside = other.starts_with(&format!("{path}/"));
                assert!(
                    if inside { contains(*area, *covered) } else { !meets(*area, *covered) },
                    "{path} {other}"
                );
            }
        }
        let mut labels: Vec<Area> = Vec::new();
        for edge in &self.edges {
            let Edge { from, to, points, label, .. } = edge;
            let name = format!("{from} -> {to:?}: {points:?}");
            assert!(
                points.iter().all(|(x, y)| (0..=width).contains(x) && (0..=height).contains(y)),
                "{name}"
            );
            if Some(from) == to.as_ref() {
                continue;
            }
            let (first, tip) = (points[0], points[points.len() - 1]);
            assert!(on_border(self.node(from).area, first), "{name}");
            match to {
                Some(to) => assert!(on_border(self.node(to).area, tip), "{name}"),
                None => assert!(self.any.iter().any(|area| on_border(*area, tip)), "{name}"),
            }
            for pair in points.windows(2) {
                let [(a, b), (c, d)] = [pair[0], pair[1]];
                assert!(a == c || b == d, "{name}: not along an axis");
                let line = [a.min(c), b.min(d), a.max(c), b.max(d)];
                for (path, area) in &boxes {
                    let around = from.starts_with(&format!("{path}/"));
                    assert!(around || !meets(*area, line), "{name} through {path}");
                }
            }
            if let Some(label) = label {
                assert!(!labels.iter().any(|other| meets(*other, *label)), "{name}: label over label");
                assert!(label[2] <= width, "{name}: {label:?}");
                for (path, area) in &boxes {
                    let around = from.starts_with(&format!("{path}/"));
                    assert!(around || !meets(*area, *label), "{name}: label over {path}");
                }
                labels.push(*label);
            }
        }
        self.check_lines();
    }

    /// Two edges lie on each other only next to an end that they have in common.
    fn check_lines(&self) {
        let lines = self.edges.iter().filter(|edge| edge.to.as_ref() != Some(&edge.from));
        let lines: Vec<(&Edge, Vec<Area>)> = lines
            .map(|edge| {
                let pairs = edge.points.windows(2).map(|pair| (pair[0], pair[1]));
                (edge, pairs.map(|((a, b), (c, d))| [a.min(c), b.min(d), a.max(c), b.max(d)]).collect())
            })
            .collect();
        for (at, (edge, own)) in lines.iter().enumerate() {
            for (other, lines) in &lines[at + 1..] {
                let ends = [edge.points[0] == other.points[0], edge.points.last() == other.points.last()];
                if ends.contains(&true) {
                    continue;
                }
                for (a, b) in own.iter().flat_map(|a| lines.iter().map(move |b| (a, b))) {
                    let along =
                        a[0] == a[2] && b[0] == b[2] && a[0] == b[0] && a[1].max(b[1]) < a[3].min(b[3]);
                    let across =
                        a[1] == a[3] && b[1] == b[3] && a[1] == b[1] && a[0].max(b[0]) < a[2].min(b[2]);
                    let names = [&edge.from, &other.from].map(|from| from.as_str());
                    assert!(!along && !across, "{names:?} {:?} {:?}: {a:?} {b:?}", edge.to, other.to);
                }
            }
        }
    }
}

fn resolved(reference: &quick_xml::events::BytesRef<'_>) -> String {
    match reference.resolve_char_ref().unwrap() {
        Some(one) => one.to_string(),
        None => match &*reference.xml10_content() {
            "amp" => "&",
            "lt" => "<",
            "gt" => ">",
            "quot" => "\"",
            other => panic!("{other}"),
        }
        .to_owned(),
    }
}

/// All points of a path, with the handles of its curves, which are its corners.
fn points(path: &str) -> Vec<(i32, i32)> {
    let numbers = path.split(|one: char| !one.is_ascii_digit() && one != '-').filter(|part| !part.is_empty());
    let numbers: Vec<i32> = numbers.map(|part| part.parse().unwrap()).collect();
    numbers.chunks(2).map(|pair| (pair[0], pair[1])).collect()
}

/// Whether the insides of two areas, or of an area and a line, have a point in common.
fn meets(a: Area, b: Area) -> bool {
    a[0] < b[2] && b[0] < a[2] && a[1] < b[3] && b[1] < a[3]
        || b[0] == b[2] && a[0] < b[0] && b[0] < a[2] && a[1] < b[3] && b[1] < a[3]
        || b[1] == b[3] && a[1] < b[1] && b[1] < a[3] && a[0] < b[2] && b[0] < a[2]
}

fn contains(a: Area, b: Area) -> bool {
    a[0] < b[0] && a[1] < b[1] && b[2] < a[2] && b[3] < a[3]
}

fn on_border([left, top, right, bottom]: Area, (x, y): (i32, i32)) -> bool {
    (left..=right).contains(&x) && (y == top || y == bottom)
}

/// Checks that each part of a graph is in its drawing once, and nothing else.
fn check(graph: &CompiledGraph<Words>) -> Document {
    let svg = graph.svg();
    let document = Document::of(&svg);
    document.check();
    let topology = graph.topology();
    let mut nodes: Vec<&str> = topology.nodes.iter().map(|node| &*node.name).collect();
    nodes.extend(topology.edges.iter().any(|edge| edge.from == START).then_some(START));
    nodes.extend(topology.edges.iter().any(|edge| edge.to.as_deref() == Some(END)).then_some(END));
    let mut drawn: Vec<&str> = document.nodes.iter().map(|node| &*node.path).collect();
    nodes.sort_unstable();
    drawn.sort_unstable();
    assert_eq!(drawn, nodes);
    let mut edges: Vec<_> = (topology.edges.iter())
        .map(|edge| {
            let is_conditional = !matches!(edge.kind, EdgeKind::Edge | EdgeKind::Join | EdgeKind::Order);
            (&*edge.from, edge.to.as_deref(), is_conditional, edge.kind == EdgeKind::Join)
        })
        .collect();
    let mut drawn: Vec<_> = (document.edges.iter())
        .map(|edge| {
            let has = |class: &str| edge.classes.iter().any(|one| one == class);
            (&*edge.from, edge.to.as_deref(), has("conditional"), has("join"))
        })
        .collect();
    edges.sort_unstable();
    drawn.sort_unstable();
    assert_eq!(drawn, edges);
    let text = graph.text();
    for node in &topology.nodes {
        assert!(text.contains(&node.name), "{}\n{text}", node.name);
    }
    assert_eq!(graph.clone().svg(), svg);
    document
}

fn graph_of(nodes: &[&'static str]) -> StateGraph<Words> {
    nodes.iter().fold(StateGraph::new(), |graph, node| graph.node(*node, says("x")))
}

#[test]
fn small_graphs_with_odd_shapes_are_drawn_whole() {
    let nothing = |_: &Words| END;
    let compiled = |graph: StateGraph<Words>| graph.compile().unwrap();
    check(&compiled(graph_of(&["only"]).edge(START, "only")));
    check(&compiled(graph_of(&["a", "b", "alone"]).edge(START, "a").edge("a", "b").edge("b", "a")));
    let again = graph_of(&["a"]).edge(START, "a").edge("a", "a").branch("a", nothing, ["a", END]);
    let again = check(&compiled(again));
    assert_eq!(again.edges.iter().filter(|edge| edge.to.as_ref() == Some(&edge.from)).count(), 2);
    let parallel = graph_of(&["a", "b"]).edge(START, "a").edge("a", "b").branch("a", nothing, ["b", END]);
    let parallel = check(&compiled(parallel));
    assert_ne!(parallel.edges[1].points[0], parallel.edges[2].points[0], "one edge would hide the other");
    // Two pieces, and a cross of which neither line can be on one track.
    let pieces = graph_of(&["a", "b", "c", "d", "e", "f"]).edge(START, "a").edge("c", "d").edge("e", "f");
    check(&compiled(pieces.edge("c", "f").edge("e", "d").edge("f", "c")));
}

#[derive(Route)]
enum After {
    Search,
    Read(u32),
    #[route(end)]
    Over,
}

async fn anywhere() -> Command<Words> {
    Command::to("plan")
}

#[test]
fn every_kind_of_edge_is_told_apart_in_the_text() {
    let _all_variants = [After::Search, After::Read(1), After::Over];
    let graph = graph_of(&["plan", "search", "read", "answer"])
        .node("jump", anywhere.on_error("answer"))
        .edge(START, "plan")
        .route("plan", |_: &Words| After::Search)
        .edge(["search", "read"], "answer")
        .edge("search", "jump")
        .branch("answer", |_: &Words| END, ["plan", "answer", END])
        .compile()
        .unwrap();
    check(&graph);
    insta::assert_snapshot!(graph.text(), @r"
                                ╭───────╮
                                │ START │
                                ╰───┬───╯
                                    │
                                    ▼
                                ┌───────┐
                                │ plan  │
                                └─┬─┬───┘
                                  ┊ ┊ ▲
                                  ┊ ┊ └┄┄┄┄┄┄┐
            ┌┄┄┄┄┄┄┄┄┄┄┄┄┄┄┄┄┄┄┄┄┄┊┄┴┄┄┄┄┄┄┄┄┊┄┐
            ┊                   ┌┄┘          ┊ ┊
            ▼                   ▼ dispatch   ┊ ┊
       ┌─────────┐   ┌─────────────────────┐ ┊ ┊
       │ search  │   │        read         │ ┊ ┊
       └───┬─┬───┘   └──────────┬──────────┘ ┊ ┊
           │ │                  │            ┊ ┊
           │ └──────────────────┤            ┊ ┊
           ▼                    │            ┊ ┊
       ┌───────┐                │            ┊ ┊
       │ jump  │                │            ┊ ┊
       └──┬─┬──┘                │            ┊ ┊
          ┊ ┊                   │            ┊ ┊
          ┊ └┄┄┄┄┄┄┄┄┄┄┄┐       │      ┌┄┄┄┄┄┘ ┊
          ▼             ▼ error ▼ join ┊       ┊
    ╭───────────╮     ┌────────────────┴┐      ┊
    │ any node  │     │     answer      │ ↺    ┊
    ╰───────────╯     └────────┬────────┘      ┊
                               ┊               ┊
                               └┄┄┄┄┄┄┄┬┄┄┄┄┄┄┄┘
                                       ▼
                                    ╭─────╮
                                    │ END │
                                    ╰─────╯
    ");
}

#[test]
fn names_of_any_characters_are_shown_and_harmless() {
    let names = [
        "</g><script>alert(1)</script>",
        "\"><image href=x onerror=alert(1)>",
        "a&amp;b 'quoted' ]]> <!--",
        "two\nlines\tand \u{1b}[31mred",
        "nul \u{0} and \u{ffff}",
        "日本語のノード",
        "e\u{301}clair",
        "\u{202e}txet",
        "a name that is much longer than any box is wide, to be cut somewhere",
    ];
    let mut graph = StateGraph::new();
    for name in names {
        graph = graph.node(name, says("x")).edge(START, name).branch(name, |_: &Words| END, [END, names[0]]);
    }
    let graph = graph.compile().unwrap();
    let document = Document::of(&graph.svg());
    document.check();
    for name in names {
        let written = name.replace(['\u{0}', '\u{1b}', '\u{ffff}'], "\u{fffd}");
        assert_eq!(document.node(&written).classes, ["node"]);
        assert_eq!(document.edge(START, &written).classes, ["edge"]);
    }
    let cut = "a name that is much longer than…";
    assert!(document.texts.iter().any(|text| text == cut), "{:?}", document.texts);
    assert!(document.titles.iter().any(|title| title == names[8]));
    let text = graph.text();
    assert!(
        text.contains(&format!("│ {cut}  │")) && text.contains(&format!("{cut}: {}", names[8])),
        "{text}"
    );
    assert!(text.contains("日本語のノード") && text.contains("e\u{301}clair"), "{text}");
    assert!(!text.contains(['\u{1b}', '\u{202e}', '\u{0}']), "{text:?}");
}

#[test]
fn subgraphs_are_one_node_until_they_are_expanded() {
    let leaf =
        || graph_of(&["write", "check"]).edge(START, "write").edge("write", "check").edge("check", END);
    let around = |name: &'static str, inner: CompiledGraph<Words>| {
        let graph = graph_of(&["before"]).node(name, inner).edge(START, "before").edge("before", name);
        graph.edge(name, END).compile().unwrap()
    };
    let graph = around("outer", around("inner", leaf().compile().unwrap()));
    check(&graph);
    let drawn = |document: &Document, path: &str| document.nodes.iter().any(|node| node.path == path);
    let outer = Document::of(&graph.drawing().expand("outer").svg());
    outer.check();
    assert!(drawn(&outer, "outer/inner") && !drawn(&outer, "outer/inner/write"));
    assert_eq!(outer.edge("outer/before", "outer/inner").classes, ["edge"]);
    let inner = Document::of(&graph.drawing().expand("outer/inner").expand("no such").svg());
    inner.check();
    assert!(drawn(&inner, "outer/inner/write") && drawn(&inner, "outer/inner/__start__"));
    assert_eq!(graph.drawing().expand_all().svg(), graph.drawing().expand("outer/inner").svg());

    let mut deep = leaf().compile().unwrap();
    for name in ["a", "b", "c", "d", "e", "f", "g", "h", "i", "j", "k", "l"] {
        deep = around(name, deep);
    }
    let document = Document::of(&deep.drawing().expand_all().svg());
    document.check();
    assert!(drawn(&document, "l/k/j/i/h/g/f/e/d/c/b/a/write"));
    assert!(deep.drawing().expand_all().text().contains("│ write │"));
}

#[test]
fn dependency_graphs_are_drawn_with_their_order_and_the_temporary_parts_of_a_pass() {
    let graph = DependencyGraph::<u64>::new().node("a", || 1).node("b", || 2).node("c", || 3);
    let graph = graph.edge("a", "c").edge("b", "c").compile().unwrap();
    let document = Document::of(&graph.svg());
    document.check();
    assert_eq!((document.nodes.len(), document.edges.len()), (3, 2));
    for name in ["a", "b", "c"] {
        assert!(graph.text().contains(&format!("│ {name} │")), "{}", graph.text());
    }
}

#[test]
fn a_thousand_routes_to_one_target_share_their_line() {
    let names: Vec<String> = (0..1000).map(|at| format!("n{at}")).collect();
    let mut graph = StateGraph::new().edge(START, &*names[0]);
    for (at, name) in names.iter().enumerate() {
        let next = names.get(at + 1).map_or(END, |next| next).to_owned();
        graph =
            graph.node(name.clone(), says("x")).branch(name.clone(), |_: &Words| END, [next, END.to_owned()]);
    }
    let graph = graph.compile().unwrap();
    let document = Document::of(&graph.svg());
    assert!(document.view.0 < 400, "{:?}", document.view);
    assert_eq!((document.nodes.len(), document.edges.len()), (1002, 2000));
}

/// Nodes, and for each edge its ends and its kind.
fn any_graph() -> impl Strategy<Value = (usize, Vec<(usize, usize, u8)>)> {
    (1..14_usize).prop_flat_map(|nodes| {
        let edge = (0..nodes, 0..nodes + 1, 0..4_u8);
        (Just(nodes), prop::collection::vec(edge, 0..30))
    })
}

fn compiled((nodes, edges): &(usize, Vec<(usize, usize, u8)>)) -> CompiledGraph<Words> {
    let name = |at: usize| {
        if at < *nodes { format!("node {}", "x".repeat(at % 5) + &at.to_string()) } else { END.into() }
    };
    let mut graph = (0..*nodes).fold(StateGraph::new(), |graph, at| graph.node(name(at), says("x")));
    graph = graph.edge(START, name(0));
    let (mut known, mut branches) = (std::collections::BTreeSet::new(), std::collections::BTreeMap::new());
    for (from, to, kind) in edges {
        match kind {
            0 | 1 if known.insert((*from, *to)) => graph = graph.edge(name(*from), name(*to)),
            2 => _ = branches.entry(*from).or_insert_with(std::collections::BTreeSet::new).insert(*to),
            3 if *to < *nodes && *from != 0 && known.insert((nodes + from, *to)) => {
                graph = graph.edge([name(0), name(*from)], name(*to));
            }
            _ => {}
        }
    }
    for (from, targets) in branches {
        let targets: Vec<String> = targets.into_iter().map(name).collect();
        graph = graph.branch(name(from), |_: &Words| END, targets);
    }
    graph.compile().unwrap()
}

proptest! {
    #[test]
    fn any_graph_is_drawn_whole_and_nothing_covers_anything_else(graph in any_graph()) {
        check(&compiled(&graph));
        prop_assert_eq!(compiled(&graph).svg(), compiled(&graph).svg());
        prop_assert_eq!(compiled(&graph).text(), compiled(&graph).text());
    }
}
