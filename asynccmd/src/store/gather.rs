//! Single submits that arrive together are written together.
//!
//! A submit outside of any transaction waits for its row to be on the disk. While one is written others
//! arrive, and all that has arrived goes into the next statement: the database commits once for all of them,
//! and whoever is alone waits for nobody.
//!
//! They have a connection of their own. No caller can have left a transaction open there, in which a row
//! would be gone that its submitter was told of; so nothing has to be asked or settled after a statement.
//! And a submit needs no connection of the callers' pool, of which handlers may hold every one.
//!
//! Each tokio runtime that submits has its queue, its task and its connection: one whose threads are blocked,
//! or that is not driven, holds up nobody else's submits, and one that ends takes none of them along.

use std::collections::{HashMap, VecDeque};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use async_trait::async_trait;
use tokio::runtime::{Handle, Id};
use tokio::sync::oneshot;

use super::Result;
use super::model::Inserted;
use crate::command::Draft;
use crate::error::StoreError;

/// What goes together at most.
const MOST_ROWS: usize = 500;
const MOST_BYTES: usize = 256 << 10;

/// How long the rows of a refused batch may take together, one by one.
const ROW_BY_ROW: Duration = Duration::from_secs(5);

/// For how long a tokio runtime that does not submit keeps its connection, while others come.
const UNUSED: Duration = Duration::from_secs(60);

/// Where gathered submits go.
#[async_trait]
pub(super) trait Sink: Send + Sync + 'static {
    /// Inserts drafts that are not unique, all of them or none, committed.
    async fn write(&self, drafts: &[Draft]) -> Result<Vec<Inserted>>;
}

/// Submits on their way.
pub(super) struct Gather<S> {
    /// A sink for the threads that call this.
    open: Box<dyn Fn() -> S + Send + Sync>,
    lanes: Mutex<HashMap<Id, Entry<S>>>,
}

struct Entry<S> {
    lane: Arc<Lane<S>>,
    used: Instant,
}

/// The submits of one tokio runtime.
struct Lane<S> {
    sink: S,
    queue: Mutex<Queue>,
}

#[derive(Default)]
struct Queue {
    waiting: VecDeque<Waiting>,
    /// A task is at it.
    writing: bool,
}

struct Waiting {
    draft: Draft,
    submitter: Submitter,
}

type Submitter = oneshot::Sender<Result<Inserted>>;

impl<S: Sink> Gather<S> {
    pub(super) fn new(open: impl Fn() -> S + Send + Sync + 'static) -> Self {
        Self { open: Box::new(open), lanes: Mutex::default() }
    }

    /// Inserts a draft that is not unique. Dropped before its turn it is not written; after that it is, by a
    /// task of its own.
    pub(super) async fn insert(&self, draft: &Draft) -> Result<Inserted> {
        let lane = self.lane();
        let (submitter, told) = oneshot::channel();
        let idle = {
            let mut queue = lane.queue();
            queue.waiting.push_back(Waiting { draft: draft.clone(), submitter });
            !std::mem::replace(&mut queue.writing, true)
        };
        if idle {
            tokio::spawn(Writing { lane, ended: false }.all());
        }
        // Without a word: the threads are going down.
        told.await.unwrap_or(Err(StoreError::Away(sqlx::Error::WorkerCrashed)))
    }

    fn lane(&self) -> Arc<Lane<S>> {
        let (threads, now) = (Handle::current().id(), Instant::now());
        let mut lanes = self.lanes.lock().unwrap_or_else(PoisonError::into_inner);
        if !lanes.contains_key(&threads) {
            lanes.retain(|_, entry| now.duration_since(entry.used) < UNUSED);
        }
        let entry = lanes.entry(threads).or_insert_with(|| {
            let lane = Lane { sink: (self.open)(), queue: Mutex::default() };
            Entry { lane: Arc::new(lane), used: now }
        });
        entry.used = now;
        Arc::clone(&entry.lane)
    }
}

