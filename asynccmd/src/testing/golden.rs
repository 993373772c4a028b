//! Payloads as earlier versions wrote them, kept in a file beside the tests.

use std::fmt::Write as _;
use std::fs;
use std::path::Path;

use serde::{Deserialize, Serialize};

use crate::command::{Command, decode_stored};

/// The variable that asks for recording.
const VARIABLE: &str = "ASYNCCMD_GOLDEN";

/// One payload as a row would have it.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct Entry {
    r#type: String,
    version: u32,
    /// The JSON text, byte for byte.
    payload: String,
}

/// What [`golden!`](super::golden) calls.
///
/// # Panics
/// With everything that is wrong, and what to do about it.
#[doc(hidden)]
#[track_caller]
pub fn check_golden<C: Command>(root: &str, file: &str, samples: &[C::Payload]) {
    let record = match std::env::var(VARIABLE) {
        Ok(value) if value == "record" => true,
        Ok(value) if value.is_empty() => false,
        Ok(value) => panic!("unknown {VARIABLE}={value:?}; write {VARIABLE}=record, or unset it"),
        Err(_) => false,
    };
    if let Err(told) = check::<C>(Path::new(root), file, samples, record) {
        panic!("{told}");
    }
}

fn check<C: Command>(
    root: &Path,
    file: &str,
    samples: &[C::Payload],
    record: bool,
) -> Result<(), String> {
    let path = root.join(file);
    let mut entries = read(&path, file)?;
    let mut wrong = String::new();
    for (number, entry) in (1..).zip(&entries) {
        if let Err(why) = judge::<C>(entry) {
            let _ = write!(
                wrong,
                "\npayload {number} (version {}): {why}\n    {}",
                entry.version, entry.payload
            );
        }
    }
    let known = entries.len();
    for (number, sample) in (1..).zip(samples) {
        let payload = serde_json::to_string(sample)
            .map_err(|error| format!("sample {number} of `{}` is no JSON: {error}", C::TYPE))?;
        let version = C::DECLARATION.payload_version;
        let entry = Entry { r#type: C::TYPE.into(), version, payload };
        if entries.contains(&entry) {
            continue;
        }
        if !record {
            let _ = write!(
                wrong,
                "\nsample {number} is not recorded as it is written now, in version {version}: if rows of version {version} \
                 with another shape may be stored, raise `version`; then run the test once with {VARIABLE}=record\n    {}",
                entry.payload
            );
        }
        entries.push(entry);
    }
    if !wrong.is_empty() {
        return Err(format!("golden payloads of `{}` in {file}:{wrong}", C::TYPE));
    }
    if entries.is_empty() {
        return Err(format!(
            "no golden payload of `{}` in {file}: give samples behind the file's name, and run the test once with {VARIABLE}=record",
            C::TYPE
        ));
    }
    if entries.len() > known {
        write(&path, &entries).map_err(|error| format!("{file} cannot be written: {error}"))?;
    }
    Ok(())
}

fn judge<C: Command>(entry: &Entry) -> Result<(), String> {
    let newest = C::DECLARATION.payload_version;
    if entry.r#type != C::TYPE && !C::DECLARATION.aliases.contains(&&*entry.r#type) {
        return Err(format!(
            "its type `{0}` is no longer routed to `{1}`: rows that are stored under it find no handler; add `aliases(\"{0}\")`",
            entry.r#type,
            C::TYPE
        ));
    }
    if C::DECLARATION.is_newer(entry.version) {
        return Err(format!(
            "newer code has recorded it, this code knows versions up to {newest}: `version` never goes back"
        ));
    }
    match decode_stored::<C>(entry.version, &entry.payload) {
        Ok(_) => Ok(()),
        Err(error) if entry.version < newest => Err(format!(
            "{error}; rows like it may be stored: let `upgrade(…)` make version {newest} of it"
        )),
        Err(error) => Err(format!(
            "{error}; rows like it may be stored: give what is new `#[serde(default)]`, or add `version = {}` and an `upgrade(…)` from version {newest}",
            newest + 1
        )),
    }
}

fn read(path: &Path, file: &str) -> Result<Vec<Entry>, String> {
    let text = match fs::read_to_string(path) {
        Ok(text) => text,
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => return Ok(Vec::new()),
        Err(error) => return Err(format!("{file} cannot be read: {error}")),
    };
    serde_json::from_str(&text).map_err(|error| {
        format!(
            "{file} is no golden file: {error}; it is an array of objects with `type`, `version` and `payload` (a JSON text), which {VARIABLE}=record writes"
        )
    })
}

fn write(path: &Path, entries: &[Entry]) -> std::io::Result<()> {
    if let Some(folder) = path.parent() {
        fs::create_dir_all(folder)?;
    }
    let mut text = serde_json::to_string_pretty(entries)?;
    text.push('\n');
    fs::write(path, text)
}

