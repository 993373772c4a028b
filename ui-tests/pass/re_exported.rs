//! The library by its name in another crate, which re-exports it and renames it.
#![deny(missing_docs, unused, unreachable_pub, clippy::all, clippy::pedantic)]
#![allow(
    clippy::unused_async,
    clippy::missing_errors_doc,
    clippy::needless_pass_by_value,
    clippy::unnecessary_wraps,
    reason = "what handlers do is beside the point"
)]
#![cfg_attr(clippy, allow(dead_code, reason = "a module there, where nobody calls main"))]

use asynccmd_ui_shared::platform;
use asynccmd_ui_shared::platform::jobs::{Client, Command, Registry, command};
use serde::{Deserialize, Serialize};

#[command(
    type = "a",
    crate(asynccmd_ui_shared::platform::jobs),
    biz_key = "{id}",
    backoff = "steps(1s, 2s)",
    timeout = "1s"
)]
async fn absolute(id: i64, ctx: &platform::jobs::Context) -> Result<u32, String> {
    let _ = id;
    Ok(ctx.attempt())
}

#[command(type = "b", crate(platform::jobs))]
fn relative(#[payload] ids: Vec<i64>, #[state] rate: f64) -> Result<f64, String> {
    drop(ids);
    Ok(rate)
}

#[derive(Serialize, Deserialize, Command)]
#[command(type = "c", crate(platform::jobs), biz_key = "{id}", unique)]
struct Declared {
    id: i64,
}

#[command(handles(Declared), crate(platform::jobs))]
async fn declared(#[payload] it: Declared) -> Result<i64, String> {
    Ok(it.id)
}

fn main() {
    let _ = |client: &Client| {
        drop(submit_absolute(client, 1));
        drop(submit_relative(client, Vec::new()));
        drop(submit_declared(client, Declared { id: 1 }));
    };
    let _ = (absolute, relative, declared);
    let own = |name: &&str| *name != "order.pay";
    let types: Vec<_> =
        Registry::collect().specs().iter().map(|spec| spec.command_type).filter(own).collect();
    assert_eq!(types, ["a", "b", "c"]);
}
