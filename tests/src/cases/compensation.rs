//! What makes up for a command exists exactly if that is dead.

use asynccmd::testing::{SubmittedRow, submitted};
use asynccmd::{
    AdminError, Client, CommandError, CommandId, Compensation, Context, FailureKind, Poll,
    Registry, Status, command,
};
use serde::{Deserialize, Serialize, Serializer};
use serde_json::{Value, json};

use crate::gate::Gate;
use crate::harness::{Back, Log, row};
use crate::setting::{DAY, Setting};

#[command(
    type = "compensation.pay",
    mode = "async_pool",
    biz_key = "order:{order}",
    max_retry = 1,
    compensate(Refund)
)]
async fn pay(order: i64, how: String, #[state] gate: Gate) -> Result<(), CommandError> {
    match &*how {
        "fatal" => Err(CommandError::fatal("no such account")),
        "cancel" => Err(CommandError::cancel("not wanted")),
        "panic" => panic!("no"),
        "wait" => {
            gate.pass().await;
            Err("waited for nothing".into())
        }
        "ok" => Ok(()),
        _ => Err(format!("no answer for {order}").into()),
    }
}

#[command(type = "compensation.refund", mode = "async_pool", max_retry = 1, compensate(ByHand))]
async fn refund(
    #[payload] dead: Compensation<Pay>,
    #[state] log: Log,
    ctx: &Context,
) -> Result<(), CommandError> {
    let Compensation { payload, failure, id, .. } = dead;
    log.add(ctx, &format!("{} {id} {}: {}", payload.order, failure.kind, failure.message));
    if payload.how == "never" { Err("nor this".into()) } else { Ok(()) }
}

/// Makes up for what could not be made up for; nobody handles it here.
#[command(type = "compensation.by_hand")]
async fn by_hand(#[payload] dead: Compensation<Compensation<Pay>>) -> Result<(), CommandError> {
    drop(dead);
    Ok(())
}

/// The second shape of what is stored.
#[command(
    type = "compensation.book",
    version = 2,
    upgrade(in_cents),
    max_retry = 1,
    compensate(Unbook)
)]
async fn book(cents: i64) -> Result<(), CommandError> {
    Err(format!("{cents} cents are too many").into())
}

fn in_cents(_: u32, payload: Value) -> Result<Value, CommandError> {
    let euros = payload["euros"].as_i64().ok_or("no euros")?;
    Ok(json!({ "cents": euros * 100 }))
}

/// Its key is its own.
#[command(type = "compensation.unbook", mode = "immediate", biz_key = "{id}")]
async fn unbook(
    #[payload] dead: Compensation<Book>,
    #[state] log: Log,
    ctx: &Context,
) -> Result<(), CommandError> {
    log.add(ctx, &dead.payload.cents.to_string());
    Ok(())
}

/// Reads from any text, and is not written again.
#[derive(Debug, Clone, Deserialize)]
struct Odd(String);

impl Serialize for Odd {
    fn serialize<S: Serializer>(&self, to: S) -> Result<S::Ok, S::Error> {
        match &*self.0 {
            "panic" => panic!("not again"),
            "error" => Err(serde::ser::Error::custom("not again")),
            text => to.serialize_str(text),
        }
    }
}

#[command(type = "compensation.strain", max_retry = 1, compensate(Relax))]
async fn strain(odd: Odd) -> Result<(), CommandError> {
    Err(format!("strained by {}", odd.0).into())
}

#[command(type = "compensation.relax")]
async fn relax(#[payload] dead: Compensation<Strain>) -> Result<(), CommandError> {
    drop(dead);
    Ok(())
}

fn registry() -> Registry {
    Registry::builder()
        .add::<Pay>()
        .add::<Refund>()
        .add::<Book>()
        .add::<Unbook>()
        .add::<Strain>()
        .add::<Relax>()
        .build()
}

async fn paid<B: Back>(at: &Setting<'_, B>, order: i64, how: &str) -> CommandId {
    submit_pay(&at.client(), order, how.into()).await.unwrap().id()
}

async fn refunds<B: Back>(back: &B) -> Vec<SubmittedRow<Refund>> {
    submitted::<Refund>(back.database()).await
}

