//! The helper takes every target, and its future moves between threads.
#![deny(missing_docs, unused, unreachable_pub, clippy::all, clippy::pedantic)]
#![allow(
    clippy::unused_async,
    clippy::missing_errors_doc,
    reason = "what handlers do is beside the point"
)]
#![cfg_attr(clippy, allow(dead_code, reason = "a module there, where nobody calls main"))]

use std::time::Duration;

use asynccmd::{Client, Context, SubmitError, SubmitExt as _, Submitted, command};

/// Reminds a member of something.
#[command(type = "member.remind", mode = "immediate", biz_key = "member:{member_id}", unique)]
pub async fn remind(member_id: i64, text: String, ctx: &Context) -> Result<(), SubmitError> {
    if text.is_empty() {
        return Ok(());
    }
    submit_remind(ctx, member_id, String::new()).delay(Duration::from_mins(1)).await?;
    Remind { member_id, text }.submit(ctx).await?;
    Ok(())
}

async fn by_client(client: Client) -> Result<Submitted, SubmitError> {
    submit_remind(&client, 1, "now".into()).await
}

fn moves_between_threads<T: Send>(_: &T) {}

fn main() {
    let _ = |client: Client| moves_between_threads(&by_client(client));
    let _ = remind;
}
