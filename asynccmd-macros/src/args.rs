//! The options between the parentheses of `#[command(…)]`: which were written, and in the right form.
//!
//! An own loop, because `type` is a keyword, and because one broken option must not hide the next.

use proc_macro2::{Group, TokenStream, TokenTree};
use quote::ToTokens;
use syn::ext::IdentExt;
use syn::parse::{Parse, ParseStream, Parser};
use syn::punctuated::Punctuated;
use syn::{Ident, Lit, LitInt, LitStr, Path, Token};

use crate::errors::Errors;
use crate::names;

/// Every option, with an example of how it is written.
const OPTIONS: [(&str, &str); 20] = [
    ("type", "type = \"order.pay\""),
    ("mode", "mode = \"async_pool\""),
    ("pool", "pool = \"ai\""),
    ("max_retry", "max_retry = 5"),
    ("backoff", "backoff = \"exponential(60s, 1h)\""),
    ("backoff_fn", "backoff_fn(path::to::function)"),
    ("timeout", "timeout = \"10m\""),
    ("priority", "priority = 10"),
    ("biz_key", "biz_key = \"order:{order_id}\""),
    ("unique", "unique"),
    ("aliases", "aliases(\"old.type\")"),
    ("retention", "retention = \"7d\""),
    ("classify", "classify(path::to::function)"),
    ("payload", "payload(Name)"),
    ("crate", "crate(path::to::asynccmd)"),
    ("compensate", "compensate(Undo)"),
    ("version", "version = 2"),
    ("upgrade", "upgrade(path::to::function)"),
    ("portable", "portable"),
    ("handles", "handles(Payment)"),
];

/// Options of the contract that this version refuses.
const NOT_YET: [&str; 4] = ["compensate", "version", "upgrade", "portable"];

/// Whether an option belongs to the declaration of a command, where that is apart from its handler. The
/// others belong to the handler; `crate` stands on either side.
pub(crate) fn is_declared(name: &str) -> bool {
    ["type", "max_retry", "priority", "biz_key", "unique", "aliases"].contains(&name)
}

/// A whole number as written.
pub(crate) struct Number {
    pub tokens: TokenStream,
    /// None if it fits no `i64`.
    pub value: Option<i64>,
}

/// The options as written. Whether a value makes sense is not asked here.
#[derive(Default)]
pub(crate) struct Args {
    pub command_type: Option<LitStr>,
    pub mode: Option<LitStr>,
    pub pool: Option<LitStr>,
    pub max_retry: Option<Number>,
    pub backoff: Option<LitStr>,
    pub backoff_fn: Option<Path>,
    pub timeout: Option<LitStr>,
    pub priority: Option<Number>,
    pub biz_key: Option<LitStr>,
    /// The word itself, and `until_started` if that stands behind it.
    pub unique: Option<(Ident, Option<LitStr>)>,
    pub aliases: Vec<LitStr>,
    pub retention: Option<LitStr>,
    pub classify: Option<Path>,
    pub payload: Option<Ident>,
    pub crate_path: Option<Path>,
    /// The command, declared elsewhere, that the function handles.
    pub handles: Option<Path>,
    /// Whether they stand beside `#[derive(Command)]`.
    declares: bool,
    /// The options that were written, also the broken ones and those that were probably meant.
    written: Vec<(String, Ident)>,
}

impl Args {
    /// Reads the options of a function; every broken one is an error of its own.
    pub(crate) fn parse(tokens: TokenStream, errors: &mut Errors) -> Self {
        Self::default().read(tokens, errors)
    }

    /// Reads the options of a declaration.
    pub(crate) fn parse_declaration(tokens: TokenStream, errors: &mut Errors) -> Self {
        Self { declares: true, ..Self::default() }.read(tokens, errors)
    }

    fn read(self, tokens: TokenStream, errors: &mut Errors) -> Self {
        let mut args = self;
        for piece in split_at_commas(tokens) {
            if let Ok(literal) = syn::parse2::<Lit>(piece.clone()) {
                args.nameless(&literal, errors);
            } else if let Some(option) = errors.keep(syn::parse2::<Written>(piece)) {
                args.take(option, errors);
            }
        }
        args
    }

    /// Whether an option was written, in whatever form.
    pub(crate) fn has(&self, name: &str) -> bool {
        self.written.iter().any(|(written, _)| written == name)
    }

