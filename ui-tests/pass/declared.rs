//! Commands that are declared apart from their handlers, here and in another crate.
#![forbid(unsafe_code)]
#![deny(missing_docs, unused, unreachable_pub, clippy::all, clippy::pedantic)]
#![allow(
    clippy::unused_async,
    clippy::missing_errors_doc,
    clippy::needless_pass_by_value,
    clippy::unnecessary_wraps,
    reason = "what handlers do is beside the point"
)]
#![cfg_attr(clippy, allow(dead_code, reason = "a module there, where nobody calls main"))]

use asynccmd::{Client, Command as _, Handles as _, Mode, SubmitExt as _, Unique};
use asynccmd_ui_shared::{InterpretReport, submit_interpret_report};

/// What is declared here.
pub mod shop {
    use asynccmd::Command;
    use serde::{Deserialize, Serialize};

    /// Ships an order.
    #[derive(Debug, Serialize, Deserialize, Command)]
    #[command(type = "order.ship", biz_key = "{id}/{type}")]
    pub struct ShipOrder {
        /// The order's number.
        pub id: i64,
        pub(crate) r#type: String,
    }

    #[derive(Serialize, Deserialize, Command)]
    #[command(r#type = "order.close")]
    pub(crate) enum Close {
        Paid,
        Refused { why: String },
    }

    /// Is nobody's any more.
    #[derive(Serialize, Deserialize, Command)]
    #[command(type = "order.old", crate(asynccmd_ui_shared::platform::jobs))]
    #[deprecated(note = "it has no handler")]
    pub struct Old(#[allow(deprecated, reason = "it is what is tested")] pub i64);

    #[derive(Serialize, Deserialize, Command)]
    #[command(type = "nobody")]
    pub(super) struct NobodyHandlesThis;
}

mod handlers {
    use asynccmd::{Context, command};
    use asynccmd_ui_shared::InterpretReport;

    use super::shop;

    /// Reads it.
    #[command(handles(InterpretReport), mode = "async_pool", pool = "ai", timeout = "10m")]
    pub(crate) async fn interpret_report(
        #[payload] report: InterpretReport,
        #[state] rate: f64,
        ctx: &Context,
    ) -> Result<f64, String> {
        let _ = (ctx, report);
        Ok(rate)
    }

    #[command(handles(super::shop::ShipOrder), mode = "immediate", retention = "0s")]
    pub(crate) fn ship(#[payload] order: shop::ShipOrder) -> Result<i64, String> {
        Ok(order.id)
    }

    #[command(handles(shop::Close))]
    pub(crate) async fn close(#[payload] close: shop::Close) -> Result<usize, String> {
        Ok(match close {
            shop::Close::Paid => 0,
            shop::Close::Refused { why } => why.len(),
        })
    }
}

fn submits(client: &Client) {
    drop(submit_interpret_report(client, InterpretReport::new(1)));
    drop(InterpretReport::new(1).submit(client));
    drop(shop::submit_ship_order(client, shop::ShipOrder { id: 1, r#type: String::new() }));
    drop(shop::submit_close(client, shop::Close::Refused { why: String::new() }));
    drop(shop::submit_close(client, shop::Close::Paid));
    drop(shop::submit_nobody_handles_this(client, shop::NobodyHandlesThis));
}

fn main() {
    assert_eq!(InterpretReport::biz_key(&InterpretReport::new(42)), "report:42");
    let order = shop::ShipOrder { id: 7, r#type: "new".into() };
    assert_eq!(shop::ShipOrder::biz_key(&order), "7/new");
    assert_eq!(InterpretReport::DECLARATION.unique, Some(Unique::UntilFinished));

    let spec = handlers::InterpretReportHandler::SPEC;
    assert_eq!(spec.command_type, InterpretReport::TYPE);
    assert_eq!(
        (spec.mode, spec.pool, spec.priority, spec.max_retry),
        (Mode::AsyncPool, "ai", -5, 7)
    );
    assert_eq!(spec.aliases, ["report.read"]);
    assert_eq!(spec.name, "interpret_report");

    let types: Vec<_> =
        asynccmd::Registry::collect().specs().iter().map(|spec| spec.command_type).collect();
    let own: Vec<_> = types.into_iter().filter(|name| *name != "order.pay").collect();
    assert_eq!(own, ["order.close", "order.ship", "report.interpret"]);
    let _ = (submits, handlers::interpret_report, handlers::ship, handlers::close);
}