/// Somebody has seen to what nobody here handles.
async fn end_by_hand<B: Back>(back: &B) {
    back.execute(
        "update async_command set status = 'KILLED', finished_at = updated_at
         where cmd_type = 'compensation.by_hand' and status = 'PENDING'",
    )
    .await;
}

/// One that fails for good has its compensation, which knows what it needs, and finds its way at once.
pub async fn a_dead_command_is_compensated_for_in_the_transaction_of_its_death<B: Back>(back: B) {
    let at = Setting::start_with(&back, registry(), |b| b.poll(Poll::fixed_delay(DAY))).await;
    let id = submit_pay(&at.client(), 7, "error".into()).max_retry(2).await.unwrap().id();
    at.drain().await;
    assert_eq!(at.status(id).await, Status::Pending);
    assert!(refunds(&back).await.is_empty(), "it has an attempt left");
    at.next_day().await;
    at.log.until(1).await;
    at.drain().await;
    assert_eq!(at.log.texts(), [format!("7 {id} error: no answer for 7")]);

    let dead = at.get(id).await.row;
    let [refund] = &refunds(&back).await[..] else { panic!("one refund") };
    let (payload, row) = (&refund.payload, &refund.row);
    assert_eq!((dead.status, dead.compensation), (Status::Dead, Some(row.id)));
    assert_eq!((row.status, row.parent, &*row.biz_key), (Status::Success, Some(id), "order:7"));
    assert_eq!((payload.id, payload.uid), (id, dead.uid));
    assert_eq!((payload.failure.failures_before, payload.failure.max_retry), (1, 2));
    assert_eq!((&*payload.payload.how, row.shard), ("error", dead.shard));
    at.end().await;
}

/// Whatever a command dies of, also without a start.
pub async fn a_death_of_whatever_kind_is_compensated_for<B: Back>(back: B) {
    let at = Setting::start(&back, registry()).await;
    let mut ids = Vec::new();
    for (order, kind) in (1..).zip(["error", "fatal", "panic"]) {
        ids.push((order, paid(&at, order, kind).await, kind));
    }
    at.drain().await;
    // Two holders that died, and a third one that an older binary has recovered from.
    let crashed = submit_pay(&at.client(), 4, "ok".into()).delay(DAY).await.unwrap().id();
    back.execute(format!("update async_command set crash_count = 3 where id = {crashed}")).await;
    at.next_day().await;
    ids.push((4, crashed, "crashed"));

    let mut told = at.log.texts();
    told.sort_unstable();
    for ((order, id, kind), told) in ids.iter().zip(told) {
        assert!(told.starts_with(&format!("{order} {id} {kind}: ")), "{told}");
    }
    let detail = at.get(crashed).await;
    assert_eq!((detail.row.status, detail.row.retry_count), (Status::Dead, 0));
    assert_eq!((detail.row.crash_count, detail.failures.len()), (3, 0), "deaths are on record");
    assert!(detail.row.last_error.unwrap().contains("3 times in a row"));
    assert_eq!(refunds(&back).await.len(), ids.len());
    at.end().await;
}

/// Nothing is made up for that succeeds, is killed, or that nobody can read.
pub async fn who_does_not_die_of_a_failure_is_not_compensated_for<B: Back>(back: B) {
    let at = Setting::start(&back, registry()).await;
    let admin = at.client().admin();
    paid(&at, 1, "ok").await;
    paid(&at, 2, "cancel").await;
    let late = submit_pay(&at.client(), 3, "error".into()).delay(DAY).await.unwrap().id();
    admin.kill(late, "no").await.unwrap();
    let asked = paid(&at, 4, "wait").await;
    at.gate.until_entered(1).await;
    // The last attempt fails, and ends in what was asked for meanwhile.
    back.execute(format!("update async_command set kill_reason = 'no' where id = {asked}")).await;
    at.gate.open(1);
    at.drain().await;
    assert_eq!(at.status(asked).await, Status::Killed);
    let broken = submit_pay(&at.client(), 5, "ok".into()).delay(DAY).await.unwrap().id();
    back.execute(format!("update async_command set payload = '[]' where id = {broken}")).await;
    at.next_day().await;
    assert_eq!(at.death(broken).await.0, FailureKind::Undecodable);
    assert!(refunds(&back).await.is_empty());
    at.end().await;
}

