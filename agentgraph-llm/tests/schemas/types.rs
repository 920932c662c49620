//! Rust types of all shapes, and values of them.

use std::collections::{BTreeMap, BTreeSet};

use proptest::collection::{btree_map, btree_set, vec};
use proptest::option;
use proptest::prelude::*;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

fn text() -> BoxedStrategy<String> {
    "[a-z]{0,4}".boxed()
}

#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Scalars {
    pub text: String,
    pub count: u32,
    pub byte: u8,
    pub signed: i64,
    pub ratio: f64,
    pub flag: bool,
    pub letter: char,
    pub nothing: (),
}

pub fn scalars() -> BoxedStrategy<Scalars> {
    let letter = prop::char::range('a', 'z');
    (text(), any::<u32>(), any::<u8>(), any::<i64>(), -1e6..1e6, any::<bool>(), letter)
        .prop_map(|(text, count, byte, signed, ratio, flag, letter)| Scalars {
            text,
            count,
            byte,
            signed,
            ratio,
            flag,
            letter,
            nothing: (),
        })
        .boxed()
}

/// Two values.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize, JsonSchema)]
pub enum Light {
    Red,
    Green,
}

pub fn light() -> BoxedStrategy<Light> {
    prop_oneof![Just(Light::Red), Just(Light::Green)].boxed()
}

#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum Explained {
    /// The first one.
    First,
    /// The second one.
    Second,
}

pub fn explained() -> BoxedStrategy<Explained> {
    prop_oneof![Just(Explained::First), Just(Explained::Second)].boxed()
}

#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Options {
    pub text: Option<String>,
    pub nested: Option<Box<Scalars>>,
    pub light: Option<Light>,
    #[serde(default)]
    pub count: u32,
    #[serde(default = "three")]
    pub three: i32,
    pub list: Option<Vec<Option<u8>>>,
}

fn three() -> i32 {
    3
}

pub fn options() -> BoxedStrategy<Options> {
    let list = option::of(vec(option::of(any::<u8>()), 0..3));
    (option::of(text()), option::of(scalars()), option::of(light()), any::<u32>(), any::<i32>(), list)
        .prop_map(|(text, nested, light, count, three, list)| Options {
            text,
            nested: nested.map(Box::new),
            light,
            count,
            three,
            list,
        })
        .boxed()
}

#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub enum External {
    Unit,
    Other,
    New(u8),
    Pair(i8, i8),
    Fields { x: i32, y: Option<bool> },
    Boxed(Scalars),
}

pub fn external() -> BoxedStrategy<External> {
    prop_oneof![
        Just(External::Unit),
        Just(External::Other),
        any::<u8>().prop_map(External::New),
        any::<(i8, i8)>().prop_map(|(a, b)| External::Pair(a, b)),
        (any::<i32>(), option::of(any::<bool>())).prop_map(|(x, y)| External::Fields { x, y }),
        scalars().prop_map(External::Boxed),
    ]
    .boxed()
}

#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Inner {
    pub left: String,
    pub right: Option<i32>,
}

pub fn inner() -> BoxedStrategy<Inner> {
    (text(), option::of(any::<i32>())).prop_map(|(left, right)| Inner { left, right }).boxed()
}

#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(tag = "kind")]
pub enum Internal {
    Empty,
    Fields { a: String },
    Whole(Inner),
}

pub fn internal() -> BoxedStrategy<Internal> {
    prop_oneof![
        Just(Internal::Empty),
        text().prop_map(|a| Internal::Fields { a }),
        inner().prop_map(Internal::Whole),
    ]
    .boxed()
}

#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(tag = "t", content = "c")]
pub enum Adjacent {
    Number(i16),
    Text(String),
    Whole(Inner),
}

pub fn adjacent() -> BoxedStrategy<Adjacent> {
    prop_oneof![
        any::<i16>().prop_map(Adjacent::Number),
        text().prop_map(Adjacent::Text),
        inner().prop_map(Adjacent::Whole),
    ]
    .boxed()
}

#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(untagged)]
pub enum Untagged {
    Number(i64),
    Text(String),
    Object { z: bool },
    List(Vec<u8>),
}

