//! An attempt whose command has gone on without it: nothing that it says about it counts, whatever it is.

use std::time::Duration;

use asynccmd::{
    CommandError, CommandId, Context, FinishError, Outcome, Pool, Registry, Status, command,
};

use crate::act::Act;
use crate::gate::Gate;
use crate::harness::{Back, DEADLINE, Log, until_row};
use crate::setting::Setting;

#[command(type = "stale.ends", mode = "async_pool", max_retry = 3)]
fn ends(
    how: String,
    #[state] gate: Gate,
    #[state] act: Act,
    #[state] log: Log,
    ctx: &Context,
) -> Result<Outcome<String>, CommandError> {
    gate.pass_blocking();
    // The first attempt of each command is the stale one, and is told so before it goes on.
    if ctx.run_no() == 1 {
        let told = async { tokio::time::timeout(DEADLINE, ctx.cancelled()).await };
        tokio::runtime::Handle::current().block_on(told).expect("nobody has told it");
    }
    log.add(ctx, &format!("lost {}", ctx.lease_lost()));
    ctx.progress(0.5, "what the row should not say");
    match &*how {
        "success" => Ok(Outcome::Success("by the stale one".into())),
        "snooze" => Ok(Outcome::Snooze(Duration::from_secs(3600))),
        "failure" => Err("by the stale one".into()),
        "retry_in" => Err(CommandError::retry_in(Duration::ZERO, "by the stale one")),
        "fatal" => Err(CommandError::fatal("by the stale one")),
        "cancel" => Err(CommandError::cancel("by the stale one")),
        "panic" => panic!("by the stale one"),
        "finish_in" => {
            let ended = tokio::runtime::Handle::current().block_on(act.run(ctx));
            ended.map(|()| Outcome::Success("by the stale one".into()))
        }
        how => panic!("{how}?"),
    }
}

const ENDS: [&str; 8] =
    ["success", "snooze", "failure", "retry_in", "fatal", "cancel", "panic", "finish_in"];

/// The commands as they stand, with their failures.
async fn all<B: Back>(at: &Setting<'_, B>, ids: &[CommandId]) -> Vec<String> {
    let mut all = Vec::new();
    for id in ids {
        all.push(serde_json::to_string(&at.get(*id).await).unwrap());
    }
    all
}

/// Taken away by an operator and ended by another instance; and taken away and running there.
pub async fn a_stale_attempt_changes_nothing_whatever_its_end<B: Back>(back: B) {
    for other_ends_first in [true, false] {
        let act = Act::new(|ctx: &Context| {
            Box::pin(async move {
                let mut tx = ctx.client().begin::<B::DB>().await.unwrap();
                let id = ctx.id();
                B::execute_on(&mut tx, format!("insert into effect values ({id}, 'stale')")).await;
                let refused = ctx.finish_in(&mut tx, "by the stale one").await.unwrap_err();
                assert!(matches!(refused, FinishError::LeaseLost(lost) if lost == id), "{refused}");
                tx.rollback().await?;
                Err(refused.into())
            })
        });
        let registry = || Registry::builder().add::<Ends>().build();
        // No room for a second one: what is taken from it does not come back to it.
        let full = Pool::new("default").workers(ENDS.len());
        let one = Setting::start_with(&back, registry(), |b| b.state(act.clone()).pool(full)).await;
        let commands = ENDS.map(|how| Ends { how: how.into() });
        let sent = one.client().submit_all::<Ends>(&one.client(), commands).await.unwrap();
        let ids: Vec<_> = sent.iter().map(asynccmd::Submitted::id).collect();
        one.gate.until_entered(ENDS.len()).await;

        // The second one runs the same commands as successes.
        let two = Setting::start_with(&back, registry(), |b| b.state(act.clone())).await;
        for id in &ids {
            back.execute(format!(
                "update async_command set payload = '{{\"how\":\"success\"}}' where id = {id}"
            ))
            .await;
            one.client().admin().requeue(*id).await.unwrap();
        }
        two.gate.until_entered(ENDS.len()).await;
        let wanted = if other_ends_first { Status::Success } else { Status::Running };
        if other_ends_first {
            two.gate.open(ENDS.len());
        }
        for id in &ids {
            until_row(&two.client(), *id, |row| row.status == wanted && holder(row, &two)).await;
        }
        let before = all(&two, &ids).await;
        one.gate.open(ENDS.len());
        one.log.until(ENDS.len()).await;
        // Its shutdown ends when every end that it had to write was written or refused.
        one.runtime.shutdown().await;
        assert_eq!(one.log.texts(), ["lost true"; ENDS.len()], "all of them were told");
        assert_eq!(all(&two, &ids).await, before, "a stale attempt has changed something");
        assert_eq!(back.number("select count(*) from effect").await, 0);

        two.gate.open(ENDS.len());
        for id in &ids {
            let row = until_row(&two.client(), *id, |row| row.status == Status::Success).await;
            assert_eq!((row.retry_count, row.crash_count), (0, 0));
            assert!(two.get(*id).await.failures.is_empty());
        }
        two.end().await;
    }
}

/// Whether it is this instance that holds the row, or ended it.
fn holder<B: Back>(row: &asynccmd::CommandRow, at: &Setting<'_, B>) -> bool {
    row.claimed_by.is_none_or(|holder| holder == at.runtime.instance())
}
