//! Who is declared dead, and who is not.

use std::time::Duration;

use asynccmd::testing::Faults;
use asynccmd::{
    CommandError, Context, FailureKind, Pool, Registry, RuntimeBuilder, Status, command,
};

use crate::gate::Gate;
use crate::harness::{Back, Log, until_row, within};
use crate::setting::Setting;

#[command(type = "takeover.waits", mode = "async_pool")]
async fn waits(
    number: usize,
    #[state] gate: Gate,
    #[state] log: Log,
    ctx: &Context,
) -> Result<i64, CommandError> {
    let _ = number;
    gate.pass().await;
    log.add(ctx, "ends");
    Ok(ctx.state::<Name>().unwrap().0)
}

/// Which of a case's runtimes it is.
#[derive(Clone, Copy)]
struct Name(i64);

/// One that dies of its own will: the shortest that a runtime takes.
const STALL: Duration = Duration::from_secs(1);

fn registry() -> Registry {
    Registry::builder().add::<Waits>().build()
}

async fn start<B: Back>(
    back: &B,
    name: i64,
    settings: impl FnOnce(RuntimeBuilder) -> RuntimeBuilder,
) -> Setting<'_, B> {
    Setting::start_with(back, registry(), |builder| {
        settings(builder.state(Name(name)).stall_timeout(STALL))
    })
    .await
}

/// An instance whose scheduler is stuck sends no heartbeat: its rows run elsewhere, once, and it goes on
/// as another instance when it turns again.
pub async fn a_stuck_instance_gives_its_rows_up<B: Back>(back: B) {
    let faults = Faults::new();
    let one = start(&back, 1, |builder| builder.faults(faults.clone())).await;
    let client = one.client();
    let sent = client.submit_all::<Waits>(&client, (0..3).map(|number| Waits { number })).await;
    let ids: Vec<_> = sent.unwrap().iter().map(asynccmd::Submitted::id).collect();
    one.gate.until_entered(3).await;
    let before = one.runtime.instance();

    let two = start(&back, 2, |builder| builder).await;
    two.gate.open(3);
    let (here, log) = (tokio::runtime::Handle::current(), two.log.clone());
    tokio::task::spawn_blocking(move || {
        faults.with_blocked_scheduler(|| here.block_on(log.until(3)));
    })
    .await
    .unwrap();
    for id in &ids {
        let row = until_row(&client, *id, |row| row.status == Status::Success).await;
        assert_eq!((row.result.as_deref(), row.retry_count), (Some("2"), 0));
        let failures = two.get(*id).await.failures;
        assert_eq!((failures.len(), failures[0].kind), (1, FailureKind::Crashed));
    }
    within("another number", async {
        let mut again = tokio::time::interval(Duration::from_millis(5));
        while one.runtime.instance() == before {
            again.tick().await;
        }
    })
    .await;
    // Its attempts were told, and dropped where they waited.
    one.gate.until_empty().await;
    assert!(one.log.entries().is_empty());
    two.runtime.shutdown().await;
    one.gate.open(1);
    let id = submit_waits(&client, 3).await.unwrap().id();
    let row = until_row(&client, id, |row| row.status == Status::Success).await;
    assert_eq!((row.result.as_deref(), row.run_no), (Some("1"), 1));
    one.end().await;
}

/// A database that is away for three times `stall_timeout`, while a hundred attempts run and end: nobody
/// is declared dead, each has run once, and health has said so.
pub async fn an_outage_longer_than_the_stall_timeout_kills_nobody<B: Back>(back: B) {
    const ATTEMPTS: usize = 100;
    let fifty = |builder: RuntimeBuilder| builder.pool(Pool::new("default").workers(ATTEMPTS / 2));
    let runtimes = [start(&back, 1, fifty).await, start(&back, 2, fifty).await];
    let client = runtimes[0].client();
    let commands = (0..ATTEMPTS).map(|number| Waits { number });
    let sent = client.submit_all::<Waits>(&client, commands).await.unwrap();
    for at in &runtimes {
        at.gate.until_entered(ATTEMPTS / 2).await;
    }
    let instances = runtimes.each_ref().map(|at| at.runtime.instance());

    let away = tokio::time::Instant::now();
    let held = back.hold_everything().await;
    for at in &runtimes {
        // The ends come while nothing can be written.
        at.gate.open(ATTEMPTS);
        at.log.until(ATTEMPTS / 2).await;
        at.until_health(false).await;
    }
    // The outage itself is what is tested, so its length is a length of time.
    tokio::time::sleep_until(away + STALL * 3).await;
    held.rollback().await.unwrap();

    for id in sent.iter().map(asynccmd::Submitted::id) {
        let row = until_row(&client, id, |row| row.status == Status::Success).await;
        assert_eq!((row.run_no, row.retry_count, row.crash_count), (1, 0, 0), "{row:?}");
    }
    for (at, instance) in runtimes.iter().zip(instances) {
        at.until_health(true).await;
        assert_eq!(at.runtime.instance(), instance, "it was declared dead");
        assert_eq!(at.log.entries().len(), ATTEMPTS / 2, "each has run once");
    }
    for at in runtimes {
        at.end().await;
    }
}