    /// The options that were written by their right names and are supported, with the places.
    pub(crate) fn written(&self) -> impl Iterator<Item = (&str, &Ident)> {
        self.written
            .iter()
            .map(|(name, ident)| (&**name, ident))
            .filter(|(name, ident)| ident.unraw() == name && !NOT_YET.contains(name))
    }

    fn nameless(&mut self, literal: &Lit, errors: &mut Errors) {
        let Lit::Str(text) = literal else {
            return errors.on(
                literal,
                "a value without a name; options are written as in `type = \"order.pay\"`",
            );
        };
        self.written.push(("type".into(), Ident::new_raw("type", literal.span())));
        errors.on(literal, format!("a value without a name; write `type = {:?}`", text.value()));
    }

    fn take(&mut self, option: Written, errors: &mut Errors) {
        let name = option.name.unraw().to_string();
        let Some((_, example)) = OPTIONS.iter().find(|(known, _)| *known == name) else {
            return self.unknown(&name, option.name, errors);
        };
        if let Some((_, first)) = self.written.iter().find(|(written, _)| *written == name) {
            errors.on(first, format!("`{name}` is given twice; this is the first"));
            return errors.on(&option.name, format!("`{name}` is given twice; remove one"));
        }
        self.written.push((name.clone(), option.name.clone()));
        if NOT_YET.contains(&name.as_str()) {
            return errors.on(&option.name, format!("`{name}` is not supported yet"));
        }
        if let Err(error) = self.set(&name, option, example) {
            errors.add(error);
        }
    }

    fn unknown(&mut self, name: &str, ident: Ident, errors: &mut Errors) {
        let here = |name: &&str| !self.declares || *name == "crate" || is_declared(name);
        let known = || {
            OPTIONS
                .iter()
                .map(|(name, _)| *name)
                .filter(|name| !NOT_YET.contains(name))
                .filter(here)
        };
        let near = names::nearest(name, OPTIONS.iter().map(|(name, _)| *name));
        let meant = near.map_or(String::new(), |near| format!(" (did you mean `{near}`?)"));
        errors.on(
            &ident,
            format!("unknown option `{name}`{meant}; there are {}", names::list(known())),
        );
        if let Some(near) = near {
            self.written.push((near.to_owned(), ident));
        }
    }

    fn set(&mut self, name: &str, option: Written, example: &str) -> syn::Result<()> {
        match name {
            "type" => self.command_type = Some(option.text(example)?),
            "mode" => self.mode = Some(option.text(example)?),
            "pool" => self.pool = Some(option.text(example)?),
            "max_retry" => self.max_retry = Some(option.number(example)?),
            "backoff" => self.backoff = Some(option.text(example)?),
            "backoff_fn" => self.backoff_fn = Some(option.path(example)?),
            "timeout" => self.timeout = Some(option.text(example)?),
            "priority" => self.priority = Some(option.number(example)?),
            "biz_key" => self.biz_key = Some(option.text(example)?),
            "unique" => {
                let example = "unique` or `unique = \"until_started\"";
                let until = match option.value {
                    Value::Nothing => None,
                    _ => Some(option.text(example)?),
                };
                self.unique = Some((option.name, until));
            }
            "aliases" => self.aliases = option.texts(example)?,
            "retention" => self.retention = Some(option.text(example)?),
            "classify" => self.classify = Some(option.path(example)?),
            "payload" => self.payload = Some(option.inner(Ident::parse, example)?),
            "handles" => self.handles = Some(option.inner(Path::parse_mod_style, example)?),
            _ => self.crate_path = Some(option.path(example)?),
        }
        Ok(())
    }
}

/// One option as it stands between two commas.
struct Written {
    name: Ident,
    value: Value,
}

enum Value {
    Nothing,
    /// What stands behind `=`.
    Assigned(TokenStream),
    /// What stands in parentheses.
    Listed(Group),
}

impl Parse for Written {
    fn parse(input: ParseStream<'_>) -> syn::Result<Self> {
        let name = input.call(Ident::parse_any).map_err(|error| {
            syn::Error::new(error.span(), "expected an option, as in `type = \"order.pay\"`")
        })?;
        if input.is_empty() {
            return Ok(Self { name, value: Value::Nothing });
        }
        if input.peek(Token![=]) {
            let _: Token![=] = input.parse()?;
            return Ok(Self { name, value: Value::Assigned(input.parse()?) });
        }
        let value = match input.parse()? {
            TokenTree::Group(group) if group.delimiter() == proc_macro2::Delimiter::Parenthesis => {
                Value::Listed(group)
            }
            other => return Err(unexpected(&name, &other)),
        };
        match input.parse::<Option<TokenTree>>()? {
            None => Ok(Self { name, value }),
            Some(other) => {
                let _: TokenStream = input.parse()?;
                Err(unexpected(&name, &other))
            }
        }
    }
}

