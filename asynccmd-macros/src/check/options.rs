//! The rules for the options, and what they mean.

use proc_macro2::Span;
use syn::LitStr;
use syn::ext::IdentExt;

use crate::args::Args;
use crate::backoff::{self, Backoff};
use crate::duration;
use crate::errors::Errors;
use crate::model::{Argument, Model, Role};
use crate::names::{list, nearest};
use crate::template::{self, Part};
use crate::written::Number;

/// What the options mean; durations in milliseconds. What was not written is `None`.
pub(crate) struct Settings {
    /// None for a handler whose command is declared elsewhere.
    pub declared: Option<Declared>,
    pub mode: Mode,
    pub backoff: Option<Backoff>,
    pub timeout: Option<u64>,
    pub retention: Option<u64>,
}

/// What the options say of a command apart from its handler. What was not written is `None`.
pub(crate) struct Declared {
    pub command_type: LitStr,
    pub max_retry: Option<u16>,
    pub priority: Option<i8>,
    /// The literal, for its span, and its parts.
    pub biz_key: Option<(LitStr, Vec<Part>)>,
    pub unique: Option<Unique>,
    pub version: Option<u32>,
}

/// What a business key can be made of.
pub(crate) struct Names {
    /// The payload's fields; none if only rustc knows them.
    pub fields: Option<Vec<String>>,
    /// Names that could be taken for fields.
    pub others: Vec<String>,
}

#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum Mode {
    Scheduled,
    AsyncPool,
    Immediate,
}

#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum Unique {
    UntilFinished,
    UntilStarted,
}

const MODES: [(&str, Mode); 3] = [
    ("scheduled", Mode::Scheduled),
    ("async_pool", Mode::AsyncPool),
    ("immediate", Mode::Immediate),
];

const UNTIL: [(&str, Unique); 2] =
    [("until_finished", Unique::UntilFinished), ("until_started", Unique::UntilStarted)];

/// The pool of the mode of that name, which no other mode runs in.
const SCHEDULED: &str = "scheduled";

pub(super) fn check(model: &Model, errors: &mut Errors) -> Option<Settings> {
    let args = &model.args;
    let declared = match args.has("handles") {
        true => None,
        false => {
            portable(model, errors);
            Some(declared(args, &names_of(model), errors))
        }
    };
    let mode = mode(args, errors);
    pool(args, mode, errors);
    let backoff = backoff(args, errors);
    let timeout = args.timeout.as_ref().and_then(|text| timeout(model, text, errors));
    let retention = args.retention.as_ref().and_then(|text| read(text, duration::parse, errors));
    // One that is broken leaves no settings; one that stands elsewhere has none here.
    let declared = match declared {
        Some(declared) => Some(declared?),
        None => None,
    };
    Some(Settings { declared, mode: mode?, backoff, timeout, retention })
}

/// Checks what holds for a command wherever its handler runs.
pub(super) fn declared(args: &Args, names: &Names, errors: &mut Errors) -> Option<Declared> {
    let command_type = command_type(args, errors);
    aliases(args, errors);
    let max_retry = number(args.max_retry.as_ref(), "max_retry", 1, 1000, errors);
    let priority = number(args.priority.as_ref(), "priority", -100, 100, errors);
    let biz_key = args.biz_key.as_ref().and_then(|text| biz_key(names, text, errors));
    let unique = unique(args, errors);
    let version = version(args, errors);
    Some(Declared { command_type: command_type?, max_retry, priority, biz_key, unique, version })
}

fn names_of(model: &Model) -> Names {
    let names = |wanted: fn(&Argument) -> bool| {
        let arguments = model.arguments.iter().filter(move |argument| wanted(argument));
        arguments.filter_map(|argument| Some(argument.name.as_ref()?.unraw().to_string())).collect()
    };
    Names {
        fields: model.whole().is_none().then(|| names(|argument| argument.role == Role::Field)),
        others: names(|argument| argument.role != Role::Field),
    }
}

/// Reads a literal's text; what is wrong with it is an error on the literal.
fn read<T>(
    text: &LitStr,
    parse: impl FnOnce(&str) -> Result<T, String>,
    errors: &mut Errors,
) -> Option<T> {
    parse(&text.value()).map_err(|why| errors.on(text, why)).ok()
}

