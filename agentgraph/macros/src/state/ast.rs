//! The parsed struct: channels instead of fields.

use proc_macro2::{Group, Span, TokenStream, TokenTree};
use quote::{ToTokens, format_ident};
use syn::ext::IdentExt;
use syn::{Attribute, Data, DeriveInput, Fields, Ident, LitStr, Type, Visibility};

use super::attributes;
use crate::mistakes::Mistakes;

pub(super) struct StateStruct {
    pub(super) vis: Visibility,
    pub(super) name: Ident,
    /// `<Name>Update`.
    pub(super) update: Ident,
    pub(super) volatile: bool,
    pub(super) fields: Vec<Field>,
}

pub(super) struct Field {
    pub(super) ident: Ident,
    /// The name of the channel in checkpoints: the ident without `r#`.
    pub(super) channel: String,
    pub(super) ty: Type,
    pub(super) docs: Vec<Attribute>,
    pub(super) reduce: Reduce,
    pub(super) lifetime: Lifetime,
    pub(super) aliases: Vec<LitStr>,
    pub(super) secret: bool,
}

/// The reducer of a field, with its word in the attribute.
pub(super) enum Reduce {
    Once,
    Last,
    Append(Ident),
    Merge(Ident),
    ById(Ident),
    Sum(Ident),
    Min,
    Max,
    /// The function, and the type of its write if it is given; otherwise that is the field's type.
    With(Box<syn::ExprPath>, Option<Box<Type>>),
    /// The reducer, and the type of its write if it is given.
    Reducer(Box<Type>, Option<Box<Type>>),
}

#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum Lifetime {
    Thread,
    Run,
    Ephemeral,
    Untracked,
}

impl Field {
    pub(super) fn is_stored(&self) -> bool {
        self.lifetime != Lifetime::Untracked
    }
}

/// Returns `None` if the input is no struct that could be a state.
pub(super) fn read(input: &DeriveInput, mistakes: &mut Mistakes) -> Option<StateStruct> {
    let fields = named_fields(input, mistakes)?;
    if !input.generics.params.is_empty() {
        mistakes.at(
            &input.generics.params,
            "a state cannot be generic: a checkpoint belongs to one list of channels, so write the struct with concrete types",
        );
        return None;
    }
    let volatile = attributes::of_struct(&input.attrs, mistakes);
    let fields = fields.iter().filter_map(|field| read_field(field, &input.ident, mistakes)).collect();
    let name = input.ident.clone();
    let update = format_ident!("{}Update", name.unraw(), span = name.span());
    Some(StateStruct { vis: input.vis.clone(), name, update, volatile, fields })
}

fn named_fields<'a>(input: &'a DeriveInput, mistakes: &mut Mistakes) -> Option<&'a Fields> {
    let name = &input.ident;
    match &input.data {
        Data::Struct(data) => match &data.fields {
            Fields::Named(_) => return Some(&data.fields),
            Fields::Unnamed(fields) => mistakes.at(
                fields,
                "the fields of a state need names, because checkpoints and messages call the channels by them: \
                 write `struct Name { field: Type }`",
            ),
            Fields::Unit => {
                mistakes.at(name, format!("a state has named fields: for one without channels write `struct {name} {{}}`"));
            }
        },
        Data::Enum(data) => mistakes.at(
            data.enum_token,
            "a state is a struct whose fields are channels; put the enum into a field, or use `#[derive(Route)]` if it \
             names the nodes to go to",
        ),
        Data::Union(data) => mistakes.at(data.union_token, "a state is a struct whose fields are channels"),
    }
    None
}

fn read_field(field: &syn::Field, owner: &Ident, mistakes: &mut Mistakes) -> Option<Field> {
    let ident = field.ident.clone()?;
    let said = attributes::of_field(&field.attrs, mistakes);
    Some(Field {
        channel: ident.unraw().to_string(),
        ty: without_self(&field.ty, owner),
        docs: field.attrs.iter().filter(|attribute| attribute.path().is_ident("doc")).cloned().collect(),
        reduce: said.reduce,
        lifetime: said.lifetime,
        aliases: said.aliases,
        secret: said.secret,
        ident,
    })
}

/// Replaces `Self` in a field's type by the state: generated code repeats the type where `Self` is the
/// update.
fn without_self(ty: &Type, owner: &Ident) -> Type {
    let tokens = replace_self(ty.to_token_stream(), owner);
    syn::parse2(tokens).unwrap_or_else(|_| ty.clone())
}

fn replace_self(tokens: TokenStream, owner: &Ident) -> TokenStream {
    let replace = |tree| match tree {
        TokenTree::Ident(ident) if ident == "Self" => TokenTree::Ident(spanned(owner, ident.span())),
        TokenTree::Group(group) => {
            let mut inner = Group::new(group.delimiter(), replace_self(group.stream(), owner));
            inner.set_span(group.span());
            TokenTree::Group(inner)
        }
        other => other,
    };
    tokens.into_iter().map(replace).collect()
}

fn spanned(ident: &Ident, span: Span) -> Ident {
    let mut ident = ident.clone();
    ident.set_span(span);
    ident
}
