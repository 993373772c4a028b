//! Everybody at once: submitters, instances, an operator, and holders that die.

use std::collections::{HashMap, HashSet};
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

use asynccmd::{
    AdminError, Client, CommandError, CommandId, Context, FailureKind, Filter, FinishError, Pool,
    Reason, Registry, Runtime, Status, SubmitError, command,
};
use futures_util::future::{join_all, try_join_all};

use crate::act::Act;
use crate::gate::Gate;
use crate::harness::{Back, DEADLINE, long, until_number, within};

/// What attempts did, on all instances together.
#[derive(Clone, Default)]
struct Notes(Arc<Mutex<HashMap<CommandId, Runs>>>);

#[derive(Debug, Default)]
struct Runs {
    started: HashSet<u32>,
    /// Started twice under one number of a run.
    twice: bool,
    succeeded: HashSet<u32>,
}

impl Notes {
    fn note(&self, ctx: &Context, what: impl FnOnce(&mut Runs)) {
        what(self.0.lock().unwrap().entry(ctx.id()).or_default());
    }

    fn start(&self, ctx: &Context) {
        self.note(ctx, |runs| runs.twice |= !runs.started.insert(ctx.run_no()));
    }
}

/// Ends by its return; fails first where its number says so, or always.
#[command(
    type = "storm.plain",
    mode = "async_pool",
    biz_key = "{key}",
    max_retry = 2,
    backoff = "fixed(10ms)"
)]
async fn plain(
    key: u32,
    #[state] notes: Notes,
    #[state] gate: Gate,
    ctx: &Context,
) -> Result<u32, CommandError> {
    let _only = gate.only(ctx);
    notes.start(ctx);
    tokio::task::yield_now().await;
    match key % 8 {
        0 => Err("always".into()),
        1 if ctx.attempt() == 1 => Err("at first".into()),
        _ => {
            notes.note(ctx, |runs| {
                runs.succeeded.insert(ctx.run_no());
            });
            Ok(ctx.run_no())
        }
    }
}

/// Ends in a transaction of its own, with an effect. Where the database is too busy to begin one, it is tried
/// again, and not only after the minute that the case does not wait.
#[command(
    type = "storm.effect",
    mode = "immediate",
    biz_key = "{key}",
    unique,
    max_retry = 9,
    backoff = "fixed(10ms)"
)]
async fn effect(
    key: u32,
    #[state] notes: Notes,
    #[state] gate: Gate,
    #[state] act: Act,
    ctx: &Context,
) -> Result<(), CommandError> {
    let _ = key;
    let _only = gate.only(ctx);
    notes.start(ctx);
    act.run(ctx).await?;
    notes.note(ctx, |runs| {
        runs.succeeded.insert(ctx.run_no());
    });
    Ok(())
}

/// The effect and the end, in one transaction.
fn act<B: Back>() -> Act {
    Act::new(|ctx: &Context| {
        Box::pin(async move {
            let mut tx = ctx.client().begin::<B::DB>().await?;
            B::execute_on(&mut tx, format!("insert into effect values ({}, 'done')", ctx.id()))
                .await;
            match ctx.finish_in(&mut tx, ()).await {
                Ok(()) => {
                    tx.commit().await?;
                }
                Err(error) => {
                    assert!(
                        matches!(
                            error,
                            FinishError::KillRequested { .. } | FinishError::LeaseLost(_)
                        ),
                        "{error:?}"
                    );
                    tx.rollback().await?;
                    return Err(error.into());
                }
            }
            Ok(())
        })
    })
}

const SUBMITTERS: u32 = 8;
const INSTANCES: usize = 8;

