//! Single submits that arrive together are written together.
//!
//! A submit outside of any transaction waits for its row to be on the disk. While one is written others
//! arrive, and all that has arrived goes into the next statement: the database commits once for all of them,
//! and whoever is alone waits for nobody.
//!
//! They have a connection of their own. No caller can have left a transaction open there, in which a row
//! would be gone that its submitter was told of; so nothing has to be asked or settled after a statement.
//! And a submit needs no connection of the callers' pool, of which handlers may hold every one. What is known
//! not to be written, and is refused for no reason of its own, goes by that pool all the same: it waits there
//! for locks and connections as long as its caller has said, and gets an error of its own.
//!
//! Each tokio runtime that submits has its queue, its task and its connection: one whose threads are blocked,
//! or that is not driven, holds up nobody else's submits, and one that ends takes none of them along.

use std::collections::{HashMap, VecDeque};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::task::Poll;
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

/// So many wait before those among them are looked for whose callers do not.
const FEW: usize = 64;

/// How long a sink waits for its connection, before its submits go by the callers' pool.
pub(super) const OPENED: Duration = Duration::from_secs(4);

/// Who has found no connection looks for none again for so long.
const RESTS: Duration = Duration::from_secs(5);

/// As many tokio runtimes have a connection for their submits; those of others go by the callers' pool.
const MOST_LANES: usize = 8;

/// For how long a tokio runtime that does not submit keeps its connection, while others come.
const UNUSED: Duration = Duration::from_secs(60);

/// Where gathered submits go.
#[async_trait]
pub(super) trait Sink: Send + Sync + 'static {
    /// Inserts drafts that are not unique, all of them or none, committed.
    async fn write(&self, drafts: &[Draft]) -> Result<Vec<Inserted>, Unwritten>;
}

/// Why drafts have not been inserted.
#[derive(Debug)]
pub(super) enum Unwritten {
    /// None of them is, and there is no connection to write them by.
    NoConnection,
    /// None of them is, for no reason of theirs: a lock, a victim that was chosen, tables that are missing.
    Aside,
    /// None of them is, perhaps because of one of them alone.
    Refused(StoreError),
    /// It is told as it is: they may be inserted or not, because the connection broke or nothing was answered
    /// in time; or they are not, and were tried for as long as callers wait.
    Failed(StoreError),
}

impl Unwritten {
    /// From what came of a statement, given what the database says of single rows.
    pub(super) fn of(error: StoreError, of_one_row: fn(&StoreError) -> bool) -> Self {
        match error {
            StoreError::TooLarge { .. } => Self::Refused(error),
            StoreError::Database(ref said)
                if said.as_database_error().is_some() && of_one_row(&error) =>
            {
                Self::Refused(error)
            }
            // Also of the commit: whatever is not known to undo it may have done it.
            StoreError::Away(_) | StoreError::NoAnswer(_) | StoreError::Database(_) => {
                Self::Failed(error)
            }
            _ => Self::Aside,
        }
    }
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
    /// How many may wait until those are looked for whose callers do not any more.
    swept_at: usize,
    /// Until then there is no connection.
    rests_until: Option<Instant>,
    /// A task is at it.
    writing: bool,
}

struct Waiting {
    draft: Draft,
    submitter: Submitter,
}

/// Is told of its row, or that it has to go by the callers' pool.
type Submitter = oneshot::Sender<Result<Option<Inserted>>>;

impl<S: Sink> Gather<S> {
    pub(super) fn new(open: impl Fn() -> S + Send + Sync + 'static) -> Self {
        Self { open: Box::new(open), lanes: Mutex::default() }
    }

    /// Inserts a draft that is not unique; `None` where it is to go by the callers' pool, and nothing is
    /// written. Dropped before its turn it is not written; after that it is, by a task of its own.
    pub(super) async fn insert(&self, draft: &Draft) -> Result<Option<Inserted>> {
        let Some(lane) = self.lane() else { return Ok(None) };
        let (submitter, told) = oneshot::channel();
        let idle = {
            let mut queue = lane.queue();
            if queue.rests_until.is_some_and(|until| Instant::now() < until) {
                return Ok(None);
            }
            queue.push(Waiting { draft: draft.clone(), submitter });
            !std::mem::replace(&mut queue.writing, true)
        };
        if idle {
            tokio::spawn(Writing { lane, ended: false }.all());
        }
        // Without a word: the threads are going down.
        told.await.unwrap_or(Err(StoreError::Away(sqlx::Error::WorkerCrashed)))
    }

