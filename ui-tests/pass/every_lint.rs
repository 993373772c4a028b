//! Under lints that rustc itself leaves off, with every option written: nothing generated warns.
#![deny(warnings, rust_2018_idioms, missing_docs, unused, unreachable_pub)]
#![deny(
    absolute_paths_not_starting_with_crate,
    ambiguous_negative_literals,
    closure_returning_async_block,
    elided_lifetimes_in_paths,
    explicit_outlives_requirements,
    if_let_rescope,
    impl_trait_redundant_captures,
    let_underscore_drop,
    macro_use_extern_crate,
    meta_variable_misuse,
    missing_debug_implementations,
    redundant_lifetimes,
    single_use_lifetimes,
    tail_expr_drop_order,
    trivial_casts,
    trivial_numeric_casts,
    unit_bindings,
    unnameable_types,
    unsafe_code,
    unused_extern_crates,
    unused_import_braces,
    unused_lifetimes,
    unused_macro_rules,
    unused_qualifications,
    unused_results,
    variant_size_differences
)]
#![cfg_attr(clippy, allow(dead_code, reason = "a module there, where nobody calls main"))]
#![allow(
    clippy::unused_async,
    clippy::missing_errors_doc,
    reason = "what handlers do is beside the point"
)]

/// Commands that all can see.
pub mod commands {
    use std::time::Duration;

    use asynccmd::{Command, Context, Failure, Verdict, command};
    use serde::{Deserialize, Serialize};
    use serde_json::Value;

    /// Is declared apart.
    #[derive(Debug, Serialize, Deserialize, Command)]
    #[command(
        type = "close",
        biz_key = "{order}",
        unique,
        priority = -1,
        max_retry = 3,
        aliases("shut"),
        version = 2,
        upgrade(newest)
    )]
    pub struct Close {
        /// The order.
        pub order: i64,
    }

    /// Makes the newest shape.
    pub fn newest(_: u32, payload: Value) -> Result<Value, String> {
        Ok(payload)
    }

    /// Closes.
    #[command(
        handles(Close),
        mode = "immediate",
        pool = "fast",
        timeout = "3s",
        backoff_fn(wait),
        classify(judge),
        retention = "0s"
    )]
    pub async fn close(
        #[payload] close: Close,
        #[state] rate: f64,
        ctx: &Context,
    ) -> Result<i64, String> {
        ctx.progress(rate, "closing");
        Ok(close.order)
    }

    /// The wait.
    #[must_use]
    pub fn wait(_: &Failure) -> Duration {
        Duration::ZERO
    }

    /// The verdict.
    #[must_use]
    pub fn judge(_: &String) -> Verdict {
        Verdict::Retry
    }

    /// Pays.
    #[command(
        type = "pay",
        biz_key = "order:{order}",
        unique = "until_started",
        mode = "async_pool",
        pool = "bank",
        backoff = "steps(1s, 2s)",
        payload(PayOrder)
    )]
    pub async fn pay(
        order: i64,
        #[serde(default)] text: String,
        #[state] rate: f64,
        ctx: &Context,
    ) -> Result<String, String> {
        ctx.progress(rate, "paying");
        Ok(format!("{order} {text}"))
    }

    /// Counts.
    #[command(type = "count", unique = "until_finished", biz_key = "all")]
    pub fn count(bytes: Vec<u8>) -> Result<Vec<u8>, String> {
        Ok(bytes)
    }
}

fn main() {
    assert_eq!(asynccmd::Registry::collect().specs().len(), 3);
}