/// Submits what it likes until the time is up. Whatever it is told is no error: one submit a transaction
/// deadlocks with nobody.
async fn submitter<B: Back>(client: Client, me: u32, until: Instant) -> Vec<CommandId> {
    let mut random = fastrand::Rng::with_seed(me.into());
    let mut ids = Vec::new();
    let mut last = None;
    while Instant::now() < until {
        let key = random.u32(..);
        let sent: Result<_, SubmitError> = match random.u32(..6) {
            0 => submit_plain(&client, key).await,
            // Few keys, over which all submitters race.
            1 => submit_effect(&client, key % 64).await,
            2 => {
                let mut tx = client.begin::<B::DB>().await.unwrap();
                let sent = submit_effect(&mut tx, key).await;
                if random.u32(..4) == 0 {
                    tx.rollback().await.unwrap();
                    continue;
                }
                tx.commit().await.unwrap();
                sent
            }
            3 => {
                let rows = (0..10).map(|n| Plain { key: key.wrapping_add(n) });
                let sent = client.submit_all::<Plain>(&client, rows).await.unwrap();
                ids.extend(sent.iter().map(asynccmd::Submitted::id));
                continue;
            }
            4 => submit_plain(&client, key).delay(Duration::from_millis(20)).await,
            _ => {
                if let Some(last) = last.take() {
                    client.cancel::<Plain>(&client, last).await.unwrap();
                }
                continue;
            }
        };
        let sent = sent.unwrap_or_else(|error| panic!("submitter {me}: {error:?}"));
        ids.push(sent.id());
        last = Some(sent.id());
    }
    ids
}

/// Kills at random, by force or not, and retries what is dead.
async fn operator(client: Client, until: Instant) {
    let mut random = fastrand::Rng::with_seed(4711);
    let admin = client.admin();
    let refused = |error: AdminError| {
        let state = matches!(error, AdminError::WrongState { .. } | AdminError::UniqueTaken { .. });
        assert!(state, "the operator: {error:?}");
    };
    while Instant::now() < until {
        let newest = admin.list(Filter::new().limit(100)).await.unwrap();
        if let Some(row) = random.choice(&newest) {
            let kill = admin.kill(row.id, "at random");
            let killed = if random.bool() { kill.force().await } else { kill.await };
            killed.map_or_else(refused, drop);
        }
        let dead = admin.list(Filter::new().status(Status::Dead).limit(100)).await.unwrap();
        if let Some(row) = random.choice(&dead) {
            admin.retry(row.id).await.unwrap_or_else(refused);
        }
    }
}

/// Puts commands that nobody else claims, since they are not due, into the hands of instances that die
/// at once.
async fn reaper<B: Back>(back: Arc<B>, client: Client, until: Instant) -> Vec<CommandId> {
    let mut again = tokio::time::interval(Duration::from_millis(500));
    let mut all = Vec::new();
    while Instant::now() < until {
        again.tick().await;
        let rows = (0..4).map(|key| Plain { key });
        let sent = client.submit_all::<Plain>(&client, rows).delay(Duration::from_secs(3600)).await;
        let ids: Vec<_> = sent.unwrap().iter().map(asynccmd::Submitted::id).collect();
        back.hold_by_a_dead_instance(&ids).await;
        all.extend(ids);
    }
    all
}

