//! What an operator sees, and what may be done from which state.

use std::time::Duration;

use asynccmd::{
    AdminError, Client, CommandError, CommandId, CommandRow, Context, Filter, KillAnswer, Registry,
    Status, command,
};

use crate::gate::Gate;
use crate::harness::{Back, Log, until_row};
use crate::setting::Setting;

#[command(type = "operate.any", mode = "async_pool", biz_key = "{how}", max_retry = 1)]
async fn any(how: String, #[state] gate: Gate) -> Result<(), CommandError> {
    match &*how {
        "runs" => gate.pass().await,
        "dies" => return Err("as told".into()),
        "cancels" => return Err(CommandError::cancel("as told")),
        _ => {}
    }
    Ok(())
}

#[command(type = "operate.keyed", mode = "async_pool", biz_key = "{key}", unique, max_retry = 1)]
async fn keyed(key: String, fails: bool) -> Result<(), CommandError> {
    let _ = key;
    if fails { Err("as told".into()) } else { Ok(()) }
}

#[command(
    type = "operate.latest",
    mode = "async_pool",
    biz_key = "{key}",
    unique = "until_started"
)]
async fn latest(key: String, #[state] gate: Gate) -> Result<(), CommandError> {
    let _ = key;
    gate.pass().await;
    Ok(())
}

/// The first attempt fails or waits for its cancellation; the second one succeeds.
#[command(type = "operate.watch", mode = "async_pool", max_retry = 1)]
async fn watch(#[state] gate: Gate, #[state] log: Log, ctx: &Context) -> Result<u32, CommandError> {
    let _inside = gate.enter();
    if ctx.run_no() == 1 {
        ctx.cancelled().await;
        log.add(ctx, &format!("cancelled, lost {}", ctx.lease_lost()));
        return Err("this changes nothing".into());
    }
    log.add(ctx, "second");
    Ok(ctx.run_no())
}

/// The same as a plain function: it stops when it likes.
#[command(type = "operate.block", mode = "async_pool", max_retry = 1)]
fn block(#[state] gate: Gate, #[state] log: Log, ctx: &Context) -> Result<u32, CommandError> {
    gate.pass_blocking();
    log.add(ctx, &format!("cancelled {}, lost {}", ctx.is_cancelled(), ctx.lease_lost()));
    if ctx.run_no() == 1 { Err("this changes nothing".into()) } else { Ok(ctx.run_no()) }
}

fn registry() -> Registry {
    Registry::builder()
        .add::<Any>()
        .add::<Keyed>()
        .add::<Latest>()
        .add::<Watch>()
        .add::<Block>()
        .build()
}

const STATES: [Status; 5] =
    [Status::Pending, Status::Running, Status::Success, Status::Dead, Status::Killed];

/// A command in this state.
async fn put<B: Back>(at: &Setting<'_, B>, status: Status) -> CommandId {
    let client = at.client();
    let (how, wait) = match status {
        Status::Pending => ("waits", Duration::from_secs(3600)),
        Status::Running => ("runs", Duration::ZERO),
        Status::Dead => ("dies", Duration::ZERO),
        Status::Killed => ("cancels", Duration::ZERO),
        _ => ("succeeds", Duration::ZERO),
    };
    let before = at.gate.entered();
    let id = submit_any(&client, how.into()).delay(wait).await.unwrap().id();
    until_row(&client, id, |row| row.status == status).await;
    if status == Status::Running {
        at.gate.until_entered(before + 1).await;
    }
    id
}

/// The refusal names what was found, and what the call starts from.
fn wrong_state(refused: &AdminError, wanted: &str, found: Status) {
    let AdminError::WrongState { found: state, .. } = refused else { panic!("{refused}") };
    assert_eq!(*state, found);
    let text = refused.to_string();
    assert!(text.contains(wanted) && text.contains(found.as_str()), "{text}");
}

/// `retry`: DEAD → PENDING with all its attempts, and nothing else.
pub async fn a_retry_starts_from_dead_only<B: Back>(back: B) {
    let at = Setting::start(&back, registry()).await;
    // By a client that tells no runtime: the row is seen before it runs again.
    let admin = Client::new(back.database()).admin();
    for found in STATES {
        let id = put(&at, found).await;
        match admin.retry(id).await {
            Ok(()) => {
                assert_eq!(found, Status::Dead);
                until_row(&at.client(), id, |row| row.run_no >= 2).await;
                assert_eq!(at.get(id).await.failures[0].run_no, 1, "the record stays");
            }
            Err(refused) => {
                wrong_state(&refused, "DEAD", found);
                assert_eq!(at.status(id).await, found);
            }
        }
    }
    let none = admin.retry(CommandId(4711)).await.unwrap_err();
    assert!(matches!(none, AdminError::NotFound(CommandId(4711))), "{none}");
    at.gate.open(9);
    at.end().await;
}

