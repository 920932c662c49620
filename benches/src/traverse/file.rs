//! Graphs from files: DOT, and CSV of edges.

use std::collections::HashMap;
use std::path::Path;

use petgraph::algo::toposort;
use petgraph::graph::DiGraph;
use winnow::ascii::{line_ending, multispace1, till_line_ending};
use winnow::combinator::{alt, delimited, opt, preceded, repeat, separated};
use winnow::prelude::*;
use winnow::token::{any, take_until, take_while};

use super::graph::Graph;
use crate::Problem;

/// The edges of a file by name, and nodes without edges as paths of one node.
type Paths = Vec<Vec<String>>;

pub(super) fn read(path: &Path) -> Result<Graph, Problem> {
    let text = std::fs::read_to_string(path).map_err(|error| format!("{}: {error}", path.display()))?;
    let paths = match path.extension().and_then(|kind| kind.to_str()) {
        Some("dot" | "gv") => dot(&text),
        Some("csv") => csv(&text),
        _ => Err("the name must end in `.dot`, `.gv` or `.csv`".into()),
    };
    let graph = paths.and_then(|paths| graph(&paths));
    graph.map_err(|problem| format!("{}: {problem}", path.display()).into())
}

/// Numbers the nodes in an order in which each edge leads to a later one.
fn graph(paths: &Paths) -> Result<Graph, Problem> {
    let mut named = DiGraph::<&str, ()>::new();
    let mut nodes = HashMap::new();
    for path in paths {
        let mut before = None;
        for name in path {
            let node = *nodes.entry(name.as_str()).or_insert_with(|| named.add_node(name));
            if let Some(before) = before.replace(node) {
                named.update_edge(before, node, ());
            }
        }
    }
    if nodes.is_empty() {
        return Err("it has no nodes".into());
    }
    let order = toposort(&named, None).map_err(|cycle| {
        format!(
            "`{}` leads back to itself; only a graph without cycles can be walked once",
            named[cycle.node_id()]
        )
    })?;
    let mut numbers = vec![0; order.len()];
    order.iter().zip(0..).for_each(|(node, number)| numbers[node.index()] = number);
    let sources = |node| {
        let sources = named.neighbors_directed(node, petgraph::Incoming);
        sources.map(|source| numbers[source.index()]).collect()
    };
    Ok(Graph::new(order.iter().map(|node| sources(*node)).collect(), None))
}

/// Reads lines of two columns; a head of `from,to` or the like is left out.
fn csv(text: &str) -> Result<Paths, Problem> {
    let mut reader =
        csv::ReaderBuilder::new().has_headers(false).trim(csv::Trim::All).from_reader(text.as_bytes());
    let mut edges = Vec::new();
    for record in reader.records() {
        let record = record?;
        let line = record.position().map_or(0, csv::Position::line);
        let [from, to] = [record.get(0), record.get(1)].map(Option::unwrap_or_default);
        if from.is_empty() || to.is_empty() {
            return Err(format!("line {line} has not two names").into());
        }
        let is_head = line == 1 && ["from", "source"].contains(&from.to_lowercase().as_str());
        edges.extend((!is_head).then(|| vec![from.to_owned(), to.to_owned()]));
    }
    Ok(edges)
}

/// Reads the nodes and edges of DOT; attributes and ports are left out, subgraphs are groups of nodes.
fn dot(text: &str) -> Result<Paths, Problem> {
    let mut paths = Vec::new();
    let parsed = whole.parse(text);
    let statements = parsed.map_err(|error| {
        let line = text.get(..error.offset()).unwrap_or_default().lines().count().max(1);
        format!("line {line} is no DOT that this program reads")
    })?;
    let mut nodes = Vec::new();
    collect(statements, &mut paths, &mut nodes);
    Ok(paths)
}

enum Statement {
    /// Of attributes alone.
    Nothing,
    /// Nodes or groups, each of which leads to the next.
    Chain(Vec<Operand>),
}

enum Operand {
    Node(String),
    Group(Vec<Statement>),
}

/// Adds the paths of the statements, and the names of their nodes to `nodes`.
fn collect(statements: Vec<Statement>, paths: &mut Paths, nodes: &mut Vec<String>) {
    for statement in statements {
        let Statement::Chain(operands) = statement else { continue };
        let mut before: Vec<String> = Vec::new();
        for operand in operands {
            let mut group = Vec::new();
            match operand {
                Operand::Node(name) => group.push(name),
                Operand::Group(statements) => collect(statements, paths, &mut group),
            }
            paths.extend(group.iter().map(|name| vec![name.clone()]));
            for from in &before {
                paths.extend(group.iter().map(|to| vec![from.clone(), to.clone()]));
            }
            nodes.extend(group.iter().cloned());
            before = group;
        }
    }
}

