//! `testing::golden!` as users write it: beside their tests, on a file of their crate.

use asynccmd::{CommandError, command, testing};
use serde_json::Value;

#[command(type = "golden.interpret", aliases("golden.read"), version = 3, upgrade(newest))]
async fn interpret(report: i64, locales: Vec<String>) -> Result<(), CommandError> {
    drop((report, locales));
    Ok(())
}

/// Version 1, as `golden.read`, had no locale; version 2 had one.
fn newest(_: u32, mut payload: Value) -> Result<Value, CommandError> {
    let locale = payload.as_object_mut().and_then(|fields| fields.remove("locale"));
    payload["locales"] = Value::Array(locale.into_iter().collect());
    Ok(payload)
}

#[test]
fn reports_of_every_version_still_decode() {
    testing::golden!(
        Interpret,
        "tests/golden/interpret.json",
        Interpret { report: 42, locales: vec!["de".into(), "en".into()] },
    );
}

#[test]
#[should_panic(expected = "add `aliases(\"golden.read\")`")]
fn a_lost_alias_is_found() {
    #[command(type = "golden.interpret", version = 3, payload(Forgetful))]
    async fn forgetful(report: i64) -> Result<(), CommandError> {
        let _ = report;
        Ok(())
    }
    testing::golden!(Forgetful, "tests/golden/interpret.json");
}
