//! One handler as its attribute and signature describe it: tokens with their spans, nothing judged.

use proc_macro2::{Group, Ident, Span, TokenStream, TokenTree};
use quote::{ToTokens, format_ident, quote};
use syn::ext::IdentExt;
use syn::{Attribute, FnArg, Meta, Pat, PatType, Path, Receiver, Type, TypeReference, parse_quote};

use crate::args::{Args, split_at_commas};
use crate::input::Function;
use crate::names;

/// Everything that checking and expanding need.
pub(crate) struct Model {
    /// The function as it is emitted: without this macro's attributes on its arguments.
    pub function: Function,
    pub args: Args,
    pub arguments: Vec<Argument>,
    pub receiver: Option<Receiver>,
    pub rt: Rt,
    /// The name of the payload type, or of the marker for the handler; none if the function's name makes
    /// none.
    pub payload: Option<Ident>,
    /// The name of the submit helper.
    pub helper: Ident,
    /// Attributes of the function that its type and helper share.
    pub shared: Shared,
}

/// What an argument is filled with.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum Role {
    /// A field of the payload.
    Field,
    /// The whole payload: `#[payload]`.
    Payload,
    /// The runtime's state: `#[state]`.
    State,
    /// `ctx: &Context`.
    Context,
}

/// One argument.
pub(crate) struct Argument {
    pub role: Role,
    pub pat: Pat,
    /// Its name, if the pattern is one.
    pub name: Option<Ident>,
    pub ty: Type,
    /// `#[state]` and `#[payload]` as written.
    pub markers: Vec<Attribute>,
    /// `serde` and `doc`, for the field.
    pub field_attrs: Vec<Attribute>,
    /// `cfg`, for everything that is made of the argument.
    pub cfgs: Vec<Attribute>,
    /// What belongs on no argument.
    pub foreign: Vec<Attribute>,
}

/// The attributes of a function that hold for what is generated from it.
pub(crate) struct Shared {
    pub docs: Vec<Attribute>,
    /// `cfg`, lint levels and `deprecated`.
    pub rest: Vec<Attribute>,
    deprecated: bool,
}

impl Model {
    /// Gives every part of a function and its options its place.
    pub(crate) fn new(mut function: Function, args: Args) -> Self {
        let mut arguments = Vec::new();
        let mut receiver = None;
        for input in &mut function.sig.inputs {
            match input {
                FnArg::Receiver(found) => receiver = Some(found.clone()),
                FnArg::Typed(typed) => arguments.push(Argument::take(typed)),
            }
        }
        let name = &function.sig.ident;
        let span = located(name.span());
        let bare = name.unraw().to_string();
        let handler_of = |path: &Path| {
            let last = path.segments.last()?;
            Some(format_ident!("{}Handler", last.ident.unraw(), span = located(last.ident.span())))
        };
        let payload = args.handles.as_ref().and_then(handler_of);
        let payload = payload.or_else(|| args.payload.clone()).or_else(|| {
            let mut ident = syn::parse_str::<Ident>(&names::camel_case(&bare)).ok()?;
            ident.set_span(span);
            Some(ident)
        });
        let helper = format_ident!("submit_{bare}", span = span);
        Self {
            rt: Rt::new(args.crate_path.as_ref()),
            shared: Shared::of(&function.attrs),
            function,
            args,
            arguments,
            receiver,
            payload,
            helper,
        }
    }

    /// The arguments with a role.
    pub(crate) fn having(&self, role: Role) -> impl Iterator<Item = &Argument> {
        self.arguments.iter().filter(move |argument| argument.role == role)
    }

    /// The argument that is the whole payload.
    pub(crate) fn whole(&self) -> Option<&Argument> {
        self.having(Role::Payload).next()
    }
}

