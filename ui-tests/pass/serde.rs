//! serde's attributes on arguments are serde's on the fields.
#![deny(missing_docs, unused, unreachable_pub, clippy::all, clippy::pedantic)]
#![allow(
    clippy::unused_async,
    clippy::missing_errors_doc,
    clippy::needless_pass_by_value,
    clippy::unnecessary_wraps,
    reason = "what handlers do is beside the point"
)]
#![cfg_attr(clippy, allow(dead_code, reason = "a module there, where nobody calls main"))]

use std::collections::BTreeMap;

use asynccmd::{Command as _, command};
use serde::{Deserialize, Serialize};

#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
struct Address {
    street: String,
}

#[command(type = "a", biz_key = "{number}")]
async fn deliver(
    #[serde(rename = "orderNumber")] number: i64,
    #[serde(default = "currency", skip_serializing_if = "String::is_empty")] currency: String,
    #[serde(rename(serialize = "to", deserialize = "address"))] address: Address,
    #[serde(flatten)] rest: BTreeMap<String, String>,
    #[serde(skip)] cached: Option<i64>,
    #[serde(rename = "cached")] text: String,
) -> Result<usize, String> {
    let _ = (number, currency, address, cached, text);
    Ok(rest.len())
}

fn currency() -> String {
    "EUR".into()
}

fn main() {
    let text = r#"{"orderNumber":7,"address":{"street":"s"},"note":"n","cached":"c"}"#;
    let payload: Deliver = asynccmd_ui_shared::from_json(text);
    assert_eq!(payload.currency, "EUR");
    assert_eq!(payload.rest["note"], "n");
    assert_eq!((payload.cached, &*payload.text), (None, "c"));
    assert_eq!(Deliver::biz_key(&payload), "7");
    let _ = deliver;
}
