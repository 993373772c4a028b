//! Holds the floors of the library: a module imports only what lies on a lower floor.
//!
//! Reads every path in `asynccmd/src` that starts at the crate or leaves its module (`crate::`,
//! `$crate::`, `super::`, `self::`, `asynccmd::`), wherever it stands: in a `use` tree, in a
//! signature, in the middle of an expression. Comments and literals do not count.
//!
//! ```text
//! 6 admin cli alert testing     lib.rs    names all, and holds nothing but re-exports
//! 5 runtime                     __rt.rs   names all, and is named by nobody
//! 4 client
//! 3 store                       and its back ends never name each other
//! 2 registry
//! 1 command
//! 0 error time ids
//! ```

#[path = "layers/paths.rs"]
mod paths;

use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};

use paths::{Token, arrows, tokens, tree};

/// Every module of the library: its floor, and the floors that it may name beside itself.
const MODULES: &[(&str, &[u8], u8)] = &[
    ("ids", &[], 0),
    ("status", &[], 0),
    ("time", &[0], 0),
    ("error", &[0], 0),
    ("command", &[0], 1),
    ("registry", &[0, 1], 2),
    ("store", &[0, 1], 3),
    ("client", &[0, 1, 2, 3], 4),
    ("runtime", &[0, 1, 2, 3, 4], 5),
    ("admin", &[0, 1, 2, 3, 4, 5], 6),
    ("cli", &[0, 1, 2, 3, 4, 5], 6),
    ("alert", &[0, 1, 2, 3, 4, 5], 6),
    ("testing", &[0, 1, 2, 3, 4, 5], 6),
];

/// Parts of a folder that never name each other.
const APART: &[(&str, &[&str])] = &[
    ("store", &["postgres", "mysql", "sqlite"]),
    ("runtime", &["scheduler", "keeper", "listener", "recovery", "retention", "progress"]),
];

/// Folders with an order of their own: a part names only parts that stand behind it here. What the
/// folder's `mod.rs` defines stands above all of them but the first, which makes it.
const ONE_WAY: &[(&str, &[&str])] = &[(
    "runtime",
    &[
        "builder",
        "engine",
        "instance",
        // Side by side, see APART.
        "scheduler",
        "keeper",
        "listener",
        "recovery",
        "retention",
        "port",
        "config",
        "pool",
        "attempt",
        "completer",
        "progress",
        // The base.
        "aside",
        "conclusion",
        "undo",
        "plan",
        "room",
        "share",
        "speed",
        "inbox",
        "ledger",
        "lease",
        "hooks",
        "pulse",
        "faults",
    ],
)];

#[test]
fn no_arrow_points_up() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../asynccmd/src");
    let mut files = Vec::new();
    collect(&root, &mut files);
    let sources: Vec<(String, String)> = files
        .iter()
        .map(|file| {
            let name = file.strip_prefix(&root).unwrap().to_string_lossy().replace('\\', "/");
            (name, fs::read_to_string(file).unwrap())
        })
        .collect();
    let (seen, wrong) = judge(&sources);
    assert!(seen > 20, "only {seen} paths seen in {} files: nothing was tested", files.len());
    assert!(wrong.is_empty(), "\n{}\n", wrong.join("\n"));
}

fn collect(folder: &Path, files: &mut Vec<PathBuf>) {
    let mut entries: Vec<_> = fs::read_dir(folder).unwrap().map(|e| e.unwrap().path()).collect();
    entries.sort();
    for path in entries {
        if path.is_dir() {
            collect(&path, files);
        } else if path.extension().is_some_and(|extension| extension == "rs") {
            files.push(path);
        }
    }
}

/// Judges files (name below `src`, text). Says how many paths it saw, and what is wrong.
fn judge(sources: &[(String, String)]) -> (usize, Vec<String>) {
    let mut exports = BTreeMap::new();
    let mut wrong = Vec::new();
    let mut seen = 0;
    for (name, text) in sources.iter().filter(|(name, _)| name == "lib.rs") {
        let tokens = tokens(text);
        exports = re_exports(&tokens);
        wrong.extend(logic(&tokens).map(|token| {
            format!("{name}:{}: `{}`: lib.rs holds re-exports only", token.line, token.text)
        }));
    }
    for (name, text) in sources.iter().filter(|(name, _)| name != "lib.rs") {
        let module = module_of(name);
        let tokens = tokens(text);
        if module[0] != "__rt" && floor(&module[0]).is_none() {
            wrong.push(format!("{name}:1: `{}` has no floor: add it to MODULES", module[0]));
            continue;
        }
        if let [folder, part, ..] = &module[..]
            && parts(ONE_WAY, folder).is_some_and(|order| !order.contains(&part.as_str()))
        {
            wrong.push(format!("{name}:1: `{folder}::{part}` has no place: add it to ONE_WAY"));
        }
        for pair in tokens.windows(3) {
            if pair[0].text == "#" && pair[1].text == "[" && pair[2].text == "path" {
                wrong.push(format!("{name}:{}: `#[path]` hides where a module is", pair[2].line));
            }
        }
        for arrow in arrows(&module, &tokens) {
            seen += 1;
            if let Err(why) = allowed(&arrow.from, &arrow.to, &exports) {
                let path = arrow.to.join("::");
                wrong.push(format!("{name}:{}: names `crate::{path}`: {why}", arrow.line));
            }
        }
    }
    (seen, wrong)
}

