//! Transactions of callers that meet at one unique key, however each of them sees the others.

use std::sync::Arc;

use asynccmd::{
    Client, CommandError, CommandId, Registry, Status, StoreError, SubmitError, SubmitStatus, Tx,
    command,
};
use tokio::sync::Barrier;

use crate::gate::Gate;
use crate::harness::{Back, Begin, row, until_row, within};
use crate::setting::Setting;

#[command(type = "races.once", mode = "async_pool", biz_key = "{key}", unique)]
async fn once(key: String, #[state] gate: Gate) -> Result<(), CommandError> {
    let _ = key;
    gate.pass().await;
    Ok(())
}

/// What a transaction does beside: its business.
#[command(type = "races.beside", mode = "async_pool", biz_key = "{whose}")]
async fn beside(whose: String, #[state] gate: Gate) -> Result<(), CommandError> {
    let _ = whose;
    gate.pass().await;
    Ok(())
}

/// The transactions that race.
const RACERS: usize = 5;

/// One of them.
struct Racer<B: Back> {
    back: Arc<B>,
    client: Client,
    begin: &'static Begin,
    key: String,
    name: String,
    rolls_back: bool,
    start: Arc<Barrier>,
}

/// What a try of a racer came to.
enum Came {
    /// Told so by a typed error.
    ToNothing,
    RolledBack,
    Committed(CommandId, bool),
}

impl<B: Back> Racer<B> {
    /// Runs; begins again where the database has told that it must. The first try starts with the
    /// others.
    async fn run(self) -> Option<(CommandId, bool)> {
        for first in [true].into_iter().chain(std::iter::repeat(false)) {
            match self.attempt(first).await {
                Came::ToNothing => {}
                Came::RolledBack => return None,
                Came::Committed(id, created) => return Some((id, created)),
            }
        }
        unreachable!("it tries for ever")
    }

    async fn attempt(&self, first: bool) -> Came {
        if first && self.begin.exclusive {
            self.start.wait().await;
        }
        let mut tx = self.client.enlist(self.back.begin(self.begin).await);
        // What it sees of others is fixed here, where it ever is.
        B::execute_on(&mut tx, "select count(*) from async_command_migration").await;
        let mut done = Ok(());
        if before::<B>(self.begin) {
            done = submit_beside(&mut tx, self.name.clone()).await.map(drop);
        }
        if first && !self.begin.exclusive {
            self.start.wait().await;
        }
        let done = match done {
            Ok(()) => self.work(&mut tx).await,
            Err(error) => Err(error),
        };
        match done {
            Err(error) => {
                let told = matches!(error, SubmitError::Store(StoreError::TransactionAborted(_)));
                assert!(told && error.is_transient(), "{}: {error:?}", self.begin.statement);
                tx.rollback().await.unwrap();
                Came::ToNothing
            }
            Ok(_) if self.rolls_back => {
                tx.rollback().await.unwrap();
                Came::RolledBack
            }
            Ok((id, created)) => match tx.commit().await {
                Ok(_) => Came::Committed(id, created),
                Err(error) => {
                    let told = matches!(error, StoreError::TransactionAborted(_));
                    assert!(told, "{}: {error:?}", self.begin.statement);
                    Came::ToNothing
                }
            },
        }
    }

    /// The unique submit, and its business after that: a transaction that was told `Ok` goes on.
    async fn work(&self, tx: &mut Tx<'static, B::DB>) -> Result<(CommandId, bool), SubmitError> {
        let sent = submit_once(&mut *tx, self.key.clone()).await?;
        assert_eq!(sent.status, SubmitStatus::Stored(Status::Pending));
        submit_beside(tx, self.name.clone()).await?;
        Ok((sent.id(), sent.created))
    }
}

