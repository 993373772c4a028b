//! How long ended commands stay.

use std::time::Duration;

use asynccmd::{Client, CommandError, Context, Registry, Status, command, testing};

use crate::harness::{Back, Log, until_number};
use crate::setting::Setting;

#[command(
    type = "retention.none",
    mode = "async_pool",
    retention = "0s",
    max_retry = 2,
    payload(Unkept)
)]
async fn none(text: String, ctx: &Context) -> Result<usize, CommandError> {
    if ctx.attempt() == 1 && text == "fails first" || text == "always fails" {
        return Err("no".into());
    }
    Ok(text.len())
}

#[command(type = "retention.hour", mode = "async_pool", retention = "1h", max_retry = 1)]
async fn hour(text: String, #[state] log: Log, ctx: &Context) -> Result<(), CommandError> {
    log.add(ctx, &text);
    match &*text {
        "dies" => Err("no".into()),
        "killed" => Err(CommandError::cancel("no")),
        _ => Ok(()),
    }
}

#[command(type = "retention.default", mode = "async_pool", payload(Usual))]
async fn default(text: String) -> Result<(), CommandError> {
    let _ = text;
    Ok(())
}

/// A table of somebody's whose rows refer to commands.
const REPORT: &str = "create table report (command bigint not null, foreign key (command) references async_command (id))";

fn registry() -> Registry {
    Registry::builder().add::<Unkept>().add::<Hour>().add::<Usual>().build()
}

/// `retention = "0s"`: a success is deleted at once, with its failures; a dead letter stays.
pub async fn a_retention_of_zero_deletes_a_success_at_once<B: Back>(back: B) {
    let at = Setting::start(&back, registry()).await;
    let client = at.client();
    let texts = (0..50).map(|n| Unkept { text: format!("{n}") });
    client.submit_all::<Unkept>(&client, texts).await.unwrap();
    submit_none(&client, "fails first".into()).await.unwrap();
    let dead = submit_none(&client, "always fails".into()).await.unwrap().id();
    at.drain().await;
    at.next_day().await;
    assert_eq!(at.status(dead).await, Status::Dead);
    assert_eq!(back.number("select count(*) from async_command").await, 1);
    assert_eq!(
        back.number("select count(*) from async_command_failure").await,
        2,
        "the dead one's"
    );
    at.end().await;
}

/// What somebody's table refers to cannot be deleted: it has succeeded all the same, and holds up nobody's end.
pub async fn a_success_that_cannot_be_deleted_is_kept<B: Back>(back: B) {
    let client = Client::new(back.database());
    let texts = (0..20).map(|n| Unkept { text: format!("{n}") });
    let referred = submit_none(&client, "referred to".into()).await.unwrap().id();
    client.submit_all::<Unkept>(&client, texts).await.unwrap();
    back.execute(REPORT).await;
    back.execute(format!("insert into report values ({referred})")).await;
    let at = Setting::start(&back, registry()).await;
    at.drain().await;
    assert_eq!(at.status(referred).await, Status::Success);
    assert_eq!(back.number("select count(*) from async_command").await, 1);
    at.end().await;
}

/// The sweep removes SUCCESS and KILLED rows past their retention, the type's or the runtime's, with
/// their failures; DEAD ones stay, and what is unfinished.
pub async fn the_sweep_removes_ended_rows_past_their_retention<B: Back>(back: B) {
    let at = Setting::start(&back, registry()).await;
    let client = at.client();
    let mut old = Vec::new();
    for text in ["referred to", "ok", "killed", "dies"] {
        old.push(submit_hour(&client, text.into()).await.unwrap().id());
    }
    let fresh = submit_hour(&client, "fresh".into()).await.unwrap().id();
    let default = submit_default(&client, "two hours old".into()).await.unwrap().id();
    let older = submit_default(&client, "two days old".into()).await.unwrap().id();
    let pending =
        submit_hour(&client, "pending".into()).delay(Duration::from_secs(9)).await.unwrap().id();
    at.drain().await;
    at.end().await;
    let hours = |ids: &str, hours: i64| {
        format!(
            "update async_command set finished_at = {} where id in ({ids})",
            B::later("finished_at", hours * -3_600_000_000)
        )
    };
    // The oldest of all cannot go, and must keep none of the others.
    let kept = old.remove(0);
    back.execute(REPORT).await;
    back.execute(format!("insert into report values ({kept})")).await;
    back.execute(hours(&format!("{kept},{},{},{},{default}", old[0], old[1], old[2]), 2)).await;
    back.execute(hours(&older.to_string(), 48)).await;
    for id in [old[0], old[2]] {
        back.execute(format!(
            "insert into async_command_failure (command_id, run_no, kind, at, error) values ({id}, 77, 'error', {}, 'x')",
            B::time(0)
        ))
        .await;
    }

    let day = Duration::from_secs(24 * 3600);
    let at = Setting::start_with(&back, registry(), |builder| builder.retention(day)).await;
    until_number(&back, "select count(*) from async_command", 5).await;
    for (id, status) in [
        (kept, Status::Success),
        (old[2], Status::Dead),
        (fresh, Status::Success),
        (default, Status::Success),
        (pending, Status::Pending),
    ] {
        assert_eq!(at.status(id).await, status);
    }
    let failures =
        format!("select count(*) from async_command_failure where command_id = {}", old[0]);
    assert_eq!(back.number(failures).await, 0, "they follow their command");
    assert_eq!(at.get(old[2]).await.failures.len(), 2);
    testing::advance(back.database(), day).await;
    at.log.until(1).await;
    at.end().await;
    let client = Client::new(back.database());
    assert!(client.admin().get(old[0]).await.is_err());
}