    fn lane(&self) -> Option<Arc<Lane<S>>> {
        let (threads, now) = (Handle::current().id(), Instant::now());
        let mut lanes = self.lanes.lock().unwrap_or_else(PoisonError::into_inner);
        if !lanes.contains_key(&threads) {
            lanes.retain(|_, entry| now.duration_since(entry.used) < UNUSED);
            if lanes.len() == MOST_LANES {
                return None;
            }
        }
        let entry = lanes.entry(threads).or_insert_with(|| {
            let lane = Lane { sink: (self.open)(), queue: Mutex::default() };
            Entry { lane: Arc::new(lane), used: now }
        });
        entry.used = now;
        Some(Arc::clone(&entry.lane))
    }
}

impl<S> Lane<S> {
    fn queue(&self) -> MutexGuard<'_, Queue> {
        self.queue.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Queue {
    /// While a statement gets no answer callers may give up and come again: what waits is bounded by those
    /// who do.
    fn push(&mut self, waiting: Waiting) {
        if self.waiting.len() >= self.swept_at.max(FEW) {
            self.waiting.retain(|waiting| !waiting.submitter.is_closed());
            self.swept_at = 2 * self.waiting.len();
        }
        self.waiting.push_back(waiting);
    }

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
                after_others().await;
            }
        }
    }

    /// Writes these, and tells everybody what became of it.
    async fn write(&self, drafts: &[Draft], submitters: Vec<Submitter>) {
        match self.lane.sink.write(drafts).await {
            Ok(inserted) => {
                for (submitter, inserted) in submitters.into_iter().zip(inserted) {
                    tell(submitter, Ok(Some(inserted)));
                }
            }
            Err(Unwritten::Refused(_)) if drafts.len() > 1 => {
                self.write_each(drafts, submitters).await;
            }
            Err(unwritten) => {
                self.tell_behind(&unwritten);
                tell_unwritten(submitters, unwritten);
            }
        }
    }

    /// One that the database refuses is no fault of the others.
    async fn write_each(&self, drafts: &[Draft], submitters: Vec<Submitter>) {
        let begun = Instant::now();
        let mut rest = drafts.iter().zip(submitters);
        for (draft, submitter) in rest.by_ref() {
            if submitter.is_closed() {
                continue;
            }
            if begun.elapsed() > ROW_BY_ROW {
                tell(submitter, Ok(None));
                break;
            }
            match self.lane.sink.write(std::slice::from_ref(draft)).await {
                Ok(mut inserted) => tell(submitter, Ok(Some(inserted.remove(0)))),
                Err(Unwritten::Refused(error)) => tell(submitter, Err(error)),
                Err(unwritten) => {
                    self.tell_behind(&unwritten);
                    tell_unwritten([submitter], unwritten);
                    break;
                }
            }
        }
        // Nothing was sent of these.
        rest.for_each(|(_, submitter)| tell(submitter, Ok(None)));
    }

    /// Those behind what got no answer need not wait as long to hear of it; those behind what had no
    /// connection have one in the callers' pool, or are told by that. A connection that broke is another
    /// one for the next statement.
    fn tell_behind(&self, unwritten: &Unwritten) {
        let behind: Vec<_> = {
            let mut queue = self.lane.queue();
            match unwritten {
                Unwritten::NoConnection => queue.rests_until = Some(Instant::now() + RESTS),
                Unwritten::Aside | Unwritten::Failed(StoreError::NoAnswer(_)) => {}
                Unwritten::Refused(_) | Unwritten::Failed(_) => return,
            }
            queue.waiting.drain(..).collect()
        };
        for Waiting { submitter, .. } in behind {
            match unwritten {
                Unwritten::Failed(error) => tell(submitter, Err(same(error))),
                _ => tell(submitter, Ok(None)),
            }
        }
    }
}

