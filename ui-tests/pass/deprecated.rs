//! A deprecated command warns where it is used, and nowhere in what is generated.
#![deny(missing_docs, unused, unreachable_pub, clippy::all, clippy::pedantic)]
#![allow(
    clippy::unused_async,
    clippy::missing_errors_doc,
    clippy::needless_pass_by_value,
    clippy::unnecessary_wraps,
    reason = "what handlers do is beside the point"
)]
#![cfg_attr(clippy, allow(dead_code, reason = "a module there, where nobody calls main"))]
#![deny(deprecated)]

/// Commands.
pub mod commands {
    use asynccmd::{Command, command};
    use serde::{Deserialize, Serialize};

    /// Is old.
    #[command(type = "a", biz_key = "{id}", unique)]
    #[deprecated(since = "2.0.0", note = "use nothing")]
    pub async fn old(id: i64, #[state] rate: f64) -> Result<f64, String> {
        let _ = id;
        Ok(rate)
    }

    /// Is old, too.
    #[command(type = "b")]
    #[deprecated]
    pub fn older(#[payload] id: i64) -> Result<i64, String> {
        Ok(id)
    }

    /// Is not old.
    #[derive(Debug, Serialize, Deserialize, Command)]
    #[command(type = "c")]
    pub struct Kept(i64);

    /// Will be handled elsewhere.
    #[command(handles(Kept))]
    #[deprecated]
    pub async fn keeps(#[payload] kept: Kept) -> Result<i64, String> {
        Ok(kept.0)
    }
}

#[expect(deprecated, reason = "it is what is tested")]
fn uses(client: &asynccmd::Client) {
    let _ = commands::Old { id: 1 };
    drop(commands::submit_old(client, 1));
    drop(commands::submit_older(client, 1));
}

fn main() {
    let _ = uses;
    assert_eq!(asynccmd::Registry::collect().specs().len(), 3);
}