fn whole(input: &mut &str) -> winnow::Result<Vec<Statement>> {
    let head = (opt(word("strict")), word("digraph"), opt(id));
    delimited((blank, head), block, blank).parse_next(input)
}

fn block(input: &mut &str) -> winnow::Result<Vec<Statement>> {
    let separated = (statement, opt(sign(";"))).map(|(statement, _)| statement);
    delimited(sign("{"), repeat(0.., separated), sign("}")).parse_next(input)
}

fn statement(input: &mut &str) -> winnow::Result<Statement> {
    let defaults = (alt((word("node"), word("edge"), word("graph"))), attributes);
    let setting = (id, sign("="), id);
    let chain = (separated(1.., operand, sign("->")), attributes);
    alt((
        defaults.map(|_| Statement::Nothing),
        setting.map(|_| Statement::Nothing),
        chain.map(|(operands, ())| Statement::Chain(operands)),
    ))
    .parse_next(input)
}

fn operand(input: &mut &str) -> winnow::Result<Operand> {
    let subgraph = preceded(opt((word("subgraph"), opt(id))), block);
    let port = (sign(":"), id);
    let node = (id, opt(port), opt(port)).map(|(name, _, _)| name);
    alt((subgraph.map(Operand::Group), node.map(Operand::Node))).parse_next(input)
}

fn attributes(input: &mut &str) -> winnow::Result<()> {
    let attribute = (id, opt((sign("="), id)), opt(alt((sign(","), sign(";")))));
    let list = delimited(sign("["), repeat::<_, _, (), _, _>(0.., attribute), sign("]"));
    repeat(0.., list).parse_next(input)
}

fn id(input: &mut &str) -> winnow::Result<String> {
    let escaped = preceded('\\', any).map(|c| if c == '"' { "\"".to_owned() } else { format!("\\{c}") });
    let plain = take_while(1.., |c| c != '"' && c != '\\').map(str::to_owned);
    let quoted = delimited('"', repeat(0.., alt((plain, escaped))), '"');
    let bare = take_while(1.., |c: char| c.is_alphanumeric() || c == '_' || c == '.').map(str::to_owned);
    let number = ("-", take_while(1.., |c: char| c.is_ascii_digit() || c == '.')).take().map(str::to_owned);
    let html = delimited('<', take_while(0.., |c| c != '<' && c != '>'), '>').map(str::to_owned);
    let pieces = |pieces: Vec<String>| pieces.concat();
    (alt((quoted.map(pieces), bare, number, html)), blank).map(|(id, ())| id).parse_next(input)
}

fn word<'a>(word: &'static str) -> impl Parser<&'a str, (), winnow::error::ContextError> {
    let letters = take_while(1.., |c: char| c.is_alphanumeric() || c == '_');
    (letters.verify(move |found: &str| found.eq_ignore_ascii_case(word)), blank).void()
}

fn sign<'a>(sign: &'static str) -> impl Parser<&'a str, (), winnow::error::ContextError> + Copy {
    move |input: &mut &'a str| (sign, blank).void().parse_next(input)
}

/// Skips blanks and comments.
fn blank(input: &mut &str) -> winnow::Result<()> {
    let long = ("/*", take_until(0.., "*/"), "*/").void();
    let line = (alt(("//", "#")), till_line_ending, opt(line_ending)).void();
    repeat(0.., alt((multispace1.void(), long, line))).parse_next(input)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn dot_is_read_with_chains_groups_ports_and_comments() {
        let text = r#"
            // A plan.
            strict digraph "a plan" {
                rankdir = LR; node [shape=box, style="rounded"]
                start -> { left; right:n } -> join [label="both"] /* and */
                subgraph cluster_0 { label="inner"; inner -> join }
                "alone; \"quoted\""
            }"#;
        let graph = graph(&dot(text).unwrap()).unwrap();
        assert_eq!((graph.nodes(), graph.edges, graph.levels()), (6, 5, 3));
    }

    #[test]
    fn csv_is_read_with_and_without_a_head() {
        for text in ["from,to\na,b\nb,\"c, d\"\n", "a,b\nb, \"c\"\n"] {
            let graph = graph(&csv(text).unwrap()).unwrap();
            assert_eq!((graph.nodes(), graph.edges), (3, 2), "{text}");
        }
    }

    #[test]
    fn mistakes_are_named() {
        let said =
            |paths: Result<Paths, Problem>| paths.and_then(|paths| graph(&paths)).err().unwrap().to_string();
        assert!(said(csv("a,b\nb,a\n")).contains("leads back to itself"));
        assert!(said(csv("a,b\nb\n")).contains("line"));
        assert!(said(csv("")).contains("no nodes"));
        assert_eq!(said(dot("digraph {\n a -> b;\n a -> ;\n}")), "line 3 is no DOT that this program reads");
        assert!(said(dot("graph { a -- b }")).contains("line 1"));
    }
}