/// What is made up for is told in its newest shape, to a compensation with a key of its own.
pub async fn an_older_payload_is_compensated_for_as_it_was_upgraded<B: Back>(back: B) {
    let at = Setting::start(&back, registry()).await;
    let mut ids = Vec::new();
    for _ in 0..2 {
        ids.push(submit_book(&at.client(), 0).delay(DAY).await.unwrap().id());
    }
    back.execute(
        r#"update async_command set payload = '{"euros":3}', payload_version = 1
           where cmd_type = 'compensation.book'"#,
    )
    .await;
    at.next_day().await;
    let unbooked = submitted::<Unbook>(back.database()).await;
    for id in ids {
        let row = at.get(id).await.row;
        assert_eq!((row.status, row.payload_version), (Status::Dead, 1));
        let its = unbooked.iter().find(|one| Some(one.row.id) == row.compensation).unwrap();
        assert_eq!(its.row.biz_key, id.to_string());
    }
    assert_eq!(at.log.texts(), ["300", "300"]);
    at.end().await;
}

/// Then the command is dead all the same, and says what it lacks.
pub async fn a_compensation_that_cannot_be_made_delays_no_death<B: Back>(back: B) {
    let at = Setting::start(&back, registry()).await;
    for how in ["panic", "error"] {
        let odd = Odd("well".into());
        let id = submit_strain(&at.client(), odd).delay(DAY).await.unwrap().id();
        let payload = json!({ "odd": how });
        back.execute(format!("update async_command set payload = '{payload}' where id = {id}"))
            .await;
        at.next_day().await;
        let (kind, error) = at.death(id).await;
        assert_eq!(kind, FailureKind::Error);
        assert!(error.starts_with("not compensated for ("), "{error}");
        assert!(error.ends_with(&format!("not again); strained by {how}")), "{error}");
        assert_eq!(at.get(id).await.row.compensation, None);
    }
    assert!(submitted::<Relax>(back.database()).await.is_empty());
    at.end().await;
}

/// Nor does one that breaks a rule of the table, alone or among others.
pub async fn a_compensation_that_the_database_refuses_delays_no_death<B: Back>(back: B) {
    let at = Setting::start(&back, registry()).await;
    back.execute(if back.url().starts_with("sqlite") {
        "create trigger refuse before insert on async_command when new.biz_key = 'order:2'
                and new.cmd_type = 'compensation.refund'
         begin select raise(abort, 'CHECK constraint failed'); end"
    } else {
        "alter table async_command add constraint refuse
         check (biz_key <> 'order:2' or cmd_type <> 'compensation.refund')"
    })
    .await;
    let mut ids = Vec::new();
    for order in 1..=3 {
        ids.push(paid(&at, order, "error").await);
    }
    at.drain().await;
    for (at_position, id) in ids.iter().enumerate() {
        let (_, error) = at.death(*id).await;
        let refused = at_position == 1;
        assert_eq!(error.starts_with("not compensated for ("), refused, "{error}");
        assert_eq!(at.get(*id).await.row.compensation.is_none(), refused);
    }
    assert_eq!(at.log.entries().len(), 2);
    at.end().await;
}

/// The payload and the message may be as long as they are: what a submit was allowed is not asked again.
pub async fn a_long_payload_is_compensated_for<B: Back>(back: B) {
    let client = Client::builder(back.database()).max_payload(3 << 20).build();
    let how = "x".repeat(2 << 20);
    let id = submit_pay(&client, 1, how.clone()).await.unwrap().id();
    let at = Setting::start(&back, registry()).await;
    at.drain().await;
    let [refund] = &refunds(&back).await[..] else { panic!("one refund") };
    assert_eq!(
        (at.get(id).await.row.compensation, &refund.payload.payload.how),
        (Some(refund.row.id), &how)
    );
    at.end().await;
}