fn command_type(args: &Args, errors: &mut Errors) -> Option<LitStr> {
    let Some(literal) = &args.command_type else {
        // A broken `type` has had its own error.
        if !args.has("type") {
            errors.at(
                Span::call_site(),
                "a command needs a type, the key that its rows are routed by; add `type = \"order.pay\"`",
            );
        }
        return None;
    };
    read(literal, |text| stored_type("type", text), errors)?;
    Some(literal.clone())
}

/// The rule for what stands in the column `cmd_type`.
fn stored_type(what: &str, text: &str) -> Result<(), String> {
    const RULE: &str = "a type is 1 to 64 of the characters `a-z 0-9 . _ -`";
    if text.is_empty() {
        return Err(format!("the {what} is empty; {RULE}"));
    }
    let allowed = |c: char| matches!(c, 'a'..='z' | '0'..='9' | '.' | '_' | '-');
    if let Some((at, wrong)) = text.chars().enumerate().find(|(_, c)| !allowed(*c)) {
        return Err(format!("the {what} `{text}` has {wrong:?} at position {at}; {RULE}"));
    }
    if text.len() > 64 {
        return Err(format!("the {what} `{text}` has {} characters; {RULE}", text.len()));
    }
    if text.starts_with("asynccmd.") {
        return Err(format!(
            "the {what} `{text}` starts with `asynccmd.`, which is reserved; choose another prefix"
        ));
    }
    Ok(())
}

fn aliases(args: &Args, errors: &mut Errors) {
    for (at, alias) in args.aliases.iter().enumerate() {
        if read(alias, |text| stored_type("alias", text), errors).is_none() {
            continue;
        }
        let value = alias.value();
        if args.command_type.as_ref().is_some_and(|literal| literal.value() == value) {
            errors.on(alias, format!("the alias `{value}` is the type itself; remove it"));
        } else if args.aliases[..at].iter().any(|earlier| earlier.value() == value) {
            errors.on(alias, format!("the alias `{value}` is given twice; remove one"));
        }
    }
}

/// The mode; none if it is not known.
fn mode(args: &Args, errors: &mut Errors) -> Option<Mode> {
    let Some(literal) = &args.mode else { return (!args.has("mode")).then_some(Mode::Scheduled) };
    let known = || MODES.iter().map(|(name, _)| *name);
    let find = |text: &str| {
        MODES.iter().find(|(name, _)| *name == text).map(|(_, mode)| *mode).ok_or_else(|| {
            let meant = nearest(text, known())
                .map_or(String::new(), |near| format!(" (did you mean `{near}`?)"));
            format!("unknown mode `{text}`{meant}; there are {}", list(known()))
        })
    };
    read(literal, find, errors)
}

fn pool(args: &Args, mode: Option<Mode>, errors: &mut Errors) {
    let Some(literal) = &args.pool else { return };
    if literal.value().trim().is_empty() {
        errors.on(literal, "the pool's name is empty; name one that the runtime is built with");
    } else if literal.value() == SCHEDULED && mode != Some(Mode::Scheduled) {
        errors.on(literal, "the pool `scheduled` is that of the mode `scheduled`, one command after another; choose another name, or remove `mode` and `pool`");
    } else if mode == Some(Mode::Scheduled) {
        errors.on(literal, "`scheduled` commands run in a pool of their own; add `mode = \"async_pool\"` or `mode = \"immediate\"`, or remove `pool`");
    }
}

fn timeout(model: &Model, literal: &LitStr, errors: &mut Errors) -> Option<u64> {
    let millis = read(literal, duration::parse, errors)?;
    if millis == 0 {
        errors.on(literal, "a timeout of zero ends every attempt before it starts; write a longer one, or remove it");
    } else if model.function.sig.asyncness.is_none() {
        errors.on(literal, "nothing can cancel a plain `fn`, so it takes no timeout; make it an `async fn`, or ask `ctx.is_cancelled()` and remove this");
    }
    Some(millis)
}

