//! Errors of one's own, by `thiserror` and by hand, and what is no error type but becomes one.
#![deny(missing_docs, unused, unreachable_pub, clippy::all, clippy::pedantic)]
#![allow(
    clippy::unused_async,
    clippy::missing_errors_doc,
    clippy::needless_pass_by_value,
    clippy::unnecessary_wraps,
    reason = "what handlers do is beside the point"
)]
#![cfg_attr(clippy, allow(dead_code, reason = "a module there, where nobody calls main"))]

use std::fmt;

use asynccmd::command;

#[derive(Debug, thiserror::Error)]
enum PayError {
    #[error("no number: {0}")]
    Number(#[from] std::num::ParseIntError),
    #[error(transparent)]
    Other(#[from] ByHand),
}

#[derive(Debug)]
struct ByHand;

impl fmt::Display for ByHand {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("by hand")
    }
}

impl std::error::Error for ByHand {}

#[command(type = "a")]
async fn derived(number: String) -> Result<i64, PayError> {
    let number = number.parse()?;
    if number == 0 { Err(ByHand.into()) } else { Ok(number) }
}

#[command(type = "b")]
async fn written_by_hand(number: i64) -> Result<i64, ByHand> {
    if number == 0 { Err(ByHand) } else { Ok(number) }
}

#[command(type = "c")]
async fn words(number: i64) -> Result<i64, &'static str> {
    if number == 0 { Err("zero") } else { Ok(number) }
}

#[command(type = "d")]
fn own_words(number: i64) -> Result<i64, String> {
    if number == 0 { Err(format!("{number}")) } else { Ok(number) }
}

#[command(type = "e")]
async fn never_fails(number: i64) -> Result<i64, std::convert::Infallible> {
    Ok(number)
}

fn main() {
    let _ = (derived, written_by_hand, words, own_words, never_fails);
    assert_eq!(asynccmd::Registry::collect().specs().len(), 5);
}
