//! `Box<dyn AnyCommand>` as a serde value, in a crate that is strict about what is generated in it.
#![forbid(unsafe_code)]
#![deny(missing_docs, unreachable_pub, unused, clippy::pedantic)]
#![allow(clippy::unused_async, reason = "what handlers do is beside the point")]

use std::collections::BTreeMap;

use asynccmd::{AnyCommand, Command, CommandError, Registry, Unique, command};
use serde::{Deserialize, Serialize};

#[command(type = "boxes.file", aliases("boxes.store"), biz_key = "report:{report}", portable)]
async fn file(report: i64, #[serde(default)] copies: u8) -> Result<(), CommandError> {
    let _ = (report, copies);
    Ok(())
}

#[command(type = "boxes.wide", portable)]
async fn wide(number: u128, by_number: BTreeMap<u8, String>) -> Result<(), CommandError> {
    let _ = (number, by_number);
    Ok(())
}

/// Declared apart: whoever knows the type has the boxes, with no handler in sight.
#[derive(Debug, Clone, Serialize, Deserialize, Command)]
#[command(type = "boxes.apart", biz_key = "{ward}", unique, version = 2, portable)]
pub struct Apart {
    ward: String,
}

/// A type of a user's own with commands inside.
#[derive(Debug, Serialize, Deserialize)]
struct Rule {
    when: String,
    then: Vec<Box<dyn AnyCommand>>,
}

const WIDE: &str = r#"{"number":340282366920938463463374607431768211455,"by_number":{"7":"g"}}"#;

fn parse(text: &str) -> Result<Box<dyn AnyCommand>, String> {
    serde_json::from_str(text).map_err(|error| error.to_string())
}

#[test]
fn commands_stand_in_types_of_ones_own() {
    let rule = Rule {
        when: "abnormal".into(),
        then: vec![
            Box::new(File { report: 7, copies: 2 }),
            Box::new(Wide { number: u128::MAX, by_number: [(7, "g".to_owned())].into() }),
        ],
    };
    let text = serde_json::to_string(&rule).unwrap();
    let expected = format!(
        r#"{{"when":"abnormal","then":[{{"type":"boxes.file","payload":{{"report":7,"copies":2}}}},{{"type":"boxes.wide","payload":{WIDE}}}]}}"#
    );
    assert_eq!(text, expected);
    let back: Rule = serde_json::from_str(&text).unwrap();
    assert_eq!(format!("{back:?}"), format!("{rule:?}"));
    let filed = &back.then[0];
    assert_eq!((filed.command_type(), &*filed.biz_key()), ("boxes.file", "report:7"));
    assert_eq!(filed.payload().unwrap(), r#"{"report":7,"copies":2}"#);
    assert_eq!(filed.downcast_ref::<File>().unwrap().copies, 2);
    assert!(filed.downcast_ref::<Wide>().is_none());
}

/// Rules are loaded once and shared.
const fn shareable<T: Clone + Send + Sync>() {}
const _: () = shareable::<Vec<Box<dyn AnyCommand>>>();

#[test]
fn the_tag_is_the_routing_key() {
    for spec in Registry::collect().specs().iter().filter(|spec| spec.name == "file") {
        let boxed =
            parse(&format!(r#"{{"type":"{}","payload":{{"report":1}}}}"#, spec.command_type));
        assert!(boxed.unwrap().downcast_ref::<File>().is_some());
    }
}

#[test]
fn a_command_that_is_declared_apart_has_its_box() {
    let boxed = parse(r#"{"type":"boxes.apart","payload":{"ward":"3b"}}"#).unwrap();
    assert_eq!(boxed.biz_key(), "3b");
    let declared = boxed.declaration();
    assert_eq!((declared.payload_version, declared.unique), (2, Some(Unique::UntilFinished)));
    assert!(Registry::collect().route("boxes.apart").is_none());
}

#[test]
fn what_does_not_read_says_why() {
    for (text, parts) in [
        (r#"{"type":"boxes.fill","payload":{}}"#, &["boxes.fill", "boxes.file", "boxes.wide"][..]),
        (r#"{"type":"boxes.store","payload":{"report":1}}"#, &["unknown variant `boxes.store`"]),
        (r#"{"type":"boxes.file","payload":{}}"#, &["missing field `report`"]),
        (r#"{"type":"boxes.file","paylod":{"report":1}}"#, &["unknown field `paylod`"]),
        (r#"{"payload":{"report":1}}"#, &["missing field `type`"]),
    ] {
        let error = parse(text).unwrap_err();
        assert!(parts.iter().all(|part| error.contains(part)), "{parts:?} in {error}");
    }
}

/// The documented limits, so that the docs are told when they are none any more.
#[test]
fn with_the_tag_behind_some_payloads_fail() {
    assert!(parse(r#"{"payload":{"report":1},"type":"boxes.file"}"#).is_ok());
    assert!(parse(&format!(r#"{{"type":"boxes.wide","payload":{WIDE}}}"#)).is_ok());
    assert!(parse(&format!(r#"{{"payload":{WIDE},"type":"boxes.wide"}}"#)).is_err());
    let keys = r#"{"number":1,"by_number":{"7":"g"}}"#;
    assert!(parse(&format!(r#"{{"payload":{keys},"type":"boxes.wide"}}"#)).is_err());
}