/// Holds that payloads written by earlier versions still decode.
///
/// `golden!(Command, "file")` reads a file of payloads, each with its type and version, and takes every
/// one the way that a runtime would: routed by type or alias, upgraded, decoded. The file's name counts
/// from the folder of the crate's `Cargo.toml`.
///
/// Payloads behind the file's name are samples: each has to be in the file as it is written today. Run the
/// test once with `ASYNCCMD_GOLDEN=record`, and those that are not are added; commit the file. Nothing is
/// ever taken out of it: what has been recorded may be stored somewhere.
///
/// ```
/// use asynccmd::{CommandError, command, testing};
///
/// #[command(type = "report.interpret", version = 2)]
/// async fn interpret_report(report: i64, #[serde(default)] locale: String) -> Result<(), CommandError> {
///     Ok(())
/// }
///
/// # #[cfg(any())]
/// #[test]
/// fn stored_reports_still_decode() {
///     testing::golden!(
///         InterpretReport,
///         "tests/golden/interpret_report.json",
///         InterpretReport { report: 42, locale: "de".into() },
///     );
/// }
/// ```
///
/// # Panics
/// If a payload of the file does not decode, naming it, its version and what serde or `upgrade` said; if a
/// sample is not in the file; if there is nothing to hold.
#[macro_export]
#[doc(hidden)]
macro_rules! __golden {
    ($command:ty, $file:expr $(, $sample:expr)* $(,)?) => {
        $crate::testing::check_golden::<$command>(
            ::core::env!("CARGO_MANIFEST_DIR"),
            $file,
            &[$($sample),*],
        )
    };
}

pub use __golden as golden;

#[cfg(test)]
mod tests {
    use super::*;
    use crate::command::{Declaration, Upgrade};

    macro_rules! shape {
        ($name:ident { $($field:ident),* } $declaration:expr) => {
            #[derive(Serialize, Deserialize)]
            #[serde(deny_unknown_fields)]
            struct $name { $($field: u8),* }

            impl Command for $name {
                type Payload = Self;
                const TYPE: &'static str = "paper";
                const DECLARATION: Declaration = $declaration;
            }
        };
    }

    const NEWEST: Upgrade = |_, payload| Ok(serde_json::json!({ "b": payload["a"] }));

    shape!(First { a } Declaration::DEFAULT);
    shape!(Second { b } Declaration::DEFAULT.version(2).upgrade(NEWEST));
    shape!(Careless { b } Declaration::DEFAULT);

    struct Bed(tempfile::TempDir);

    const FILE: &str = "tests/golden/paper.json";

    impl Bed {
        fn new() -> Self {
            Self(tempfile::tempdir().unwrap())
        }

        fn check<C: Command>(&self, samples: &[C::Payload], record: bool) -> Result<(), String> {
            check::<C>(self.0.path(), FILE, samples, record)
        }

        fn text(&self) -> String {
            fs::read_to_string(self.0.path().join(FILE)).unwrap()
        }
    }

    #[test]
    fn what_one_version_records_the_next_one_is_held_to() {
        let bed = Bed::new();
        bed.check::<First>(&[First { a: 1 }], true).unwrap();
        bed.check::<First>(&[First { a: 1 }], false).unwrap();
        bed.check::<Second>(&[], false).unwrap();
        let told = bed.check::<Second>(&[Second { b: 2 }], false).unwrap_err();
        assert!(told.contains("sample 1") && told.contains("ASYNCCMD_GOLDEN=record"), "{told}");
        bed.check::<Second>(&[Second { b: 2 }], true).unwrap();
        let recorded = bed.text();
        bed.check::<Second>(&[Second { b: 2 }], true).unwrap();
        assert_eq!(bed.text(), recorded, "nothing twice");
        let versions: Vec<_> = read(&bed.0.path().join(FILE), FILE)
            .unwrap()
            .into_iter()
            .map(|entry| (entry.version, entry.payload))
            .collect();
        assert_eq!(versions, [(1, r#"{"a":1}"#.into()), (2, r#"{"b":2}"#.into())]);
    }

    #[test]
    fn a_shape_that_changes_under_its_version_is_named_with_the_cure() {
        let bed = Bed::new();
        bed.check::<First>(&[First { a: 1 }], true).unwrap();
        let recorded = bed.text();
        for record in [false, true] {
            let told = bed.check::<Careless>(&[Careless { b: 1 }], record).unwrap_err();
            for part in [FILE, "payload 1 (version 1)", "unknown field `a`", "`version = 2`"] {
                assert!(told.contains(part), "{part:?} in {told}");
            }
            assert_eq!(bed.text(), recorded, "nothing is recorded beside what is broken");
        }
    }

    #[test]
    fn a_version_that_went_back_and_a_type_that_was_lost_are_named() {
        let bed = Bed::new();
        bed.check::<Second>(&[Second { b: 1 }], true).unwrap();
        let told = bed.check::<First>(&[], false).unwrap_err();
        assert!(told.contains("versions up to 1"), "{told}");
        let path = bed.0.path().join(FILE);
        fs::write(&path, bed.text().replace("\"paper\"", "\"old.paper\"")).unwrap();
        let told = bed.check::<Second>(&[], false).unwrap_err();
        assert!(told.contains("add `aliases(\"old.paper\")`"), "{told}");
    }

    #[test]
    fn nothing_to_hold_is_no_pass() {
        let bed = Bed::new();
        let told = bed.check::<First>(&[], false).unwrap_err();
        assert!(told.contains("no golden payload of `paper`"), "{told}");
        bed.check::<First>(&[First { a: 1 }], true).unwrap();
        fs::write(bed.0.path().join(FILE), "[{}]").unwrap();
        let told = bed.check::<First>(&[], false).unwrap_err();
        assert!(told.contains("is no golden file: missing field `type`"), "{told}");
    }
}
