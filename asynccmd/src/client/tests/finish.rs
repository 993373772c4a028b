use std::sync::atomic::AtomicBool;

use sqlx::Sqlite;

use super::*;
use crate::client::SubmitStatus;
use crate::command::ports::AttemptPort;
use crate::command::{AttemptInfo, Cancellation, Context, Progress, State};
use crate::error::{FinishError, SubmitError};
use crate::ids::{CommandId, InstanceId, Token};
use crate::store::Conn;
use crate::store::model::{Claim, Status, Want};

/// The runtime's side of one attempt.
struct Holder {
    database: String,
    ended: AtomicBool,
    cancel: Cancellation,
}

impl AttemptPort for Holder {
    fn database(&self) -> Option<&str> {
        Some(&self.database)
    }

    fn cancellation(&self) -> &Cancellation {
        &self.cancel
    }

    fn lease_lost(&self) -> bool {
        false
    }

    fn progress(&self, _: CommandId, _: Token, _: Progress) {}

    fn ends_in_transaction(&self, _: CommandId, _: Token) {
        self.ended.store(true, Ordering::SeqCst);
    }
}

/// Submits a command, claims it, and gives the context of its attempt.
async fn attempt(bed: &Bed, delete: bool) -> (Context, Arc<Holder>) {
    Ping::new("a").submit(&bed.client).await.unwrap();
    let store = &bed.client.database().store;
    let (instance, token) = (InstanceId::random(), Token::random());
    store.register(instance, "test", Duration::from_secs(60)).await.unwrap();
    let wants = [Want { types: vec!["ping"], room: 1, from_start: true }];
    let Claim::Rows { mut rows, .. } = store.claim(instance, token, &wants).await.unwrap() else {
        panic!("no lease")
    };
    let row = rows.remove(0);
    let mut conn = bed.pool.acquire().await.unwrap();
    let holder = Arc::new(Holder {
        database: Conn(Box::new(&mut *conn)).0.identity().await.unwrap().unwrap(),
        ended: AtomicBool::new(false),
        cancel: Cancellation::default(),
    });
    let info = AttemptInfo {
        id: row.id,
        uid: row.uid,
        command_type: "ping",
        attempt: 1,
        run_no: row.run_no,
        max_retry: row.max_retry,
        biz_key: row.biz_key,
        metadata: row.metadata,
        created_at: row.created_at,
        token,
        delete,
    };
    let mut state = State::new();
    state.insert(bed.client.clone());
    let context = Context::new(info, Arc::new(state), holder.clone());
    (context, holder)
}

#[tokio::test]
async fn follow_ups_wait_in_memory() {
    let bed = Bed::new().await;
    let (ctx, _) = attempt(&bed, false).await;
    let kept = Ping::new("b").submit(&ctx).await.unwrap();
    assert_eq!((kept.id, kept.created, kept.status), (None, true, SubmitStatus::Buffered));
    assert_eq!(bed.rows().await.len(), 1);

    let drafts = ctx.close();
    assert_eq!((drafts.len(), drafts[0].uid, drafts[0].parent), (1, kept.uid, Some(ctx.id())));
    let late = Ping::new("c").submit(&ctx).await.unwrap_err();
    assert!(matches!(late, SubmitError::AttemptEnded { id } if id == ctx.id()), "{late}");
}

#[tokio::test]
async fn the_contexts_client_is_the_runtimes() {
    let bed = Bed::new().await;
    let (ctx, _) = attempt(&bed, false).await;
    bed.desk.take();
    Ping::new("b").submit(&ctx.client()).await.unwrap();
    assert_eq!(bed.desk.take()[0].due, ["ping"]);
}

#[tokio::test]
async fn a_finish_commits_with_the_handlers_work_and_its_follow_ups() {
    let bed = Bed::new().await;
    let (ctx, holder) = attempt(&bed, false).await;
    let kept = Ping::new("b").submit(&ctx).await.unwrap();
    let mut tx = bed.client.begin::<Sqlite>().await.unwrap();
    sqlx::query("insert into member values ('Ada')").execute(&mut *tx).await.unwrap();
    ctx.finish_in(&mut tx, 42).await.unwrap();
    assert!(holder.ended.load(Ordering::SeqCst));
    let again = ctx.finish_in(&mut tx, 43).await.unwrap_err();
    assert!(matches!(again, FinishError::NotRunning(id) if id == ctx.id()), "{again}");
    let late = Ping::new("c").submit(&ctx).await.unwrap_err();
    assert!(matches!(late, SubmitError::AttemptEnded { .. }), "{late}");
    tx.commit().await.unwrap();

    let rows = bed.rows().await;
    assert_eq!((rows[0].status, rows[0].result.as_deref()), (Status::Success, Some("42")));
    assert_eq!((rows.len(), rows[1].uid, rows[1].parent), (2, kept.uid, Some(ctx.id())));
}