/// `requeue`: RUNNING → PENDING, and nothing else.
pub async fn a_requeue_starts_from_running_only<B: Back>(back: B) {
    let at = Setting::start(&back, registry()).await;
    let admin = at.client().admin();
    for found in STATES {
        let id = put(&at, found).await;
        match admin.requeue(id).await {
            Ok(()) => {
                assert_eq!(found, Status::Running);
                at.gate.until_entered(2).await;
                let row = at.get(id).await.row;
                assert_eq!((row.status, row.retry_count, row.crash_count), (Status::Running, 0, 0));
            }
            Err(refused) => {
                wrong_state(&refused, "RUNNING", found);
                assert_eq!(at.status(id).await, found);
            }
        }
    }
    assert!(matches!(admin.requeue(CommandId(4711)).await, Err(AdminError::NotFound(_))));
    at.gate.open(9);
    at.end().await;
}

/// `kill`: PENDING and DEAD at once, RUNNING asked, or at once with force; what has ended stays.
pub async fn a_kill_starts_from_what_has_not_ended<B: Back>(back: B) {
    let at = Setting::start(&back, registry()).await;
    let admin = at.client().admin();
    for found in STATES {
        for force in [false, true] {
            let id = put(&at, found).await;
            let kill = admin.kill(id, "withdrawn");
            let answer = if force { kill.force().await } else { kill.await };
            match (found, answer) {
                (Status::Pending | Status::Dead, Ok(answer)) => {
                    assert_eq!(answer, KillAnswer::Killed)
                }
                (Status::Running, Ok(answer)) => {
                    assert_eq!(answer, if force { KillAnswer::Killed } else { KillAnswer::Asked });
                }
                (_, Ok(answer)) => panic!("{found}: {answer:?}"),
                (_, Err(refused)) => {
                    wrong_state(&refused, "PENDING, RUNNING and DEAD", found);
                    assert_eq!(at.status(id).await, found);
                    continue;
                }
            }
            let killed = until_row(&at.client(), id, |row| row.status == Status::Killed).await;
            assert_eq!(killed.kill_reason.as_deref(), Some("withdrawn"), "{found}, force {force}");
            assert!(killed.finished_at.is_some() && killed.claimed_by.is_none());
        }
    }
    assert!(matches!(admin.kill(CommandId(4711), "").await, Err(AdminError::NotFound(_))));
    let long = admin.kill(CommandId(1), "x".repeat(201)).await.unwrap_err();
    let text = long.to_string();
    assert!(text.contains("201") && text.contains("200"), "{text}");
    at.gate.until_empty().await;
    at.end().await;
}

/// An error fenced by a requeue changes nothing; the attempt sees `cancelled` and `lease_lost`, and the
/// next one succeeds.
pub async fn a_requeued_attempt_is_fenced_and_told<B: Back>(back: B) {
    let at = Setting::start(&back, registry()).await;
    let id = submit_watch(&at.client()).await.unwrap().id();
    at.gate.until_entered(1).await;
    at.client().admin().requeue(id).await.unwrap();
    at.log.until(2).await;
    assert_eq!(at.log.texts(), ["cancelled, lost true", "second"]);
    let row = until_row(&at.client(), id, |row| row.status == Status::Success).await;
    assert_eq!((row.retry_count, row.last_error), (0, None), "its failure changed nothing");
    assert_eq!(at.gate.most(), 1);
    assert!(at.get(id).await.failures.is_empty());
    at.end().await;
}

/// Code that cannot be cancelled runs on; the next attempt starts here only after it has stopped.
pub async fn a_second_attempt_waits_for_the_first_ones_code<B: Back>(back: B) {
    let at = Setting::start(&back, registry()).await;
    let id = submit_block(&at.client()).await.unwrap().id();
    at.gate.until_entered(1).await;
    at.client().admin().requeue(id).await.unwrap();
    // Claimed anew, and given back because its first attempt still runs.
    until_row(&at.client(), id, |row| row.run_no >= 2 && row.status == Status::Pending).await;
    assert_eq!((at.gate.entered(), at.gate.inside()), (1, 1));
    at.gate.open(2);
    let row = until_row(&at.client(), id, |row| row.status == Status::Success).await;
    assert_eq!((row.retry_count, row.last_error), (0, None));
    assert_eq!((at.gate.entered(), at.gate.most()), (2, 1));
    assert_eq!(at.log.texts()[0], "cancelled true, lost true");
    assert_eq!(at.log.texts()[1], "cancelled false, lost false");
    at.end().await;
}