/// Lets the tasks go first that can run now. Not by tokio's `yield_now`: that would wait for this thread, which
/// one of those tasks may block.
async fn after_others() {
    let mut stepped_back = false;
    std::future::poll_fn(|cx| {
        if std::mem::replace(&mut stepped_back, true) {
            return Poll::Ready(());
        }
        cx.waker().wake_by_ref();
        Poll::Pending
    })
    .await;
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

fn tell(submitter: Submitter, told: Result<Option<Inserted>>) {
    // Who does not wait any more has no use for it.
    let _ = submitter.send(told);
}

fn tell_unwritten(submitters: impl IntoIterator<Item = Submitter>, unwritten: Unwritten) {
    let mut submitters = submitters.into_iter();
    match unwritten {
        Unwritten::NoConnection | Unwritten::Aside => {
            submitters.for_each(|submitter| tell(submitter, Ok(None)));
        }
        Unwritten::Refused(error) | Unwritten::Failed(error) => {
            let Some(first) = submitters.next() else { return };
            submitters.for_each(|submitter| tell(submitter, Err(same(&error))));
            tell(first, Err(error));
        }
    }
}

/// The same error for one more submitter.
fn same(error: &StoreError) -> StoreError {
    match error {
        StoreError::NoAnswer(after) => StoreError::NoAnswer(*after),
        StoreError::Busy(error) => StoreError::Busy(sqlx::Error::Protocol(error.to_string())),
        StoreError::Away(error) => StoreError::Away(sqlx::Error::Protocol(error.to_string())),
        StoreError::Database(error) => {
            StoreError::Database(sqlx::Error::Protocol(error.to_string()))
        }
        // Of the others none is of several submits.
        other => StoreError::Away(sqlx::Error::Protocol(other.to_string())),
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
        fails: fn(&[String]) -> Option<Unwritten>,
    }

    #[async_trait]
    impl Sink for Arc<Fake> {
        async fn write(&self, drafts: &[Draft]) -> Result<Vec<Inserted>, Unwritten> {
            self.turns.acquire().await.unwrap().forget();
            let keys: Vec<_> = drafts.iter().map(|draft| draft.biz_key.clone()).collect();
            self.written.lock().unwrap().push(keys.clone());
            match (self.fails)(&keys) {
                Some(error) => Err(error),
                None => Ok(keys.iter().map(|key| inserted(key.parse().unwrap())).collect()),
            }
        }
    }

    fn fake(fails: fn(&[String]) -> Option<Unwritten>) -> (Arc<Fake>, Gather<Arc<Fake>>) {
        let fake = Arc::new(Fake { turns: Semaphore::new(0), written: Mutex::default(), fails });
        let sink = Arc::clone(&fake);
        (fake, Gather::new(move || Arc::clone(&sink)))
    }

    fn away() -> Unwritten {
        Unwritten::Failed(StoreError::Away(sqlx::Error::WorkerCrashed))
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
    async fn four(fake: &Fake, gather: &Gather<Arc<Fake>>) -> Vec<Result<Option<i64>, String>> {
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
        told.into_iter()
            .map(|one| one.map(|one| one.map(|one| one.id.0)).map_err(|e| e.to_string()))
            .collect()
    }

    #[tokio::test]
    async fn what_arrives_meanwhile_goes_together_and_each_gets_its_own_answer() {
        let (fake, gather) = fake(|_| None);
        assert_eq!(four(&fake, &gather).await, [1, 2, 3, 4].map(|id| Ok(Some(id))));
        assert_eq!(*fake.written.lock().unwrap(), [vec!["1"], vec!["2", "3", "4"]]);
    }

    #[tokio::test]
    async fn what_the_database_refuses_is_refused_by_itself() {
        let (fake, gather) = fake(|keys| {
            let bad = keys.iter().any(|key| key == "3");
            bad.then_some(Unwritten::Refused(StoreError::TooLarge { size: 3, limit: 2 }))
        });
        let told = four(&fake, &gather).await;
        assert!(told[2].as_ref().is_err_and(|error| error.contains("3 bytes")), "{told:?}");
        assert_eq!([&told[0], &told[1], &told[3]], [&Ok(Some(1)), &Ok(Some(2)), &Ok(Some(4))]);
    }

    #[tokio::test]
    async fn what_may_have_been_written_is_not_written_again() {
        let (fake, gather) = fake(|keys| (keys.len() > 1).then_some(away()));
        let told = four(&fake, &gather).await;
        assert_eq!(told[0], Ok(Some(1)));
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
        assert_eq!(first.await.unwrap().unwrap().id.0, 1);
        // The task has ended, or takes this one along with nothing else.
        assert_eq!(gather.insert(&draft(3)).await.unwrap().unwrap().id.0, 3);
        assert_eq!(*fake.written.lock().unwrap(), [vec!["1"], vec!["3"]]);
    }

    #[tokio::test]
    async fn an_outage_is_told_to_everybody_at_once() {
        let (fake, gather) =
            fake(|_| Some(Unwritten::Failed(StoreError::NoAnswer(Duration::from_secs(30)))));
        let told = four(&fake, &gather).await;
        assert!(told.iter().all(Result::is_err), "{told:?}");
        assert_eq!(*fake.written.lock().unwrap(), [vec!["1"]], "the others wait for no second one");
    }

    #[tokio::test]
    async fn a_connection_that_broke_is_told_of_to_those_alone_who_used_it() {
        let (fake, gather) = fake(|keys| (keys[0] == "1").then_some(away()));
        let told = four(&fake, &gather).await;
        assert!(told[0].is_err(), "{told:?}");
        assert_eq!(told[1..], [2, 3, 4].map(|id| Ok(Some(id))));
    }

    #[tokio::test]
    async fn what_is_no_fault_of_a_row_goes_by_the_callers_pool() {
        let (fake, gather) = fake(|keys| (keys.len() > 1).then_some(Unwritten::Aside));
        let told = four(&fake, &gather).await;
        assert_eq!(told, [Ok(Some(1)), Ok(None), Ok(None), Ok(None)]);
        assert_eq!(fake.written.lock().unwrap().len(), 2);
        assert_eq!(gather.insert(&draft(5)).await.unwrap().unwrap().id.0, 5, "as ever");
    }

    #[tokio::test]
    async fn without_a_connection_all_go_by_the_callers_pool_for_a_while() {
        let (fake, gather) = fake(|_| Some(Unwritten::NoConnection));
        assert_eq!(four(&fake, &gather).await, [Ok(None), Ok(None), Ok(None), Ok(None)]);
        assert!(gather.insert(&draft(5)).await.unwrap().is_none());
        assert_eq!(fake.written.lock().unwrap().len(), 1, "none looks for a connection again");
    }

    /// However long nothing is answered: who gives up leaves nothing behind.
    #[tokio::test]
    async fn what_waits_is_bounded_by_those_who_do() {
        let (fake, gather) = fake(|_| None);
        let drafts = [draft(1), draft(2)];
        let mut first = gather.insert(&drafts[0]).boxed();
        assert!((&mut first).now_or_never().is_none());
        tokio::task::yield_now().await;
        let mut second = gather.insert(&drafts[1]).boxed();
        assert!((&mut second).now_or_never().is_none());
        for number in 3..10_000 {
            assert!(gather.insert(&draft(number)).now_or_never().is_none());
            let lanes = gather.lanes.lock().unwrap();
            assert!(lanes.values().all(|entry| entry.lane.queue().waiting.len() <= FEW));
        }
        fake.turns.add_permits(100);
        assert_eq!(second.await.unwrap().unwrap().id.0, 2);
        assert_eq!(first.await.unwrap().unwrap().id.0, 1);
    }

    /// A submitter that blocks its thread right after it was told blocks nobody's submits.
    #[test]
    fn a_submitter_that_blocks_its_thread_holds_up_no_other() {
        let (fake, gather) = fake(|_| None);
        fake.turns.add_permits(Semaphore::MAX_PERMITS / 2);
        let gather = Arc::new(gather);
        let threads = tokio::runtime::Builder::new_multi_thread()
            .worker_threads(4)
            .enable_time()
            .build()
            .unwrap();
        let (release, held) = std::sync::mpsc::channel::<()>();
        let held = Mutex::new(held);
        threads.block_on(async {
            let blocks = Arc::new(move || held.lock().unwrap().recv().unwrap());
            let submits: Vec<_> = (0..8)
                .map(|number| {
                    let (gather, blocks) = (Arc::clone(&gather), Arc::clone(&blocks));
                    tokio::spawn(async move {
                        for _ in 0..200 {
                            gather.insert(&draft(number)).await.unwrap().unwrap();
                        }
                        if number == 0 {
                            blocks();
                        }
                        for _ in 0..200 {
                            gather.insert(&draft(number)).await.unwrap().unwrap();
                        }
                    })
                })
                .collect();
            let mut submits = submits.into_iter();
            let blocked = submits.next().unwrap();
            for submit in submits {
                tokio::time::timeout(Duration::from_secs(20), submit).await.unwrap().unwrap();
            }
            release.send(()).unwrap();
            blocked.await.unwrap();
        });
    }

    /// More tokio runtimes than may have a connection each: the others' submits go by the pool.
    #[test]
    fn connections_are_bounded_however_many_threads_submit() {
        let (fake, gather) = fake(|_| None);
        fake.turns.add_permits(100);
        let submit = || {
            let threads = tokio::runtime::Builder::new_current_thread().build().unwrap();
            threads.block_on(gather.insert(&draft(1))).unwrap().is_some()
        };
        assert!((0..MOST_LANES).all(|_| submit()));
        assert!(!submit());
        assert_eq!(gather.lanes.lock().unwrap().len(), MOST_LANES);
    }

    #[test]
    fn threads_that_are_blocked_or_end_hold_up_no_others() {
        let (fake, gather) = fake(|_| None);
        let gather = Arc::new(gather);
        let threads = || tokio::runtime::Builder::new_current_thread().build().unwrap();
        let blocked = threads();
        let submit = {
            let gather = Arc::clone(&gather);
            blocked
                .spawn(async move { gather.insert(&draft(1)).await.map(|one| one.unwrap().id.0) })
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
        assert_eq!(told.unwrap().unwrap().id.0, 2);
        drop(others);
        assert_eq!(blocked.block_on(submit).unwrap().unwrap(), 1);
        let told = blocked.block_on(async { gather.insert(&draft(3)).await });
        assert_eq!(told.unwrap().unwrap().id.0, 3);
    }
}
