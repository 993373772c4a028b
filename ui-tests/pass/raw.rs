//! Raw identifiers, as names and as fields.
#![deny(missing_docs, unused, unreachable_pub, clippy::all, clippy::pedantic)]
#![allow(
    clippy::unused_async,
    clippy::missing_errors_doc,
    reason = "what handlers do is beside the point"
)]
#![cfg_attr(clippy, allow(dead_code, reason = "a module there, where nobody calls main"))]

use asynccmd::{Client, Command as _, Handles as _, command};

#[command(type = "a", biz_key = "{type}-{match}")]
async fn r#move(r#type: i64, r#match: String) -> Result<i64, String> {
    drop(r#match);
    Ok(r#type)
}

#[command(r#type = "b")]
async fn r#async(r#in: i64) -> Result<i64, String> {
    Ok(r#in)
}

fn main() {
    let payload = Move { r#type: 1, r#match: "x".into() };
    assert_eq!(Move::biz_key(&payload), "1-x");
    assert_eq!(Move::SPEC.name, "move");
    let _ = |client: &Client| {
        drop(submit_move(client, 1, String::new()));
        drop(submit_async(client, 1));
    };
    let _ = (r#move, r#async);
}
