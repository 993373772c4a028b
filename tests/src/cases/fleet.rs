//! Many instances on one table.

use std::collections::HashMap;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use asynccmd::{CommandError, CommandId, Context, Pool, Registry, Runtime, command};
use futures_util::future::{join_all, try_join_all};
use tokio::sync::watch;

use crate::harness::{Back, long, within};

/// How often each command has run, here and there.
#[derive(Clone)]
struct Tally {
    here: Arc<AtomicUsize>,
    everywhere: Arc<Mutex<HashMap<CommandId, usize>>>,
    runs: Arc<watch::Sender<usize>>,
}

#[command(type = "fleet.row", mode = "async_pool")]
async fn fleet_row(
    number: usize,
    #[state] tally: Tally,
    ctx: &Context,
) -> Result<(), CommandError> {
    let _ = number;
    // The work itself: so long that the workers bound what an instance does, not its luck at the claims.
    tokio::time::sleep(Duration::from_millis(100)).await;
    tally.here.fetch_add(1, Ordering::Relaxed);
    *tally.everywhere.lock().unwrap().entry(ctx.id()).or_default() += 1;
    tally.runs.send_modify(|runs| *runs += 1);
    Ok(())
}

/// So many instances share so many commands: each runs once, and nobody does more than twice what
/// another does (in the long suite, whose commands are many).
async fn share<B: Back>(back: B, instances: usize, commands: usize) {
    let runs = Arc::new(watch::Sender::new(0));
    let everywhere = Arc::default();
    let tallies: Vec<Tally> = (0..instances)
        .map(|_| Tally {
            here: Arc::default(),
            everywhere: Arc::clone(&everywhere),
            runs: Arc::clone(&runs),
        })
        .collect();
    let runtimes: Vec<Runtime> = try_join_all(tallies.iter().map(|tally| {
        let registry = Registry::builder().add::<FleetRow>().build();
        let pool = Pool::new("default").workers(32);
        back.runtime(registry).pool(pool).state(tally.clone()).start()
    }))
    .await
    .unwrap();
    // Each is told of a part, so that all of them look at once.
    let part = commands / instances;
    let submits = runtimes.iter().map(|runtime| async {
        let client = runtime.client();
        let rows = (0..part).map(|number| FleetRow { number });
        client.submit_all::<FleetRow>(&client, rows).await.unwrap();
    });
    join_all(submits).await;
    let mut ran = runs.subscribe();
    for reached in 1..=10 {
        let wanted = part * instances * reached / 10;
        let tenth = ran.wait_for(|runs| *runs >= wanted);
        within("a further tenth has run", tenth).await.unwrap();
    }
    join_all(runtimes.iter().map(Runtime::shutdown)).await;
    let once = everywhere.lock().unwrap().values().filter(|runs| **runs == 1).count();
    assert_eq!((once, *ran.borrow()), (part * instances, part * instances), "each of them once");
    // Claimed twice, at most, if it was ready for too long without a start, and that counts nothing.
    let succeeded = "select count(*) from async_command where status = 'SUCCESS' and retry_count = 0 and crash_count = 0";
    assert_eq!(back.number(succeeded).await, (part * instances) as i64);
    back.assert_receipts_match_rows().await;
    let shares: Vec<usize> = tallies.iter().map(|t| t.here.load(Ordering::Relaxed)).collect();
    let (least, most) = (shares.iter().min().unwrap(), shares.iter().max().unwrap());
    println!("{instances} instances shared {shares:?}");
    // A short run is at the mercy of who wakes first, and of the machine; hoarding shows there too.
    let factor = if long() { 2 } else { 4 };
    assert!(*most <= factor * least, "unfairly shared: {shares:?}");
}

/// By default, a few seconds of work for each; in the long suite always the same.
fn commands(instances: usize) -> usize {
    if long() { 50_000 } else { 1_000 * instances }
}

/// Two.
pub async fn two_instances_share_the_work_evenly<B: Back>(back: B) {
    share(back, 2, commands(2)).await;
}

/// Four.
pub async fn four_instances_share_the_work_evenly<B: Back>(back: B) {
    share(back, 4, commands(4)).await;
}

/// Eight.
pub async fn eight_instances_share_the_work_evenly<B: Back>(back: B) {
    share(back, 8, commands(8)).await;
}