impl Argument {
    /// Reads an argument, and leaves on it what rustc accepts there.
    fn take(typed: &mut PatType) -> Self {
        let mut argument = Self {
            role: Role::Field,
            pat: (*typed.pat).clone(),
            name: match &*typed.pat {
                Pat::Ident(pat) if pat.by_ref.is_none() && pat.subpat.is_none() => {
                    Some(pat.ident.clone())
                }
                _ => None,
            },
            ty: (*typed.ty).clone(),
            markers: Vec::new(),
            field_attrs: Vec::new(),
            cfgs: Vec::new(),
            foreign: Vec::new(),
        };
        let mut left = Vec::new();
        for attr in std::mem::take(&mut typed.attrs) {
            argument.sort(attr, &mut left);
        }
        typed.attrs = left;
        argument.role = match argument.markers.first() {
            // A marker on it is refused there.
            _ if is_context(&argument.ty) => Role::Context,
            Some(marker) if marker.path().is_ident("state") => Role::State,
            Some(_) => Role::Payload,
            None if is_owned_context(&argument.ty) => Role::Context,
            None => Role::Field,
        };
        argument
    }

    /// Whether serde alone decides how the field is stored: no attribute of the user's does.
    pub(crate) fn is_plain(&self) -> bool {
        self.field_attrs.iter().all(|attr| attr.path().is_ident("doc"))
    }