/// Whose holders died of making the compensation, too, is dead without one in the end.
pub async fn a_compensation_that_takes_instances_down_has_an_end<B: Back>(back: B) {
    let at = Setting::start(&back, registry()).await;
    let id = submit_pay(&at.client(), 1, "ok".into()).delay(DAY).await.unwrap().id();
    back.execute(format!("update async_command set crash_count = 5 where id = {id}")).await;
    at.next_day().await;
    let row = at.get(id).await.row;
    assert_eq!((row.status, row.compensation, row.run_no), (Status::Dead, None, 1));
    let error = row.last_error.unwrap();
    assert!(error.starts_with("not compensated for (that, too, took"), "{error}");
    at.end().await;
}

/// An operator's retry runs no command beside what undoes it.
pub async fn a_retry_waits_for_the_compensation<B: Back>(back: B) {
    let at = Setting::start(&back, registry()).await;
    let admin = at.client().admin();
    let id = paid(&at, 1, "never").await;
    at.drain().await;
    let undo = at.get(id).await.row.compensation.expect("it is dead");
    assert_eq!(at.status(undo).await, Status::Dead, "and so is that");
    at.runtime.shutdown().await;

    end_by_hand(&back).await;
    admin.retry(undo).await.unwrap();
    let refused = admin.retry(id).await.unwrap_err();
    assert!(
        matches!(refused, AdminError::CompensationLives { id: of, by } if of == id && by == undo),
        "{refused}"
    );
    assert!(refused.to_string().contains(&format!("command {undo} compensates")), "{refused}");

    let at = Setting::start(&back, registry()).await;
    at.drain().await;
    assert_eq!(at.status(undo).await, Status::Dead, "again");
    end_by_hand(&back).await;
    admin.retry(id).await.unwrap();
    let ended = at.get(undo).await.row;
    assert_eq!(ended.status, Status::Killed, "of what lives again nothing is undone");
    assert!(ended.kill_reason.unwrap().contains(&format!("command {id}, which it compensates")));
    at.drain().await;

    // It has died again, and is made up for again.
    let row = at.get(id).await.row;
    assert_eq!((row.status, row.compensation > Some(undo)), (Status::Dead, true));
    at.end().await;
}

/// Nor beside what undoes that.
pub async fn a_retry_waits_for_the_last_of_a_chain<B: Back>(back: B) {
    let at = Setting::start(&back, registry()).await;
    let admin = at.client().admin();
    let id = paid(&at, 1, "never").await;
    at.drain().await;
    let undo = at.get(id).await.row.compensation.expect("it is dead");
    let by_hand = at.get(undo).await.row.compensation.expect("and so is that");
    let refused = admin.retry(id).await.unwrap_err();
    assert!(
        matches!(refused, AdminError::CompensationLives { by, .. } if by == by_hand),
        "{refused}"
    );
    assert_eq!(at.status(undo).await, Status::Dead, "nothing has changed");
    back.execute(format!(
        "update async_command set status = 'DEAD', finished_at = updated_at where id = {by_hand}"
    ))
    .await;
    at.runtime.shutdown().await;
    admin.retry(id).await.unwrap();
    for ended in [undo, by_hand] {
        assert_eq!(row(&at.client(), ended).await.status, Status::Killed);
    }
    assert_eq!(row(&at.client(), id).await.status, Status::Pending);
}

/// Of two operators who retry a dead command and its dead compensation at once, one is refused.
pub async fn racing_retries_run_one_of_the_two<B: Back>(back: B) {
    let at = Setting::start(&back, registry()).await;
    let admin = at.client().admin();
    let mut pairs = Vec::new();
    for order in 0..20 {
        pairs.push(paid(&at, order, "never").await);
    }
    at.drain().await;
    let mut both = Vec::new();
    for id in pairs {
        both.push((id, at.get(id).await.row.compensation.expect("it is dead")));
    }
    at.runtime.shutdown().await;
    end_by_hand(&back).await;
    for (id, undo) in both {
        let (command, compensation) = tokio::join!(admin.retry(id), admin.retry(undo));
        let rows = [row(&at.client(), id).await.status, row(&at.client(), undo).await.status];
        match (command, compensation) {
            (Ok(()), Err(AdminError::WrongState { .. })) => {
                assert_eq!(rows, [Status::Pending, Status::Killed]);
            }
            (Err(AdminError::CompensationLives { .. }), Ok(())) => {
                assert_eq!(rows, [Status::Dead, Status::Pending]);
            }
            told => panic!("{told:?}: {rows:?}"),
        }
    }
}