impl<S> Lane<S> {
    fn queue(&self) -> MutexGuard<'_, Queue> {
        self.queue.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Queue {
    /// What goes next, without those that nobody waits for any more.
    fn next(&mut self) -> (Vec<Draft>, Vec<Submitter>) {
        let (mut drafts, mut submitters, mut bytes) = (Vec::new(), Vec::new(), 0);
        while let Some(first) = self.waiting.front() {
            bytes +=
                first.draft.payload.len() + first.draft.metadata.as_ref().map_or(0, String::len);
            if !drafts.is_empty() && (drafts.len() == MOST_ROWS || bytes > MOST_BYTES) {
                break;
            }
            if let Some(Waiting { draft, submitter }) = self.waiting.pop_front()
                && !submitter.is_closed()
            {
                drafts.push(draft);
                submitters.push(submitter);
            }
        }
        (drafts, submitters)
    }
}

/// The task that writes, as long as there is something.
struct Writing<S> {
    lane: Arc<Lane<S>>,
    ended: bool,
}

impl<S: Sink> Writing<S> {
    async fn all(mut self) {
        loop {
            let (drafts, submitters) = {
                let mut queue = self.lane.queue();
                let next = queue.next();
                if next.0.is_empty() {
                    queue.writing = false;
                    self.ended = true;
                    return;
                }
                next
            };
            let many = drafts.len() > 1;
            self.write(&drafts, submitters).await;
            if many {
                // Those who were told may have more, which then goes together again.
                tokio::task::yield_now().await;
            }
        }
    }

    /// Writes these, and tells everybody what became of it.
    async fn write(&self, drafts: &[Draft], submitters: Vec<Submitter>) {
        match self.lane.sink.write(drafts).await {
            Ok(inserted) => {
                for (submitter, inserted) in submitters.into_iter().zip(inserted) {
                    tell(submitter, Ok(inserted));
                }
            }
            Err(error) if drafts.len() > 1 && may_be_of_one_row(&error) => {
                self.write_each(drafts, submitters).await;
            }
            // Whether the rows are there may be unknown: they are not written again, and whoever submits
            // again decides that.
            Err(error) => {
                let away = matches!(error, StoreError::Away(_) | StoreError::NoAnswer(_));
                tell_all(submitters, &error);
                if away {
                    // Nor can those behind them be written; they need not wait to hear of it.
                    let behind: Vec<_> = self.lane.queue().waiting.drain(..).collect();
                    tell_all(behind.into_iter().map(|waiting| waiting.submitter), &error);
                }
            }
        }
    }