fn allowed(
    from: &[String],
    to: &[String],
    exports: &BTreeMap<String, String>,
) -> Result<(), String> {
    let [from_top, from_rest @ ..] = from else { return Ok(()) };
    let (to_top, to_rest) = match to {
        [] => return Err("the root under another name hides what is imported".into()),
        [first, ..] if first == "*" => return Err("a glob of the root imports every floor".into()),
        [first, rest @ ..] if floor(first).is_some() || first == "__rt" => (first, rest),
        // A name that lib.rs re-exports lies where lib.rs takes it from.
        [first, rest @ ..] => match exports.get(first) {
            Some(module) => (module, rest),
            None => return Err(format!("nobody knows on which floor `{first}` is")),
        },
    };
    if from_top == "__rt" {
        return Ok(());
    }
    if to_top == "__rt" {
        return Err("`__rt` is for generated code only".into());
    }
    if from_top != to_top {
        let (_, below, from_floor) = floor(from_top).ok_or("no floor")?;
        let (_, _, to_floor) = floor(to_top).ok_or("no floor")?;
        return if below.contains(to_floor) {
            Ok(())
        } else {
            Err(format!(
                "`{from_top}` is on floor {from_floor}, which imports {below:?}; `{to_top}` is on floor {to_floor}"
            ))
        };
    }
    let (Some(from_part), Some(to_part)) = (from_rest.first(), to_rest.first()) else {
        return Ok(());
    };
    if from_part == to_part {
        return Ok(());
    }
    if let Some(apart) = parts(APART, from_top)
        && apart.contains(&from_part.as_str())
        && apart.contains(&to_part.as_str())
    {
        return Err(format!("`{from_part}` and `{to_part}` are to stay apart"));
    }
    if let Some(order) = parts(ONE_WAY, from_top) {
        // What has no place is an item of the folder's mod.rs.
        let place = |part: &str| order.iter().position(|p| *p == part);
        if place(from_part) > place(to_part).or(Some(0)) {
            return Err(format!("within `{from_top}`, `{from_part}` stands below `{to_part}`"));
        }
    }
    Ok(())
}

fn parts(
    table: &[(&str, &'static [&'static str])],
    folder: &str,
) -> Option<&'static [&'static str]> {
    table.iter().find(|(name, _)| *name == folder).map(|(_, parts)| *parts)
}

fn floor(module: &str) -> Option<&'static (&'static str, &'static [u8], u8)> {
    MODULES.iter().find(|(name, ..)| *name == module)
}

/// `store/sqlite/mod.rs` is `store::sqlite`.
fn module_of(file: &str) -> Vec<String> {
    let path = file.trim_end_matches(".rs").trim_end_matches("/mod");
    path.split('/').map(str::to_owned).collect()
}

/// The names that lib.rs re-exports, each with the module it comes from.
fn re_exports(tokens: &[Token]) -> BTreeMap<String, String> {
    let mut exports = BTreeMap::new();
    for at in (0..tokens.len()).filter(|&at| tokens[at].text == "use") {
        let mut leaves = Vec::new();
        tree(tokens, at + 1, &[], &mut leaves);
        for (path, _) in leaves {
            let module = path.iter().find(|part| *part != "crate" && *part != "self");
            if let (Some(module), Some(name)) = (module, path.last()) {
                exports.insert(name.clone(), module.clone());
            }
        }
    }
    exports
}

/// Tokens of lib.rs that start something else than a module, a re-export or a unit struct (which
/// carries the doctests of the README).
fn logic(tokens: &[Token]) -> impl Iterator<Item = &Token> {
    tokens.iter().enumerate().filter_map(|(at, token)| match token.text.as_str() {
        "fn" | "enum" | "trait" | "impl" | "const" | "static" | "type" | "macro_rules" => {
            Some(token)
        }
        "struct" if tokens.get(at + 2).is_none_or(|end| end.text != ";") => Some(token),
        _ => None,
    })
}

