//! The options between the parentheses of `#[command(…)]`: which were written, and in the right form.
//!
//! An own loop, because `type` is a keyword, and because one broken option must not hide the next.

use proc_macro2::{TokenStream, TokenTree};
use syn::ext::IdentExt;
use syn::parse::Parse;
use syn::{Ident, Lit, LitStr, Path};

use crate::errors::Errors;
use crate::meant::{Meant, meant};
use crate::names;
use crate::written::{Number, Value, Written};

/// Every option, with an example of how it is written.
pub(crate) const OPTIONS: [(&str, &str); 20] = [
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

/// The options that belong to the declaration of a command, where that is apart from its handler. The
/// others belong to the handler; `crate` stands on either side.
const DECLARED: [&str; 9] = [
    "type",
    "max_retry",
    "priority",
    "biz_key",
    "unique",
    "aliases",
    "version",
    "upgrade",
    "portable",
];

/// Whether an option is one of a declaration.
pub(crate) fn is_declared(name: &str) -> bool {
    DECLARED.contains(&name)
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
    pub compensate: Option<Path>,
    pub version: Option<Number>,
    pub upgrade: Option<Path>,
    /// The word itself.
    pub portable: Option<Ident>,
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

    /// The options that were written by their right names, with the places.
    pub(crate) fn written(&self) -> impl Iterator<Item = (&str, &Ident)> {
        self.written
            .iter()
            .map(|(name, ident)| (&**name, ident))
            .filter(|(name, ident)| ident.unraw() == name)
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
        if let Value::Strange(token) = &option.value {
            let message = format!("unexpected `{token}` behind `{name}`; write `{example}`");
            return errors.on(token, message);
        }
        if let Err(error) = self.set(&name, option, example) {
            errors.add(error);
        }
    }

    fn unknown(&mut self, name: &str, ident: Ident, errors: &mut Errors) {
        let here = |name: &&str| !self.declares || *name == "crate" || is_declared(name);
        let known = || OPTIONS.iter().map(|(name, _)| *name).filter(here);
        let there_are = || format!("there are {}", names::list(known()));
        match meant(name, OPTIONS.iter().map(|(name, _)| *name)) {
            None => errors.on(&ident, format!("unknown option `{name}`; {}", there_are())),
            Some(Meant::Elsewhere(instead)) => {
                errors.on(&ident, format!("`{name}` is no option of a command; {instead}"));
            }
            Some(Meant::Option(option)) => {
                let question = format!("(did you mean `{option}`?)");
                let message = format!("unknown option `{name}` {question}; {}", there_are());
                errors.on(&ident, message);
                self.written.push((option.to_owned(), ident));
            }
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
                let until = match option.value {
                    Value::Nothing => None,
                    _ => Some(option.assigned(
                        "no value or a string",
                        "unique` or `unique = \"until_started\"",
                    )?),
                };
                self.unique = Some((option.name, until));
            }
            "aliases" => self.aliases = option.texts(example)?,
            "retention" => self.retention = Some(option.text(example)?),
            "classify" => self.classify = Some(option.path(example)?),
            "compensate" => self.compensate = Some(option.path(example)?),
            "version" => self.version = Some(option.number(example)?),
            "upgrade" => self.upgrade = Some(option.path(example)?),
            "portable" => self.portable = Some(option.word(example)?),
            "payload" => self.payload = Some(option.inner(Ident::parse, example)?),
            "handles" => self.handles = Some(option.inner(Path::parse_mod_style, example)?),
            _ => self.crate_path = Some(option.path(example)?),
        }
        Ok(())
    }
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