    fn sort(&mut self, attr: Attribute, left: &mut Vec<Attribute>) {
        match Belongs::of(&attr.meta) {
            Belongs::Marker => self.markers.push(attr),
            Belongs::Field => self.field_attrs.push(attr),
            Belongs::Everywhere => {
                left.push(attr.clone());
                self.cfgs.push(attr);
            }
            Belongs::Function => left.push(attr),
            Belongs::Nowhere => self.foreign.push(attr),
            Belongs::Split(predicate, metas) => {
                for meta in metas {
                    self.sort(parse_quote!(#[cfg_attr(#predicate, #meta)]), left);
                }
            }
        }
    }
}

/// Where an attribute on an argument goes.
enum Belongs {
    Marker,
    Field,
    /// To the argument and the field.
    Everywhere,
    /// It stays on the argument.
    Function,
    Nowhere,
    /// A `cfg_attr` over several attributes: each goes its own way.
    Split(TokenStream, Vec<Meta>),
}

impl Belongs {
    fn of(meta: &Meta) -> Self {
        let Some(name) = meta.path().get_ident() else { return Self::Nowhere };
        match name.to_string().as_str() {
            "state" | "payload" => Self::Marker,
            "serde" | "doc" => Self::Field,
            "cfg" => Self::Everywhere,
            "cfg_attr" => {
                let Meta::List(list) = meta else { return Self::Nowhere };
                let mut pieces = split_at_commas(list.tokens.clone()).into_iter();
                let Some(predicate) = pieces.next() else { return Self::Nowhere };
                let Ok(metas) = pieces.map(syn::parse2).collect::<syn::Result<Vec<Meta>>>() else {
                    return Self::Nowhere;
                };
                match &metas[..] {
                    [] => Self::Nowhere,
                    [only] => match Self::of(only) {
                        // A marker decides a role, which a predicate cannot.
                        Self::Marker => Self::Nowhere,
                        belongs => belongs,
                    },
                    _ => Self::Split(predicate, metas),
                }
            }
            level if LINT_LEVELS.contains(&level) => Self::Function,
            _ => Self::Nowhere,
        }
    }
}

const LINT_LEVELS: [&str; 5] = ["allow", "warn", "deny", "forbid", "expect"];

impl Shared {
    /// What lets generated code name what is deprecated with the function. Only then, because it would
    /// be an error under a user's `forbid`.
    pub(crate) fn allow_deprecated(&self) -> Option<TokenStream> {
        self.deprecated.then(
            || quote!(#[allow(deprecated, reason = "generated with what is deprecated here")]),
        )
    }

    pub(crate) fn of(attrs: &[Attribute]) -> Self {
        let mut shared = Self { docs: Vec::new(), rest: Vec::new(), deprecated: false };
        for attr in attrs {
            let Some(name) = attr.path().get_ident().map(Ident::to_string) else { continue };
            match name.as_str() {
                "doc" => shared.docs.push(attr.clone()),
                // What is expected of the function need not happen in what is made of it.
                "expect" => {
                    let mut attr = attr.clone();
                    if let Meta::List(list) = &mut attr.meta {
                        list.path = Ident::new("allow", Span::call_site()).into();
                    }
                    shared.rest.push(attr);
                }
                "deprecated" => {
                    shared.deprecated = true;
                    shared.rest.push(attr.clone());
                }
                "cfg" => shared.rest.push(attr.clone()),
                level if LINT_LEVELS.contains(&level) => shared.rest.push(attr.clone()),
                _ => {}
            }
        }
        shared
    }
}

/// The type behind parentheses and the invisible groups that `macro_rules!` leaves.
pub(crate) fn bare(ty: &Type) -> &Type {
    match ty {
        Type::Group(group) => bare(&group.elem),
        Type::Paren(paren) => bare(&paren.elem),
        _ => ty,
    }
}

fn is_context(ty: &Type) -> bool {
    let Type::Reference(TypeReference { elem, .. }) = bare(ty) else { return false };
    let Type::Path(path) = bare(elem) else { return false };
    path.path.segments.last().is_some_and(|last| last.ident == "Context")
}

/// Whether a type is most probably the context, with its `&` forgotten. A type of the user's that has its
/// name keeps it by a path before it.
fn is_owned_context(ty: &Type) -> bool {
    let Type::Path(path) = bare(ty) else { return false };
    let mut names = path.path.segments.iter().map(|segment| segment.ident.to_string());
    let (first, second, third) = (names.next(), names.next(), names.next());
    match (first.as_deref(), second.as_deref()) {
        (Some("Context"), None) => true,
        (Some("asynccmd"), Some("Context")) => third.is_none(),
        _ => false,
    }
}

/// The place of a user's token, with names looked up as in the code around the attribute: what is made
/// of such tokens counts as generated, which lints leave alone.
pub(crate) fn located(span: Span) -> Span {
    span.resolved_at(Span::call_site())
}

/// The path to what generated code may name.
pub(crate) struct Rt(TokenStream);

impl Rt {
    pub(crate) fn new(crate_path: Option<&Path>) -> Self {
        Self(match crate_path {
            Some(path) => quote!(#path::__rt),
            None => quote!(::asynccmd::__rt),
        })
    }

    /// The path at a place, so that rustc reports there what it finds wrong with what is called. (An
    /// interpolated path keeps its own spans otherwise.)
    pub(crate) fn at(&self, span: Span) -> TokenStream {
        at(span, self.0.clone())
    }

    /// Items, passed through one macro: a path that leads nowhere is then one error.
    pub(crate) fn items(&self, items: TokenStream) -> TokenStream {
        quote!(#self::items! { #items })
    }

    /// The path as serde's derives take it.
    pub(crate) fn serde(&self) -> String {
        format!("{}::serde", self.0.to_string().split_whitespace().collect::<String>())
    }
}

impl ToTokens for Rt {
    fn to_tokens(&self, tokens: &mut TokenStream) {
        tokens.extend(self.0.clone());
    }
}

/// A local variable or parameter of generated code, placed at a user's token. A constant or static of the
/// user's could be in the way of a plain name, hygiene or not.
pub(crate) fn local(name: &str, span: Span) -> Ident {
    Ident::new(&format!("__asynccmd_{name}"), Span::mixed_site().located_at(span))
}

/// Whether a word stands anywhere in tokens.
pub(crate) fn mentions(tokens: TokenStream, word: &str) -> bool {
    tokens.into_iter().any(|token| match token {
        TokenTree::Ident(ident) => ident == word,
        TokenTree::Group(group) => mentions(group.stream(), word),
        _ => false,
    })
}

/// Tokens moved to a place; how their names are looked up stays.
pub(crate) fn at(span: Span, tokens: TokenStream) -> TokenStream {
    tokens
        .into_iter()
        .map(|mut token| {
            if let TokenTree::Group(group) = &token {
                token = Group::new(group.delimiter(), at(span, group.stream())).into();
            }
            token.set_span(span.resolved_at(token.span()));
            token
        })
        .collect()
}