fn number<T: TryFrom<i64>>(
    number: Option<&Number>,
    name: &str,
    least: i64,
    most: i64,
    errors: &mut Errors,
) -> Option<T> {
    let number = number?;
    match number.value {
        Some(value) if (least..=most).contains(&value) => T::try_from(value).ok(),
        _ => {
            let written = number.tokens.to_string().replace(' ', "");
            errors.on(
                &number.tokens,
                format!(
                    "`{name} = {written}` is outside of {least} to {most}; write a number within"
                ),
            );
            None
        }
    }
}

fn backoff(args: &Args, errors: &mut Errors) -> Option<Backoff> {
    if let (Some(_), Some(path)) = (&args.backoff, &args.backoff_fn) {
        errors.on(path, "`backoff` and `backoff_fn` both say how long to wait; remove one");
    }
    args.backoff.as_ref().and_then(|literal| read(literal, backoff::parse, errors))
}

fn unique(args: &Args, errors: &mut Errors) -> Option<Unique> {
    let (word, until) = args.unique.as_ref()?;
    let keyed = args.has("biz_key");
    let unique = match until {
        None => Unique::UntilFinished,
        Some(literal) => {
            let text = literal.value();
            let Some((_, unique)) = UNTIL.iter().find(|(name, _)| *name == text) else {
                let instead = match keyed {
                    true => "`unique` (until finished) or `unique = \"until_started\"`".to_owned(),
                    false => format!("`biz_key = {text:?}, unique` if this is the key"),
                };
                errors.on(literal, format!("unknown `unique = {text:?}`; write {instead}"));
                return None;
            };
            *unique
        }
    };
    if !keyed {
        errors.on(word, "`unique` without `biz_key` would make every command of this type a duplicate of the first; add `biz_key = \"…{field}\"`");
    }
    Some(unique)
}

fn version(args: &Args, errors: &mut Errors) -> Option<u32> {
    let version = number(args.version.as_ref(), "version", 1, 65_535, errors);
    // A broken `version` has had its own error.
    if let Some(path) = &args.upgrade
        && (version == Some(1) || !args.has("version"))
    {
        errors.on(path, "`upgrade` has nothing to upgrade from: payloads without `version` are of version 1; add `version = 2`, and raise it with every change of the payload's shape");
    }
    version
}

/// A box holds the payload itself, and says of it what the command says: a marker beside a payload of
/// another crate cannot.
fn portable(model: &Model, errors: &mut Errors) {
    if let (Some(word), Some(_)) = (&model.args.portable, model.whole()) {
        errors.on(word, "`portable` is for payloads that are made here, and this one is of a type of its own; write its fields as plain arguments, or declare it apart by `#[derive(Command)]`");
    }
}

fn biz_key(names: &Names, literal: &LitStr, errors: &mut Errors) -> Option<(LitStr, Vec<Part>)> {
    let parts = read(literal, template::parse, errors)?;
    if parts.is_empty() {
        errors.on(literal, "the business key is empty; write one such as `\"order:{order_id}\"`, or remove `biz_key`");
    }
    // The fields of a foreign payload are rustc's to check.
    if let Some(fields) = &names.fields {
        for part in &parts {
            if let Part::Field(name) = part
                && !fields.contains(name)
            {
                errors.on(literal, no_field(names, name, fields));
            }
        }
    }
    Some((literal.clone(), parts))
}

fn no_field(names: &Names, name: &str, fields: &[String]) -> String {
    let known = || fields.iter().map(String::as_str);
    if names.others.iter().any(|other| other == name) {
        return format!(
            "`{{{name}}}` in `biz_key` is an argument, but no field of the payload; a key is made of stored fields only"
        );
    }
    let there_are = match fields {
        [] => "the payload has none".to_owned(),
        [only] => format!("there is `{only}`"),
        _ => format!("there are {}", list(known())),
    };
    match nearest(name, known()) {
        Some(near) => {
            format!("`{{{name}}}` in `biz_key` names no field, did you mean `{{{near}}}`?")
        }
        None => format!("`{{{name}}}` in `biz_key` names no field; {there_are}"),
    }
}
