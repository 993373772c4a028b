//! A type with `#[derive(Command)]`: a command that is declared apart from its handler.

use proc_macro2::TokenStream;
use quote::format_ident;
use syn::ext::IdentExt;
use syn::{Attribute, Fields, Generics, Ident, Item, Meta, Visibility};

use crate::args::Args;
use crate::errors::Errors;
use crate::model::{Rt, Shared, located};
use crate::names;

/// Everything that checking and expanding need; nothing judged.
pub(crate) struct Declaration {
    pub kind: Kind,
    pub vis: Visibility,
    pub ident: Ident,
    pub generics: Generics,
    /// The names of its fields, for a struct that gives them names.
    pub fields: Vec<Ident>,
    /// Its `#[command(…)]`s.
    pub options: Vec<Attribute>,
    pub args: Args,
    pub rt: Rt,
    /// The name of the submit helper.
    pub helper: Ident,
    /// Attributes of the type that its helper shares.
    pub shared: Shared,
}

pub(crate) enum Kind {
    Struct,
    Enum,
    Union,
}

impl Declaration {
    /// Reads what a derive is given.
    pub(crate) fn parse(item: TokenStream, errors: &mut Errors) -> Option<Self> {
        let (kind, attrs, vis, ident, generics, fields) = match errors.keep(syn::parse2(item))? {
            Item::Struct(item) => {
                (Kind::Struct, item.attrs, item.vis, item.ident, item.generics, Some(item.fields))
            }
            Item::Enum(item) => (Kind::Enum, item.attrs, item.vis, item.ident, item.generics, None),
            Item::Union(item) => {
                (Kind::Union, item.attrs, item.vis, item.ident, item.generics, None)
            }
            // rustc lets no derive stand on anything else.
            _ => return None,
        };
        let options: Vec<Attribute> =
            attrs.iter().filter(|attr| attr.path().is_ident("command")).cloned().collect();
        let tokens = match options.first().map(|attr| &attr.meta) {
            Some(Meta::List(list)) => list.tokens.clone(),
            _ => TokenStream::new(),
        };
        let args = Args::parse_declaration(tokens, errors);
        let snake = names::snake_case(&ident.unraw().to_string());
        Some(Self {
            kind,
            rt: Rt::new(args.crate_path.as_ref()),
            shared: Shared::of(&attrs),
            helper: format_ident!("submit_{snake}", span = located(ident.span())),
            fields: match fields {
                Some(Fields::Named(fields)) => {
                    fields.named.into_iter().filter_map(|field| field.ident).collect()
                }
                _ => Vec::new(),
            },
            vis,
            ident,
            generics,
            options,
            args,
        })
    }
}