/// A dead command whose unique key is live again is not retried; the refusal names the other one.
pub async fn a_retry_is_refused_while_its_key_is_taken<B: Back>(back: B) {
    let at = Setting::start(&back, registry()).await;
    let client = at.client();
    let dead = submit_keyed(&client, "k".into(), true).await.unwrap().id();
    at.drain().await;
    let next = submit_keyed(&client, "k".into(), false).delay(Duration::from_secs(60)).await;
    let next = next.unwrap().id();
    let refused = client.admin().retry(dead).await.unwrap_err();
    let AdminError::UniqueTaken { id, by } = refused else { panic!("{refused}") };
    assert_eq!((id, by), (dead, next));
    assert_eq!(at.status(dead).await, Status::Dead);
    at.next_day().await;
    assert_eq!(at.status(next).await, Status::Success);
    client.admin().retry(dead).await.unwrap();
    at.drain().await;
    assert_eq!(at.get(dead).await.row.run_no, 2);
    at.end().await;
}

/// A running command whose key is taken by a newer one is not requeued into it.
pub async fn a_requeue_is_refused_while_its_key_is_taken<B: Back>(back: B) {
    let at = Setting::start(&back, registry()).await;
    let client = at.client();
    let first = submit_latest(&client, "k".into()).await.unwrap().id();
    at.gate.until_entered(1).await;
    let second = submit_latest(&client, "k".into()).delay(Duration::from_secs(60)).await;
    let refused = client.admin().requeue(first).await.unwrap_err();
    assert!(matches!(refused, AdminError::UniqueTaken { by, .. } if by == second.unwrap().id()));
    at.gate.open(1);
    at.drain().await;
    assert_eq!(at.status(first).await, Status::Success);
    at.end().await;
}

/// Newest first, by pages, by every filter.
pub async fn a_list_goes_by_pages_over_its_filters<B: Back>(back: B) {
    let at = Setting::start(&back, registry()).await;
    let client = at.client();
    let mut ids = Vec::new();
    for number in 0..25 {
        let how = if number % 5 == 0 { "dies" } else { "succeeds" };
        ids.push(submit_any(&client, how.into()).await.unwrap().id());
        submit_keyed(&client, format!("{number}"), false).await.unwrap();
    }
    at.drain().await;
    ids.reverse();
    let admin = client.admin();
    let pages = async |filter: Filter| {
        let (mut all, mut sizes, mut filter) = (Vec::<CommandRow>::new(), Vec::new(), filter);
        loop {
            let page = admin.list(filter.clone()).await.unwrap();
            sizes.push(page.len());
            let Some(last) = page.last() else { return (all, sizes) };
            filter = filter.before(last.id);
            all.extend(page);
        }
    };
    let found = |rows: &[CommandRow]| rows.iter().map(|row| row.id).collect::<Vec<_>>();

    let (all, sizes) = pages(Filter::new().limit(20)).await;
    assert_eq!(sizes, [20, 20, 10, 0]);
    assert!(all.windows(2).all(|two| two[0].id > two[1].id));
    assert_eq!(found(&pages(Filter::new().command_type("operate.any").limit(7)).await.0), ids);
    let dead: Vec<_> = (0..25).filter(|at| (24 - at) % 5 == 0).map(|at| ids[at]).collect();
    for filter in [
        Filter::new().status(Status::Dead),
        Filter::new().status(Status::Dead).command_type("operate.any"),
        Filter::new().biz_key("dies"),
        Filter::new().biz_key("dies").status(Status::Dead).command_type("operate.any"),
    ] {
        let (rows, sizes) = pages(filter.clone().limit(2)).await;
        assert_eq!((found(&rows), sizes), (dead.clone(), vec![2, 2, 1, 0]), "{filter:?}");
    }
    for nothing in [
        Filter::new().status(Status::Running),
        Filter::new().command_type("operate"),
        Filter::new().biz_key("die"),
        Filter::new().biz_key("dies").status(Status::Success),
        Filter::new().status(Status::Dead).command_type("operate.keyed"),
    ] {
        assert!(admin.list(nothing).await.unwrap().is_empty());
    }
    assert_eq!(admin.list(Filter::new()).await.unwrap().len(), 50, "the default page");

    let census = admin.census().await.unwrap();
    let census: Vec<_> =
        census.iter().map(|c| (&*c.command_type, c.status, c.count, c.attempts)).collect();
    assert_eq!(
        census,
        [
            ("operate.any", Status::Dead, 5, 5),
            ("operate.any", Status::Success, 20, 20),
            ("operate.keyed", Status::Success, 25, 25)
        ]
    );
    at.end().await;
}