pub fn untagged() -> BoxedStrategy<Untagged> {
    prop_oneof![
        any::<i64>().prop_map(Untagged::Number),
        text().prop_map(Untagged::Text),
        any::<bool>().prop_map(|z| Untagged::Object { z }),
        vec(any::<u8>(), 0..3).prop_map(Untagged::List),
    ]
    .boxed()
}

#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Flat {
    pub id: u8,
    #[serde(flatten)]
    pub inner: Inner,
    #[serde(flatten)]
    pub choice: Internal2,
}

#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub enum Internal2 {
    Speed(u8),
    Name { first: String },
}

pub fn flat() -> BoxedStrategy<Flat> {
    let choice = prop_oneof![
        any::<u8>().prop_map(Internal2::Speed),
        text().prop_map(|first| Internal2::Name { first }),
    ];
    (any::<u8>(), inner(), choice).prop_map(|(id, inner, choice)| Flat { id, inner, choice }).boxed()
}

/// Fields of named types with a comment of their own: references with siblings.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Commented {
    /// The lamp.
    pub light: Light,
    /// The rest.
    pub inner: Inner,
    /// Perhaps more.
    pub more: Option<Internal>,
    /// Three lamps.
    pub three: [Light; 3],
    /// Each lamp once.
    pub each: BTreeSet<Light>,
}

pub fn commented() -> BoxedStrategy<Commented> {
    (light(), inner(), option::of(internal()), [light(), light(), light()], btree_set(light(), 0..3))
        .prop_map(|(light, inner, more, three, each)| Commented { light, inner, more, three, each })
        .boxed()
}

#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Tree {
    pub label: String,
    pub children: Vec<Tree>,
    pub next: Option<Box<Tree>>,
}

pub fn tree() -> BoxedStrategy<Tree> {
    let leaf = text().prop_map(|label| Tree { label, children: Vec::new(), next: None });
    leaf.prop_recursive(3, 8, 3, |inner| {
        (text(), vec(inner.clone(), 0..3), option::of(inner)).prop_map(|(label, children, next)| Tree {
            label,
            children,
            next: next.map(Box::new),
        })
    })
    .boxed()
}

#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(tag = "op")]
pub enum Expression {
    Number {
        value: i32,
    },
    Add {
        /// The left side.
        left: Box<Expression>,
        /// The right side.
        right: Box<Expression>,
    },
    Call(Call),
}

#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Call {
    pub name: String,
    pub arguments: Vec<Expression>,
}

pub fn expression() -> BoxedStrategy<Expression> {
    let leaf = any::<i32>().prop_map(|value| Expression::Number { value });
    leaf.prop_recursive(3, 8, 3, |inner| {
        let add = (inner.clone(), inner.clone())
            .prop_map(|(left, right)| Expression::Add { left: Box::new(left), right: Box::new(right) });
        let call = (text(), vec(inner, 0..3))
            .prop_map(|(name, arguments)| Expression::Call(Call { name, arguments }));
        prop_oneof![add, call]
    })
    .boxed()
}

/// All of them in one, so that definitions are shared.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct All {
    pub options: Options,
    pub external: Vec<External>,
    pub internal: Internal,
    pub adjacent: Option<Adjacent>,
    pub untagged: Untagged,
    pub explained: Explained,
    /// As it is.
    pub flat: Flat,
    /// As it is.
    pub expression: Option<Expression>,
}

pub fn all() -> BoxedStrategy<All> {
    (
        options(),
        vec(external(), 0..2),
        internal(),
        option::of(adjacent()),
        untagged(),
        explained(),
        flat(),
        option::of(expression()),
    )
        .prop_map(|(options, external, internal, adjacent, untagged, explained, flat, expression)| All {
            options,
            external,
            internal,
            adjacent,
            untagged,
            explained,
            flat,
            expression,
        })
        .boxed()
}

#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Maps {
    pub counts: BTreeMap<String, u8>,
}

pub fn maps() -> BoxedStrategy<Maps> {
    btree_map(text(), any::<u8>(), 0..3).prop_map(|counts| Maps { counts }).boxed()
}

pub fn lights() -> BoxedStrategy<Vec<Light>> {
    vec(light(), 0..4).boxed()
}

pub fn pair() -> BoxedStrategy<(String, u8)> {
    (text(), any::<u8>()).boxed()
}
