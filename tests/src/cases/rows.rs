//! Rows that the handler's binary cannot or must not run, and rows that no binary has written.

use asynccmd::{
    AdminError, Client, CommandError, CommandId, Context, FailureKind, Notice, Registry, Status,
    command,
};

use crate::harness::{Back, Log};
use crate::setting::Setting;

#[command(type = "rows.number", mode = "async_pool")]
async fn number(number: i64, #[state] log: Log, ctx: &Context) -> Result<(), CommandError> {
    log.add(ctx, &number.to_string());
    if number < 0 { Err("negative".into()) } else { Ok(()) }
}

/// Submits 0 to 9.
async fn ten<B: Back>(back: &B) -> Vec<CommandId> {
    let client = Client::new(back.database());
    let numbers = (0..10).map(|number| Number { number });
    client
        .submit_all::<Number>(&client, numbers)
        .await
        .unwrap()
        .iter()
        .map(|sent| sent.id())
        .collect()
}

fn registry() -> Registry {
    Registry::builder().add::<Number>().build()
}

/// A payload that is not the handler's: the handler is not called, the row is DEAD and otherwise as it
/// was, its batch runs; after a repair a retry works.
pub async fn an_undecodable_payload_among_nine_good_ones_harms_nobody<B: Back>(back: B) {
    for broken in ["", "null", "{", "[]", "{}", r#"{"number":"4"}"#, r#"{"number":4}x"#] {
        let ids = ten(&back).await;
        let bad = ids[4];
        back.execute(format!("update async_command set payload = '{broken}' where id = {bad}"))
            .await;
        let at = Setting::start(&back, registry()).await;
        at.drain().await;
        let (kind, error) = at.death(bad).await;
        assert_eq!(kind, FailureKind::Undecodable, "{broken:?}: {error}");
        assert_eq!(at.get(bad).await.row.payload, broken, "the row keeps it");
        for id in ids.iter().filter(|id| **id != bad) {
            assert_eq!(at.status(*id).await, Status::Success);
        }
        assert_eq!(at.log.entries().len(), 9);

        back.execute(format!(
            r#"update async_command set payload = '{{"number":4}}' where id = {bad}"#
        ))
        .await;
        at.client().admin().retry(bad).await.unwrap();
        at.log.until(10).await;
        at.drain().await;
        let repaired = at.get(bad).await;
        assert_eq!((repaired.row.status, repaired.row.retry_count), (Status::Success, 0));
        assert_eq!((repaired.row.run_no, repaired.failures.len()), (2, 1), "the record stays");
        at.end().await;
    }
}

/// A type that is not this binary's is another's: never touched, but named.
pub async fn an_unknown_type_is_never_touched_and_named_by_health<B: Back>(back: B) {
    let ids = ten(&back).await;
    let foreign = ids[0];
    back.execute(format!(
        "update async_command set cmd_type = 'rows.of_tomorrow', updated_at = created_at where id = {foreign}"
    ))
    .await;
    let at = Setting::start(&back, registry()).await;
    let before = at.get(foreign).await.row;
    at.drain().await;
    assert_eq!(at.log.entries().len(), 9);
    let after = at.get(foreign).await.row;
    assert_eq!(
        (after.status, after.run_no, after.updated_at),
        (Status::Pending, 0, before.updated_at)
    );
    let health = at.client().admin().health().await;
    assert!(health.is_up(), "{health}");
    assert_eq!(health.notices, [Notice::UnknownTypes(vec!["rows.of_tomorrow".into()])]);
    assert!(health.to_string().contains("`rows.of_tomorrow`"), "{health}");
    at.end().await;
}

