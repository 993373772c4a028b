//! The library under another path, and serde not at all in scope.
#![deny(missing_docs, unused, unreachable_pub, clippy::all, clippy::pedantic)]
#![allow(
    clippy::unused_async,
    clippy::missing_errors_doc,
    reason = "what handlers do is beside the point"
)]
#![cfg_attr(clippy, allow(dead_code, reason = "a module there, where nobody calls main"))]

mod facade {
    pub(crate) use asynccmd as jobs;
}

mod asynccmd_is_not_here {
    // Shadows the crate's name for every relative path below.
    #[allow(dead_code, reason = "it is there to be in the way")]
    mod asynccmd {}

    use super::facade::jobs::{Context, command};

    #[command(
        type = "a",
        crate(super::facade::jobs),
        biz_key = "{id}",
        unique,
        backoff = "fixed(1s)",
        retention = "1d"
    )]
    pub(crate) async fn handled(id: i64, #[state] rate: f64, ctx: &Context) -> Result<f64, String> {
        let _ = (id, ctx);
        Ok(rate)
    }

    #[command(type = "b")]
    pub(crate) async fn absolute(id: i64) -> Result<i64, String> {
        Ok(id)
    }
}

fn main() {
    use asynccmd_is_not_here::{
        Absolute, Handled, absolute, handled, submit_absolute, submit_handled,
    };
    let _ = |client: &asynccmd::Client| {
        drop(submit_handled(client, 1));
        drop(submit_absolute(client, 1));
    };
    let _ = (Handled { id: 1 }.id, Absolute { id: 1 }.id, absolute, handled);
    assert_eq!(asynccmd::Registry::collect().specs().len(), 2);
}
