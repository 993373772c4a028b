//! What is configured away is away everywhere, and attributes go where they belong.
#![deny(missing_docs, unused, unreachable_pub, clippy::all, clippy::pedantic)]
#![allow(
    clippy::unused_async,
    clippy::missing_errors_doc,
    reason = "what handlers do is beside the point"
)]
#![cfg_attr(clippy, allow(dead_code, reason = "a module there, where nobody calls main"))]

use asynccmd::{Client, Command as _, Handles as _, command};

#[command(type = "a", biz_key = "{kept}")]
async fn handled(
    #[cfg(not(any()))] kept: i64,
    #[cfg(any())] gone: NoSuchType,
    #[cfg_attr(all(), serde(rename = "called"), allow(unused_variables))] renamed: i64,
    #[cfg_attr(any(), serde(default), cfg(any()))] plain: i64,
    #[cfg_attr(all(), cfg(any()))] gone_too: NoSuchType,
    #[serde(default)]
    #[doc = "What is left."]
    rest: String,
    #[cfg(any())]
    #[state]
    no_state: NoSuchType,
    #[state]
    #[allow(unused_variables)]
    rate: f64,
) -> Result<i64, String> {
    Ok(kept + plain + i64::try_from(rest.len()).unwrap_or(0))
}

#[cfg(any())]
#[command(type = "b")]
async fn gone(no: NoSuchType) -> Result<(), String> {
    Ok(())
}

#[cfg_attr(all(), command(type = "c"))]
#[cfg(not(any()))]
async fn kept(id: i64) -> Result<i64, String> {
    Ok(id)
}

#[command(type = "d")]
#[cfg_attr(all(), allow(unused_variables))]
async fn last(id: i64) -> Result<(), String> {
    Ok(())
}

fn main() {
    let payload = Handled { kept: 1, renamed: 2, plain: 3, rest: String::new() };
    assert_eq!(Handled::biz_key(&payload), "1");
    assert_eq!(Handled::SPEC.needs.len(), 1);
    let _ = |client: &Client| {
        drop(submit_handled(client, 1, 2, 3, String::new()));
        drop(submit_kept(client, 1));
    };
    let _ = (handled, kept, last);
    let types: Vec<_> =
        asynccmd::Registry::collect().specs().iter().map(|spec| spec.command_type).collect();
    assert_eq!(types, ["a", "c", "d"]);
}