/// Five transactions, some of which roll back: one row if any commits, whose number all that commit
/// have; who cannot have it is told that its transaction is aborted; and a transaction that was told
/// nothing is whole, with all that it did before and after.
pub async fn racing_transactions_make_one_row_at_every_isolation<B: Back>(back: B) {
    let back = Arc::new(back);
    let client = Client::new(back.database());
    for begin in B::BEGINS {
        for round in 0..8 {
            let key = format!("{} {round}", begin.statement);
            let start = Arc::new(Barrier::new(RACERS));
            // None of them, one, … all of them, and in turns who.
            let rolls_back = |racer: usize| (racer + round) % RACERS < round.min(RACERS);
            let racers: Vec<_> = (0..RACERS)
                .map(|racer| {
                    let racer = Racer {
                        back: Arc::clone(&back),
                        client: client.clone(),
                        begin,
                        key: key.clone(),
                        name: format!("{key} of {racer}"),
                        rolls_back: rolls_back(racer),
                        start: Arc::clone(&start),
                    };
                    tokio::spawn(racer.run())
                })
                .collect();
            let mut committed = Vec::new();
            for (racer, run) in racers.into_iter().enumerate() {
                let came = within("the race's end", run).await.unwrap();
                assert_eq!(came.is_none(), rolls_back(racer), "{key}");
                let whole = if came.is_some() { 1 + i64::from(before::<B>(begin)) } else { 0 };
                let business = format!(
                    "select count(*) from async_command where cmd_type = 'races.beside' and biz_key = '{key} of {racer}'"
                );
                assert_eq!(back.number(business).await, whole, "{key}: a torn transaction");
                committed.extend(came);
            }
            let rows = format!(
                "select count(*) from async_command where cmd_type = 'races.once' and biz_key = '{key}'"
            );
            assert_eq!(back.number(rows).await, i64::from(!committed.is_empty()), "{key}");
            let created = committed.iter().filter(|(_, created)| *created).count();
            assert_eq!(created, usize::from(!committed.is_empty()), "{key}: {committed:?}");
            committed.dedup_by_key(|(id, _)| *id);
            assert!(committed.len() <= 1, "{key}: {committed:?}");
        }
    }
}

/// Whether a racer does some of its business before it races.
fn before<B: Back>(begin: &Begin) -> bool {
    !B::ONE_WRITER || begin.exclusive
}

/// While one caller's transaction has a new key and the duplicate of a running command in it, and a second
/// caller waits for the first, everything else ends. Where one transaction writes at a time, it ends
/// once the first caller is through.
pub async fn a_waiting_duplicate_holds_up_nobody_else<B: Back>(back: B) {
    let registry = Registry::builder().add::<Once>().add::<Beside>().build();
    let at = Setting::start(&back, registry).await;
    let client = Client::new(back.database());
    let running = submit_once(&client, "running".into()).await.unwrap().id();
    let others = (0..10).map(|number| Beside { whose: number.to_string() });
    let others = client.submit_all::<Beside>(&client, others).await.unwrap();
    at.gate.until_entered(11).await;

    let mut first = client.begin::<B::DB>().await.unwrap();
    let new = submit_once(&mut first, "new".into()).await.unwrap();
    let twin = submit_once(&mut first, "running".into()).await.unwrap();
    assert_eq!((new.created, twin.created, twin.id), (true, false, Some(running)));
    assert_eq!(twin.status, SubmitStatus::Stored(Status::Running));
    let (begins, begun) = tokio::sync::oneshot::channel();
    let second = tokio::spawn({
        let client = client.clone();
        async move {
            begins.send(()).unwrap();
            let mut tx = client.begin::<B::DB>().await.unwrap();
            let sent = submit_once(&mut tx, "new".into()).await.unwrap();
            tx.commit().await.unwrap();
            (sent.id, sent.created)
        }
    });
    begun.await.unwrap();

    at.gate.open(11);
    at.gate.until_empty().await;
    if !B::ONE_WRITER {
        for other in &others {
            until_row(&client, other.id(), |row| row.status == Status::Success).await;
        }
        assert_eq!(row(&client, running).await.run_no, 1);
    }
    assert!(!second.is_finished(), "it had to wait for the first one's commit");
    first.commit().await.unwrap();
    // However late the second caller comes, the first one's command has its key still.
    assert_eq!(within("the second caller", second).await.unwrap(), (new.id, false));
    at.gate.open(1);
    for id in others.iter().map(asynccmd::Submitted::id).chain([running, new.id()]) {
        let row = until_row(&client, id, |row| row.status == Status::Success).await;
        assert_eq!((row.run_no, row.retry_count, row.crash_count), (1, 0, 0), "{row:?}");
    }
    at.end().await;
}
