//! Handlers in nested modules, in a function's body and in another crate; a payload type from another crate.
#![deny(missing_docs, unused, unreachable_pub, clippy::all, clippy::pedantic)]
#![allow(
    clippy::unused_async,
    clippy::missing_errors_doc,
    clippy::needless_pass_by_value,
    clippy::unnecessary_wraps,
    reason = "what handlers do is beside the point"
)]
#![cfg_attr(clippy, allow(dead_code, reason = "a module there, where nobody calls main"))]

use asynccmd::{Client, Command as _, command};
use asynccmd_ui_shared::{Order, pay_order, submit_pay_order};

mod outer {
    pub(crate) mod inner {
        use asynccmd::command;

        #[command(type = "nested", biz_key = "{id}")]
        pub(in super::super) async fn nested(id: super::Id) -> Result<super::Id, String> {
            Ok(id)
        }
    }

    pub(crate) type Id = i64;
}

#[command(type = "foreign", biz_key = "order:{id}", payload(ForeignOrder))]
async fn foreign(#[payload] order: Order) -> Result<i64, String> {
    Ok(order.id)
}

#[command(type = "qualified")]
fn qualified(
    #[payload] orders: std::collections::BTreeMap<String, asynccmd_ui_shared::Order>,
) -> Result<usize, String> {
    Ok(orders.len())
}

fn within(client: &Client) {
    #[command(type = "within")]
    async fn handler(id: i64) -> Result<i64, String> {
        Ok(id)
    }

    drop(submit_handler(client, 1));
    let _ = handler;
}

fn main() {
    let _ = |client: &Client| {
        drop(outer::inner::submit_nested(client, 1));
        drop(submit_foreign(client, Order { id: 1 }));
        drop(submit_qualified(client, std::collections::BTreeMap::new()));
        drop(submit_pay_order(client, 1));
    };
    let _ = (outer::inner::nested, foreign, qualified, within, pay_order);
    assert_eq!(ForeignOrder::biz_key(&Order { id: 7 }), "order:7");
    let registry = asynccmd::Registry::collect();
    let types: Vec<_> = registry.specs().iter().map(|spec| spec.command_type).collect();
    assert_eq!(types, ["foreign", "nested", "order.pay", "qualified", "within"]);
    let elsewhere = registry.route("order.pay").map(|spec| spec.location);
    assert_eq!(elsewhere.map(|place| place.package), Some("asynccmd-ui-shared"));
}
