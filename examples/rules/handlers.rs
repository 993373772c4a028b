//! What operators can have done. `portable` lets a command stand in their file, by its type.

use asynccmd::{CommandError, Context, command};

/// Asks a second person to read the report.
#[command(type = "report.second_opinion", mode = "async_pool", portable)]
pub(crate) async fn second_opinion(reader: String, ctx: &Context) -> Result<String, CommandError> {
    Ok(format!("{reader} is to read report {}", report(ctx)?))
}

/// Alerts a pager.
#[command(type = "pager.alert", mode = "immediate", priority = -10, portable)]
pub(crate) async fn alert(
    pager: String,
    within: u32,
    ctx: &Context,
) -> Result<String, CommandError> {
    Ok(format!("pager {pager}: come within {within} minutes for report {}", report(ctx)?))
}

/// Calls a ward, unless a call to it is waiting already.
#[command(
    type = "ward.call",
    mode = "async_pool",
    biz_key = "ward:{ward}",
    unique = "until_started",
    portable
)]
pub(crate) async fn call_ward(ward: String, text: String) -> Result<String, CommandError> {
    Ok(format!("ward {ward}: {text}"))
}

/// Which report this is about. What operators write knows no report, so it travels as metadata.
fn report(ctx: &Context) -> Result<String, CommandError> {
    ctx.metadata("report").ok_or_else(|| CommandError::fatal("submitted without a report"))
}
