//! When a command is due, and how its submitter changes that.

use std::time::Duration;

use asynccmd::{Client, Status, SubmitError, testing};
use chrono::{DateTime, TimeDelta, Utc};

use super::submit::{HOUR, Keyed, end, looking, submit_keyed, submit_note, submit_now, told};
use crate::harness::{Back, Log, row};

/// A delay counts from the insert, on the database's clock; before its end nothing runs.
pub async fn a_delayed_command_waits_for_its_time<B: Back>(back: B) {
    let log = Log::default();
    let runtime = looking(&back, &log).await;
    let client = runtime.client();
    let delayed = submit_now(&client, "delayed".into()).delay(HOUR).await.unwrap();
    let later = Utc::now() + TimeDelta::hours(2);
    submit_note(&client, "at".into()).run_at(later).await.unwrap();
    let past = Utc::now() - TimeDelta::days(1);
    submit_note(&client, "past".into()).run_at(past).await.unwrap();
    let stored = row(&client, delayed.id()).await;
    assert_eq!(stored.next_run_at - stored.created_at, TimeDelta::hours(1));
    testing::drain(&runtime).await;
    assert_eq!(log.texts(), ["past"]);
    testing::advance(back.database(), HOUR).await;
    testing::drain(&runtime).await;
    assert_eq!(log.texts(), ["past", "delayed"]);
    testing::advance(back.database(), HOUR).await;
    end(&back, &runtime).await;
    assert_eq!(log.texts(), ["past", "delayed", "at"]);
}

/// The scheduler knows when the next row is due: it needs no poll for it.
pub async fn a_command_starts_when_it_is_due_and_not_at_the_next_poll<B: Back>(back: B) {
    let log = Log::default();
    let runtime = told(&back, &log).await;
    let client = runtime.client();
    let soon = Duration::from_millis(300);
    submit_note(&client, "soon".into()).delay(soon).await.unwrap();
    // Has the scheduler look, and see when that one is due.
    submit_note(&client, "now".into()).await.unwrap();
    log.until(2).await;
    assert_eq!(log.texts(), ["now", "soon"]);
    end(&back, &runtime).await;
}

/// The submitter may end what has not started, in a transaction of its own.
pub async fn a_cancel_ends_pending_commands_only_and_with_its_transaction<B: Back>(back: B) {
    let client = Client::new(back.database());
    let mut ids = Vec::new();
    for key in ["a", "a", "b", "c", ""] {
        ids.push(submit_keyed(&client, key.into()).await.unwrap().id());
    }
    let other = submit_note(&client, "other type".into()).biz_key("a").await.unwrap().id();

    let mut tx = client.begin::<B::DB>().await.unwrap();
    assert_eq!(client.cancel::<Keyed>(&mut tx, "a").await.unwrap(), 2);
    tx.rollback().await.unwrap();
    assert_eq!(row(&client, ids[0]).await.status, Status::Pending);

    let mut tx = client.begin::<B::DB>().await.unwrap();
    assert_eq!(client.cancel::<Keyed>(&mut tx, "a").await.unwrap(), 2);
    assert_eq!(client.cancel::<Keyed>(&mut tx, ids[2]).await.unwrap(), 1);
    assert_eq!(client.cancel::<Keyed>(&mut tx, "").await.unwrap(), 0, "no key names nobody");
    assert_eq!(client.cancel::<Keyed>(&mut tx, other).await.unwrap(), 0, "of another type");
    assert_eq!(client.cancel::<Keyed>(&mut tx, "A").await.unwrap(), 0);
    tx.commit().await.unwrap();
    assert_eq!(client.cancel::<Keyed>(&client, "a").await.unwrap(), 0, "not twice");
    for id in &ids[..3] {
        let killed = row(&client, *id).await;
        assert_eq!(killed.status, Status::Killed);
        assert!(killed.finished_at.is_some());
    }

    let log = Log::default();
    let runtime = told(&back, &log).await;
    end(&back, &runtime).await;
    let mut seen = log.texts();
    seen.sort_unstable();
    assert_eq!(seen, ["", "c", "other type"]);
    assert_eq!(client.cancel::<Keyed>(&client, "c").await.unwrap(), 0, "it has succeeded");
}

/// Another due time for what has not started; with its transaction, and told to the scheduler.
pub async fn a_reschedule_moves_pending_commands_only_and_with_its_transaction<B: Back>(back: B) {
    let log = Log::default();
    let runtime = told(&back, &log).await;
    let client = runtime.client();
    let id = submit_keyed(&client, "a".into()).delay(HOUR).await.unwrap().id();
    let before = row(&client, id).await.next_run_at;

    let mut tx = client.begin::<B::DB>().await.unwrap();
    assert_eq!(client.reschedule::<Keyed>(&mut tx, id, Duration::ZERO).await.unwrap(), 1);
    tx.rollback().await.unwrap();
    assert_eq!(row(&client, id).await.next_run_at, before);

    let at = DateTime::from_timestamp_micros(before.timestamp_micros() + 86_400_000_000).unwrap();
    assert_eq!(client.reschedule::<Keyed>(&client, "a", at).await.unwrap(), 1);
    assert_eq!(row(&client, id).await.next_run_at, at);
    assert_eq!(client.reschedule::<Keyed>(&client, "b", at).await.unwrap(), 0);
    let error = client.reschedule::<Keyed>(&client, "a", Duration::MAX).await.unwrap_err();
    assert!(matches!(error, SubmitError::TimeOutOfRange { .. }), "{error}");
    assert!(log.entries().is_empty());

    let mut tx = client.begin::<B::DB>().await.unwrap();
    assert_eq!(client.reschedule::<Keyed>(&mut tx, "a", Duration::ZERO).await.unwrap(), 1);
    tx.commit().await.unwrap();
    log.until(1).await;
    end(&back, &runtime).await;
    assert_eq!(client.reschedule::<Keyed>(&client, id, HOUR).await.unwrap(), 0, "it has succeeded");
}