/// Nobody is told of a deadlock, nothing is lost, nothing is done twice.
pub async fn a_storm_loses_and_doubles_nothing<B: Back>(back: B) {
    let back = Arc::new(back);
    let (notes, gate) = (Notes::default(), Gate::default());
    let runtimes: Vec<Runtime> = try_join_all((0..INSTANCES).map(|_| {
        let registry = Registry::builder().add::<Plain>().add::<Effect>().build();
        let builder = back.runtime(registry).pool(Pool::new("default").workers(4));
        // Nobody who lives is to be declared dead, in all that noise.
        let builder = builder.stall_timeout(Duration::from_secs(4));
        builder.state(notes.clone()).state(gate.clone()).state(act::<B>()).start()
    }))
    .await
    .unwrap();
    let begin = Instant::now();
    let until = begin + Duration::from_secs(if long() { 30 } else { 5 });
    let clients: Vec<Client> = runtimes.iter().map(Runtime::client).collect();
    let submitters = (0..SUBMITTERS).map(|me| {
        let client = clients[me as usize % INSTANCES].clone();
        tokio::spawn(submitter::<B>(client, me, until))
    });
    let submitters: Vec<_> = submitters.collect();
    let dying = tokio::spawn(reaper(Arc::clone(&back), clients[0].clone(), until));
    let others = [
        tokio::spawn(operator(Client::new(back.database()), until)),
        tokio::spawn(no_deadlock(clients.clone(), until)),
    ];
    let mut ids = HashSet::new();
    for submitted in join_all(submitters).await {
        ids.extend(submitted.unwrap());
    }
    ids.extend(dying.await.unwrap());
    for done in join_all(others).await {
        done.unwrap();
    }
    until_all_have_ended(&*back, &clients[0]).await;
    // Those of instances that were declared dead before they had taken anything, too.
    until_number(&*back, "select count(*) from async_command_claim", 0).await;
    within("the shutdowns", join_all(runtimes.iter().map(Runtime::shutdown))).await;
    back.assert_receipts_match_rows().await;

    let rows = back.number("select count(*) from async_command").await;
    assert_eq!(rows, ids.len() as i64, "what was submitted is what is there");
    let notes = std::mem::take(&mut *notes.0.lock().unwrap());
    let (mut states, mut recovered) = (HashMap::<_, usize>::new(), 0);
    for id in &ids {
        let detail = clients[0].admin().get(*id).await.unwrap();
        let (row, none) = (&detail.row, Runs::default());
        let runs = notes.get(id).unwrap_or(&none);
        *states.entry(row.status).or_default() += 1;
        recovered += detail.failures.iter().filter(|f| f.kind == FailureKind::Crashed).count();
        let panic = detail.failures.iter().find(|failure| failure.kind == FailureKind::Panic);
        assert!(panic.is_none(), "the handler was told what it should not be: {panic:?}");
        assert!(!runs.twice, "a run of it was started twice: {detail:?} {runs:?}");
        // On a machine that stands still for long enough an instance is declared dead: then it counts.
        let crashed = |run: &u32| {
            detail.failures.iter().any(|f| f.run_no == *run && f.kind == FailureKind::Crashed)
        };
        let mut succeeded = runs.succeeded.clone();
        succeeded.retain(|run| !crashed(run));
        match row.status {
            Status::Success => {
                assert_eq!(succeeded, HashSet::from([row.run_no]), "{detail:?} {runs:?}");
            }
            // Killed while its success was on its way, at most.
            Status::Killed => assert!(succeeded.len() <= 1, "{detail:?} {runs:?}"),
            _ => assert!(succeeded.is_empty(), "{detail:?} {runs:?}"),
        }
    }
    let torn = "select count(*) from async_command c where c.cmd_type = 'storm.effect' and
        (select count(*) from effect e where e.command = c.id) <> case c.status when 'SUCCESS' then 1 else 0 end";
    assert_eq!(back.number(torn).await, 0, "effects without their ends");
    println!(
        "{} commands within {:?}: {states:?}, {recovered} recovered",
        ids.len(),
        begin.elapsed()
    );
    for status in [Status::Success, Status::Killed, Status::Dead] {
        assert!(states.contains_key(&status), "the storm was none: {states:?}");
    }
    assert!(recovered > 0, "the storm was none");
}

/// Waits until nothing is PENDING or RUNNING.
///
/// # Panics
/// After [`DEADLINE`], with one that is.
async fn until_all_have_ended<B: Back>(back: &B, client: &Client) {
    let admin = client.admin();
    let live = "select count(*) from async_command where status in ('PENDING', 'RUNNING')";
    let begin = Instant::now();
    let mut again = tokio::time::interval(Duration::from_millis(50));
    while back.number(live).await > 0 {
        again.tick().await;
        if begin.elapsed() < DEADLINE {
            continue;
        }
        for status in [Status::Pending, Status::Running] {
            let left = admin.list(Filter::new().status(status).limit(1)).await.unwrap();
            if let Some(row) = left.first() {
                panic!("after {DEADLINE:?} still: {:?}", admin.get(row.id).await.unwrap());
            }
        }
    }
}

/// No runtime was told of a deadlock that its statements did not bear by themselves.
async fn no_deadlock(clients: Vec<Client>, until: Instant) {
    let mut again = tokio::time::interval(Duration::from_millis(250));
    while Instant::now() < until {
        again.tick().await;
        for client in &clients {
            for reason in client.admin().health().await.reasons {
                if let Reason::DatabaseAway { error, .. } = reason {
                    assert!(!error.contains("aborted"), "{error}");
                }
            }
        }
    }
}
