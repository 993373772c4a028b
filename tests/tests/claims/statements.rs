//! The statements that this process sends, as sqlx tells them to `tracing`.
//!
//! Every statement of every connection is seen, the runtime's own included; `begin` and `commit` are
//! not, because sqlx does not tell them.

use std::sync::{LazyLock, Mutex, MutexGuard};
use std::time::Duration;

use tokio::sync::watch;
use tracing::field::{Field, Visit};
use tracing::span::{Attributes, Id, Record};
use tracing::{Event, Level, Metadata, Subscriber};

/// A statement that has ended.
#[derive(Debug, Clone, Default)]
pub(crate) struct Statement {
    /// Its text.
    pub(crate) text: String,
    /// How long it took.
    pub(crate) took: Duration,
}

struct Book {
    statements: Mutex<Vec<Statement>>,
    count: watch::Sender<usize>,
}

static BOOK: LazyLock<Book> =
    LazyLock::new(|| Book { statements: Mutex::default(), count: watch::Sender::new(0) });

/// One test at a time: they count statements and measure times of a whole process.
static ALONE: tokio::sync::Mutex<()> = tokio::sync::Mutex::const_new(());

/// A test's right to run and to read the book.
pub(crate) struct Alone {
    _alone: tokio::sync::MutexGuard<'static, ()>,
}

/// Waits until no other test runs.
pub(crate) async fn alone() -> Alone {
    let alone = ALONE.lock().await;
    // Refused from the second test on: the first one's is there.
    let _ = tracing::subscriber::set_global_default(Listener);
    let alone = Alone { _alone: alone };
    alone.forget();
    alone
}

impl Alone {
    fn book(&self) -> MutexGuard<'static, Vec<Statement>> {
        BOOK.statements.lock().unwrap()
    }

    /// Forgets what was sent so far.
    pub(crate) fn forget(&self) {
        self.book().clear();
        BOOK.count.send_replace(0);
    }

    /// What was sent since it was told to forget.
    pub(crate) fn sent(&self) -> Vec<Statement> {
        self.book().clone()
    }

    /// Those whose text has `part` in it.
    pub(crate) fn with(&self, part: &str) -> Vec<Statement> {
        self.book().iter().filter(|statement| statement.text.contains(part)).cloned().collect()
    }

    /// Waits for `count` statements that have `part` in them.
    pub(crate) async fn until(&self, count: usize, part: &str) -> Vec<Statement> {
        let mut changed = BOOK.count.subscribe();
        let reached = async {
            while self.with(part).len() < count {
                changed.changed().await.unwrap();
            }
        };
        if tokio::time::timeout(Duration::from_secs(60), reached).await.is_err() {
            panic!("after 60 s not {count} statements with {part:?} but {:?}", self.sent());
        }
        self.with(part)
    }
}

struct Listener;

impl Subscriber for Listener {
    fn enabled(&self, metadata: &Metadata<'_>) -> bool {
        metadata.target() == "sqlx::query" && *metadata.level() <= Level::DEBUG
    }

    fn event(&self, event: &Event<'_>) {
        let mut statement = Statement::default();
        event.record(&mut statement);
        let mut book = BOOK.statements.lock().unwrap();
        book.push(statement);
        BOOK.count.send_replace(book.len());
    }

    fn new_span(&self, _: &Attributes<'_>) -> Id {
        Id::from_u64(1)
    }
    fn record(&self, _: &Id, _: &Record<'_>) {}
    fn record_follows_from(&self, _: &Id, _: &Id) {}
    fn enter(&self, _: &Id) {}
    fn exit(&self, _: &Id) {}
}

impl Visit for Statement {
    fn record_debug(&mut self, _: &Field, _: &dyn std::fmt::Debug) {}

    fn record_str(&mut self, field: &Field, value: &str) {
        // The whole text, where the summary is not all of it.
        if matches!(field.name(), "summary" | "db.statement") && !value.is_empty() {
            value.trim().clone_into(&mut self.text);
        }
    }

    fn record_f64(&mut self, field: &Field, value: f64) {
        if field.name() == "elapsed_secs" {
            self.took = Duration::from_secs_f64(value);
        }
    }
}
