//! Commands that a macro of the user's writes.
#![deny(missing_docs, unused, unreachable_pub, clippy::all, clippy::pedantic)]
#![allow(
    clippy::unused_async,
    clippy::missing_errors_doc,
    reason = "what handlers do is beside the point"
)]
#![cfg_attr(clippy, allow(dead_code, reason = "a module there, where nobody calls main"))]

use asynccmd::{Client, Command as _, Context, Handles as _, command};

macro_rules! commands {
    ($($type:literal $name:ident($field:ident: $field_type:ty, $ctx:ident: $context:ty) -> $returned:ty, $pool:expr;)*) => {$(
        #[command(type = $type, mode = "async_pool", pool = $pool, biz_key = "{id}", unique, payload($name))]
        async fn $field(id: i64, $field: $field_type, $ctx: $context) -> $returned {
            let _ = $ctx;
            Ok($field.len() + usize::try_from(id).unwrap_or(0))
        }
    )*};
}

commands! {
    "a" First(one: String, ctx: &Context) -> Result<usize, String>, "ai";
    "b" Second(two: Vec<u8>, context: &asynccmd::Context) -> Result<usize, String>, "default";
}

fn main() {
    assert_eq!(First::SPEC.pool, "ai");
    assert_eq!(First::biz_key(&First { id: 7, one: String::new() }), "7");
    let _ = |client: &Client| {
        drop(submit_one(client, 1, String::new()));
        drop(submit_two(client, 1, Vec::new()));
    };
    let _ = (one, two, Second { id: 1, two: Vec::new() });
}