#[tokio::test]
async fn a_finish_with_no_retention_removes_the_row() {
    let bed = Bed::new().await;
    let (ctx, _) = attempt(&bed, true).await;
    let mut tx = bed.pool.begin().await.unwrap();
    ctx.finish_in(&mut tx, ()).await.unwrap();
    tx.commit().await.unwrap();
    assert_eq!(bed.rows().await.len(), 0);
}

#[tokio::test]
async fn a_finish_that_is_rolled_back_leaves_the_attempt_its_end() {
    let bed = Bed::new().await;
    let (ctx, _) = attempt(&bed, false).await;
    Ping::new("b").submit(&ctx).await.unwrap();
    let mut tx = bed.client.begin::<Sqlite>().await.unwrap();
    ctx.finish_in(&mut tx, ()).await.unwrap();
    tx.rollback().await.unwrap();
    let rows = bed.rows().await;
    assert_eq!((rows.len(), rows[0].status), (1, Status::Running));

    // Once more, as a handler does whose commit was refused.
    let mut tx = bed.client.begin::<Sqlite>().await.unwrap();
    ctx.finish_in(&mut tx, ()).await.unwrap();
    tx.rollback().await.unwrap();
    assert_eq!(ctx.close().len(), 1, "the usual end inserts the follow-up");
}

#[tokio::test]
async fn a_row_that_was_taken_away_cannot_be_finished() {
    let bed = Bed::new().await;
    let (ctx, holder) = attempt(&bed, false).await;
    bed.client.admin().requeue(ctx.id()).await.unwrap();
    let mut tx = bed.client.begin::<Sqlite>().await.unwrap();
    let lost = ctx.finish_in(&mut tx, ()).await.unwrap_err();
    assert!(matches!(lost, FinishError::LeaseLost(id) if id == ctx.id()), "{lost}");
    assert!(!holder.ended.load(Ordering::SeqCst));
    tx.commit().await.unwrap();
    assert_eq!(bed.rows().await[0].status, Status::Pending);
}

#[tokio::test]
async fn a_kill_that_was_asked_for_comes_first() {
    let bed = Bed::new().await;
    let (ctx, _) = attempt(&bed, false).await;
    bed.client.admin().kill(ctx.id(), "twice").await.unwrap();
    let mut tx = bed.client.begin::<Sqlite>().await.unwrap();
    let killed = ctx.finish_in(&mut tx, ()).await.unwrap_err();
    assert!(
        matches!(&killed, FinishError::KillRequested { reason, .. } if reason == "twice"),
        "{killed}"
    );
}

#[tokio::test]
async fn another_database_is_refused() {
    let (bed, other) = (Bed::new().await, Bed::new().await);
    let (ctx, _) = attempt(&bed, false).await;
    let mut tx = other.client.begin::<Sqlite>().await.unwrap();
    let refused = ctx.finish_in(&mut tx, ()).await.unwrap_err();
    assert!(matches!(refused, FinishError::OtherDatabase(id) if id == ctx.id()), "{refused}");

    let mut empty =
        <sqlx::SqliteConnection as sqlx::Connection>::connect("sqlite::memory:").await.unwrap();
    let refused = ctx.finish_in(&mut empty, ()).await.unwrap_err();
    assert!(matches!(refused, FinishError::OtherDatabase(_)), "{refused}");
}

#[tokio::test]
async fn an_output_that_serde_refuses_leaves_the_transaction_usable() {
    let bed = Bed::new().await;
    let (ctx, _) = attempt(&bed, false).await;
    let mut tx = bed.client.begin::<Sqlite>().await.unwrap();
    let refused = ctx.finish_in(&mut tx, super::Unwritable).await.unwrap_err();
    assert!(matches!(refused, FinishError::Output(_)), "{refused}");
    ctx.finish_in(&mut tx, ()).await.unwrap();
    tx.commit().await.unwrap();
    assert_eq!(bed.rows().await[0].status, Status::Success);
}