/// What asynccmd never writes, it leaves alone: the command beside it run, and an operator gets an
/// answer.
pub async fn a_row_in_an_impossible_state_is_left_alone<B: Back>(back: B) {
    let never = format!("next_run_at = {}", B::time(i64::MAX));
    let edits = [
        "status = 'WAITING'",
        "status = ''",
        "status = 'pending'",
        "status = 'RUNNING'",
        "priority = 7",
        &*never,
        "unique_key = 'k'",
    ];
    let client = Client::new(back.database());
    let sane = ten(&back).await;
    let mut edited = Vec::new();
    for edit in edits {
        let id = submit_number(&client, 99).await.unwrap().id();
        back.execute_unchecked(format!("update async_command set {edit} where id = {id}")).await;
        edited.push((edit, id));
    }
    let runs = edited.pop().unwrap().1;
    let at = Setting::start(&back, registry()).await;
    at.log.until(11).await;
    let admin = at.client().admin();
    for id in sane.iter().chain([&runs]) {
        crate::harness::until_row(&client, *id, |row| row.status == Status::Success).await;
    }
    for (edit, id) in edited {
        let row = at.get(id).await.row;
        assert_eq!((row.run_no, row.retry_count), (0, 0), "{edit}");
        if row.status == Status::Unknown {
            let refused = admin.retry(id).await.unwrap_err();
            assert!(matches!(refused, AdminError::WrongState { .. }), "{refused}");
            assert!(admin.kill(id, "no").await.is_err());
            assert_eq!(at.get(id).await.row.status, Status::Unknown, "{edit}");
        }
        back.execute(format!("delete from async_command where id = {id}")).await;
    }
    assert_eq!(at.log.entries().len(), 11);
    at.end().await;
}

/// Counts and times at the ends of their columns: what can run runs, what cannot stops nobody.
pub async fn absurd_counts_and_times_stop_nobody<B: Back>(back: B) {
    let (first, last) = (B::time(-i64::MAX), B::time(i64::MAX));
    let times = format!("next_run_at = {}, created_at = {last}, updated_at = {first}", B::time(0));
    let edits = [
        &*format!("next_run_at = {first}"),
        &*times,
        "retry_count = 2147483647",
        "max_retry = 65535, retry_count = 70000",
        "metadata = 'no json'",
        &*format!("payload_version = {}", -B::LARGEST_VERSION),
        "owner = '', parent_id = -1, shard = 63, priority = -2",
        "last_error = 'x', result = 'no json', progress = '[', kill_reason = null",
    ];
    let client = Client::new(back.database());
    let sane = ten(&back).await;
    let mut edited = Vec::new();
    for edit in edits {
        let id = submit_number(&client, 99).await.unwrap().id();
        back.execute(format!("update async_command set {edit} where id = {id}")).await;
        edited.push((edit, id));
    }
    let at = Setting::start(&back, registry()).await;
    at.drain().await;
    for id in sane {
        assert_eq!(at.status(id).await, Status::Success);
    }
    for (edit, id) in edited {
        assert_eq!(at.status(id).await, Status::Success, "{edit}");
    }
    at.end().await;
}

/// A count that cannot rise any more stays where it is, and its row runs as all others do.
pub async fn a_count_at_its_end_stops_nobody<B: Back>(back: B) {
    let client = Client::new(back.database());
    let claimed = submit_number(&client, 99).await.unwrap().id();
    let fails = submit_number(&client, -1).await.unwrap().id();
    let sane = ten(&back).await;
    back.execute(format!("update async_command set run_no = 2147483647 where id = {claimed}"))
        .await;
    back.execute(format!("update async_command set retry_count = 2147483647 where id = {fails}"))
        .await;
    let at = Setting::start(&back, registry()).await;
    at.drain().await;
    for id in sane.into_iter().chain([claimed]) {
        assert_eq!(at.status(id).await, Status::Success);
    }
    let (kind, error) = at.death(fails).await;
    assert_eq!((kind, &*error), (FailureKind::Error, "negative"));
    at.end().await;
}

/// A row that cannot even be read is not run, and everything beside it is.
pub async fn a_row_that_cannot_be_read_stops_nobody<B: Back>(back: B) {
    let sane = ten(&back).await;
    let client = Client::new(back.database());
    let bad = sane[0];
    if !back.spoil(bad).await {
        // There is no such row here; what was refused has changed nothing.
        let at = Setting::start(&back, registry()).await;
        at.log.until(10).await;
        return at.end().await;
    }
    let at = Setting::start(&back, registry()).await;
    for id in &sane[1..] {
        crate::harness::until_row(&client, *id, |row| row.status == Status::Success).await;
    }
    let refused = at.client().admin().get(bad).await.unwrap_err();
    assert!(matches!(refused, AdminError::Store(_)), "{refused}");
    assert!(at.log.entries().iter().all(|entry| entry.id != bad));
    at.client().admin().kill(bad, "cannot be read").force().await.unwrap();
    at.end().await;
}