// ---- the test is tested -----------------------------------------------------------------------

/// What `judge` says of one file, with a lib.rs beside it.
fn verdict(file: &str, text: &str) -> Vec<String> {
    let lib = "mod store; mod runtime; pub use runtime::{Pool, Runtime}; pub use store::Row;";
    judge(&[("lib.rs".into(), lib.into()), (file.into(), text.into())]).1
}

#[test]
fn a_planted_arrow_is_found_wherever_it_stands() {
    for (file, text) in [
        ("store/mod.rs", "use crate::client::Client;"),
        ("store/mod.rs", "use crate::{error::StoreError, client::{Tx}};"),
        ("store/mod.rs", "fn f() { let x = 'a'; crate::runtime::wake::<u8>(\"x\") }"),
        ("store/mod.rs", "fn f<'a>(x: &'a super::client::Client) {}"),
        ("store/sqlite/claim.rs", "mod tests { use super::super::super::super::client::Tx; }"),
        ("store/sqlite/claim.rs", "use super::super::{model, super::client::Tx};"),
        ("store/sqlite/claim.rs", "use crate::store::mysql::Quirk;"),
        ("store/mod.rs", "use crate::registry::Registry;"),
        ("store/mod.rs", "use asynccmd::Runtime;"),
        ("store/mod.rs", "use ::asynccmd::client::Tx;"),
        ("store/mod.rs", "use crate::*;"),
        ("store/mod.rs", "use crate as root;"),
        ("store/mod.rs", "use crate::Unheard;"),
        ("store/mod.rs", "use crate::__rt::state;"),
        ("store/mod.rs", "macro_rules! m { () => { $crate::admin::Admin } }"),
        ("store/mod.rs", "#[path = \"../client/tx.rs\"] mod tx;"),
        ("runtime/lease.rs", "use super::scheduler::Scheduler;"),
        ("runtime/pool/queue.rs", "use super::super::builder::Builder;"),
        ("runtime/lease.rs", "use super::Runtime;"),
        ("runtime/engine.rs", "use super::builder::StartError;"),
        ("runtime/keeper.rs", "use super::*;"),
        ("runtime/keeper.rs", "use super::recovery::Recovery;"),
        ("runtime/stray.rs", "fn f() {}"),
        ("admin/mod.rs", "use crate::testing::drain;"),
        ("stray.rs", "fn f() {}"),
    ] {
        let wrong = verdict(file, &format!("// one\n{text}\n"));
        assert_eq!(wrong.len(), 1, "{file}: {text}: {wrong:?}");
        let line = if file.ends_with("stray.rs") { 1 } else { 2 };
        assert!(wrong[0].starts_with(&format!("{file}:{line}: ")), "{}", wrong[0]);
    }
}

#[test]
fn what_points_down_or_is_no_path_passes() {
    for (file, text) in [
        ("runtime/mod.rs", "use crate::{client::Client, store::{self, Store}, Row};"),
        ("runtime/builder.rs", "use super::{Runtime, lease::Lease, scheduler::Scheduler};"),
        ("runtime/mod.rs", "mod tests { use super::{builder::Builder, Runtime}; }"),
        ("store/sqlite/mod.rs", "mod claim { use super::super::super::ids::Uid; }"),
        ("store/sqlite/mod.rs", "pub(in crate::client) fn f() {}"),
        ("store/mod.rs", "/* crate::client::A /* crate::client::B */ */ // crate::client::C"),
        ("store/mod.rs", "const A: &str = r#\"\" crate::client::A\"#; const B: char = '\"';"),
        ("store/mod.rs", "const A: &str = \"\\\" crate::client::A\"; fn f<'a>(x: &'a str) {}"),
        ("__rt.rs", "pub use crate::client::Submit; pub use crate::Runtime;"),
    ] {
        assert_eq!(verdict(file, text), Vec::<String>::new(), "{file}: {text}");
    }
}

#[test]
fn lib_rs_holds_nothing_but_re_exports() {
    let judge_lib = |text: &str| judge(&[("lib.rs".into(), text.into())]).1;
    assert_eq!(judge_lib("#![doc = \"fn\"] mod a; pub use a::B; struct Readme;"), [""; 0]);
    assert_eq!(judge_lib("mod a;\nfn f() {}"), ["lib.rs:2: `fn`: lib.rs holds re-exports only"]);
    assert_eq!(judge_lib("struct A { b: u8 }").len(), 1);
}