    /// One that the database refuses is no fault of the others.
    async fn write_each(&self, drafts: &[Draft], submitters: Vec<Submitter>) {
        let begun = Instant::now();
        let mut rest = drafts.iter().zip(submitters);
        while let Some((draft, submitter)) = rest.next() {
            if submitter.is_closed() {
                continue;
            }
            match self.lane.sink.write(std::slice::from_ref(draft)).await {
                Ok(mut inserted) => tell(submitter, Ok(inserted.remove(0))),
                Err(error) if may_be_of_one_row(&error) && begun.elapsed() < ROW_BY_ROW => {
                    tell(submitter, Err(error));
                }
                Err(error) => {
                    tell(submitter, Err(same(&error)));
                    return tell_all(rest.map(|(_, submitter)| submitter), &error);
                }
            }
        }
    }
}

impl<S> Drop for Writing<S> {
    fn drop(&mut self) {
        if !self.ended {
            let mut queue = self.lane.queue();
            queue.writing = false;
            queue.waiting.clear();
        }
    }
}

fn tell(submitter: Submitter, told: Result<Inserted>) {
    // Who does not wait any more has no use for it.
    let _ = submitter.send(told);
}

fn tell_all(submitters: impl IntoIterator<Item = Submitter>, error: &StoreError) {
    for submitter in submitters {
        tell(submitter, Err(same(error)));
    }
}

/// Whether the database has refused the statement, and so written nothing, perhaps for one row of it.
fn may_be_of_one_row(error: &StoreError) -> bool {
    match error {
        StoreError::TooLarge { .. } => true,
        StoreError::Database(error) => error.as_database_error().is_some(),
        _ => false,
    }
}

/// The same error for one more submitter.
fn same(error: &StoreError) -> StoreError {
    let said = |error: &sqlx::Error| sqlx::Error::Protocol(error.to_string());
    match error {
        StoreError::Busy(error) => StoreError::Busy(said(error)),
        StoreError::TransactionAborted(error) => StoreError::TransactionAborted(said(error)),
        StoreError::NoAnswer(after) => StoreError::NoAnswer(*after),
        StoreError::Away(error) => StoreError::Away(said(error)),
        StoreError::ReadOnly(error) => StoreError::ReadOnly(said(error)),
        StoreError::InMemory => StoreError::InMemory,
        StoreError::ServerTooOld { found } => StoreError::ServerTooOld { found: found.clone() },
        StoreError::TooLarge { size, limit } => StoreError::TooLarge { size: *size, limit: *limit },
        StoreError::Schema(error) => StoreError::Schema(error.clone()),
        StoreError::Database(error) => StoreError::Database(said(error)),
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use futures_util::FutureExt as _;
    use futures_util::future::join_all;
    use tokio::sync::Semaphore;

    use super::*;
    use crate::command::Due;
    use crate::ids::{CommandId, Uid};
    use crate::store::model::Status;

    /// Writes when it is let, and remembers what.
    struct Fake {
        turns: Semaphore,
        written: Mutex<Vec<Vec<String>>>,
        fails: fn(&[String]) -> Option<StoreError>,
    }

    #[async_trait]
    impl Sink for Arc<Fake> {
        async fn write(&self, drafts: &[Draft]) -> Result<Vec<Inserted>> {
            self.turns.acquire().await.unwrap().forget();
            let keys: Vec<_> = drafts.iter().map(|draft| draft.biz_key.clone()).collect();
            self.written.lock().unwrap().push(keys.clone());
            match (self.fails)(&keys) {
                Some(error) => Err(error),
                None => Ok(keys.iter().map(|key| inserted(key.parse().unwrap())).collect()),
            }
        }
    }

    fn fake(fails: fn(&[String]) -> Option<StoreError>) -> (Arc<Fake>, Gather<Arc<Fake>>) {
        let fake = Arc::new(Fake { turns: Semaphore::new(0), written: Mutex::default(), fails });
        let sink = Arc::clone(&fake);
        (fake, Gather::new(move || Arc::clone(&sink)))
    }

    fn inserted(number: i64) -> Inserted {
        let id = CommandId(number);
        Inserted { id, uid: Uid::random(), created: true, status: Status::Pending }
    }

    fn draft(number: i64) -> Draft {
        Draft {
            uid: Uid::random(),
            command_type: "test",
            biz_key: number.to_string(),
            unique: None,
            payload: "{}".into(),
            payload_version: 1,
            priority: 0,
            shard: 0,
            max_retry: 1,
            due: Due::After(Duration::ZERO),
            metadata: None,
            owner: None,
            parent: None,
            immediate: false,
        }
    }

    /// Submits 1 to 4, of which the first is being written when the others come.
    async fn four(fake: &Fake, gather: &Gather<Arc<Fake>>) -> Vec<Result<i64, String>> {
        let drafts: Vec<_> = (1..=4).map(draft).collect();
        let mut submits: Vec<_> = drafts.iter().map(|draft| gather.insert(draft).boxed()).collect();
        assert!((&mut submits[0]).now_or_never().is_none());
        // The task takes the first, and waits for its turn.
        tokio::task::yield_now().await;
        for submit in &mut submits[1..] {
            assert!(submit.now_or_never().is_none());
        }
        fake.turns.add_permits(100);
        let told = join_all(submits).await;
        told.into_iter().map(|one| one.map(|one| one.id.0).map_err(|e| e.to_string())).collect()
    }

    #[tokio::test]
    async fn what_arrives_meanwhile_goes_together_and_each_gets_its_own_answer() {
        let (fake, gather) = fake(|_| None);
        assert_eq!(four(&fake, &gather).await, [Ok(1), Ok(2), Ok(3), Ok(4)]);
        assert_eq!(*fake.written.lock().unwrap(), [vec!["1"], vec!["2", "3", "4"]]);
    }

    #[tokio::test]
    async fn what_the_database_refuses_is_refused_by_itself() {
        let (fake, gather) = fake(|keys| {
            let bad = keys.iter().any(|key| key == "3");
            bad.then_some(StoreError::TooLarge { size: 3, limit: 2 })
        });
        let told = four(&fake, &gather).await;
        assert!(told[2].as_ref().is_err_and(|error| error.contains("3 bytes")), "{told:?}");
        assert_eq!([&told[0], &told[1], &told[3]], [&Ok(1), &Ok(2), &Ok(4)]);
    }

    #[tokio::test]
    async fn what_may_have_been_written_is_not_written_again() {
        let (fake, gather) =
            fake(|keys| (keys.len() > 1).then_some(StoreError::Away(sqlx::Error::WorkerCrashed)));
        let told = four(&fake, &gather).await;
        assert_eq!(told[0], Ok(1));
        assert!(told[1..].iter().all(Result::is_err), "{told:?}");
        assert_eq!(fake.written.lock().unwrap().len(), 2);
    }

    #[tokio::test]
    async fn who_gives_up_before_the_turn_comes_is_not_written() {
        let (fake, gather) = fake(|_| None);
        let (first, second) = (draft(1), draft(2));
        let mut first = gather.insert(&first).boxed();
        assert!((&mut first).now_or_never().is_none());
        tokio::task::yield_now().await;
        let mut given_up = gather.insert(&second).boxed();
        assert!((&mut given_up).now_or_never().is_none());
        drop(given_up);
        fake.turns.add_permits(100);
        assert_eq!(first.await.unwrap().id.0, 1);
        // The task has ended, or takes this one along with nothing else.
        assert_eq!(gather.insert(&draft(3)).await.unwrap().id.0, 3);
        assert_eq!(*fake.written.lock().unwrap(), [vec!["1"], vec!["3"]]);
    }

    #[tokio::test]
    async fn an_outage_is_told_to_everybody_at_once() {
        let (fake, gather) = fake(|_| Some(StoreError::NoAnswer(Duration::from_secs(30))));
        let told = four(&fake, &gather).await;
        assert!(told.iter().all(Result::is_err), "{told:?}");
        assert_eq!(*fake.written.lock().unwrap(), [vec!["1"]], "the others wait for no second one");
    }

    #[tokio::test]
    async fn what_is_no_fault_of_a_row_is_not_tried_row_by_row() {
        let busy = |keys: &[String]| {
            (keys.len() > 1).then_some(StoreError::Busy(sqlx::Error::PoolTimedOut))
        };
        let (fake, gather) = fake(busy);
        let told = four(&fake, &gather).await;
        assert!(told[1..].iter().all(|one| one.as_ref().is_err_and(|e| e.contains("busy"))));
        assert_eq!(fake.written.lock().unwrap().len(), 2);
    }

    #[test]
    fn threads_that_are_blocked_or_end_hold_up_no_others() {
        let (fake, gather) = fake(|_| None);
        let gather = Arc::new(gather);
        let threads = || tokio::runtime::Builder::new_current_thread().build().unwrap();
        let blocked = threads();
        let submit = {
            let gather = Arc::clone(&gather);
            blocked.spawn(async move { gather.insert(&draft(1)).await.map(|one| one.id.0) })
        };
        // Its turn has begun, and now nobody drives these threads.
        blocked.block_on(async {
            let taken = || {
                let lanes = gather.lanes.lock().unwrap();
                lanes.values().any(|entry| {
                    let queue = entry.lane.queue();
                    queue.writing && queue.waiting.is_empty()
                })
            };
            while !taken() {
                tokio::task::yield_now().await;
            }
        });
        fake.turns.add_permits(100);
        let others = threads();
        let told = others.block_on(async { gather.insert(&draft(2)).await });
        assert_eq!(told.unwrap().id.0, 2);
        drop(others);
        assert_eq!(blocked.block_on(submit).unwrap().unwrap(), 1);
        let told = blocked.block_on(async { gather.insert(&draft(3)).await });
        assert_eq!(told.unwrap().id.0, 3);
    }
}