fn unexpected(name: &Ident, token: &TokenTree) -> syn::Error {
    syn::Error::new(token.span(), format!("expected `,` behind `{}`", name.unraw()))
}

impl Written {
    fn wrong(&self, tokens: impl ToTokens, what: &str, example: &str) -> syn::Error {
        syn::Error::new_spanned(
            tokens,
            format!("`{}` takes {what}; write `{example}`", self.name.unraw()),
        )
    }

    /// The value behind `=`, or an error where it stands or should stand.
    fn assigned<T: Parse>(&self, what: &str, example: &str) -> syn::Result<T> {
        let Value::Assigned(tokens) = &self.value else {
            return Err(self.wrong(&self.name, &format!("{what} behind `=`"), example));
        };
        let blame = if tokens.is_empty() { self.name.to_token_stream() } else { tokens.clone() };
        let parser = |input: ParseStream<'_>| -> syn::Result<(T, TokenStream)> {
            Ok((input.parse()?, input.parse()?))
        };
        let (value, behind) =
            parser.parse2(tokens.clone()).map_err(|_| self.wrong(blame, what, example))?;
        match behind.into_iter().next() {
            None => Ok(value),
            Some(token) => Err(unexpected(&self.name, &token)),
        }
    }

    fn text(&self, example: &str) -> syn::Result<LitStr> {
        self.assigned("a string", example)
    }

    fn number(&self, example: &str) -> syn::Result<Number> {
        struct Signed(Option<Token![-]>, LitInt);
        impl Parse for Signed {
            fn parse(input: ParseStream<'_>) -> syn::Result<Self> {
                Ok(Self(input.parse()?, input.parse()?))
            }
        }
        let Signed(minus, digits) = self.assigned("a whole number", example)?;
        let value = digits.base10_parse::<i64>().ok().map(|value| match minus {
            Some(_) => -value,
            None => value,
        });
        Ok(Number { tokens: quote::quote!(#minus #digits), value })
    }

    /// What stands in the parentheses.
    fn inner<P: Parser>(&self, parser: P, example: &str) -> syn::Result<P::Output> {
        let what = "its value in parentheses";
        match &self.value {
            Value::Listed(group) if !group.stream().is_empty() => {
                let what = "another value in its parentheses";
                parser.parse2(group.stream()).map_err(|_| self.wrong(group.stream(), what, example))
            }
            Value::Listed(group) => Err(self.wrong(group, what, example)),
            Value::Assigned(tokens) if !tokens.is_empty() => {
                let moved = format!("{}({})", self.name.unraw(), compact(tokens));
                let example = if parser.parse2(tokens.clone()).is_ok() { &moved } else { example };
                Err(self.wrong(tokens, what, example))
            }
            _ => Err(self.wrong(&self.name, what, example)),
        }
    }

    fn path(&self, example: &str) -> syn::Result<Path> {
        // In the style of an expression, so that generic functions are written as they are called.
        self.inner(|input: ParseStream<'_>| Ok(input.parse::<syn::ExprPath>()?.path), example)
    }

    fn texts(&self, example: &str) -> syn::Result<Vec<LitStr>> {
        let texts = self.inner(Punctuated::<LitStr, Token![,]>::parse_terminated, example)?;
        Ok(texts.into_iter().collect())
    }
}

/// Tokens as text, without the spaces that printing puts between them.
fn compact(tokens: &TokenStream) -> String {
    tokens.to_string().split_whitespace().collect()
}

/// What stands between the outermost commas.
pub(crate) fn split_at_commas(tokens: TokenStream) -> Vec<TokenStream> {
    let is_comma = |token: &TokenTree| matches!(token, TokenTree::Punct(p) if p.as_char() == ',');
    let tokens: Vec<TokenTree> = tokens.into_iter().collect();
    tokens
        .split(is_comma)
        .filter(|piece| !piece.is_empty())
        .map(|piece| piece.iter().cloned().collect())
        .collect()
}
